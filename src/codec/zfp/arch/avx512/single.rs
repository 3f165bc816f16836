//! `f32` blocks ↔ bit planes.
//!
//! Sixteen registers hold four 3-D blocks, four registers four 2-D blocks or sixteen 1-D blocks. Their
//! values start out row by row: register, 128-bit lane and element are (z y, block, x) in 3-D, which is
//! how four blocks in a row lie in memory, (block, y, x) in 2-D, (block, block, x) in 1-D. Transposing
//! elements or lanes with registers brings each axis in turn to where a lifting step is an operation on
//! whole registers. On the way back coefficients are joined in the order that takes the fewest transposes.

use super::join32::{join_cube, join_squares};
use super::later::Level;
use super::leads::FirstCoefficients;
use super::lifting::{lift32, transpose_elements, transpose_lanes, unlift32};
use super::registers;
use super::unlines::Lines;
use super::{Avx512, bytes, columns};
use crate::codec::zfp::arch::BATCH;
use crate::codec::zfp::blocks::{Source, Target};
use crate::codec::zfp::planes::Planes;
use crate::codec::zfp::shape::{Cube, Line, Shape, Square};
use crate::codec::zfp::transform::{Headers, LowestExponent};
use std::arch::x86_64::*;

type Registers = [__m512i; 4];

/// [`crate::codec::zfp::arch::Arch::forward`].
#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
pub fn forward<S: Shape>(
    level: Avx512,
    sources: &[Source<f32>; BATCH],
    lowest: LowestExponent,
    headers: &mut Headers,
    planes: &mut [Planes; BATCH],
) -> usize {
    let largest = match S::DIMS {
        1 => forward_lines(sources, planes),
        2 => forward_squares(sources, planes),
        _ => return forward_cubes(level, sources, lowest, headers, planes),
    };
    set_headers::<S>(headers, largest, lowest)
}

/// [`forward`] of 3-D blocks.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,bmi1,bmi2,lzcnt,popcnt")]
pub fn forward_cubes<L: Level>(
    level: L,
    sources: &[Source<f32>; BATCH],
    lowest: LowestExponent,
    headers: &mut Headers,
    planes: &mut [Planes; BATCH],
) -> usize {
    let largest = columns::forward(level, sources, planes);
    set_headers::<Cube>(headers, largest, lowest)
}

#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
fn forward_squares(sources: &[Source<f32>; BATCH], planes: &mut [Planes; BATCH]) -> __m512i {
    let mut all = [0; BATCH];
    let sources = sources.as_chunks::<4>().0;
    let planes = planes.as_chunks_mut::<4>().0;
    for i in 0..BATCH / 4 {
        let (sources, planes) = (&sources[i], &mut planes[i]);
        let v = transpose_elements(load_four_squares(sources));
        // Element b of every lane: block b.
        let largest = largest_magnitude(v);
        let largest = _mm512_max_epi32(largest, _mm512_shuffle_i32x4::<0x4e>(largest, largest));
        let largest = _mm512_max_epi32(largest, _mm512_shuffle_i32x4::<0xb1>(largest, largest));
        let exponent = scale_exponents(largest);
        let four: &mut [i32; 4] = &mut all.as_chunks_mut().0[i];
        // SAFETY: 16 writable bytes.
        unsafe { _mm_storeu_si128(four.as_mut_ptr().cast(), _mm512_castsi512_si128(largest)) };
        let v = lift32(four!(|i| quantize(v[i], exponent)));
        let v = lift32(transpose_lanes(v));
        bytes::split_squares32(four!(|i| bytes::to_negabinary32(v[i])), planes);
    }
    load(&all)
}

/// A block in each register, y in lanes.
#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
fn load_four_squares(sources: &[Source<f32>; 4]) -> Registers {
    if Source::are_in_a_row(sources) {
        // SAFETY: as asked.
        return transpose_lanes(four!(|y| load_long(unsafe {
            sources[0].long_row::<Square, 16>(y, 0)
        })));
    }
    four!(|block| load_rows(four!(|y| sources[block].row::<Square>(y, 0))))
}

