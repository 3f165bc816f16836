//! The embedded coder's inverse: stream → bit planes, in portable Rust, a bit plane at a time.
//!
//! See [`super::encoder`] for the code. What makes a plane's end hard to find is that a 1 after a
//! one-bit says "more", and looks like one. But from the first one on they take turns, so the plane
//! ends after the first run of ones whose length is odd: and the ends of those runs, and every other
//! bit of each run, come out of two additions, whatever the number of runs.

use super::arch::Bmi;
use super::bits::{PEEKED, low_bits, peek, peek_word};
use super::line;
use super::planes::Planes;
use super::shape::Shape;

/// Decodes up to `count` planes from the bits `position..end` of `bytes` and returns where the
/// code ended. Planes that do not follow any more are zero. Bits from `end` on are not looked at, as
/// long as they are zero.
#[inline(always)]
pub fn decode_planes<S: Shape>(
    bytes: &[u8],
    mut position: usize,
    end: usize,
    count: u32,
    bmi: impl Bmi,
    planes: &mut Planes,
) -> usize {
    let size = S::SIZE as u32;
    let (mut k, mut significant);
    match S::DIMS {
        1 => {
            (position, k, significant) = line::decode_steps(bytes, position, end, count, planes);
        }
        2 => {
            (position, k, significant) =
                decode_square_pairs(bytes, position, end, count, bmi, planes);
        }
        _ => {
            k = empty_planes(bytes, position, end, count);
            position += k as usize;
            significant = 0;
        }
    }
    while k < count && position < end && significant < size {
        let start = position + significant as usize;
        let both = peek(bytes, position);
        let (known, window, there) = if S::SIZE < 64 || significant < PEEKED / 2 {
            (both, both >> significant, PEEKED - significant)
        } else {
            (peek_word(bytes, position), peek(bytes, start), PEEKED)
        };
        let known = known & low_bits(significant);
        let mut tail = decode_tail(window, there, size - significant, bmi);
        if tail.length > 64 {
            tail = decode_any_tail::<S>(bytes, start, end, significant, bmi);
        }
        let next = start + tail.length as usize;
        if next > end {
            let bits = cut_tail(window, end.saturating_sub(start) as u32, bmi);
            put_plane::<S>(planes, k, known | bits << significant);
            return end;
        }
        put_plane::<S>(planes, k, known | tail.bits << significant);
        position = next;
        significant += tail.reach;
        k += 1;
    }
    copy_planes::<S>(bytes, position, end, k, count, planes)
}

/// How many planes of a block, of which nothing was decoded yet, are surely all zeros.
#[inline(always)]
fn empty_planes(bytes: &[u8], position: usize, end: usize, count: u32) -> u32 {
    let zeros = peek(bytes, position)
        .trailing_zeros()
        .min(PEEKED)
        .min(count);
    (zeros as usize).min(end.saturating_sub(position)) as u32
}

/// Decodes planes of a 2-D block two by two, as long as both are whole and not all coefficients are significant.
/// Returns the position, the next plane and how many coefficients are significant.
#[inline(always)]
fn decode_square_pairs(
    bytes: &[u8],
    mut position: usize,
    end: usize,
    count: u32,
    bmi: impl Bmi,
    planes: &mut Planes,
) -> (usize, u32, u32) {
    /// The longest code of a plane.
    const LONGEST: u32 = 32;
    let mut k = empty_planes(bytes, position, end, count) & !1;
    position += k as usize;
    let mut significant = 0;
    while k + 2 <= count && significant < 16 {
        let window = peek(bytes, position);
        let first = decode_tail(window >> significant, PEEKED, 16 - significant, bmi);
        let length = significant + first.length;
        let mut rest = window >> length;
        if length > PEEKED - LONGEST {
            rest = peek(bytes, position + length as usize);
        }
        let reach = significant + first.reach;
        let second = match 16 - reach {
            0 => Tail::NONE,
            room => decode_tail(rest >> reach, PEEKED, room, bmi),
        };
        let next = position + (length + reach + second.length) as usize;
        if next > end {
            break;
        }
        let low = window & low_bits(significant) | first.bits << significant;
        let high = rest & low_bits(reach) | second.bits << reach;
        planes[(k / 4) as usize % 64] |= (low | high << 16) << (k % 4 * 16);
        position = next;
        significant = reach + second.reach;
        k += 2;
    }
    (position, k, significant)
}

