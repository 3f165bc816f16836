//! The embedded coder: bit planes → stream, in portable Rust, a bit plane at a time.
//!
//! A plane first repeats, as they are, the bits of the `n` coefficients that an earlier plane made
//! significant. The rest is runs of zeros: a 1 (some coefficient is still to come), the coefficients
//! up to and including the next one-bit, and so on; a 0 ends the plane. Without the 1s and 0s in
//! between, the rest of the plane is there bit for bit, only with a 1 after each one-bit; so eight
//! coefficients go through a table at a time.

use super::Value;
use super::bits::low_bits;
use super::line;
use super::planes::Planes;
use super::shape::{Shape, Square};
use super::transform::Header;

/// Words that hold the longest block: 64 planes of 64 bits, as many group tests, and the header; with as many
/// more as are written at once.
pub const BLOCK_WORDS: usize = 80;

/// The bits of one block while it is being coded, from bit 0 of the first word on.
#[repr(C, align(64))]
pub struct BlockBits {
    pub words: [u64; BLOCK_WORDS],
    pub pen: Pen,
}

/// Where the next bit goes. Apart from the words, so that it can stay in registers.
#[derive(Clone, Copy)]
pub struct Pen {
    /// The word being filled.
    pub at: usize,
    /// Its bits so far, `fill` of them.
    pub pending: u64,
    pub fill: u32,
}

impl Pen {
    const START: Pen = Pen {
        at: 0,
        pending: 0,
        fill: 0,
    };

    /// Appends `count` bits, at most 64; those of `value` above them must be zero.
    #[inline(always)]
    pub fn push(&mut self, words: &mut [u64; BLOCK_WORDS], value: u64, count: u32) {
        self.pending |= value << self.fill;
        if let Some(word) = words.get_mut(self.at) {
            *word = self.pending;
        }
        let next = self.fill + count;
        // No branch: whether a word is full is anyone's guess.
        let carry = value >> 1 >> (63 - self.fill);
        self.pending = if next >= 64 { carry } else { self.pending };
        self.at += (next / 64) as usize;
        self.fill = next % 64;
    }

    /// Bits so far.
    #[inline(always)]
    pub fn position(self) -> usize {
        self.at * 64 + self.fill as usize
    }
}

impl BlockBits {
    pub const EMPTY: BlockBits = BlockBits {
        words: [0; BLOCK_WORDS],
        pen: Pen::START,
    };

    /// Starts over.
    #[inline(always)]
    pub fn clear(&mut self) {
        self.pen = Pen::START;
    }

    #[inline(always)]
    pub fn push(&mut self, value: u64, count: u32) {
        self.pen.push(&mut self.words, value, count);
    }

    #[inline(always)]
    pub fn len(&self) -> usize {
        self.pen.position()
    }

    /// Zeroes the words from the end up to and with the one that holds bit `until`.
    #[inline(always)]
    pub fn pad(&mut self, until: usize) {
        let at = self.pen.at;
        if let Some(word) = self.words.get_mut(at) {
            *word = self.pen.pending;
        }
        let last = (until / 64).min(BLOCK_WORDS - 1);
        if at < last {
            self.words[at + 1..=last].fill(0);
        }
    }
}

/// A byte's bits, each one-bit followed by another 1; above 16 bits, the length that gives.
pub static DOUBLED: [u32; 256] = doubled();

const fn doubled() -> [u32; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let (mut code, mut length, mut bit) = (0u32, 0, 0);
        while bit < 8 {
            if byte >> bit & 1 == 1 {
                code |= 3 << length;
                length += 1;
            }
            length += 1;
            bit += 1;
        }
        table[byte] = code | length << 16;
        byte += 1;
    }
    table
}

/// A nibble's bits, each one-bit followed by another 1.
pub static DOUBLED_NIBBLES: [u8; 16] = {
    let mut table = [0; 16];
    let mut nibble = 0;
    while nibble < 16 {
        table[nibble] = DOUBLED[nibble] as u8;
        nibble += 1;
    }
    table
};

/// A block's planes, made as they are needed.
pub struct Supply<'a, P> {
    planes: &'a mut Planes,
    /// Makes planes from some plane on what they should be and says up to which plane they are now.
    prepare: P,
    ready: u32,
}

impl<P: FnMut(&mut Planes, u32) -> u32> Supply<'_, P> {
    /// The word that plane `k` lies in. Planes must be asked for in order.
    #[inline(always)]
    pub fn word<S: Shape>(&mut self, k: u32) -> u64 {
        if k >= self.ready {
            self.ready = (self.prepare)(self.planes, k);
        }
        self.planes[k as usize * S::SIZE / 64 % 64]
    }
}

/// Codes one block, up to bit `budget` or a little more. `prepare` is as in [`Supply`].
#[inline(always)]
pub fn encode_block<T: Value, S: Shape>(
    header: Header,
    planes: &mut Planes,
    budget: usize,
    prepare: impl FnMut(&mut Planes, u32) -> u32,
    coded: &mut BlockBits,
) {
    coded.clear();
    if header.is_coded() {
        coded.push(header.bits.into(), T::HEADER_BITS);
        let supply = Supply {
            planes,
            prepare,
            ready: 0,
        };
        encode_planes::<S>(supply, header.planes, budget, coded);
    } else {
        coded.push(0, 1);
    }
}

