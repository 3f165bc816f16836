//! x86-64 with AVX2 and BMI2.

mod batches;
mod bytes;
mod columns;
mod cubes;
mod double;
mod fours;
mod lifting;
mod lines;
mod single;
mod squares;
mod supply;
mod uncolumns;

use super::bmi2::{self, Bmi2};
use super::scalar::Scalar;
use super::{Arch, BATCH, Bmi};
use crate::codec::zfp::Value;
use crate::codec::zfp::bits::BitWriter;
use crate::codec::zfp::blocks::Source;
use crate::codec::zfp::encoder::{self, BlockBits};
use crate::codec::zfp::planes::Planes;
use crate::codec::zfp::range::{self, DecodeTask, EncodeTask};
use crate::codec::zfp::shape::{Cube, Shape};
use crate::codec::zfp::transform::{Header, Headers, LowestExponent};
use crate::codec::zfp::value::Int;
use std::arch::x86_64::*;
use supply::Supply;

/// Proof that the machine has the instructions; with the bit manipulation that is quick on it.
#[derive(Clone, Copy)]
pub struct Avx2<B>(B);

impl Avx2<Bmi2> {
    /// Where bit extraction is quick.
    pub fn extracting() -> Option<Self> {
        // SAFETY: the machine has BMI1 and BMI2.
        (is_present() && bmi2::is_quick()).then(|| Avx2(unsafe { Bmi2::assumed() }))
    }
}

impl Avx2<Scalar> {
    /// Without bit extraction.
    pub fn plain() -> Option<Self> {
        is_present().then_some(Avx2(Scalar))
    }
}

fn is_present() -> bool {
    is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("lzcnt")
        && is_x86_feature_detected!("popcnt")
        && is_x86_feature_detected!("pclmulqdq")
}

impl<B: Bmi> Arch for Avx2<B> {
    type Bmi = B;

    #[inline(always)]
    fn bmi(self) -> B {
        self.0
    }

    #[inline(always)]
    fn forward<T: Value, S: Shape>(
        self,
        sources: &[Source<T>; BATCH],
        lowest: LowestExponent,
        headers: &mut Headers,
        planes: &mut [Planes; BATCH],
    ) -> usize {
        // SAFETY: `self` proves that the machine has the instructions; the only value type of 32 bits is
        // `f32`, the only one of 64 `f64`.
        unsafe {
            if T::Int::BITS == 32 {
                single::forward::<S>(Source::reinterpret(sources), lowest, headers, planes)
            } else {
                double::forward::<S>(Source::reinterpret(sources), lowest, headers, planes)
            }
        }
    }

    #[inline(always)]
    fn inverse<T: Value, S: Shape>(
        self,
        headers: &Headers,
        planes: &[Planes; BATCH],
        blocks: &mut [[T; 64]; BATCH],
    ) {
        let blocks: *mut _ = blocks;
        // SAFETY: as in `forward`.
        unsafe {
            if T::Int::BITS == 32 {
                single::inverse::<S>(headers, planes, &mut *blocks.cast());
            } else {
                double::inverse::<S>(headers, planes, &mut *blocks.cast());
            }
        }
    }

    #[inline(always)]
    fn encode<T: Value, S: Shape>(
        self,
        headers: &Headers,
        planes: &mut [Planes; BATCH],
        budget: usize,
        coded: &mut [BlockBits; BATCH],
    ) {
        match S::DIMS {
            // SAFETY: `self` proves that the machine has the instructions.
            1 => unsafe { lines::encode::<T>(headers, &planes[0], budget, coded) },
            // SAFETY: as above.
            2 => unsafe { squares::encode::<T>(headers, planes, budget, coded) },
            // SAFETY: as above.
            _ if B::EXTRACTS => unsafe { cubes::encode::<T>(headers, planes, budget, coded) },
            _ => {
                // SAFETY: as above.
                let mut supply = unsafe { Supply::begun::<T>(planes, headers, 0) };
                for (i, coded) in coded.iter_mut().take(S::BATCH).enumerate() {
                    // SAFETY: as above.
                    unsafe { encode_cube::<T>(headers.get(i), i, &mut supply, budget, coded) };
                }
            }
        }
    }

    #[inline(always)]
    fn encode_words<T: Value, S: Shape>(
        self,
        headers: &Headers,
        planes: &mut [Planes; BATCH],
        words: &mut [u64],
    ) -> bool {
        if !B::EXTRACTS || S::DIMS < 3 || !words.len().is_multiple_of(S::BATCH) {
            return false;
        }
        // SAFETY: `self` proves that the machine has the instructions.
        unsafe { cubes::encode_words::<T>(headers, planes, words) };
        true
    }
}

