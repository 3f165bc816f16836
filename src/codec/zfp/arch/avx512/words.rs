//! Code of short blocks, sixteen in lockstep, a block to a 32-bit lane: in registers, a word of each block in one,
//! through which it is shifted as it is used.

use super::lifting::transpose_elements;
use super::registers;
use super::window::load16;
use crate::codec::zfp::Value;
use crate::codec::zfp::arch::BATCH;
use crate::codec::zfp::shape::Shape;
use crate::codec::zfp::transform::{Headers, LowestExponent};
use crate::codec::zfp::value::Int;
use std::arch::x86_64::*;

/// Bits of the longest blocks that [`Words`] hold.
const LONGEST: usize = 256;

/// The block that a lane holds: lanes of 128 bits and elements of them change places.
pub const fn block(lane: usize) -> usize {
    lane % 4 * 4 + lane / 4
}

/// Up to sixteen blocks of `bits` bits each, one after the other from bit `position` of `bytes` on.
#[derive(Clone, Copy)]
pub struct Blocks<'a> {
    pub bytes: &'a [u8],
    pub position: usize,
    pub bits: usize,
    pub count: usize,
}

impl Blocks<'_> {
    /// Whether [`Words`] hold them.
    #[inline(always)]
    pub fn are_short(&self) -> bool {
        self.span() <= LONGEST
    }

    /// Bits of the longest, from the byte that it begins in.
    #[inline(always)]
    pub fn span(&self) -> usize {
        let before = if self.are_whole_bytes() { 0 } else { 7 };
        self.bits + before
    }

    #[inline(always)]
    fn are_whole_bytes(&self) -> bool {
        (self.position | self.bits).is_multiple_of(8)
    }
}

/// What is left of the code of sixteen blocks.
pub struct Words<const C: usize> {
    /// Zeros follow a block's code.
    pub code: [__m512i; C],
    /// The number of its bits.
    pub left: __m512i,
}

impl<const C: usize> Words<C> {
    /// The code of blocks whose span is at most `32 * C`.
    #[inline]
    #[target_feature(
        enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
    )]
    pub fn open(blocks: &Blocks) -> Self {
        let lanes = block_of_lane();
        let there = _mm512_cmplt_epi32_mask(lanes, _mm512_set1_epi32(blocks.count as i32));
        let mut words = Words {
            code: load(blocks),
            left: _mm512_maskz_set1_epi32(there, blocks.bits as i32),
        };
        if !blocks.are_whole_bytes() {
            let bits = _mm512_mullo_epi32(lanes, _mm512_set1_epi32(blocks.bits as i32 % 8));
            let bits = _mm512_add_epi32(bits, _mm512_set1_epi32(blocks.position as i32 % 8));
            words.shift(_mm512_and_si512(bits, _mm512_set1_epi32(7)));
        }
        if blocks.bits < 32 * C {
            words.forget_beyond();
        }
        words
    }

    /// Makes zeros of what was loaded from beyond the blocks.
    #[inline]
    #[target_feature(
        enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
    )]
    fn forget_beyond(&mut self) {
        for (i, word) in self.code.iter_mut().enumerate() {
            let there = _mm512_subs_epu16(self.left, _mm512_set1_epi32(32 * i as i32));
            let beyond = _mm512_sllv_epi32(_mm512_set1_epi32(-1), there);
            *word = _mm512_andnot_si512(beyond, *word);
        }
    }

    /// Takes the headers off. Returns the biased exponent of each block times two, with a 1 added, or 0 for a block
    /// of zeros, which has nothing left then; and the number of its planes.
    #[inline]
    #[target_feature(
        enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
    )]
    pub fn take_headers<T: Value, S: Shape>(&mut self, headers: &mut Headers) -> [__m512i; 2] {
        let some = _mm512_test_epi32_mask(self.left, self.left);
        let coded = _mm512_mask_test_epi32_mask(some, self.code[0], _mm512_set1_epi32(1));
        let mask = _mm512_set1_epi32((1 << T::HEADER_BITS) - 1);
        let bits = _mm512_maskz_and_epi32(coded, self.code[0], mask);
        let in_order = _mm512_permutexvar_epi32(block_of_lane(), bits);
        // SAFETY: 64 writable bytes.
        unsafe { _mm512_storeu_si512(headers.bits.as_mut_ptr().cast(), in_order) };
        self.left = _mm512_maskz_mov_epi32(coded, self.left);
        self.take(_mm512_maskz_set1_epi32(coded, T::HEADER_BITS as i32));
        let above = _mm512_set1_epi32(LowestExponent::NONE.planes_above::<T, S>());
        let count = _mm512_add_epi32(_mm512_srli_epi32::<1>(bits), above);
        let count = _mm512_max_epi32(count, _mm512_setzero_si512());
        let count = _mm512_min_epi32(count, _mm512_set1_epi32(T::Int::BITS as i32));
        [bits, _mm512_maskz_mov_epi32(coded, count)]
    }

    /// Takes up to 31 bits of each block off its front, or all that are left.
    #[inline]
    #[target_feature(
        enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
    )]
    pub fn take(&mut self, count: __m512i) {
        self.shift(count);
        self.left = _mm512_subs_epu16(self.left, count);
    }

    #[inline]
    #[target_feature(
        enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
    )]
    fn shift(&mut self, count: __m512i) {
        for i in 0..C - 1 {
            self.code[i] = _mm512_shrdv_epi32(self.code[i], self.code[i + 1], count);
        }
        self.code[C - 1] = _mm512_srlv_epi32(self.code[C - 1], count);
    }
}

