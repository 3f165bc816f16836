//! Windows on the code of eight blocks in lockstep, a block to a 64-bit lane.

use super::bytes::Permutation;
use super::registers;
use std::arch::x86_64::*;

pub const LANES: usize = 8;

/// Bits that [`Code::window`] is sure to show.
pub const SHOWN: i64 = 57;

/// The code of eight blocks, `8 * R` bytes of each from some byte of it on, in `R` registers, block after block.
pub struct Code<const R: usize>([__m512i; R]);

impl<const R: usize> Code<R> {
    /// The blocks that begin in these bytes of `bytes`. What is past its end reads as zeros.
    #[inline]
    #[target_feature(
        enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
    )]
    pub fn load(bytes: &[u8], starts: &[usize; LANES]) -> Self {
        const { assert!(R == 2 || R == 4 || R == 8) };
        let last = starts.iter().fold(0, |last, &start| last.max(start));
        if last
            .checked_add(8 * R)
            .is_some_and(|end| end <= bytes.len())
        {
            let first = bytes.as_ptr();
            // SAFETY: so many bytes from any of the starts on are readable.
            return unsafe {
                Self::load_with(
                    starts,
                    |at| _mm_loadu_si128(first.add(at).cast()),
                    |at| _mm256_loadu_si256(first.add(at).cast()),
                    |at| _mm512_loadu_si512(first.add(at).cast()),
                )
            };
        }
        Self::load_with(
            starts,
            |at| load16(bytes, at),
            |at| load32(bytes, at),
            |at| load64(bytes, at),
        )
    }

    /// [`Self::load`], given how to load 16, 32 and 64 bytes.
    #[inline]
    #[target_feature(
        enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
    )]
    fn load_with(
        starts: &[usize; LANES],
        load16: impl Fn(usize) -> __m128i,
        load32: impl Fn(usize) -> __m256i,
        load64: impl Fn(usize) -> __m512i,
    ) -> Self {
        let mut registers = [_mm512_setzero_si512(); R];
        match R {
            2 => {
                for (register, starts) in registers.iter_mut().zip(starts.as_chunks::<4>().0) {
                    let lanes = four!(|i| load16(starts[i]));
                    *register = registers::of_lanes(lanes);
                }
            }
            4 => {
                for (register, starts) in registers.iter_mut().zip(starts.as_chunks::<2>().0) {
                    let (low, high) = (load32(starts[0]), load32(starts[1]));
                    *register = _mm512_inserti64x4::<1>(_mm512_castsi256_si512(low), high);
                }
            }
            _ => {
                for (register, &start) in registers.iter_mut().zip(starts) {
                    *register = load64(start);
                }
            }
        }
        Code(registers)
    }
}

impl<const R: usize> Code<R> {
    /// At least [`SHOWN`] bits of each block from bit `position` on, as far as what is loaded goes.
    #[inline]
    #[target_feature(
        enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
    )]
    pub fn window(&self, position: __m512i) -> __m512i {
        let bytes = self.permute(Self::index(position));
        _mm512_srlv_epi64(bytes, bit_in_byte(position))
    }

    /// [`Self::window`] of the lanes of `mask`, and zeros.
    #[inline]
    #[target_feature(
        enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
    )]
    pub fn masked_window(&self, mask: __mmask8, position: __m512i) -> __m512i {
        let bytes = self.permute(Self::index(position));
        _mm512_maskz_srlv_epi64(mask, bytes, bit_in_byte(position))
    }

    /// Where the eight bytes from bit `position` on are.
    #[inline]
    #[target_feature(
        enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
    )]
    fn index(position: __m512i) -> __m512i {
        let byte = _mm512_srli_epi64::<3>(position);
        let eight = _mm512_shuffle_epi8(byte, EACH_LOW_BYTE.load());
        _mm512_add_epi8(eight, const { &eights::<R>() }.load())
    }

    /// The bytes that `index` names, each in the two registers that hold the block of its lane.
    #[inline]
    #[target_feature(
        enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
    )]
    fn permute(&self, index: __m512i) -> __m512i {
        let lanes = 2 * LANES / R.max(2);
        let pairs = self.0.as_chunks::<2>().0;
        let mut parts = [_mm512_setzero_si512(); LANES];
        for (i, (part, pair)) in parts.iter_mut().zip(pairs).enumerate() {
            let mine = u64::MAX >> (64 - 8 * lanes) << (8 * lanes * i);
            *part = _mm512_maskz_permutex2var_epi8(mine, pair[0], index, pair[1]);
        }
        let [a, b, c, d] = four!(|i| _mm512_or_si512(parts[2 * i], parts[2 * i + 1]));
        _mm512_or_si512(_mm512_or_si512(a, b), _mm512_or_si512(c, d))
    }
}

