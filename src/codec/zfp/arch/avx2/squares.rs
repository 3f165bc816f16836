//! The embedded coder of 2-D blocks, eight bit planes at a time, one in each 32-bit element.
//!
//! See [`crate::codec::zfp::encoder`] for the code. How many coefficients are significant before a plane
//! follows from the union of the planes before it, so that no plane waits for the code of another.

use super::store;
use crate::codec::zfp::Value;
use crate::codec::zfp::arch::BATCH;
use crate::codec::zfp::encoder::{self, BlockBits};
use crate::codec::zfp::planes::Planes;
use crate::codec::zfp::shape::{Shape, Square};
use crate::codec::zfp::transform::{Header, Headers};
use std::arch::x86_64::*;

/// [`crate::codec::zfp::arch::Arch::encode`].
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
pub fn encode<T: Value>(
    headers: &Headers,
    planes: &[Planes; BATCH],
    budget: usize,
    coded: &mut [BlockBits; BATCH],
) {
    for (i, (planes, coded)) in planes.iter().zip(coded).take(Square::BATCH).enumerate() {
        encode_block::<T>(headers.get(i), planes, budget, coded);
    }
}

#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
fn encode_block<T: Value>(header: Header, planes: &Planes, budget: usize, coded: &mut BlockBits) {
    coded.clear();
    let mut pen = coded.pen;
    let words = &mut coded.words;
    let start = if header.is_coded() { T::HEADER_BITS } else { 1 };
    pen.push(words, header.bits.into(), start);
    let mut before = Before {
        planes: _mm256_setzero_si256(),
        significant: _mm256_setzero_si256(),
    };
    let mut k = 0;
    for eight in planes.as_chunks::<2>().0 {
        if k >= header.planes || pen.position() >= budget {
            break;
        }
        let left = _mm256_set1_epi32((header.planes - k) as i32);
        let (codes, lengths) = code_eight(eight, left, &mut before);
        for (code, length) in codes.into_iter().zip(lengths) {
            pen.push(words, code, length as u32);
        }
        k += 8;
    }
    coded.pen = pen;
}

/// What came before some planes, in every element.
struct Before {
    /// The union of the planes.
    planes: __m256i,
    /// How many coefficients were significant.
    significant: __m256i,
}

