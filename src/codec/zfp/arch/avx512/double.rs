//! `f64` blocks ↔ bit planes.
//!
//! Eight registers hold one 3-D block or four 2-D blocks, four registers eight 1-D blocks: two rows of
//! values each. [`rotate`] brings x to where a lifting step is an operation on whole registers, then y.
//! The bits of the indices are written (register)(element), as there: y1 is the upper bit of y.

use super::bytes;
use super::join32::join_squares;
use super::leads::FirstCoefficients;
use super::lifting::{lift64, rotate, rotate_back, unlift64, weave_lanes};
use super::single::first_of_four;
use super::unlines::{Lines, widen};
use crate::codec::zfp::arch::BATCH;
use crate::codec::zfp::blocks::{Source, Target};
use crate::codec::zfp::planes::Planes;
use crate::codec::zfp::shape::{Cube, Line, Shape, Square};
use crate::codec::zfp::transform::{Header, Headers, LowestExponent};
use crate::codec::zfp::value::Float;
use std::arch::x86_64::*;

/// [`crate::codec::zfp::arch::Arch::forward`].
#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
pub fn forward<S: Shape>(
    sources: &[Source<f64>; BATCH],
    lowest: LowestExponent,
    headers: &mut Headers,
    planes: &mut [Planes; BATCH],
) -> usize {
    let mut largest = [0; BATCH];
    match S::DIMS {
        1 => {
            let sources = sources.as_chunks::<8>().0;
            let largest = largest.as_chunks_mut::<8>().0;
            for i in 0..BATCH / 8 {
                forward_lines(&sources[i], &mut largest[i], &mut planes[i]);
            }
        }
        2 => {
            let sources = sources.as_chunks::<4>().0;
            let largest = largest.as_chunks_mut::<4>().0;
            let planes = planes.as_chunks_mut::<4>().0;
            for i in 0..BATCH / 4 {
                forward_squares(&sources[i], &mut largest[i], &mut planes[i]);
            }
        }
        _ => {
            for i in 0..BATCH {
                largest[i] = forward_cube(&sources[i], &mut planes[i]);
            }
        }
    }
    set_headers::<S>(headers, &largest, lowest)
}

#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
fn forward_cube(source: &Source<f64>, planes: &mut Planes) -> i64 {
    // Two halves of z: (z0 y1)(y0 x1 x0).
    let [low, high] = [load_half_cube(source, 0), load_half_cube(source, 2)];
    let largest = _mm512_max_epi64(largest_magnitude(low), largest_magnitude(high));
    let largest = _mm512_reduce_max_epi64(largest);
    let exponent = scale_exponents(_mm512_set1_epi64(largest));
    let low = lift_rows(rotate(four!(|i| quantize(low[i], exponent))));
    let high = lift_rows(rotate(four!(|i| quantize(high[i], exponent))));
    // For each y0, z in order: (z1 z0)(y1 x1 x0).
    let even = lift_half_slices([low[0], low[1], high[0], high[1]]);
    let odd = lift_half_slices([low[2], low[3], high[2], high[3]]);
    let v = both(even, odd);
    bytes::split_cube64(eight!(|i| bytes::to_negabinary64(v[i])), planes);
    largest
}

#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
fn load_half_cube(source: &Source<f64>, z: usize) -> [__m512i; 4] {
    four!(|i| {
        let (y, z) = (2 * (i % 2), z + i / 2);
        load_rows(source.row::<Cube>(y, z), source.row::<Cube>(y + 1, z))
    })
}

/// Lifts x, then y: from (x1 x0)(b y0 y1), b being z0 or a block's number, to (y0 y1)(x1 b x0).
#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
fn lift_rows(v: [__m512i; 4]) -> [__m512i; 4] {
    let [a, b, c, d] = rotate(lift64(v));
    let [a, c, b, d] = lift64([a, c, b, d]);
    [a, b, c, d]
}

