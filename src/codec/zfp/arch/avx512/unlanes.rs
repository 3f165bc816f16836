//! The embedded decoder, eight blocks in lockstep, one in each 64-bit lane.
//!
//! See [`crate::codec::zfp::decoder`] for the method. The code of each block lies in registers, eight
//! blocks' words side by side, and moves down by what each plane takes. A plane that ends in another
//! way than usual - by the block's last coefficient, by the end of the block, or not for a long time -
//! is decoded on its own.

use super::lifting::transpose8;
use crate::codec::zfp::Value;
use crate::codec::zfp::arch::bmi2::Bmi2;
use crate::codec::zfp::arch::{BATCH, Bmi};
use crate::codec::zfp::bits::bytes_of;
use crate::codec::zfp::decoder::decode_any_tail;
use crate::codec::zfp::planes::Planes;
use crate::codec::zfp::range::copy_bits;
use crate::codec::zfp::shape::Shape;
use crate::codec::zfp::transform::{Header, Headers, LowestExponent};
use crate::codec::zfp::value::Int;
use std::arch::x86_64::*;

const LANES: usize = 8;

/// Bits of the longest blocks that registers are there for.
pub const LONGEST: usize = 1024;

/// A block's words and zeros after them.
type Words = [u64; LONGEST / 64 + 8];

/// [`crate::codec::zfp::arch::Arch::decode_batch`].
#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
pub fn decode<T: Value, S: Shape>(
    bytes: &[u8],
    position: usize,
    block_bits: usize,
    bmi: Bmi2,
    headers: &mut Headers,
    planes: &mut [Planes; BATCH],
) {
    let mut words: [Words; LANES] = [[0; LONGEST / 64 + 8]; LANES];
    for (lane, words) in words.iter_mut().enumerate() {
        copy_bits(bytes, position + lane * block_bits, block_bits, words);
    }
    let planes = &mut planes.as_chunks_mut::<LANES>().0[0];
    let used = (T::Int::BITS as usize * S::SIZE / 64).min(64);
    for planes in planes.iter_mut() {
        planes[..used].fill(0);
    }
    match block_bits {
        0..=128 => decode_words::<T, S, 2>(&words, block_bits, bmi, headers, planes),
        129..=256 => decode_words::<T, S, 4>(&words, block_bits, bmi, headers, planes),
        257..=512 => decode_words::<T, S, 8>(&words, block_bits, bmi, headers, planes),
        _ => decode_words::<T, S, 16>(&words, block_bits, bmi, headers, planes),
    }
}

#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
fn decode_words<T: Value, S: Shape, const W: usize>(
    words: &[Words; LANES],
    block_bits: usize,
    bmi: Bmi2,
    headers: &mut Headers,
    planes: &mut [Planes; LANES],
) {
    let zero = _mm512_setzero_si512();
    let one = _mm512_set1_epi64(1);
    let size = _mm512_set1_epi64(S::SIZE as i64);
    let mut code = load::<W>(words);
    for (lane, words) in words.iter().enumerate() {
        let bits = words[0] as u32 & ((1 << T::HEADER_BITS) - 1);
        let mut header = Header::ZEROS;
        if bits & 1 == 1 {
            header.bits = bits;
            header.planes = LowestExponent::NONE.planes::<T, S>(header.biased_exponent());
        }
        headers.set(lane, header);
    }
    let limits: &[u32; LANES] = &headers.planes.as_chunks().0[0];
    // SAFETY: 32 readable bytes.
    let limits = unsafe { _mm256_loadu_si256(limits.as_ptr().cast()) };
    let limits = _mm512_cvtepu32_epi64(limits);
    let header_bits = _mm512_set1_epi64(T::HEADER_BITS.into());
    let mut left = _mm512_set1_epi64((block_bits - T::HEADER_BITS as usize) as i64);
    drop_bits(&mut code, header_bits);
    let mut significant = zero;
    for k in 0..T::Int::BITS {
        let active = _mm512_cmpgt_epu64_mask(left, zero)
            & _mm512_cmpgt_epu64_mask(limits, _mm512_set1_epi64(k.into()));
        if active == 0 {
            return;
        }
        let unknown = _mm512_sllv_epi64(_mm512_set1_epi64(-1), significant);
        let known = _mm512_maskz_andnot_epi64(active, unknown, code[0]);
        let tail = Tails::new(_mm512_shrdv_epi64(code[0], code[1], significant));
        let has_tail = active
            & _mm512_cmplt_epu64_mask(significant, size)
            & _mm512_cmpgt_epu64_mask(left, significant);
        let some = has_tail & tail.some;
        let mut reach = _mm512_maskz_mov_epi64(some, tail.reach);
        let mut length = _mm512_maskz_mov_epi64(has_tail, one);
        length = _mm512_mask_add_epi64(length, some, tail.end, _mm512_set1_epi64(2));
        let now = _mm512_add_epi64(significant, reach);
        let taken = _mm512_add_epi64(significant, length);
        let special = some
            & (_mm512_cmpge_epu64_mask(now, size)
                | _mm512_cmpge_epu64_mask(tail.end, _mm512_set1_epi64(63))
                | _mm512_cmpgt_epu64_mask(taken, left));

        let code_of: [u64; LANES] = lanes(tail.code);
        let usual = _mm512_maskz_mov_epi64(some & !special, tail.coefficients);
        let (coefficients, known, before) = (lanes(usual), lanes(known), lanes(significant));
        for lane in 0..LANES {
            let bits = bmi.extract(code_of[lane], coefficients[lane]);
            put::<S>(
                &mut planes[lane],
                k,
                known[lane] | bits << (before[lane] % 64),
            );
        }
        if special != 0 {
            let (mut reaches, mut lengths) = (lanes(reach), lanes(length));
            let left = lanes(left);
            let mut rest = special;
            while rest != 0 {
                let lane = rest.trailing_zeros() as usize % LANES;
                rest &= rest - 1;
                let start = block_bits - left[lane] as usize + before[lane] as usize;
                let bytes = bytes_of(&words[lane]);
                let significant = before[lane] as u32;
                let tail = decode_any_tail::<S>(bytes, start, block_bits, significant, bmi);
                put::<S>(&mut planes[lane], k, tail.bits << (significant % 64));
                (reaches[lane], lengths[lane]) = (tail.reach.into(), tail.length.into());
            }
            (reach, length) = (vector(&reaches), vector(&lengths));
        }
        let taken = _mm512_maskz_add_epi64(active, significant, length);
        significant = _mm512_add_epi64(significant, reach);
        left = _mm512_sub_epi64(left, _mm512_min_epu64(left, taken));
        drop_bits(&mut code, taken);
    }
}

