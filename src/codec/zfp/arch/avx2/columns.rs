//! `f32` 3-D blocks → bit planes, eight blocks side by side: a register, here called a column, holds one value of
//! each. So no lifting step and no largest magnitude needs elements moved within registers, and no step waits for
//! the one before it.
//!
//! Two blocks in a row, four times, are transposed into columns as they are loaded: element `e` of 128-bit lane `l`
//! is block `2 e + l`. Bit planes are made of columns by unpacking, which moves elements between columns but never
//! between those lanes: a plane of eight blocks has them in the order of [`slot`].
//!
//! All is kept where other transforms leave bit planes, eight words of each plane in a row.

use super::bytes::{exchange_bits, lane_by_significance, unpack8};
use super::lifting::{Four, lift32, to_negabinary32, transpose32};
use super::single::{self, largest_magnitude, load_long};
use super::{load, store};
use crate::codec::zfp::Value;
use crate::codec::zfp::arch::BATCH;
use crate::codec::zfp::blocks::Source;
use crate::codec::zfp::planes::Planes;
use crate::codec::zfp::shape::{CUBE_POSITIONS, Cube};
use crate::codec::zfp::value::Int;
use std::arch::x86_64::*;
use std::mem::MaybeUninit;

/// Blocks side by side.
pub const BLOCKS: usize = 8;

/// A register in memory.
pub type Row = [u64; 4];
/// One for each value of a block.
pub type Columns = [Row; 64];

/// Where a block's word is among the eight of a plane.
const fn slot(block: usize) -> usize {
    block & 4 | (block & 1) << 1 | block >> 1 & 1
}

/// Room for planes, as columns.
#[inline(always)]
pub fn quarters(planes: &mut [Planes; BATCH]) -> &mut [Columns; 4] {
    const {
        assert!(size_of::<[Planes; BATCH]>() == size_of::<[Columns; 4]>());
    }
    let quarters: *mut [Columns; 4] = std::ptr::from_mut(planes).cast();
    // SAFETY: the same words, otherwise grouped.
    unsafe { &mut *quarters }
}

/// What is kept: columns until the last lifting step, and later bit planes; from that step on columns in coding order,
/// and what [`gather_bytes`] makes of them.
#[inline(always)]
fn parts(planes: &mut [Planes; BATCH]) -> [&mut Columns; 2] {
    let [first, second, ..] = quarters(planes);
    [first, second]
}

/// Words from one plane of a 3-D block to the next.
pub const fn stride<T: Value>() -> usize {
    if T::Int::BITS == 32 { BLOCKS } else { 1 }
}

/// The word of a 3-D block's first plane. (Blocks of `f64` are not here, but one after the other.)
pub const fn first_word<T: Value>(block: usize) -> usize {
    if T::Int::BITS == 32 {
        let words = size_of::<Columns>() / 8;
        block / BLOCKS * words + slot(block % BLOCKS)
    } else {
        64 * block
    }
}

/// Values → columns of bytes. Returns the largest magnitudes, block by block.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
pub fn forward(sources: &[Source<f32>; BLOCKS], planes: &mut [Planes; BATCH]) -> __m256i {
    let [raw, coded] = parts(planes);
    let mut copy = MaybeUninit::uninit();
    let slab = Slab::of(sources, &mut copy);
    let largest = slab.largest_magnitudes();
    lift_slices(&slab, largest, raw);
    lift_between_slices(raw, coded);
    gather_bytes(coded);
    _mm256_permutevar8x32_epi32(largest, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7))
}

/// The values of eight blocks that are not in a row: sixteen rows of them.
pub struct Copy(pub [[f32; 4 * BLOCKS]; 16]);

impl Copy {
    pub const STRIDES: [isize; 2] = [4 * BLOCKS as isize, 16 * BLOCKS as isize];
}

/// Eight blocks in a row.
struct Slab<'a>(Source<'a, f32>);

impl<'a> Slab<'a> {
    /// The blocks where they are, if they are in a row, else as a copy.
    #[inline]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
    fn of(sources: &'a [Source<'a, f32>; BLOCKS], copy: &'a mut MaybeUninit<Copy>) -> Self {
        if Source::are_in_a_row(sources) {
            return Slab(sources[0]);
        }
        let first: *mut f32 = copy.as_mut_ptr().cast();
        for (i, source) in sources.iter().enumerate() {
            for row in 0..16 {
                let values = source.row::<Cube>(row % 4, row / 4);
                // SAFETY: block `i` of a row of the copy.
                unsafe {
                    first
                        .add(4 * (BLOCKS * row + i))
                        .cast::<[f32; 4]>()
                        .write(*values)
                };
            }
        }
        // SAFETY: all of the copy has been written.
        Slab(unsafe { Source::in_place(first, Copy::STRIDES) })
    }

    /// Their values (y, z), two blocks to a register.
    #[inline]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
    fn load(&self, y: usize, z: usize) -> Four {
        // SAFETY: the blocks are in a row.
        let row: &[f32; 4 * BLOCKS] = unsafe { self.0.long_row::<Cube, _>(y, z) };
        let (pairs, _) = row.as_chunks();
        four!(|i| load_long(&pairs[i]))
    }

    /// The largest magnitude of each block, as a column.
    #[inline]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
    fn largest_magnitudes(&self) -> __m256i {
        let magnitude = _mm256_set1_epi32(i32::MAX);
        let mut largest = [_mm256_setzero_si256(); 4];
        for z in 0..4 {
            for y in 0..4 {
                let v = self.load(y, z);
                largest =
                    four!(|i| _mm256_max_epi32(largest[i], _mm256_and_si256(v[i], magnitude)));
            }
        }
        largest_magnitude(transpose32(largest))
    }
}

