//! The embedded coder, eight blocks in lockstep, one in each 64-bit lane.
//!
//! See [`crate::codec::zfp::encoder`] for the code. Here too its long part is a table look-up, but of
//! four coefficients, in a register; the pieces are then joined two by two. There is no branch that
//! depends on the bits, but for one that is taken when a plane's one-bits are far apart.

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
        let mut writer = Writer::new::<T>(headers, group, budget, coded);
        match S::DIMS {
            1 => encode_lines::<T>(&planes[group], &mut writer),
            2 => encode_squares::<T>(&planes.as_chunks().0[group], &mut writer),
            _ => encode_cubes::<T>(&planes.as_chunks().0[group], &mut writer),
        }
        writer.finish();
    }
}

/// Bit strings that grow side by side.
struct Writer<'a> {
    coded: &'a mut [BlockBits; LANES],
    /// The word that each lane is filling, its bits so far, and their number.
    at: __m512i,
    pending: __m512i,
    fill: __m512i,
    budget: __m512i,
    /// Bit planes of each lane.
    planes: __m512i,
    most_planes: u32,
}

impl<'a> Writer<'a> {
    /// Starts each block with its header.
    #[inline]
    #[target_feature(
        enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
    )]
    fn new<T: Value>(
        headers: &Headers,
        group: usize,
        budget: usize,
        coded: &'a mut [BlockBits; LANES],
    ) -> Writer<'a> {
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
            at: _mm512_setzero_si512(),
            pending,
            fill: _mm512_mask_mov_epi64(_mm512_set1_epi64(1), coded_lanes, header_bits),
            budget: _mm512_set1_epi64(budget.min(64 * BLOCK_WORDS) as i64),
            planes,
            most_planes: _mm512_reduce_max_epu64(planes) as u32,
        }
    }

    /// Whether every lane has had plane `k` and all after it, or its budget.
    #[inline]
    #[target_feature(
        enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
    )]
    fn is_done(&self, k: u32) -> bool {
        let length = _mm512_add_epi64(_mm512_slli_epi64::<6>(self.at), self.fill);
        k >= self.most_planes || _mm512_cmplt_epu64_mask(length, self.budget) == 0
    }

    /// Appends `length` bits, at most 64, to each lane; those of `bits` above them must be zero.
    #[inline]
    #[target_feature(
        enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
    )]
    fn push(&mut self, bits: __m512i, length: __m512i) {
        let filled = _mm512_or_si512(self.pending, _mm512_sllv_epi64(bits, self.fill));
        let room = _mm512_sub_epi64(_mm512_set1_epi64(64), self.fill);
        let carry = _mm512_srlv_epi64(bits, room);
        self.store(filled, carry);
        let next = _mm512_add_epi64(self.fill, length);
        let full = _mm512_cmpge_epu64_mask(next, _mm512_set1_epi64(64));
        self.pending = _mm512_mask_mov_epi64(filled, full, carry);
        self.at = _mm512_add_epi64(self.at, _mm512_srli_epi64::<6>(next));
        self.fill = _mm512_and_si512(next, _mm512_set1_epi64(63));
    }

    /// As [`Self::push`] for up to 128 bits.
    #[inline]
    #[target_feature(
        enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
    )]
    fn push_two(&mut self, low: __m512i, high: __m512i, length: __m512i) {
        let room = _mm512_sub_epi64(_mm512_set1_epi64(64), self.fill);
        let first = _mm512_or_si512(self.pending, _mm512_sllv_epi64(low, self.fill));
        let second = _mm512_or_si512(
            _mm512_srlv_epi64(low, room),
            _mm512_sllv_epi64(high, self.fill),
        );
        let third = _mm512_srlv_epi64(high, room);
        self.store(first, second);
        let next = _mm512_add_epi64(self.fill, length);
        let one = _mm512_cmpge_epu64_mask(next, _mm512_set1_epi64(64));
        let two = _mm512_cmpge_epu64_mask(next, _mm512_set1_epi64(128));
        self.pending = _mm512_mask_mov_epi64(first, one, second);
        self.pending = _mm512_mask_mov_epi64(self.pending, two, third);
        self.at = _mm512_add_epi64(self.at, _mm512_srli_epi64::<6>(next));
        self.fill = _mm512_and_si512(next, _mm512_set1_epi64(63));
    }

    /// Stores each lane's current word and the next one. (A scatter would be slower.)
    #[inline]
    #[target_feature(
        enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
    )]
    fn store(&mut self, first: __m512i, second: __m512i) {
        const SIZE: i64 = size_of::<BlockBits>() as i64;
        let last = _mm512_set1_epi64(BLOCK_WORDS as i64 - 2);
        let at = _mm512_slli_epi64::<3>(_mm512_min_epu64(self.at, last));
        let lanes = [0, 1, 2, 3, 4, 5, 6, 7].map(|lane| lane * SIZE);
        let even = _mm512_unpacklo_epi64(first, second);
        let odd = _mm512_unpackhi_epi64(first, second);
        let mut offsets = [0i64; LANES];
        let base: *mut u8 = self.coded.as_mut_ptr().cast();
        // SAFETY: `BlockBits` starts with its words. The offsets are at most that of the word before a lane's
        // last, so the two words stored there are inside the lane.
        unsafe {
            let all = _mm512_add_epi64(at, _mm512_loadu_si512(lanes.as_ptr().cast()));
            _mm512_storeu_si512(offsets.as_mut_ptr().cast(), all);
            let word = |lane: usize| base.offset(offsets[lane] as isize).cast::<__m128i>();
            _mm_storeu_si128(word(0), _mm512_castsi512_si128(even));
            _mm_storeu_si128(word(1), _mm512_castsi512_si128(odd));
            _mm_storeu_si128(word(2), _mm512_extracti64x2_epi64::<1>(even));
            _mm_storeu_si128(word(3), _mm512_extracti64x2_epi64::<1>(odd));
            _mm_storeu_si128(word(4), _mm512_extracti64x2_epi64::<2>(even));
            _mm_storeu_si128(word(5), _mm512_extracti64x2_epi64::<2>(odd));
            _mm_storeu_si128(word(6), _mm512_extracti64x2_epi64::<3>(even));
            _mm_storeu_si128(word(7), _mm512_extracti64x2_epi64::<3>(odd));
        }
    }

    #[inline]
    #[target_feature(
        enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
    )]
    fn finish(self) {
        let mut lanes = [[0u64; LANES]; 3];
        for (lanes, v) in lanes.iter_mut().zip([self.at, self.pending, self.fill]) {
            // SAFETY: 64 writable bytes.
            unsafe { _mm512_storeu_si512(lanes.as_mut_ptr().cast(), v) }
        }
        for (i, block) in self.coded.iter_mut().enumerate() {
            block.pen = Pen {
                at: lanes[0][i] as usize,
                pending: lanes[1][i],
                fill: lanes[2][i] as u32,
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

#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
fn encode_cubes<T: Value>(planes: &[Planes; LANES], writer: &mut Writer) {
    let mut significant = _mm512_setzero_si512();
    for eight in (0..T::Int::BITS).step_by(8) {
        if writer.is_done(eight) {
            return;
        }
        let words = load_words(planes, eight as usize);
        for (k, plane) in (eight..).zip(words) {
            significant = encode_cube_plane(plane, k, significant, writer);
            if writer.is_done(k + 1) {
                return;
            }
        }
    }
}

/// One plane of eight 3-D blocks; returns how many coefficients are significant now.
#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
fn encode_cube_plane(plane: __m512i, k: u32, significant: __m512i, writer: &mut Writer) -> __m512i {
    let one = _mm512_set1_epi64(1);
    let size = _mm512_set1_epi64(64);
    let known = _mm512_andnot_si512(_mm512_sllv_epi64(_mm512_set1_epi64(-1), significant), plane);
    let rest = _mm512_srlv_epi64(plane, significant);
    let any = _mm512_test_epi64_mask(rest, rest);
    let leading = _mm512_lzcnt_epi64(rest);
    let reach = _mm512_sub_epi64(size, leading);
    let top = _mm512_srlv_epi64(_mm512_set1_epi64(i64::MIN), leading);
    let others = _mm512_xor_si512(rest, top);
    let (mut low, mut ones) = double32(others);
    let mut high = _mm512_setzero_si512();
    let far = _mm512_srli_epi64::<32>(others);
    if _mm512_test_epi64_mask(far, far) != 0 {
        let (upper, upper_ones) = double32(far);
        let shift = _mm512_add_epi64(ones, _mm512_set1_epi64(32));
        low = _mm512_or_si512(low, _mm512_sllv_epi64(upper, shift));
        high = _mm512_srlv_epi64(upper, _mm512_sub_epi64(size, shift));
        ones = _mm512_add_epi64(ones, upper_ones);
    }
    // Ahead of it all, whether there is anything.
    let flag = _mm512_maskz_mov_epi64(any, one);
    high = _mm512_or_si512(_mm512_slli_epi64::<1>(high), _mm512_srli_epi64::<63>(low));
    low = _mm512_or_si512(_mm512_slli_epi64::<1>(low), flag);
    let length = _mm512_add_epi64(_mm512_add_epi64(reach, ones), flag);
    let now = _mm512_add_epi64(significant, reach);
    // The last one-bit and the 0 after it, unless it is the block's last coefficient's.
    let open = _mm512_cmplt_epu64_mask(now, size);
    let last = _mm512_sub_epi64(length, flag);
    let mark = _mm512_maskz_mov_epi64(open, flag);
    low = _mm512_or_si512(low, _mm512_sllv_epi64(mark, last));
    high = _mm512_or_si512(high, _mm512_sllv_epi64(mark, _mm512_sub_epi64(last, size)));
    let length = _mm512_mask_add_epi64(last, open, length, one);
    // What is known, then the rest.
    let first = _mm512_or_si512(known, _mm512_sllv_epi64(low, significant));
    let second = _mm512_or_si512(
        _mm512_srlv_epi64(low, _mm512_sub_epi64(size, significant)),
        _mm512_sllv_epi64(high, significant),
    );
    let coded = _mm512_cmpgt_epu64_mask(writer.planes, _mm512_set1_epi64(k.into()));
    writer.push_two(
        _mm512_maskz_mov_epi64(coded, first),
        _mm512_maskz_mov_epi64(coded, second),
        _mm512_maskz_add_epi64(coded, significant, length),
    );
    now
}

/// The low 32 bits of each lane, each one-bit followed by another 1; and the number of one-bits.
#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
fn double32(bits: __m512i) -> (__m512i, __m512i) {
    let nibbles = _mm512_multishift_epi64_epi8(_mm512_set1_epi64(0x1c18_1410_0c08_0400), bits);
    let nibbles = _mm512_and_si512(nibbles, _mm512_set1_epi8(0x0f));
    let (codes, lengths) = double4(nibbles);
    let (codes, lengths) = join_bytes(codes, lengths);
    let (code, length) = join_halves(codes, lengths);
    (code, _mm512_sub_epi64(length, _mm512_set1_epi64(32)))
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
    let upper = _mm512_sllv_epi32(_mm512_srli_epi32::<16>(codes), low);
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
    let upper = _mm512_sllv_epi64(_mm512_srli_epi64::<32>(codes), low);
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
fn encode_squares<T: Value>(planes: &[Planes; LANES], writer: &mut Writer) {
    let mut significant = _mm512_setzero_si512();
    for many in (0..T::Int::BITS).step_by(32) {
        if writer.is_done(many) {
            return;
        }
        let words = load_words(planes, many as usize / 4);
        for (k, word) in (many..).step_by(4).zip(words) {
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
fn encode_square_planes(
    word: __m512i,
    k: u32,
    significant: __m512i,
    writer: &mut Writer,
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
    let code = _mm512_or_si512(code, _mm512_sllv_epi32(mark, last));
    let length = _mm512_add_epi32(last, flag);
    let length = _mm512_mask_add_epi32(last, open, length, one);
    let code = _mm512_or_si512(known, _mm512_sllv_epi32(code, before));

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
fn encode_lines<T: Value>(planes: &Planes, writer: &mut Writer) {
    let mut seen = _mm512_setzero_si512();
    for (k, words) in (0..T::Int::BITS).step_by(16).zip(planes.as_chunks::<8>().0) {
        if writer.is_done(k) {
            return;
        }
        // SAFETY: 64 readable bytes.
        let words = unsafe { _mm512_loadu_si512(words.as_ptr().cast()) };
        let nibble = _mm512_set1_epi8(0x0f);
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
fn encode_line_planes(planes: __m512i, k: u32, seen: __m512i, writer: &mut Writer) -> __m512i {
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
