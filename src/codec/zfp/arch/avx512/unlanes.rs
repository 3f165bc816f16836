//! The embedded decoder for 2-D and 3-D blocks, eight blocks in lockstep, one in each 64-bit lane.
//!
//! Two groups of eight go together, so that the machine has something to do while one waits for the place where
//! its next planes start. As long as every block's plane is short and whole, a step is a simple one. Then a lane
//! stops where its block ends, or where all of its coefficients have become significant: from there on planes are
//! their own code, and are copied when all lanes have stopped.

use super::alone;
use super::registers::{load, store};
use super::shifts::trailing_zeros;
use super::tails::{self, A_NOT_B_NOT_C, A_OR_NOT_B, DECODED};
use super::verbatim;
use super::window::{self, Code, LANES, SHOWN};
use super::words::in_memory;
use crate::codec::zfp::Value;
use crate::codec::zfp::arch::bmi2::Bmi2;
use crate::codec::zfp::arch::{BATCH, Bmi};
use crate::codec::zfp::decoder::{decode_any_tail, decode_plane_bitwise};
use crate::codec::zfp::planes::Planes;
use crate::codec::zfp::range::Aligned;
use crate::codec::zfp::shape::Shape;
use crate::codec::zfp::transform::LowestExponent;
use crate::codec::zfp::value::Int;
use std::arch::x86_64::*;

/// Eight blocks on their way.
pub struct Group<'a, const R: usize> {
    bytes: &'a [u8],
    code: Code<R>,
    /// The bit of `bytes` that the code of each block is loaded from,
    origin: __m512i,
    at: Progress,
    ends: [usize; LANES],
    /// Bit planes of each.
    count: __m512i,
    /// Those that stopped before the plane that makes all of their coefficients significant, that plane, and the
    /// bits of its tail that may be coefficients; none where it is longer than a window.
    whole: __mmask8,
    whole_at: __m512i,
    whole_tail: __m512i,
}

/// How far eight blocks are.
#[derive(Clone, Copy)]
struct Progress {
    /// From the group's origins on, the next bit of each block,
    position: __m512i,
    /// and the bit after its last one; 0 when it has stopped.
    end: __m512i,
    /// Coefficients that are significant so far.
    significant: __m512i,
    /// The blocks that have not stopped.
    active: __mmask8,
}