/// Codes the first `count` planes, but no plane that starts at or past bit `budget` of the block.
#[inline(always)]
fn encode_planes<S: Shape>(
    mut planes: Supply<impl FnMut(&mut Planes, u32) -> u32>,
    count: u32,
    budget: usize,
    out: &mut BlockBits,
) {
    let size = S::SIZE as u32;
    let words = &mut out.words;
    let mut pen = out.pen;
    let (mut k, mut significant) = match S::DIMS {
        1 => line::encode_pairs(&mut planes, count, budget, words, &mut pen),
        2 => encode_square_pairs(&mut planes, count, budget, words, &mut pen),
        _ => (0, 0),
    };
    while k < count && significant < size && pen.position() < budget {
        let plane = planes.word::<S>(k) >> (k * size % 64) & low_bits(size);
        let known = plane & ((1 << significant) - 1);
        let rest = plane >> significant;
        k += 1;
        if rest == 0 {
            pen.push(words, known, significant + 1);
            continue;
        }
        if S::SIZE == 64 && rest >= 1 << 31 {
            pen.push(words, known, significant);
            pen = push_long_tail(rest, size - significant, words, pen);
            significant = 64 - plane.leading_zeros();
            continue;
        }
        let (code, length, reach) = tail_code(rest, size - significant);
        if significant + length <= 64 {
            pen.push(words, known | code << significant, significant + length);
        } else {
            pen.push(words, known, significant);
            pen.push(words, code, length);
        }
        significant += reach;
    }
    // Once all coefficients are significant, a plane is its own code.
    let (mut at, end) = (k * size, count * size);
    while at < end && pen.position() < budget {
        let bits = (64 - at % 64).min(end - at);
        let value = planes.word::<S>(at / size) >> (at % 64) & low_bits(bits);
        pen.push(words, value, bits);
        at += bits;
    }
    out.pen = pen;
}

/// Codes pairs of planes of a 2-D block. Returns the next plane and how many coefficients are significant.
#[inline(always)]
fn encode_square_pairs(
    planes: &mut Supply<impl FnMut(&mut Planes, u32) -> u32>,
    count: u32,
    budget: usize,
    words: &mut [u64; BLOCK_WORDS],
    pen: &mut Pen,
) -> (u32, u32) {
    let mut word = planes.word::<Square>(0);
    // The first planes, if they are all zeros, are a 0 each.
    let mut k = (word.trailing_zeros() / 16).min(count) & !1;
    pen.push(words, 0, k);
    word = word.unbounded_shr(16 * k);
    let mut significant = 0;
    while k + 2 <= count && significant < 16 && pen.position() < budget {
        if k.is_multiple_of(4) {
            word = planes.word::<Square>(k);
        }
        let (first, length) = square_code(word & 0xffff, &mut significant);
        let (second, more) = square_code(word >> 16 & 0xffff, &mut significant);
        pen.push(words, first | second << length, length + more);
        word >>= 32;
        k += 2;
    }
    (k, significant)
}

/// The code of a plane of a 2-D block, and its length.
#[inline(always)]
fn square_code(plane: u64, significant: &mut u32) -> (u64, u32) {
    let before = *significant;
    let known = plane & ((1 << before) - 1);
    let (code, length, reach) = tail_code(plane >> before, 16 - before);
    *significant += reach;
    (known | code << before, before + length)
}

/// The code of the part of a plane that was not significant before, which must be below 2^31: bits,
/// their number, and how many coefficients are significant now. `room` coefficients were not.
#[inline(always)]
fn tail_code(rest: u64, room: u32) -> (u64, u32, u32) {
    if rest == 0 {
        return (0, u32::from(room > 0), 0);
    }
    let top = 63 - rest.leading_zeros();
    // Without the last one-bit, after which the 1 is a 0.
    let (doubled, ones) = double(rest & ((1 << top) - 1));
    let last = 1 + top + ones;
    if top + 1 == room {
        // Nobody else is left to be the last one-bit, so neither it nor the end is said.
        return (1 | doubled << 1, last, room);
    }
    (1 | doubled << 1 | 1 << last, last + 2, top + 1)
}

/// Each one-bit followed by another 1; and the number of one-bits. `bits` must be below 2^31.
#[inline(always)]
fn double(bits: u64) -> (u64, u32) {
    let byte = |i: u32| u64::from(DOUBLED[(bits >> (8 * i) & 0xff) as usize]);
    let (first, second) = (byte(0), byte(1));
    let mut code = (first & 0xffff) | (second & 0xffff) << (first >> 16);
    let mut length = (first >> 16) + (second >> 16);
    if bits >> 16 == 0 {
        return (code, length as u32 - 16);
    }
    let (third, fourth) = (byte(2), byte(3));
    code |= (third & 0xffff) << length;
    length += third >> 16;
    code |= (fourth & 0xffff) << length;
    length += fourth >> 16;
    (code, length as u32 - 32)
}

/// As [`tail_code`], for codes of more than 64 bits.
#[cold]
#[inline(never)]
fn push_long_tail(rest: u64, room: u32, words: &mut [u64; BLOCK_WORDS], mut pen: Pen) -> Pen {
    let reach = 64 - rest.leading_zeros();
    let mut others = rest ^ 1 << (reach - 1);
    let mut left = reach - 1;
    pen.push(words, 1, 1);
    while left > 0 {
        let (byte, count) = (others & 0xff, left.min(8));
        pen.push(
            words,
            (DOUBLED[byte as usize] & 0xffff).into(),
            count + byte.count_ones(),
        );
        others >>= count;
        left -= count;
    }
    if reach < room {
        pen.push(words, 1, 2);
    }
    pen
}
