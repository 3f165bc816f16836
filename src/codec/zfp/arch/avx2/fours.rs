//! The embedded decoder of 3-D blocks where bit extraction is quick, four blocks at a time: where a plane
//! ends is a chain of dependent steps, and while one block waits for its own, the others go on.
//!
//! See [`crate::codec::zfp::encoder`] for the code.

use crate::codec::zfp::Value;
use crate::codec::zfp::arch::{BATCH, Bmi};
use crate::codec::zfp::bits::{bytes_of, low_bits};
use crate::codec::zfp::decoder::decode_any_tail;
use crate::codec::zfp::encoder::BLOCK_WORDS;
use crate::codec::zfp::planes::Planes;
use crate::codec::zfp::range::copy_bits;
use crate::codec::zfp::shape::{Cube, Shape};
use crate::codec::zfp::transform::{Header, Headers, LowestExponent};
use crate::codec::zfp::value::Int;
use std::arch::x86_64::*;

/// Bits of the longest blocks that there is room for.
pub const LONGEST: usize = 64 * BLOCK_WORDS;

/// [`crate::codec::zfp::arch::Arch::decode_batch`].
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
pub fn decode<T: Value>(
    bytes: &[u8],
    position: usize,
    block_bits: usize,
    bmi: impl Bmi,
    headers: &mut Headers,
    planes: &mut [Planes; BATCH],
) {
    const USUAL: usize = 16 + AFTER;
    const MOST: usize = BLOCK_WORDS + AFTER;
    if block_bits <= 64 * (USUAL - AFTER) {
        decode_copies::<T, USUAL>(bytes, position, block_bits, bmi, headers, planes);
    } else {
        decode_copies::<T, MOST>(bytes, position, block_bits, bmi, headers, planes);
    }
}

/// Words of zeros after a block, so that nobody need watch its end.
const AFTER: usize = 4;

/// As [`decode`], from copies of the blocks with room for `WORDS` words.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
fn decode_copies<T: Value, const WORDS: usize>(
    bytes: &[u8],
    mut position: usize,
    block_bits: usize,
    bmi: impl Bmi,
    headers: &mut Headers,
    planes: &mut [Planes; BATCH],
) {
    let mut words = [[0; WORDS]; TOGETHER];
    let planes = planes.as_chunks_mut::<TOGETHER>().0;
    for (i, planes) in planes.iter_mut().take(Cube::BATCH / TOGETHER).enumerate() {
        for (j, words) in words.iter_mut().enumerate() {
            copy_bits(bytes, position, block_bits, words);
            position += block_bits;
            headers.set(TOGETHER * i + j, header::<T>(words[0]));
        }
        let [a, b, c, d] = planes;
        let block = |j: usize, planes| {
            let count = headers.planes[TOGETHER * i + j] as usize;
            Block::new::<T>(&words[j], block_bits, count, planes)
        };
        let mut blocks = [block(0, a), block(1, b), block(2, c), block(3, d)];
        decode_together(&mut blocks, bmi);
    }
}

/// Blocks that are decoded together.
const TOGETHER: usize = 4;

/// The header of a block that begins with `word`.
#[inline(always)]
fn header<T: Value>(word: u64) -> Header {
    let bits = (word & low_bits(T::HEADER_BITS)) as u32;
    let mut header = Header::ZEROS;
    if bits & 1 == 1 {
        header.bits = bits;
        header.planes = LowestExponent::NONE.planes::<T, Cube>(header.biased_exponent());
    }
    header
}

/// Decodes all planes of four blocks. (Not inlined: there are too few registers as it is.)
#[inline(never)]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
fn decode_together(blocks: &mut [Block; TOGETHER], bmi: impl Bmi) {
    for block in blocks.iter_mut() {
        block.lead();
    }
    loop {
        let stuck = step_together(blocks);
        let block = &mut blocks[stuck];
        if block.goes_on() {
            block.step(bmi);
        }
        if !block.goes_on() {
            break;
        }
    }
    for block in blocks {
        block.finish(bmi);
    }
}

/// Decodes short planes, one of each block after the other, until one has no more; returns which.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
fn step_together(blocks: &mut [Block; TOGETHER]) -> usize {
    let mut places = four!(|i| blocks[i].place);
    let counts = four!(|i| blocks[i].count - blocks[i].k);
    let most = counts[0].min(counts[1]).min(counts[2]).min(counts[3]);
    let mut done = 0;
    let stuck = 'short: loop {
        if done == most {
            break counts.iter().position(|&count| count == most).unwrap_or(0);
        }
        for i in 0..TOGETHER {
            let Some((plane, place)) = short_plane(blocks[i].words, blocks[i].end, places[i])
            else {
                break 'short i;
            };
            places[i] = place;
            blocks[i].put(done, plane);
        }
        done += 1;
    };
    for (i, (block, place)) in blocks.iter_mut().zip(places).enumerate() {
        block.place = place;
        block.k += done + usize::from(i < stuck && done < most);
    }
    stuck
}

/// Where a plane's code is.
#[derive(Clone, Copy)]
struct Place {
    position: usize,
    /// Ones below the first coefficient that is not significant.
    known: u64,
}

/// The plane at `place` and where the next one is, if its code is whole, ends within 64 bits and before bit `end`, and
/// leaves some coefficient not significant.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
fn short_plane(words: &[u64], end: usize, place: Place) -> Option<(u64, Place)> {
    let code = word(words, place.position);
    let (length, coefficients) = coefficients(code, place.known);
    let position = place.position + length as usize + 1;
    if position > end || length == 64 {
        return None;
    }
    let reach = coefficients.count_ones();
    let known = _bzhi_u64(u64::MAX, reach);
    Some((_pext_u64(code, coefficients), Place { position, known }))
}