/// Codes a 3-D block, making its bit planes as they are needed. (Not inlined: the coder needs all registers.)
#[inline(never)]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
fn encode_cube<T: Value>(
    header: Header,
    block: usize,
    supply: &mut Supply,
    budget: usize,
    coded: &mut BlockBits,
) {
    let mut planes = [0; 64];
    let prepare = |planes: &mut Planes, plane: u32| {
        let first = plane as usize;
        let some = supply.planes::<T>(block, first, first + 8);
        let some = some.iter().step_by(columns::stride::<T>());
        for (plane, &word) in planes[first..].iter_mut().zip(some) {
            *plane = word;
        }
        plane + 8
    };
    encoder::encode_block::<T, Cube>(header, &mut planes, budget, prepare, coded);
}

#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
fn load(words: &[u64; 4]) -> __m256i {
    // SAFETY: 32 readable bytes.
    unsafe { _mm256_loadu_si256(words.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
fn store(v: __m256i, words: &mut [u64; 4]) {
    // SAFETY: 32 writable bytes.
    unsafe { _mm256_storeu_si256(words.as_mut_ptr().cast(), v) }
}

/// Two words of each of two blocks, from word `at` on, a block a lane.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
fn load_lanes(planes: &[Planes; 2], at: usize) -> __m256i {
    let [low, high] = [0, 1].map(|lane: usize| &planes[lane].as_chunks::<2>().0[at / 2]);
    // SAFETY: each is 16 readable bytes.
    unsafe {
        let low = _mm_loadu_si128(low.as_ptr().cast());
        let high = _mm_loadu_si128(high.as_ptr().cast());
        _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(low), high)
    }
}

/// The inverse of [`load_lanes`].
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
fn store_lanes(v: __m256i, planes: &mut [Planes; 2], at: usize) {
    let lanes = [_mm256_castsi256_si128(v), _mm256_extracti128_si256::<1>(v)];
    for (lane, planes) in lanes.into_iter().zip(planes) {
        let pair: &mut [u64; 2] = &mut planes.as_chunks_mut().0[at / 2];
        // SAFETY: 16 writable bytes.
        unsafe { _mm_storeu_si128(pair.as_mut_ptr().cast(), lane) }
    }
}

/// Eight words of a 3-D block of `f64`, from word `8 * group` on: bytes of equal significance → bit planes.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
fn split_cube(planes: &mut Planes, group: usize) {
    let words = &mut planes.as_chunks_mut::<8>().0[group % 8];
    let split = bytes::split_cube(words);
    let halves = words.as_chunks_mut::<4>().0;
    store(split[0], &mut halves[0]);
    store(split[1], &mut halves[1]);
}

/// The inverse of [`split_cube`].
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
fn join_cube(planes: &Planes, group: usize) -> [__m256i; 2] {
    let words = &planes.as_chunks::<8>().0[group];
    let halves = words.as_chunks::<4>().0;
    let [upper, lower] = [load(&halves[0]), load(&halves[1])];
    let any = _mm256_or_si256(upper, lower);
    // Planes that a rate does not reach.
    if _mm256_testz_si256(any, any) == 1 {
        return [any; 2];
    }
    bytes::join_cube([upper, lower])
}

/// [`range::encode`], compiled for this kind of machine.
///
/// # Safety
/// As [`range::encode`].
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
pub unsafe fn encode<T: Value>(
    arch: Avx2<impl Bmi>,
    task: &EncodeTask<T>,
    writer: &mut BitWriter,
) -> usize {
    // SAFETY: the caller's promise, handed on.
    unsafe { range::encode(arch, task, writer) }
}

/// [`range::decode`], compiled for this kind of machine.
///
/// # Safety
/// As [`range::decode`].
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
pub unsafe fn decode<T: Value>(arch: Avx2<impl Bmi>, task: &DecodeTask<T>) -> usize {
    let done = match task.limits.block_bits {
        // SAFETY: the caller's promise, handed on.
        Some(bits) => unsafe { batches::decode(arch, task, bits) },
        None => 0,
    };
    let rest = DecodeTask {
        position: task.position + done * task.limits.block_bits.unwrap_or(0),
        blocks: task.blocks.start + done..task.blocks.end,
        ..*task
    };
    // SAFETY: as above.
    unsafe { range::decode(arch, &rest) }
}