/// Has lanes go by way of memory: taking them out of registers one by one takes longer.
#[inline(always)]
pub fn in_memory<T>(rows: &mut T) {
    std::hint::black_box(rows);
}

/// [`block`] of each lane, and the lane of each block.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,bmi1,bmi2,lzcnt,popcnt")]
pub fn block_of_lane() -> __m512i {
    _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15)
}

/// Words of each block, from the byte on that it begins in.
#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
fn load<const C: usize>(blocks: &Blocks) -> [__m512i; C] {
    if let Some(code) = load_in_a_row(blocks) {
        return code;
    }
    let mut code = [_mm512_setzero_si512(); C];
    let last = blocks.count.saturating_sub(1);
    for (i, code) in code.chunks_mut(4).enumerate() {
        let words = load_four(blocks.bytes, |block| {
            (blocks.position + block.min(last) * blocks.bits) / 8 + 16 * i
        });
        for (code, word) in code.iter_mut().zip(words) {
            *code = word;
        }
    }
    code
}

/// The same, if there are sixteen blocks of whole bytes that fill these words.
#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
fn load_in_a_row<const C: usize>(blocks: &Blocks) -> Option<[__m512i; C]> {
    if blocks.count != BATCH || !blocks.are_whole_bytes() || blocks.bits != 32 * C {
        return None;
    }
    let all = blocks.bytes.get(blocks.position / 8..)?.get(..64 * C)?;
    let rows = all.as_chunks::<64>().0;
    let mut code = [_mm512_setzero_si512(); C];
    for (code, row) in code.iter_mut().zip(rows) {
        // SAFETY: 64 readable bytes.
        *code = unsafe { _mm512_loadu_si512(row.as_ptr().cast()) };
    }
    match C {
        1 | 2 => {
            let (low, high) = (code[0], code[C - 1]);
            let first = _mm512_mullo_epi32(block_of_lane(), _mm512_set1_epi32(C as i32));
            for (code, word) in code.iter_mut().zip(0..) {
                let which = _mm512_add_epi32(first, _mm512_set1_epi32(word));
                *code = _mm512_permutex2var_epi32(low, which, high);
            }
        }
        4 => code = words_of_rows(code),
        8 => code = words_of_rows(lower_and_upper_halves(code)),
        _ => return None,
    }
    Some(code)
}

/// Four words of each of four blocks in a register → a word of all blocks in one.
#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
fn words_of_rows<const C: usize>(mut rows: [__m512i; C]) -> [__m512i; C] {
    for four in rows.as_chunks_mut().0 {
        *four = transpose_elements(*four);
    }
    rows
}

/// Eight words of each of two blocks in a register → the first four words of four blocks in one, then the others.
#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
fn lower_and_upper_halves<const C: usize>(rows: [__m512i; C]) -> [__m512i; C] {
    let mut halves = rows;
    for (i, [a, b]) in rows.as_chunks().0.iter().enumerate() {
        halves[i] = _mm512_shuffle_i64x2::<0x88>(*a, *b);
        halves[C / 2 + i] = _mm512_shuffle_i64x2::<0xdd>(*a, *b);
    }
    halves
}

/// Four words of each block.
#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
fn load_four(bytes: &[u8], start: impl Fn(usize) -> usize) -> [__m512i; 4] {
    transpose_elements(four!(|r| {
        let lanes = four!(|l| load16(bytes, start(block(4 * l + r))));
        registers::of_lanes(lanes)
    }))
}
