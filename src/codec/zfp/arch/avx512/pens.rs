//! Bit strings that grow side by side, one of each of sixteen blocks, one in each 64-bit lane of two registers.
//!
//! Lanes fill their words at different times. So each time the words of all lanes are kept, with a note of which are
//! full; in the end each block's are picked out. (Storing each block's word each time takes longer: a processor
//! stores one a cycle.)

use super::later::{Level, across, compress_bytes, in_next_word, in_word};
use super::lifting::transpose8;
use super::registers::{load, store};
use super::shifts::sll;
use crate::codec::zfp::Value;
use crate::codec::zfp::arch::BATCH;
use crate::codec::zfp::encoder::{BLOCK_WORDS, BlockBits, Pen};
use crate::codec::zfp::planes::Planes;
use crate::codec::zfp::transform::Headers;
use std::arch::x86_64::*;
use std::mem::MaybeUninit;

pub const LANES: usize = 8;

/// The order that the blocks of eight lanes are in.
pub const BLOCK_OF_LANE: [usize; LANES] = [0, 4, 1, 5, 2, 6, 3, 7];

const LANE_OF_BLOCK: [usize; LANES] = {
    let mut lanes = [0; LANES];
    let mut lane = 0;
    while lane < LANES {
        lanes[BLOCK_OF_LANE[lane]] = lane;
        lane += 1;
    }
    lanes
};

/// Times that words are kept before they are picked out: as many as give each word a number that is a byte.
const KEPT: usize = 256 / LANES;

/// Where the next bits go. Apart from the words, so that it can stay in registers.
pub struct Pens<L> {
    level: L,
    /// Bits of each block so far, and those of the words they are filling.
    position: [__m512i; 2],
    pending: [__m512i; 2],
    budget: [__m512i; 2],
}

/// Where the words of sixteen blocks go.
pub trait Paper {
    /// Those of each.
    fn pages(&mut self) -> impl Iterator<Item = &mut [u64]>;
    /// Whether it has to be told the ends of blocks of so many words.
    fn goes_on(&self, words: &[u32; BATCH]) -> bool;
    /// The end of a block, of which `words` words, whole ones but no more than its budget, are on its page.
    fn end(&mut self, block: usize, words: usize, pen: Pen);
}

impl Paper for [BlockBits; BATCH] {
    #[inline(always)]
    fn pages(&mut self) -> impl Iterator<Item = &mut [u64]> {
        self.iter_mut().map(|block| block.words.as_mut_slice())
    }

    #[inline(always)]
    fn goes_on(&self, _words: &[u32; BATCH]) -> bool {
        true
    }

    #[inline(always)]
    fn end(&mut self, block: usize, _words: usize, pen: Pen) {
        self[block].pen = pen;
    }
}

/// Blocks of half a word, one after the other. (The only word of each is always the one being filled.)
pub struct Slips<'a>(pub &'a mut [u64; BATCH / 2]);

impl Paper for Slips<'_> {
    #[inline(always)]
    fn pages(&mut self) -> impl Iterator<Item = &mut [u64]> {
        std::iter::empty()
    }

    #[inline(always)]
    fn goes_on(&self, _words: &[u32; BATCH]) -> bool {
        true
    }

    #[inline(always)]
    fn end(&mut self, block: usize, _words: usize, pen: Pen) {
        let shift = 32 * (block % 2);
        let other = u64::from(u32::MAX) << (32 - shift);
        let word = &mut self.0[block / 2];
        *word = *word & other | (pen.pending & u64::from(u32::MAX)) << shift;
    }
}

/// The pages of blocks of whole words lie one after the other.
pub struct Ream<'a>(pub &'a mut [u64]);

