//! The embedded decoder for 2-D and 3-D blocks, eight blocks in lockstep, one in each 64-bit lane.
//!
//! A plane's tail must be decoded to know where the next plane starts; that chain of dependent steps takes longer
//! than the work of each. So there are two groups of eight that take turns.

use super::tails::{self, A_NOT_B_NOT_C, Place};
use super::window::{Code, LANES, SHOWN};
use crate::codec::zfp::Value;
use crate::codec::zfp::arch::bmi2::Bmi2;
use crate::codec::zfp::arch::{BATCH, Bmi};
use crate::codec::zfp::planes::Planes;
use crate::codec::zfp::shape::Shape;
use crate::codec::zfp::transform::LowestExponent;
use crate::codec::zfp::value::Int;
use std::arch::x86_64::*;

/// Eight blocks on their way.
pub struct Group<const R: usize> {
    code: Code<R>,
    /// The next bit of each block.
    position: __m512i,
    /// The bit after each.
    end: __m512i,
    /// Bit planes of each.
    count: __m512i,
    /// Coefficients that are significant so far.
    significant: __m512i,
    /// The first plane of each that is not all zeros.
    first: [u64; LANES],
}

impl<const R: usize> Group<R> {
    /// Reads the headers of the blocks in bits `position..end` of the code.
    #[inline]
    #[target_feature(
        enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
    )]
    pub fn open<T: Value, S: Shape>(
        code: Code<R>,
        position: &[u64; LANES],
        end: &[u64; LANES],
        lowest: LowestExponent,
    ) -> (Self, [u32; LANES]) {
        let (position, end) = (vector(position), vector(end));
        let mask = _mm512_set1_epi64((1 << T::HEADER_BITS) - 1);
        let bits = _mm512_and_si512(code.window(position), mask);
        let there = _mm512_cmplt_epu64_mask(position, end);
        let one = _mm512_set1_epi64(1);
        let coded = _mm512_mask_test_epi64_mask(there, bits, one);
        let length = _mm512_mask_mov_epi64(one, coded, _mm512_set1_epi64(T::HEADER_BITS.into()));
        let above = _mm512_set1_epi64(lowest.planes_above::<T, S>().into());
        let count = _mm512_add_epi64(_mm512_srli_epi64::<1>(bits), above);
        let count = _mm512_max_epi64(count, _mm512_setzero_si512());
        let count = _mm512_min_epi64(count, _mm512_set1_epi64(T::Int::BITS.into()));
        let mut headers = [0; LANES];
        let coded_bits = _mm512_maskz_cvtepi64_epi32(coded, bits);
        // SAFETY: 32 writable bytes.
        unsafe { _mm256_storeu_si256(headers.as_mut_ptr().cast(), coded_bits) };
        let count = _mm512_maskz_mov_epi64(coded, count);
        let position = _mm512_mask_add_epi64(position, there, position, length);
        // A plane of zeros is a 0, as long as no coefficient is significant.
        let window = code.window(position);
        let below = _mm512_add_epi64(window, _mm512_set1_epi64(-1));
        let zeros = _mm512_popcnt_epi64(_mm512_andnot_si512(window, below));
        let zeros = _mm512_min_epu64(zeros, _mm512_min_epu64(count, _mm512_set1_epi64(SHOWN)));
        let group = Group {
            code,
            position: _mm512_add_epi64(position, zeros),
            end,
            count: _mm512_sub_epi64(count, zeros),
            significant: _mm512_setzero_si512(),
            first: lanes(zeros),
        };
        (group, headers)
    }

    /// Blocks of which the `k`th plane from the first on is there.
    #[inline]
    #[target_feature(
        enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
    )]
    fn active(&self, k: u32) -> __mmask8 {
        _mm512_cmpgt_epu64_mask(self.count, _mm512_set1_epi64(k.into()))
            & _mm512_cmplt_epu64_mask(self.position, self.end)
    }

    /// Decodes the `k`th plane from the first on.
    #[inline]
    #[target_feature(
        enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
    )]
    fn step<S: Shape>(&mut self, k: u32, bmi: Bmi2, planes: &mut [Planes; LANES]) {
        let all = _mm512_set1_epi64(-1);
        let active = self.active(k);
        let (position, end, significant) = (self.position, self.end, self.significant);
        let start = _mm512_mask_add_epi64(position, active, position, significant);
        let size = _mm512_set1_epi64(S::SIZE as i64);
        let open = _mm512_mask_cmplt_epu64_mask(active, significant, size);
        let open = _mm512_mask_cmplt_epu64_mask(open, start, end);
        let left = _mm512_maskz_sub_epi64(open, end, start);
        let mut here = self.code.window(position);
        let window = if S::SIZE == 64 {
            self.code.window(start)
        } else {
            _mm512_srlv_epi64(here, significant)
        };
        if S::SIZE == 64 {
            let shown = _mm512_set1_epi64(SHOWN);
            if _mm512_mask_cmpgt_epu64_mask(active, significant, shown) != 0 {
                let middle = _mm512_add_epi64(position, _mm512_set1_epi64(32));
                let upper = _mm512_slli_epi64::<32>(self.code.window(middle));
                here = _mm512_mask_mov_epi32(here, 0xaaaa, upper);
            }
        }
        let beyond = _mm512_sllv_epi64(all, _mm512_sub_epi64(end, position));
        let unknown = _mm512_sllv_epi64(all, significant);
        let known = _mm512_maskz_ternarylogic_epi64::<A_NOT_B_NOT_C>(active, here, beyond, unknown);
        let place = Place {
            open,
            window,
            start,
            left,
            significant,
        };
        let tails = tails::decode::<S>(place);
        let known = _mm512_or_si512(known, tails.implied);
        let rows = Rows::new(tails.code, tails.coefficients, significant, known);
        for (lane, planes) in planes.iter_mut().enumerate() {
            let plane = self.first[lane] as usize + k as usize;
            put::<S>(planes, plane, rows.plane(lane, bmi));
        }
        self.position = tails.next;
        self.significant = tails.significant;
        if S::SIZE == 64 && tails.partial != 0 {
            self.resume::<S>(k, (tails.partial, tails.in_zeros), bmi, planes);
        }
    }

    /// Decodes the rest of tails of which only a part was shown.
    #[inline(never)]
    #[target_feature(
        enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
    )]
    fn resume<S: Shape>(
        &mut self,
        k: u32,
        (mut partial, mut in_zeros): (__mmask8, __mmask8),
        bmi: Bmi2,
        planes: &mut [Planes; LANES],
    ) {
        let one = _mm512_set1_epi64(1);
        while partial != 0 {
            let window = self.code.window(self.position);
            // In the middle of a run of zeros, as if the 1 that began it came again.
            let again = _mm512_mask_add_epi64(window, in_zeros, window, window);
            let start = _mm512_mask_sub_epi64(self.position, in_zeros, self.position, one);
            let place = Place {
                open: partial,
                window: _mm512_mask_or_epi64(again, in_zeros, again, one),
                start,
                left: _mm512_maskz_sub_epi64(partial, self.end, start),
                significant: self.significant,
            };
            let before = self.significant;
            let tails = tails::decode::<S>(place);
            let rows = Rows::new(tails.code, tails.coefficients, before, tails.implied);
            for (lane, planes) in planes.iter_mut().enumerate() {
                let plane = self.first[lane] as usize + k as usize;
                planes[plane % 64] |= rows.plane(lane, bmi);
            }
            self.position = tails.next;
            self.significant = tails.significant;
            (partial, in_zeros) = (tails.partial, tails.in_zeros);
        }
    }
}