/// The codes of eight planes, of which only `left` are there, two and two together; and their lengths.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
fn code_eight(words: &[u64; 2], left: __m256i, before: &mut Before) -> ([u64; 4], [u64; 4]) {
    // SAFETY: 16 readable bytes.
    let planes = unsafe { _mm_loadu_si128(words.as_ptr().cast()) };
    let planes = _mm256_cvtepu16_epi32(planes);
    let union = _mm256_or_si256(before.planes, unions(planes));
    let after = bit_length(union);
    let last = _mm256_set1_epi32(7);
    let shifted = _mm256_permutevar8x32_epi32(after, _mm256_setr_epi32(0, 0, 1, 2, 3, 4, 5, 6));
    let significant = _mm256_blend_epi32::<1>(shifted, before.significant);
    before.planes = _mm256_permutevar8x32_epi32(union, last);
    before.significant = _mm256_permutevar8x32_epi32(after, last);

    let ones = _mm256_set1_epi32(-1);
    let one = _mm256_set1_epi32(1);
    let known = _mm256_andnot_si256(_mm256_sllv_epi32(ones, significant), planes);
    let rest = _mm256_srlv_epi32(planes, significant);
    let reach = _mm256_sub_epi32(after, significant);
    // Without the last one-bit, if there is any.
    let upper = _mm256_sllv_epi32(ones, _mm256_sub_epi32(reach, one));
    let (doubled, length) = double(_mm256_andnot_si256(upper, rest));
    let flag = _mm256_min_epi32(reach, one);
    let code = _mm256_or_si256(_mm256_slli_epi32::<1>(doubled), flag);
    let last = _mm256_add_epi32(reach, length);
    // The last one-bit and the 0 after it, unless it is the block's last coefficient's.
    let open = _mm256_cmpgt_epi32(_mm256_set1_epi32(16), after);
    let mark = _mm256_and_si256(flag, open);
    let code = _mm256_or_si256(code, _mm256_sllv_epi32(mark, last));
    let end = _mm256_and_si256(_mm256_add_epi32(flag, one), open);
    let length = _mm256_add_epi32(_mm256_add_epi32(last, end), significant);
    let code = _mm256_or_si256(known, _mm256_sllv_epi32(code, significant));

    let coded = _mm256_cmpgt_epi32(left, _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
    join_halves(
        _mm256_and_si256(code, coded),
        _mm256_and_si256(length, coded),
    )
}

/// Of each element and all before it.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
fn unions(v: __m256i) -> __m256i {
    let v = _mm256_or_si256(v, _mm256_slli_si256::<4>(v));
    let v = _mm256_or_si256(v, _mm256_slli_si256::<8>(v));
    let low = _mm256_permute2x128_si256::<0x08>(v, v);
    _mm256_or_si256(v, _mm256_shuffle_epi32::<0xff>(low))
}

/// Bits up to and with the last one-bit, of numbers that a `f32` can hold.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
fn bit_length(v: __m256i) -> __m256i {
    let exponent = _mm256_srli_epi32::<23>(_mm256_castps_si256(_mm256_cvtepi32_ps(v)));
    let length = _mm256_sub_epi32(exponent, _mm256_set1_epi32(126));
    _mm256_max_epi32(length, _mm256_setzero_si256())
}

/// One-bits of four bits, and 2 to the power of that.
const ONES: [u8; 16] = [0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4];
const POWERS: [u8; 16] = [1, 2, 2, 4, 2, 4, 4, 8, 2, 4, 4, 8, 4, 8, 8, 16];

/// Elements of 16 bits, each one-bit followed by another 1; and the number of one-bits.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
fn double(v: __m256i) -> (__m256i, __m256i) {
    let half = _mm256_set1_epi32(0x00ff_00ff);
    let v = _mm256_and_si256(_mm256_or_si256(v, _mm256_slli_epi32::<8>(v)), half);
    let v = _mm256_or_si256(v, _mm256_slli_epi32::<4>(v));
    let nibbles = _mm256_and_si256(v, _mm256_set1_epi8(0x0f));
    let table = |table: &[u8; 16]| {
        // SAFETY: 16 readable bytes.
        let table = unsafe { _mm_loadu_si128(table.as_ptr().cast()) };
        _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(table), nibbles)
    };
    let (codes, ones, powers) = (
        table(&encoder::DOUBLED_NIBBLES),
        table(&ONES),
        table(&POWERS),
    );
    // (There is no shift of 16 bits by as many different counts.)
    let low = _mm256_set1_epi16(0xff);
    let upper = _mm256_mullo_epi16(_mm256_srli_epi16::<8>(codes), _mm256_and_si256(powers, low));
    let upper = _mm256_slli_epi16::<4>(upper);
    let codes = _mm256_or_si256(_mm256_and_si256(codes, low), upper);
    let ones = _mm256_maddubs_epi16(ones, _mm256_set1_epi8(1));
    let low = _mm256_set1_epi32(0xffff);
    let count = _mm256_add_epi32(_mm256_and_si256(ones, low), _mm256_set1_epi32(8));
    let upper = _mm256_sllv_epi32(_mm256_srli_epi32::<16>(codes), count);
    let codes = _mm256_or_si256(_mm256_and_si256(codes, low), upper);
    (codes, _mm256_madd_epi16(ones, _mm256_set1_epi16(1)))
}

/// Bit strings in 32 bits → two and two of them, one after the other; and their lengths.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
fn join_halves(codes: __m256i, lengths: __m256i) -> ([u64; 4], [u64; 4]) {
    let low = _mm256_set1_epi64x(0xffff_ffff);
    let first = _mm256_and_si256(lengths, low);
    let upper = _mm256_sllv_epi64(_mm256_srli_epi64::<32>(codes), first);
    let codes = _mm256_or_si256(_mm256_and_si256(codes, low), upper);
    let lengths = _mm256_add_epi64(first, _mm256_srli_epi64::<32>(lengths));
    let (mut joined, mut sums) = ([0; 4], [0; 4]);
    store(codes, &mut joined);
    store(lengths, &mut sums);
    (joined, sums)
}
