//! The stages of the codec that a machine's instructions matter to, once per kind of machine.

#[cfg(target_arch = "x86_64")]
#[macro_use]
mod several;

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "x86_64")]
mod bmi2;
mod scalar;

use super::Value;
use super::bits::BitWriter;
use super::blocks::Source;
use super::decoder;
use super::encoder::BlockBits;
use super::planes::Planes;
use super::range::{self, DecodeTask, EncodeTask};
use super::shape::Shape;
use super::transform::{Headers, LowestExponent};
use std::sync::OnceLock;

/// The most blocks that go through a stage together; see [`Shape::BATCH`].
pub const BATCH: usize = 16;

/// Bit manipulation that some machines have instructions for.
pub trait Bmi: Copy + Send + Sync {
    /// Whether [`Self::extract`] is quicker than going from one-bit to one-bit.
    const EXTRACTS: bool;
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

    /// Whether encoding is so fast that a line of blocks has to be fetched while the one before it is encoded.
    const FETCHES_LINES: bool = false;

    /// How many blocks go through the stages of encoding together.
    #[inline(always)]
    fn blocks<T: Value, S: Shape>() -> usize {
        S::BATCH
    }

    /// Headers and bit planes of [`BATCH`] blocks. Returns how many of them hold a NaN or an
    /// infinity; those are not coded.
    fn forward<T: Value, S: Shape>(
        self,
        sources: &[Source<T>; BATCH],
        lowest: LowestExponent,
        headers: &mut Headers,
        planes: &mut [Planes; BATCH],
    ) -> usize;

    /// Values of [`BATCH`] blocks from their headers and bit planes.
    fn inverse<T: Value, S: Shape>(
        self,
        headers: &Headers,
        planes: &[Planes; BATCH],
        blocks: &mut [[T; 64]; BATCH],
    );

    /// The bits of [`BATCH`] blocks with these headers and planes, up to bit `budget` or a little more. The
    /// planes are as [`Self::forward`] left them, which may have left some of its work to do here.
    fn encode<T: Value, S: Shape>(
        self,
        headers: &Headers,
        planes: &mut [Planes; BATCH],
        budget: usize,
        coded: &mut [BlockBits; BATCH],
    );

    /// As [`Self::encode`] for [`Self::blocks`] blocks of equal length, all of which fill `words`, each a number of half
    /// words, if this kind of machine has a way to write them there at once.
    #[inline(always)]
    fn encode_words<T: Value, S: Shape>(
        self,
        headers: &Headers,
        planes: &mut [Planes; BATCH],
        words: &mut [u64],
    ) -> bool {
        let _ = (headers, planes, words);
        false
    }

    /// One block's planes from the bits `position..end` of `bytes`; see [`decoder::decode_planes`].
    #[inline(always)]
    fn decode<S: Shape>(
        self,
        bytes: &[u8],
        position: usize,
        end: usize,
        count: u32,
        planes: &mut Planes,
    ) -> usize {
        decoder::decode_planes::<S>(bytes, position, end, count, self.bmi(), planes)
    }
}

/// The kinds of machine, from the one that every program runs on upwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Scalar,
    /// With AVX2, but without the instructions for bit extraction, which some machines have in microcode.
    Avx2Plain,
    Avx2,
    /// With the first AVX-512, but without what it got later.
    Avx512Plain,
    Avx512,
}

impl Kind {
    /// The best one that this machine is.
    pub fn best() -> Kind {
        static BEST: OnceLock<Kind> = OnceLock::new();
        *BEST.get_or_init(|| match cfg!(transpress_portable) {
            // How CI runs the tests on the code that other processors get.
            true => Kind::Scalar,
            false => Kind::all().pop().unwrap_or(Kind::Scalar),
        })
    }

    /// Every kind that this machine is, the best one last.
    pub fn all() -> Vec<Kind> {
        let kinds = [
            Kind::Scalar,
            Kind::Avx2Plain,
            Kind::Avx2,
            Kind::Avx512Plain,
            Kind::Avx512,
        ];
        kinds.into_iter().filter(|kind| kind.is_present()).collect()
    }

