//! The embedded decoder for short 2-D blocks, sixteen blocks in lockstep, one in each 32-bit lane.
//!
//! A plane is at most 31 bits of code, so that a lane shows all of it. A block waits where its last plane begins that
//! is not simple: the one that its end cuts, or that makes all of its coefficients significant, which is shorter than
//! it looks. When all wait, those planes are decoded together, and what follows the latter ones is copied: planes
//! that are their own code.

use super::leads::{FirstCoefficients, Leads};
use super::lifting::transpose_elements;
use super::registers;
use super::tails::{A_NOT_B_NOT_C, A_OR_B_NOT_C, runs32};
use super::words::{Blocks, Words, block, block_of_lane, in_memory};
use crate::codec::zfp::Value;
use crate::codec::zfp::arch::bmi2::Bmi2;
use crate::codec::zfp::arch::{BATCH, Bmi};
use crate::codec::zfp::planes::Planes;
use crate::codec::zfp::range::Aligned;
use crate::codec::zfp::shape::Square;
use crate::codec::zfp::transform::Headers;
use crate::codec::zfp::value::Int;
use std::arch::x86_64::*;

/// Coefficients of a block.
const SIZE: i32 = 16;

/// Headers and bit planes of blocks, which must be short; the first coefficient has more bits, in planes that are said
/// to be zero.
#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
pub fn decode<T: Value>(
    blocks: &Blocks,
    bmi: Bmi2,
    headers: &mut Headers,
    planes: &mut [Planes; BATCH],
) -> FirstCoefficients {
    if blocks.span() <= 128 {
        decode_words::<T, 4>(blocks, bmi, headers, planes)
    } else {
        decode_words::<T, 8>(blocks, bmi, headers, planes)
    }
}

#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
fn decode_words<T: Value, const C: usize>(
    blocks: &Blocks,
    bmi: Bmi2,
    headers: &mut Headers,
    planes: &mut [Planes; BATCH],
) -> FirstCoefficients {
    let mut words = Words::<C>::open(blocks);
    let [_, count] = words.take_headers::<T, Square>(headers);
    let leads = Leads::take::<T, C>(&mut words, count);
    for planes in &mut *planes {
        planes[..8].fill(0);
    }
    let done = _mm512_set1_epi32(leads.count as i32);
    let mut squares = Squares {
        words,
        significant: leads.significant,
        done: _mm512_mask_mov_epi32(done, leads.alone, _mm512_set1_epi32(NOWHERE)),
    };
    let k = squares.simple_planes::<T>(leads.count, bmi, planes);
    if T::Int::BITS > 32 && k + 1 + 2 * C > 32 {
        clear_upper(k, planes);
    }
    let reached = squares.last_planes(bmi, planes);
    let reached = _mm512_maskz_mov_epi32(!leads.alone, reached);
    let reached = _mm512_min_epu32(reached, _mm512_set1_epi32(T::Int::BITS as i32));
    headers.planes = lanes(_mm512_permutexvar_epi32(block_of_lane(), reached));
    cut_off::<T>(count, planes);
    leads.first
}

/// Makes zeros of the planes after the first 32 and the first `k` of each block.
#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
fn clear_upper(k: usize, planes: &mut [Planes; BATCH]) {
    let mask = u32::MAX.unbounded_shl(k.saturating_sub(32) as u32);
    for planes in planes {
        let upper: &mut [u64; 8] = &mut planes.as_chunks_mut().0[1];
        // SAFETY: 64 writable bytes.
        unsafe {
            _mm512_mask_storeu_epi16(upper.as_mut_ptr().cast(), mask, _mm512_setzero_si512());
        }
    }
}

/// Sixteen blocks on their way.
struct Squares<const C: usize> {
    words: Words<C>,
    /// Coefficients of each that are significant so far.
    significant: __m512i,
    /// Planes that are done.
    done: __m512i,
}