impl<'a, const R: usize> Group<'a, R> {
    /// Reads the headers of the blocks in these bits of `bytes`; none where both are the same.
    #[inline]
    #[target_feature(
        enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
    )]
    pub fn open<T: Value, S: Shape>(
        bytes: &'a [u8],
        starts: &[usize; LANES],
        ends: &[usize; LANES],
        lowest: LowestExponent,
        headers: &mut [u32; LANES],
    ) -> Self {
        let code = Code::load(bytes, &starts.map(|start| start / 8));
        let (start, end) = (vector(starts), vector(ends));
        let position = _mm512_and_si512(start, _mm512_set1_epi64(7));
        let origin = _mm512_sub_epi64(start, position);
        let end = _mm512_sub_epi64(end, origin);
        let mask = _mm512_set1_epi64((1 << T::HEADER_BITS) - 1);
        let bits = _mm512_and_si512(code.window(position), mask);
        let there = _mm512_cmplt_epi64_mask(position, end);
        let one = _mm512_set1_epi64(1);
        let coded = _mm512_mask_test_epi64_mask(there, bits, one);
        let length = _mm512_mask_mov_epi64(one, coded, _mm512_set1_epi64(T::HEADER_BITS.into()));
        let above = _mm512_set1_epi64(lowest.planes_above::<T, S>().into());
        let count = _mm512_add_epi64(_mm512_srli_epi64::<1>(bits), above);
        let count = _mm512_max_epi64(count, _mm512_setzero_si512());
        let count = _mm512_min_epi64(count, _mm512_set1_epi64(T::Int::BITS.into()));
        let coded_bits = _mm512_maskz_cvtepi64_epi32(coded, bits);
        // SAFETY: 32 writable bytes.
        unsafe { _mm256_storeu_si256(headers.as_mut_ptr().cast(), coded_bits) };
        let count = _mm512_maskz_mov_epi64(coded, count);
        let position = _mm512_mask_add_epi64(position, there, position, length);
        let some = _mm512_test_epi64_mask(count, count);
        let active = _mm512_mask_cmplt_epi64_mask(some, position, end);
        Group {
            bytes,
            code,
            origin,
            at: Progress {
                position,
                end: _mm512_maskz_mov_epi64(active, end),
                significant: _mm512_setzero_si512(),
                active,
            },
            ends: *ends,
            count,
            whole: 0,
            whole_at: _mm512_setzero_si512(),
            whole_tail: _mm512_setzero_si512(),
        }
    }

    /// Bit planes of the blocks that have not stopped, the fewest.
    #[inline]
    #[target_feature(
        enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
    )]
    fn fewest(&self) -> u64 {
        _mm512_mask_reduce_min_epu64(self.at.active, self.count)
    }

    /// Decodes blocks of one value, and stops them.
    #[inline]
    #[target_feature(
        enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
    )]
    fn take_alone(&mut self, bmi: Bmi2) -> Alone {
        let mut alone = Alone {
            lanes: 0,
            bits: [0; LANES],
        };
        let window = self.code.masked_window(self.at.active, self.at.position);
        let candidates = alone::candidates(window);
        if candidates == 0 {
            return alone;
        }
        let (origin, counts) = (lanes(self.origin), lanes(self.count));
        let mut positions = lanes(self.at.position);
        for lane in ones(candidates) {
            let start = (origin[lane] + positions[lane]) as usize;
            let (end, count) = (self.ends[lane], counts[lane] as usize);
            if let Some((bits, length)) = alone::decode(self.bytes, start, end, count, bmi) {
                alone.lanes |= 1 << lane;
                alone.bits[lane] = bits;
                positions[lane] += length as u64;
            }
        }
        self.at.position = load(&positions);
        self.at.active &= !alone.lanes;
        self.at.end = _mm512_maskz_mov_epi64(self.at.active, self.at.end);
        alone
    }

    /// Decodes plane `k` of the blocks of `mask`, whose tails are longer than a window.
    #[cold]
    #[inline(never)]
    #[target_feature(
        enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
    )]
    fn step_bitwise<S: Shape>(&mut self, k: usize, mask: __mmask8, planes: &mut [Planes; LANES]) {
        let (origin, counts) = (lanes(self.origin), lanes(self.count));
        let mut positions = lanes(self.at.position);
        let mut significant = lanes(self.at.significant);
        let mut ends = lanes(self.at.end);
        for lane in ones(mask) {
            let position = (origin[lane] + positions[lane]) as usize;
            let end = self.ends[lane];
            let before = significant[lane] as u32;
            let (plane, next, now) = decode_plane_bitwise::<S>(self.bytes, position, end, before);
            put::<S>(&mut planes[lane], k, plane);
            if now == S::SIZE as u32 {
                self.whole |= 1 << lane;
                let here = _mm512_set1_epi64(k as i64);
                self.whole_at = _mm512_mask_mov_epi64(self.whole_at, 1 << lane, here);
                continue;
            }
            significant[lane] = now.into();
            positions[lane] = next as u64 - origin[lane];
            if next < end && k as u64 + 1 < counts[lane] {
                ends[lane] = end as u64 - origin[lane];
                self.at.active |= 1 << lane;
            }
        }
        self.at.position = load(&positions);
        self.at.significant = load(&significant);
        self.at.end = load(&ends);
    }

    /// Sees to it that the next plane of every block is loaded, if as many bytes are.
    #[inline]
    #[target_feature(
        enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
    )]
    fn load_more(&mut self, at: &mut Progress) {
        // The last place at which two windows are.
        let last = _mm512_set1_epi64(8 * (8 * R as i64 - 16) + 7);
        if _mm512_mask_cmpgt_epi64_mask(at.active, at.position, last) != 0 {
            self.at = *at;
            self.reload();
            *at = self.at;
        }
    }

    #[inline(never)]
    #[target_feature(
        enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
    )]
    fn reload(&mut self) {
        let bit = _mm512_and_si512(self.at.position, _mm512_set1_epi64(7));
        let passed = _mm512_maskz_sub_epi64(self.at.active, self.at.position, bit);
        self.at.position = _mm512_sub_epi64(self.at.position, passed);
        self.at.end = _mm512_sub_epi64(self.at.end, passed);
        self.origin = _mm512_add_epi64(self.origin, passed);
        let starts = lanes(self.origin).map(|start| start as usize / 8);
        self.code = Code::load(self.bytes, &starts);
    }

    /// The bits of `bytes` after the blocks.
    #[inline]
    #[target_feature(
        enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
    )]
    pub fn next(&self) -> [usize; LANES] {
        lanes(_mm512_add_epi64(self.origin, self.at.position)).map(|next| next as usize)
    }

    /// Copies the planes of blocks all of whose coefficients are significant. Returns how many planes there are
    /// now at most.
    #[inline]
    #[target_feature(
        enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
    )]
    fn copy_rest<S: Shape>(&mut self, bmi: Bmi2, planes: &mut [Planes; LANES]) -> usize {
        let mut most = 0;
        if self.whole == 0 {
            return most;
        }
        let (origin, counts) = (lanes(self.origin), lanes(self.count));
        let (mut positions, significant) = (lanes(self.at.position), lanes(self.at.significant));
        let (whole_at, tails) = (lanes(self.whole_at), lanes(self.whole_tail));
        for lane in ones(self.whole) {
            let before = significant[lane] as u32;
            let start = (origin[lane] + positions[lane]) as usize + before as usize;
            let end = self.ends[lane];
            // The code ends where the last coefficient would be, which is not said.
            let length = match bmi.select(tails[lane], S::SIZE as u32 - 1 - before) {
                64 => decode_any_tail::<S>(self.bytes, start, end, before, bmi).length,
                length => length,
            };
            let position = start + length as usize;
            let k = whole_at[lane] as usize + 1;
            let left = (counts[lane] as usize).saturating_sub(k) * S::SIZE;
            let bits = left.min(end.saturating_sub(position));
            verbatim::copy(
                self.bytes,
                position,
                bits,
                &mut planes[lane],
                k * S::SIZE / 8,
            );
            most = most.max(k + bits.div_ceil(S::SIZE));
            positions[lane] = (position + bits) as u64 - origin[lane];
        }
        self.at.position = load(&positions);
        most
    }
}