#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
fn bit_in_byte(position: __m512i) -> __m512i {
    _mm512_and_si512(position, _mm512_set1_epi64(7))
}

/// 64 bits of each block of two groups from bit `position` on, and at least [`SHOWN`] that follow them.
#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
pub fn windows<const R: usize>(codes: [&Code<R>; 2], position: [__m512i; 2]) -> [[__m512i; 2]; 2] {
    let index = two!(|g| Code::<R>::index(position[g]));
    let low = two!(|g| codes[g].permute(index[g]));
    let after = two!(|g| _mm512_add_epi8(index[g], _mm512_set1_epi8(8)));
    let high = two!(|g| codes[g].permute(after[g]));
    let bit = two!(|g| bit_in_byte(position[g]));
    [
        two!(|g| _mm512_shrdv_epi64(low[g], high[g], bit[g])),
        two!(|g| _mm512_srlv_epi64(high[g], bit[g])),
    ]
}

/// In each 64-bit element, its low byte everywhere.
static EACH_LOW_BYTE: Permutation = Permutation::of(each_low_byte());

const fn each_low_byte() -> [u8; 64] {
    let mut table = [0; 64];
    let mut i = 0;
    while i < 64 {
        table[i] = (i / 8 % 2 * 8) as u8;
        i += 1;
    }
    table
}

/// The first eight bytes of each lane's block in its pair of registers.
const fn eights<const R: usize>() -> Permutation {
    let mut table = [0; 64];
    let mut i = 0;
    while i < 64 {
        table[i] = (i / 8 * 8 * R % 128 + i % 8) as u8;
        i += 1;
    }
    Permutation::of(table)
}

#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
pub fn load16(bytes: &[u8], at: usize) -> __m128i {
    let rest = bytes.get(at..).unwrap_or(&[]);
    if let Some(all) = rest.first_chunk::<16>() {
        // SAFETY: 16 readable bytes.
        return unsafe { _mm_loadu_si128(all.as_ptr().cast()) };
    }
    let there = (1u32 << rest.len()) - 1;
    // SAFETY: only the bytes that are there are read.
    unsafe { _mm_maskz_loadu_epi8(there as __mmask16, rest.as_ptr().cast()) }
}

#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
fn load32(bytes: &[u8], at: usize) -> __m256i {
    let rest = bytes.get(at..).unwrap_or(&[]);
    if let Some(all) = rest.first_chunk::<32>() {
        // SAFETY: 32 readable bytes.
        return unsafe { _mm256_loadu_si256(all.as_ptr().cast()) };
    }
    let there = (1u32 << rest.len()) - 1;
    // SAFETY: only the bytes that are there are read.
    unsafe { _mm256_maskz_loadu_epi8(there, rest.as_ptr().cast()) }
}

#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
pub fn load64(bytes: &[u8], at: usize) -> __m512i {
    let rest = bytes.get(at..).unwrap_or(&[]);
    if let Some(all) = rest.first_chunk::<64>() {
        // SAFETY: 64 readable bytes.
        return unsafe { _mm512_loadu_si512(all.as_ptr().cast()) };
    }
    let there = (1u64 << rest.len()) - 1;
    // SAFETY: only the bytes that are there are read.
    unsafe { _mm512_maskz_loadu_epi8(there, rest.as_ptr().cast()) }
}