impl Paper for Ream<'_> {
    #[inline(always)]
    fn pages(&mut self) -> impl Iterator<Item = &mut [u64]> {
        self.0.chunks_exact_mut((self.0.len() / BATCH).max(1))
    }

    #[inline(always)]
    fn goes_on(&self, words: &[u32; BATCH]) -> bool {
        *words != [(self.0.len() / BATCH) as u32; BATCH]
    }

    #[inline(always)]
    fn end(&mut self, block: usize, words: usize, pen: Pen) {
        let length = self.0.len() / BATCH;
        if let [next, rest @ ..] = &mut self.0[length * block..][..length][words..] {
            *next = pen.pending;
            rest.fill(0);
        }
    }
}

/// The words of sixteen blocks, until they are put on paper.
pub struct Pages<'a> {
    /// Words that may be needed of each block, and those that have been picked out.
    most_words: u32,
    words: [u32; BATCH],
    /// How many times words have been kept since.
    count: usize,
    kept: &'a mut [Kept; 2],
}

/// Words of eight blocks.
#[repr(align(64))]
pub struct Kept {
    words: [[MaybeUninit<u64>; LANES]; KEPT],
    /// For each time, which of them are full.
    full: [MaybeUninit<u8>; KEPT],
}

impl<L: Level> Pens<L> {
    /// Starts each block with its header.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,bmi1,bmi2,lzcnt,popcnt")]
    pub fn new<T: Value>(level: L, headers: &Headers, budget: usize) -> Self {
        let pending = two!(|g| widen(&headers.bits.as_chunks().0[g]));
        let header_bits = _mm512_set1_epi64(T::HEADER_BITS.into());
        Pens {
            level,
            position: two!(|g| {
                let is_coded = _mm512_test_epi64_mask(pending[g], pending[g]);
                _mm512_mask_mov_epi64(_mm512_set1_epi64(1), is_coded, header_bits)
            }),
            pending,
            budget: [_mm512_set1_epi64(budget.min(64 * BLOCK_WORDS) as i64); 2],
        }
    }

    /// Whether every block has its budget.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,bmi1,bmi2,lzcnt,popcnt")]
    pub fn are_done(&self) -> bool {
        let [a, b] = two!(|g| _mm512_cmplt_epu64_mask(self.position[g], self.budget[g]));
        a | b == 0
    }

    /// Has these blocks count as if they had their budget: zeros do for the rest of it.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,bmi1,bmi2,lzcnt,popcnt")]
    pub fn leave_out(&mut self, lanes: [__mmask8; 2]) {
        self.budget = two!(|g| _mm512_maskz_mov_epi64(!lanes[g], self.budget[g]));
    }

    /// Appends `length` bits, at most 64, to each block; those of `bits` above them must be zero.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,bmi1,bmi2,lzcnt,popcnt")]
    pub fn push(&mut self, pages: &mut Pages, bits: [__m512i; 2], length: [__m512i; 2]) {
        if pages.most_words == 1 {
            return self.fill(bits, length);
        }
        let (level, position) = (self.level, self.position);
        let first = two!(|g| in_word(level, bits[g], position[g]));
        let first = two!(|g| _mm512_or_si512(self.pending[g], first[g]));
        let second = two!(|g| in_next_word(level, bits[g], position[g]));
        let next = two!(|g| _mm512_add_epi64(position[g], length[g]));
        let full = two!(|g| {
            let changed = _mm512_xor_si512(position[g], next[g]);
            _mm512_test_epi64_mask(changed, _mm512_set1_epi64(64))
        });
        pages.keep(first, full);
        self.pending = two!(|g| _mm512_mask_mov_epi64(first[g], full[g], second[g]));
        self.position = next;
    }

    /// As [`Self::push`] if only the first word of each block is needed, which is then always the one being filled.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,bmi1,bmi2,lzcnt,popcnt")]
    fn fill(&mut self, bits: [__m512i; 2], length: [__m512i; 2]) {
        for g in 0..2 {
            let bits = sll(bits[g], self.position[g]);
            self.pending[g] = _mm512_or_si512(self.pending[g], bits);
            self.position[g] = _mm512_add_epi64(self.position[g], length[g]);
        }
    }