fn ones(mask: __mmask8) -> impl Iterator<Item = usize> {
    let mut left = mask;
    std::iter::from_fn(move || {
        let lane = left.trailing_zeros();
        left &= left.wrapping_sub(1);
        (lane < 8).then_some(lane as usize)
    })
}

/// Blocks of one value of a group.
struct Alone {
    lanes: __mmask8,
    /// The bits of the first coefficient of each.
    bits: [u64; LANES],
}

impl Alone {
    /// Writes their planes, and how many are not zero.
    fn write<S: Shape>(&self, planes: &mut [Planes; LANES], reached: &mut [u32; LANES]) {
        for lane in ones(self.lanes) {
            let bits = self.bits[lane];
            reached[lane] = u64::BITS - bits.leading_zeros();
            // (As many as may be joined at a time.)
            for k in 0..reached[lane].next_multiple_of(16) as usize {
                put::<S>(&mut planes[lane], k, bits >> k & 1);
            }
        }
    }
}

/// Decodes the bit planes of two groups of blocks, which are `LONG` if more than what is loaded of them at once.
/// Returns for each the number of planes after which all are zero.
#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
pub fn decode<T: Value, S: Shape, const R: usize, const LONG: bool>(
    groups: &mut [&mut Group<R>; 2],
    bmi: Bmi2,
    planes: &mut [Planes; BATCH],
) -> [u32; BATCH] {
    let planes: *mut [Planes; BATCH] = planes;
    // SAFETY: the same memory.
    let planes: &mut [[Planes; LANES]; 2] = unsafe { &mut *planes.cast() };
    let alone = two!(|g| groups[g].take_alone(bmi));
    let mut k = short_steps::<S, R>(groups, bmi, planes);
    // (Apart from the groups, so that it may be in registers.)
    let mut at = two!(|g| groups[g].at);
    while at[0].active | at[1].active != 0 {
        step::<T, S, R, LONG>(groups, &mut at, k, bmi, planes);
        k += 1;
    }
    for (group, at) in groups.iter_mut().zip(at) {
        group.at = at;
    }
    let mut most = k;
    let end = match groups[0].whole | groups[1].whole | alone[0].lanes | alone[1].lanes {
        // Eight planes are joined at a time, and in 2-D at first twice eight of each 32.
        0 if S::SIZE < 64 => k.next_multiple_of(16).max(16),
        0 => k.next_multiple_of(8).max(16),
        _ => T::Int::BITS as usize,
    };
    clear::<S>(planes, k, end);
    for (group, planes) in groups.iter_mut().zip(&mut *planes) {
        most = most.max(group.copy_rest::<S>(bmi, planes));
    }
    let mut reached = [(most as u32).min(T::Int::BITS); BATCH];
    let halves = reached.as_chunks_mut().0;
    for ((alone, planes), reached) in alone.iter().zip(planes).zip(halves) {
        alone.write::<S>(planes, reached);
    }
    reached
}

