//! `f32` 3-D blocks → bit planes, sixteen blocks side by side: a register, here called a column, holds one value of
//! each. So no lifting step and no largest magnitude needs elements moved between lanes.
//!
//! Four blocks in a row, four times, are transposed into columns as they are loaded: element `e` of 128-bit lane `l`
//! is block `4 e + l`. Bit planes are made of columns by unpacking, which moves elements between columns but never
//! between 128-bit lanes: a plane of eight blocks, a block to a 64-bit lane, has them in the order
//! [`BLOCK_OF_LANE`](super::pens::BLOCK_OF_LANE).
//!
//! All is kept where other transforms leave bit planes. Planes are made when the coder asks for them.

use super::bytes::to_negabinary32;
use super::later::{Level, bits_of_bytes};
use super::lifting::{lift32, transpose_elements};
use super::registers::{Row, load, store};
use super::single::{SCALE, largest_of, load_long, load_rows, scale_exponents};
use super::words::block_of_lane;
use crate::codec::zfp::arch::BATCH;
use crate::codec::zfp::blocks::Source;
use crate::codec::zfp::planes::Planes;
use crate::codec::zfp::shape::{CUBE_POSITIONS, Cube};
use std::arch::x86_64::*;

/// The row of a column by its place in coding order, from the last lifting step on. Before that it is its own.
const fn coded(position: usize) -> usize {
    64 + position
}

/// Returns the largest magnitudes, block by block.
#[inline(never)]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,bmi1,bmi2,lzcnt,popcnt")]
pub fn forward<L: Level>(
    level: L,
    sources: &[Source<f32>; BATCH],
    planes: &mut [Planes; BATCH],
) -> __m512i {
    let rows = planes.as_flattened_mut().as_chunks_mut().0;
    let largest = turn(sources, rows);
    lift_slices(largest, rows);
    lift_between_slices(rows);
    gather_bits(level, rows);
    _mm512_permutexvar_epi32(block_of_lane(), largest)
}

/// Values → columns. Returns the largest magnitude of each block, as a column.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,bmi1,bmi2,lzcnt,popcnt")]
fn turn(sources: &[Source<f32>; BATCH], rows: &mut [Row]) -> __m512i {
    let in_a_row = Source::are_in_a_row(sources);
    let magnitude = _mm512_set1_epi32(i32::MAX);
    let mut largest = [_mm512_setzero_si512(); 4];
    for z in 0..4 {
        for y in 0..4 {
            let v = transpose_elements(if in_a_row {
                // SAFETY: as asked.
                let row: &[f32; 4 * BATCH] = unsafe { sources[0].long_row::<Cube, _>(y, z) };
                let fours = row.as_chunks().0;
                four!(|i| load_long(&fours[i]))
            } else {
                four!(|i| load_rows(four!(|lane| sources[4 * i + lane].row::<Cube>(y, z))))
            });
            for x in 0..4 {
                store(v[x], &mut rows[16 * z + 4 * y + x]);
            }
            largest = four!(|x| _mm512_max_epi32(largest[x], _mm512_and_si512(v[x], magnitude)));
        }
    }
    largest_of(largest)
}

/// Quantizes, and lifts along x and y.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,bmi1,bmi2,lzcnt,popcnt")]
fn lift_slices(largest: __m512i, rows: &mut [Row]) {
    let scale = Scale::of(largest);
    for z in 0..4 {
        // (y)(x).
        let v = four!(|y| lift32(four!(|x| scale.quantize(load(&rows[16 * z + 4 * y + x])))));
        // (x)(y).
        for x in 0..4 {
            let v = lift32(four!(|y| v[y][x]));
            for y in 0..4 {
                store(v[y], &mut rows[16 * z + 4 * y + x]);
            }
        }
    }
}

/// How values become integers.
struct Scale {
    factor: __m512,
    /// 2 to this power is the factor, which can be too large for its type.
    exponent: __m512,
    is_tiny: bool,
    /// Blocks that are coded.
    coded: __mmask16,
}

impl Scale {
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,bmi1,bmi2,lzcnt,popcnt")]
    fn of(largest: __m512i) -> Scale {
        let exponent = scale_exponents(largest);
        let infinity = _mm512_set1_epi32(f32::INFINITY.to_bits() as i32);
        let coded =
            _mm512_cmplt_epi32_mask(largest, infinity) & _mm512_test_epi32_mask(largest, largest);
        let smallest = _mm512_set1_epi32((SCALE as i32 - 127) << 23);
        Scale {
            factor: _mm512_scalef_ps(_mm512_set1_ps(1.0), exponent),
            exponent,
            is_tiny: coded & _mm512_cmplt_epi32_mask(largest, smallest) != 0,
            coded,
        }
    }

