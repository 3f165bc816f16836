//! The tails of eight bit planes at once: their coefficients that were not significant before.
//!
//! See [`crate::codec::zfp::decoder`] for the method. A tail begins as if after a one-bit: with a 1 if there is
//! more. So a run of ones that begins with it counts as one that began a bit earlier, in an odd place, and a
//! tail of nothing is the end of that run.

use super::window::SHOWN;
use crate::codec::zfp::shape::Shape;
use std::arch::x86_64::*;

/// Where the tails are.
#[derive(Clone, Copy)]
pub struct Place {
    /// The lanes that have one.
    pub open: __mmask8,
    /// Its code, as far as it is shown.
    pub window: __m512i,
    /// The bit that it starts at.
    pub start: __m512i,
    /// Bits of the block from there on, 0 in lanes that are not open.
    pub left: __m512i,
    pub significant: __m512i,
}

/// What they come to.
#[derive(Clone, Copy)]
pub struct Tails {
    pub code: __m512i,
    /// The bits of the code that are coefficients.
    pub coefficients: __m512i,
    /// A one-bit that is not in the code.
    pub implied: __m512i,
    /// The bit after the tail.
    pub next: __m512i,
    /// Significant coefficients after it.
    pub significant: __m512i,
    /// The lanes where more of it follows than is shown, and those of them where a coefficient comes next.
    pub partial: __mmask8,
    pub in_zeros: __mmask8,
}

#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
pub fn decode<S: Shape>(place: Place) -> Tails {
    let even = _mm512_set1_epi64(0x5555_5555_5555_5555);
    let even_but_first = _mm512_set1_epi64(0x5555_5555_5555_5554);
    let one = _mm512_set1_epi64(1);
    let all = _mm512_set1_epi64(-1);
    let (start, left) = (place.start, place.left);

    // A whole tail of a 2-D block is always shown.
    let shown = if S::SIZE == 64 {
        _mm512_min_epu64(left, _mm512_set1_epi64(SHOWN))
    } else {
        left
    };
    let hidden = _mm512_sllv_epi64(all, shown);
    let code = _mm512_andnot_si512(hidden, place.window);
    let twice = _mm512_add_epi64(code, code);
    // Adding the first bit of a run of ones to it carries out of its end.
    let even_starts = _mm512_ternarylogic_epi64::<A_NOT_B_C>(code, twice, even_but_first);
    let carried = _mm512_add_epi64(code, even_starts);
    let after_runs = _mm512_ternarylogic_epi64::<A_OR_B_NOT_C>(twice, one, code);
    let ends = _mm512_ternarylogic_epi64::<A_IF_B_IS_NOT_C>(after_runs, carried, even);
    let more = _mm512_ternarylogic_epi64::<A_IF_B_IS_C>(code, carried, even);
    let below = _mm512_andnot_si512(ends, _mm512_add_epi64(ends, all));
    let coefficients = _mm512_ternarylogic_epi64::<A_NOT_B_NOT_C>(below, more, hidden);
    let length = _mm512_popcnt_epi64(below);
    let reach = _mm512_popcnt_epi64(coefficients);

    let significant = _mm512_add_epi64(place.significant, reach);
    let next = _mm512_add_epi64(start, one);
    let next = _mm512_mask_add_epi64(start, place.open, next, length);
    let endless = _mm512_mask_cmpeq_epi64_mask(place.open, below, all);
    let long = _mm512_mask_cmpgt_epu64_mask(place.open, left, _mm512_set1_epi64(SHOWN));
    // A cut in the middle of a run of zeros makes a one-bit of the coefficient that it stopped at.
    let implied = _mm512_maskz_sllv_epi64(endless & !long, one, significant);
    let mut tails = Tails {
        code,
        coefficients,
        implied,
        next,
        significant,
        partial: 0,
        in_zeros: 0,
    };

    let size = _mm512_set1_epi64(S::SIZE as i64);
    let whole = _mm512_mask_cmpge_epu64_mask(place.open, significant, size);
    if S::SIZE == 64 {
        let shown = _mm512_set1_epi64(SHOWN);
        tails.partial = _mm512_mask_cmpge_epu64_mask(long, length, shown);
        if (whole | tails.partial) == 0 {
            return tails;
        }
        tails.partial &= !whole;
        tails.in_zeros = tails.partial & endless;
        let after = _mm512_add_epi64(start, shown);
        tails.next = _mm512_mask_mov_epi64(next, tails.partial, after);
    }
    if whole != 0 {
        finish::<S>(&mut tails, whole, place, _mm512_or_si512(twice, one));
    }
    tails
}

/// Completes the tails that reach the last coefficient of their block. That is not said: the code ends before it,
/// after a zero or after a 1 that says that there is more. `before` is the code moved up by the one-bit before it.
#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
fn finish<S: Shape>(tails: &mut Tails, whole: __mmask8, place: Place, before: __m512i) {
    let one = _mm512_set1_epi64(1);
    let all = _mm512_set1_epi64(-1);
    let size = S::SIZE as i64;
    let said = _mm512_sub_epi64(_mm512_set1_epi64(size - 1), place.significant);
    let mut end = _mm512_setzero_si512();
    // The place of the last coefficient that is said: the longest code with fewer before it.
    let mut step = if S::SIZE == 64 { 32 } else { 16 };
    while step > 0 {
        let longer = _mm512_add_epi64(end, _mm512_set1_epi64(step));
        let within = _mm512_andnot_si512(_mm512_sllv_epi64(all, longer), tails.coefficients);
        let fewer = _mm512_cmplt_epu64_mask(_mm512_popcnt_epi64(within), said);
        end = _mm512_mask_mov_epi64(end, fewer, longer);
        step /= 2;
    }
    let some = _mm512_test_epi64_mask(said, said);
    end = _mm512_mask_add_epi64(end, some, end, one);
    let after_one = _mm512_and_si512(_mm512_srlv_epi64(before, end), one);
    let next = _mm512_add_epi64(place.start, _mm512_add_epi64(end, after_one));
    let rest = _mm512_sllv_epi64(all, end);

    tails.coefficients =
        _mm512_mask_andnot_epi64(tails.coefficients, whole, rest, tails.coefficients);
    tails.next = _mm512_mask_mov_epi64(tails.next, whole, next);
    let last = _mm512_set1_epi64(1 << (size - 1));
    tails.implied = _mm512_mask_mov_epi64(tails.implied, whole, last);
    tails.significant = _mm512_mask_mov_epi64(tails.significant, whole, _mm512_set1_epi64(size));
}

// Functions of three bits for `ternarylogic`.
const A_NOT_B_C: i32 = 0x20;
const A_OR_B_NOT_C: i32 = 0x54;
const A_IF_B_IS_NOT_C: i32 = 0x60;
const A_IF_B_IS_C: i32 = 0x90;
pub const A_NOT_B_NOT_C: i32 = 0x10;
