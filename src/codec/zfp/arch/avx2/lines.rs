//! 1-D blocks: coefficients ↔ bit planes, and the coder, four blocks in lockstep, one in each 64-bit element.
//!
//! Sixteen planes of a block are a word: byte `i` has plane `i` in its high half and plane `8 + i` in its low
//! half. The words of 16 blocks lie together: the first of each, then the second of each, and so on.

use super::bytes::{shuffle, transpose_bits};
use super::lifting::{Four, exchange64, transpose32};
use super::{load, store};
use crate::codec::zfp::Value;
use crate::codec::zfp::arch::BATCH;
use crate::codec::zfp::encoder::BlockBits;
use crate::codec::zfp::line;
use crate::codec::zfp::planes::Planes;
use crate::codec::zfp::transform::Headers;
use crate::codec::zfp::value::Int;
use std::arch::x86_64::*;

const REVERSED: [u8; 16] = [7, 6, 5, 4, 3, 2, 1, 0, 15, 14, 13, 12, 11, 10, 9, 8];

/// Eight blocks, the coefficient x of all in register x; block 4 (e / 2) + 2 l + e % 2 in element e of lane l.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
pub fn split32([x, y, z, w]: Four, half: usize, words: &mut Planes) {
    let xy = [_mm256_unpacklo_epi8(x, y), _mm256_unpackhi_epi8(x, y)];
    let zw = [_mm256_unpacklo_epi8(z, w), _mm256_unpackhi_epi8(z, w)];
    for i in 0..2 {
        // All bytes of a block in a lane, those of equal significance together, the lowest first.
        let even = _mm256_unpacklo_epi16(xy[i], zw[i]);
        let odd = _mm256_unpackhi_epi16(xy[i], zw[i]);
        let [lower, upper] = exchange64(even, odd);
        let quarter = 2 * half + i;
        put_words(upper, 0, quarter, words);
        put_words(lower, 1, quarter, words);
    }
}

/// Four blocks, a block an element.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
pub fn split64([x, y, z, w]: Four, quarter: usize, words: &mut Planes) {
    let xy = [_mm256_unpacklo_epi8(x, y), _mm256_unpackhi_epi8(x, y)];
    let zw = [_mm256_unpacklo_epi8(z, w), _mm256_unpackhi_epi8(z, w)];
    let lower = [
        _mm256_unpacklo_epi16(xy[0], zw[0]),
        _mm256_unpacklo_epi16(xy[1], zw[1]),
    ];
    let upper = [
        _mm256_unpackhi_epi16(xy[0], zw[0]),
        _mm256_unpackhi_epi16(xy[1], zw[1]),
    ];
    for (i, [even, odd]) in [upper, lower].into_iter().enumerate() {
        let [lower, upper] = exchange64(even, odd);
        put_words(upper, 2 * i, quarter, words);
        put_words(lower, 2 * i + 1, quarter, words);
    }
}

/// Two bytes of each coefficient of four blocks → 16 planes, word `word` of each.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
fn put_words(bytes: __m256i, word: usize, quarter: usize, words: &mut Planes) {
    let planes = shuffle(transpose_bits(bytes), &REVERSED);
    store(
        planes,
        &mut words.as_chunks_mut::<4>().0[4 * word + quarter],
    );
}

/// In each lane, byte 4 i + j changes places with byte 4 j + i.
const TRANSPOSED: [u8; 16] = [0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15];

/// The inverse of [`split32`], of planes as [`crate::codec::zfp::planes`] has them.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
pub fn join32(planes: &[Planes; 8]) -> Four {
    let planes = planes.as_chunks::<4>().0;
    let [a, b] = [&planes[0], &planes[1]];
    let a = exchange64(join_words(a, 1), join_words(a, 0));
    let b = exchange64(join_words(b, 1), join_words(b, 0));
    let v = [a[0], a[1], b[0], b[1]];
    transpose32(four!(|i| shuffle(v[i], &TRANSPOSED)))
}

/// The inverse of [`split64`].
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
pub fn join64(planes: &[Planes; 4]) -> Four {
    let v = four!(|i| join_words(planes, i));
    let upper = exchange64(v[1], v[0]);
    let lower = exchange64(v[3], v[2]);
    let (even, odd) = (pairs(lower[0], upper[0]), pairs(lower[1], upper[1]));
    let [x, y] = exchange64(even[0], odd[0]);
    let [z, w] = exchange64(even[1], odd[1]);
    [x, y, z, w]
}

