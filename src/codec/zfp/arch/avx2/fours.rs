//! The embedded decoder of 3-D blocks where bit extraction is quick, four blocks at a time: where a plane
//! ends is a chain of dependent steps, and while one block waits for its own, the others go on. When a block ends, the
//! next one takes its place.
//!
//! See [`crate::codec::zfp::encoder`] for the code.

use super::columns;
use crate::codec::zfp::Value;
use crate::codec::zfp::arch::{BATCH, Bmi};
use crate::codec::zfp::bits::{low_bits, peek_word};
use crate::codec::zfp::decoder::decode_any_tail;
use crate::codec::zfp::encoder::BLOCK_WORDS;
use crate::codec::zfp::planes::Planes;
use crate::codec::zfp::shape::{Cube, Shape};
use crate::codec::zfp::transform::{Header, LowestExponent};
use std::arch::x86_64::*;
use std::marker::PhantomData;

/// Bits of the longest blocks that there is room for.
pub const LONGEST: usize = 64 * BLOCK_WORDS;

/// Blocks of as many bits each, one after the other.
#[derive(Clone, Copy)]
pub struct Run<'a> {
    pub bytes: &'a [u8],
    /// Bit that the first block starts at.
    pub position: usize,
    /// At most [`LONGEST`].
    pub block_bits: usize,
    pub count: usize,
}

impl Run<'_> {
    /// Whether there are so many bytes after them that nobody need watch the end.
    pub fn is_amid(&self) -> bool {
        /// What [`word`] reads from a position on.
        const READ: usize = 9;
        (self.position + self.count * self.block_bits) / 8 + READ <= self.bytes.len()
    }
}

/// Bit planes, words of which the decoder fills. (As many as it can have, so that nobody need ask.)
type Words = [u64; WORDS];
const WORDS: usize = 64 * BATCH;

/// Headers and bit planes of up to eight blocks, or of as many as there is room for if the run is amid others.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
pub fn decode<T: Value>(
    run: Run,
    bmi: impl Bmi,
    headers: &mut [Header],
    planes: &mut [Planes; BATCH],
) {
    planes.as_flattened_mut().fill(0);
    let planes: *mut Words = std::ptr::from_mut(planes).cast();
    // SAFETY: the same words, otherwise grouped.
    let planes = unsafe { &mut *planes };
    if run.is_amid() {
        decode_run::<T>(run, bmi, headers, planes);
    } else {
        decode_copy::<T>(run, bmi, headers, planes);
    }
}

/// As [`decode`], of a run after which zeros are put.
#[cold]
#[inline(never)]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
fn decode_copy<T: Value>(run: Run, bmi: impl Bmi, headers: &mut [Header], planes: &mut Words) {
    let mut copy = [0; 8 * (Cube::BATCH * BLOCK_WORDS + 2)];
    let bits = run.count * run.block_bits;
    for (i, word) in copy
        .as_chunks_mut()
        .0
        .iter_mut()
        .enumerate()
        .take(bits.div_ceil(64))
    {
        *word = peek_word(run.bytes, run.position + 64 * i).to_le_bytes();
    }
    let copied = Run {
        bytes: &copy,
        position: 0,
        ..run
    };
    if copied.is_amid() {
        decode_run::<T>(copied, bmi, headers, planes);
    }
}

/// Decodes a run that is amid others. (Not inlined: there are too few registers as it is.)
#[inline(never)]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
fn decode_run<T: Value>(run: Run, bmi: impl Bmi, headers: &mut [Header], planes: &mut Words) {
    let mut queue = Queue {
        run,
        next: 0,
        headers,
        planes,
        bmi,
        value: PhantomData::<T>,
    };
    let mut lanes = [Lane::default(); TOGETHER];
    let mut count = 0;
    while let Some(lane) = lanes.get_mut(count)
        && queue.begin(lane)
    {
        count += 1;
    }
    if count == 4 {
        queue.decode_together::<4>(&mut lanes);
    }
    if count >= 3 {
        queue.decode_together::<3>(&mut lanes);
    }
    if count >= 2 {
        queue.decode_together::<2>(&mut lanes);
    }
    if count >= 1 {
        queue.decode_together::<1>(&mut lanes);
    }
}

