//! `f64` blocks ↔ bit planes.
//!
//! A register holds a row of four values of a 3-D block, half a row of each of two 2-D blocks, a block a
//! 128-bit lane, or a whole 1-D block. The upper and lower halves of the coefficients then go apart, each
//! as if it were a block of 32 bits.

use super::bytes;
use super::lifting::{
    Four, exchange64, from_negabinary64, lift64, to_negabinary64, transpose64, unlift64,
};
use super::{join_cube, lines, load_lanes, store, store_lanes};
use crate::codec::zfp::arch::BATCH;
use crate::codec::zfp::blocks::Source;
use crate::codec::zfp::planes::Planes;
use crate::codec::zfp::shape::{Cube, Line, Shape, Square};
use crate::codec::zfp::transform::{self, Header, Headers, LowestExponent};
use crate::codec::zfp::value::Float;
use std::arch::x86_64::*;

/// [`crate::codec::zfp::arch::Arch::forward`]; but 3-D blocks become bytes of equal significance, and
/// 1-D blocks what [`lines`] codes.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
pub fn forward<S: Shape>(
    sources: &[Source<f64>; BATCH],
    lowest: LowestExponent,
    headers: &mut Headers,
    planes: &mut [Planes; BATCH],
) -> usize {
    let mut largest = [0; BATCH];
    match S::DIMS {
        1 => {
            let sources = sources.as_chunks::<4>().0;
            for (quarter, largest) in largest.as_chunks_mut::<4>().0.iter_mut().enumerate() {
                forward_lines(&sources[quarter], largest, quarter, &mut planes[0]);
            }
        }
        2 => {
            let sources = sources.as_chunks::<2>().0;
            let largest = largest.as_chunks_mut::<2>().0;
            let planes = planes.as_chunks_mut::<2>().0;
            for i in 0..Square::BATCH / 2 {
                forward_squares(&sources[i], &mut largest[i], &mut planes[i]);
            }
        }
        _ => {
            for i in 0..Cube::BATCH {
                largest[i] = forward_cube(&sources[i], &mut planes[i]);
            }
        }
    }
    let mut nonfinite = 0;
    for (i, &largest) in largest.iter().take(S::BATCH).enumerate() {
        let finite = transform::is_finite::<f64>(largest);
        nonfinite += usize::from(!finite);
        let header = lowest.header::<f64, S>(largest);
        headers.set(i, if finite { header } else { Header::ZEROS });
    }
    nonfinite
}

#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
fn forward_cube(source: &Source<f64>, planes: &mut Planes) -> i64 {
    let rows = four!(|z| four!(|y| load_row(source.row::<Cube>(y, z))));
    let [a, b, c, d] = four!(|z| largest_magnitude(rows[z]));
    let largest = _mm256_max_epu32(_mm256_max_epu32(a, b), _mm256_max_epu32(c, d));
    let largest = largest_of_lane(_mm256_max_epu32(
        largest,
        _mm256_permute2x128_si256::<0x01>(largest, largest),
    ));
    let factors = factors(largest);
    let slices = four!(|z| {
        let v = four!(|y| quantize(rows[z][y], factors));
        lift64(transpose64(lift64(transpose64(v))))
    });
    let columns = four!(|y| lift64(four!(|z| slices[z][y])));
    for half in 0..2 {
        // [z], lane x / 2, element (y % 2, x % 2).
        let (a, b) = (&columns[2 * half], &columns[2 * half + 1]);
        let v = four!(|z| halves(to_negabinary64(a[z]), to_negabinary64(b[z])));
        for (i, v) in [four!(|z| v[z][0]), four!(|z| v[z][1])]
            .into_iter()
            .enumerate()
        {
            for (group, v) in bytes::by_significance(v).into_iter().enumerate() {
                let words = planes.as_chunks_mut::<4>().0;
                store(v, &mut words[2 * (4 * i + group) + half]);
            }
        }
    }
    _mm256_extract_epi64::<0>(largest)
}