/// The lower four and the upper four bytes of the coefficients of two blocks → coefficients, two a register.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
fn pairs(lower: __m256i, upper: __m256i) -> [__m256i; 2] {
    let (lower, upper) = (shuffle(lower, &TRANSPOSED), shuffle(upper, &TRANSPOSED));
    [
        _mm256_unpacklo_epi32(lower, upper),
        _mm256_unpackhi_epi32(lower, upper),
    ]
}

/// Sixteen packed planes of each of four blocks, word `word` of each → two bytes of each coefficient.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
fn join_words(planes: &[Planes; 4], word: usize) -> __m256i {
    let [a, b, c, d] = four!(|block| planes[block][word] as i64);
    let packed = _mm256_setr_epi64x(a, b, c, d);
    // Every half byte in a byte of its own, backwards: the first eight planes', the others'.
    let first = shuffle(
        packed,
        &[3, 3, 2, 2, 1, 1, 0, 0, 11, 11, 10, 10, 9, 9, 8, 8],
    );
    let others = shuffle(
        packed,
        &[7, 7, 6, 6, 5, 5, 4, 4, 15, 15, 14, 14, 13, 13, 12, 12],
    );
    let part = |v, mask: u16| _mm256_and_si256(v, _mm256_set1_epi16(mask as i16));
    let high = _mm256_or_si256(
        part(first, 0x00f0),
        part(_mm256_slli_epi16::<4>(first), 0xf000),
    );
    let low = _mm256_or_si256(
        part(_mm256_srli_epi16::<4>(others), 0x000f),
        part(others, 0x0f00),
    );
    transpose_bits(_mm256_or_si256(high, low))
}

/// [`crate::codec::zfp::arch::Arch::encode`], of the words that [`split32`] and [`split64`] make.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
pub fn encode<T: Value>(
    headers: &Headers,
    words: &Planes,
    budget: usize,
    coded: &mut [BlockBits; BATCH],
) {
    let bits = headers.bits.as_chunks::<4>().0;
    let counts = headers.planes.as_chunks::<4>().0;
    for (quarter, coded) in coded.as_chunks_mut::<4>().0.iter_mut().enumerate() {
        encode_four::<T>(
            &bits[quarter],
            &counts[quarter],
            words,
            quarter,
            budget,
            coded,
        );
    }
}

/// Eight planes of a block are a group; these are the most of them.
const GROUPS: usize = 8;

#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
fn encode_four<T: Value>(
    bits: &[u32; 4],
    counts: &[u32; 4],
    words: &Planes,
    quarter: usize,
    budget: usize,
    coded: &mut [BlockBits; 4],
) {
    let starts = bits.map(|bits| if bits == 0 { 1 } else { T::HEADER_BITS });
    let most = counts.iter().fold(0, |most, &count| most.max(count));
    // SAFETY: each is 16 readable bytes.
    let (counts, mut length) = unsafe {
        (
            _mm256_cvtepu32_epi64(_mm_loadu_si128(counts.as_ptr().cast())),
            _mm256_cvtepu32_epi64(_mm_loadu_si128(starts.as_ptr().cast())),
        )
    };
    let counts = shuffle(counts, &[0, 0, 0, 0, 0, 0, 0, 0, 8, 8, 8, 8, 8, 8, 8, 8]);
    let budget = _mm256_set1_epi64x(budget.min(i64::MAX as usize) as i64);
    let mut codes = [[[0u64; 4]; 2]; GROUPS];
    let mut seen = _mm256_setzero_si256();
    let mut groups = 0;
    for (group, codes) in codes.iter_mut().enumerate().take(T::Int::BITS as usize / 8) {
        let short = _mm256_cmpgt_epi64(budget, length);
        if 8 * group >= most as usize || _mm256_testz_si256(short, short) == 1 {
            break;
        }
        let planes = load(&words.as_chunks().0[4 * (group / 2) + quarter]);
        let planes = if group % 2 == 0 {
            _mm256_srli_epi16::<4>(planes)
        } else {
            planes
        };
        let planes = _mm256_and_si256(planes, _mm256_set1_epi8(0x0f));
        let coded = _mm256_cmpgt_epi8(counts, numbers(group));
        let (code, more, after) = code_group(planes, seen, coded);
        seen = after;
        length = _mm256_add_epi64(length, more);
        store(code, &mut codes[0]);
        store(more, &mut codes[1]);
        groups = group + 1;
    }
    for (i, coded) in coded.iter_mut().enumerate() {
        coded.clear();
        let mut pen = coded.pen;
        pen.push(&mut coded.words, bits[i].into(), starts[i]);
        for [codes, lengths] in &codes[..groups] {
            pen.push(&mut coded.words, codes[i], lengths[i] as u32);
        }
        coded.pen = pen;
    }
}