/// The most blocks that there is room for.
pub const MOST: usize = 64 * BATCH / 32;

/// Blocks that are decoded together.
const TOGETHER: usize = 4;

/// Where a plane's code is.
#[derive(Clone, Copy, Default)]
struct Place {
    position: usize,
    /// Ones below the first coefficient that is not significant.
    known: u64,
}

/// A block that is being decoded.
#[derive(Clone, Copy, Default)]
struct Lane {
    place: Place,
    /// Bit that the block ends at.
    end: usize,
    /// The word of the next plane.
    at: usize,
    /// The word of a plane after the last one.
    last: usize,
}

impl Lane {
    /// Whether there are bits of another plane, and it is not its own code.
    #[inline(always)]
    fn goes_on(&self) -> bool {
        self.at < self.last && self.place.position < self.end && self.place.known != u64::MAX
    }
}

/// Blocks that are being decoded, and those that wait.
struct Queue<'a, T, B> {
    run: Run<'a>,
    /// The first that waits.
    next: usize,
    headers: &'a mut [Header],
    planes: &'a mut Words,
    bmi: B,
    value: PhantomData<T>,
}

impl<T: Value, B: Bmi> Queue<'_, T, B> {
    const STRIDE: usize = columns::stride::<T>();

    /// Decodes planes, one of each of the first `N` lanes after the other, until a lane has no more and no block is
    /// left; that lane becomes the last of the `N`.
    #[inline]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
    fn decode_together<const N: usize>(&mut self, lanes: &mut [Lane; TOGETHER]) {
        let mut places = [Place::default(); N];
        for (place, lane) in places.iter_mut().zip(lanes.iter()) {
            *place = lane.place;
        }
        // Where the next plane of a lane is, is so many words after what its `at` says.
        let mut done = 0;
        let empty = 'all: loop {
            for i in 0..N {
                let lane = &mut lanes[i];
                let at = lane.at.wrapping_add(done);
                if at < lane.last
                    && let Some((plane, place)) = short_plane(self.run.bytes, lane.end, places[i])
                {
                    self.planes[at % WORDS] = plane;
                    places[i] = place;
                    continue;
                }
                lane.place = places[i];
                lane.at = at;
                if !self.turn(lane) {
                    break 'all i;
                }
                places[i] = lane.place;
                lane.at = lane.at.wrapping_sub(done + Self::STRIDE);
            }
            done += Self::STRIDE;
        };
        for (i, (lane, place)) in lanes.iter_mut().zip(places).enumerate() {
            lane.place = place;
            let step = if i < empty { Self::STRIDE } else { 0 };
            lane.at = lane.at.wrapping_add(done + step);
        }
        lanes.swap(empty, N - 1);
    }

    /// Decodes a plane of a block that has no short one, or goes on to the next block that has any. Returns whether
    /// there is one.
    #[inline(never)]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
    fn turn(&mut self, lane: &mut Lane) -> bool {
        if lane.goes_on() {
            self.step(lane);
        }
        while !lane.goes_on() {
            self.copy_planes(lane);
            if !self.begin(lane) {
                return false;
            }
        }
        true
    }

    /// Begins with the next block that is coded. Returns whether there is one.
    #[inline]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
    fn begin(&mut self, lane: &mut Lane) -> bool {
        while self.next < self.run.count {
            let block = self.next;
            let start = self.run.position + block * self.run.block_bits;
            self.next += 1;
            let code = word(self.run.bytes, start);
            let header = header::<T>(code);
            if let Some(place) = self.headers.get_mut(block) {
                *place = header;
            }
            if header.is_coded() {
                let first = columns::first_word::<T>(block);
                *lane = Lane {
                    place: Place {
                        position: start + T::HEADER_BITS as usize,
                        known: 0,
                    },
                    end: start + self.run.block_bits,
                    at: first,
                    last: first + header.planes as usize * Self::STRIDE,
                };
                if self.run.block_bits >= 64 && header.planes >= 32 {
                    self.lead(lane, code >> T::HEADER_BITS);
                }
                return true;
            }
        }
        false
    }

    /// Decodes the first planes, if there are some in which no coefficient but the first is not zero. The block must have
    /// 32 planes, and the bits of `code` that come from it.
    #[inline]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
    fn lead(&mut self, lane: &mut Lane, code: u64) {
        const EVEN: u64 = 0x5555_5555_5555_5555;
        // After so many zeros, and with so many more planes, a word has enough bits, and a block enough planes.
        const ZEROS: u32 = 12;
        const MORE: usize = 7;
        let zeros = code.trailing_zeros();
        let first = lane.at + zeros as usize * Self::STRIDE;
        let planes = self.planes.get_mut(first..first + MORE * Self::STRIDE + 1);
        if zeros <= ZEROS
            && code >> zeros & 7 == 0b011
            && let Some(planes) = planes
        {
            // Each of the planes that follow is a bit and a 0.
            let pairs = code >> (zeros + 3);
            let more = ((pairs & !EVEN).trailing_zeros() / 2).min(MORE as u32);
            let bits = _bzhi_u64(_pext_u64(pairs, EVEN), more);
            planes[0] = 1;
            for i in 0..MORE {
                planes[(i + 1) * Self::STRIDE] = bits >> i & 1;
            }
            lane.at = first + (1 + more as usize) * Self::STRIDE;
            lane.place.position += (zeros + 3 + 2 * more) as usize;
            lane.place.known = 1;
        }
    }

    /// Decodes a plane, whatever its code is.
    #[inline]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
    fn step(&mut self, lane: &mut Lane) {
        let Place { position, known } = lane.place;
        let plane = match cut_plane(self.run.bytes, lane.end, lane.place) {
            Some(plane) => {
                lane.place.position = lane.end;
                plane
            }
            None => match long_plane(self.run.bytes, lane.end, lane.place) {
                Some((plane, place)) => {
                    lane.place = place;
                    plane
                }
                None => {
                    let significant = known.count_ones();
                    let start = position + significant as usize;
                    let tail = decode_any_tail::<Cube>(
                        self.run.bytes,
                        start,
                        lane.end,
                        significant,
                        self.bmi,
                    );
                    lane.place = Place {
                        position: start + tail.length as usize,
                        known: low_bits(significant + tail.reach),
                    };
                    word(self.run.bytes, position) & known | tail.bits << significant
                }
            },
        };
        self.put(lane, plane);
    }

    /// Takes the planes that are left as they are, if all coefficients are significant.
    #[inline]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
    fn copy_planes(&mut self, lane: &mut Lane) {
        while lane.at < lane.last && lane.place.position < lane.end {
            let left = lane.end - lane.place.position;
            let plane = word(self.run.bytes, lane.place.position) & low_bits(left.min(64) as u32);
            self.put(lane, plane);
            lane.place.position += 64;
        }
    }

    #[inline(always)]
    fn put(&mut self, lane: &mut Lane, plane: u64) {
        self.planes[lane.at % WORDS] = plane;
        lane.at += Self::STRIDE;
    }
}

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

