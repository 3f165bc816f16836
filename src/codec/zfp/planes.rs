//! Coefficients ↔ bit planes, in portable Rust.
//!
//! The bit planes of a block are one bit string, the most significant plane first, the coefficients of
//! a plane in coding order: plane `k` starts at bit `k * S::SIZE`. Once every coefficient is
//! significant a stream continues with just these bits.

use super::arch::Bmi;
use super::cube;
use super::shape::Shape;
use super::value::Int;

/// A block's bit planes; 1-D and 2-D blocks use the first words only.
pub type Planes = [u64; 64];

/// The order in which a block's digits lie while bit planes are made of them, or they of bit planes.
struct Rows<S>(S);

impl<S: Shape> Rows<S> {
    /// Where in a 1-D or 2-D block the digits at each place belong.
    const AT: [u8; 64] = {
        let mut at = [0; 64];
        let mut place = 0;
        while place < S::SIZE && S::DIMS < 3 {
            let position = match S::DIMS {
                1 => place,
                // As a matrix's rows are when it is flipped.
                _ => 15 - place,
            };
            at[place] = S::ORDER[position];
            place += 1;
        }
        at
    };
}

/// Digits in block order → 16 digits of each coefficient, then the next 16: what [`split`] makes bit planes of.
#[inline(always)]
pub fn pack<I: Int, S: Shape>(digits: &[I; 64], planes: &mut Planes) {
    if S::DIMS == 3 {
        return cube::pack(digits, planes);
    }
    let words = S::SIZE / 4;
    let (at, _) = Rows::<S>::AT.as_chunks::<4>();
    for (i, at) in at[..words].iter().enumerate() {
        let four = at.map(|at| digits[usize::from(at % 64)].bits());
        match I::BITS {
            32 => {
                let [a, b, c, d] = four;
                [planes[i], planes[words + i]] = high_and_low([a | c << 32, b | d << 32]);
            }
            _ => {
                let parts = exchange_sixteens(four).into_iter().rev();
                for (part, digits) in parts.enumerate() {
                    planes[(part * words + i) % 64] = digits;
                }
            }
        }
    }
}

/// In the even and odd ones of four sixteens.
const EVEN: u64 = 0x0000_ffff_0000_ffff;

/// Of two words with two numbers of 32 bits each: the high sixteen bits of the numbers, by turns of one word and the
/// other, and the low ones.
#[inline(always)]
pub fn high_and_low([even, odd]: [u64; 2]) -> [u64; 2] {
    [
        even >> 16 & EVEN | odd & !EVEN,
        even & EVEN | (odd & EVEN) << 16,
    ]
}

/// The inverse of [`high_and_low`].
#[inline(always)]
pub fn of_high_and_low([high, low]: [u64; 2]) -> [u64; 2] {
    [
        (high & EVEN) << 16 | low & EVEN,
        high & !EVEN | low >> 16 & EVEN,
    ]
}

/// Sixteen bits `i` of word `j` change places with sixteen bits `j` of word `i`.
#[inline(always)]
fn exchange_sixteens([a, b, c, d]: [u64; 4]) -> [u64; 4] {
    const LOW: u64 = 0xffff_ffff;
    let (ac, ac_high) = (a & LOW | c << 32, a >> 32 | c & !LOW);
    let (bd, bd_high) = (b & LOW | d << 32, b >> 32 | d & !LOW);
    [
        ac & EVEN | (bd & EVEN) << 16,
        ac >> 16 & EVEN | bd & !EVEN,
        ac_high & EVEN | (bd_high & EVEN) << 16,
        ac_high >> 16 & EVEN | bd_high & !EVEN,
    ]
}

/// Makes some bit planes, from plane `k` on, of what [`pack`] left there, and says up to which. (A rate may never reach
/// the others.)
#[inline(always)]
pub fn split<S: Shape>(planes: &mut Planes, k: u32, bmi: impl Bmi) -> u32 {
    if S::DIMS == 3 {
        cube::split(planes, k);
        return k + 32;
    }
    let words = S::SIZE / 4;
    let at = k as usize / 16 * words % 64;
    let planes = &mut planes[at..at + words];
    match S::DIMS {
        1 => planes[0] = split_line(planes[0], bmi),
        _ => flip_square(planes),
    }
    k + 16
}