/// How values become integers: by a factor that can be too large for its type, so that it comes in two parts.
struct Scale {
    factors: [__m256; 2],
    /// The second part matters.
    is_tiny: bool,
}

impl Scale {
    #[inline]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
    fn of(largest: __m256i) -> Scale {
        let factors = single::factors(largest);
        let is_one = _mm256_cmp_ps::<_CMP_EQ_OQ>(factors[1], _mm256_set1_ps(1.0));
        Scale {
            factors,
            is_tiny: _mm256_movemask_ps(is_one) != 0xff,
        }
    }

    #[inline]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
    fn quantize(&self, v: Four) -> Four {
        let [first, second] = self.factors;
        let scaled = four!(|i| _mm256_mul_ps(_mm256_castsi256_ps(v[i]), first));
        if self.is_tiny {
            return four!(|i| _mm256_cvttps_epi32(_mm256_mul_ps(scaled[i], second)));
        }
        four!(|i| _mm256_cvttps_epi32(scaled[i]))
    }
}

/// Quantizes, and lifts along x and y.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
fn lift_slices(slab: &Slab, largest: __m256i, raw: &mut Columns) {
    let scale = Scale::of(largest);
    for z in 0..4 {
        // (y)(x).
        let v = four!(|y| lift32(scale.quantize(transpose32(slab.load(y, z)))));
        // (x)(y).
        let v = four!(|x| lift32(four!(|y| v[y][x])));
        let slice = &mut raw.as_chunks_mut::<16>().0[z];
        four!(|y| four!(|x| store(v[x][y], &mut slice[4 * y + x])));
    }
}

/// Lifts along z, and puts columns in coding order.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
fn lift_between_slices(raw: &Columns, coded: &mut Columns) {
    four!(|y| four!(|x| {
        let column = 4 * y + x;
        let v = lift32(four!(|z| load(&raw[16 * z + column])));
        four!(|z| {
            let position = CUBE_POSITIONS[16 * z + column];
            store(to_negabinary32(v[z]), &mut coded[usize::from(position)]);
        });
    }));
}

/// Of each eight columns, eight apart: the bytes of equal significance of a block, in coding order.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
fn gather_bytes(coded: &mut Columns) {
    for first in 0..8 {
        let at = |i: usize| first + 8 * i;
        // In each lane: by significance, the top bytes first, then by element.
        let [a, b] = two!(|half| four!(|i| lane_by_significance(load(&coded[at(4 * half + i)]))));
        let pairs = four!(|i| unpack8(a[i], b[i]));
        two!(|half| {
            let [even, odd] = two!(|i| unpack8(pairs[i][half], pairs[i + 2][half]));
            two!(|low| {
                // The elements 0 and 1, then 2 and 3.
                let [a, b] = unpack8(even[low], odd[low]);
                store(a, &mut coded[at(4 * half + 2 * low)]);
                store(b, &mut coded[at(4 * half + 2 * low + 1)]);
            })
        });
    }
}

/// Eight bit planes of all blocks.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
pub fn split(planes: &mut [Planes; BATCH], group: usize) {
    let [planes, coded] = parts(planes);
    let planes = &mut planes.as_chunks_mut::<16>().0[group % 4];
    for half in 0..2 {
        let bytes = &coded.as_chunks::<8>().0[2 * (group % 4) + half];
        let v = exchange(eight!(|i| load(&bytes[i])));
        // The top bits make the first plane.
        eight!(|i| store(v[7 - i], &mut planes[2 * i + half]));
    }
}

/// [`Supply::leads`], of planes that were made.
///
/// [`Supply::leads`]: super::supply::Supply::leads
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
pub fn leads(planes: &[Planes; BATCH]) -> [u32; BLOCKS] {
    let rows = planes[0].as_chunks::<4>().0;
    let one = _mm256_set1_epi64x(1);
    let mut leads = [0; BLOCKS];
    for half in 0..2 {
        let mut all = _mm256_set1_epi64x(-1);
        let (mut bits, mut end) = (_mm256_setzero_si256(), one);
        for k in 0..8 {
            let v = load(&rows[2 * k + half]);
            all = _mm256_and_si256(all, _mm256_cmpeq_epi64(_mm256_or_si256(v, one), one));
            let bit = _mm256_and_si256(v, all);
            bits = _mm256_or_si256(bits, _mm256_sllv_epi64(bit, _mm256_set1_epi64x(k as i64)));
            // Twice as much as long as there are more.
            end = _mm256_add_epi64(end, _mm256_and_si256(end, all));
        }
        let mut words = [0; 4];
        store(_mm256_or_si256(bits, end), &mut words);
        for (i, word) in words.into_iter().enumerate() {
            leads[4 * half + (i & 1) * 2 + i / 2] = word as u32;
        }
    }
    leads
}

/// In each byte: bit `i` of register `r` changes places with bit `r` of register `i`.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
pub fn exchange(v: [__m256i; 8]) -> [__m256i; 8] {
    exchange_apart::<1>(
        exchange_apart::<2>(exchange_apart::<4>(v, 0x0f), 0x33),
        0x55,
    )
}

/// Between registers that are four apart, and then next to each other: the bits of `low` of the second change places
/// with those `DISTANCE` above them of the first.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
fn exchange_apart<const DISTANCE: i32>(v: [__m256i; 8], low: i8) -> [__m256i; 8] {
    let pairs = four!(|i| exchange_bits::<DISTANCE>([v[i], v[i + 4]], low));
    eight!(|i| pairs[i / 2][1 - i % 2])
}
