//! The embedded coder, eight blocks in lockstep, one in each 64-bit lane.
//!
//! See [`crate::codec::zfp::encoder`] for the code. Here too its long part is a table look-up, but of
//! four coefficients, in a register; the pieces are then joined two by two. The only branches that depend on
//! the bits ask whether a plane's code is long in any block.
//!
//! Lanes fill their words at different times. So each time that some do, the words of all are kept, with a
//! note of whose are full; after a few times they are transposed, and each block's are compressed and stored
//! together.

use super::bytes;
use super::lifting::transpose8;
use crate::codec::zfp::Value;
use crate::codec::zfp::arch::BATCH;
use crate::codec::zfp::encoder::{self, BLOCK_WORDS, BlockBits, Pen};
use crate::codec::zfp::line;
use crate::codec::zfp::planes::Planes;
use crate::codec::zfp::shape::Shape;
use crate::codec::zfp::transform::Headers;
use crate::codec::zfp::value::Int;
use std::arch::x86_64::*;
use std::marker::PhantomData;

const LANES: usize = 8;

/// [`crate::codec::zfp::arch::Arch::encode`].
#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
pub fn encode<T: Value, S: Shape>(
    headers: &Headers,
    planes: &[Planes; BATCH],
    budget: usize,
    coded: &mut [BlockBits; BATCH],
) {
    let coded = coded.as_chunks_mut::<LANES>().0;
    for (group, coded) in coded.iter_mut().take(S::BATCH / LANES).enumerate() {
        let mut writer = Writer::<T>::new(headers, group, budget, coded);
        match S::DIMS {
            1 => encode_lines(&planes[group], &mut writer),
            _ => encode_squares(&planes.as_chunks().0[group], &mut writer),
        }
        writer.finish();
    }
}

/// How many times words are kept before they are stored.
const KEPT: usize = 8;

/// Bit strings that grow side by side.
struct Writer<'a, T> {
    coded: &'a mut [BlockBits; LANES],
    /// Words that are stored of each lane.
    stored: [usize; LANES],
    /// Words to be stored, but only those of the lanes in `full`, which has the last time's lanes in its low byte.
    kept: [__m512i; KEPT],
    full: u64,
    count: usize,
    /// Bits of each lane, and those of the word that it is filling.
    position: __m512i,
    pending: __m512i,
    budget: __m512i,
    /// Bit planes of each lane.
    planes: __m512i,
    most_planes: u32,
    values: PhantomData<T>,
}

