//! Bit planes → `f32` 3-D blocks, eight blocks side by side: [`columns`](super::columns) backwards.

use super::bytes::unpack8;
use super::columns::{BLOCKS, Columns, Copy, Row, exchange};
use super::lifting::{from_negabinary32, transpose32, transpose64, unlift32};
use super::{load, single, store};
use crate::codec::zfp::planes::Planes;
use crate::codec::zfp::shape::CUBE_POSITIONS;
use std::arch::x86_64::*;
use std::marker::PhantomData;

/// Where eight blocks in a row belong.
pub struct Destination<'a> {
    first: *mut f32,
    /// Strides in y and z.
    strides: [isize; 2],
    writable: PhantomData<&'a mut f32>,
}

impl Destination<'_> {
    /// # Safety
    /// The values of the blocks must be writable while this is used.
    pub unsafe fn new(first: *mut f32, strides: [isize; 2]) -> Self {
        Destination {
            first,
            strides,
            writable: PhantomData,
        }
    }

    #[inline]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
    fn store(&self, y: usize, z: usize, v: [__m256; 4]) {
        let offset = y as isize * self.strides[0] + z as isize * self.strides[1];
        for (i, v) in v.into_iter().enumerate() {
            // SAFETY: whoever made `self` promised that the blocks' values are writable.
            unsafe { _mm256_storeu_ps(self.first.offset(offset).add(8 * i), v) }
        }
    }
}

impl Copy {
    #[inline(always)]
    pub fn empty() -> Copy {
        Copy([[0.0; 4 * BLOCKS]; 16])
    }

    #[inline(always)]
    pub fn destination(&mut self) -> Destination<'_> {
        // SAFETY: all of it is ours.
        unsafe { Destination::new(self.0.as_mut_ptr().cast(), Self::STRIDES) }
    }

    /// The values of block `i`.
    #[inline(always)]
    pub fn block(&self, i: usize) -> [f32; 64] {
        let mut block = [0.0; 64];
        for (values, row) in block.as_chunks_mut::<4>().0.iter_mut().zip(&self.0) {
            *values = row.as_chunks().0[i % BLOCKS];
        }
        block
    }
}

/// Bit planes → values, of blocks with these headers; the planes of those that are not coded must be zeros.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
pub fn inverse(headers: &[u32; BLOCKS], planes: &mut Columns, to: Destination) {
    let mut coded = [[0; 4]; 64];
    join(planes, &mut coded);
    scatter_bytes(&mut coded);
    let raw = planes;
    unlift_between_slices(&coded, raw);
    // SAFETY: 32 readable bytes.
    let headers = unsafe { _mm256_loadu_si256(headers.as_ptr().cast()) };
    let headers = _mm256_permutevar8x32_epi32(headers, _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7));
    unlift_slices(raw, single::values_factors(headers), to);
}

/// As [`inverse`], of planes block by block, to blocks one after the other.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
pub fn inverse_blocks(headers: &[u32; BLOCKS], blocks: &[Planes], values: &mut [[f32; 64]]) {
    let mut planes = [[0; 4]; 64];
    interleave(headers, blocks, &mut planes);
    let mut copy = Copy::empty();
    inverse(headers, &mut planes, copy.destination());
    for (i, block) in values.iter_mut().take(BLOCKS).enumerate() {
        *block = copy.block(i);
    }
}

/// Planes block by block → what [`inverse`] takes.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
pub fn interleave(headers: &[u32; BLOCKS], blocks: &[Planes], planes: &mut Columns) {
    for half in 0..2 {
        let [a, b, c, d] = four!(|i| {
            let block = 4 * half + [0, 2, 1, 3][i];
            let is_coded = headers[block] != 0;
            if is_coded { &blocks[block] } else { &[0; 64] }
        });
        for fours in 0..8 {
            let of = |planes: &Planes| load(&planes.as_chunks::<4>().0[fours]);
            let v = transpose64([of(a), of(b), of(c), of(d)]);
            four!(|i| store(v[i], &mut planes[2 * (4 * fours + i) + half]));
        }
    }
}

/// The inverse of `split`, of all planes.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
fn join(planes: &Columns, coded: &mut Columns) {
    let mut is_used = false;
    for group in (0..4).rev() {
        let planes = &planes.as_chunks::<16>().0[group];
        let coded = &mut coded.as_chunks_mut::<16>().0[group];
        // Planes that a rate does not reach.
        is_used = is_used || any(planes);
        if !is_used {
            continue;
        }
        for half in 0..2 {
            let v = exchange(eight!(|i| load(&planes[2 * (7 - i) + half])));
            eight!(|i| store(v[i], &mut coded[8 * half + i]));
        }
    }
}

/// Whether there is a one-bit.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
fn any(rows: &[Row; 16]) -> bool {
    let mut all = _mm256_setzero_si256();
    for row in rows {
        all = _mm256_or_si256(all, load(row));
    }
    _mm256_testz_si256(all, all) == 0
}

/// The inverse of `gather_bytes`, but for the order of the bytes of an element.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
fn scatter_bytes(coded: &mut Columns) {
    for first in 0..8 {
        let at = |i: usize| first + 8 * i;
        // (group)(upper half): by element.
        let v = four!(|group| {
            let [a, b] = unpack8(load(&coded[at(2 * group)]), load(&coded[at(2 * group + 1)]));
            unpack8(a, b)
        });
        two!(|upper| {
            // The bytes of a group are less significant than those of the group before.
            let [even, odd] = two!(|i| unpack8(v[2 + i][upper], v[i][upper]));
            two!(|middle| {
                let [a, b] = unpack8(odd[middle], even[middle]);
                store(a, &mut coded[at(4 * upper + 2 * middle)]);
                store(b, &mut coded[at(4 * upper + 2 * middle + 1)]);
            })
        });
    }
}

/// The inverse of `lift_between_slices`, but for the bits that halvings dropped.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
fn unlift_between_slices(coded: &Columns, raw: &mut Columns) {
    four!(|y| four!(|x| {
        let column = 4 * y + x;
        let v = unlift32(four!(|z| {
            let position = CUBE_POSITIONS[16 * z + column];
            from_negabinary32(load(&coded[usize::from(position)]))
        }));
        four!(|z| store(v[z], &mut raw[16 * z + column]));
    }));
}

/// The inverse of `lift_slices`, with these factors.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
fn unlift_slices(raw: &Columns, factors: __m256, to: Destination) {
    for (z, slice) in raw.as_chunks::<16>().0.iter().enumerate() {
        // (x)(y).
        let v = four!(|x| unlift32(four!(|y| load(&slice[4 * y + x]))));
        four!(|y| {
            let v = unlift32(four!(|x| v[x][y]));
            let v = transpose32(four!(|x| {
                _mm256_castps_si256(_mm256_mul_ps(_mm256_cvtepi32_ps(v[x]), factors))
            }));
            to.store(y, z, four!(|i| _mm256_castsi256_ps(v[i])));
        });
    }
}