/// The plane at `place` and where the next one is, if its code is whole, ends within 64 bits and before bit `end`, and
/// leaves some coefficient not significant.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
fn short_plane(bytes: &[u8], end: usize, place: Place) -> Option<(u64, Place)> {
    let code = word(bytes, place.position);
    let (length, coefficients) = coefficients(code, place.known)?;
    let position = place.position + length as usize + 1;
    if position > end {
        return None;
    }
    let known = _bzhi_u64(u64::MAX, coefficients.count_ones());
    Some((_pext_u64(code, coefficients), Place { position, known }))
}

/// The plane at `place`, if its code has fewer than 64 bits, and does not end before the block does at bit `end`.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
fn cut_plane(bytes: &[u8], end: usize, place: Place) -> Option<u64> {
    let left = end - place.position;
    if left >= 64 {
        return None;
    }
    let there = low_bits(left as u32);
    let code = word(bytes, place.position) & there;
    let rest = code & !place.known;
    let coefficients = (parity(rest) << 1 | place.known) & there;
    let reach = coefficients.count_ones();
    // The last coefficient of the block is not said.
    if reach >= 63 {
        return None;
    }
    // A cut in the middle of a run makes a one-bit of the coefficient that it stopped at.
    let is_amid = u64::from(rest.count_ones() & 1);
    Some(_pext_u64(code, coefficients) | is_amid << reach)
}