impl<'a, T: Value> Writer<'a, T> {
    /// Starts each block with its header.
    #[inline]
    #[target_feature(
        enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
    )]
    fn new(
        headers: &Headers,
        group: usize,
        budget: usize,
        coded: &'a mut [BlockBits; LANES],
    ) -> Writer<'a, T> {
        let bits: &[u32; LANES] = &headers.bits.as_chunks().0[group];
        let planes: &[u32; LANES] = &headers.planes.as_chunks().0[group];
        // SAFETY: each is 32 readable bytes.
        let (pending, planes) = unsafe {
            (
                _mm512_cvtepu32_epi64(_mm256_loadu_si256(bits.as_ptr().cast())),
                _mm512_cvtepu32_epi64(_mm256_loadu_si256(planes.as_ptr().cast())),
            )
        };
        let coded_lanes = _mm512_test_epi64_mask(pending, pending);
        let header_bits = _mm512_set1_epi64(T::HEADER_BITS.into());
        Writer {
            coded,
            stored: [0; LANES],
            kept: [_mm512_setzero_si512(); KEPT],
            full: 0,
            count: 0,
            position: _mm512_mask_mov_epi64(_mm512_set1_epi64(1), coded_lanes, header_bits),
            pending,
            budget: _mm512_set1_epi64(budget.min(64 * BLOCK_WORDS) as i64),
            planes,
            most_planes: _mm512_reduce_max_epu64(planes) as u32,
            values: PhantomData,
        }
    }

    /// Whether every lane has had plane `k` and all after it, or its budget.
    #[inline]
    #[target_feature(
        enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
    )]
    fn is_done(&self, k: u32) -> bool {
        k >= self.most_planes || _mm512_cmplt_epu64_mask(self.position, self.budget) == 0
    }

    /// Appends `length` bits, at most 64, to each lane; those of `bits` above them must be zero.
    #[inline]
    #[target_feature(
        enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
    )]
    fn push(&mut self, bits: __m512i, length: __m512i) {
        let zero = _mm512_setzero_si512();
        // (These shifts take their counts modulo 64.)
        let first = _mm512_or_si512(self.pending, _mm512_shldv_epi64(bits, zero, self.position));
        let second = _mm512_shldv_epi64(zero, bits, self.position);
        let next = _mm512_add_epi64(self.position, length);
        let word = _mm512_set1_epi64(64);
        let full = _mm512_test_epi64_mask(_mm512_xor_si512(self.position, next), word);
        self.keep(first, full);
        self.pending = _mm512_mask_mov_epi64(first, full, second);
        self.position = next;
    }

    /// As [`Self::push`] for up to 128 bits.
    #[inline]
    #[target_feature(
        enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
    )]
    fn push_two(&mut self, low: __m512i, high: __m512i, length: __m512i) {
        let zero = _mm512_setzero_si512();
        let first = _mm512_or_si512(self.pending, _mm512_shldv_epi64(low, zero, self.position));
        let second = _mm512_shldv_epi64(high, low, self.position);
        let third = _mm512_shldv_epi64(zero, high, self.position);
        let next = _mm512_add_epi64(self.position, length);
        let words = _mm512_sub_epi64(
            _mm512_srli_epi64::<6>(next),
            _mm512_srli_epi64::<6>(self.position),
        );
        let one = _mm512_test_epi64_mask(words, words);
        let two = _mm512_test_epi64_mask(words, _mm512_set1_epi64(2));
        self.keep(first, one);
        self.keep(second, two);
        self.pending = _mm512_mask_mov_epi64(first, one, second);
        self.pending = _mm512_mask_mov_epi64(self.pending, two, third);
        self.position = next;
    }

    /// Keeps the next word of the lanes in `full`.
    #[inline]
    #[target_feature(
        enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
    )]
    fn keep(&mut self, words: __m512i, full: __mmask8) {
        self.kept[self.count % KEPT] = words;
        self.full = self.full << LANES | u64::from(full);
        self.count += 1;
    }

    /// Makes room for two more words of each lane.
    #[inline]
    #[target_feature(
        enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
    )]
    fn make_room(&mut self) {
        if self.count + 2 > KEPT {
            self.store();
        }
    }

    /// Stores the words that are kept, lane by lane.
    #[inline]
    #[target_feature(
        enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
    )]
    fn store(&mut self) {
        let words = transpose8(eight!(|i| self.kept[i]));
        // The first time in the top byte; then, for each lane, which times.
        let full = self.full << (LANES * (KEPT - self.count) % 64);
        let full = _mm512_castsi128_si512(_mm_cvtsi64_si128(full as i64));
        let full = _mm512_castsi512_si128(bytes::bytes_of_bits(full));
        let full = _mm_cvtsi128_si64(full).to_le_bytes();
        for (lane, words) in words.into_iter().enumerate() {
            let at = self.stored[lane].min(BLOCK_WORDS - KEPT);
            let target: &mut [u64] = &mut self.coded[lane].words[at..at + KEPT];
            let words = _mm512_maskz_compress_epi64(full[lane], words);
            // SAFETY: 64 writable bytes.
            unsafe { _mm512_storeu_si512(target.as_mut_ptr().cast(), words) };
            self.stored[lane] += full[lane].count_ones() as usize;
        }
        self.full = 0;
        self.count = 0;
    }

    #[inline]
    #[target_feature(
        enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
    )]
    fn finish(mut self) {
        if self.full != 0 {
            self.store();
        }
        let mut lanes = [[0u64; LANES]; 2];
        for (lanes, v) in lanes.iter_mut().zip([self.position, self.pending]) {
            // SAFETY: 64 writable bytes.
            unsafe { _mm512_storeu_si512(lanes.as_mut_ptr().cast(), v) }
        }
        for (i, block) in self.coded.iter_mut().enumerate() {
            block.pen = Pen {
                at: lanes[0][i] as usize / 64,
                pending: lanes[1][i],
                fill: lanes[0][i] as u32 % 64,
            };
        }
    }
}