#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
fn forward_squares(sources: &[Source<f64>; 2], all: &mut [i64; 2], planes: &mut [Planes; 2]) {
    let [a, b] = sources;
    // [y], lane block, element x % 2; for each half of x.
    let low = four!(|y| load_half_rows(a.row::<Square>(y, 0), b.row::<Square>(y, 0), 0));
    let high = four!(|y| load_half_rows(a.row::<Square>(y, 0), b.row::<Square>(y, 0), 1));
    let largest = _mm256_max_epu32(largest_magnitude(low), largest_magnitude(high));
    let largest = largest_of_lane(largest);
    *all = [
        _mm256_extract_epi64::<0>(largest),
        _mm256_extract_epi64::<2>(largest),
    ];
    let factors = factors(largest);
    let low = four!(|y| quantize(low[y], factors));
    let high = four!(|y| quantize(high[y], factors));
    let [low, high] = exchange_axes([low, high]);
    let [low, high] = exchange_axes([lift64(low), lift64(high)]);
    let (low, high) = (lift64(low), lift64(high));
    let v = four!(|y| halves(to_negabinary64(low[y]), to_negabinary64(high[y])));
    for (i, v) in [four!(|y| v[y][0]), four!(|y| v[y][1])]
        .into_iter()
        .enumerate()
    {
        for (group, v) in bytes::by_significance(v).into_iter().enumerate() {
            store_lanes(bytes::split_squares(v), planes, 2 * (4 * i + group));
        }
    }
}

/// [y], element x % 2, for each half of x ↔ [x], element y % 2, for each half of y.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
fn exchange_axes([low, high]: [Four; 2]) -> [Four; 2] {
    let both = |half: usize| {
        let [a, b] = exchange64(low[2 * half], low[2 * half + 1]);
        let [c, d] = exchange64(high[2 * half], high[2 * half + 1]);
        [a, b, c, d]
    };
    [both(0), both(1)]
}

#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
fn forward_lines(
    sources: &[Source<f64>; 4],
    all: &mut [i64; 4],
    quarter: usize,
    words: &mut Planes,
) {
    let v = transpose64(four!(|b| load_row(sources[b].row::<Line>(0, 0))));
    let largest = largest_magnitude(v);
    // SAFETY: 32 writable bytes.
    unsafe { _mm256_storeu_si256(all.as_mut_ptr().cast(), largest) };
    let factors = factors(largest);
    let v = lift64(four!(|x| quantize(v[x], factors)));
    lines::split64(four!(|x| to_negabinary64(v[x])), quarter, words);
}