    fn is_present(self) -> bool {
        match self {
            Kind::Scalar => true,
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2Plain => avx2::Avx2::plain().is_some(),
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2 => avx2::Avx2::extracting().is_some(),
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512Plain => avx512::Avx512Plain::new().is_some(),
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512 => avx512::Avx512::new().is_some(),
            #[cfg(not(target_arch = "x86_64"))]
            _ => false,
        }
    }

    /// Encodes some blocks; see [`range::encode`]. A kind that this machine is not runs as portable code.
    ///
    /// # Safety
    /// As [`range::encode`].
    pub unsafe fn encode<T: Value>(self, task: &EncodeTask<T>, writer: &mut BitWriter) -> usize {
        #[cfg(target_arch = "x86_64")]
        if self == Kind::Avx512
            && let Some(arch) = avx512::Avx512::new()
        {
            // SAFETY: the caller's promise, handed on; `arch` proves that the machine has the instructions.
            return unsafe { avx512::encode(arch, task, writer) };
        }
        #[cfg(target_arch = "x86_64")]
        if self == Kind::Avx512Plain
            && let Some(arch) = avx512::Avx512Plain::new()
        {
            // SAFETY: as above.
            return unsafe { avx512::encode_plain(arch, task, writer) };
        }
        #[cfg(target_arch = "x86_64")]
        if self == Kind::Avx2
            && let Some(arch) = avx2::Avx2::extracting()
        {
            // SAFETY: as above.
            return unsafe { avx2::encode(arch, task, writer) };
        }
        #[cfg(target_arch = "x86_64")]
        if self == Kind::Avx2Plain
            && let Some(arch) = avx2::Avx2::plain()
        {
            // SAFETY: as above.
            return unsafe { avx2::encode(arch, task, writer) };
        }
        // SAFETY: the caller's promise, handed on.
        unsafe { range::encode(scalar::Scalar, task, writer) }
    }

    /// Decodes runs of blocks of one stream, side by side if this kind of machine can. Returns the position after
    /// each.
    ///
    /// # Safety
    /// As [`range::decode`], for every task; their blocks must not be the same.
    pub unsafe fn decode_together<T: Value>(self, tasks: &[DecodeTask<T>]) -> Vec<usize> {
        #[cfg(target_arch = "x86_64")]
        if self == Kind::Avx512
            && let Some(arch) = avx512::Avx512::new()
            && let Some(first) = tasks.first()
            && first.grid.dims > 1
            // With half of its lanes empty it is slower than one run after the other.
            && tasks.len() > BATCH / 2
        {
            // SAFETY: the caller's promise, handed on; `arch` proves that the machine has the instructions.
            return unsafe { avx512::decode_together(arch, tasks) };
        }
        // SAFETY: the caller's promise, handed on.
        tasks
            .iter()
            .map(|task| unsafe { self.decode(task) })
            .collect()
    }

    /// Decodes some blocks; see [`range::decode`]. A kind that this machine is not runs as portable code.
    ///
    /// # Safety
    /// As [`range::decode`].
    pub unsafe fn decode<T: Value>(self, task: &DecodeTask<T>) -> usize {
        #[cfg(target_arch = "x86_64")]
        if self == Kind::Avx512
            && let Some(arch) = avx512::Avx512::new()
        {
            // SAFETY: the caller's promise, handed on; `arch` proves that the machine has the instructions.
            return unsafe { avx512::decode(arch, task) };
        }
        #[cfg(target_arch = "x86_64")]
        if matches!(self, Kind::Avx2 | Kind::Avx512Plain)
            && let Some(arch) = avx2::Avx2::extracting()
        {
            // SAFETY: as above.
            return unsafe { avx2::decode(arch, task) };
        }
        #[cfg(target_arch = "x86_64")]
        if self == Kind::Avx2Plain
            && let Some(arch) = avx2::Avx2::plain()
        {
            // SAFETY: as above.
            return unsafe { avx2::decode(arch, task) };
        }
        // SAFETY: the caller's promise, handed on.
        unsafe { range::decode(scalar::Scalar, task) }
    }
}