/// Makes zeros of planes from plane `k` on and before `end`, a multiple of eight.
#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
fn clear<S: Shape>(planes: &mut [[Planes; LANES]; 2], k: usize, end: usize) {
    if S::SIZE < 64 {
        for planes in planes.iter_mut().flatten() {
            halves(planes)[k.min(end)..end].fill(0);
        }
        return;
    }
    let zero = _mm512_setzero_si512();
    let mut mask = 0xff << (k % 8);
    for i in k / 8..end / 8 {
        for planes in planes.iter_mut().flatten() {
            let eight = &mut planes.as_chunks_mut::<8>().0[i % 8];
            // SAFETY: 64 writable bytes.
            unsafe { _mm512_mask_storeu_epi64(eight.as_mut_ptr().cast(), mask, zero) };
        }
        mask = 0xff;
    }
}

/// The first planes of 3-D blocks, as long as no coefficient but the first is in any, up to eight. In the code of a
/// block, zeros are planes of nothing; then comes 1, 1 and 0, the plane in which the first coefficient becomes
/// significant; then for each plane its bit and a 0.
struct Lead {
    count: usize,
    /// The zeros of each,
    zeros: [__m512i; 2],
    /// whether its first coefficient is significant after these planes,
    some: [__mmask8; 2],
    /// and the bits they take.
    length: [__m512i; 2],
}

/// More than the bits of the longest lead.
const LEAD_BITS: i64 = 24;

