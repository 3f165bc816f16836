//! Bit planes of eight 3-D blocks, made eight at a time of what the transforms left, as they are needed.

use super::{columns, load, split_cube};
use crate::codec::zfp::Value;
use crate::codec::zfp::arch::BATCH;
use crate::codec::zfp::planes::Planes;
use crate::codec::zfp::shape::{Cube, Shape};
use crate::codec::zfp::transform::Headers;
use crate::codec::zfp::value::Int;
use std::arch::x86_64::*;

/// The bit planes.
pub struct Supply<'a> {
    planes: &'a mut [Planes; BATCH],
    /// How many of each block there are; those of `f32` are made of all blocks at once.
    ready: [usize; Cube::BATCH],
}

impl<'a> Supply<'a> {
    /// The first planes of blocks, of which `first` are made to begin with.
    #[inline]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
    pub fn begun<T: Value>(
        planes: &'a mut [Planes; BATCH],
        headers: &Headers,
        first: usize,
    ) -> Self {
        let mut supply = Supply {
            planes,
            ready: [0; Cube::BATCH],
        };
        if T::Int::BITS == 32 {
            supply.make::<T>(0, first.min(headers.most_planes() as usize));
        } else {
            for (block, &count) in headers.planes.iter().take(Cube::BATCH).enumerate() {
                supply.make::<T>(block, first.min(count as usize));
            }
        }
        supply
    }

    /// Makes planes of a block up to plane `until`.
    #[inline]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
    fn make<T: Value>(&mut self, block: usize, until: usize) {
        let mut ready = self.ready[block];
        while ready < until {
            if T::Int::BITS == 32 {
                columns::split(self.planes, ready / 8);
            } else {
                split_cube(&mut self.planes[block], ready / 8);
            }
            ready += 8;
        }
        if T::Int::BITS == 32 {
            self.ready = [ready; Cube::BATCH];
        } else {
            self.ready[block] = ready;
        }
    }

    /// Some planes of a block from plane `k` on, which must be below `count`, those before it having been asked for:
    /// [`columns::stride`] words each, of which the first one is the block's.
    #[inline]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
    pub fn planes<T: Value>(&mut self, block: usize, k: usize, count: usize) -> &[u64] {
        if k >= self.ready[block] {
            self.make_more::<T>(block, k + 1);
        }
        let first = columns::first_word::<T>(block);
        let end = count.min(self.ready[block]);
        let [from, until] = [k, end].map(|k| first + k * columns::stride::<T>());
        self.planes.as_flattened().get(from..until).unwrap_or(&[])
    }

    /// As [`Self::make`].
    #[cold]
    #[inline(never)]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
    fn make_more<T: Value>(&mut self, block: usize, until: usize) {
        self.make::<T>(block, until);
    }

    /// Of the first eight planes of each block those in which no coefficient but the first is not zero: the bits of
    /// the first, with a 1 above them.
    #[inline]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
    pub fn leads<T: Value>(&self) -> [u32; Cube::BATCH] {
        if T::Int::BITS == 32 {
            return columns::leads(self.planes);
        }
        let mut leads = [1; Cube::BATCH];
        for (lead, planes) in leads.iter_mut().zip(self.planes.iter()) {
            *lead = lead_of(planes);
        }
        leads
    }
}

/// [`Supply::leads`] of a block whose planes lie one after the other.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
fn lead_of(planes: &Planes) -> u32 {
    let one = _mm256_set1_epi64x(1);
    let tops = |v| _mm256_movemask_pd(_mm256_castsi256_pd(v)) as u32;
    let only_first = |v| _mm256_cmpeq_epi64(_mm256_or_si256(v, one), one);
    let [a, b] = two!(|half| load(&planes.as_chunks::<4>().0[half]));
    let lead = (tops(only_first(a)) | tops(only_first(b)) << 4).trailing_ones();
    let firsts = tops(_mm256_slli_epi64::<63>(a)) | tops(_mm256_slli_epi64::<63>(b)) << 4;
    let end = 1 << lead;
    firsts & (end - 1) | end
}
