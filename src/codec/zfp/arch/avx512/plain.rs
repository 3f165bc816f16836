//! x86-64 with AVX-512 as of Skylake-X and Cascade Lake. The coder of 3-D `f32` blocks, which is where most is gained,
//! is that of later machines; the rest is AVX2's.

use super::cubes;
use super::later::Level;
use super::pens::{Paper, Ream};
use super::single;
use crate::codec::zfp::Value;
use crate::codec::zfp::arch::avx2::Avx2;
use crate::codec::zfp::arch::bmi2::Bmi2;
use crate::codec::zfp::arch::{Arch, BATCH};
use crate::codec::zfp::bits::BitWriter;
use crate::codec::zfp::blocks::Source;
use crate::codec::zfp::encoder::BlockBits;
use crate::codec::zfp::planes::Planes;
use crate::codec::zfp::range::{self, EncodeTask};
use crate::codec::zfp::shape::Shape;
use crate::codec::zfp::transform::{Headers, LowestExponent};
use crate::codec::zfp::value::Int;

/// Proof that the machine has the instructions.
#[derive(Clone, Copy)]
pub struct Avx512Plain(Avx2<Bmi2>);

impl Avx512Plain {
    pub fn new() -> Option<Avx512Plain> {
        let present = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("avx512cd");
        // (Whose instructions are all the others.)
        let avx2 = Avx2::extracting()?;
        present.then_some(Avx512Plain(avx2))
    }
}

// SAFETY: nothing is said.
unsafe impl Level for Avx512Plain {
    const LATER: bool = false;
}

/// Whether blocks are coded here.
const fn are_ours<T: Value, S: Shape>() -> bool {
    T::Int::BITS == 32 && S::DIMS == 3
}

impl Arch for Avx512Plain {
    type Bmi = Bmi2;
    const FETCHES_LINES: bool = true;

    #[inline(always)]
    fn blocks<T: Value, S: Shape>() -> usize {
        if are_ours::<T, S>() {
            BATCH
        } else {
            Avx2::<Bmi2>::blocks::<T, S>()
        }
    }

    #[inline(always)]
    fn bmi(self) -> Bmi2 {
        self.0.bmi()
    }

    #[inline(always)]
    fn forward<T: Value, S: Shape>(
        self,
        sources: &[Source<T>; BATCH],
        lowest: LowestExponent,
        headers: &mut Headers,
        planes: &mut [Planes; BATCH],
    ) -> usize {
        if !are_ours::<T, S>() {
            return self.0.forward::<T, S>(sources, lowest, headers, planes);
        }
        // SAFETY: `self` proves that the machine has the instructions; the only value type of 32 bits is `f32`.
        unsafe {
            let sources = Source::reinterpret(sources);
            single::forward_cubes(self, sources, lowest, headers, planes)
        }
    }

    #[inline(always)]
    fn inverse<T: Value, S: Shape>(
        self,
        headers: &Headers,
        planes: &[Planes; BATCH],
        blocks: &mut [[T; 64]; BATCH],
    ) {
        self.0.inverse::<T, S>(headers, planes, blocks);
    }

    #[inline(always)]
    fn encode_words<T: Value, S: Shape>(
        self,
        headers: &Headers,
        planes: &mut [Planes; BATCH],
        words: &mut [u64],
    ) -> bool {
        if !are_ours::<T, S>() {
            return self.0.encode_words::<T, S>(headers, planes, words);
        }
        if !words.len().is_multiple_of(BATCH) {
            return false;
        }
        let budget = words.len() / BATCH * 64;
        encode_cubes::<T>(self, headers, planes, budget, &mut Ream(words));
        true
    }

    #[inline(always)]
    fn encode<T: Value, S: Shape>(
        self,
        headers: &Headers,
        planes: &mut [Planes; BATCH],
        budget: usize,
        coded: &mut [BlockBits; BATCH],
    ) {
        if are_ours::<T, S>() {
            encode_cubes::<T>(self, headers, planes, budget, coded);
        } else {
            self.0.encode::<T, S>(headers, planes, budget, coded);
        }
    }
}

#[inline(always)]
fn encode_cubes<T: Value>(
    level: Avx512Plain,
    headers: &Headers,
    planes: &[Planes; BATCH],
    budget: usize,
    paper: &mut impl Paper,
) {
    // SAFETY: `level` proves that the machine has the instructions.
    unsafe { cubes::encode::<_, T>(level, headers, planes, budget, paper) };
}

/// [`range::encode`], compiled for this kind of machine.
///
/// # Safety
/// As [`range::encode`].
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,bmi1,bmi2,lzcnt,popcnt,pclmulqdq"
)]
pub unsafe fn encode<T: Value>(
    arch: Avx512Plain,
    task: &EncodeTask<T>,
    writer: &mut BitWriter,
) -> usize {
    // SAFETY: the caller's promise, handed on.
    unsafe { range::encode(arch, task, writer) }
}