/// Eight words of each block → for each word, those of all blocks.
#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
fn load_words(planes: &[Planes; LANES], at: usize) -> [__m512i; 8] {
    transpose8(eight!(|lane| {
        let words: &[u64; 8] = &planes[lane].as_chunks().0[at / 8];
        // SAFETY: 64 readable bytes.
        unsafe { _mm512_loadu_si512(words.as_ptr().cast()) }
    }))
}

/// Bits moved up within 64 bits, none of them out of them: a rotation, which compilers leave alone where
/// they would guard a shift against large counts.
#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
fn shl64(bits: __m512i, count: __m512i) -> __m512i {
    _mm512_rolv_epi64(bits, count)
}

/// As [`shl64`], within 32 bits.
#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
fn shl32(bits: __m512i, count: __m512i) -> __m512i {
    _mm512_rolv_epi32(bits, count)
}

/// The low 16 bits of each 32, each one-bit followed by another 1.
#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
pub fn double16(bits: __m512i) -> __m512i {
    let nibbles = _mm512_multishift_epi64_epi8(_mm512_set1_epi64(0x2c28_2420_0c08_0400), bits);
    let nibbles = _mm512_and_si512(nibbles, _mm512_set1_epi8(0x0f));
    let (codes, lengths) = double4(nibbles);
    join_bytes(codes, lengths).0
}

/// The low 32 bits of each lane, each one-bit followed by another 1.
#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
pub fn double32(bits: __m512i) -> __m512i {
    let nibbles = _mm512_multishift_epi64_epi8(_mm512_set1_epi64(0x1c18_1410_0c08_0400), bits);
    let nibbles = _mm512_and_si512(nibbles, _mm512_set1_epi8(0x0f));
    let (codes, lengths) = double4(nibbles);
    let (codes, lengths) = join_bytes(codes, lengths);
    join_halves(codes, lengths).0
}

/// Nibbles, each one-bit followed by another 1.
static DOUBLED: [u8; 16] = {
    let mut table = [0; 16];
    let mut nibble = 0;
    while nibble < 16 {
        table[nibble] = encoder::DOUBLED[nibble] as u8;
        nibble += 1;
    }
    table
};

/// Bytes below 16, each one-bit followed by another 1; and the lengths that gives, from 4 to 8.
#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
fn double4(nibbles: __m512i) -> (__m512i, __m512i) {
    let lengths = _mm_setr_epi8(4, 5, 5, 6, 5, 6, 6, 7, 5, 6, 6, 7, 6, 7, 7, 8);
    // SAFETY: 16 readable bytes.
    let codes = unsafe { _mm_loadu_si128(DOUBLED.as_ptr().cast()) };
    (
        _mm512_shuffle_epi8(_mm512_broadcast_i32x4(codes), nibbles),
        _mm512_shuffle_epi8(_mm512_broadcast_i32x4(lengths), nibbles),
    )
}

/// Bit strings in bytes → in each 32 bits, the four of them one after another; and their lengths.
#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
fn join_bytes(codes: __m512i, lengths: __m512i) -> (__m512i, __m512i) {
    let low = _mm512_and_si512(lengths, _mm512_set1_epi16(0xff));
    let upper = _mm512_sllv_epi16(_mm512_srli_epi16::<8>(codes), low);
    let codes = _mm512_or_si512(_mm512_and_si512(codes, _mm512_set1_epi16(0xff)), upper);
    let lengths = _mm512_maddubs_epi16(lengths, _mm512_set1_epi8(1));
    let low = _mm512_and_si512(lengths, _mm512_set1_epi32(0xffff));
    let upper = shl32(_mm512_srli_epi32::<16>(codes), low);
    let codes = _mm512_or_si512(_mm512_and_si512(codes, _mm512_set1_epi32(0xffff)), upper);
    (codes, _mm512_madd_epi16(lengths, _mm512_set1_epi16(1)))
}

/// Bit strings in 32 bits → in each 64 bits, both of them one after the other; and their length.
#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
fn join_halves(codes: __m512i, lengths: __m512i) -> (__m512i, __m512i) {
    let half = _mm512_set1_epi64(0xffff_ffff);
    let low = _mm512_and_si512(lengths, half);
    let upper = shl64(_mm512_srli_epi64::<32>(codes), low);
    let codes = _mm512_or_si512(_mm512_and_si512(codes, half), upper);
    (
        codes,
        _mm512_add_epi64(low, _mm512_srli_epi64::<32>(lengths)),
    )
}