/// Decodes the bit planes of one or two groups of blocks. Returns the number of planes after which all are zero.
#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
pub fn decode<T: Value, S: Shape, const R: usize>(
    groups: &mut [Group<R>],
    bmi: Bmi2,
    planes: &mut [Planes; BATCH],
) -> u32 {
    let used = T::Int::BITS as usize * S::SIZE / 64;
    for planes in &mut *planes {
        planes[..used].fill(0);
    }
    let (halves, _) = planes.as_chunks_mut::<LANES>();
    let mut k = 0;
    while k < T::Int::BITS && groups.iter().any(|group| group.active(k) != 0) {
        for (group, planes) in groups.iter_mut().zip(&mut *halves) {
            group.step::<S>(k, bmi, planes);
        }
        k += 1;
    }
    let first = groups
        .iter()
        .flat_map(|group| group.first)
        .max()
        .unwrap_or(0);
    (first as u32 + k).min(T::Int::BITS)
}

/// Sets plane `k`.
#[inline(always)]
fn put<S: Shape>(planes: &mut Planes, k: usize, bits: u64) {
    if S::SIZE == 64 {
        planes[k % 64] = bits;
    } else {
        halves(planes)[k % 256] = bits as u16;
    }
}

/// The planes of a 2-D block, one by one.
#[inline(always)]
fn halves(planes: &mut Planes) -> &mut [u16; 256] {
    let planes: *mut Planes = planes;
    // SAFETY: the same memory; words are little-endian, and any two of their bytes are a plane.
    unsafe { &mut *planes.cast() }
}

/// What makes up the planes of eight blocks, lane by lane.
#[repr(align(64))]
struct Rows {
    code: [u64; LANES],
    coefficients: [u64; LANES],
    significant: [u64; LANES],
    known: [u64; LANES],
}

impl Rows {
    #[inline]
    #[target_feature(
        enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
    )]
    fn new(code: __m512i, coefficients: __m512i, significant: __m512i, known: __m512i) -> Rows {
        let rows = Rows {
            code: lanes(code),
            coefficients: lanes(coefficients),
            significant: lanes(significant),
            known: lanes(known),
        };
        // By way of memory: taking lanes out of registers one by one takes longer.
        std::hint::black_box(&rows);
        rows
    }

    #[inline(always)]
    fn plane(&self, lane: usize, bmi: Bmi2) -> u64 {
        let bits = bmi.extract(self.code[lane], self.coefficients[lane]);
        self.known[lane] | bits << (self.significant[lane] % 64)
    }
}

#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
fn lanes(v: __m512i) -> [u64; LANES] {
    let mut lanes = [0; LANES];
    // SAFETY: 64 writable bytes.
    unsafe { _mm512_storeu_si512(lanes.as_mut_ptr().cast(), v) }
    lanes
}

#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
fn vector(lanes: &[u64; LANES]) -> __m512i {
    // SAFETY: 64 readable bytes.
    unsafe { _mm512_loadu_si512(lanes.as_ptr().cast()) }
}
