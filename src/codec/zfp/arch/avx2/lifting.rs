//! The lifting steps on whole registers, and the transposes between them.

use std::arch::x86_64::*;

pub type Four = [__m256i; 4];

#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
pub fn lift32([x, y, z, w]: Four) -> Four {
    let (x, w) = average32(x, w);
    let (z, y) = average32(z, y);
    let (x, z) = average32(x, z);
    let (w, y) = average32(w, y);
    let w = _mm256_add_epi32(w, half32(y));
    let y = _mm256_sub_epi32(y, half32(w));
    [x, y, z, w]
}

#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
pub fn unlift32([x, y, z, w]: Four) -> Four {
    let y = _mm256_add_epi32(y, half32(w));
    let w = _mm256_sub_epi32(w, half32(y));
    let (y, w) = unaverage32(y, w);
    let (z, x) = unaverage32(z, x);
    let (y, z) = unaverage32(y, z);
    let (w, x) = unaverage32(w, x);
    [x, y, z, w]
}

#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
fn half32(v: __m256i) -> __m256i {
    _mm256_srai_epi32::<1>(v)
}

#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
fn average32(a: __m256i, b: __m256i) -> (__m256i, __m256i) {
    let mean = half32(_mm256_add_epi32(a, b));
    (mean, _mm256_sub_epi32(b, mean))
}

#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
fn unaverage32(excess: __m256i, mean: __m256i) -> (__m256i, __m256i) {
    let sum = _mm256_add_epi32(excess, mean);
    (sum, _mm256_sub_epi32(mean, excess))
}

#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
pub fn lift64([x, y, z, w]: Four) -> Four {
    let (x, w) = average64(x, w);
    let (z, y) = average64(z, y);
    let (x, z) = average64(x, z);
    let (w, y) = average64(w, y);
    let w = _mm256_add_epi64(w, half64(y));
    let y = _mm256_sub_epi64(y, half64(w));
    [x, y, z, w]
}

#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
pub fn unlift64([x, y, z, w]: Four) -> Four {
    let y = _mm256_add_epi64(y, half64(w));
    let w = _mm256_sub_epi64(w, half64(y));
    let (y, w) = unaverage64(y, w);
    let (z, x) = unaverage64(z, x);
    let (y, z) = unaverage64(y, z);
    let (w, x) = unaverage64(w, x);
    [x, y, z, w]
}

/// (There is no arithmetic shift of 64 bits.)
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
fn half64(v: __m256i) -> __m256i {
    let sign = _mm256_and_si256(v, _mm256_set1_epi64x(i64::MIN));
    _mm256_or_si256(_mm256_srli_epi64::<1>(v), sign)
}

#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
fn average64(a: __m256i, b: __m256i) -> (__m256i, __m256i) {
    let mean = half64(_mm256_add_epi64(a, b));
    (mean, _mm256_sub_epi64(b, mean))
}

#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
fn unaverage64(excess: __m256i, mean: __m256i) -> (__m256i, __m256i) {
    let sum = _mm256_add_epi64(excess, mean);
    (sum, _mm256_sub_epi64(mean, excess))
}

/// In each lane, 32-bit element `i` of register `r` changes places with element `r` of register `i`.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
pub fn transpose32([a, b, c, d]: Four) -> Four {
    let ab = _mm256_unpacklo_epi32(a, b);
    let cd = _mm256_unpacklo_epi32(c, d);
    let ab_high = _mm256_unpackhi_epi32(a, b);
    let cd_high = _mm256_unpackhi_epi32(c, d);
    [
        _mm256_unpacklo_epi64(ab, cd),
        _mm256_unpackhi_epi64(ab, cd),
        _mm256_unpacklo_epi64(ab_high, cd_high),
        _mm256_unpackhi_epi64(ab_high, cd_high),
    ]
}

/// 64-bit element `i` of register `r` changes places with element `r` of register `i`.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
pub fn transpose64([a, b, c, d]: Four) -> Four {
    let ab = _mm256_unpacklo_epi64(a, b);
    let cd = _mm256_unpacklo_epi64(c, d);
    let ab_high = _mm256_unpackhi_epi64(a, b);
    let cd_high = _mm256_unpackhi_epi64(c, d);
    let [x, z] = exchange_lanes(ab, cd);
    let [y, w] = exchange_lanes(ab_high, cd_high);
    [x, y, z, w]
}

/// The low lanes of two registers, and their high lanes.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
pub fn exchange_lanes(a: __m256i, b: __m256i) -> [__m256i; 2] {
    [
        _mm256_permute2x128_si256::<0x20>(a, b),
        _mm256_permute2x128_si256::<0x31>(a, b),
    ]
}

/// Two-by-two transposes of 64-bit elements in each lane.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
pub fn exchange64(a: __m256i, b: __m256i) -> [__m256i; 2] {
    [_mm256_unpacklo_epi64(a, b), _mm256_unpackhi_epi64(a, b)]
}

#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
pub fn to_negabinary32(v: __m256i) -> __m256i {
    let odd_digits = _mm256_set1_epi32(0xaaaa_aaaau32 as i32);
    _mm256_xor_si256(_mm256_add_epi32(v, odd_digits), odd_digits)
}

#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
pub fn from_negabinary32(v: __m256i) -> __m256i {
    let odd_digits = _mm256_set1_epi32(0xaaaa_aaaau32 as i32);
    _mm256_sub_epi32(_mm256_xor_si256(v, odd_digits), odd_digits)
}

#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
pub fn to_negabinary64(v: __m256i) -> __m256i {
    let odd_digits = _mm256_set1_epi64x(0xaaaa_aaaa_aaaa_aaaau64 as i64);
    _mm256_xor_si256(_mm256_add_epi64(v, odd_digits), odd_digits)
}

#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
pub fn from_negabinary64(v: __m256i) -> __m256i {
    let odd_digits = _mm256_set1_epi64x(0xaaaa_aaaa_aaaa_aaaau64 as i64);
    _mm256_sub_epi64(_mm256_xor_si256(v, odd_digits), odd_digits)
}