    /// As [`Self::push`] for up to 128 bits, low and high ones.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,bmi1,bmi2,lzcnt,popcnt")]
    pub fn push_two(
        &mut self,
        pages: &mut Pages,
        low: [__m512i; 2],
        high: [__m512i; 2],
        length: [__m512i; 2],
    ) {
        if pages.most_words == 1 {
            return self.fill(low, length);
        }
        let (level, position) = (self.level, self.position);
        let first = two!(|g| in_word(level, low[g], position[g]));
        let first = two!(|g| _mm512_or_si512(self.pending[g], first[g]));
        let second = two!(|g| across(level, low[g], high[g], position[g]));
        let third = two!(|g| in_next_word(level, high[g], position[g]));
        let next = two!(|g| _mm512_add_epi64(position[g], length[g]));
        let words = two!(|g| {
            let word = _mm512_srli_epi64::<6>(position[g]);
            _mm512_sub_epi64(_mm512_srli_epi64::<6>(next[g]), word)
        });
        let one = two!(|g| _mm512_test_epi64_mask(words[g], words[g]));
        let two = two!(|g| _mm512_test_epi64_mask(words[g], _mm512_set1_epi64(2)));
        pages.keep(first, one);
        pages.keep(second, two);
        let pending = two!(|g| _mm512_mask_mov_epi64(first[g], one[g], second[g]));
        self.pending = two!(|g| _mm512_mask_mov_epi64(pending[g], two[g], third[g]));
        self.position = next;
    }
}

impl Kept {
    #[inline(always)]
    pub fn pair() -> [Kept; 2] {
        // SAFETY: both may be uninitialized in all their parts.
        unsafe { MaybeUninit::uninit().assume_init() }
    }
}

