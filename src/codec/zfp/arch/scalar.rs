//! Any machine: portable Rust.

use super::{Arch, BATCH, Bmi};
use crate::codec::zfp::Value;
use crate::codec::zfp::bits::low_bits;
use crate::codec::zfp::blocks::Source;
use crate::codec::zfp::encoder::{self, BlockBits};
use crate::codec::zfp::planes::{self, Planes};
use crate::codec::zfp::shape::Shape;
use crate::codec::zfp::transform::{self, Header, Headers, LowestExponent};
use crate::codec::zfp::value::Int;

#[derive(Clone, Copy)]
pub struct Scalar;

impl Bmi for Scalar {
    const EXTRACTS: bool = false;

    #[inline(always)]
    fn extract(self, word: u64, mask: u64) -> u64 {
        let mut ones = word & mask;
        let mut extracted = 0;
        while ones != 0 {
            let position = ones.trailing_zeros();
            extracted |= 1 << (mask & low_bits(position)).count_ones();
            ones &= ones - 1;
        }
        extracted
    }

    #[inline(always)]
    fn select(self, mut mask: u64, rank: u32) -> u32 {
        for _ in 0..rank {
            mask &= mask.wrapping_sub(1);
        }
        mask.trailing_zeros()
    }

    #[inline(always)]
    fn spread(self, word: u64) -> u64 {
        let word = (word | word << 24) & 0x0000_00ff_0000_00ff;
        let word = (word | word << 12) & 0x000f_000f_000f_000f;
        let word = (word | word << 6) & 0x0303_0303_0303_0303;
        (word | word << 3) & 0x1111_1111_1111_1111
    }

    #[inline(always)]
    fn unspread(self, word: u64) -> u64 {
        let word = word & 0x1111_1111_1111_1111;
        let word = (word | word >> 3) & 0x0303_0303_0303_0303;
        let word = (word | word >> 6) & 0x000f_000f_000f_000f;
        let word = (word | word >> 12) & 0x0000_00ff_0000_00ff;
        (word | word >> 24) & 0xffff
    }
}

/// Compiled apart from the loop over blocks: 3-D `f64` is encoded a twelfth faster, `f32` a little; in 1-D and 2-D it would be
/// slower.
#[inline(never)]
fn forward_apart<I: Int, S: Shape>(ints: &mut [I; 64]) {
    transform::forward::<I, S>(ints);
}

impl Arch for Scalar {
    type Bmi = Scalar;

    #[inline(always)]
    fn bmi(self) -> Scalar {
        self
    }

    #[inline(always)]
    fn forward<T: Value, S: Shape>(
        self,
        sources: &[Source<T>; BATCH],
        lowest: LowestExponent,
        headers: &mut Headers,
        planes: &mut [Planes; BATCH],
    ) -> usize {
        let mut nonfinite = 0;
        let mut block = [T::default(); 64];
        let mut ints = [T::Int::default(); 64];
        for (i, (source, planes)) in sources.iter().zip(planes).take(S::BATCH).enumerate() {
            source.read::<S>(&mut block);
            let largest = transform::largest::<T, S>(&block);
            let finite = transform::is_finite::<T>(largest);
            nonfinite += usize::from(!finite);
            let header = if finite {
                lowest.header::<T, S>(largest)
            } else {
                Header::ZEROS
            };
            headers.set(i, header);
            if header.is_coded() {
                // SAFETY: the header has the exponent of the largest magnitude, which is finite.
                unsafe { transform::quantize::<T, S>(&block, header.biased_exponent(), &mut ints) };
                match S::DIMS {
                    3 => forward_apart::<T::Int, S>(&mut ints),
                    _ => transform::forward::<T::Int, S>(&mut ints),
                }
                planes::pack::<T::Int, S>(&ints, planes);
            }
        }
        nonfinite
    }

    #[inline(always)]
    fn inverse<T: Value, S: Shape>(
        self,
        headers: &Headers,
        planes: &[Planes; BATCH],
        blocks: &mut [[T; 64]; BATCH],
    ) {
        let mut ints = [T::Int::default(); 64];
        for (i, (planes, block)) in planes.iter().zip(blocks).take(S::BATCH).enumerate() {
            let header = headers.get(i);
            if !header.is_coded() {
                block[..S::SIZE].fill(T::default());
                continue;
            }
            planes::join::<T::Int, S>(planes, self, &mut ints);
            transform::inverse::<T::Int, S>(&mut ints);
            transform::dequantize::<T, S>(&ints, header.biased_exponent(), block);
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
        for (i, (planes, coded)) in planes.iter_mut().zip(coded).take(S::BATCH).enumerate() {
            let prepare = |planes: &mut Planes, k: u32| planes::split::<S>(planes, k, self);
            encoder::encode_block::<T, S>(headers.get(i), planes, budget, prepare, coded);
        }
    }
}
