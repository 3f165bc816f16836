//! The embedded coder of 2-D blocks, sixteen in lockstep, one in each 64-bit lane of two registers, four planes at a
//! time.
//!
//! See [`crate::codec::zfp::encoder`] for the code.

use super::doubling::{double4, join_bytes, join_halves, shl32};
use super::later::Level;
use super::pens::{self, Kept, Pages, Paper, Pens};
use super::shifts::trailing_zeros;
use crate::codec::zfp::Value;
use crate::codec::zfp::arch::BATCH;
use crate::codec::zfp::planes::Planes;
use crate::codec::zfp::transform::Headers;
use crate::codec::zfp::value::Int;
use std::arch::x86_64::*;

/// As [`super::cubes::encode`].
#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
pub fn encode<L: Level, T: Value>(
    level: L,
    headers: &Headers,
    planes: &[Planes; BATCH],
    budget: usize,
    paper: &mut impl Paper,
) {
    let mut pens = Pens::new::<T>(level, headers, budget);
    let mut kept = Kept::pair();
    let mut pages = Pages::new(budget, &mut kept);
    let mut counts = two!(|g| pens::widen(&headers.planes.as_chunks().0[g]));
    let groups = planes.as_chunks().0;
    let mut words = two!(|g| pens::turn(&groups[g], 0));
    if budget != usize::MAX {
        let rest = |g: usize| pens::turn(&groups[g], 8);
        counts = encode_alone::<L, T>(&words, rest, counts, &mut pens, &mut pages);
    }
    let most = _mm512_reduce_max_epu64(_mm512_max_epu64(counts[0], counts[1])) as u32;
    let mut significant = [_mm512_setzero_si512(); 2];
    'planes: for many in (0..T::Int::BITS).step_by(32) {
        if many >= most || pens.are_done() {
            break;
        }
        if many > 0 {
            words = two!(|g| pens::turn(&groups[g], many as usize / 4));
        }
        for i in 0..8 {
            let k = many + 4 * i;
            if k >= most || pens.are_done() {
                break 'planes;
            }
            pages.make_room(level, paper);
            let [(a, first), (b, second)] = two!(|g| {
                encode_planes::<T>(words[g][i as usize], k, significant[g], counts[g])
            });
            significant = [first, second];
            pens.push_two(
                &mut pages,
                [a.low, b.low],
                [a.high, b.high],
                [a.length, b.length],
            );
        }
    }
    pages.finish(&pens, paper);
}

/// Encodes blocks of one value whole, at fixed rate: all of their planes are of the first coefficient alone, and others
/// need not wait for them. Returns the numbers of planes, but none for those. Of all blocks `words` are the first planes,
/// and `rest` gives the others.
#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
fn encode_alone<L: Level, T: Value>(
    words: &[[__m512i; 8]; 2],
    rest: impl Fn(usize) -> [__m512i; 8],
    counts: [__m512i; 2],
    pens: &mut Pens<L>,
    pages: &mut Pages,
) -> [__m512i; 2] {
    let none = two!(|g| _mm512_testn_epi64_mask(counts[g], counts[g]));
    let all = _mm512_set1_epi64(T::Int::BITS.into());
    let whole = two!(|g| _mm512_cmpeq_epi64_mask(counts[g], all));
    let mut alone = two!(|g| whole[g] & only_first(&words[g]));
    if alone[0] | alone[1] != 0 {
        let low = two!(|g| pairs(&words[g]));
        let mut high = [_mm512_setzero_si512(); 2];
        if T::Int::BITS > 32 {
            let rest = two!(|g| rest(g));
            alone = two!(|g| alone[g] & only_first(&rest[g]));
            high = two!(|g| pairs(&rest[g]));
        }
        let codes = two!(|g| code_alone(low[g], high[g]));
        pens.push_two(
            pages,
            two!(|g| _mm512_maskz_mov_epi64(alone[g], codes[g].low)),
            two!(|g| _mm512_maskz_mov_epi64(alone[g], codes[g].high)),
            two!(|g| _mm512_maskz_mov_epi64(alone[g], codes[g].length)),
        );
    }
    pens.leave_out(two!(|g| alone[g] | none[g]));
    two!(|g| _mm512_maskz_mov_epi64(!alone[g], counts[g]))
}

/// Which blocks have nothing but the first coefficient in 32 planes.
#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
fn only_first([a, b, c, d, e, f, g, h]: &[__m512i; 8]) -> __mmask8 {
    let any = _mm512_or_si512(_mm512_or_si512(*a, *b), _mm512_or_si512(*c, *d));
    let more = _mm512_or_si512(_mm512_or_si512(*e, *f), _mm512_or_si512(*g, *h));
    let others = _mm512_set1_epi64(0xfffe_fffe_fffe_fffe_u64 as i64);
    _mm512_testn_epi64_mask(_mm512_or_si512(any, more), others)
}

/// 32 planes of blocks of one value → the bit of the first coefficient in each, with a 0 before it.
#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
fn pairs(words: &[__m512i; 8]) -> __m512i {
    let mut all = _mm512_setzero_si512();
    for word in words.iter().rev() {
        let two = _mm512_or_si512(*word, _mm512_srli_epi64::<14>(*word));
        let four = _mm512_or_si512(two, _mm512_srli_epi64::<28>(two));
        let four = _mm512_and_si512(four, _mm512_set1_epi64(0x55));
        all = _mm512_or_si512(_mm512_slli_epi64::<8>(all), four);
    }
    _mm512_add_epi64(all, all)
}