impl Lead {
    /// That of the blocks of `active`, of at most `most` planes, from the first bits of their code.
    #[inline]
    #[target_feature(
        enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
    )]
    fn of(code: [__m512i; 2], active: [__mmask8; 2], most: usize) -> Lead {
        let one = _mm512_set1_epi64(1);
        let eight = _mm512_set1_epi64(8);
        let zeros = two!(|g| trailing_zeros(code[g]));
        let counts = two!(|g| {
            let rest = _mm512_srlv_epi64(code[g], zeros[g]);
            let begins = _mm512_and_si512(rest, _mm512_set1_epi64(0b111));
            let begins = _mm512_cmpeq_epi64_mask(begins, _mm512_set1_epi64(0b011));
            // A 1 after a plane's bit says that there is more in it.
            let odd = _mm512_set1_epi64(0xaaaa_aaaa_aaaa_aaaau64 as i64);
            let more = _mm512_and_si512(_mm512_srli_epi64::<3>(rest), odd);
            let pairs = _mm512_srli_epi64::<1>(trailing_zeros(more));
            _mm512_mask_add_epi64(zeros[g], begins, _mm512_add_epi64(zeros[g], one), pairs)
        });
        let fewest = two!(|g| _mm512_mask_mov_epi64(eight, active[g], counts[g]));
        let fewest = _mm512_min_epu64(_mm512_min_epu64(fewest[0], fewest[1]), eight);
        let count = most.min(_mm512_reduce_min_epu64(fewest) as usize);
        let all = _mm512_set1_epi64(count as i64);
        let some = two!(|g| _mm512_mask_cmplt_epi64_mask(active[g], zeros[g], all));
        let length = two!(|g| {
            let most = _mm512_set1_epi64(2 * count as i64 + 1);
            let length = _mm512_mask_sub_epi64(all, some[g], most, zeros[g]);
            _mm512_maskz_mov_epi64(active[g], length)
        });
        Lead {
            count,
            zeros,
            some,
            length,
        }
    }

    /// Writes eight planes of each block, of which so many as there are will do.
    #[inline]
    #[target_feature(
        enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
    )]
    fn write(&self, code: [__m512i; 2], planes: &mut [[Planes; LANES]; 2]) {
        if self.count == 0 {
            return;
        }
        let one = _mm512_set1_epi64(1);
        // With zeros before it the bit of plane `k` is bit `2 k + 1 - zeros`; and so is a zero before those.
        let places = _mm512_setr_epi64(1, 3, 5, 7, 9, 11, 13, 15);
        for (g, planes) in planes.iter_mut().enumerate() {
            let (code, zeros) = (lanes(code[g]), lanes(self.zeros[g]));
            for (planes, (code, zeros)) in planes.iter_mut().zip(code.into_iter().zip(zeros)) {
                let place = _mm512_sub_epi64(places, _mm512_set1_epi64(zeros as i64));
                let bits = _mm512_srlv_epi64(_mm512_set1_epi64(code as i64), place);
                let bits = _mm512_and_si512(bits, one);
                store(bits, &mut planes.as_chunks_mut().0[0]);
            }
        }
    }
}

/// Whether there are so many bits from `position` on before `limit`.
#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
fn all_have(bits: i64, position: [__m512i; 2], limit: [__m512i; 2]) -> bool {
    let after = two!(|g| _mm512_add_epi64(position[g], _mm512_set1_epi64(bits)));
    let [a, b] = two!(|g| _mm512_cmpgt_epi64_mask(after[g], limit[g]));
    a | b == 0
}

