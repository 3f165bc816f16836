//! Bit planes that are their own code: all of a block, once all of its coefficients are significant.

use super::window::load64;
use crate::codec::zfp::planes::Planes;
use std::arch::x86_64::*;

/// Copies `bits` bits from bit `position` of `source` on to `planes`, from its byte `at` on. Bytes after them
/// may become zero.
#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
pub fn copy(source: &[u8], position: usize, bits: usize, planes: &mut Planes, at: usize) {
    let bit = _mm512_set1_epi64(position as i64 % 8);
    for done in (0..bits).step_by(512) {
        let byte = (position + done) / 8;
        let (low, high) = (load64(source, byte), load64(source, byte + 8));
        let v = _mm512_shrdv_epi64(low, high, bit);
        store(first_bits(v, bits - done), planes, at + done / 8);
    }
}

/// The first `count` bits, and zeros.
#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
fn first_bits(v: __m512i, count: usize) -> __m512i {
    let before = _mm512_setr_epi64(0, 64, 128, 192, 256, 320, 384, 448);
    let left = _mm512_sub_epi64(_mm512_set1_epi64(count as i64), before);
    let left = _mm512_max_epi64(left, _mm512_setzero_si512());
    _mm512_andnot_si512(_mm512_sllv_epi64(_mm512_set1_epi64(-1), left), v)
}

/// As much as fits.
#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
fn store(v: __m512i, planes: &mut Planes, at: usize) {
    let planes: *mut Planes = planes;
    // SAFETY: the same memory; any bytes make words.
    let bytes: &mut [u8; 512] = unsafe { &mut *planes.cast() };
    if let Some(whole) = bytes.get_mut(at..at + 64) {
        // SAFETY: 64 writable bytes.
        unsafe { _mm512_storeu_si512(whole.as_mut_ptr().cast(), v) };
        return;
    }
    let rest = bytes.get_mut(at..).unwrap_or(&mut []);
    let there = u64::MAX.unbounded_shr(64u32.saturating_sub(rest.len() as u32));
    // SAFETY: only bytes that are there are written.
    unsafe { _mm512_mask_storeu_epi8(rest.as_mut_ptr().cast(), there, v) }
}
