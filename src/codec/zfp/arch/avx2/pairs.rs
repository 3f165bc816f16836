//! The embedded decoder of 2-D and 3-D blocks, two at a time: where a plane ends is a chain of dependent
//! steps, and while one block waits for its own, the other goes on.
//!
//! See [`crate::codec::zfp::decoder`] for the method.

use crate::codec::zfp::Value;
use crate::codec::zfp::arch::bmi2::Bmi2;
use crate::codec::zfp::arch::{BATCH, Bmi};
use crate::codec::zfp::bits::{PEEKED, bytes_of, low_bits};
use crate::codec::zfp::decoder::{Runs, decode_any_tail, runs};
use crate::codec::zfp::encoder::BLOCK_WORDS;
use crate::codec::zfp::planes::Planes;
use crate::codec::zfp::range::copy_bits;
use crate::codec::zfp::shape::Shape;
use crate::codec::zfp::transform::{Header, Headers, LowestExponent};
use crate::codec::zfp::value::Int;

/// Bits of the longest blocks that there is room for.
pub const LONGEST: usize = 64 * BLOCK_WORDS;

/// A block's words and zeros after them.
type Words = [u64; BLOCK_WORDS + 4];

/// [`crate::codec::zfp::arch::Arch::decode_batch`].
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
pub fn decode<T: Value, S: Shape>(
    bytes: &[u8],
    mut position: usize,
    block_bits: usize,
    bmi: Bmi2,
    headers: &mut Headers,
    planes: &mut [Planes; BATCH],
) {
    let mut words: [Words; 2] = [[0; BLOCK_WORDS + 4]; 2];
    let planes = planes.as_chunks_mut::<2>().0;
    for (pair, planes) in planes.iter_mut().take(S::BATCH / 2).enumerate() {
        let [first, second] = planes;
        for (i, words) in words.iter_mut().enumerate() {
            copy_bits(bytes, position, block_bits, words);
            position += block_bits;
            let bits = (words[0] & low_bits(T::HEADER_BITS)) as u32;
            let mut header = Header::ZEROS;
            if bits & 1 == 1 {
                header.bits = bits;
                header.planes = LowestExponent::NONE.planes::<T, S>(header.biased_exponent());
            }
            headers.set(2 * pair + i, header);
        }
        let [a, b] = [0, 1].map(|i: usize| headers.planes[2 * pair + i]);
        let mut first = Block::new::<T, S>(&words[0], block_bits, first);
        let mut second = Block::new::<T, S>(&words[1], block_bits, second);
        let mut k = 0;
        while k < a.min(b) && first.goes_on::<S>() && second.goes_on::<S>() {
            first.step::<S>(k, bmi);
            second.step::<S>(k, bmi);
            k += 1;
        }
        first.finish::<S>(k, a, bmi);
        second.finish::<S>(k, b, bmi);
    }
}

/// A block that is being decoded.
struct Block<'a> {
    words: &'a Words,
    position: usize,
    end: usize,
    significant: u32,
    planes: &'a mut [u8; 512],
}

impl<'a> Block<'a> {
    #[inline(always)]
    fn new<T: Value, S: Shape>(words: &'a Words, end: usize, planes: &'a mut Planes) -> Block<'a> {
        planes[..T::Int::BITS as usize * S::SIZE / 64].fill(0);
        Block {
            words,
            position: T::HEADER_BITS as usize,
            end,
            significant: 0,
            // SAFETY: the same memory; any bytes will do for words.
            planes: unsafe { &mut *std::ptr::from_mut(planes).cast() },
        }
    }

    /// Whether there are bits of another plane, and it has a tail.
    #[inline(always)]
    fn goes_on<S: Shape>(&self) -> bool {
        self.position < self.end && self.significant < S::SIZE as u32
    }

    /// Plane `k`.
    #[inline(always)]
    fn step<S: Shape>(&mut self, k: u32, bmi: Bmi2) {
        let start = self.position + self.significant as usize;
        let (known, window) = if S::SIZE < 64 {
            let both = self.peek(self.position);
            (both, both >> self.significant)
        } else {
            (self.word(self.position), self.peek(start))
        };
        let known = known & ((1 << self.significant) - 1);
        let some = window & 1 == 1;
        let Runs { code, more, ends } = runs(window);
        let end = ends.trailing_zeros();
        let below = ends.wrapping_sub(1) & !ends;
        let coefficients = if some { below & !more } else { 0 };
        let mut bits = bmi.extract(code, coefficients);
        let mut reach = coefficients.count_ones();
        let mut next = start + if some { end as usize + 2 } else { 1 };
        // A plane of a 2-D block, at most 32 bits, ends in the window.
        let is_long = S::SIZE == 64 && some && end >= PEEKED - 1;
        if self.significant + reach >= S::SIZE as u32 || next > self.end || is_long {
            let bytes = bytes_of(self.words);
            let tail = decode_any_tail::<S>(bytes, start, self.end, self.significant, bmi);
            (bits, reach) = (tail.bits, tail.reach);
            next = start + tail.length as usize;
        }
        self.put::<S>(k, known | bits << self.significant);
        self.position = next;
        self.significant += reach;
    }

    /// The planes from plane `k` on.
    #[inline(always)]
    fn finish<S: Shape>(&mut self, mut k: u32, count: u32, bmi: Bmi2) {
        while k < count && self.goes_on::<S>() {
            self.step::<S>(k, bmi);
            k += 1;
        }
        // All coefficients are significant, and after the end there are zeros.
        while k < count && self.position < self.end {
            self.put::<S>(k, self.word(self.position));
            self.position += S::SIZE;
            k += 1;
        }
    }

    #[inline(always)]
    fn put<S: Shape>(&mut self, k: u32, plane: u64) {
        if S::SIZE == 64 {
            self.planes.as_chunks_mut().0[k as usize % 64] = plane.to_le_bytes();
        } else {
            self.planes.as_chunks_mut().0[k as usize % 256] = (plane as u16).to_le_bytes();
        }
    }

    /// At least [`PEEKED`] bits from bit `position` on.
    #[inline(always)]
    fn peek(&self, position: usize) -> u64 {
        self.eight_bytes(position / 8) >> (position % 8)
    }

    /// All 64 bits from bit `position` on.
    #[inline(always)]
    fn word(&self, position: usize) -> u64 {
        let (at, shift) = (position / 8, position % 8);
        self.eight_bytes(at) >> shift | self.eight_bytes(at + 8) << 1 << (63 - shift)
    }

    #[inline(always)]
    fn eight_bytes(&self, at: usize) -> u64 {
        let words: *const Words = self.words;
        let last = size_of::<Words>() - size_of::<u64>();
        // SAFETY: these eight bytes are some of the words'.
        u64::from_le(unsafe { words.byte_add(at.min(last)).cast::<u64>().read_unaligned() })
    }
}