#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
fn encode_squares<T: Value>(planes: &[Planes; LANES], writer: &mut Writer<T>) {
    let mut significant = _mm512_setzero_si512();
    for many in (0..T::Int::BITS).step_by(32) {
        if writer.is_done(many) {
            return;
        }
        let words = load_words(planes, many as usize / 4);
        for (k, &word) in (many..).step_by(4).zip(&words) {
            writer.make_room();
            significant = encode_square_planes(word, k, significant, writer);
            if writer.is_done(k + 4) {
                return;
            }
        }
    }
}

/// Four planes of eight 2-D blocks; returns how many coefficients are significant now.
#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
fn encode_square_planes<T: Value>(
    word: __m512i,
    k: u32,
    significant: __m512i,
    writer: &mut Writer<T>,
) -> __m512i {
    let pick = _mm_setr_epi8(0, 1, -1, -1, 2, 3, -1, -1, 8, 9, -1, -1, 10, 11, -1, -1);
    let pair = _mm512_shuffle_epi8(word, _mm512_broadcast_i32x4(pick));
    let (low, length, significant) = encode_square_pair(pair, k, significant, writer.planes);
    let word = _mm512_srli_epi64::<32>(word);
    let pair = _mm512_shuffle_epi8(word, _mm512_broadcast_i32x4(pick));
    let (next, more, significant) = encode_square_pair(pair, k + 2, significant, writer.planes);
    let high = _mm512_srlv_epi64(next, _mm512_sub_epi64(_mm512_set1_epi64(64), length));
    let low = _mm512_or_si512(low, _mm512_sllv_epi64(next, length));
    writer.push_two(low, high, _mm512_add_epi64(length, more));
    significant
}

/// Two planes, each in 32 bits: code, length, and how many coefficients are significant after it.
#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
fn encode_square_pair(
    pair: __m512i,
    k: u32,
    significant: __m512i,
    planes: __m512i,
) -> (__m512i, __m512i, __m512i) {
    let size = _mm512_set1_epi32(16);
    let word = _mm512_set1_epi32(32);
    let one = _mm512_set1_epi32(1);
    // What the first plane makes significant is so for the second.
    let reach = _mm512_sub_epi32(word, _mm512_lzcnt_epi32(pair));
    let before = _mm512_max_epu32(significant, _mm512_slli_epi64::<32>(reach));
    let after = _mm512_shuffle_epi32::<0xf5>(_mm512_max_epu32(before, reach));

    let known = _mm512_andnot_si512(_mm512_sllv_epi32(_mm512_set1_epi32(-1), before), pair);
    let rest = _mm512_srlv_epi32(pair, before);
    let any = _mm512_test_epi32_mask(rest, rest);
    let leading = _mm512_lzcnt_epi32(rest);
    let reach = _mm512_sub_epi32(word, leading);
    let others = _mm512_xor_si512(
        rest,
        _mm512_srlv_epi32(_mm512_set1_epi32(i32::MIN), leading),
    );
    let nibbles = _mm512_multishift_epi64_epi8(_mm512_set1_epi64(0x2c28_2420_0c08_0400), others);
    let (codes, lengths) = double4(_mm512_and_si512(nibbles, _mm512_set1_epi8(0x0f)));
    let (code, ones) = join_bytes(codes, lengths);
    // `ones` is 16 too many. As in `encode_cube_plane` from here on.
    let flag = _mm512_maskz_mov_epi32(any, one);
    let code = _mm512_or_si512(_mm512_slli_epi32::<1>(code), flag);
    let last = _mm512_sub_epi32(_mm512_add_epi32(reach, ones), size);
    let open = _mm512_cmplt_epu32_mask(_mm512_add_epi32(before, reach), size);
    let mark = _mm512_maskz_mov_epi32(open, flag);
    let code = _mm512_or_si512(code, shl32(mark, last));
    let length = _mm512_add_epi32(last, flag);
    let length = _mm512_mask_add_epi32(last, open, length, one);
    let code = _mm512_or_si512(known, shl32(code, before));

    let index = _mm512_set1_epi64((u64::from(k + 1) << 32 | u64::from(k)) as i64);
    let limit = _mm512_or_si512(planes, _mm512_slli_epi64::<32>(planes));
    let coded = _mm512_cmpgt_epu32_mask(limit, index);
    let code = _mm512_maskz_mov_epi32(coded, code);
    let length = _mm512_maskz_add_epi32(coded, before, length);
    let (code, length) = join_halves(code, length);
    (code, length, after)
}