/// The coefficients of a plane that were not significant before it.
pub struct Tail {
    pub bits: u64,
    /// Bits of code; more than 64 when it does not end within the window.
    pub length: u32,
    /// Up to and with the last one-bit.
    pub reach: u32,
}

impl Tail {
    /// That of a plane whose coefficients were all significant.
    const NONE: Tail = Tail {
        bits: 0,
        length: 0,
        reach: 0,
    };
    /// One whose code does not end within the window.
    const LONG: Tail = Tail {
        bits: 0,
        length: u32::MAX >> 1,
        reach: 0,
    };
}

/// The code of a tail without its first bit, taken apart.
struct Runs {
    code: u64,
    /// The 1s that say that there is more. The other bits are coefficients, as far as the code goes.
    more: u64,
    /// The bits after runs of odd length.
    ends: u64,
}

#[inline(always)]
fn runs(window: u64) -> Runs {
    const EVEN: u64 = 0x5555_5555_5555_5555;
    let code = window >> 1;
    // Adding the first bit of a run of ones to it clears it and carries out of its end.
    let starts = code & !(code << 1);
    let after_runs = code.wrapping_add(starts);
    let from_even = code.wrapping_add(starts & EVEN);
    // In a run: whether the bit is as far from the first as a coefficient is. After it: whether its length is odd.
    let in_turn = from_even ^ EVEN;
    Runs {
        code,
        more: code & !in_turn,
        ends: after_runs & in_turn,
    }
}

/// The bits of a tail of which only the first `left` bits of code are there; the others are zeros.
#[inline(always)]
fn cut_tail(window: u64, left: u32, bmi: impl Bmi) -> u64 {
    if left == 0 || window & 1 == 0 {
        return 0;
    }
    let Runs { code, more, .. } = runs(window);
    let there = low_bits(left - 1);
    let coefficients = !more & there;
    let bits = bmi.extract(code, coefficients);
    // A cut in the middle of a run makes a one-bit of the coefficient that it stopped at.
    let said = coefficients & code & !(there >> 1) != 0;
    bits | u64::from(!said) << coefficients.count_ones()
}

/// Decodes the tail of a plane whose code starts at bit `start` of `bytes`, whatever its length; its code
/// ends at the latest at bit `end`, from which on there are zeros.
#[inline(never)]
pub fn decode_any_tail<S: Shape>(
    bytes: &[u8],
    start: usize,
    end: usize,
    significant: u32,
    bmi: impl Bmi,
) -> Tail {
    let window = peek(bytes, start);
    let tail = decode_tail(window, PEEKED, S::SIZE as u32 - significant, bmi);
    let left = end.saturating_sub(start);
    if tail.length > 64 {
        let position = start - significant as usize;
        let (plane, next, reach) = decode_plane_bitwise::<S>(bytes, position, end, significant);
        return Tail {
            bits: plane.unbounded_shr(significant),
            length: (next - start) as u32,
            reach: reach - significant,
        };
    }
    if tail.length as usize > left {
        return Tail {
            bits: cut_tail(window, left as u32, bmi),
            length: left as u32,
            reach: 0,
        };
    }
    tail
}

