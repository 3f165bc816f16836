//! The tails of eight bit planes at once: their coefficients that were not significant before.
//!
//! See [`crate::codec::zfp::decoder`] for the method. A tail begins as if after a one-bit: with a 1 if there is
//! more. So a run of ones that begins with it counts as one that began a bit earlier, in an odd place, and a
//! tail of nothing is the end of that run.

use crate::codec::zfp::shape::Shape;
use std::arch::x86_64::*;

/// Bits that a tail is decoded from at most, so that a zero may follow them.
pub const DECODED: i64 = 63;

/// What the tails of two groups of blocks come to.
#[derive(Clone, Copy)]
pub struct Tails {
    /// The code, as far as it is there.
    pub code: [__m512i; 2],
    /// The bits of it that are coefficients.
    pub coefficients: [__m512i; 2],
    /// Coefficients up to and with the last one-bit.
    pub reach: [__m512i; 2],
    /// Bits of code before the one that ends the tail; 64 if none does.
    pub length: [__m512i; 2],
}

/// Decodes tails from their code, which goes on after the end of each.
#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
pub fn decode_whole(code: [__m512i; 2]) -> Tails {
    let all = _mm512_set1_epi64(-1);
    let (ends, more) = runs(code);
    let below = two!(|g| _mm512_andnot_si512(ends[g], _mm512_add_epi64(ends[g], all)));
    let coefficients = two!(|g| _mm512_andnot_si512(more[g], below[g]));
    Tails {
        code,
        coefficients,
        reach: two!(|g| _mm512_popcnt_epi64(coefficients[g])),
        length: two!(|g| _mm512_popcnt_epi64(below[g])),
    }
}

/// The zeros after runs of ones of odd length, and the ones that say that there is more.
#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
fn runs(code: [__m512i; 2]) -> ([__m512i; 2], [__m512i; 2]) {
    let even = _mm512_set1_epi64(0x5555_5555_5555_5555);
    let even_but_first = _mm512_set1_epi64(0x5555_5555_5555_5554);
    let one = _mm512_set1_epi64(1);
    let twice = two!(|g| _mm512_add_epi64(code[g], code[g]));
    // Adding the first bit of a run of ones to it carries out of its end.
    let even_starts =
        two!(|g| _mm512_ternarylogic_epi64::<A_NOT_B_C>(code[g], twice[g], even_but_first));
    let carried = two!(|g| _mm512_add_epi64(code[g], even_starts[g]));
    let after_runs = two!(|g| _mm512_ternarylogic_epi64::<A_OR_B_NOT_C>(twice[g], one, code[g]));
    let ends =
        two!(|g| _mm512_ternarylogic_epi64::<A_IF_B_IS_NOT_C>(after_runs[g], carried[g], even));
    let more = two!(|g| _mm512_ternarylogic_epi64::<A_IF_B_IS_C>(code[g], carried[g], even));
    (ends, more)
}

/// [`runs`] of sixteen blocks, a block to a 32-bit lane.
#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
pub fn runs32(code: __m512i) -> (__m512i, __m512i) {
    let even = _mm512_set1_epi32(0x5555_5555);
    let even_but_first = _mm512_set1_epi32(0x5555_5554);
    let one = _mm512_set1_epi32(1);
    let twice = _mm512_add_epi32(code, code);
    let even_starts = _mm512_ternarylogic_epi32::<A_NOT_B_C>(code, twice, even_but_first);
    let carried = _mm512_add_epi32(code, even_starts);
    let after_runs = _mm512_ternarylogic_epi32::<A_OR_B_NOT_C>(twice, one, code);
    let ends = _mm512_ternarylogic_epi32::<A_IF_B_IS_NOT_C>(after_runs, carried, even);
    let more = _mm512_ternarylogic_epi32::<A_IF_B_IS_C>(code, carried, even);
    (ends, more)
}

/// Decodes tails from their code, of which `left` bits are there.
#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
pub fn decode<S: Shape>(window: [__m512i; 2], left: [__m512i; 2]) -> Tails {
    let all = _mm512_set1_epi64(-1);

    // A whole tail of a 2-D block is always shown.
    let there = if S::SIZE == 64 {
        two!(|g| _mm512_min_epi64(left[g], _mm512_set1_epi64(DECODED)))
    } else {
        left
    };
    let hidden = two!(|g| _mm512_sllv_epi64(all, there[g]));
    let code = two!(|g| _mm512_andnot_si512(hidden[g], window[g]));
    let (ends, more) = runs(code);
    let below = two!(|g| _mm512_andnot_si512(ends[g], _mm512_add_epi64(ends[g], all)));
    let coefficients =
        two!(|g| _mm512_ternarylogic_epi64::<A_NOT_B_NOT_C>(below[g], more[g], hidden[g]));
    Tails {
        code,
        coefficients,
        reach: two!(|g| _mm512_popcnt_epi64(coefficients[g])),
        length: two!(|g| _mm512_popcnt_epi64(below[g])),
    }
}

// Functions of three bits for `ternarylogic`.
const A_NOT_B_C: i32 = 0x20;
pub const A_OR_B_NOT_C: i32 = 0x54;
const A_IF_B_IS_NOT_C: i32 = 0x60;
const A_IF_B_IS_C: i32 = 0x90;
pub const A_NOT_B_NOT_C: i32 = 0x10;
pub const A_OR_NOT_B: i32 = 0xf3;
