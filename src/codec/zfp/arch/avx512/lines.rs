//! The embedded coder of 1-D blocks, sixteen in lockstep, one in each 64-bit lane of two registers, eight planes at a
//! time, by table.
//!
//! See [`crate::codec::zfp::encoder`] for the code.

use super::doubling::{join_bytes, join_halves};
use super::later::Level;
use super::pens::{self, Kept, Pages, Paper, Pens};
use super::registers::load;
use crate::codec::zfp::Value;
use crate::codec::zfp::arch::BATCH;
use crate::codec::zfp::line;
use crate::codec::zfp::planes::Planes;
use crate::codec::zfp::transform::Headers;
use crate::codec::zfp::value::Int;
use std::arch::x86_64::*;

/// As [`super::cubes::encode`], of planes as `bytes` stores those of lines.
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
    let counts = two!(|g| pens::widen(&headers.planes.as_chunks().0[g]));
    let most = headers.most_planes();
    let mut seen = [_mm512_setzero_si512(); 2];
    for k in (0..T::Int::BITS).step_by(8) {
        if k >= most || pens.are_done() {
            break;
        }
        pages.make_room(level, paper);
        let [(a, length_a, first), (b, length_b, second)] = two!(|g| {
            let words = planes[g].as_chunks().0;
            let words = pens::in_lanes(load(&words[k as usize / 16]));
            let words = if k % 16 == 0 {
                words
            } else {
                _mm512_srli_epi16::<4>(words)
            };
            let nibbles = _mm512_and_si512(words, _mm512_set1_epi8(0x0f));
            encode_planes::<T>(nibbles, k, seen[g], counts[g])
        });
        seen = [first, second];
        pens.push(&mut pages, [a, b], [length_a, length_b]);
    }
    pages.finish(&pens, paper);
}

/// The code of one plane of a 1-D block and its length, for each plane and each number of coefficients
/// that were significant before.
static LINE_CODES: ([u8; 128], [u8; 128]) = line_codes();

const fn line_codes() -> ([u8; 128], [u8; 128]) {
    let (mut codes, mut lengths) = ([0; 128], [0; 128]);
    let mut i = 0;
    while i < 5 * 16 {
        let (code, length, _) = line::plane_code(i % 16, i / 16);
        codes[i as usize] = code as u8;
        lengths[i as usize] = length as u8;
        i += 1;
    }
    (codes, lengths)
}

/// Eight planes of eight 1-D blocks, a plane a byte. `seen` is, in every byte, the union of all planes
/// before; returns it.
#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
fn encode_planes<T: Value>(
    planes: __m512i,
    k: u32,
    seen: __m512i,
    counts: __m512i,
) -> (__m512i, __m512i, __m512i) {
    let union = _mm512_or_si512(planes, _mm512_slli_epi64::<8>(planes));
    let union = _mm512_or_si512(union, _mm512_slli_epi64::<16>(union));
    let union = _mm512_or_si512(union, _mm512_slli_epi64::<32>(union));
    let before = _mm512_or_si512(seen, _mm512_slli_epi64::<8>(union));
    let last = _mm512_broadcast_i32x4(_mm_setr_epi8(
        7, 7, 7, 7, 7, 7, 7, 7, 15, 15, 15, 15, 15, 15, 15, 15,
    ));
    let after = _mm512_or_si512(seen, _mm512_shuffle_epi8(union, last));
    // 16 times the number of significant coefficients.
    let states = _mm_setr_epi8(
        0, 16, 32, 32, 48, 48, 48, 48, 64, 64, 64, 64, 64, 64, 64, 64,
    );
    let state = _mm512_shuffle_epi8(_mm512_broadcast_i32x4(states), before);
    let index = _mm512_or_si512(state, planes);
    let codes = look_up(&LINE_CODES.0, index);
    let lengths = look_up(&LINE_CODES.1, index);
    let steps = _mm512_set1_epi64(0x0706_0504_0302_0100);
    let number = _mm512_add_epi8(_mm512_set1_epi8(k as i8), steps);
    let limit = _mm512_shuffle_epi8(
        counts,
        _mm512_broadcast_i32x4(_mm_setr_epi8(
            0, 0, 0, 0, 0, 0, 0, 0, 8, 8, 8, 8, 8, 8, 8, 8,
        )),
    );
    let coded = _mm512_cmpgt_epu8_mask(limit, number);
    let (codes, lengths) = join_bytes(
        _mm512_maskz_mov_epi8(coded, codes),
        _mm512_maskz_mov_epi8(coded, lengths),
    );
    let (code, length) = join_halves(codes, lengths);
    (code, length, after)
}

#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
fn look_up(table: &[u8; 128], index: __m512i) -> __m512i {
    let halves = table.as_chunks::<64>().0;
    // SAFETY: each half is 64 readable bytes.
    unsafe {
        let low = _mm512_loadu_si512(halves[0].as_ptr().cast());
        let high = _mm512_loadu_si512(halves[1].as_ptr().cast());
        _mm512_permutex2var_epi8(low, index, high)
    }
}