#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
fn encode_lines<T: Value>(planes: &Planes, writer: &mut Writer<T>) {
    let mut seen = _mm512_setzero_si512();
    for (k, words) in (0..T::Int::BITS).step_by(16).zip(planes.as_chunks::<8>().0) {
        if writer.is_done(k) {
            return;
        }
        // SAFETY: 64 readable bytes.
        let words = unsafe { _mm512_loadu_si512(words.as_ptr().cast()) };
        let nibble = _mm512_set1_epi8(0x0f);
        writer.make_room();
        seen = encode_line_planes(_mm512_and_si512(words, nibble), k, seen, writer);
        if writer.is_done(k + 8) {
            return;
        }
        let upper = _mm512_and_si512(_mm512_srli_epi16::<4>(words), nibble);
        seen = encode_line_planes(upper, k + 8, seen, writer);
    }
}

/// The code of one plane of a 1-D block and its length, for each plane and each number of coefficients
/// that were significant before.
static LINE_CODES: ([u8; 128], [u8; 128]) = line_codes();

const fn line_codes() -> ([u8; 128], [u8; 128]) {
    let (mut codes, mut lengths) = ([0; 128], [0; 128]);
    let mut i = 0;
    while i < 5 * 16 {
        let (code, length, _) = line::plane_code(i % 16, i / 16);
        codes[i as usize] = code as u8;
        lengths[i as usize] = length as u8;
        i += 1;
    }
    (codes, lengths)
}

/// Eight planes of eight 1-D blocks, a plane a byte. `seen` is, in every byte, the union of all planes
/// before; returns it.
#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
fn encode_line_planes<T: Value>(
    planes: __m512i,
    k: u32,
    seen: __m512i,
    writer: &mut Writer<T>,
) -> __m512i {
    let union = _mm512_or_si512(planes, _mm512_slli_epi64::<8>(planes));
    let union = _mm512_or_si512(union, _mm512_slli_epi64::<16>(union));
    let union = _mm512_or_si512(union, _mm512_slli_epi64::<32>(union));
    let before = _mm512_or_si512(seen, _mm512_slli_epi64::<8>(union));
    let last = _mm512_broadcast_i32x4(_mm_setr_epi8(
        7, 7, 7, 7, 7, 7, 7, 7, 15, 15, 15, 15, 15, 15, 15, 15,
    ));
    let after = _mm512_or_si512(seen, _mm512_shuffle_epi8(union, last));
    // 16 times the number of significant coefficients.
    let states = _mm_setr_epi8(
        0, 16, 32, 32, 48, 48, 48, 48, 64, 64, 64, 64, 64, 64, 64, 64,
    );
    let state = _mm512_shuffle_epi8(_mm512_broadcast_i32x4(states), before);
    let index = _mm512_or_si512(state, planes);
    let codes = look_up(&LINE_CODES.0, index);
    let lengths = look_up(&LINE_CODES.1, index);
    let steps = _mm512_set1_epi64(0x0706_0504_0302_0100);
    let number = _mm512_add_epi8(_mm512_set1_epi8(k as i8), steps);
    let limit = _mm512_shuffle_epi8(
        writer.planes,
        _mm512_broadcast_i32x4(_mm_setr_epi8(
            0, 0, 0, 0, 0, 0, 0, 0, 8, 8, 8, 8, 8, 8, 8, 8,
        )),
    );
    let coded = _mm512_cmpgt_epu8_mask(limit, number);
    let (codes, lengths) = join_bytes(
        _mm512_maskz_mov_epi8(coded, codes),
        _mm512_maskz_mov_epi8(coded, lengths),
    );
    let (code, length) = join_halves(codes, lengths);
    writer.push(code, length);
    after
}

#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
fn look_up(table: &[u8; 128], index: __m512i) -> __m512i {
    let halves = table.as_chunks::<64>().0;
    // SAFETY: each half is 64 readable bytes.
    unsafe {
        let low = _mm512_loadu_si512(halves[0].as_ptr().cast());
        let high = _mm512_loadu_si512(halves[1].as_ptr().cast());
        _mm512_permutex2var_epi8(low, index, high)
    }
}
