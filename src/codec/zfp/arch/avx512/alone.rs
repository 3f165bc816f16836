//! Blocks of one value: in their code, zeros are planes of nothing; then comes a 1, and for each plane the bit of the
//! first coefficient, at first a 1, and a 0. They have more planes than others, up to 64; so that those do not wait for
//! them they are decoded by themselves.

use super::shifts::trailing_zeros;
use crate::codec::zfp::arch::Bmi;
use crate::codec::zfp::arch::bmi2::Bmi2;
use crate::codec::zfp::bits::{low_bits, peek_word};
use std::arch::x86_64::*;

const EVEN: u64 = 0x5555_5555_5555_5555;

/// The lanes whose code begins as that of such a block does.
#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
pub fn candidates(code: __m512i) -> __mmask8 {
    let three = _mm512_set1_epi64(3);
    let zeros = trailing_zeros(code);
    let begins = _mm512_and_si512(_mm512_srlv_epi64(code, zeros), three);
    let begins = _mm512_cmpeq_epi64_mask(begins, three);
    let others = _mm512_and_si512(code, _mm512_add_epi64(code, _mm512_set1_epi64(-1)));
    let flags = _mm512_rolv_epi64(_mm512_set1_epi64(EVEN as i64), zeros);
    _mm512_mask_testn_epi64_mask(begins, others, flags)
}

/// The planes of the block in bits `start..end`, if it is such a one: the bits of its first coefficient, the first
/// plane's lowest, and the length of its code.
pub fn decode(
    bytes: &[u8],
    start: usize,
    end: usize,
    planes: usize,
    bmi: Bmi2,
) -> Option<(u64, usize)> {
    let zeros = peek_word(bytes, start).trailing_zeros() as usize;
    let pairs = start + zeros + 1;
    let length = (2 * planes.checked_sub(zeros)?).min(end.checked_sub(pairs)?);
    let word = |i: usize| {
        let there = length.saturating_sub(64 * i).min(64);
        peek_word(bytes, pairs + 64 * i) & low_bits(there as u32)
    };
    let words = [word(0), word(1)];
    if words[0] & 1 == 0 || (words[0] | words[1]) & !EVEN != 0 {
        return None;
    }
    let bits = words.map(|word| bmi.extract(word, EVEN));
    Some(((bits[0] | bits[1] << 32) << zeros, zeros + 1 + length))
}