/// The inverse of [`lift_rows`].
#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
fn unlift_rows([a, b, c, d]: [__m512i; 4]) -> [__m512i; 4] {
    let [a, c, b, d] = unlift64([a, c, b, d]);
    unlift64(rotate_back([a, b, c, d]))
}

/// Lifts z: from (z1 y1)(x1 z0 x0) to (z1 z0)(y1 x1 x0).
#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
fn lift_half_slices([a, b, c, d]: [__m512i; 4]) -> [__m512i; 4] {
    lift64([
        _mm512_shuffle_i64x2::<0x88>(a, b),
        _mm512_shuffle_i64x2::<0xdd>(a, b),
        _mm512_shuffle_i64x2::<0x88>(c, d),
        _mm512_shuffle_i64x2::<0xdd>(c, d),
    ])
}

#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
fn both([a, b, c, d]: [__m512i; 4], [e, f, g, h]: [__m512i; 4]) -> [__m512i; 8] {
    [a, b, c, d, e, f, g, h]
}

#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
fn forward_squares(sources: &[Source<f64>; 4], all: &mut [i64; 4], planes: &mut [Planes; 4]) {
    let mut halves = [[_mm512_setzero_si512(); 4]; 2];
    for (i, half) in halves.iter_mut().enumerate() {
        let sources = &sources[2 * i..][..2];
        // (b0 y1)(y0 x1 x0), then (x1 x0)(b0 y0 y1).
        let v = four!(|i| {
            let (source, y) = (&sources[i / 2], 2 * (i % 2));
            load_rows(source.row::<Square>(y, 0), source.row::<Square>(y + 1, 0))
        });
        let v = rotate(v);
        let largest = largest_magnitude(v);
        let largest = _mm512_max_epi64(largest, _mm512_shuffle_i64x2::<0xb1>(largest, largest));
        let largest = _mm512_max_epi64(largest, _mm512_permutex_epi64::<0xb1>(largest));
        let exponent = scale_exponents(largest);
        all[2 * i] = _mm_cvtsi128_si64(_mm512_castsi512_si128(largest));
        all[2 * i + 1] = _mm_cvtsi128_si64(_mm512_extracti64x2_epi64::<2>(largest));
        *half = lift_rows(four!(|i| quantize(v[i], exponent)));
    }
    let v = both(halves[0], halves[1]);
    bytes::split_squares64(eight!(|i| bytes::to_negabinary64(v[i])), planes);
}

#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
fn forward_lines(sources: &[Source<f64>; 8], all: &mut [i64; 8], planes: &mut Planes) {
    // (b2 b0)(b1 x1 x0), then (x1 x0)(b2 b1 b0).
    let v = four!(|i| {
        let b = i / 2 * 4 + i % 2;
        load_rows(
            sources[b].row::<Line>(0, 0),
            sources[b + 2].row::<Line>(0, 0),
        )
    });
    let v = rotate(v);
    let largest = largest_magnitude(v);
    let exponent = scale_exponents(largest);
    // SAFETY: 64 writable bytes.
    unsafe { _mm512_storeu_si512(all.as_mut_ptr().cast(), largest) };
    let v = lift64(four!(|i| quantize(v[i], exponent)));
    bytes::split_lines64(four!(|i| bytes::to_negabinary64(v[i])), planes);
}

/// The exponent of the factor from values to integers is this less the biased exponent.
const SCALE: f64 = 1085.0;

