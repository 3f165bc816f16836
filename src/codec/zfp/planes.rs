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

/// The order in which a block's digits lie while bit planes are made of them, or they of bit planes.
struct Rows<S>(S);

impl<S: Shape> Rows<S> {
    /// Where in the block the digits at each place belong.
    const AT: [u8; 64] = {
        let mut at = [0; 64];
        let mut place = 0;
        while place < S::SIZE {
            let position = match S::DIMS {
                1 => place,
                // As a matrix's rows are when it is flipped.
                2 => 15 - place,
                _ => place % 4 * 16 + 15 - place / 4,
            };
            at[place] = S::ORDER[position];
            place += 1;
        }
        at
    };
}

/// Integers in block order → their digits, of which [`split`] makes bit planes: 16 digits of each coefficient,
/// then the next 16.
#[inline(always)]
pub fn pack<I: Int, S: Shape>(ints: &[I; 64], planes: &mut Planes) {
    let words = S::SIZE / 4;
    let (at, _) = Rows::<S>::AT.as_chunks::<4>();
    for (i, at) in at[..words].iter().enumerate() {
        let digits = at.map(|at| ints[usize::from(at % 64)].to_negabinary());
        let [a, b, c, d] = exchange_sixteens(digits);
        match I::BITS {
            32 => (planes[i], planes[words + i]) = (b, a),
            _ => {
                for (part, digits) in [d, c, b, a].into_iter().enumerate() {
                    planes[(part * words + i) % 64] = digits;
                }
            }
        }
    }
}

/// Sixteen bits `i` of word `j` change places with sixteen bits `j` of word `i`.
#[inline(always)]
fn exchange_sixteens([a, b, c, d]: [u64; 4]) -> [u64; 4] {
    const LOW: u64 = 0xffff_ffff;
    const EVEN: u64 = 0x0000_ffff_0000_ffff;
    let (ac, ac_high) = (a & LOW | c << 32, a >> 32 | c & !LOW);
    let (bd, bd_high) = (b & LOW | d << 32, b >> 32 | d & !LOW);
    [
        ac & EVEN | (bd & EVEN) << 16,
        ac >> 16 & EVEN | bd & !EVEN,
        ac_high & EVEN | (bd_high & EVEN) << 16,
        ac_high >> 16 & EVEN | bd_high & !EVEN,
    ]
}

/// Makes 16 bit planes, from plane `k` on, of what [`pack`] left there. (A rate may never reach the others.)
#[inline(always)]
pub fn split<S: Shape>(planes: &mut Planes, k: u32, bmi: impl Bmi) {
    let words = S::SIZE / 4;
    let at = k as usize / 16 * words % 64;
    let planes = &mut planes[at..at + words];
    match S::DIMS {
        1 => planes[0] = split_line(planes[0], bmi),
        2 => flip_square(planes),
        _ => flip_cube(planes),
    }
}

/// Bit planes → integers in block order.
#[inline(always)]
pub fn join<I: Int, S: Shape>(planes: &Planes, bmi: impl Bmi, ints: &mut [I; 64]) {
    let words = S::SIZE / 4;
    let is_used = |part: usize| {
        let planes = &planes[part * words..(part + 1) * words];
        planes.iter().fold(0, |any, plane| any | plane) != 0
    };
    // Not of planes that a rate does not reach.
    if I::BITS == 64 && (is_used(2) || is_used(3)) {
        join_parts::<I, S, 4>(planes, bmi, ints);
    } else if is_used(1) {
        join_parts::<I, S, 2>(planes, bmi, ints);
    } else {
        join_parts::<I, S, 1>(planes, bmi, ints);
    }
}

