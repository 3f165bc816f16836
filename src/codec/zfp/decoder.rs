//! The embedded coder's inverse: stream → bit planes, in portable Rust, a bit plane at a time.
//!
//! See [`super::encoder`] for the code. What makes a plane's end hard to find is that a 1 after a
//! one-bit says "more", and looks like one. But from the first one on they take turns, so the plane
//! ends after the first run of ones whose length is odd: and the ends of those runs, and every other
//! bit of each run, come out of two additions, whatever the number of runs.

use super::arch::Bmi;
use super::bits::{low_bits, peek};
use super::planes::Planes;
use super::shape::Shape;

/// Decodes up to `count` planes from the bits `position..end` of `words` and returns where the
/// code ended. Planes that do not follow any more are zero. Bits from `end` on are not looked at, as
/// long as they are zero.
#[inline(always)]
pub fn decode_planes<S: Shape>(
    words: &[u64],
    mut position: usize,
    end: usize,
    count: u32,
    bmi: impl Bmi,
    planes: &mut Planes,
) -> usize {
    let size = S::SIZE as u32;
    let mut significant = 0;
    let mut k = 0;
    while k < count && position < end && significant < size {
        let known = peek(words, position) & low_bits(significant);
        let tail = decode_tail(
            peek(words, position + significant as usize),
            size - significant,
            bmi,
        );
        let next = position + (significant + tail.length) as usize;
        if next > end || tail.length > 64 {
            let plane = decode_plane_bitwise::<S>(words, &mut position, end, &mut significant);
            put_plane::<S>(planes, k, plane);
        } else {
            put_plane::<S>(planes, k, known | tail.bits.unbounded_shl(significant));
            position = next;
            significant += tail.reach;
        }
        k += 1;
    }
    copy_planes::<S>(words, position, end, k, count, planes)
}

/// The coefficients of a plane that were not significant before it.
struct Tail {
    bits: u64,
    /// Bits of code; more than 64 when it does not end within the window.
    length: u32,
    /// Up to and with the last one-bit.
    reach: u32,
}

/// Decodes the tail of a plane for `room` coefficients from the 64 bits that follow.
#[inline(always)]
fn decode_tail(window: u64, room: u32, bmi: impl Bmi) -> Tail {
    const EVEN: u64 = 0x5555_5555_5555_5555;
    if window & 1 == 0 {
        return Tail {
            bits: 0,
            length: 1,
            reach: 0,
        };
    }
    let code = window >> 1;
    // Adding the first bit of a run of ones to it carries out of its end.
    let starts = code & !(code << 1);
    let from_even = code.wrapping_add(starts & EVEN);
    let from_odd = code.wrapping_add(starts & !EVEN);
    let ends = (from_even & !code & !EVEN) | (from_odd & !code & EVEN);
    let in_even_runs = code & !from_even;
    let more = (in_even_runs & !EVEN) | (code & !in_even_runs & EVEN);
    let length = ends.trailing_zeros();
    let coefficients = !more & low_bits(length);
    let reach = coefficients.count_ones();
    if reach < room && length < 63 {
        return Tail {
            bits: bmi.extract(code, coefficients),
            length: length + 2,
            reach,
        };
    }
    // The last coefficient of the block is not said; the code ends before it.
    let before = bmi.select(!more, room - 1);
    if before < 63 {
        return Tail {
            bits: bmi.extract(code, !more & low_bits(before)) | 1 << (room - 1),
            length: before + 1,
            reach: room,
        };
    }
    Tail {
        bits: 0,
        length: u32::MAX >> 1,
        reach: 0,
    }
}

/// One plane, a bit at a time: for a plane that the end of the block cuts, and for long codes.
#[cold]
#[inline(never)]
fn decode_plane_bitwise<S: Shape>(
    words: &[u64],
    position: &mut usize,
    end: usize,
    significant: &mut u32,
) -> u64 {
    let size = S::SIZE as u32;
    let known = (*significant).min((end - *position).min(64) as u32);
    let mut plane = peek(words, *position) & low_bits(known);
    *position += known as usize;
    let next = |position: &mut usize| {
        let bit = peek(words, *position) & 1;
        *position += 1;
        bit == 1
    };
    let mut n = *significant;
    while *position < end && n < size {
        if !next(position) {
            break;
        }
        // A cut in the middle of a run makes a one-bit of the coefficient that it stopped at.
        while *position < end && n < size - 1 && !next(position) {
            n += 1;
        }
        plane |= 1 << n;
        n += 1;
    }
    *significant = n;
    plane
}

#[inline(always)]
fn put_plane<S: Shape>(planes: &mut Planes, k: u32, plane: u64) {
    let per_word = 64 / S::SIZE as u32;
    planes[(k / per_word) as usize % 64] |= plane << (k % per_word * S::SIZE as u32);
}

/// Takes planes from plane `k` on as they are, all coefficients being significant.
#[inline(always)]
fn copy_planes<S: Shape>(
    words: &[u64],
    mut position: usize,
    end: usize,
    k: u32,
    count: u32,
    planes: &mut Planes,
) -> usize {
    let mut at = (k * S::SIZE as u32) as usize;
    let until = (count * S::SIZE as u32) as usize;
    while at < until && position < end {
        let bits = (64 - at % 64).min(until - at).min(end - position);
        planes[at / 64] |= (peek(words, position) & low_bits(bits as u32)) << (at % 64);
        at += bits;
        position += bits;
    }
    position
}