impl<const C: usize> Squares<C> {
    /// Decodes planes from plane `first` on until all blocks wait. Returns the plane after those.
    #[inline]
    #[target_feature(
        enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
    )]
    fn simple_planes<T: Value>(
        &mut self,
        first: usize,
        bmi: Bmi2,
        planes: &mut [Planes; BATCH],
    ) -> usize {
        let all = _mm512_set1_epi32(-1);
        let last = _mm512_set1_epi32(SIZE - 1);
        for k in first..T::Int::BITS as usize {
            let (here, before) = (self.words.code[0], self.significant);
            let (ends, more) = runs32(_mm512_srlv_epi32(here, before));
            let to_end = _mm512_xor_si512(ends, _mm512_add_epi32(ends, all));
            let coefficients = _mm512_ternarylogic_epi32::<A_NOT_B_NOT_C>(to_end, ends, more);
            let length = _mm512_add_epi32(before, _mm512_popcnt_epi32(to_end));
            let now = _mm512_add_epi32(before, _mm512_popcnt_epi32(coefficients));
            // By sign: masks in registers of their own take longer.
            let over = _mm512_sub_epi32(self.words.left, length);
            let waits = _mm512_or_si512(over, _mm512_sub_epi32(last, now));
            if _mm512_movepi32_mask(waits) == u16::MAX {
                return k;
            }
            let waits = _mm512_srai_epi32::<31>(waits);
            let new = _mm512_sllv_epi32(coefficients, before);
            let unknown = _mm512_sllv_epi32(all, before);
            let mask = _mm512_ternarylogic_epi32::<A_OR_B_NOT_C>(
                new,
                _mm512_xor_si512(unknown, all),
                waits,
            );
            let mut rows = Aligned([lanes(here), lanes(mask)]);
            in_memory(&mut rows);
            let [code, masks] = &rows.0;
            for lane in 0..BATCH {
                let plane = bmi.extract(code[lane].into(), masks[lane].into());
                halves(&mut planes[block(lane)])[k] = plane as u16;
            }
            self.words.take(_mm512_andnot_si512(waits, length));
            self.significant = _mm512_ternarylogic_epi32::<B_OR_C_BY_A>(waits, before, now);
            let one = _mm512_add_epi32(waits, _mm512_set1_epi32(1));
            self.done = _mm512_add_epi32(self.done, one);
        }
        T::Int::BITS as usize
    }

    /// Decodes the plane that each block waits at, and copies those after it that are their own code. Returns the
    /// number of planes of each after which all are zero.
    #[inline]
    #[target_feature(
        enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
    )]
    fn last_planes(&mut self, bmi: Bmi2, planes: &mut [Planes; BATCH]) -> __m512i {
        let (all, one) = (_mm512_set1_epi32(-1), _mm512_set1_epi32(1));
        let before = self.significant;
        let here = self.words.code[0];
        let hidden = _mm512_sllv_epi32(all, _mm512_subs_epu16(self.words.left, before));
        let window = _mm512_andnot_si512(hidden, _mm512_srlv_epi32(here, before));
        let (ends, more) = runs32(window);
        let below = _mm512_andnot_si512(ends, _mm512_add_epi32(ends, all));
        let coefficients = _mm512_ternarylogic_epi32::<A_NOT_B_NOT_C>(below, more, hidden);
        let now = _mm512_add_epi32(before, _mm512_popcnt_epi32(coefficients));

        // A cut in the middle of a run of zeros makes a one-bit of the coefficient that it stopped at. The last
        // coefficient of a block is not said at all.
        let last = _mm512_set1_epi32(SIZE - 1);
        let whole = _mm512_cmpgt_epi32_mask(now, last);
        let endless = _mm512_testn_epi32_mask(ends, ends);
        let unsaid = _mm512_min_epi32(now, last);
        let implied = _mm512_maskz_sllv_epi32(whole | endless, one, unsaid);
        let known = _mm512_andnot_si512(_mm512_sllv_epi32(all, before), here);
        let mut rows = Rows {
            code: lanes(window),
            coefficients: lanes(coefficients),
            significant: lanes(before),
            known: lanes(_mm512_or_si512(known, implied)),
            done: lanes(self.done),
        };
        in_memory(&mut rows);
        let mut lengths = [0; BATCH];
        for (lane, length) in lengths.iter_mut().enumerate() {
            rows.put_plane(lane, bmi, &mut planes[block(lane)]);
            // The code ends where the last coefficient would be.
            let rank = SIZE as u32 - 1 - rows.significant[lane] % SIZE as u32;
            *length = bmi.select(rows.coefficients[lane].into(), rank);
        }
        let reached = _mm512_add_epi32(self.done, one);
        if whole == 0 {
            return reached;
        }
        let length = _mm512_add_epi32(before, vector(&lengths));
        self.words.take(_mm512_maskz_mov_epi32(whole, length));
        let first = _mm512_mask_mov_epi32(_mm512_set1_epi32(NOWHERE), whole, reached);
        self.copy_rest(first, planes);
        let copied = _mm512_srli_epi32::<4>(_mm512_add_epi32(self.words.left, last));
        _mm512_mask_add_epi32(reached, whole, reached, copied)
    }

    /// Copies planes that are their own code, from plane `first` of each block on.
    #[inline]
    #[target_feature(
        enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
    )]
    fn copy_rest(&self, first: __m512i, planes: &mut [Planes; BATCH]) {
        let first = lanes(first);
        for (i, words) in self.words.code.as_chunks::<4>().0.iter().enumerate() {
            for (r, rows) in transpose_elements(*words).into_iter().enumerate() {
                let eights = registers::lanes_of(rows);
                for (l, eight) in eights.into_iter().enumerate() {
                    let lane = 4 * l + r;
                    put_eight(
                        &mut planes[block(lane)],
                        first[lane] as usize + 8 * i,
                        eight,
                    );
                }
            }
        }
    }
}

