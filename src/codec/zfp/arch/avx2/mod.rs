//! x86-64 with AVX2 and BMI2.

mod cube;

use super::bmi2::Bmi2;
use super::{Arch, BATCH, scalar};
use crate::codec::zfp::Value;
use crate::codec::zfp::bits::BitWriter;
use crate::codec::zfp::blocks::Source;
use crate::codec::zfp::planes::{self, Planes};
use crate::codec::zfp::range::{self, DecodeTask, EncodeTask};
use crate::codec::zfp::shape::{Cube, Shape};
use crate::codec::zfp::transform::{self, Header, Headers, LowestExponent};
use crate::codec::zfp::value::Int;

/// Proof that the machine has the instructions.
#[derive(Clone, Copy)]
pub struct Avx2(());

impl Avx2 {
    pub fn new() -> Option<Avx2> {
        let present = is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("lzcnt")
            && is_x86_feature_detected!("popcnt");
        present.then_some(Avx2(()))
    }
}

impl Arch for Avx2 {
    type Bmi = Bmi2;

    #[inline(always)]
    fn bmi(self) -> Bmi2 {
        // SAFETY: `self` proves that the machine has BMI1 and BMI2 too.
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
        if T::Int::BITS == 32 && S::DIMS == 3 {
            // SAFETY: `self` proves that the machine has the instructions; the only value type of 32 bits is `f32`.
            return unsafe { forward_cubes(Source::reinterpret(sources), lowest, headers, planes) };
        }
        scalar::forward::<T, S>(sources, lowest, self.bmi(), headers, planes)
    }

    #[inline(always)]
    fn inverse<T: Value, S: Shape>(
        self,
        headers: &Headers,
        planes: &[Planes; BATCH],
        blocks: &mut [[T; 64]; BATCH],
    ) {
        scalar::inverse::<T, S>(headers, planes, self.bmi(), blocks);
    }
}

/// [`Arch::forward`] of 3-D `f32` blocks.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
fn forward_cubes(
    sources: &[Source<f32>; BATCH],
    lowest: LowestExponent,
    headers: &mut Headers,
    planes: &mut [Planes; BATCH],
) -> usize {
    let mut nonfinite = 0;
    let mut digits = [0; 64];
    for i in 0..Cube::BATCH {
        let block = cube::load(&sources[i]);
        let largest = cube::largest(&block);
        let finite = transform::is_finite::<f32>(largest);
        nonfinite += usize::from(!finite);
        headers.set(i, Header::ZEROS);
        if finite {
            let header = lowest.header::<f32, Cube>(largest);
            headers.set(i, header);
            let factors = transform::factors::<f32>(header.biased_exponent());
            cube::transform(&block, factors, &mut digits);
            planes::split_cube32(|p| digits[CODING_ORDER[p]], &mut planes[i]);
        }
    }
    nonfinite
}

/// Coding position → where the transform leaves the coefficient.
const CODING_ORDER: [usize; 64] = {
    let mut order = [0; 64];
    let mut p = 0;
    while p < 64 {
        order[p] = cube::place(Cube::ORDER[p] as usize);
        p += 1;
    }
    order
};

/// [`range::encode`], compiled for this kind of machine.
///
/// # Safety
/// As [`range::encode`].
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
pub unsafe fn encode<T: Value>(arch: Avx2, task: &EncodeTask<T>, writer: &mut BitWriter) -> usize {
    // SAFETY: the caller's promise, handed on.
    unsafe { range::encode(arch, task, writer) }
}

/// [`range::decode`], compiled for this kind of machine.
///
/// # Safety
/// As [`range::decode`].
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
pub unsafe fn decode<T: Value>(arch: Avx2, task: &DecodeTask<T>) -> usize {
    // SAFETY: the caller's promise, handed on.
    unsafe { range::decode(arch, task) }
}