/// The block that lane `lane` of register `register` starts out with. After the byte stage, its first
/// eight blocks and its last are together, in order.
const fn line(register: usize, lane: usize) -> usize {
    register / 2 * 8 + 2 * lane + register % 2
}

#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
fn forward_lines(sources: &[Source<f32>; BATCH], planes: &mut [Planes; BATCH]) -> __m512i {
    let v = four!(|r| load_rows(four!(|l| sources[line(r, l)].row::<Line>(0, 0))));
    let v = transpose_elements(v);
    let largest = largest_magnitude(v);
    let exponent = scale_exponents(largest);
    let v = lift32(four!(|i| quantize(v[i], exponent)));
    bytes::split_lines32(four!(|i| bytes::to_negabinary32(v[i])), planes);
    // Element 4 l + r is of block `line(r, l)`.
    let order = _mm512_setr_epi32(0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15);
    _mm512_permutexvar_epi32(order, largest)
}

/// The exponent of the factor from values to integers is this less the biased exponent.
pub const SCALE: f32 = 157.0;

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,bmi1,bmi2,lzcnt,popcnt")]
fn set_headers<S: Shape>(headers: &mut Headers, largest: __m512i, lowest: LowestExponent) -> usize {
    let infinity = _mm512_set1_epi32(f32::INFINITY.to_bits() as i32);
    let finite = _mm512_cmplt_epi32_mask(largest, infinity);
    let some = _mm512_test_epi32_mask(largest, largest);
    let one = _mm512_set1_epi32(1);
    let biased = _mm512_srli_epi32::<23>(largest);
    let biased = _mm512_add_epi32(biased, one);
    let above = _mm512_set1_epi32(lowest.planes_above::<f32, S>());
    let planes = _mm512_min_epi32(_mm512_add_epi32(biased, above), _mm512_set1_epi32(32));
    let coded = finite & some & _mm512_cmpgt_epi32_mask(planes, _mm512_setzero_si512());
    let bits = _mm512_maskz_or_epi32(coded, _mm512_slli_epi32::<1>(biased), one);
    let planes = _mm512_maskz_mov_epi32(coded, planes);
    // SAFETY: each is 64 writable bytes.
    unsafe {
        _mm512_storeu_si512(headers.bits.as_mut_ptr().cast(), bits);
        _mm512_storeu_si512(headers.planes.as_mut_ptr().cast(), planes);
    }
    finite.count_zeros() as usize
}