/// Decodes planes as long as each block's is whole and within one window of what is loaded, and leaves
/// coefficients that are not significant. Returns how many.
#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
fn short_steps<S: Shape, const R: usize>(
    groups: &mut [&mut Group<R>; 2],
    bmi: Bmi2,
    planes: &mut [[Planes; LANES]; 2],
) -> usize {
    let all = _mm512_set1_epi64(-1);
    let one = _mm512_set1_epi64(1);
    let size = _mm512_set1_epi64(S::SIZE as i64);
    let shown = _mm512_set1_epi64(SHOWN);
    // Code up to here is loaded.
    let loaded = _mm512_set1_epi64(8 * (8 * R as i64 - 8) + SHOWN);
    let active = two!(|g| groups[g].at.active);
    let limit = two!(|g| _mm512_min_epi64(groups[g].at.end, loaded));
    let limit = two!(|g| _mm512_mask_mov_epi64(_mm512_set1_epi64(i64::MAX), active[g], limit[g]));
    let most = groups[0].fewest().min(groups[1].fewest()).saturating_sub(1) as usize;
    let mut position = two!(|g| groups[g].at.position);
    let mut significant = two!(|g| groups[g].at.significant);
    if active[0] | active[1] == 0 {
        return 0;
    }
    let mut k = 0;
    if S::SIZE == 64 && all_have(LEAD_BITS, position, limit) {
        let code = two!(|g| groups[g].code.masked_window(active[g], position[g]));
        let lead = Lead::of(code, active, most);
        position = two!(|g| _mm512_add_epi64(position[g], lead.length[g]));
        significant = two!(|g| _mm512_maskz_mov_epi64(lead.some[g], one));
        lead.write(code, planes);
        k = lead.count;
    }
    while k < most {
        // (Nothing where there is no block.)
        let here = two!(|g| groups[g].code.masked_window(active[g], position[g]));
        let window = two!(|g| _mm512_srlv_epi64(here[g], significant[g]));
        let tails = tails::decode_whole(window);
        let now = two!(|g| _mm512_add_epi64(significant[g], tails.reach[g]));
        let next = two!(|g| _mm512_add_epi64(position[g], significant[g]));
        let next = two!(|g| _mm512_add_epi64(next[g], _mm512_add_epi64(tails.length[g], one)));
        let bound = two!(|g| _mm512_min_epi64(_mm512_add_epi64(position[g], shown), limit[g]));
        let mut other = two!(|g| _mm512_cmpgt_epi64_mask(next[g], bound[g]));
        if S::SIZE < 64 {
            other = two!(|g| other[g] | _mm512_cmpge_epi64_mask(now[g], size));
        }
        if other[0] | other[1] != 0 {
            break;
        }
        let new = two!(|g| _mm512_sllv_epi64(tails.coefficients[g], significant[g]));
        let unknown = two!(|g| _mm512_sllv_epi64(all, significant[g]));
        let mask =
            two!(|g| _mm512_ternarylogic_epi64::<A_OR_NOT_B>(new[g], unknown[g], unknown[g]));
        let mut rows = Aligned([two!(|g| lanes(here[g])), two!(|g| lanes(mask[g]))]);
        in_memory(&mut rows);
        let [code, masks] = &rows.0;
        for g in 0..2 {
            for lane in 0..LANES {
                put::<S>(
                    &mut planes[g][lane],
                    k,
                    bmi.extract(code[g][lane], masks[g][lane]),
                );
            }
        }
        (position, significant) = (next, now);
        k += 1;
    }
    for g in 0..2 {
        let before = groups[g].at.position;
        groups[g].at.position = _mm512_mask_mov_epi64(before, active[g], position[g]);
        groups[g].at.significant = significant[g];
    }
    k
}