/// [`join`], of the first `PARTS` times 16 planes.
#[inline(always)]
fn join_parts<I: Int, S: Shape, const PARTS: usize>(
    planes: &Planes,
    bmi: impl Bmi,
    ints: &mut [I; 64],
) {
    let words = S::SIZE / 4;
    // 16 bits of each coefficient, then the next 16.
    let mut parts = [[0; 16]; PARTS];
    for (part, planes) in parts.iter_mut().zip(planes.chunks_exact(words)) {
        part[..words].copy_from_slice(planes);
        match S::DIMS {
            1 => part[0] = join_line(part[0], bmi),
            2 => flip_square(&mut part[..words]),
            _ => flip_cube(part),
        }
    }
    let (at, _) = Rows::<S>::AT.as_chunks::<4>();
    for (i, at) in at[..words].iter().enumerate() {
        let mut digits = [0; 4];
        for (part, words) in parts.iter().enumerate() {
            for (lane, digits) in digits.iter_mut().enumerate() {
                let sixteen = words[i] >> (16 * lane) & 0xffff;
                *digits |= sixteen << (I::BITS as usize - 16 - 16 * part);
            }
        }
        for (&at, digits) in at.iter().zip(digits) {
            ints[usize::from(at % 64)] = I::from_negabinary(digits);
        }
    }
}

/// 16 bits of each of four coefficients → 16 planes.
#[inline(always)]
fn split_line(digits: u64, bmi: impl Bmi) -> u64 {
    let mut interleaved = 0;
    for i in 0..4 {
        interleaved |= bmi.spread(digits >> (16 * i) & 0xffff) << i;
    }
    reverse_nibbles(interleaved)
}

/// The inverse of [`split_line`].
#[inline(always)]
fn join_line(planes: u64, bmi: impl Bmi) -> u64 {
    let interleaved = reverse_nibbles(planes);
    let [a, b, c, d] = [0, 1, 2, 3].map(|i| bmi.unspread(interleaved >> i));
    a | b << 16 | c << 32 | d << 48
}

#[inline(always)]
fn reverse_nibbles(word: u64) -> u64 {
    const LOW: u64 = 0x0f0f_0f0f_0f0f_0f0f;
    let word = word.swap_bytes();
    (word >> 4 & LOW) | (word & LOW) << 4
}

/// Turns each of the four matrices of 16×16 bits that lie side by side in the rows over its other diagonal: bit `j` of
/// row `i` changes places with bit `15 - i` of row `15 - j`, as the most significant digits make the first plane.
#[inline(always)]
fn flip_cube(rows: &mut [u64]) {
    let (sixteens, _) = rows.as_chunks_mut::<16>();
    for rows in sixteens {
        for step in [8, 4, 2, 1] {
            flip_step(rows, step, step);
        }
    }
}

/// As [`flip_cube`], of one matrix with four rows to a word.
#[inline(always)]
fn flip_square(rows: &mut [u64]) {
    let (fours, _) = rows.as_chunks_mut::<4>();
    for rows in fours {
        flip_step(rows, 8, 2);
        flip_step(rows, 4, 1);
        *rows = rows.map(|rows| {
            let rows = swap_within(rows, 34, 0x3333_3333);
            swap_within(rows, 17, 0x5555_0000_5555)
        });
    }
}

/// In squares of twice `step` bits, of rows that lie `distance` words apart, exchanges the first rows' low halves with
/// the other rows' high halves.
#[inline(always)]
fn flip_step<const N: usize>(rows: &mut [u64; N], step: usize, distance: usize) {
    let low = u64::MAX / ((1 << step) + 1);
    for pair in (0..N).step_by(2 * distance) {
        for i in pair..pair + distance {
            let swap = (rows[i] ^ rows[i + distance] >> step) & low;
            rows[i] ^= swap;
            rows[i + distance] ^= swap << step;
        }
    }
}

/// Exchanges the bits under `mask` with those `distance` above them.
#[inline(always)]
fn swap_within(word: u64, distance: u32, mask: u64) -> u64 {
    let swap = (word ^ word >> distance) & mask;
    word ^ swap ^ swap << distance
}
