//! What machines with AVX-512 got later (VBMI, VBMI2, GFNI, VPOPCNTDQ): by an instruction where there is one, else put
//! together of others. The functions are compiled for machines without; so instructions are asked for by name.

use super::pens::LANES;
use super::shifts::{sll, srl};
use std::arch::asm;
use std::arch::x86_64::*;

/// A machine with AVX-512.
///
/// # Safety
/// Where `LATER` is true, a value of the type is the proof that the machine has the later instructions.
pub unsafe trait Level: Copy {
    const LATER: bool;
}

/// The bytes that `vgf2p8affineqb` takes for [`bits_of_bytes`].
pub const BITS_OF_BYTES: i64 = 0x0102_0408_1020_4080;

/// Byte `j` of each eight: bit `7 - j` of the eight bytes, which run backwards.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,bmi1,bmi2,lzcnt,popcnt")]
pub fn bits_of_bytes<L: Level>(_: L, v: __m512i) -> __m512i {
    if L::LATER {
        let planes = _mm512_set1_epi64(BITS_OF_BYTES);
        let bits;
        // SAFETY: an instruction that the machine has, as there is an `L`; it reads and writes registers only.
        unsafe {
            asm!("vgf2p8affineqb {}, {}, {}, 0", out(zmm_reg) bits, in(zmm_reg) planes, in(zmm_reg) v, options(pure, nomem, nostack, preserves_flags));
        }
        return bits;
    }
    // Half matrices, then their halves, change places.
    let v = swap::<9>(v, 0x0055_0055_0055_0055);
    let v = swap::<18>(v, 0x0000_3333_0000_3333);
    swap::<36>(v, 0x0f0f_0f0f)
}

/// Exchanges the bits of `mask` of each 64 with those `BY` above them.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,bmi1,bmi2,lzcnt,popcnt")]
fn swap<const BY: u32>(v: __m512i, mask: i64) -> __m512i {
    let mask = _mm512_set1_epi64(mask);
    let differ = _mm512_ternarylogic_epi64::<A_XOR_B_AND_C>(v, _mm512_srli_epi64::<BY>(v), mask);
    _mm512_ternarylogic_epi64::<XOR>(v, differ, _mm512_slli_epi64::<BY>(differ))
}

const A_XOR_B_AND_C: i32 = 0x28;
const XOR: i32 = 0x96;

/// The ones of each lane; where there is no instruction for it they are what is `known` of them.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,bmi1,bmi2,lzcnt,popcnt")]
pub fn count_ones<L: Level>(_: L, bits: __m512i, known: __m512i) -> __m512i {
    if !L::LATER {
        return known;
    }
    let ones;
    // SAFETY: as above.
    unsafe {
        asm!("vpopcntq {}, {}", out(zmm_reg) ones, in(zmm_reg) bits, options(pure, nomem, nostack, preserves_flags));
    }
    ones
}

/// The nibbles of the low 16 bits of each 32, a byte each.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,bmi1,bmi2,lzcnt,popcnt")]
pub fn nibbles16<L: Level>(level: L, bits: __m512i) -> __m512i {
    let bytes = _mm_setr_epi8(0, 0, 1, 1, 4, 4, 5, 5, 8, 8, 9, 9, 12, 12, 13, 13);
    nibbles(level, bits, 0x2c28_2420_0c08_0400, bytes)
}

/// The nibbles of the low 32 bits of each lane, a byte each.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,bmi1,bmi2,lzcnt,popcnt")]
pub fn nibbles32<L: Level>(level: L, bits: __m512i) -> __m512i {
    let bytes = _mm_setr_epi8(0, 0, 1, 1, 2, 2, 3, 3, 8, 8, 9, 9, 10, 10, 11, 11);
    nibbles(level, bits, 0x1c18_1410_0c08_0400, bytes)
}

/// Nibbles by the place where each of eight begins, or by the byte of a 128-bit lane that each is in, low ones first.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,bmi1,bmi2,lzcnt,popcnt")]
fn nibbles<L: Level>(_: L, bits: __m512i, places: i64, bytes: __m128i) -> __m512i {
    let nibble = _mm512_set1_epi8(0x0f);
    if L::LATER {
        let places = _mm512_set1_epi64(places);
        let nibbles;
        // SAFETY: as above.
        unsafe {
            asm!("vpmultishiftqb {}, {}, {}", out(zmm_reg) nibbles, in(zmm_reg) places, in(zmm_reg) bits, options(pure, nomem, nostack, preserves_flags));
        }
        return _mm512_and_si512(nibbles, nibble);
    }
    let twice = _mm512_shuffle_epi8(bits, _mm512_broadcast_i32x4(bytes));
    let upper = _mm512_srli_epi16::<4>(twice);
    let low_bytes = _mm512_set1_epi16(0xff);
    let both = _mm512_ternarylogic_epi64::<A_CHOOSES>(low_bytes, twice, upper);
    _mm512_and_si512(both, nibble)
}

