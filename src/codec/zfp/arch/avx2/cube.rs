//! The transform of 3-D `f32` blocks.
//!
//! Eight registers hold a block, two rows each: [z][upper bit of y], then lane (lower bit of y) and
//! element (x). Transposes bring x, y and z in turn to where a lifting step is an operation on whole
//! registers. The portable code is as good along y and z, but not along x.

use crate::codec::zfp::blocks::Source;
use crate::codec::zfp::shape::Cube;
use std::arch::x86_64::*;

type Four = [__m256i; 4];

/// Reads a block; [z][upper bit of y].
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
pub fn load(source: &Source<f32>) -> [[__m256i; 2]; 4] {
    let mut v = [[_mm256_setzero_si256(); 2]; 4];
    for (z, v) in v.iter_mut().enumerate() {
        for (half, v) in v.iter_mut().enumerate() {
            let (low, high) = (
                source.row::<Cube>(2 * half, z),
                source.row::<Cube>(2 * half + 1, z),
            );
            // SAFETY: each row is 16 readable bytes.
            *v = unsafe {
                let low = _mm_loadu_si128(low.as_ptr().cast());
                let high = _mm_loadu_si128(high.as_ptr().cast());
                _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(low), high)
            };
        }
    }
    v
}

/// The largest magnitude.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
pub fn largest(v: &[[__m256i; 2]; 4]) -> i32 {
    let mut largest = _mm256_setzero_si256();
    let magnitude = _mm256_set1_epi32(i32::MAX);
    for v in v.as_flattened() {
        largest = _mm256_max_epi32(largest, _mm256_and_si256(*v, magnitude));
    }
    let high = _mm256_extracti128_si256::<1>(largest);
    let four = _mm_max_epi32(_mm256_castsi256_si128(largest), high);
    let two = _mm_max_epi32(four, _mm_shuffle_epi32::<0b01_00_11_10>(four));
    _mm_cvtsi128_si32(_mm_max_epi32(two, _mm_shuffle_epi32::<0b10_11_00_01>(two)))
}

/// Where [`transform`] leaves the coefficient with index `i` of the block.
pub const fn place(i: usize) -> usize {
    let (x, y, z) = (i % 4, i / 4 % 4, i / 16);
    32 * (x / 2) + 8 * z + 4 * (x % 2) + y
}

/// Values times `factors`, one after the other, → negabinary coefficients, at [`place`].
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
pub fn transform(v: &[[__m256i; 2]; 4], factors: [f32; 2], out: &mut [u32; 64]) {
    let [first, second] = [_mm256_set1_ps(factors[0]), _mm256_set1_ps(factors[1])];
    let mut halves = [[_mm256_setzero_si256(); 4]; 2];
    for (half, out) in halves.iter_mut().enumerate() {
        for (z, out) in out.iter_mut().enumerate() {
            let scaled = _mm256_mul_ps(_mm256_castsi256_ps(v[z][half]), first);
            *out = _mm256_cvttps_epi32(_mm256_mul_ps(scaled, second));
        }
    }
    // [x](lower y)(z) for each upper bit of y.
    let low = lift(transpose(halves[0]));
    let high = lift(transpose(halves[1]));
    // [y](lower x)(z) for each upper bit of x, then [z](lower x)(y).
    let odd_digits = _mm256_set1_epi32(0xaaaa_aaaau32 as i32);
    let out = out.as_chunks_mut::<8>().0;
    for upper in 0..2 {
        let x = 2 * upper;
        let v = lift([
            _mm256_permute2x128_si256::<0x20>(low[x], low[x + 1]),
            _mm256_permute2x128_si256::<0x31>(low[x], low[x + 1]),
            _mm256_permute2x128_si256::<0x20>(high[x], high[x + 1]),
            _mm256_permute2x128_si256::<0x31>(high[x], high[x + 1]),
        ]);
        for (z, v) in lift(transpose(v)).into_iter().enumerate() {
            let digits = _mm256_xor_si256(_mm256_add_epi32(v, odd_digits), odd_digits);
            // SAFETY: 32 writable bytes.
            unsafe { _mm256_storeu_si256(out[4 * upper + z].as_mut_ptr().cast(), digits) };
        }
    }
}

/// In each lane, element `i` of register `r` changes places with element `r` of register `i`.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
fn transpose([a, b, c, d]: Four) -> Four {
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

#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
fn lift([x, y, z, w]: Four) -> Four {
    let (x, w) = average(x, w);
    let (z, y) = average(z, y);
    let (x, z) = average(x, z);
    let (w, y) = average(w, y);
    let w = _mm256_add_epi32(w, _mm256_srai_epi32::<1>(y));
    let y = _mm256_sub_epi32(y, _mm256_srai_epi32::<1>(w));
    [x, y, z, w]
}

#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
fn average(a: __m256i, b: __m256i) -> (__m256i, __m256i) {
    let mean = _mm256_srai_epi32::<1>(_mm256_add_epi32(a, b));
    (mean, _mm256_sub_epi32(b, mean))
}
