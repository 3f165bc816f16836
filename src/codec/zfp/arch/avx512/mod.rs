//! x86-64 with AVX-512 as of Ice Lake and Zen 4: byte permutes across a register (VBMI) and bit matrix
//! transposes (GFNI) make bit planes. What is compiled for less is there for [`plain`] as well.

mod alone;
mod bytes;
mod columns;
mod cubes;
mod decode;
mod double;
mod doubling;
mod join32;
mod later;
mod leads;
mod lifting;
mod lines;
mod pens;
mod plain;
mod registers;
mod shifts;
mod single;
mod squares;
mod tails;
mod unlanes;
mod unlines;
mod unsquares;
mod verbatim;
mod window;
mod words;

use super::bmi2::Bmi2;
use super::{Arch, BATCH};
use crate::codec::zfp::Value;
use crate::codec::zfp::bits::BitWriter;
use crate::codec::zfp::blocks::{Source, Target};
use crate::codec::zfp::encoder::BlockBits;
use crate::codec::zfp::planes::Planes;
use crate::codec::zfp::range::{self, DecodeTask, EncodeTask};
use crate::codec::zfp::shape::{Cube, Line, Shape, Square};
use crate::codec::zfp::transform::{Headers, LowestExponent};
use crate::codec::zfp::value::Int;
use later::Level;
use pens::{Paper, Ream, Slips};
pub use plain::{Avx512Plain, encode as encode_plain};

/// Proof that the machine has the instructions.
#[derive(Clone, Copy)]
pub struct Avx512(());

impl Avx512 {
    pub fn new() -> Option<Avx512> {
        let present = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("avx512cd")
            && is_x86_feature_detected!("avx512vbmi")
            && is_x86_feature_detected!("avx512vbmi2")
            && is_x86_feature_detected!("avx512vpopcntdq")
            && is_x86_feature_detected!("gfni")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("lzcnt")
            && is_x86_feature_detected!("popcnt");
        present.then_some(Avx512(()))
    }
}

// SAFETY: there is no other way to a value than to ask for the instructions.
unsafe impl Level for Avx512 {
    const LATER: bool = true;
}

impl Arch for Avx512 {
    type Bmi = Bmi2;
    const FETCHES_LINES: bool = true;

    #[inline(always)]
    fn blocks<T: Value, S: Shape>() -> usize {
        BATCH
    }

    #[inline(always)]
    fn bmi(self) -> Bmi2 {
        // SAFETY: `self` proves that the machine has BMI2 too.
        unsafe { Bmi2::assumed() }
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
                single::forward::<S>(self, Source::reinterpret(sources), lowest, headers, planes)
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
        let mut targets = Target::all_copied(blocks);
        // SAFETY: `self` proves that the machine has the instructions.
        unsafe {
            let first = leads::FirstCoefficients::zeros();
            decode::inverse::<T, S>(headers, planes, &first, &mut targets);
        }
    }

    #[inline(always)]
    fn encode_words<T: Value, S: Shape>(
        self,
        headers: &Headers,
        planes: &mut [Planes; BATCH],
        words: &mut [u64],
    ) -> bool {
        let budget = 64 * words.len() / BATCH;
        if budget.is_multiple_of(64) {
            encode_to::<T, S>(self, headers, planes, budget, &mut Ream(words));
            return true;
        }
        match words.as_chunks_mut() {
            ([words], []) => {
                encode_to::<T, S>(self, headers, planes, budget, &mut Slips(words));
                true
            }
            _ => false,
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
        encode_to::<T, S>(self, headers, planes, budget, coded);
    }
}

/// [`Arch::encode`], wherever it goes.
#[inline(always)]
fn encode_to<T: Value, S: Shape>(
    level: Avx512,
    headers: &Headers,
    planes: &[Planes; BATCH],
    budget: usize,
    paper: &mut impl Paper,
) {
    // SAFETY: there is an `Avx512`, which proves that the machine has the instructions.
    unsafe {
        match S::DIMS {
            1 => lines::encode::<_, T>(level, headers, planes, budget, paper),
            2 => squares::encode::<_, T>(level, headers, planes, budget, paper),
            _ => cubes::encode::<_, T>(level, headers, planes, budget, paper),
        }
    }
}

/// [`range::encode`], compiled for this kind of machine.
///
/// # Safety
/// As [`range::encode`].
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
pub unsafe fn encode<T: Value>(
    arch: Avx512,
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
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
pub unsafe fn decode<T: Value>(arch: Avx512, task: &DecodeTask<T>) -> usize {
    // SAFETY: the caller's promise, handed on.
    unsafe {
        match task.grid.dims {
            1 => decode::decode::<T, Line>(arch, task),
            2 => decode::decode::<T, Square>(arch, task),
            _ => decode::decode::<T, Cube>(arch, task),
        }
    }
}

/// Decodes runs of blocks of one stream, side by side. Returns the position after each.
///
/// # Safety
/// As [`range::decode`], for every task; they must be of the same stream and grid, which has two axes or three.
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
pub unsafe fn decode_together<T: Value>(arch: Avx512, tasks: &[DecodeTask<T>]) -> Vec<usize> {
    let tasks = tasks.chunks(BATCH);
    let decoded = tasks.map(|tasks| {
        // SAFETY: the caller's promise, handed on.
        unsafe {
            match tasks[0].grid.dims {
                2 => decode::decode_together::<T, Square>(arch, tasks),
                _ => decode::decode_together::<T, Cube>(arch, tasks),
            }
        }
    });
    decoded.flatten().collect()
}