/// Up to which bit a plane's code goes, which says that there is no more; and which bits below are coefficients.
/// `known` are, whatever they are.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
fn coefficients(code: u64, known: u64) -> (u32, u64) {
    // Every other one-bit says that there is more, so the parity of the ones so far tells what a bit is.
    let rest = _mm_cvtsi64_si128((code & !known) as i64);
    let parity = _mm_clmulepi64_si128::<0>(rest, _mm_set1_epi64x(-1));
    let parity = _mm_cvtsi128_si64(parity) as u64;
    let length = (code | parity | known).trailing_ones();
    (length, _bzhi_u64(parity << 1 | known, length))
}

/// All 64 bits from bit `position` on.
#[inline(always)]
fn word(words: &[u64], position: usize) -> u64 {
    let (at, shift) = (position / 8, position % 8);
    // (Two words shifted into one would be an instruction that is slow on some machines.)
    eight_bytes(words, at) >> shift & 0xff | eight_bytes(words, at + 1) >> shift << 8
}

#[inline(always)]
fn eight_bytes(words: &[u64], at: usize) -> u64 {
    debug_assert!(at + 8 <= size_of_val(words));
    // SAFETY: these eight bytes are some of the words': nobody asks for a position past the end of the block, and
    // after that there are [`AFTER`] words.
    u64::from_le(unsafe { words.as_ptr().byte_add(at).read_unaligned() })
}

/// A block that is being decoded.
struct Block<'a> {
    words: &'a [u64],
    /// Bits of the block.
    end: usize,
    /// Planes so far, and of the block.
    k: usize,
    count: usize,
    place: Place,
    planes: &'a mut [u8; 512],
}

impl<'a> Block<'a> {
    #[inline]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
    fn new<T: Value>(
        words: &'a [u64],
        end: usize,
        count: usize,
        planes: &'a mut Planes,
    ) -> Block<'a> {
        planes[..T::Int::BITS as usize].fill(0);
        Block {
            words,
            end,
            k: 0,
            count,
            place: Place {
                position: T::HEADER_BITS as usize,
                known: 0,
            },
            // SAFETY: the same memory; any bytes will do for words.
            planes: unsafe { &mut *std::ptr::from_mut(planes).cast() },
        }
    }

    /// Decodes the first planes, if there are some in which no coefficient but the first is not zero.
    #[inline]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
    fn lead(&mut self) {
        const EVEN: u64 = 0x5555_5555_5555_5555;
        // After so many zeros, and with so many more planes, a word has enough bits, and a block enough planes.
        const MOST: u32 = 12;
        let position = self.place.position;
        let code = word(self.words, position);
        let zeros = code.trailing_zeros();
        if zeros > MOST || code >> zeros & 7 != 0b011 || self.end < position + 64 || self.count < 32
        {
            return;
        }
        // Each of the planes that follow is a bit and a 0.
        let pairs = code >> (zeros + 3);
        let more = ((pairs & !EVEN).trailing_zeros() / 2).min(MOST);
        let bits = _pext_u64(pairs, EVEN) & low_bits(more);
        self.put_lead(zeros as usize, bits << 1 | 1);
        self.k = (zeros + 1 + more) as usize;
        self.place = Place {
            position: position + (zeros + 3 + 2 * more) as usize,
            known: 1,
        };
    }

    /// Sixteen planes from plane `k` on, each a bit of the first coefficient.
    #[inline]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
    fn put_lead(&mut self, k: usize, bits: u64) {
        let fours = self.planes[8 * k..].as_chunks_mut::<32>().0;
        for (i, four) in fours.iter_mut().take(4).enumerate() {
            let bits = _mm256_set1_epi64x((bits >> (4 * i)) as i64);
            let bits = _mm256_srlv_epi64(bits, _mm256_setr_epi64x(0, 1, 2, 3));
            let bits = _mm256_and_si256(bits, _mm256_set1_epi64x(1));
            // SAFETY: 32 writable bytes.
            unsafe { _mm256_storeu_si256(four.as_mut_ptr().cast(), bits) };
        }
    }

    /// Whether there are bits of another plane, and it is not its own code.
    #[inline(always)]
    fn goes_on(&self) -> bool {
        self.k < self.count && self.place.position < self.end && self.place.known != u64::MAX
    }

    /// The planes that are left.
    #[inline]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
    fn finish(&mut self, bmi: impl Bmi) {
        while self.goes_on() {
            match short_plane(self.words, self.end, self.place) {
                Some((plane, place)) => {
                    self.put(0, plane);
                    self.k += 1;
                    self.place = place;
                }
                None => self.step(bmi),
            }
        }
        // All coefficients are significant, and after the end there are zeros.
        while self.k < self.count && self.place.position < self.end {
            self.put(0, word(self.words, self.place.position));
            self.k += 1;
            self.place.position += 64;
        }
    }

    /// Decodes a plane, whatever its code is.
    #[inline]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
    fn step(&mut self, bmi: impl Bmi) {
        let Place { position, known } = self.place;
        let significant = known.count_ones();
        let start = position + significant as usize;
        let bytes = bytes_of(self.words);
        let tail = decode_any_tail::<Cube>(bytes, start, self.end, significant, bmi);
        self.put(
            0,
            word(self.words, position) & known | tail.bits << significant,
        );
        self.k += 1;
        self.place = Place {
            position: start + tail.length as usize,
            known: low_bits(significant + tail.reach),
        };
    }

    /// The plane `more` after those so far.
    #[inline(always)]
    fn put(&mut self, more: usize, plane: u64) {
        let k = self.k + more;
        self.planes.as_chunks_mut().0[k % 64] = plane.to_le_bytes();
    }
}
