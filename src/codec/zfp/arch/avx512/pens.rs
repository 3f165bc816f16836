//! Bit strings that grow side by side, one of each of sixteen blocks, one in each 64-bit lane of two registers.
//!
//! Lanes fill their words at different times. So each time the words of all lanes are kept, with a note of which are
//! full; in the end each block's are picked out. (Storing each block's word each time takes longer: a processor
//! stores one a cycle.)

use super::bytes::{self, Permutation};
use super::lifting::transpose8;
use super::registers::{load, store};
use super::shifts::{shld, sll};
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

/// Times that words are kept before they are picked out.
const KEPT: usize = 64;

/// Where the next bits go. Apart from the words, so that it can stay in registers.
pub struct Pens {
    /// Bits of each block so far, and those of the words they are filling.
    position: [__m512i; 2],
    pending: [__m512i; 2],
    budget: [__m512i; 2],
}

/// Where the words of sixteen blocks go.
pub trait Paper {
    /// Those of one block.
    fn page(&mut self, block: usize) -> &mut [u64];
    /// The end of a block, of which `words` words, whole ones but no more than its budget, are on its page.
    fn end(&mut self, block: usize, words: usize, pen: Pen);
}

impl Paper for [BlockBits; BATCH] {
    #[inline(always)]
    fn page(&mut self, block: usize) -> &mut [u64] {
        &mut self[block].words
    }

    #[inline(always)]
    fn end(&mut self, block: usize, _words: usize, pen: Pen) {
        self[block].pen = pen;
    }
}

/// Blocks of half a word, one after the other.
pub struct Slips<'a> {
    words: &'a mut [u64; BATCH / 2],
    /// (The only word of a block is always the one being filled.)
    page: [u64; 1],
}

impl<'a> Slips<'a> {
    pub fn new(words: &'a mut [u64; BATCH / 2]) -> Self {
        Slips { words, page: [0] }
    }
}

impl Paper for Slips<'_> {
    #[inline(always)]
    fn page(&mut self, _block: usize) -> &mut [u64] {
        &mut self.page
    }

    #[inline(always)]
    fn end(&mut self, block: usize, _words: usize, pen: Pen) {
        let shift = 32 * (block % 2);
        let other = u64::from(u32::MAX) << (32 - shift);
        let word = &mut self.words[block / 2];
        *word = *word & other | (pen.pending & u64::from(u32::MAX)) << shift;
    }
}

/// The pages of blocks of whole words lie one after the other.
pub struct Ream<'a>(pub &'a mut [u64]);

impl Paper for Ream<'_> {
    #[inline(always)]
    fn page(&mut self, block: usize) -> &mut [u64] {
        let words = self.0.len() / BATCH;
        &mut self.0[words * block..][..words]
    }

    #[inline(always)]
    fn end(&mut self, block: usize, words: usize, pen: Pen) {
        if let [next, rest @ ..] = &mut self.page(block)[words..] {
            *next = pen.pending;
            rest.fill(0);
        }
    }
}

/// The words of sixteen blocks, until they are put on paper.
pub struct Pages<'a> {
    /// Words that may be needed of each block, and those that have been picked out.
    most_words: usize,
    words: [usize; BATCH],
    /// How many times words have been kept since.
    count: usize,
    kept: &'a mut [Kept; 2],
}

/// Words of eight blocks.
#[repr(align(64))]
pub struct Kept {
    words: [MaybeUninit<[u64; LANES]>; KEPT],
    /// For each time, which of them are full.
    full: [MaybeUninit<u8>; KEPT],
}

