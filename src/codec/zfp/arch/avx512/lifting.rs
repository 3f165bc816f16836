//! The lifting steps on whole registers, and the transposes between them.

use std::arch::x86_64::*;

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,bmi1,bmi2,lzcnt,popcnt")]
pub fn lift32([x, y, z, w]: [__m512i; 4]) -> [__m512i; 4] {
    let (x, w) = average32(x, w);
    let (z, y) = average32(z, y);
    let (x, z) = average32(x, z);
    let (w, y) = average32(w, y);
    let w = _mm512_add_epi32(w, half32(y));
    let y = _mm512_sub_epi32(y, half32(w));
    [x, y, z, w]
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,bmi1,bmi2,lzcnt,popcnt")]
pub fn unlift32([x, y, z, w]: [__m512i; 4]) -> [__m512i; 4] {
    let y = _mm512_add_epi32(y, half32(w));
    let w = _mm512_sub_epi32(w, half32(y));
    let (y, w) = unaverage32(y, w);
    let (z, x) = unaverage32(z, x);
    let (y, z) = unaverage32(y, z);
    let (w, x) = unaverage32(w, x);
    [x, y, z, w]
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,bmi1,bmi2,lzcnt,popcnt")]
fn half32(v: __m512i) -> __m512i {
    _mm512_srai_epi32::<1>(v)
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,bmi1,bmi2,lzcnt,popcnt")]
fn average32(a: __m512i, b: __m512i) -> (__m512i, __m512i) {
    let mean = half32(_mm512_add_epi32(a, b));
    (mean, _mm512_sub_epi32(b, mean))
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,bmi1,bmi2,lzcnt,popcnt")]
fn unaverage32(excess: __m512i, mean: __m512i) -> (__m512i, __m512i) {
    let sum = _mm512_add_epi32(excess, mean);
    (sum, _mm512_sub_epi32(mean, excess))
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,bmi1,bmi2,lzcnt,popcnt")]
pub fn lift64([x, y, z, w]: [__m512i; 4]) -> [__m512i; 4] {
    let (x, w) = average64(x, w);
    let (z, y) = average64(z, y);
    let (x, z) = average64(x, z);
    let (w, y) = average64(w, y);
    let w = _mm512_add_epi64(w, half64(y));
    let y = _mm512_sub_epi64(y, half64(w));
    [x, y, z, w]
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,bmi1,bmi2,lzcnt,popcnt")]
pub fn unlift64([x, y, z, w]: [__m512i; 4]) -> [__m512i; 4] {
    let y = _mm512_add_epi64(y, half64(w));
    let w = _mm512_sub_epi64(w, half64(y));
    let (y, w) = unaverage64(y, w);
    let (z, x) = unaverage64(z, x);
    let (y, z) = unaverage64(y, z);
    let (w, x) = unaverage64(w, x);
    [x, y, z, w]
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,bmi1,bmi2,lzcnt,popcnt")]
fn half64(v: __m512i) -> __m512i {
    _mm512_srai_epi64::<1>(v)
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,bmi1,bmi2,lzcnt,popcnt")]
fn average64(a: __m512i, b: __m512i) -> (__m512i, __m512i) {
    let mean = half64(_mm512_add_epi64(a, b));
    (mean, _mm512_sub_epi64(b, mean))
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,bmi1,bmi2,lzcnt,popcnt")]
fn unaverage64(excess: __m512i, mean: __m512i) -> (__m512i, __m512i) {
    let sum = _mm512_add_epi64(excess, mean);
    (sum, _mm512_sub_epi64(mean, excess))
}

/// In each 128-bit lane, element `i` of register `r` changes places with element `r` of register `i`.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,bmi1,bmi2,lzcnt,popcnt")]
pub fn transpose_elements([a, b, c, d]: [__m512i; 4]) -> [__m512i; 4] {
    let ab = _mm512_unpacklo_epi32(a, b);
    let cd = _mm512_unpacklo_epi32(c, d);
    let ab_high = _mm512_unpackhi_epi32(a, b);
    let cd_high = _mm512_unpackhi_epi32(c, d);
    [
        _mm512_unpacklo_epi64(ab, cd),
        _mm512_unpackhi_epi64(ab, cd),
        _mm512_unpacklo_epi64(ab_high, cd_high),
        _mm512_unpackhi_epi64(ab_high, cd_high),
    ]
}

/// 128-bit lane `i` of register `r` changes places with lane `r` of register `i`.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,bmi1,bmi2,lzcnt,popcnt")]
pub fn transpose_lanes([a, b, c, d]: [__m512i; 4]) -> [__m512i; 4] {
    let ab = _mm512_shuffle_i32x4::<0x44>(a, b);
    let cd = _mm512_shuffle_i32x4::<0x44>(c, d);
    let ab_high = _mm512_shuffle_i32x4::<0xee>(a, b);
    let cd_high = _mm512_shuffle_i32x4::<0xee>(c, d);
    [
        _mm512_shuffle_i32x4::<0x88>(ab, cd),
        _mm512_shuffle_i32x4::<0xdd>(ab, cd),
        _mm512_shuffle_i32x4::<0x88>(ab_high, cd_high),
        _mm512_shuffle_i32x4::<0xdd>(ab_high, cd_high),
    ]
}

/// Turns the bits of (register, element) around: with registers numbered (r1 r0) and their 64-bit
/// elements (l1 l0 e), the value at (r1 r0)(l1 l0 e) moves to (l0 e)(r1 l1 r0).
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,bmi1,bmi2,lzcnt,popcnt")]
pub fn rotate([a, b, c, d]: [__m512i; 4]) -> [__m512i; 4] {
    let ab = _mm512_unpacklo_epi64(a, b);
    let cd = _mm512_unpacklo_epi64(c, d);
    let ab_high = _mm512_unpackhi_epi64(a, b);
    let cd_high = _mm512_unpackhi_epi64(c, d);
    [
        _mm512_shuffle_i64x2::<0x88>(ab, cd),
        _mm512_shuffle_i64x2::<0x88>(ab_high, cd_high),
        _mm512_shuffle_i64x2::<0xdd>(ab, cd),
        _mm512_shuffle_i64x2::<0xdd>(ab_high, cd_high),
    ]
}

/// The inverse of [`rotate`].
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,bmi1,bmi2,lzcnt,popcnt")]
pub fn rotate_back([a, b, c, d]: [__m512i; 4]) -> [__m512i; 4] {
    let [ab, cd] = weave_lanes(a, c);
    let [ab_high, cd_high] = weave_lanes(b, d);
    [
        _mm512_unpacklo_epi64(ab, ab_high),
        _mm512_unpackhi_epi64(ab, ab_high),
        _mm512_unpacklo_epi64(cd, cd_high),
        _mm512_unpackhi_epi64(cd, cd_high),
    ]
}

/// The 128-bit lanes of two registers in turn: of their low halves, then of their high halves.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,bmi1,bmi2,lzcnt,popcnt")]
pub fn weave_lanes(a: __m512i, b: __m512i) -> [__m512i; 2] {
    let low = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11);
    let high = _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15);
    [
        _mm512_permutex2var_epi64(a, low, b),
        _mm512_permutex2var_epi64(a, high, b),
    ]
}

/// 64-bit element `i` of register `r` changes places with element `r` of register `i`.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,bmi1,bmi2,lzcnt,popcnt")]
pub fn transpose8([a, b, c, d, e, f, g, h]: [__m512i; 8]) -> [__m512i; 8] {
    let low = transpose_lanes([
        _mm512_unpacklo_epi64(a, b),
        _mm512_unpacklo_epi64(c, d),
        _mm512_unpacklo_epi64(e, f),
        _mm512_unpacklo_epi64(g, h),
    ]);
    let high = transpose_lanes([
        _mm512_unpackhi_epi64(a, b),
        _mm512_unpackhi_epi64(c, d),
        _mm512_unpackhi_epi64(e, f),
        _mm512_unpackhi_epi64(g, h),
    ]);
    [
        low[0], high[0], low[1], high[1], low[2], high[2], low[3], high[3],
    ]
}
