//! The stages of the codec that a machine's instructions matter to, once per kind of machine.

pub mod scalar;

use super::bits::BitWriter;
use super::blocks::Source;
use super::decoder;
use super::encoder::{self, BlockBits};
use super::planes::Planes;
use super::range::{self, Limits};
use super::shape::{Cube, Line, Shape, Square};
use super::transform::{Header, LowestExponent};
use super::{Grid, Value};
use std::ops::Range;

/// Blocks that go through a stage together.
pub const BATCH: usize = 8;

/// Bit manipulation that some machines have instructions for.
pub trait Bmi: Copy {
    /// The bits of `word` under the ones of `mask`, moved together at the low end.
    fn extract(self, word: u64, mask: u64) -> u64;
    /// The position of the one-bit of `mask` that has `rank` ones below it; 64 if there is none.
    fn select(self, mask: u64, rank: u32) -> u32;
    /// The low 16 bits of `word`, moved to bits 0, 4, 8 and so on.
    fn spread(self, word: u64) -> u64;
    /// Bits 0, 4, 8 and so on of `word`, moved together at the low end.
    fn unspread(self, word: u64) -> u64;
}

/// A kind of machine. A value of the type is the proof that we run on one.
pub trait Arch: Copy + Send + Sync {
    type Bmi: Bmi;
    fn bmi(self) -> Self::Bmi;

    /// Headers and bit planes of [`BATCH`] blocks. Returns how many of them hold a NaN or an
    /// infinity; those are not coded.
    fn forward<T: Value, S: Shape>(
        self,
        sources: &[Source<T>; BATCH],
        lowest: LowestExponent,
        headers: &mut [Header; BATCH],
        planes: &mut [Planes; BATCH],
    ) -> usize;

    /// Values of [`BATCH`] blocks from their headers and bit planes.
    fn inverse<T: Value, S: Shape>(
        self,
        headers: &[Header; BATCH],
        planes: &[Planes; BATCH],
        blocks: &mut [[T; 64]; BATCH],
    );

    /// The bits of blocks with these headers and planes, up to bit `budget` or a little more.
    #[inline(always)]
    fn encode<T: Value, S: Shape>(
        self,
        headers: &[Header],
        planes: &[Planes; BATCH],
        budget: usize,
        coded: &mut [BlockBits; BATCH],
    ) {
        for ((header, planes), coded) in headers.iter().zip(planes).zip(coded) {
            coded.clear();
            if header.is_coded() {
                coded.push(header.bits.into(), T::HEADER_BITS);
                encoder::encode_planes::<S>(planes, header.planes, budget, coded);
            } else {
                coded.push(0, 1);
            }
        }
    }

    /// One block's planes from the bits `position..end` of `words`; see [`decoder::decode_planes`].
    #[inline(always)]
    fn decode<S: Shape>(
        self,
        words: &[u64],
        position: usize,
        end: usize,
        count: u32,
        planes: &mut Planes,
    ) -> usize {
        decoder::decode_planes::<S>(words, position, end, count, self.bmi(), planes)
    }
}

/// The kinds of machine, from the one that every program runs on upwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Scalar,
}

impl Kind {
    /// The best one that this machine is.
    pub fn best() -> Kind {
        Kind::Scalar
    }

    /// Every kind that this machine is.
    pub fn all() -> Vec<Kind> {
        vec![Kind::Scalar]
    }

    /// [`range::encode`] for the shape that the grid asks for.
    ///
    /// # Safety
    /// As [`range::encode`].
    pub unsafe fn encode<T: Value>(
        self,
        first: *const T,
        grid: &Grid,
        blocks: Range<usize>,
        limits: Limits,
        writer: &mut BitWriter,
    ) -> usize {
        // SAFETY: the caller's promise, handed on.
        unsafe {
            match grid.dims {
                1 => range::encode::<_, T, Line>(scalar::Scalar, first, grid, blocks, limits, writer),
                2 => range::encode::<_, T, Square>(scalar::Scalar, first, grid, blocks, limits, writer),
                _ => range::encode::<_, T, Cube>(scalar::Scalar, first, grid, blocks, limits, writer),
            }
        }
    }

    /// [`range::decode`] for the shape that the grid asks for.
    ///
    /// # Safety
    /// As [`range::decode`].
    pub unsafe fn decode<T: Value>(
        self,
        words: &[u64],
        position: usize,
        limits: Limits,
        blocks: Range<usize>,
        first: *mut T,
        grid: &Grid,
    ) -> usize {
        // SAFETY: the caller's promise, handed on.
        unsafe {
            match grid.dims {
                1 => range::decode::<_, T, Line>(scalar::Scalar, words, position, limits, blocks, first, grid),
                2 => range::decode::<_, T, Square>(scalar::Scalar, words, position, limits, blocks, first, grid),
                _ => range::decode::<_, T, Cube>(scalar::Scalar, words, position, limits, blocks, first, grid),
            }
        }
    }
}