#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
fn load(elements: &[i32; 16]) -> __m512i {
    // SAFETY: 64 readable bytes.
    unsafe { _mm512_loadu_si512(elements.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,bmi1,bmi2,lzcnt,popcnt")]
pub fn load_long(row: &[f32; 16]) -> __m512i {
    // SAFETY: 64 readable bytes.
    unsafe { _mm512_loadu_si512(row.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,bmi1,bmi2,lzcnt,popcnt")]
pub fn load_rows(rows: [&[f32; 4]; 4]) -> __m512i {
    // SAFETY: each row is 16 readable bytes.
    let lanes = four!(|i| unsafe { _mm_loadu_si128(rows[i].as_ptr().cast()) });
    registers::of_lanes(lanes)
}

/// Of the values in the same place of the four registers.
#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
pub fn largest_magnitude(v: Registers) -> __m512i {
    let magnitude = _mm512_set1_epi32(i32::MAX);
    largest_of(four!(|i| _mm512_and_si512(v[i], magnitude)))
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,bmi1,bmi2,lzcnt,popcnt")]
pub fn largest_of([a, b, c, d]: Registers) -> __m512i {
    _mm512_max_epi32(_mm512_max_epi32(a, b), _mm512_max_epi32(c, d))
}

/// Largest magnitudes → exponents of the factors from values to integers.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,bmi1,bmi2,lzcnt,popcnt")]
pub fn scale_exponents(largest: __m512i) -> __m512 {
    let biased = _mm512_cvtepi32_ps(_mm512_srli_epi32::<23>(largest));
    // ZFP's exponents are one above IEEE's.
    _mm512_sub_ps(_mm512_set1_ps(SCALE - 1.0), biased)
}

/// Bits of floats, times 2 to the power `exponent`, towards zero.
#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
fn quantize(v: __m512i, exponent: __m512) -> __m512i {
    _mm512_cvttps_epi32(_mm512_scalef_ps(_mm512_castsi512_ps(v), exponent))
}

/// [`crate::codec::zfp::arch::Arch::inverse`].
#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
pub fn inverse<S: Shape>(
    headers: &Headers,
    planes: &[Planes; BATCH],
    first: &FirstCoefficients,
    targets: &mut [Target<f32>; BATCH],
) {
    match S::DIMS {
        1 => inverse_lines(&Lines::of_planes(headers, planes), targets),
        2 => inverse_squares(headers, planes, first, targets),
        _ => inverse_cubes(headers, planes, targets),
    }
}

#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
fn inverse_cubes(headers: &Headers, planes: &[Planes; BATCH], targets: &mut [Target<f32>; BATCH]) {
    let factors = factors(headers);
    let most = headers.planes.as_chunks::<4>().0;
    let planes = planes.as_chunks::<4>().0;
    let targets = targets.as_chunks_mut::<4>().0;
    for (i, ((planes, targets), most)) in planes.iter().zip(targets).zip(most).enumerate() {
        let most = most.iter().fold(0, |most, &count| most.max(count));
        inverse_four_cubes(planes, most, lane_factors(factors, i), targets);
    }
}

/// Four 3-D blocks, of which only the first `count` planes are not zero.
#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
fn inverse_four_cubes(
    planes: &[Planes; 4],
    count: u32,
    factors: __m512i,
    targets: &mut [Target<f32>; 4],
) {
    let coded = _mm512_test_epi32_mask(factors, factors);
    let factors = _mm512_castsi512_ps(_mm512_and_si512(factors, _mm512_set1_epi32(i32::MAX)));
    // (block)(z), x in lanes, y in elements; then (block)(y), z in elements.
    let v = four!(|block| {
        let v = join_cube(&planes[block], count);
        let v = unlift32(four!(|z| bytes::from_negabinary32(v[z])));
        unlift32(transpose_elements(v))
    });
    let in_a_row = Target::are_in_a_row(targets);
    for y in 0..4 {
        // (x), blocks in lanes, z in elements; then (z), x in elements.
        let v = unlift32(transpose_lanes(four!(|block| v[block][y])));
        for (z, v) in transpose_elements(v).into_iter().enumerate() {
            let v = _mm512_maskz_mul_ps(coded, _mm512_cvtepi32_ps(v), factors);
            // SAFETY: these are rows of targets.
            unsafe {
                if in_a_row {
                    _mm512_storeu_ps(targets[0].long_row::<Cube>(y, z).as_mut_ptr(), v);
                } else {
                    store_rows(v, four!(|b| targets[b].row::<Cube>(y, z).as_mut_ptr()));
                }
            }
        }
    }
}

#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
fn inverse_squares(
    headers: &Headers,
    planes: &[Planes; BATCH],
    first: &FirstCoefficients,
    targets: &mut [Target<f32>; BATCH],
) {
    let factors = factors(headers);
    let most = headers.planes.as_chunks::<4>().0;
    let planes = planes.as_chunks::<4>().0;
    let targets = targets.as_chunks_mut::<4>().0;
    for (i, ((planes, targets), most)) in planes.iter().zip(targets).zip(most).enumerate() {
        let most = most.iter().fold(0, |most, &count| most.max(count));
        let first = first_of_four(first.upper, i);
        inverse_four_squares(planes, most, first, lane_factors(factors, i), targets);
    }
}

/// Four 2-D blocks, of which only the first `count` planes are not zero, but for the bits in `first`.
#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
fn inverse_four_squares(
    planes: &[Planes; 4],
    count: u32,
    first: __m512i,
    factors: __m512i,
    targets: &mut [Target<f32>; 4],
) {
    let coded = _mm512_test_epi32_mask(factors, factors);
    let factors = _mm512_castsi512_ps(_mm512_and_si512(factors, _mm512_set1_epi32(i32::MAX)));
    // (y), blocks in lanes, x in elements; then (x), y in elements, and back.
    let mut v = join_squares(planes, 0, count);
    v[0] = _mm512_or_si512(v[0], first);
    let v = unlift32(four!(|y| bytes::from_negabinary32(v[y])));
    let v = transpose_elements(unlift32(transpose_elements(v)));
    let in_a_row = Target::are_in_a_row(targets);
    for (y, v) in v.into_iter().enumerate() {
        let v = _mm512_maskz_mul_ps(coded, _mm512_cvtepi32_ps(v), factors);
        // SAFETY: these are rows of targets.
        unsafe {
            if in_a_row {
                _mm512_storeu_ps(targets[0].long_row::<Square>(y, 0).as_mut_ptr(), v);
            } else {
                store_rows(v, four!(|b| targets[b].row::<Square>(y, 0).as_mut_ptr()));
            }
        }
    }
}

#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
pub fn inverse_lines(lines: &Lines, targets: &mut [Target<f32>; BATCH]) {
    let v = lines.join32();
    let v = unlift32(four!(|x| bytes::from_negabinary32(v[x])));
    let factors = factors_of(lines.headers);
    let coded = _mm512_test_epi32_mask(factors, factors);
    let factors = _mm512_castsi512_ps(_mm512_and_si512(factors, _mm512_set1_epi32(i32::MAX)));
    let v = four!(|x| _mm512_maskz_mul_ps(coded, _mm512_cvtepi32_ps(v[x]), factors));
    // (x), blocks in lanes and elements; then blocks, x in elements.
    let v = transpose_elements(four!(|x| _mm512_castps_si512(v[x])));
    let targets = targets.as_chunks_mut::<4>().0;
    for (v, targets) in v.into_iter().zip(targets) {
        let v = _mm512_castsi512_ps(v);
        // SAFETY: these are rows of targets.
        unsafe {
            if Target::are_in_a_row(targets) {
                _mm512_storeu_ps(targets[0].long_row::<Line>(0, 0).as_mut_ptr(), v);
            } else {
                store_rows(v, four!(|b| targets[b].row::<Line>(0, 0).as_mut_ptr()));
            }
        }
    }
}

/// Bits of [`factor`] of each block, with the sign bit set; 0 for a block that is not coded.
#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
fn factors(headers: &Headers) -> __m512i {
    // SAFETY: 64 readable bytes.
    factors_of(unsafe { _mm512_loadu_si512(headers.bits.as_ptr().cast()) })
}

/// The same, of the bits of headers.
#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
fn factors_of(bits: __m512i) -> __m512i {
    let coded = _mm512_test_epi32_mask(bits, bits);
    let exponent = _mm512_cvtepi32_ps(_mm512_srli_epi32::<1>(bits));
    let exponent = _mm512_sub_ps(exponent, _mm512_set1_ps(SCALE));
    let factors = _mm512_castps_si512(_mm512_scalef_ps(_mm512_set1_ps(-1.0), exponent));
    _mm512_maskz_mov_epi32(coded, factors)
}

/// Of the `i`th four blocks the word of each, in the first element of a lane.
#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
pub fn first_of_four(words: __m512i, i: usize) -> __m512i {
    let lane = _mm512_setr_epi32(0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0);
    let block = _mm512_add_epi32(_mm512_set1_epi32(4 * i as i32), lane);
    _mm512_maskz_permutexvar_epi32(0x1111, block, words)
}

/// The factors of four blocks, the `i`th four, each in a lane.
#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
fn lane_factors(factors: __m512i, i: usize) -> __m512i {
    let first = _mm512_set1_epi32(4 * i as i32);
    let lane = _mm512_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3);
    _mm512_permutexvar_epi32(_mm512_add_epi32(first, lane), factors)
}

/// # Safety
/// At each pointer a row of four values must be writable.
#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
unsafe fn store_rows(v: __m512, [a, b, c, d]: [*mut f32; 4]) {
    // SAFETY: the caller's promise.
    unsafe {
        _mm_storeu_ps(a, _mm512_castps512_ps128(v));
        _mm_storeu_ps(b, _mm512_extractf32x4_ps::<1>(v));
        _mm_storeu_ps(c, _mm512_extractf32x4_ps::<2>(v));
        _mm_storeu_ps(d, _mm512_extractf32x4_ps::<3>(v));
    }
}