#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
fn set_headers<S: Shape>(
    headers: &mut Headers,
    largest: &[i64; BATCH],
    lowest: LowestExponent,
) -> usize {
    let mut nonfinite = 0;
    let eights = largest.as_chunks::<8>().0.iter();
    for (i, largest) in eights.enumerate() {
        // SAFETY: 64 readable bytes.
        let largest = unsafe { _mm512_loadu_si512(largest.as_ptr().cast()) };
        let infinity = _mm512_set1_epi64(f64::INFINITY.to_bits() as i64);
        let finite = _mm512_cmplt_epi64_mask(largest, infinity);
        let some = _mm512_test_epi64_mask(largest, largest);
        let one = _mm256_set1_epi32(1);
        let biased = _mm512_cvtepi64_epi32(_mm512_srli_epi64::<52>(largest));
        let biased = _mm256_add_epi32(biased, one);
        let above = _mm256_set1_epi32(lowest.planes_above::<f64, S>());
        let planes = _mm256_min_epi32(_mm256_add_epi32(biased, above), _mm256_set1_epi32(64));
        let coded = finite & some & _mm256_cmpgt_epi32_mask(planes, _mm256_setzero_si256());
        let bits = _mm256_maskz_or_epi32(coded, _mm256_slli_epi32::<1>(biased), one);
        let planes = _mm256_maskz_mov_epi32(coded, planes);
        // SAFETY: each is 32 writable bytes.
        unsafe {
            _mm256_storeu_si256(headers.bits.as_mut_ptr().add(8 * i).cast(), bits);
            _mm256_storeu_si256(headers.planes.as_mut_ptr().add(8 * i).cast(), planes);
        }
        nonfinite += finite.count_zeros() as usize;
    }
    nonfinite
}

#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
fn load_rows(a: &[f64; 4], b: &[f64; 4]) -> __m512i {
    // SAFETY: each row is 32 readable bytes.
    unsafe {
        let a = _mm256_loadu_si256(a.as_ptr().cast());
        let b = _mm256_loadu_si256(b.as_ptr().cast());
        _mm512_inserti64x4::<1>(_mm512_castsi256_si512(a), b)
    }
}

/// Of the values in the same place of the four registers.
#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
fn largest_magnitude(v: [__m512i; 4]) -> __m512i {
    let magnitude = _mm512_set1_epi64(i64::MAX);
    let [a, b, c, d] = four!(|i| _mm512_and_si512(v[i], magnitude));
    _mm512_max_epi64(_mm512_max_epi64(a, b), _mm512_max_epi64(c, d))
}

/// Largest magnitudes → exponents of the factors from values to integers.
#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
fn scale_exponents(largest: __m512i) -> __m512d {
    let biased = _mm512_cvtepi64_pd(_mm512_srli_epi64::<52>(largest));
    // ZFP's exponents are one above IEEE's.
    _mm512_sub_pd(_mm512_set1_pd(SCALE - 1.0), biased)
}

/// Bits of floats, times 2 to the power `exponent`, towards zero.
#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
fn quantize(v: __m512i, exponent: __m512d) -> __m512i {
    _mm512_cvttpd_epi64(_mm512_scalef_pd(_mm512_castsi512_pd(v), exponent))
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
    targets: &mut [Target<f64>; BATCH],
) {
    match S::DIMS {
        1 => inverse_lines(&Lines::of_planes(headers, planes), targets),
        2 => inverse_squares(headers, planes, first, targets),
        _ => {
            for i in 0..BATCH {
                inverse_cube(headers.get(i), &planes[i], &mut targets[i]);
            }
        }
    }
}