/// The code of blocks of one value, from [`pairs`] of all planes, up to the last one-bit of it at least. Planes of
/// nothing are a 0 each; then comes a 1, and for each plane its bit and a 0.
#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
fn code_alone(low: __m512i, high: __m512i) -> Code {
    let beyond = _mm512_add_epi64(trailing_zeros(high), _mm512_set1_epi64(64));
    let none = _mm512_testn_epi64_mask(low, low);
    let zeros = _mm512_mask_mov_epi64(trailing_zeros(low), none, beyond);
    let zeros = _mm512_srli_epi64::<1>(zeros);
    let one = _mm512_sllv_epi64(_mm512_set1_epi64(1), zeros);
    Code {
        low: _mm512_or_si512(_mm512_shrdv_epi64(low, high, zeros), one),
        high: _mm512_srlv_epi64(high, zeros),
        length: _mm512_set1_epi64(128),
    }
}

/// Up to 128 bits of each block.
struct Code {
    low: __m512i,
    high: __m512i,
    length: __m512i,
}

/// Four planes of eight 2-D blocks; their code, and how many coefficients are significant after it.
#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
fn encode_planes<T: Value>(
    word: __m512i,
    k: u32,
    significant: __m512i,
    counts: __m512i,
) -> (Code, __m512i) {
    let pick = _mm_setr_epi8(0, 1, -1, -1, 2, 3, -1, -1, 8, 9, -1, -1, 10, 11, -1, -1);
    let pair = _mm512_shuffle_epi8(word, _mm512_broadcast_i32x4(pick));
    let (low, length, significant) = encode_pair(pair, k, significant, counts);
    let word = _mm512_srli_epi64::<32>(word);
    let pair = _mm512_shuffle_epi8(word, _mm512_broadcast_i32x4(pick));
    let (next, more, significant) = encode_pair(pair, k + 2, significant, counts);
    let high = _mm512_srlv_epi64(next, _mm512_sub_epi64(_mm512_set1_epi64(64), length));
    let low = _mm512_or_si512(low, _mm512_sllv_epi64(next, length));
    let length = _mm512_add_epi64(length, more);
    (Code { low, high, length }, significant)
}

/// Two planes, each in 32 bits: code, length, and how many coefficients are significant after it.
#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
fn encode_pair(
    pair: __m512i,
    k: u32,
    significant: __m512i,
    planes: __m512i,
) -> (__m512i, __m512i, __m512i) {
    let size = _mm512_set1_epi32(16);
    let word = _mm512_set1_epi32(32);
    let one = _mm512_set1_epi32(1);
    // What the first plane makes significant is so for the second.
    let reach = _mm512_sub_epi32(word, _mm512_lzcnt_epi32(pair));
    let before = _mm512_max_epu32(significant, _mm512_slli_epi64::<32>(reach));
    let after = _mm512_shuffle_epi32::<0xf5>(_mm512_max_epu32(before, reach));

    let known = _mm512_andnot_si512(_mm512_sllv_epi32(_mm512_set1_epi32(-1), before), pair);
    let rest = _mm512_srlv_epi32(pair, before);
    let any = _mm512_test_epi32_mask(rest, rest);
    let leading = _mm512_lzcnt_epi32(rest);
    let reach = _mm512_sub_epi32(word, leading);
    let others = _mm512_xor_si512(
        rest,
        _mm512_srlv_epi32(_mm512_set1_epi32(i32::MIN), leading),
    );
    let nibbles = _mm512_multishift_epi64_epi8(_mm512_set1_epi64(0x2c28_2420_0c08_0400), others);
    let (codes, lengths) = double4(_mm512_and_si512(nibbles, _mm512_set1_epi8(0x0f)));
    let (code, ones) = join_bytes(codes, lengths);
    // `ones` is 16 too many. As in `cubes` from here on.
    let flag = _mm512_maskz_mov_epi32(any, one);
    let code = _mm512_or_si512(_mm512_slli_epi32::<1>(code), flag);
    let last = _mm512_sub_epi32(_mm512_add_epi32(reach, ones), size);
    let open = _mm512_cmplt_epu32_mask(_mm512_add_epi32(before, reach), size);
    let mark = _mm512_maskz_mov_epi32(open, flag);
    let code = _mm512_or_si512(code, shl32(mark, last));
    let length = _mm512_add_epi32(last, flag);
    let length = _mm512_mask_add_epi32(last, open, length, one);
    let code = _mm512_or_si512(known, shl32(code, before));

    let index = _mm512_set1_epi64((u64::from(k + 1) << 32 | u64::from(k)) as i64);
    let limit = _mm512_or_si512(planes, _mm512_slli_epi64::<32>(planes));
    let coded = _mm512_cmpgt_epu32_mask(limit, index);
    let code = _mm512_maskz_mov_epi32(coded, code);
    let length = _mm512_maskz_add_epi32(coded, before, length);
    let (code, length) = join_halves(code, length);
    (code, length, after)
}