const A_CHOOSES: i32 = 0xca;

/// Bits moved up by `position % 64`: their part in the word of a bit string that `position` is in.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,bmi1,bmi2,lzcnt,popcnt")]
pub fn in_word<L: Level>(_: L, bits: __m512i, position: __m512i) -> __m512i {
    if L::LATER {
        // SAFETY: there is an `L`.
        return unsafe { shld(bits, _mm512_setzero_si512(), position) };
    }
    sll(bits, in_one(position))
}

/// What [`in_word`] moves out: their part in the next word.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,bmi1,bmi2,lzcnt,popcnt")]
pub fn in_next_word<L: Level>(_: L, bits: __m512i, position: __m512i) -> __m512i {
    if L::LATER {
        // SAFETY: there is an `L`.
        return unsafe { shld(_mm512_setzero_si512(), bits, position) };
    }
    srl(
        bits,
        _mm512_sub_epi64(_mm512_set1_epi64(64), in_one(position)),
    )
}

/// The part in the next word of `low` and then `high`.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,bmi1,bmi2,lzcnt,popcnt")]
pub fn across<L: Level>(level: L, low: __m512i, high: __m512i, position: __m512i) -> __m512i {
    if L::LATER {
        // SAFETY: there is an `L`.
        return unsafe { shld(high, low, position) };
    }
    let low = in_next_word(level, low, position);
    _mm512_or_si512(low, in_word(level, high, position))
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,bmi1,bmi2,lzcnt,popcnt")]
fn in_one(position: __m512i) -> __m512i {
    _mm512_and_si512(position, _mm512_set1_epi64(63))
}

/// The bits of `high` moved up, with those of `low` moved in; `count` is taken modulo 64.
///
/// # Safety
/// The machine must have VBMI2.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,bmi1,bmi2,lzcnt,popcnt")]
unsafe fn shld(high: __m512i, low: __m512i, count: __m512i) -> __m512i {
    let mut moved = high;
    // SAFETY: the caller's promise; the instruction reads and writes registers only.
    unsafe {
        asm!("vpshldvq {}, {}, {}", inout(zmm_reg) moved, in(zmm_reg) low, in(zmm_reg) count, options(pure, nomem, nostack, preserves_flags));
    }
    moved
}

/// The bytes of `v` under the ones of `mask`, one after another; what follows them means nothing.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,bmi1,bmi2,lzcnt,popcnt")]
pub fn compress_bytes<L: Level>(_: L, v: &[u8; 4 * LANES], mask: u32, to: &mut [u8; 4 * LANES]) {
    // SAFETY: 32 readable bytes.
    let bytes = unsafe { _mm256_loadu_si256(v.as_ptr().cast()) };
    if L::LATER {
        let compressed: __m256i;
        // SAFETY: as above; then 32 writable bytes.
        unsafe {
            asm!("vpcompressb {}{{{}}}{{z}}, {}", out(ymm_reg) compressed, in(kreg) mask, in(ymm_reg) bytes, options(pure, nomem, nostack, preserves_flags));
            _mm256_storeu_si256(to.as_mut_ptr().cast(), compressed);
        }
        return;
    }
    let half = |bytes: __m128i, mask: u32| {
        let wide = _mm512_maskz_compress_epi32(mask as u16, _mm512_cvtepu8_epi32(bytes));
        _mm512_cvtepi32_epi8(wide)
    };
    let first = half(_mm256_castsi256_si128(bytes), mask);
    let second = half(_mm256_extracti128_si256::<1>(bytes), mask >> 16);
    let count = (mask & 0xffff).count_ones() as usize;
    // SAFETY: 16 writable bytes each, as `count` is at most 16.
    unsafe {
        _mm_storeu_si128(to.as_mut_ptr().cast(), first);
        _mm_storeu_si128(to.as_mut_ptr().add(count).cast(), second);
    }
}