/// Bit planes → digits in block order.
#[inline(always)]
pub fn join<I: Int, S: Shape>(planes: &Planes, bmi: impl Bmi, digits: &mut [I; 64]) {
    if S::DIMS == 3 {
        return cube::join(planes, digits);
    }
    let words = S::SIZE / 4;
    let is_used = |part: usize| {
        let planes = &planes[part * words..(part + 1) * words];
        planes.iter().fold(0, |any, plane| any | plane) != 0
    };
    // Not of planes that a rate does not reach.
    if I::BITS == 64 && (is_used(2) || is_used(3)) {
        join_parts::<I, S, 4>(planes, bmi, digits);
    } else if is_used(1) {
        join_parts::<I, S, 2>(planes, bmi, digits);
    } else {
        join_parts::<I, S, 1>(planes, bmi, digits);
    }
}

/// [`join`], of the first `PARTS` times 16 planes.
#[inline(always)]
fn join_parts<I: Int, S: Shape, const PARTS: usize>(
    planes: &Planes,
    bmi: impl Bmi,
    digits: &mut [I; 64],
) {
    let words = S::SIZE / 4;
    // 16 bits of each coefficient, then the next 16.
    let mut parts = [[0; 4]; PARTS];
    for (part, planes) in parts.iter_mut().zip(planes.chunks_exact(words)) {
        part[..words].copy_from_slice(planes);
        match S::DIMS {
            1 => part[0] = join_line(part[0], bmi),
            _ => flip_square(&mut part[..words]),
        }
    }
    let (at, _) = Rows::<S>::AT.as_chunks::<4>();
    for (i, at) in at[..words].iter().enumerate() {
        let part = |part: usize| {
            if part < PARTS {
                parts[part % PARTS][i]
            } else {
                0
            }
        };
        let four = match I::BITS {
            32 => {
                let [even, odd] = of_high_and_low([part(0), part(1)]);
                [even, odd, even >> 32, odd >> 32]
            }
            _ => exchange_sixteens([part(3), part(2), part(1), part(0)]),
        };
        for (&at, four) in at.iter().zip(four) {
            digits[usize::from(at % 64)] = I::of_bits(four);
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

/// Turns a matrix of 16×16 bits, with four rows to a word, over its other diagonal: bit `j` of row `i` changes places with
/// bit `15 - i` of row `15 - j`, as the most significant digits make the first plane.
#[inline(always)]
fn flip_square(rows: &mut [u64]) {
    let (fours, _) = rows.as_chunks_mut::<4>();
    for rows in fours {
        flip_step::<2>(rows, 8);
        flip_step::<1>(rows, 4);
        *rows = rows.map(|rows| {
            let rows = swap_within(rows, 34, 0x3333_3333);
            swap_within(rows, 17, 0x5555_0000_5555)
        });
    }
}

/// In squares of twice `step` bits, of rows that lie `DISTANCE` words apart, exchanges the first rows' low halves with
/// the other rows' high halves.
#[inline(always)]
pub fn flip_step<const DISTANCE: usize>(rows: &mut [u64], step: usize) {
    let low = u64::MAX / ((1 << step) + 1);
    let (parts, _) = rows.as_chunks_mut::<DISTANCE>();
    let (pairs, _) = parts.as_chunks_mut::<2>();
    for [first, other] in pairs {
        for (a, b) in first.iter_mut().zip(other) {
            let swap = (*a ^ *b >> step) & low;
            *a ^= swap;
            *b ^= swap << step;
        }
    }
}

/// Exchanges the bits under `mask` with those `distance` above them.
#[inline(always)]
fn swap_within(word: u64, distance: u32, mask: u64) -> u64 {
    let swap = (word ^ word >> distance) & mask;
    word ^ swap ^ swap << distance
}
