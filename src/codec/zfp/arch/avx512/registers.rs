//! Registers and memory; registers and their lanes of 128 bits.

use std::arch::x86_64::*;

/// What a register holds.
pub type Row = [u64; 8];

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,bmi1,bmi2,lzcnt,popcnt")]
pub fn load(row: &Row) -> __m512i {
    // SAFETY: 64 readable bytes.
    unsafe { _mm512_loadu_si512(row.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,bmi1,bmi2,lzcnt,popcnt")]
pub fn store(v: __m512i, row: &mut Row) {
    // SAFETY: 64 writable bytes.
    unsafe { _mm512_storeu_si512(row.as_mut_ptr().cast(), v) }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,bmi1,bmi2,lzcnt,popcnt")]
pub fn of_lanes([a, b, c, d]: [__m128i; 4]) -> __m512i {
    let v = _mm512_inserti32x4::<1>(_mm512_castsi128_si512(a), b);
    let v = _mm512_inserti32x4::<2>(v, c);
    _mm512_inserti32x4::<3>(v, d)
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,bmi1,bmi2,lzcnt,popcnt")]
pub fn lanes_of(v: __m512i) -> [__m128i; 4] {
    [
        _mm512_castsi512_si128(v),
        _mm512_extracti32x4_epi32::<1>(v),
        _mm512_extracti32x4_epi32::<2>(v),
        _mm512_extracti32x4_epi32::<3>(v),
    ]
}
