//! The first planes of short 2-D blocks, those in which no coefficient but the first is not zero, at once.
//!
//! In the code of a block, zeros are planes of nothing; then comes a 1, and for each plane its bit, at first a 1, and a
//! 0. Blocks of one value have no other planes: they are done here whole, so that others do not wait for them.

use super::shifts::trailing_zeros32;
use super::words::{Words, block_of_lane};
use crate::codec::zfp::Value;
use crate::codec::zfp::value::Int;
use std::arch::x86_64::*;

/// Planes that are taken together at most: two bits of the first word for each.
const MOST: i32 = 15;

/// What the first planes are.
pub struct Leads {
    /// Planes that were taken of all blocks but those of one value.
    pub count: usize,
    /// Ones for blocks whose first coefficient is significant after these.
    pub significant: __m512i,
    /// The lanes of blocks of one value, or of none.
    pub alone: __mmask16,
    pub first: FirstCoefficients,
}

/// Bits of the first coefficient of each block, in order, the uppermost 32 and those below.
#[derive(Clone, Copy)]
pub struct FirstCoefficients {
    pub upper: __m512i,
    pub lower: __m512i,
}

impl FirstCoefficients {
    #[inline]
    #[target_feature(
        enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
    )]
    pub fn zeros() -> Self {
        FirstCoefficients {
            upper: _mm512_setzero_si512(),
            lower: _mm512_setzero_si512(),
        }
    }
}

impl Leads {
    /// Takes them off the code of blocks with `planes` planes, and leaves nothing of blocks of one value.
    #[inline]
    #[target_feature(
        enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
    )]
    pub fn take<T: Value, const C: usize>(words: &mut Words<C>, planes: __m512i) -> Leads {
        let beginning = Beginning::of(words.code[0]);
        let zeros = beginning.zeros;
        let any = any_bits(words);
        let alone = !any | beginning.goes_on(&words.code[1..]);
        let most = _mm512_set1_epi32(MOST);
        let counts = _mm512_min_epi32(beginning.planes(words.left), most);
        let count = _mm512_reduce_min_epi32(_mm512_mask_mov_epi32(counts, alone, most));

        let all = _mm512_set1_epi32(count);
        let taken = _mm512_mask_mov_epi32(all, alone, planes);
        let taken = _mm512_maskz_min_epu32(any, taken, planes);
        let first = FirstCoefficients::of::<T, C>(&words.code, zeros, taken);
        let significant = _mm512_mask_cmplt_epi32_mask(!alone, zeros, all);
        let length = _mm512_set1_epi32(2 * count + 1);
        let length = _mm512_mask_sub_epi32(all, significant, length, zeros);
        words.left = _mm512_maskz_mov_epi32(!alone, words.left);
        words.take(length);
        Leads {
            count: count as usize,
            significant: _mm512_maskz_set1_epi32(significant, 1),
            alone,
            first,
        }
    }
}

/// The lanes that have a one-bit in their code.
#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
fn any_bits<const C: usize>(words: &Words<C>) -> __mmask16 {
    let code = words.code.into_iter();
    let all = code.fold(_mm512_setzero_si512(), |all, word| {
        _mm512_or_si512(all, word)
    });
    let some = _mm512_test_epi32_mask(words.left, words.left);
    _mm512_mask_test_epi32_mask(some, all, all)
}

/// How the code of blocks begins, by the first word of each.
struct Beginning {
    /// Planes of nothing.
    zeros: __m512i,
    /// Whether the first coefficient is significant after those,
    begins: __mmask16,
    /// the code without the 1 that says that one is,
    others: __m512i,
    /// and where a 1 after a plane's bit says that there is more in it.
    flags: __m512i,
}

impl Beginning {
    #[inline]
    #[target_feature(
        enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
    )]
    fn of(code: __m512i) -> Self {
        let three = _mm512_set1_epi32(3);
        let zeros = trailing_zeros32(code);
        let begins = _mm512_and_si512(_mm512_srlv_epi32(code, zeros), three);
        Beginning {
            zeros,
            begins: _mm512_cmpeq_epi32_mask(begins, three),
            others: _mm512_and_si512(code, _mm512_add_epi32(code, _mm512_set1_epi32(-1))),
            flags: _mm512_rolv_epi32(_mm512_set1_epi32(0x5555_5555), zeros),
        }
    }

    /// The lanes in which nothing but the first coefficient is in the other words either.
    #[inline]
    #[target_feature(
        enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
    )]
    fn goes_on(&self, words: &[__m512i]) -> __mmask16 {
        let words = words.iter();
        let all = words.fold(self.others, |all, word| _mm512_or_si512(all, *word));
        _mm512_mask_testn_epi32_mask(self.begins, all, self.flags)
    }

    /// Planes that nothing but the first coefficient is in and that are whole, of code of `left` bits.
    #[inline]
    #[target_feature(
        enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
    )]
    fn planes(&self, left: __m512i) -> __m512i {
        let flag = trailing_zeros32(_mm512_and_si512(self.others, self.flags));
        let end = _mm512_add_epi32(left, _mm512_set1_epi32(1));
        let pairs = _mm512_sub_epi32(_mm512_min_epi32(flag, end), _mm512_set1_epi32(2));
        let pairs = _mm512_srai_epi32::<1>(_mm512_sub_epi32(pairs, self.zeros));
        _mm512_mask_add_epi32(self.zeros, self.begins, self.zeros, pairs)
    }
}

impl FirstCoefficients {
    /// Those of blocks whose first so many planes, from the beginning of the code on, have nothing else; lane by lane,
    /// as the numbers of planes of nothing are.
    #[inline]
    #[target_feature(
        enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
    )]
    fn of<T: Value, const C: usize>(code: &[__m512i; C], zeros: __m512i, planes: __m512i) -> Self {
        let all = _mm512_set1_epi32(-1);
        // With zeros before it the bit of plane `k` is bit `2 k + 1 - zeros`; and so is a zero before those.
        let sixteen = |i: usize| {
            odd_bits(match i {
                0 => _mm512_sllv_epi32(code[0], zeros),
                _ => _mm512_shldv_epi32(code[i], code[i - 1], zeros),
            })
        };
        let word = |i: usize, planes: __m512i| {
            let bits = _mm512_or_si512(_mm512_slli_epi32::<16>(sixteen(i)), sixteen(i + 1));
            let bits = _mm512_andnot_si512(_mm512_srlv_epi32(all, planes), bits);
            _mm512_permutexvar_epi32(block_of_lane(), bits)
        };
        let mut first = FirstCoefficients::zeros();
        first.upper = word(0, planes);
        if T::Int::BITS > 32 {
            first.lower = word(2, _mm512_subs_epu16(planes, _mm512_set1_epi32(32)));
        }
        first
    }
}

/// Bits 1, 3, 5 and so on of each 32-bit lane, the first one uppermost of 16.
#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
fn odd_bits(v: __m512i) -> __m512i {
    // Of each byte four, then two times four, and two times eight.
    let fours =
        _mm512_gf2p8affine_epi64_epi8::<0>(v, _mm512_set1_epi64((0x8020_0802_u64 << 32) as i64));
    let eights = _mm512_maddubs_epi16(fours, _mm512_set1_epi16(0x0110));
    _mm512_madd_epi16(eights, _mm512_set1_epi32(0x0001_0100))
}