/// The numbers of the planes of a group.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
fn numbers(group: usize) -> __m256i {
    let steps = _mm256_set1_epi64x(0x0706_0504_0302_0100);
    _mm256_add_epi8(_mm256_set1_epi8(8 * group as i8), steps)
}

/// The codes of all planes and their lengths, for each number of coefficients that were significant.
static CODES: [[[u8; 16]; 2]; 4] = {
    let mut codes = [[[0; 16]; 2]; 4];
    let mut i = 0;
    while i < 4 * 16 {
        let (code, length, _) = line::plane_code(i % 16, i / 16);
        codes[(i / 16) as usize][0][(i % 16) as usize] = code as u8;
        codes[(i / 16) as usize][1][(i % 16) as usize] = length as u8;
        i += 1;
    }
    codes
};

/// Eight planes of four blocks, a plane a byte: the code of each block's, its length, and `seen` for the
/// next group. `seen` is, in every byte, the union of all planes before.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
fn code_group(planes: __m256i, seen: __m256i, coded: __m256i) -> (__m256i, __m256i, __m256i) {
    let union = _mm256_or_si256(planes, _mm256_slli_epi64::<8>(planes));
    let union = _mm256_or_si256(union, _mm256_slli_epi64::<16>(union));
    let union = _mm256_or_si256(union, _mm256_slli_epi64::<32>(union));
    let before = _mm256_or_si256(seen, _mm256_slli_epi64::<8>(union));
    let last = shuffle(
        union,
        &[7, 7, 7, 7, 7, 7, 7, 7, 15, 15, 15, 15, 15, 15, 15, 15],
    );
    // With all four significant, a plane is its own code.
    let (mut code, mut length) = (planes, _mm256_set1_epi8(4));
    for (n, [codes, lengths]) in CODES.iter().enumerate().rev() {
        let more = _mm256_cmpgt_epi8(before, _mm256_set1_epi8((1 << n) - 1));
        code = _mm256_blendv_epi8(look_up(codes, planes), code, more);
        length = _mm256_blendv_epi8(look_up(lengths, planes), length, more);
    }
    let (code, length) = join(
        _mm256_and_si256(code, coded),
        _mm256_and_si256(length, coded),
    );
    (code, length, _mm256_or_si256(seen, last))
}

#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
fn look_up(table: &[u8; 16], index: __m256i) -> __m256i {
    // SAFETY: 16 readable bytes.
    let table = unsafe { _mm_loadu_si128(table.as_ptr().cast()) };
    _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(table), index)
}

/// Bit strings of up to 7 bits in bytes → in each 64 bits, the eight of them one after another; and its length.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
fn join(codes: __m256i, lengths: __m256i) -> (__m256i, __m256i) {
    let low = _mm256_set1_epi16(0xff);
    // (There is no shift of 16 bits by as many different counts.)
    let powers = look_up(
        &[1, 2, 4, 8, 16, 32, 64, 128, 0, 0, 0, 0, 0, 0, 0, 0],
        lengths,
    );
    let upper = _mm256_mullo_epi16(_mm256_srli_epi16::<8>(codes), _mm256_and_si256(powers, low));
    let codes = _mm256_or_si256(_mm256_and_si256(codes, low), upper);
    let lengths = _mm256_maddubs_epi16(lengths, _mm256_set1_epi8(1));
    let low = _mm256_set1_epi32(0xffff);
    let upper = _mm256_sllv_epi32(
        _mm256_srli_epi32::<16>(codes),
        _mm256_and_si256(lengths, low),
    );
    let codes = _mm256_or_si256(_mm256_and_si256(codes, low), upper);
    let lengths = _mm256_madd_epi16(lengths, _mm256_set1_epi16(1));
    let low = _mm256_set1_epi64x(0xffff_ffff);
    let first = _mm256_and_si256(lengths, low);
    let upper = _mm256_sllv_epi64(_mm256_srli_epi64::<32>(codes), first);
    let codes = _mm256_or_si256(_mm256_and_si256(codes, low), upper);
    let lengths = _mm256_add_epi64(first, _mm256_srli_epi64::<32>(lengths));
    (codes, lengths)
}
