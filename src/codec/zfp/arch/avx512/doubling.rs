//! Bits of many lanes at once, each one-bit followed by another 1, or each bit by a 0: four bits at a time by a table
//! in a register; pieces of different lengths are then joined two by two.

use super::later::{Level, nibbles16, nibbles32};
use crate::codec::zfp::encoder::DOUBLED_NIBBLES;
use std::arch::x86_64::*;

/// The low 16 bits of each 32, each one-bit followed by another 1; and the length that gives.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,bmi1,bmi2,lzcnt,popcnt")]
pub fn double16<L: Level>(level: L, bits: __m512i) -> (__m512i, __m512i) {
    let (codes, lengths) = double4(nibbles16(level, bits));
    join_bytes(codes, lengths)
}

/// The low 32 bits of each lane, each one-bit followed by another 1; and the length that gives.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,bmi1,bmi2,lzcnt,popcnt")]
pub fn double32<L: Level>(level: L, bits: __m512i) -> (__m512i, __m512i) {
    let (codes, lengths) = double4(nibbles32(level, bits));
    let (codes, lengths) = join_bytes(codes, lengths);
    join_halves(codes, lengths)
}

/// Bytes below 16, each one-bit followed by another 1; and the lengths that gives, from 4 to 8.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,bmi1,bmi2,lzcnt,popcnt")]
pub fn double4(nibbles: __m512i) -> (__m512i, __m512i) {
    let lengths = _mm_setr_epi8(4, 5, 5, 6, 5, 6, 6, 7, 5, 6, 6, 7, 6, 7, 7, 8);
    // SAFETY: 16 readable bytes.
    let codes = unsafe { _mm_loadu_si128(DOUBLED_NIBBLES.as_ptr().cast()) };
    (
        _mm512_shuffle_epi8(_mm512_broadcast_i32x4(codes), nibbles),
        _mm512_shuffle_epi8(_mm512_broadcast_i32x4(lengths), nibbles),
    )
}

/// Bit strings in bytes → in each 32 bits, the four of them one after another; and their lengths.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,bmi1,bmi2,lzcnt,popcnt")]
pub fn join_bytes(codes: __m512i, lengths: __m512i) -> (__m512i, __m512i) {
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
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,bmi1,bmi2,lzcnt,popcnt")]
pub fn join_halves(codes: __m512i, lengths: __m512i) -> (__m512i, __m512i) {
    let half = _mm512_set1_epi64(0xffff_ffff);
    let low = _mm512_and_si512(lengths, half);
    let upper = shl64(_mm512_srli_epi64::<32>(codes), low);
    let codes = _mm512_or_si512(_mm512_and_si512(codes, half), upper);
    (
        codes,
        _mm512_add_epi64(low, _mm512_srli_epi64::<32>(lengths)),
    )
}

/// Bits moved up within 64 bits, none of them out of them: a rotation, which compilers leave alone where
/// they would guard a shift against large counts.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,bmi1,bmi2,lzcnt,popcnt")]
fn shl64(bits: __m512i, count: __m512i) -> __m512i {
    _mm512_rolv_epi64(bits, count)
}

/// As [`shl64`], within 32 bits.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,bmi1,bmi2,lzcnt,popcnt")]
pub fn shl32(bits: __m512i, count: __m512i) -> __m512i {
    _mm512_rolv_epi32(bits, count)
}

/// The low 32 bits of each lane, each followed by a 0.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,bmi1,bmi2,lzcnt,popcnt")]
pub fn spread32<L: Level>(level: L, bits: __m512i) -> __m512i {
    let spread = _mm_setr_epi8(0, 1, 4, 5, 16, 17, 20, 21, 64, 65, 68, 69, 80, 81, 84, 85);
    _mm512_shuffle_epi8(_mm512_broadcast_i32x4(spread), nibbles32(level, bits))
}
