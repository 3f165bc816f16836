//! Shifts of 64-bit lanes by the instructions themselves, which say what a large count does (in place of the functions
//! for them a compiler guards against large counts, or puts other shifts); and counts for them.

use std::arch::asm;
use std::arch::x86_64::*;

/// Bits moved up; none are left where `count` is 64 or more. (Compilers would guard a shift by so much.)
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,bmi1,bmi2,lzcnt,popcnt")]
pub fn sll(bits: __m512i, count: __m512i) -> __m512i {
    let moved;
    // SAFETY: the instruction, one of those that this function is compiled with, reads and writes registers only.
    unsafe {
        asm!("vpsllvq {}, {}, {}", out(zmm_reg) moved, in(zmm_reg) bits, in(zmm_reg) count, options(pure, nomem, nostack, preserves_flags));
    }
    moved
}

/// As [`sll`], down.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,bmi1,bmi2,lzcnt,popcnt")]
pub fn srl(bits: __m512i, count: __m512i) -> __m512i {
    let moved;
    // SAFETY: as above.
    unsafe {
        asm!("vpsrlvq {}, {}, {}", out(zmm_reg) moved, in(zmm_reg) bits, in(zmm_reg) count, options(pure, nomem, nostack, preserves_flags));
    }
    moved
}

/// 64 where there is no one-bit.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,bmi1,bmi2,lzcnt,popcnt")]
pub fn trailing_zeros(bits: __m512i) -> __m512i {
    let below = _mm512_add_epi64(bits, _mm512_set1_epi64(-1));
    let leading = _mm512_lzcnt_epi64(_mm512_andnot_si512(bits, below));
    _mm512_sub_epi64(_mm512_set1_epi64(64), leading)
}

/// As [`trailing_zeros`], of 32-bit lanes, on machines with an instruction for it; 32 where there is no one-bit.
#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
pub fn trailing_zeros32(bits: __m512i) -> __m512i {
    let below = _mm512_add_epi32(bits, _mm512_set1_epi32(-1));
    _mm512_popcnt_epi32(_mm512_andnot_si512(bits, below))
}