#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
fn inverse_cube(header: Header, planes: &Planes, target: &mut Target<f64>) {
    if !header.is_coded() {
        for row in 0..16 {
            *target.row::<Cube>(row % 4, row / 4) = [0.0; 4];
        }
        return;
    }
    let v = bytes::join_cube64(planes, header.planes);
    let v = eight!(|i| bytes::from_negabinary64(v[i]));
    let even = unlift64([v[0], v[1], v[2], v[3]]);
    let odd = unlift64([v[4], v[5], v[6], v[7]]);
    let factor = _mm512_set1_pd(factor(header));
    for half in 0..2 {
        let z = 2 * half;
        let [a, b] = weave_lanes(even[z], even[z + 1]);
        let [c, d] = weave_lanes(odd[z], odd[z + 1]);
        let v = rotate_back(unlift_rows([a, b, c, d]));
        for (i, v) in v.into_iter().enumerate() {
            let v = _mm512_mul_pd(_mm512_cvtepi64_pd(v), factor);
            let (y, z) = (i % 2 * 2, z + i / 2);
            *target.row::<Cube>(y, z) = low_row(v);
            *target.row::<Cube>(y + 1, z) = high_row(v);
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
    targets: &mut [Target<f64>; BATCH],
) {
    let planes = planes.as_chunks::<4>().0;
    let targets = targets.as_chunks_mut::<4>().0;
    for (i, (planes, targets)) in planes.iter().zip(targets).enumerate() {
        let bits = &headers.bits.as_chunks::<4>().0[i];
        let most = headers.planes.as_chunks::<4>().0[i].into_iter().max();
        let first = [first.upper, first.lower].map(|words| first_of_four(words, i));
        inverse_four_squares(planes, most.unwrap_or(0), first, bits, targets);
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
    first: [__m512i; 2],
    headers: &[u32; 4],
    targets: &mut [Target<f64>; 4],
) {
    // (y), blocks in lanes, x0 in elements, for both x1.
    let [low, high] = join_squares64(planes, count, first);
    let low = unlift64(four!(|y| bytes::from_negabinary64(low[y])));
    let high = unlift64(four!(|y| bytes::from_negabinary64(high[y])));
    // (x), blocks in lanes, y0 in elements, and back.
    let rows =
        two!(|i| unlift_two_rows([low[2 * i], low[2 * i + 1]], [high[2 * i], high[2 * i + 1]]));
    let (coded, factors) = lane_factors(headers);
    let in_a_row = Target::are_in_a_row(targets);
    for y in 0..4 {
        let [low, high] = rows[y / 2][y % 2].map(|v| {
            let v = _mm512_maskz_mul_pd(coded, _mm512_cvtepi64_pd(v), factors);
            _mm512_castpd_si512(v)
        });
        let v = weave_lanes(low, high).map(|v| _mm512_castsi512_pd(v));
        if in_a_row {
            // SAFETY: this is a row of targets, of twice eight values.
            unsafe {
                let row = targets[0].long_row::<Square>(y, 0).as_mut_ptr();
                _mm512_storeu_pd(row, v[0]);
                _mm512_storeu_pd(row.add(8), v[1]);
            }
            continue;
        }
        for (v, targets) in v.into_iter().zip(targets.as_chunks_mut::<2>().0) {
            *targets[0].row::<Square>(y, 0) = low_row(v);
            *targets[1].row::<Square>(y, 0) = high_row(v);
        }
    }
}

/// Coefficients of four 2-D blocks: (y), blocks in lanes, x0 in elements; where x1 is 0, and where it is 1.
#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
fn join_squares64(planes: &[Planes; 4], count: u32, first: [__m512i; 2]) -> [[__m512i; 4]; 2] {
    let mut upper = join_squares(planes, 0, count);
    let mut lower = [_mm512_setzero_si512(); 4];
    if count > 32 {
        lower = join_squares(planes, 32, count - 32);
    }
    upper[0] = _mm512_or_si512(upper[0], first[0]);
    lower[0] = _mm512_or_si512(lower[0], first[1]);
    [
        four!(|y| _mm512_unpacklo_epi32(lower[y], upper[y])),
        four!(|y| _mm512_unpackhi_epi32(lower[y], upper[y])),
    ]
}

/// The inverse of lifting x in two rows of four 2-D blocks, both of what [`join_squares64`] gives. Each row's parts are
/// together after it.
#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
fn unlift_two_rows(low: [__m512i; 2], high: [__m512i; 2]) -> [[__m512i; 2]; 2] {
    let [a, b, c, d] = unlift64([
        _mm512_unpacklo_epi64(low[0], low[1]),
        _mm512_unpackhi_epi64(low[0], low[1]),
        _mm512_unpacklo_epi64(high[0], high[1]),
        _mm512_unpackhi_epi64(high[0], high[1]),
    ]);
    [
        [_mm512_unpacklo_epi64(a, b), _mm512_unpacklo_epi64(c, d)],
        [_mm512_unpackhi_epi64(a, b), _mm512_unpackhi_epi64(c, d)],
    ]
}

/// From integers to values, for the blocks with these bits of headers, each in a lane; and the lanes of those that are
/// coded.
#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
fn lane_factors(headers: &[u32; 4]) -> (__mmask8, __m512d) {
    // SAFETY: 16 readable bytes.
    let bits = unsafe { _mm_loadu_si128(headers.as_ptr().cast()) };
    let lane = _mm512_setr_epi64(0, 0, 1, 1, 2, 2, 3, 3);
    let bits = _mm512_maskz_permutexvar_epi32(0x5555, lane, _mm512_castsi128_si512(bits));
    (_mm512_test_epi64_mask(bits, bits), factors(bits))
}

#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
pub fn inverse_lines(lines: &Lines, targets: &mut [Target<f64>; BATCH]) {
    let headers = widen(lines.headers);
    let targets = targets.as_chunks_mut::<8>().0;
    for ((v, headers), targets) in lines.join64().into_iter().zip(headers).zip(targets) {
        inverse_eight_lines(v, headers, targets);
    }
}

/// Coefficients of eight 1-D blocks, (x), and the bits of their headers: lanes of 128 bits are blocks, and elements
/// blocks four further on.
#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
fn inverse_eight_lines(v: [__m512i; 4], headers: __m512i, targets: &mut [Target<f64>; 8]) {
    let v = unlift64(four!(|x| bytes::from_negabinary64(v[x])));
    let coded = _mm512_test_epi64_mask(headers, headers);
    let factors = factors(headers);
    let v = four!(|x| _mm512_maskz_mul_pd(coded, _mm512_cvtepi64_pd(v[x]), factors));
    let [a, b, c, d] = four!(|x| _mm512_castpd_si512(v[x]));
    let low = weave_lanes(_mm512_unpacklo_epi64(a, b), _mm512_unpacklo_epi64(c, d));
    let high = weave_lanes(_mm512_unpackhi_epi64(a, b), _mm512_unpackhi_epi64(c, d));
    let v = [low[0], low[1], high[0], high[1]];
    for (v, targets) in v.into_iter().zip(targets.as_chunks_mut::<2>().0) {
        let v = _mm512_castsi512_pd(v);
        *targets[0].row::<Line>(0, 0) = low_row(v);
        *targets[1].row::<Line>(0, 0) = high_row(v);
    }
}

/// From integers to values, for blocks with these bits of headers.
#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
fn factors(bits: __m512i) -> __m512d {
    let exponent = _mm512_cvtepi64_pd(_mm512_srli_epi64::<1>(bits));
    let exponent = _mm512_sub_pd(exponent, _mm512_set1_pd(SCALE));
    _mm512_scalef_pd(_mm512_set1_pd(1.0), exponent)
}

/// The same for one block.
fn factor(header: Header) -> f64 {
    f64::power_of_two(header.biased_exponent() as i32 - SCALE as i32)
}

#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
fn low_row(v: __m512d) -> [f64; 4] {
    let mut row = [0.0; 4];
    // SAFETY: 32 writable bytes.
    unsafe { _mm256_storeu_pd(row.as_mut_ptr(), _mm512_castpd512_pd256(v)) };
    row
}

#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
fn high_row(v: __m512d) -> [f64; 4] {
    let mut row = [0.0; 4];
    // SAFETY: 32 writable bytes.
    unsafe { _mm256_storeu_pd(row.as_mut_ptr(), _mm512_extractf64x4_pd::<1>(v)) };
    row
}