/// As [`short_plane`], if the code of the coefficients that were not significant ends within 64 bits, whether it leaves
/// any or not.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
fn long_plane(bytes: &[u8], end: usize, place: Place) -> Option<(u64, Place)> {
    let significant = place.known.count_ones();
    let start = place.position + significant as usize;
    if start > end {
        return None;
    }
    let known = word(bytes, place.position) & place.known;
    let code = word(bytes, start);
    let (length, coefficients) = coefficients(code, 0)?;
    let (reach, room) = (coefficients.count_ones(), 64 - significant);
    let (tail, length, reach) = if reach >= room {
        // The last coefficient of the block is not said; the code ends before it.
        let length = _pdep_u64(1 << (room - 1), coefficients).trailing_zeros();
        let others = _pext_u64(code, _bzhi_u64(coefficients, length));
        (others | 1 << (room - 1), length, room)
    } else {
        (_pext_u64(code, coefficients), length + 1, reach)
    };
    let position = start + length as usize;
    if position > end {
        return None;
    }
    let next = Place {
        position,
        known: low_bits(significant + reach),
    };
    Some((known | tail << significant, next))
}

/// Up to which bit a plane's code goes, which says that there is no more, if it is one of these 64; and which bits below
/// are coefficients. `known` are, whatever they are.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
fn coefficients(code: u64, known: u64) -> Option<(u32, u64)> {
    // Every other one-bit says that there is more, so the parity of the ones so far tells what a bit is.
    let parity = parity(code & !known);
    let ends = !(code | parity | known);
    if ends == 0 {
        return None;
    }
    let length = ends.trailing_zeros();
    Some((length, _bzhi_u64(parity << 1 | known, length)))
}

/// For each bit, whether the number of ones up to and with it is odd.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
fn parity(bits: u64) -> u64 {
    let bits = _mm_cvtsi64_si128(bits as i64);
    let parity = _mm_clmulepi64_si128::<0>(bits, _mm_set1_epi64x(-1));
    _mm_cvtsi128_si64(parity) as u64
}

/// All 64 bits from bit `position` on.
#[inline(always)]
fn word(bytes: &[u8], position: usize) -> u64 {
    let (at, shift) = (position / 8, position % 8);
    // (Two words shifted into one would be an instruction that is slow on some machines.)
    eight_bytes(bytes, at) >> shift & 0xff | eight_bytes(bytes, at + 1) >> shift << 8
}

#[inline(always)]
fn eight_bytes(bytes: &[u8], at: usize) -> u64 {
    debug_assert!(at + 8 <= bytes.len());
    // SAFETY: nobody asks for a position past the end of a run, and these eight bytes are in what [`Run::is_amid`]
    // asks for.
    u64::from_le(unsafe { bytes.as_ptr().add(at).cast::<u64>().read_unaligned() })
}