/// Tails of planes, taken apart as in [`crate::codec::zfp::decoder`].
struct Tails {
    /// Where there is anything.
    some: __mmask8,
    code: __m512i,
    /// The bits of the code that are coefficients, up to the last one-bit.
    coefficients: __m512i,
    /// Their number.
    reach: __m512i,
    /// The place of the 0 after the last one-bit.
    end: __m512i,
}

impl Tails {
    #[inline]
    #[target_feature(
        enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
    )]
    fn new(window: __m512i) -> Tails {
        let even = _mm512_set1_epi64(0x5555_5555_5555_5555);
        let code = _mm512_srli_epi64::<1>(window);
        let starts = _mm512_andnot_si512(_mm512_slli_epi64::<1>(code), code);
        let from_even = _mm512_add_epi64(code, _mm512_and_si512(starts, even));
        let from_odd = _mm512_add_epi64(code, _mm512_andnot_si512(even, starts));
        let in_even_runs = _mm512_andnot_si512(from_even, code);
        let in_odd_runs = _mm512_and_si512(from_even, code);
        let more = _mm512_or_si512(
            _mm512_andnot_si512(even, in_even_runs),
            _mm512_and_si512(even, in_odd_runs),
        );
        let ends = _mm512_or_si512(
            _mm512_andnot_si512(even, from_even),
            _mm512_and_si512(even, from_odd),
        );
        let ends = _mm512_andnot_si512(code, ends);
        let below = _mm512_andnot_si512(ends, _mm512_sub_epi64(ends, _mm512_set1_epi64(1)));
        let coefficients = _mm512_andnot_si512(more, below);
        Tails {
            some: _mm512_test_epi64_mask(window, _mm512_set1_epi64(1)),
            code,
            coefficients,
            reach: _mm512_popcnt_epi64(coefficients),
            end: _mm512_popcnt_epi64(below),
        }
    }
}

/// Word `i` of every block in register `i`.
#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
fn load<const W: usize>(words: &[Words; LANES]) -> [__m512i; W] {
    let mut code = [_mm512_setzero_si512(); W];
    for (eight, code) in code.chunks_mut(8).enumerate() {
        let rows = eight!(|lane| {
            let row: &[u64; 8] = &words[lane].as_chunks().0[eight];
            vector(row)
        });
        for (code, row) in code.iter_mut().zip(transpose8(rows)) {
            *code = row;
        }
    }
    code
}

/// Drops up to 128 bits from the front of each lane's code.
#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
fn drop_bits<const W: usize>(code: &mut [__m512i; W], count: __m512i) {
    let mut whole = _mm512_srli_epi64::<6>(count);
    loop {
        let moved = _mm512_test_epi64_mask(whole, whole);
        if moved == 0 {
            break;
        }
        for i in 0..W - 1 {
            code[i] = _mm512_mask_mov_epi64(code[i], moved, code[i + 1]);
        }
        code[W - 1] = _mm512_mask_mov_epi64(code[W - 1], moved, _mm512_setzero_si512());
        whole = _mm512_mask_sub_epi64(whole, moved, whole, _mm512_set1_epi64(1));
    }
    for i in 0..W - 1 {
        code[i] = _mm512_shrdv_epi64(code[i], code[i + 1], count);
    }
    let rest = _mm512_and_si512(count, _mm512_set1_epi64(63));
    code[W - 1] = _mm512_srlv_epi64(code[W - 1], rest);
}

/// Adds bits to plane `k`.
#[inline(always)]
fn put<S: Shape>(planes: &mut Planes, k: u32, bits: u64) {
    if S::SIZE == 64 {
        planes[k as usize % 64] |= bits;
    } else {
        planes[(k / 4) as usize % 64] |= bits << (k % 4 * 16);
    }
}

#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
fn lanes(v: __m512i) -> [u64; LANES] {
    let mut lanes = [0; LANES];
    // SAFETY: 64 writable bytes.
    unsafe { _mm512_storeu_si512(lanes.as_mut_ptr().cast(), v) }
    lanes
}

#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
fn vector(lanes: &[u64; LANES]) -> __m512i {
    // SAFETY: 64 readable bytes.
    unsafe { _mm512_loadu_si512(lanes.as_ptr().cast()) }
}
