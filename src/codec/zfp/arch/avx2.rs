//! x86-64 with AVX2 and BMI2.

use super::bmi2::Bmi2;
use super::{Arch, BATCH, scalar};
use crate::codec::zfp::Value;
use crate::codec::zfp::bits::BitWriter;
use crate::codec::zfp::blocks::Source;
use crate::codec::zfp::planes::Planes;
use crate::codec::zfp::range::{self, DecodeTask, EncodeTask};
use crate::codec::zfp::shape::Shape;
use crate::codec::zfp::transform::{Headers, LowestExponent};

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

/// [`range::encode`], compiled for this kind of machine.
///
/// # Safety
/// As [`range::encode`].
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
pub unsafe fn encode<T: Value>(
    arch: Avx2,
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
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
pub unsafe fn decode<T: Value>(arch: Avx2, task: &DecodeTask<T>) -> usize {
    // SAFETY: the caller's promise, handed on.
    unsafe { range::decode(arch, task) }
}
