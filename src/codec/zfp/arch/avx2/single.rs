//! `f32` blocks ↔ bit planes.
//!
//! Four registers hold two 2-D blocks or eight 1-D blocks; a 128-bit lane is a row of values at first. Transposes
//! bring each axis in turn to where a lifting step is an operation on whole registers. For 3-D blocks see [`columns`].

use super::bytes;
use super::lifting::{Four, from_negabinary32, lift32, to_negabinary32, transpose32, unlift32};
use super::{columns, lines, load_lanes, store_lanes, uncolumns};
use crate::codec::zfp::arch::BATCH;
use crate::codec::zfp::blocks::Source;
use crate::codec::zfp::planes::Planes;
use crate::codec::zfp::shape::{Line, Shape, Square};
use crate::codec::zfp::transform::{Header, Headers, LowestExponent};
use std::arch::x86_64::*;

/// [`crate::codec::zfp::arch::Arch::forward`]; but 3-D blocks become what [`columns`] makes
/// planes of, and 1-D blocks what [`lines`] codes.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
pub fn forward<S: Shape>(
    sources: &[Source<f32>; BATCH],
    lowest: LowestExponent,
    headers: &mut Headers,
    planes: &mut [Planes; BATCH],
) -> usize {
    let mut largest = [0; BATCH];
    match S::DIMS {
        1 => {
            let sources = sources.as_chunks::<8>().0;
            for (half, largest) in largest.as_chunks_mut::<8>().0.iter_mut().enumerate() {
                forward_lines(&sources[half], largest, half, &mut planes[0]);
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
            let (sources, _) = sources.as_chunks();
            let (largest, _) = largest.as_chunks_mut();
            store32(columns::forward(&sources[0], planes), &mut largest[0]);
        }
    }
    let largest = largest.as_chunks::<8>().0;
    let bits = headers.bits.as_chunks_mut::<8>().0;
    let planes = headers.planes.as_chunks_mut::<8>().0;
    let mut nonfinite = 0;
    for i in 0..S::BATCH / 8 {
        nonfinite += set_headers::<S>(&largest[i], lowest, &mut bits[i], &mut planes[i]);
    }
    nonfinite
}

#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
fn forward_squares(sources: &[Source<f32>; 2], all: &mut [u32; 2], planes: &mut [Planes; 2]) {
    let v = four!(|y| load_rows(
        sources[0].row::<Square>(y, 0),
        sources[1].row::<Square>(y, 0)
    ));
    let largest = largest_of_lane(largest_magnitude(v));
    *all = [
        _mm256_extract_epi32::<0>(largest) as u32,
        _mm256_extract_epi32::<4>(largest) as u32,
    ];
    let factors = factors(largest);
    let v = lift32(transpose32(four!(|y| quantize(v[y], factors))));
    let v = lift32(transpose32(v));
    let v = bytes::by_significance(four!(|y| to_negabinary32(v[y])));
    for (group, v) in v.into_iter().enumerate() {
        store_lanes(bytes::split_squares(v), planes, 2 * group);
    }
}

/// The block that lane `lane` of register `register` starts out with: so that [`lines`] finds them in
/// order.
const fn line(register: usize, lane: usize) -> usize {
    register / 2 * 4 + 2 * lane + register % 2
}

#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
fn forward_lines(sources: &[Source<f32>; 8], all: &mut [u32; 8], half: usize, words: &mut Planes) {
    let row = |r, lane| sources[line(r, lane)].row::<Line>(0, 0);
    let v = transpose32(four!(|r| load_rows(row(r, 0), row(r, 1))));
    let largest = largest_magnitude(v);
    let factors = factors(largest);
    let order = _mm256_setr_epi32(0, 1, 4, 5, 2, 3, 6, 7);
    store32(_mm256_permutevar8x32_epi32(largest, order), all);
    let v = lift32(four!(|x| quantize(v[x], factors)));
    lines::split32(four!(|x| to_negabinary32(v[x])), half, words);
}

#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
fn set_headers<S: Shape>(
    largest: &[u32; 8],
    lowest: LowestExponent,
    bits: &mut [u32; 8],
    planes: &mut [u32; 8],
) -> usize {
    // SAFETY: 32 readable bytes.
    let largest = unsafe { _mm256_loadu_si256(largest.as_ptr().cast()) };
    let infinity = _mm256_set1_epi32(f32::INFINITY.to_bits() as i32);
    let finite = _mm256_cmpgt_epi32(infinity, largest);
    let zero = _mm256_setzero_si256();
    let some = _mm256_cmpgt_epi32(largest, zero);
    let one = _mm256_set1_epi32(1);
    let biased = _mm256_add_epi32(_mm256_srli_epi32::<23>(largest), one);
    let above = _mm256_set1_epi32(lowest.planes_above::<f32, S>());
    let count = _mm256_min_epi32(_mm256_add_epi32(biased, above), _mm256_set1_epi32(32));
    let coded = _mm256_and_si256(
        finite,
        _mm256_and_si256(some, _mm256_cmpgt_epi32(count, zero)),
    );
    let header = _mm256_or_si256(_mm256_slli_epi32::<1>(biased), one);
    store32(_mm256_and_si256(header, coded), bits);
    store32(_mm256_and_si256(count, coded), planes);
    8 - _mm256_movemask_ps(_mm256_castsi256_ps(finite)).count_ones() as usize
}

/// The rows of two blocks that follow each other.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
pub fn load_long(row: &[f32; 8]) -> __m256i {
    // SAFETY: 32 readable bytes.
    unsafe { _mm256_loadu_si256(row.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
fn load_rows(low: &[f32; 4], high: &[f32; 4]) -> __m256i {
    // SAFETY: each row is 16 readable bytes.
    let [low, high] = unsafe {
        [
            _mm_loadu_si128(low.as_ptr().cast()),
            _mm_loadu_si128(high.as_ptr().cast()),
        ]
    };
    _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(low), high)
}

#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
fn store32(v: __m256i, elements: &mut [u32; 8]) {
    // SAFETY: 32 writable bytes.
    unsafe { _mm256_storeu_si256(elements.as_mut_ptr().cast(), v) }
}

/// Of the values in the same place of the four registers.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
pub fn largest_magnitude(v: Four) -> __m256i {
    let magnitude = _mm256_set1_epi32(i32::MAX);
    let [a, b, c, d] = four!(|i| _mm256_and_si256(v[i], magnitude));
    _mm256_max_epi32(_mm256_max_epi32(a, b), _mm256_max_epi32(c, d))
}

/// Of each lane, in all its elements.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
fn largest_of_lane(v: __m256i) -> __m256i {
    let v = _mm256_max_epi32(v, _mm256_shuffle_epi32::<0b01_00_11_10>(v));
    _mm256_max_epi32(v, _mm256_shuffle_epi32::<0b10_11_00_01>(v))
}

/// The factors from values to integers, given the largest magnitudes; see
/// [`crate::codec::zfp::transform::factors`].
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
pub fn factors(largest: __m256i) -> [__m256; 2] {
    let exponent = _mm256_sub_epi32(
        _mm256_set1_epi32(SCALE - 1),
        _mm256_srli_epi32::<23>(largest),
    );
    let bias = _mm256_set1_epi32(127);
    let first = _mm256_min_epi32(exponent, bias);
    let second = _mm256_sub_epi32(exponent, first);
    let power = |e| _mm256_castsi256_ps(_mm256_slli_epi32::<23>(_mm256_add_epi32(e, bias)));
    [power(first), power(second)]
}

/// The exponent of the factor from values to integers is this less the biased exponent.
const SCALE: i32 = 157;

#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
fn quantize(v: __m256i, [first, second]: [__m256; 2]) -> __m256i {
    let scaled = _mm256_mul_ps(_mm256_castsi256_ps(v), first);
    _mm256_cvttps_epi32(_mm256_mul_ps(scaled, second))
}

/// [`crate::codec::zfp::arch::Arch::inverse`].
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
pub fn inverse<S: Shape>(
    headers: &Headers,
    planes: &[Planes; BATCH],
    blocks: &mut [[f32; 64]; BATCH],
) {
    match S::DIMS {
        1 => {
            let planes = planes.as_chunks::<8>().0;
            let blocks = blocks.as_chunks_mut::<8>().0;
            let bits = headers.bits.as_chunks::<8>().0;
            for half in 0..Line::BATCH / 8 {
                inverse_lines(&bits[half], &planes[half], &mut blocks[half]);
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
            let (headers, _) = headers.bits.as_chunks();
            uncolumns::inverse_blocks(&headers[0], planes, blocks);
        }
    }
}

#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
fn inverse_squares(headers: [Header; 2], planes: &[Planes; 2], blocks: &mut [[f32; 64]; 2]) {
    let v = bytes::by_element(four!(|group| {
        bytes::join_squares(load_lanes(planes, 2 * group))
    }));
    let v = unlift32(four!(|y| from_negabinary32(v[y])));
    let v = transpose32(unlift32(transpose32(v)));
    let [a, b] = headers.map(factor);
    let factor = _mm256_setr_ps(a, a, a, a, b, b, b, b);
    let coded = _mm256_castsi256_ps(coded_lanes(headers));
    let [low, high] = blocks;
    let (low, high) = (low.as_chunks_mut::<4>().0, high.as_chunks_mut::<4>().0);
    for (y, v) in v.into_iter().enumerate() {
        let v = _mm256_and_ps(_mm256_mul_ps(_mm256_cvtepi32_ps(v), factor), coded);
        store_rows(v, &mut low[y], &mut high[y]);
    }
}

#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
fn inverse_lines(bits: &[u32; 8], planes: &[Planes; 8], blocks: &mut [[f32; 64]; 8]) {
    // SAFETY: 32 readable bytes.
    let bits = unsafe { _mm256_loadu_si256(bits.as_ptr().cast()) };
    // Blocks as `line` has them, a block an element.
    let bits = _mm256_permutevar8x32_epi32(bits, _mm256_setr_epi32(0, 1, 4, 5, 2, 3, 6, 7));
    let v = lines::join32(planes);
    let v = unlift32(four!(|x| from_negabinary32(v[x])));
    let factors = values_factors(bits);
    let coded = _mm256_castsi256_ps(_mm256_cmpgt_epi32(bits, _mm256_setzero_si256()));
    let v = transpose32(four!(|x| {
        let values = _mm256_mul_ps(_mm256_cvtepi32_ps(v[x]), factors);
        _mm256_castps_si256(_mm256_and_ps(values, coded))
    }));
    for (r, v) in v.into_iter().enumerate() {
        let [low, high] = [line(r, 0), line(r, 1)];
        if let Ok([low, high]) = blocks.get_disjoint_mut([low, high]) {
            let (low, high) = (low.as_chunks_mut::<4>().0, high.as_chunks_mut::<4>().0);
            store_rows(_mm256_castsi256_ps(v), &mut low[0], &mut high[0]);
        }
    }
}

/// The factors from integers to values; see [`Float::power_of_two`] for those that are tiny.
///
/// [`Float::power_of_two`]: crate::codec::zfp::value::Float::power_of_two
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
pub fn values_factors(bits: __m256i) -> __m256 {
    let one = _mm256_set1_epi32(1);
    let biased = _mm256_sub_epi32(_mm256_srli_epi32::<1>(bits), _mm256_set1_epi32(SCALE - 127));
    let normal = _mm256_slli_epi32::<23>(biased);
    let tiny = _mm256_srlv_epi32(_mm256_slli_epi32::<23>(one), _mm256_sub_epi32(one, biased));
    let is_normal = _mm256_cmpgt_epi32(biased, _mm256_setzero_si256());
    _mm256_castsi256_ps(_mm256_blendv_epi8(tiny, normal, is_normal))
}

/// From integers to values.
#[inline]
fn factor(header: Header) -> f32 {
    use crate::codec::zfp::value::Float;
    f32::power_of_two(header.biased_exponent() as i32 - SCALE)
}

/// All ones in the lanes of coded blocks.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
fn coded_lanes(headers: [Header; 2]) -> __m256i {
    let [a, b] = headers.map(|header| -i64::from(header.is_coded()));
    _mm256_setr_epi64x(a, a, b, b)
}

#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
fn store_rows(v: __m256, low: &mut [f32; 4], high: &mut [f32; 4]) {
    // SAFETY: each row is 16 writable bytes.
    unsafe {
        _mm_storeu_ps(low.as_mut_ptr(), _mm256_castps256_ps128(v));
        _mm_storeu_ps(high.as_mut_ptr(), _mm256_extractf128_ps::<1>(v));
    }
}