/// Decodes the tail of a plane for `room` coefficients from the `there` bits that follow.
#[inline(always)]
fn decode_tail<B: Bmi>(window: u64, there: u32, room: u32, bmi: B) -> Tail {
    if !B::EXTRACTS {
        return decode_ones(window, there, room);
    }
    if window & 1 == 0 {
        return Tail {
            bits: 0,
            length: 1,
            reach: 0,
        };
    }
    let Runs { code, more, ends } = runs(window);
    let length = ends.trailing_zeros();
    let coefficients = !more & low_bits(length);
    let reach = coefficients.count_ones();
    // The last coefficient of the block is not said; the code ends before it.
    let is_whole = reach >= room;
    let end = if is_whole {
        bmi.select(!more, room - 1)
    } else {
        length
    };
    if end >= there - 1 {
        return Tail::LONG;
    }
    let bits = bmi.extract(code, !more & low_bits(end));
    if is_whole {
        return Tail {
            bits: bits | 1 << (room - 1),
            length: end + 1,
            reach: room,
        };
    }
    Tail {
        bits,
        length: end + 2,
        reach,
    }
}

/// [`decode_tail`], from one-bit to one-bit.
#[inline(always)]
fn decode_ones(window: u64, there: u32, room: u32) -> Tail {
    let (mut bits, mut reach, mut length) = (0, 0, 0);
    let mut code = window;
    while code & 1 == 1 {
        let zeros = (code >> 1).trailing_zeros();
        let most = room - 1 - reach;
        if length + zeros.min(most) + 2 >= there {
            return Tail::LONG;
        }
        if zeros >= most {
            // The last coefficient of the block is not said; the code ends before it.
            return Tail {
                bits: bits | 1 << (room - 1),
                length: length + 1 + most,
                reach: room,
            };
        }
        reach += zeros;
        bits |= 1 << reach;
        reach += 1;
        length += zeros + 2;
        code >>= zeros + 2;
    }
    Tail {
        bits,
        length: length + 1,
        reach,
    }
}

/// One plane, a bit at a time: for a code that is too long for the window.
#[cold]
#[inline(never)]
pub fn decode_plane_bitwise<S: Shape>(
    bytes: &[u8],
    mut position: usize,
    end: usize,
    significant: u32,
) -> (u64, usize, u32) {
    let size = S::SIZE as u32;
    let known = significant.min((end - position).min(64) as u32);
    let mut plane = peek_word(bytes, position) & low_bits(known);
    position += known as usize;
    let next = |position: &mut usize| {
        let bit = peek(bytes, *position) & 1;
        *position += 1;
        bit == 1
    };
    let mut n = significant;
    while position < end && n < size {
        if !next(&mut position) {
            break;
        }
        // A cut in the middle of a run makes a one-bit of the coefficient that it stopped at.
        while position < end && n < size - 1 && !next(&mut position) {
            n += 1;
        }
        plane |= 1 << n;
        n += 1;
    }
    (plane, position, n)
}

#[inline(always)]
fn put_plane<S: Shape>(planes: &mut Planes, k: u32, plane: u64) {
    let per_word = 64 / S::SIZE as u32;
    planes[(k / per_word) as usize % 64] |= plane << (k % per_word * S::SIZE as u32);
}

/// Takes planes from plane `k` on as they are, all coefficients being significant.
#[inline(always)]
fn copy_planes<S: Shape>(
    bytes: &[u8],
    mut position: usize,
    end: usize,
    k: u32,
    count: u32,
    planes: &mut Planes,
) -> usize {
    let mut at = (k * S::SIZE as u32) as usize;
    let until = (count * S::SIZE as u32) as usize;
    // Whole words are the most of a 3-D block.
    while S::SIZE == 64 && at + 64 <= until && position + 64 <= end {
        planes[at / 64 % 64] = peek_word(bytes, position);
        at += 64;
        position += 64;
    }
    while at < until && position < end {
        let bits = (64 - at % 64).min(until - at).min(end - position);
        planes[at / 64] |= (peek_word(bytes, position) & low_bits(bits as u32)) << (at % 64);
        at += bits;
        position += bits;
    }
    position
}