const B_OR_C_BY_A: i32 = 0xca;

/// A plane after all that a block has.
const NOWHERE: i32 = 64;

/// What makes up the last planes of the blocks, lane by lane.
#[repr(align(64))]
struct Rows {
    code: [u32; BATCH],
    coefficients: [u32; BATCH],
    significant: [u32; BATCH],
    known: [u32; BATCH],
    done: [u32; BATCH],
}

impl Rows {
    #[inline(always)]
    fn put_plane(&self, lane: usize, bmi: Bmi2, planes: &mut Planes) {
        let bits = bmi.extract(self.code[lane].into(), self.coefficients[lane].into());
        let plane = u64::from(self.known[lane]) | bits << (self.significant[lane] % 32);
        halves(planes)[self.done[lane] as usize % 128] = plane as u16;
    }
}

/// Sets eight planes from plane `k` on.
#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
fn put_eight(planes: &mut Planes, k: usize, eight: __m128i) {
    let k = k % 128;
    let to: *mut u16 = halves(planes)[k..k + 8].as_mut_ptr();
    // SAFETY: 16 writable bytes.
    unsafe { _mm_storeu_si128(to.cast(), eight) };
}

/// Makes zeros of the planes from plane `count` of each block on.
#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
fn cut_off<T: Value>(count: __m512i, planes: &mut [Planes; BATCH]) {
    let most = T::Int::BITS;
    if _mm512_cmplt_epu32_mask(count, _mm512_set1_epi32(most as i32)) == 0 {
        return;
    }
    for (lane, count) in lanes(count).into_iter().enumerate() {
        let beyond = count.min(most) as usize..most as usize;
        halves(&mut planes[block(lane)])[beyond].fill(0);
    }
}

/// The planes of a block, one by one.
#[inline(always)]
fn halves(planes: &mut Planes) -> &mut [u16; 256] {
    let planes: *mut Planes = planes;
    // SAFETY: the same memory; words are little-endian, and any two of their bytes are a plane.
    unsafe { &mut *planes.cast() }
}

#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
fn lanes(v: __m512i) -> [u32; BATCH] {
    let mut lanes = [0; BATCH];
    // SAFETY: 64 writable bytes.
    unsafe { _mm512_storeu_si512(lanes.as_mut_ptr().cast(), v) }
    lanes
}

#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
fn vector(lanes: &[u32; BATCH]) -> __m512i {
    // SAFETY: 64 readable bytes.
    unsafe { _mm512_loadu_si512(lanes.as_ptr().cast()) }
}
