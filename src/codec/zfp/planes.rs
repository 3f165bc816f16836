//! Coefficients ↔ bit planes, in portable Rust.
//!
//! The bit planes of a block are one bit string, the most significant plane first, the coefficients of
//! a plane in coding order: plane `k` starts at bit `k * S::SIZE`. Once every coefficient is
//! significant a stream continues with just these bits.

use super::arch::Bmi;
use super::shape::Shape;
use super::value::Int;
use std::ops::{BitAnd, BitXor, Shl, Shr};

/// A block's bit planes; 1-D and 2-D blocks use the first words only.
pub type Planes = [u64; 64];

/// Integers in block order → their digits in coding order, of which [`split`] makes bit planes.
#[inline(always)]
pub fn pack<I: Int, S: Shape>(ints: &[I; 64], planes: &mut Planes) {
    let digits = |position: usize| ints[usize::from(S::ORDER[position])].to_negabinary();
    let upper = |position: usize| digits(position) >> (I::BITS - 32) & 0xffff_ffff;
    let lower = |position: usize| digits(position) & 0xffff_ffff;
    // Half of the coefficients lie above the others.
    let half = S::SIZE / 2;
    for (i, row) in planes[..half].iter_mut().enumerate() {
        *row = upper(i) | upper(i + half) << 32;
    }
    if I::BITS == 64 {
        for (i, row) in planes[half..2 * half].iter_mut().enumerate() {
            *row = lower(i) | lower(i + half) << 32;
        }
    }
}

/// Makes 32 bit planes, from plane `k` on, of what [`pack`] left there. (A rate may never reach the others.)
#[inline(always)]
pub fn split<S: Shape>(planes: &mut Planes, k: u32, bmi: impl Bmi) {
    let half = S::SIZE / 2;
    let at = k as usize / 32 * half % 64;
    let planes = &mut planes[at..at + half];
    match S::DIMS {
        1 => {
            let digits = [planes[0], planes[1], planes[0] >> 32, planes[1] >> 32];
            planes[0] = split_line(digits.map(|digits| digits >> 16 & 0xffff), bmi);
            planes[1] = split_line(digits.map(|digits| digits & 0xffff), bmi);
        }
        2 => {
            let mut rows: [u32; 16] =
                std::array::from_fn(|i| (planes[i % 8] >> (i / 8 * 32)) as u32);
            transpose(&mut rows);
            // Field f of row r is bit plane 16 f + r, counted from the least significant.
            for (word, four) in planes.iter_mut().enumerate() {
                let (row, field) = (15 - word % 4 * 4, 16 - word / 4 * 16);
                let plane = |i: usize| u64::from(rows[row - i] >> field & 0xffff);
                *four = plane(0) | plane(1) << 16 | plane(2) << 32 | plane(3) << 48;
            }
        }
        _ => {
            let mut rows: [u64; 32] = std::array::from_fn(|i| planes[i]);
            transpose(&mut rows);
            for (plane, row) in planes.iter_mut().zip(rows.into_iter().rev()) {
                *plane = row;
            }
        }
    }
}

/// Bit planes → integers in block order.
#[inline(always)]
pub fn join<I: Int, S: Shape>(planes: &Planes, bmi: impl Bmi, ints: &mut [I; 64]) {
    let half = S::SIZE / 2;
    let mut rows = [[0; 32]; 2];
    for (i, rows) in rows.iter_mut().take(I::BITS as usize / 32).enumerate() {
        let planes = &planes[i * half..(i + 1) * half];
        // Planes that a rate does not reach.
        if i == 0 || planes.iter().fold(0, |any, plane| any | plane) != 0 {
            join_half::<S>(planes, bmi, rows);
        }
    }
    let [first, rest] = &rows;
    for i in 0..S::SIZE {
        let digits = |rows: &[u64; 32]| rows[i % half] >> (i / half * 32) & 0xffff_ffff;
        let digits = match I::BITS {
            32 => digits(first),
            _ => digits(first) << 32 | digits(rest),
        };
        ints[usize::from(S::ORDER[i])] = I::from_negabinary(digits);
    }
}

/// The inverse of [`split`], of 32 planes.
#[inline(always)]
fn join_half<S: Shape>(planes: &[u64], bmi: impl Bmi, packed: &mut [u64; 32]) {
    match S::DIMS {
        1 => {
            let (upper, lower) = (join_line(planes[0], bmi), join_line(planes[1], bmi));
            let digits = |i: usize| upper[i] << 16 | lower[i];
            packed[0] = digits(0) | digits(2) << 32;
            packed[1] = digits(1) | digits(3) << 32;
        }
        2 => {
            let mut rows: [u32; 16] = std::array::from_fn(|row| {
                let plane = |field: usize| {
                    let k = 31 - 16 * field - row;
                    (planes[k / 4] >> (16 * (k % 4)) & 0xffff) as u32
                };
                plane(0) | plane(1) << 16
            });
            transpose(&mut rows);
            for (i, packed) in packed[..8].iter_mut().enumerate() {
                *packed = u64::from(rows[i]) | u64::from(rows[i + 8]) << 32;
            }
        }
        _ => {
            *packed = std::array::from_fn(|bit| planes[31 - bit]);
            transpose(packed);
        }
    }
}

/// 16 bits of each of four coefficients → 16 planes.
#[inline(always)]
fn split_line(digits: [u64; 4], bmi: impl Bmi) -> u64 {
    let mut interleaved = 0;
    for (i, digits) in digits.into_iter().enumerate() {
        interleaved |= bmi.spread(digits) << i;
    }
    reverse_nibbles(interleaved)
}

/// The inverse of [`split_line`].
#[inline(always)]
fn join_line(planes: u64, bmi: impl Bmi) -> [u64; 4] {
    let interleaved = reverse_nibbles(planes);
    [0, 1, 2, 3].map(|i| bmi.unspread(interleaved >> i))
}

#[inline(always)]
fn reverse_nibbles(word: u64) -> u64 {
    const LOW: u64 = 0x0f0f_0f0f_0f0f_0f0f;
    let word = word.swap_bytes();
    (word >> 4 & LOW) | (word & LOW) << 4
}

/// A row of bits.
trait Row:
    Copy
    + BitXor<Output = Self>
    + BitAnd<Output = Self>
    + Shl<usize, Output = Self>
    + Shr<usize, Output = Self>
{
    /// The low half of every field of `2 * step` bits.
    fn low_halves(step: usize) -> Self;
}

impl Row for u32 {
    #[inline(always)]
    fn low_halves(step: usize) -> u32 {
        u32::MAX / ((1 << step) + 1)
    }
}

impl Row for u64 {
    #[inline(always)]
    fn low_halves(step: usize) -> u64 {
        u64::MAX / ((1 << step) + 1)
    }
}

/// Transposes each of the square bit matrices that lie side by side in the rows: bit `j` of row `i`
/// changes places with bit `i` of row `j`, in every field of `N` bits.
#[inline(always)]
fn transpose<R: Row, const N: usize>(rows: &mut [R; N]) {
    let mut step = N / 2;
    while step > 0 {
        let low = R::low_halves(step);
        for pair in (0..N).step_by(2 * step) {
            for i in pair..pair + step {
                let swap = (rows[i] >> step ^ rows[i + step]) & low;
                rows[i + step] = rows[i + step] ^ swap;
                rows[i] = rows[i] ^ swap << step;
            }
        }
        step /= 2;
    }
}
