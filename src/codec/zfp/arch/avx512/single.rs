//! `f32` blocks ↔ bit planes.
//!
//! Four registers hold one 3-D block, four 2-D blocks or sixteen 1-D blocks. Their values start out
//! row by row: register, 128-bit lane and element are (z, y, x) of a 3-D block, (block, y, x) in 2-D,
//! (block, block, x) in 1-D. Transposing elements or lanes with registers brings each axis in turn to
//! where a lifting step is an operation on whole registers.

use super::bytes;
use super::lifting::{lift32, transpose_elements, transpose_lanes, unlift32};
use crate::codec::zfp::arch::BATCH;
use crate::codec::zfp::blocks::Source;
use crate::codec::zfp::planes::Planes;
use crate::codec::zfp::shape::{Cube, Line, Shape, Square};
use crate::codec::zfp::transform::{Header, LowestExponent};
use crate::codec::zfp::value::Float;
use std::arch::x86_64::*;

type Registers = [__m512i; 4];

/// [`crate::codec::zfp::arch::Arch::forward`].
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,gfni,bmi1,bmi2,lzcnt,popcnt")]
pub fn forward<S: Shape>(
    sources: &[Source<f32>; BATCH],
    lowest: LowestExponent,
    headers: &mut [Header; BATCH],
    planes: &mut [Planes; BATCH],
) -> usize {
    let largest = match S::DIMS {
        1 => return forward_lines(sources, lowest, headers, planes),
        2 => return forward_squares(sources, lowest, headers, planes),
        _ => 0,
    };
    let mut nonfinite = largest;
    for ((source, header), planes) in sources.iter().zip(headers).zip(planes).take(Cube::BATCH) {
        nonfinite += forward_cube(source, lowest, header, planes);
    }
    nonfinite
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,gfni,bmi1,bmi2,lzcnt,popcnt")]
fn forward_cube(
    source: &Source<f32>,
    lowest: LowestExponent,
    header: &mut Header,
    planes: &mut Planes,
) -> usize {
    let v = four!(|z| load_rows(four!(|y| source.row::<Cube>(y, z))));
    let largest = _mm512_reduce_max_epi32(largest_magnitude(v));
    let nonfinite = set_header::<Cube>(header, largest, lowest);
    let exponent = _mm512_set1_ps(SCALE - header.biased_exponent() as f32);
    let v = lift32(transpose_elements(four!(|i| quantize(v[i], exponent))));
    let v = lift32(transpose_lanes(v));
    let v = lift32(transpose_elements(v));
    bytes::split_cube32(four!(|i| bytes::to_negabinary32(v[i])), planes);
    nonfinite
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,gfni,bmi1,bmi2,lzcnt,popcnt")]
fn forward_squares(
    sources: &[Source<f32>; BATCH],
    lowest: LowestExponent,
    headers: &mut [Header; BATCH],
    planes: &mut [Planes; BATCH],
) -> usize {
    let mut nonfinite = 0;
    let sources = &sources.as_chunks::<4>().0[..Square::BATCH / 4];
    let headers = headers.as_chunks_mut::<4>().0;
    let planes = planes.as_chunks_mut::<4>().0;
    for ((sources, headers), planes) in sources.iter().zip(headers).zip(planes) {
        let v = four!(|b| load_rows(four!(|y| sources[b].row::<Square>(y, 0))));
        let v = transpose_elements(v);
        // Element b of every lane: block b.
        let largest = largest_magnitude(v);
        let largest = _mm512_max_epi32(largest, _mm512_shuffle_i32x4::<0x4e>(largest, largest));
        let largest = _mm512_max_epi32(largest, _mm512_shuffle_i32x4::<0xb1>(largest, largest));
        let exponent = scale_exponents(largest);
        let each: [i32; 16] = elements(largest);
        for (header, largest) in headers.iter_mut().zip(each) {
            nonfinite += set_header::<Square>(header, largest, lowest);
        }
        let v = lift32(four!(|i| quantize(v[i], exponent)));
        let v = lift32(transpose_lanes(v));
        bytes::split_squares32(four!(|i| bytes::to_negabinary32(v[i])), planes);
    }
    nonfinite
}

/// The block that lane `lane` of register `register` starts out with. After the byte stage, its first
/// eight blocks and its last are together, in order.
const fn line(register: usize, lane: usize) -> usize {
    register / 2 * 8 + 2 * lane + register % 2
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,gfni,bmi1,bmi2,lzcnt,popcnt")]
fn forward_lines(
    sources: &[Source<f32>; BATCH],
    lowest: LowestExponent,
    headers: &mut [Header; BATCH],
    planes: &mut [Planes; BATCH],
) -> usize {
    let v = four!(|r| load_rows(four!(|l| sources[line(r, l)].row::<Line>(0, 0))));
    let v = transpose_elements(v);
    let largest = largest_magnitude(v);
    let exponent = scale_exponents(largest);
    let mut nonfinite = 0;
    for (i, largest) in elements(largest).into_iter().enumerate() {
        nonfinite += set_header::<Line>(&mut headers[line(i % 4, i / 4)], largest, lowest);
    }
    let v = lift32(four!(|i| quantize(v[i], exponent)));
    bytes::split_lines32(four!(|i| bytes::to_negabinary32(v[i])), planes);
    nonfinite
}

/// The exponent of the factor from values to integers is this less the biased exponent.
const SCALE: f32 = 157.0;

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,gfni,bmi1,bmi2,lzcnt,popcnt")]
fn set_header<S: Shape>(header: &mut Header, largest: i32, lowest: LowestExponent) -> usize {
    const INFINITY: i32 = f32::INFINITY.to_bits() as i32;
    if largest < INFINITY {
        *header = lowest.header::<f32, S>(largest);
        0
    } else {
        *header = Header::ZEROS;
        1
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,gfni,bmi1,bmi2,lzcnt,popcnt")]
fn elements(v: __m512i) -> [i32; 16] {
    let mut elements = [0; 16];
    // SAFETY: 64 writable bytes.
    unsafe { _mm512_storeu_si512(elements.as_mut_ptr().cast(), v) }
    elements
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,gfni,bmi1,bmi2,lzcnt,popcnt")]
fn load_rows(rows: [&[f32; 4]; 4]) -> __m512i {
    // SAFETY: each row is 16 readable bytes.
    let [a, b, c, d] = four!(|i| unsafe { _mm_loadu_si128(rows[i].as_ptr().cast()) });
    let v = _mm512_castsi128_si512(a);
    let v = _mm512_inserti32x4::<1>(v, b);
    let v = _mm512_inserti32x4::<2>(v, c);
    _mm512_inserti32x4::<3>(v, d)
}

/// Of the values in the same place of the four registers.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,gfni,bmi1,bmi2,lzcnt,popcnt")]
fn largest_magnitude(v: Registers) -> __m512i {
    let magnitude = _mm512_set1_epi32(i32::MAX);
    let [a, b, c, d] = four!(|i| _mm512_and_si512(v[i], magnitude));
    _mm512_max_epi32(_mm512_max_epi32(a, b), _mm512_max_epi32(c, d))
}

/// Largest magnitudes → exponents of the factors from values to integers.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,gfni,bmi1,bmi2,lzcnt,popcnt")]
fn scale_exponents(largest: __m512i) -> __m512 {
    let biased = _mm512_cvtepi32_ps(_mm512_srli_epi32::<23>(largest));
    // ZFP's exponents are one above IEEE's.
    _mm512_sub_ps(_mm512_set1_ps(SCALE - 1.0), biased)
}

/// Bits of floats, times 2 to the power `exponent`, towards zero.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,gfni,bmi1,bmi2,lzcnt,popcnt")]
fn quantize(v: __m512i, exponent: __m512) -> __m512i {
    _mm512_cvttps_epi32(_mm512_scalef_ps(_mm512_castsi512_ps(v), exponent))
}

/// [`crate::codec::zfp::arch::Arch::inverse`].
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,gfni,bmi1,bmi2,lzcnt,popcnt")]
pub fn inverse<S: Shape>(
    headers: &[Header; BATCH],
    planes: &[Planes; BATCH],
    blocks: &mut [[f32; 64]; BATCH],
) {
    match S::DIMS {
        1 => inverse_lines(headers, planes, blocks),
        2 => inverse_squares(headers, planes, blocks),
        _ => {
            let all = headers.iter().zip(planes).zip(blocks).take(Cube::BATCH);
            for ((header, planes), block) in all {
                inverse_cube(*header, planes, block);
            }
        }
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,gfni,bmi1,bmi2,lzcnt,popcnt")]
fn inverse_cube(header: Header, planes: &Planes, block: &mut [f32; 64]) {
    if !header.is_coded() {
        block.fill(0.0);
        return;
    }
    let v = bytes::join_cube32(planes);
    let v = unlift32(four!(|i| bytes::from_negabinary32(v[i])));
    let v = unlift32(transpose_elements(v));
    let v = unlift32(transpose_lanes(v));
    let v = transpose_elements(v);
    let factor = _mm512_set1_ps(factor(header));
    for (v, values) in v.into_iter().zip(block.as_chunks_mut::<16>().0) {
        store(_mm512_mul_ps(_mm512_cvtepi32_ps(v), factor), values);
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,gfni,bmi1,bmi2,lzcnt,popcnt")]
fn inverse_squares(
    headers: &[Header; BATCH],
    planes: &[Planes; BATCH],
    blocks: &mut [[f32; 64]; BATCH],
) {
    let headers = &headers.as_chunks::<4>().0[..Square::BATCH / 4];
    let planes = planes.as_chunks::<4>().0;
    let blocks = blocks.as_chunks_mut::<4>().0;
    for ((headers, planes), blocks) in headers.iter().zip(planes).zip(blocks) {
        let v = bytes::join_squares32(planes);
        let v = unlift32(four!(|i| bytes::from_negabinary32(v[i])));
        let v = unlift32(transpose_lanes(v));
        let v = transpose_elements(v);
        for ((v, header), block) in v.into_iter().zip(headers).zip(blocks) {
            let values = &mut block.as_chunks_mut::<16>().0[0];
            if header.is_coded() {
                let factor = _mm512_set1_ps(factor(*header));
                store(_mm512_mul_ps(_mm512_cvtepi32_ps(v), factor), values);
            } else {
                values.fill(0.0);
            }
        }
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,gfni,bmi1,bmi2,lzcnt,popcnt")]
fn inverse_lines(
    headers: &[Header; BATCH],
    planes: &[Planes; BATCH],
    blocks: &mut [[f32; 64]; BATCH],
) {
    // Register r, lane l: block 4 r + l.
    let v = four!(|r| bytes::join_lines32(&planes.as_chunks::<4>().0[r]));
    let v = four!(|i| bytes::from_negabinary32(v[i]));
    let v = transpose_elements(unlift32(transpose_elements(v)));
    let headers = headers.as_chunks::<4>().0;
    let blocks = blocks.as_chunks_mut::<4>().0;
    for ((v, headers), blocks) in v.into_iter().zip(headers).zip(blocks) {
        let factors = headers.map(|header| if header.is_coded() { factor(header) } else { 0.0 });
        // SAFETY: 16 readable bytes.
        let factors = unsafe { _mm_loadu_ps(factors.as_ptr()) };
        let each = _mm512_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3);
        let factors = _mm512_permutexvar_ps(each, _mm512_castps128_ps512(factors));
        let coded = headers.iter().enumerate();
        let coded = coded.fold(0, |mask, (i, h)| mask | u16::from(h.is_coded()) * (0xf << (4 * i)));
        let mut values = [0.0; 16];
        store(
            _mm512_maskz_mul_ps(coded, _mm512_cvtepi32_ps(v), factors),
            &mut values,
        );
        for (block, values) in blocks.iter_mut().zip(values.as_chunks::<4>().0) {
            block[..4].copy_from_slice(values);
        }
    }
}

/// From integers to values.
fn factor(header: Header) -> f32 {
    f32::power_of_two(header.biased_exponent() as i32 - SCALE as i32)
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,gfni,bmi1,bmi2,lzcnt,popcnt")]
fn store(v: __m512, values: &mut [f32; 16]) {
    // SAFETY: 64 writable bytes.
    unsafe { _mm512_storeu_ps(values.as_mut_ptr(), v) }
}