impl<'a> Pages<'a> {
    #[inline(always)]
    pub fn new(budget: usize, kept: &'a mut [Kept; 2]) -> Pages<'a> {
        Pages {
            most_words: budget.min(64 * BLOCK_WORDS).div_ceil(64) as u32,
            words: [0; BATCH],
            count: 0,
            kept,
        }
    }

    /// Keeps the next word of the lanes in `full`.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,bmi1,bmi2,lzcnt,popcnt")]
    fn keep(&mut self, words: [__m512i; 2], full: [__mmask8; 2]) {
        let at = self.count % KEPT;
        for g in 0..2 {
            let row = self.kept[g].words[at].as_mut_ptr();
            // SAFETY: 64 writable bytes.
            unsafe { _mm512_storeu_si512(row.cast(), words[g]) };
            self.kept[g].full[at].write(full[g]);
        }
        self.count += 1;
    }

    /// Makes room for two more words of each block.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,bmi1,bmi2,lzcnt,popcnt")]
    pub fn make_room(&mut self, level: impl Level, paper: &mut impl Paper) {
        if self.count + 2 > KEPT {
            self.pick(level, paper);
        }
    }

    /// Picks out the words that are kept, block by block.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,bmi1,bmi2,lzcnt,popcnt")]
    fn pick(&mut self, level: impl Level, paper: &mut impl Paper) {
        // Of all before any: what has just been stored takes a while to be there.
        let full = two!(|g| times(&self.kept[g].full, self.count));
        let numbers = two!(|g| numbers(level, full[g]));
        let from = self.words;
        for (words, full) in self.words.as_chunks_mut().0.iter_mut().zip(full) {
            *words = count(words, full, self.most_words);
        }
        let mut blocks = from.iter().zip(&self.words).zip(paper.pages());
        for (kept, numbers) in self.kept.iter().zip(&numbers) {
            let kept = kept.words.as_flattened();
            for (numbers, ((from, to), page)) in numbers.iter().zip(blocks.by_ref()) {
                let Some(page) = page.get_mut(*from as usize..*to as usize) else {
                    continue;
                };
                for (word, &number) in page.iter_mut().zip(numbers) {
                    // SAFETY: words were kept at each time whose words have these numbers.
                    *word = unsafe { kept[usize::from(number)].assume_init() };
                }
            }
        }
        self.count = 0;
    }

    #[inline(never)]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,bmi1,bmi2,lzcnt,popcnt")]
    pub fn finish<L: Level>(mut self, pens: &Pens<L>, paper: &mut impl Paper) {
        if self.count > 0 {
            self.pick(pens.level, paper);
        }
        if !paper.goes_on(&self.words) {
            return;
        }
        let mut position = [[0; LANES]; 2];
        let mut pending = [[0; LANES]; 2];
        for g in 0..2 {
            store(pens.position[g], &mut position[g]);
            store(pens.pending[g], &mut pending[g]);
        }
        for g in 0..2 {
            for (lane, i) in BLOCK_OF_LANE.into_iter().enumerate() {
                let block = LANES * g + i;
                let position = position[g][lane] as usize;
                let pen = Pen {
                    at: if self.most_words == 1 {
                        0
                    } else {
                        position / 64
                    },
                    pending: pending[g][lane],
                    fill: position as u32 % 64,
                };
                paper.end(block, self.words[block] as usize, pen);
            }
        }
    }
}

/// How many words there are, no more than `most`, after those at these times.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,bmi1,bmi2,lzcnt,popcnt")]
fn count(words: &[u32; LANES], times: [u32; LANES], most: u32) -> [u32; LANES] {
    std::array::from_fn(|i| most.min(words[i] + times[i].count_ones()))
}

/// The numbers of each block's words at its `times`; what follows them means nothing.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,bmi1,bmi2,lzcnt,popcnt")]
fn numbers(level: impl Level, times: [u32; LANES]) -> [[u8; KEPT]; LANES] {
    let mut numbers = [[0; KEPT]; LANES];
    for (block, (numbers, times)) in numbers.iter_mut().zip(times).enumerate() {
        compress_bytes(level, &NUMBERS[LANE_OF_BLOCK[block]], times, numbers);
    }
    numbers
}

/// The number of each lane's word at each time.
static NUMBERS: [[u8; KEPT]; LANES] = {
    let mut numbers = [[0; KEPT]; LANES];
    let mut number = 0;
    while number < KEPT * LANES {
        numbers[number % LANES][number / LANES] = number as u8;
        number += 1;
    }
    numbers
};

/// For each block, those of the first `count` times at which its lane was one of `lanes`.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,bmi1,bmi2,lzcnt,popcnt")]
fn times(lanes: &[MaybeUninit<u8>; KEPT], count: usize) -> [u32; LANES] {
    let there = u32::MAX.unbounded_shr(32u32.saturating_sub(count as u32));
    // SAFETY: only those bytes are read that have been written, at most 32.
    let lanes = unsafe { _mm256_maskz_loadu_epi8(there, lanes.as_ptr().cast()) };
    eight!(|block| {
        let up = _mm_cvtsi32_si128(7 - LANE_OF_BLOCK[block] as i32);
        _mm256_movepi8_mask(_mm256_sll_epi16(lanes, up))
    })
}

/// Those of eight blocks, lane by lane.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,bmi1,bmi2,lzcnt,popcnt")]
pub fn widen(elements: &[u32; LANES]) -> __m512i {
    // SAFETY: 32 readable bytes.
    let blocks = unsafe { _mm256_loadu_si256(elements.as_ptr().cast()) };
    in_lanes(_mm512_cvtepu32_epi64(blocks))
}

/// A word of each of eight blocks, which are in order → lane by lane.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,bmi1,bmi2,lzcnt,popcnt")]
pub fn in_lanes(blocks: __m512i) -> __m512i {
    let order = BLOCK_OF_LANE.map(|block| block as u64);
    _mm512_permutexvar_epi64(load(&order), blocks)
}

/// Eight words of each of eight blocks, from word `at` on → a register of each.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,bmi1,bmi2,lzcnt,popcnt")]
pub fn turn(planes: &[Planes; LANES], at: usize) -> [__m512i; 8] {
    transpose8(eight!(|lane| {
        let words = planes[BLOCK_OF_LANE[lane]].as_chunks().0;
        load(&words[at / 8])
    }))
}