#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
fn load_row(row: &[f64; 4]) -> __m256i {
    // SAFETY: 32 readable bytes.
    unsafe { _mm256_loadu_si256(row.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
fn load_half_rows(low: &[f64; 4], high: &[f64; 4], half: usize) -> __m256i {
    let [low, high] = [low, high].map(|row| &row.as_chunks::<2>().0[half]);
    // SAFETY: each is 16 readable bytes.
    let [low, high] = unsafe {
        [
            _mm_loadu_si128(low.as_ptr().cast()),
            _mm_loadu_si128(high.as_ptr().cast()),
        ]
    };
    _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(low), high)
}

/// The upper 32 bits of the elements of two registers, and the lower ones.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
fn halves(a: __m256i, b: __m256i) -> [__m256i; 2] {
    let (a, b) = (_mm256_castsi256_ps(a), _mm256_castsi256_ps(b));
    [
        _mm256_castps_si256(_mm256_shuffle_ps::<0b11_01_11_01>(a, b)),
        _mm256_castps_si256(_mm256_shuffle_ps::<0b10_00_10_00>(a, b)),
    ]
}

/// The inverse of [`halves`].
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
fn whole([upper, lower]: [__m256i; 2]) -> [__m256i; 2] {
    [
        _mm256_unpacklo_epi32(lower, upper),
        _mm256_unpackhi_epi32(lower, upper),
    ]
}

/// Of the values in the same place of the four registers, something that has the exponent of the largest
/// magnitude and is zero only where they all are: the largest of each half of their bits.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
fn largest_magnitude(v: Four) -> __m256i {
    let [a, b, c, d] = four!(|i| _mm256_and_si256(v[i], _mm256_set1_epi64x(i64::MAX)));
    _mm256_max_epu32(_mm256_max_epu32(a, b), _mm256_max_epu32(c, d))
}

/// Of each lane, in both its elements; as [`largest_magnitude`].
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
fn largest_of_lane(v: __m256i) -> __m256i {
    _mm256_max_epu32(v, _mm256_shuffle_epi32::<0b01_00_11_10>(v))
}

/// The exponent of the factor from values to integers is this less the biased exponent.
const SCALE: i32 = 1085;

/// The factors from values to integers, given the largest magnitudes; see [`transform::factors`].
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
fn factors(largest: __m256i) -> [__m256d; 2] {
    let biased = _mm256_srli_epi64::<52>(largest);
    let exponent = _mm256_sub_epi64(_mm256_set1_epi64x((SCALE - 1).into()), biased);
    let bias = _mm256_set1_epi64x(1023);
    // Both halves of a negative one are the less.
    let first = _mm256_min_epi32(exponent, bias);
    let second = _mm256_sub_epi64(exponent, first);
    let power = |e| _mm256_castsi256_pd(_mm256_slli_epi64::<52>(_mm256_add_epi64(e, bias)));
    [power(first), power(second)]
}

#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
fn quantize(v: __m256i, [first, second]: [__m256d; 2]) -> __m256i {
    // Added to a smaller number, they leave it as an integer, of units of 1 and 2^32, in the low bits.
    const UNITS: f64 = 1.5 * (1u64 << 52) as f64;
    const UPPER: f64 = UNITS * (1u64 << 32) as f64;
    let scaled = _mm256_mul_pd(_mm256_castsi256_pd(v), first);
    let scaled = _mm256_round_pd::<{ _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC }>(_mm256_mul_pd(
        scaled, second,
    ));
    let upper = _mm256_add_pd(scaled, _mm256_set1_pd(UPPER));
    let rest = _mm256_sub_pd(scaled, _mm256_sub_pd(upper, _mm256_set1_pd(UPPER)));
    let rest = _mm256_castpd_si256(_mm256_add_pd(rest, _mm256_set1_pd(UNITS)));
    let rest = _mm256_sub_epi64(rest, _mm256_castpd_si256(_mm256_set1_pd(UNITS)));
    _mm256_add_epi64(_mm256_slli_epi64::<32>(_mm256_castpd_si256(upper)), rest)
}

/// Integers → the nearest values.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
fn to_values(v: __m256i) -> __m256d {
    const TWO_52: f64 = (1u64 << 52) as f64;
    const TWO_63: f64 = (1u64 << 63) as f64;
    const TWO_84: f64 = TWO_52 * (1u64 << 32) as f64;
    // 2^84 + 2^63 + the upper half, and 2^52 + the lower half, by their bits. Only the last sum rounds.
    let upper = _mm256_xor_si256(
        _mm256_srli_epi64::<32>(v),
        _mm256_castpd_si256(_mm256_set1_pd(TWO_84 + TWO_63)),
    );
    let lower = _mm256_blend_epi32::<0b1010_1010>(v, _mm256_castpd_si256(_mm256_set1_pd(TWO_52)));
    let upper = _mm256_sub_pd(
        _mm256_castsi256_pd(upper),
        _mm256_set1_pd(TWO_84 + TWO_63 + TWO_52),
    );
    _mm256_add_pd(upper, _mm256_castsi256_pd(lower))
}

/// [`crate::codec::zfp::arch::Arch::inverse`].
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
pub fn inverse<S: Shape>(
    headers: &Headers,
    planes: &[Planes; BATCH],
    blocks: &mut [[f64; 64]; BATCH],
) {
    match S::DIMS {
        1 => {
            let planes = planes.as_chunks::<4>().0;
            let blocks = blocks.as_chunks_mut::<4>().0;
            for i in 0..Line::BATCH / 4 {
                let headers = four!(|b| headers.get(4 * i + b));
                inverse_lines(headers, &planes[i], &mut blocks[i]);
            }
        }
        2 => {
            let planes = planes.as_chunks::<2>().0;
            let blocks = blocks.as_chunks_mut::<2>().0;
            for i in 0..Square::BATCH / 2 {
                let headers = [headers.get(2 * i), headers.get(2 * i + 1)];
                inverse_squares(headers, &planes[i], &mut blocks[i]);
            }
        }
        _ => {
            for i in 0..Cube::BATCH {
                inverse_cube(headers.get(i), &planes[i], &mut blocks[i]);
            }
        }
    }
}

#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
pub fn inverse_cube(header: Header, planes: &Planes, block: &mut [f64; 64]) {
    if !header.is_coded() {
        block.fill(0.0);
        return;
    }
    let upper = four!(|group| join_cube(planes, group));
    let lower = four!(|group| join_cube(planes, 4 + group));
    let half = |half: usize| {
        let upper = four!(|group| upper[group][half]);
        inverse_half_cube(upper, four!(|group| lower[group][half]))
    };
    let (front, back) = (half(0), half(1));
    let columns = [&front[0], &front[1], &back[0], &back[1]];
    let factor = _mm256_set1_pd(factor(header));
    for (z, slice) in block.as_chunks_mut::<16>().0.iter_mut().enumerate() {
        let v = unlift64(four!(|y| columns[y][z]));
        let v = transpose64(unlift64(transpose64(v)));
        for (v, row) in v.into_iter().zip(slice.as_chunks_mut::<4>().0) {
            store_row(_mm256_mul_pd(to_values(v), factor), row);
        }
    }
}

/// Along z: two y, with x along the elements.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
fn inverse_half_cube(upper: Four, lower: Four) -> [Four; 2] {
    let (upper, lower) = (bytes::by_element(upper), bytes::by_element(lower));
    let v = four!(|z| whole([upper[z], lower[z]]));
    [
        unlift64(four!(|z| from_negabinary64(v[z][0]))),
        unlift64(four!(|z| from_negabinary64(v[z][1]))),
    ]
}

#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
fn inverse_squares(headers: [Header; 2], planes: &[Planes; 2], blocks: &mut [[f64; 64]; 2]) {
    let upper = four!(|group| bytes::join_squares(load_lanes(planes, 2 * group)));
    let lower = four!(|group| bytes::join_squares(load_lanes(planes, 8 + 2 * group)));
    let (upper, lower) = (bytes::by_element(upper), bytes::by_element(lower));
    let v = four!(|y| whole([upper[y], lower[y]]));
    let low = four!(|y| from_negabinary64(v[y][0]));
    let high = four!(|y| from_negabinary64(v[y][1]));
    let [low, high] = exchange_axes([unlift64(low), unlift64(high)]);
    let [low, high] = exchange_axes([unlift64(low), unlift64(high)]);
    let [a, b] = headers.map(factor);
    let factor = _mm256_setr_pd(a, a, b, b);
    let [a, b] = headers.map(|header| -i64::from(header.is_coded()));
    let coded = _mm256_castsi256_pd(_mm256_setr_epi64x(a, a, b, b));
    for y in 0..4 {
        for (half, v) in [low[y], high[y]].into_iter().enumerate() {
            let v = _mm256_and_pd(_mm256_mul_pd(to_values(v), factor), coded);
            let [a, b] = &mut *blocks;
            let (a, b) = (a.as_chunks_mut::<2>().0, b.as_chunks_mut::<2>().0);
            // SAFETY: each is 16 writable bytes.
            unsafe {
                _mm_storeu_pd(a[2 * y + half].as_mut_ptr(), _mm256_castpd256_pd128(v));
                _mm_storeu_pd(b[2 * y + half].as_mut_ptr(), _mm256_extractf128_pd::<1>(v));
            }
        }
    }
}

#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
fn inverse_lines(headers: [Header; 4], planes: &[Planes; 4], blocks: &mut [[f64; 64]; 4]) {
    let v = lines::join64(planes);
    let v = unlift64(four!(|x| from_negabinary64(v[x])));
    let [a, b, c, d] = headers.map(factor);
    let factors = _mm256_setr_pd(a, b, c, d);
    let [a, b, c, d] = headers.map(|header| -i64::from(header.is_coded()));
    let coded = _mm256_castsi256_pd(_mm256_setr_epi64x(a, b, c, d));
    let v = transpose64(four!(|x| {
        let values = _mm256_mul_pd(to_values(v[x]), factors);
        _mm256_castpd_si256(_mm256_and_pd(values, coded))
    }));
    for (v, block) in v.into_iter().zip(blocks) {
        store_row(_mm256_castsi256_pd(v), &mut block.as_chunks_mut::<4>().0[0]);
    }
}

/// From integers to values.
#[inline]
fn factor(header: Header) -> f64 {
    f64::power_of_two(header.biased_exponent() as i32 - SCALE)
}

#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
fn store_row(v: __m256d, row: &mut [f64; 4]) {
    // SAFETY: 32 writable bytes.
    unsafe { _mm256_storeu_pd(row.as_mut_ptr(), v) }
}