    /// Towards zero.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,bmi1,bmi2,lzcnt,popcnt")]
    fn quantize(&self, v: __m512i) -> __m512i {
        let v = _mm512_castsi512_ps(v);
        let scaled = if self.is_tiny {
            _mm512_scalef_ps(v, self.exponent)
        } else {
            _mm512_mul_ps(v, self.factor)
        };
        _mm512_maskz_cvttps_epi32(self.coded, scaled)
    }
}

/// Lifts along z, and puts columns in coding order.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,bmi1,bmi2,lzcnt,popcnt")]
fn lift_between_slices(rows: &mut [Row]) {
    for column in 0..16 {
        let v = lift32(four!(|z| load(&rows[16 * z + column])));
        for z in 0..4 {
            let position = CUBE_POSITIONS[16 * z + column];
            store(to_negabinary32(v[z]), &mut rows[coded(position.into())]);
        }
    }
}

/// Each eight columns → for each element of a lane, and each half of it, the bits of equal significance of the eight,
/// a byte each.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,bmi1,bmi2,lzcnt,popcnt")]
fn gather_bits<L: Level>(level: L, rows: &mut [Row]) {
    for eight in 0..8 {
        let columns = &mut rows[coded(8 * eight)..][..8];
        let pairs = four!(|i| unpack8(load(&columns[2 * i + 1]), load(&columns[2 * i])));
        // (elements / 2)(element % 2).
        let low = two!(|i| unpack16(pairs[1][i], pairs[0][i]));
        let high = two!(|i| unpack16(pairs[3][i], pairs[2][i]));
        for element in 0..4 {
            let (i, j) = (element / 2, element % 2);
            // The two low bytes, then the two high ones.
            let halves = unpack32(high[i][j], low[i][j]);
            for (half, &bytes) in halves.iter().enumerate() {
                store(
                    bits_of_bytes(level, bytes),
                    &mut columns[2 * element + half],
                );
            }
        }
    }
}

/// Eight bit planes of the first eight blocks and of the last.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,bmi1,bmi2,lzcnt,popcnt")]
pub fn split(planes: &[Planes; BATCH], first: usize, split: &mut [[Row; 8]; 2]) {
    let rows = planes.as_flattened().as_chunks().0;
    let (half, byte) = (1 - first / 16, 1 - first / 8 % 2);
    for (eight, split) in split.iter_mut().enumerate() {
        let [even, odd] = two!(|i| {
            let element = 2 * eight + i;
            let v = eight!(|eights| load(&rows[coded(8 * eights + 2 * element + half)]));
            join_planes(four!(|i| {
                let (a, b) = (v[2 * i], v[2 * i + 1]);
                if byte == 0 {
                    _mm512_unpacklo_epi8(a, b)
                } else {
                    _mm512_unpackhi_epi8(a, b)
                }
            }))
        });
        for i in 0..4 {
            let [first, second] = unpack64(even[i], odd[i]);
            store(first, &mut split[2 * i]);
            store(second, &mut split[2 * i + 1]);
        }
    }
}

/// Eight registers of bytes by plane → those planes, two to a lane.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,bmi1,bmi2,lzcnt,popcnt")]
fn join_planes(pairs: [__m512i; 4]) -> [__m512i; 4] {
    let low = unpack16(pairs[0], pairs[1]);
    let high = unpack16(pairs[2], pairs[3]);
    let [[a, b], [c, d]] = two!(|i| unpack32(low[i], high[i]));
    [a, b, c, d]
}

/// The elements of the low halves of lanes by turns, and those of the high halves.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,bmi1,bmi2,lzcnt,popcnt")]
fn unpack8(a: __m512i, b: __m512i) -> [__m512i; 2] {
    [_mm512_unpacklo_epi8(a, b), _mm512_unpackhi_epi8(a, b)]
}

/// As [`unpack8`].
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,bmi1,bmi2,lzcnt,popcnt")]
fn unpack16(a: __m512i, b: __m512i) -> [__m512i; 2] {
    [_mm512_unpacklo_epi16(a, b), _mm512_unpackhi_epi16(a, b)]
}

/// As [`unpack8`].
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,bmi1,bmi2,lzcnt,popcnt")]
fn unpack32(a: __m512i, b: __m512i) -> [__m512i; 2] {
    [_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b)]
}

/// As [`unpack8`].
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,bmi1,bmi2,lzcnt,popcnt")]
fn unpack64(a: __m512i, b: __m512i) -> [__m512i; 2] {
    [_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b)]
}
