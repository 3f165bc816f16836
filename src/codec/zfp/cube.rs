//! 3-D blocks: digits ↔ bit planes, 32 planes at a time, in portable Rust.
//!
//! 32 digits of each coefficient are rows of a matrix, and planes are its columns. The steps are functions of their own,
//! over plain arrays: so compilers find vectors in them.

use super::planes::{Planes, flip_step, high_and_low, of_high_and_low};
use super::shape::{Cube, Shape};
use super::value::Int;

/// 32 digits of each coefficient. Of the coefficients in coding order, word `2 * i` holds those `15 - i` and `47 - i`, the
/// next one those 16 further on.
type Rows = [u64; 32];

/// Where in the block the two coefficients of a word of [`Rows`] belong.
const fn places(word: usize) -> [usize; 2] {
    let low = word % 2 * 16 + 15 - word / 2;
    [
        Cube::ORDER[low] as usize % 64,
        Cube::ORDER[low + 32] as usize % 64,
    ]
}

/// Calls a function with 0 to 31, each of them a constant to the compiler.
macro_rules! for_each_word {
    ($f:expr) => {
        for_each_word!($f; 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15);
        for_each_word!($f; 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31);
    };
    ($f:expr; $($word:literal)*) => {
        $($f($word, const { places($word) });)*
    };
}

/// Digits in block order → rows, of which [`split`] makes bit planes.
#[inline(never)]
pub fn pack<I: Int>(digits: &[I; 64], planes: &mut Planes) {
    let at = |place: usize| digits[place].bits();
    for_each_word!(|word: usize, [low, high]: [usize; 2]| {
        let (low, high) = (at(low), at(high));
        if I::BITS == 64 {
            planes[word] = low >> 32 | high >> 32 << 32;
            planes[32 + word] = low & 0xffff_ffff | high << 32;
        } else {
            planes[word] = low | high << 32;
        }
    });
}

/// Makes 32 bit planes, from plane `k` on, of what [`pack`] left there.
#[inline(always)]
pub fn split(planes: &mut Planes, k: u32) {
    let (parts, _) = planes.as_chunks_mut::<32>();
    if let Some(rows) = parts.get_mut(k as usize / 32) {
        flip(rows);
        to_planes(rows);
    }
}

/// Bit planes → digits in block order.
#[inline(always)]
pub fn join<I: Int>(planes: &Planes, digits: &mut [I; 64]) {
    let (parts, _) = planes.as_chunks::<32>();
    let mut rows = [[0; 32]; 2];
    from_planes(&parts[0], &mut rows[0]);
    flip(&mut rows[0]);
    // A rate may not reach the other planes.
    if I::BITS == 64 && parts[1].iter().fold(0, |any, plane| any | plane) != 0 {
        from_planes(&parts[1], &mut rows[1]);
        flip(&mut rows[1]);
    }
    unpack(&rows, digits);
}

/// The inverse of [`pack`].
#[inline(never)]
fn unpack<I: Int>([first, second]: &[Rows; 2], digits: &mut [I; 64]) {
    for_each_word!(|word: usize, [low, high]: [usize; 2]| {
        let (mut a, mut b) = (first[word], first[word] >> 32);
        if I::BITS == 64 {
            a = a << 32 | second[word] & 0xffff_ffff;
            b = b << 32 | second[word] >> 32;
        }
        digits[low] = I::of_bits(a);
        digits[high] = I::of_bits(b);
    });
}

/// Turns each of the matrices of 16×16 bits that lie side by side in every other word over its other diagonal: bit `j` of
/// row `i` changes places with bit `15 - i` of row `15 - j`, as the most significant digits make the first plane.
#[inline(never)]
fn flip(rows: &mut Rows) {
    flip_step::<16>(rows, 8);
    flip_step::<8>(rows, 4);
    flip_step::<4>(rows, 2);
    flip_step::<2>(rows, 1);
}

/// Sixteens of a plane and of the one 16 further on, in turns → planes.
#[inline(never)]
fn to_planes(rows: &mut Rows) {
    let (pairs, _) = rows.as_chunks::<2>();
    let mut planes = [0; 32];
    for (k, &pair) in pairs.iter().enumerate() {
        [planes[k], planes[16 + k]] = high_and_low(pair);
    }
    *rows = planes;
}

/// The inverse of [`to_planes`].
#[inline(never)]
fn from_planes(planes: &[u64; 32], rows: &mut Rows) {
    let (pairs, _) = rows.as_chunks_mut::<2>();
    for (k, pair) in pairs.iter_mut().enumerate() {
        *pair = of_high_and_low([planes[k], planes[16 + k]]);
    }
}
