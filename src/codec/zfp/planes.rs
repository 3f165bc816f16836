//! Coefficients ↔ bit planes, in portable Rust.
//!
//! The bit planes of a block are one bit string, the most significant plane first, the coefficients of
//! a plane in coding order: plane `k` starts at bit `k * S::SIZE`. Once every coefficient is
//! significant a stream continues with just these bits.

use super::arch::Bmi;
use super::shape::Shape;
use super::value::Int;

/// A block's bit planes; 1-D and 2-D blocks use the first words only.
pub type Planes = [u64; 64];

/// Integers in block order → bit planes.
#[inline(always)]
pub fn split<I: Int, S: Shape>(ints: &[I; 64], bmi: impl Bmi, planes: &mut Planes) {
    let digits = |position: usize| ints[usize::from(S::ORDER[position])].to_negabinary();
    match S::DIMS {
        1 => split_line(std::array::from_fn(digits), I::BITS, bmi, planes),
        2 => {
            let mut matrix: [u64; 16] = std::array::from_fn(digits);
            transpose(&mut matrix);
            // Field f of row r is bit plane 16 f + r, counted from the least significant.
            for (k, four) in planes.iter_mut().enumerate().take(I::BITS as usize / 4) {
                let rows = 15 - k % 4 * 4;
                let field = I::BITS - 16 - k as u32 / 4 * 16;
                let plane = |i: usize| matrix[rows - i] >> field & 0xffff;
                *four = plane(0) | plane(1) << 16 | plane(2) << 32 | plane(3) << 48;
            }
        }
        _ if I::BITS == 32 => split_cube32(|position| digits(position) as u32, planes),
        _ => {
            let mut matrix: [u64; 64] = std::array::from_fn(digits);
            transpose(&mut matrix);
            for (plane, &row) in planes.iter_mut().zip(matrix.iter().rev()) {
                *plane = row;
            }
        }
    }
}

/// The bit planes of a 3-D block of 32-bit integers, given the negabinary digits at a coding position.
#[inline(always)]
pub fn split_cube32(digits: impl Fn(usize) -> u32, planes: &mut Planes) {
    let mut matrix: [u64; 32] =
        std::array::from_fn(|i| u64::from(digits(i)) | u64::from(digits(i + 32)) << 32);
    transpose(&mut matrix);
    for (plane, &row) in planes.iter_mut().zip(matrix.iter().rev()) {
        *plane = row;
    }
}

/// Bit planes → integers in block order.
#[inline(always)]
pub fn join<I: Int, S: Shape>(planes: &Planes, bmi: impl Bmi, ints: &mut [I; 64]) {
    let mut put = |position: usize, digits: u64| {
        ints[usize::from(S::ORDER[position])] = I::from_negabinary(digits);
    };
    match S::DIMS {
        1 => {
            let digits = join_line(planes, I::BITS, bmi);
            (0..4).for_each(|i| put(i, digits[i]));
        }
        2 => {
            let mut matrix = [0; 16];
            for (r, row) in matrix.iter_mut().enumerate() {
                for f in 0..I::BITS as usize / 16 {
                    let k = I::BITS as usize - 1 - 16 * f - r;
                    *row |= (planes[k / 4] >> (16 * (k % 4)) & 0xffff) << (16 * f);
                }
            }
            transpose(&mut matrix);
            (0..16).for_each(|i| put(i, matrix[i]));
        }
        _ if I::BITS == 32 => {
            let mut matrix: [u64; 32] = std::array::from_fn(|b| planes[31 - b]);
            transpose(&mut matrix);
            for (i, row) in matrix.into_iter().enumerate() {
                put(i, row & 0xffff_ffff);
                put(i + 32, row >> 32);
            }
        }
        _ => {
            let mut matrix: [u64; 64] = std::array::from_fn(|b| planes[63 - b]);
            transpose(&mut matrix);
            (0..64).for_each(|i| put(i, matrix[i]));
        }
    }
}

#[inline(always)]
fn split_line(digits: [u64; 4], bits: u32, bmi: impl Bmi, planes: &mut Planes) {
    for word in 0..bits / 16 {
        let shift = bits - 16 - 16 * word;
        let mut interleaved = 0;
        for (i, digits) in digits.iter().enumerate() {
            interleaved |= bmi.spread(digits >> shift & 0xffff) << i;
        }
        planes[word as usize] = reverse_nibbles(interleaved);
    }
}

#[inline(always)]
fn join_line(planes: &Planes, bits: u32, bmi: impl Bmi) -> [u64; 4] {
    let mut digits = [0; 4];
    for word in 0..bits / 16 {
        let interleaved = reverse_nibbles(planes[word as usize]);
        for (i, digits) in digits.iter_mut().enumerate() {
            *digits = *digits << 16 | bmi.unspread(interleaved >> i);
        }
    }
    digits
}

#[inline(always)]
fn reverse_nibbles(word: u64) -> u64 {
    const LOW: u64 = 0x0f0f_0f0f_0f0f_0f0f;
    let word = word.swap_bytes();
    (word >> 4 & LOW) | (word & LOW) << 4
}

/// Transposes each of the square bit matrices that lie side by side in the rows: bit `j` of row `i`
/// changes places with bit `i` of row `j`, in every field of `N` bits.
#[inline(always)]
fn transpose<const N: usize>(rows: &mut [u64; N]) {
    let mut step = N / 2;
    while step > 0 {
        // The low half of every field of 2 * step bits.
        let low = u64::MAX / ((1 << step) + 1);
        for pair in (0..N).step_by(2 * step) {
            for i in pair..pair + step {
                let swap = (rows[i] >> step ^ rows[i + step]) & low;
                rows[i + step] ^= swap;
                rows[i] ^= swap << step;
            }
        }
        step /= 2;
    }
}