/// Decodes plane `k` of every block. (Its code does not depend on `T`; but what is called from one place only is
/// put there by the compiler.)
#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
fn step<T: Value, S: Shape, const R: usize, const LONG: bool>(
    groups: &mut [&mut Group<R>; 2],
    at: &mut [Progress; 2],
    k: usize,
    bmi: Bmi2,
    planes: &mut [[Planes; LANES]; 2],
) {
    let all = _mm512_set1_epi64(-1);
    let zero = _mm512_setzero_si512();
    let one = _mm512_set1_epi64(1);
    if LONG {
        groups[0].load_more(&mut at[0]);
        groups[1].load_more(&mut at[1]);
    }
    // Of a lane that has stopped nothing is left, and so everything below comes to zero.
    let position = two!(|g| at[g].position);
    let significant = two!(|g| at[g].significant);
    let end = two!(|g| at[g].end);
    let start = two!(|g| _mm512_add_epi64(position[g], significant[g]));
    let left = two!(|g| _mm512_max_epi64(_mm512_sub_epi64(end[g], start[g]), zero));
    let [here, window] = if S::SIZE == 64 {
        let windows = window::windows(two!(|g| &groups[g].code), position);
        let tails = two!(|g| _mm512_shrdv_epi64(windows[0][g], windows[1][g], significant[g]));
        [windows[0], tails]
    } else {
        let here = two!(|g| groups[g].code.window(position[g]));
        [here, two!(|g| _mm512_srlv_epi64(here[g], significant[g]))]
    };
    let tails = tails::decode::<S>(window, left);
    let now = two!(|g| _mm512_add_epi64(significant[g], tails.reach[g]));
    let next = two!(|g| _mm512_add_epi64(start[g], _mm512_add_epi64(tails.length[g], one)));

    // A cut in the middle of a run of zeros makes a one-bit of the coefficient that it stopped at. The last
    // coefficient of a block is not said at all.
    let last = _mm512_set1_epi64(S::SIZE as i64 - 1);
    let whole = two!(|g| _mm512_cmpgt_epi64_mask(now[g], last));
    let endless = two!(|g| _mm512_cmpgt_epi64_mask(tails.length[g], _mm512_set1_epi64(63)));
    let unsaid = two!(|g| _mm512_min_epi64(now[g], last));
    let implied = two!(|g| _mm512_maskz_rolv_epi64(whole[g] | endless[g], one, unsaid[g]));
    let there = two!(|g| _mm512_max_epi64(_mm512_sub_epi64(end[g], position[g]), zero));
    let beyond = two!(|g| _mm512_sllv_epi64(all, there[g]));
    let unknown = two!(|g| _mm512_sllv_epi64(all, significant[g]));
    let known =
        two!(|g| _mm512_ternarylogic_epi64::<A_NOT_B_NOT_C>(here[g], beyond[g], unknown[g]));
    let known = two!(|g| _mm512_or_si512(known[g], implied[g]));
    let rows = two!(|g| Rows::new(
        tails.code[g],
        tails.coefficients[g],
        significant[g],
        known[g]
    ));
    for (rows, planes) in rows.iter().zip(&mut *planes) {
        for (lane, planes) in planes.iter_mut().enumerate() {
            put::<S>(planes, k, rows.plane(lane, bmi));
        }
    }

    let here = _mm512_set1_epi64(k as i64);
    for g in 0..2 {
        let (group, at) = (&mut *groups[g], &mut at[g]);
        let mut partial = 0;
        if S::SIZE == 64 {
            let decoded = _mm512_set1_epi64(DECODED);
            let long = _mm512_cmpge_epi64_mask(tails.length[g], decoded);
            partial = _mm512_mask_cmpgt_epi64_mask(long, left[g], decoded) & !whole[g];
        }
        let on = at.active & !whole[g] & !partial;
        at.position = _mm512_mask_mov_epi64(position[g], on, next[g]);
        at.significant = _mm512_mask_mov_epi64(significant[g], on, now[g]);
        if whole[g] != 0 {
            group.whole |= whole[g];
            group.whole_at = _mm512_mask_mov_epi64(group.whole_at, whole[g], here);
            let tail = tails.coefficients[g];
            group.whole_tail = _mm512_mask_mov_epi64(group.whole_tail, whole[g], tail);
        }
        let more = _mm512_mask_cmpgt_epi64_mask(on, group.count, _mm512_add_epi64(here, one));
        at.end = _mm512_maskz_mov_epi64(more, end[g]);
        at.active = _mm512_cmplt_epi64_mask(next[g], at.end);
        if partial != 0 {
            group.at = *at;
            group.step_bitwise::<S>(k, partial, &mut planes[g]);
            *at = group.at;
        }
    }
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
        let mut rows = Rows {
            code: lanes(code),
            coefficients: lanes(coefficients),
            significant: lanes(significant),
            known: lanes(known),
        };
        in_memory(&mut rows);
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
    store(v, &mut lanes);
    lanes
}

#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
fn vector(lanes: &[usize; LANES]) -> __m512i {
    // SAFETY: 64 readable bytes.
    unsafe { _mm512_loadu_si512(lanes.as_ptr().cast()) }
}