impl Pens {
    /// Starts each block with its header.
    #[inline]
    #[target_feature(
        enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
    )]
    pub fn new<T: Value>(headers: &Headers, budget: usize) -> Pens {
        let pending = two!(|g| widen(&headers.bits.as_chunks().0[g]));
        let header_bits = _mm512_set1_epi64(T::HEADER_BITS.into());
        Pens {
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
    #[target_feature(
        enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
    )]
    pub fn are_done(&self) -> bool {
        let [a, b] = two!(|g| _mm512_cmplt_epu64_mask(self.position[g], self.budget[g]));
        a | b == 0
    }

    /// Has these blocks count as if they had their budget: zeros do for the rest of it.
    #[inline]
    #[target_feature(
        enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
    )]
    pub fn leave_out(&mut self, lanes: [__mmask8; 2]) {
        self.budget = two!(|g| _mm512_maskz_mov_epi64(!lanes[g], self.budget[g]));
    }

    /// Appends `length` bits, at most 64, to each block; those of `bits` above them must be zero.
    #[inline]
    #[target_feature(
        enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
    )]
    pub fn push(&mut self, pages: &mut Pages, bits: [__m512i; 2], length: [__m512i; 2]) {
        if pages.most_words == 1 {
            return self.fill(bits, length);
        }
        let zero = _mm512_setzero_si512();
        let position = self.position;
        let first = two!(|g| _mm512_or_si512(self.pending[g], shld(bits[g], zero, position[g])));
        let second = two!(|g| shld(zero, bits[g], position[g]));
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
    #[target_feature(
        enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
    )]
    fn fill(&mut self, bits: [__m512i; 2], length: [__m512i; 2]) {
        for g in 0..2 {
            let bits = sll(bits[g], self.position[g]);
            self.pending[g] = _mm512_or_si512(self.pending[g], bits);
            self.position[g] = _mm512_add_epi64(self.position[g], length[g]);
        }
    }

    /// As [`Self::push`] for up to 128 bits, low and high ones.
    #[inline]
    #[target_feature(
        enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
    )]
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
        let zero = _mm512_setzero_si512();
        let position = self.position;
        let first = two!(|g| _mm512_or_si512(self.pending[g], shld(low[g], zero, position[g])));
        let second = two!(|g| shld(high[g], low[g], position[g]));
        let third = two!(|g| shld(zero, high[g], position[g]));
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
            most_words: budget.min(64 * BLOCK_WORDS).div_ceil(64),
            words: [0; BATCH],
            count: 0,
            kept,
        }
    }

    /// Keeps the next word of the lanes in `full`.
    #[inline]
    #[target_feature(
        enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
    )]
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
    #[target_feature(
        enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
    )]
    pub fn make_room(&mut self, paper: &mut impl Paper) {
        if self.count + 2 > KEPT {
            self.pick(paper);
        }
    }

    /// Picks out the words that are kept, block by block.
    #[inline]
    #[target_feature(
        enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
    )]
    fn pick(&mut self, paper: &mut impl Paper) {
        // Of both before either: what has just been stored piece by piece takes a while to be there.
        let full = two!(|g| times(&self.kept[g].full, self.count));
        for (g, full) in full.into_iter().enumerate() {
            for (mut times, (lane, i)) in
                full.into_iter().zip(BLOCK_OF_LANE.into_iter().enumerate())
            {
                let block = LANES * g + i;
                let words = &mut self.words[block];
                let until = self.most_words.min(*words + times.count_ones() as usize);
                for word in &mut paper.page(block)[*words..until] {
                    let time = times.trailing_zeros() as usize % KEPT;
                    // SAFETY: words were kept at each of these times.
                    *word = unsafe { self.kept[g].words[time].assume_init_ref() }[lane];
                    times &= times.wrapping_sub(1);
                }
                *words = until;
            }
        }
        self.count = 0;
    }

    #[inline(never)]
    #[target_feature(
        enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
    )]
    pub fn finish(mut self, pens: &Pens, paper: &mut impl Paper) {
        if self.count > 0 {
            self.pick(paper);
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
                paper.end(block, self.words[block], pen);
            }
        }
    }
}

/// For each lane, the first `count` times at which it was one of `lanes`.
#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
fn times(lanes: &[MaybeUninit<u8>; KEPT], count: usize) -> [u64; LANES] {
    let there = u64::MAX.unbounded_shr(64u32.saturating_sub(count as u32));
    // SAFETY: only those bytes are read that have been written, at most 64.
    let lanes = unsafe { _mm512_maskz_loadu_epi8(there, lanes.as_ptr().cast()) };
    let mut times = [0; LANES];
    store(
        BY_LANE.apply(bytes::bits_of_bytes(REVERSED.apply(lanes))),
        &mut times,
    );
    times
}

/// Each eight bytes backwards.
static REVERSED: Permutation = Permutation::of(reversed());
/// Byte `j` of each eight bytes to the eight bytes `j`.
static BY_LANE: Permutation = Permutation::of(by_lane());

const fn reversed() -> [u8; 64] {
    let mut table = [0; 64];
    let mut i = 0;
    while i < 64 {
        table[i] = i as u8 ^ 7;
        i += 1;
    }
    table
}

const fn by_lane() -> [u8; 64] {
    let mut table = [0; 64];
    let mut i = 0;
    while i < 64 {
        table[i] = (i % 8 * 8 + 7 - i / 8) as u8;
        i += 1;
    }
    table
}

/// Those of eight blocks, lane by lane.
#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
pub fn widen(elements: &[u32; LANES]) -> __m512i {
    // SAFETY: 32 readable bytes.
    let blocks = unsafe { _mm256_loadu_si256(elements.as_ptr().cast()) };
    in_lanes(_mm512_cvtepu32_epi64(blocks))
}

/// A word of each of eight blocks, which are in order → lane by lane.
#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
pub fn in_lanes(blocks: __m512i) -> __m512i {
    let order = BLOCK_OF_LANE.map(|block| block as u64);
    _mm512_permutexvar_epi64(load(&order), blocks)
}

/// Eight words of each of eight blocks, from word `at` on → a register of each.
#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
pub fn turn(planes: &[Planes; LANES], at: usize) -> [__m512i; 8] {
    transpose8(eight!(|lane| {
        let words = planes[BLOCK_OF_LANE[lane]].as_chunks().0;
        load(&words[at / 8])
    }))
}
