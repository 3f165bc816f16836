//! The embedded coder: bit planes → stream, in portable Rust, a bit plane at a time.
//!
//! A plane first repeats, as they are, the bits of the `n` coefficients that an earlier plane made
//! significant. The rest is runs of zeros: a 1 (some coefficient is still to come), the coefficients
//! up to and including the next one-bit, and so on; a 0 ends the plane. Without the 1s and 0s in
//! between, the rest of the plane is there bit for bit, only with a 1 after each one-bit; so eight
//! coefficients go through a table at a time.

use super::bits::low_bits;
use super::line;
use super::planes::Planes;
use super::shape::Shape;

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

/// A byte's bits, each one-bit followed by another 1.
pub static DOUBLED: [u16; 256] = doubled();

const fn doubled() -> [u16; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let (mut code, mut length, mut bit) = (0u16, 0, 0);
        while bit < 8 {
            if byte >> bit & 1 == 1 {
                code |= 3 << length;
                length += 1;
            }
            length += 1;
            bit += 1;
        }
        table[byte] = code;
        byte += 1;
    }
    table
}

/// Codes the first `count` planes, but no plane that starts at or past bit `budget` of the block.
#[inline(always)]
pub fn encode_planes<S: Shape>(planes: &Planes, count: u32, budget: usize, out: &mut BlockBits) {
    let size = S::SIZE as u32;
    let words = &mut out.words;
    let mut pen = out.pen;
    let (mut k, mut significant) = match S::DIMS {
        1 => line::encode_pairs(planes, count, budget, words, &mut pen),
        _ => (0, 0),
    };
    while k < count && significant < size && pen.position() < budget {
        let plane = plane::<S>(planes, k);
        let known = plane & low_bits(significant);
        let rest = plane >> significant;
        k += 1;
        if S::SIZE < 64 {
            let (code, length, reach) = tail_code(rest, size - significant);
            pen.push(words, known | code << significant, significant + length);
            significant += reach;
        } else if rest < 1 << 31 {
            let (code, length, reach) = tail_code(rest, size - significant);
            pen.push(words, known, significant);
            pen.push(words, code, length);
            significant += reach;
        } else {
            pen.push(words, known, significant);
            pen = push_long_tail(rest, size - significant, words, pen);
            significant = 64 - plane.leading_zeros();
        }
    }
    out.pen = copy_planes::<S>(planes, k, count, budget, words, pen);
}

/// Plane `k` of the string.
#[inline(always)]
fn plane<S: Shape>(planes: &Planes, k: u32) -> u64 {
    let per_word = 64 / S::SIZE as u32;
    let word = planes[(k / per_word) as usize % 64];
    word >> (k % per_word * S::SIZE as u32) & low_bits(S::SIZE as u32)
}

/// The code of the part of a plane that was not significant before, when it fits in 64 bits: bits,
/// their number, and how many coefficients are significant now. `room` coefficients were not.
#[inline(always)]
fn tail_code(rest: u64, room: u32) -> (u64, u32, u32) {
    let reach = 64 - rest.leading_zeros();
    // Without the last one-bit, after which the 1 is a 0. With nothing at all, the code is that 0.
    let top = (1u64 << 63).unbounded_shr(rest.leading_zeros());
    let others = rest ^ top;
    let any = u32::from(rest != 0);
    let length = reach + others.count_ones() + any;
    let code = u64::from(any) | double(others) << 1;
    if reach == room {
        // Nobody else is left to be the last one-bit, so neither it nor the end is said.
        return (code, length - 1, reach);
    }
    let last = u64::from(any).unbounded_shl(length - any);
    (code | last, length + 1, reach)
}

/// Each one-bit followed by another 1. `bits` must be below 2^31.
#[inline(always)]
fn double(bits: u64) -> u64 {
    let mut code = u64::from(DOUBLED[(bits & 0xff) as usize]);
    let mut length = 8 + (bits & 0xff).count_ones();
    let mut left = bits >> 8;
    while left != 0 {
        code |= u64::from(DOUBLED[(left & 0xff) as usize]) << length;
        length += 8 + (left & 0xff).count_ones();
        left >>= 8;
    }
    code
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
            DOUBLED[byte as usize].into(),
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

/// Codes planes from plane `k` on, if there are any, all coefficients being significant.
#[inline(always)]
fn copy_planes<S: Shape>(
    planes: &Planes,
    k: u32,
    count: u32,
    budget: usize,
    words: &mut [u64; BLOCK_WORDS],
    mut pen: Pen,
) -> Pen {
    let (mut at, end) = (k * S::SIZE as u32, count * S::SIZE as u32);
    while at < end && pen.position() < budget {
        let bits = (64 - at % 64).min(end - at);
        let value = planes[at as usize / 64] >> (at % 64) & low_bits(bits);
        pen.push(words, value, bits);
        at += bits;
    }
    pen
}
