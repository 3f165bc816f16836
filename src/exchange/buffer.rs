//! The memory that messages are put together in.

use super::Result;
use crate::codec::Memory;
use crate::codec::cuda::{self, Device, Lent, Pinned};
use std::ops::{Deref, DerefMut, Range};

/// What memory it is.
#[derive(Clone, Copy)]
pub enum Kind {
    Plain,
    /// Page-locked, for a GPU to read and write.
    Pinned(&'static Device),
    /// Of a GPU: MPI sends from there and receives to there.
    Gpu(&'static Device),
}

/// Words of ours. Those of a GPU have twins in this process's memory, for what is put together or looked at here: they
/// are alike only after [`Buffer::publish`] and [`Buffer::fetch`].
pub enum Buffer {
    Plain(Vec<u64>),
    Pinned(Lent<Pinned>),
    Gpu {
        device: &'static Device,
        memory: Lent<cuda::Memory>,
        twin: Lent<Pinned>,
        /// As many as both have.
        words: usize,
    },
}

impl Buffer {
    /// At least so many words, of whatever content. Where the memory asked for cannot be had, it is plain.
    pub fn new(words: usize, kind: Kind) -> Self {
        let special = match kind {
            Kind::Plain => None,
            Kind::Pinned(device) => device.lend_pinned(8 * words).ok().map(Self::Pinned),
            Kind::Gpu(device) => Self::on_gpu(words, device).ok(),
        };
        // Fresh zeros cost nothing until they are touched.
        special.unwrap_or_else(|| Self::Plain(vec![0; words]))
    }

    fn on_gpu(words: usize, device: &'static Device) -> cuda::Result<Self> {
        let memory = device.lend_settled_memory(8 * words)?;
        let twin = device.lend_pinned(8 * words)?;
        Ok(Self::Gpu {
            device,
            words: memory.words().min(twin.words().len()),
            memory,
            twin,
        })
    }

    pub fn is(&self, kind: Kind) -> bool {
        match (self, kind) {
            (Self::Plain(_), Kind::Plain) | (Self::Pinned(_), Kind::Pinned(_)) => true,
            (Self::Gpu { device, .. }, Kind::Gpu(other)) => std::ptr::eq(*device, other),
            _ => false,
        }
    }

    /// Where MPI, and whoever works on the GPU, finds what begins at an offset of so many bytes.
    pub fn place(&mut self, offset: usize) -> (Memory, *mut u8) {
        match self {
            Self::Gpu { device, memory, .. } => {
                let address = memory.address() as usize + offset;
                (
                    Memory::Gpu(device),
                    std::ptr::without_provenance_mut(address),
                )
            }
            host => {
                let start = host.as_mut_ptr().cast::<u8>();
                (Memory::Host, start.wrapping_add(offset))
            }
        }
    }

    /// Address on the GPU of what begins at an offset of so many bytes.
    pub fn on_device(&self, offset: usize) -> Option<u64> {
        match self {
            Self::Gpu { memory, .. } => Some(memory.address() + offset as u64),
            _ => None,
        }
    }

    /// Takes bytes that were put together here to where MPI sends them from.
    pub fn publish(&mut self, ranges: impl IntoIterator<Item = Range<usize>>) -> Result<()> {
        if let Self::Gpu {
            device,
            memory,
            twin,
            ..
        } = self
        {
            let work = device.enter()?;
            for range in ranges {
                let (to, from) = (memory.address() + range.start as u64, &twin.bytes()[range]);
                // SAFETY: the twin has these bytes, and so has the GPU's memory; the copy is over when this returns.
                unsafe { work.upload_from(to, from.as_ptr(), from.len())? };
            }
            work.finish()?;
        }
        Ok(())
    }

    /// Brings bytes that MPI has received here.
    pub fn fetch(&mut self, ranges: impl IntoIterator<Item = Range<usize>>) -> Result<()> {
        if let Self::Gpu {
            device,
            memory,
            twin,
            ..
        } = self
        {
            let work = device.enter()?;
            for range in ranges {
                let from = memory.address() + range.start as u64;
                let to = &mut twin.bytes_mut()[range];
                // SAFETY: the GPU's memory has these bytes, and MPI is done with them; the copy is over when this
                // returns.
                unsafe { work.download(to.as_mut_ptr(), from, to.len())? };
            }
            work.finish()?;
        }
        Ok(())
    }
}

impl Default for Buffer {
    fn default() -> Self {
        Self::Plain(Vec::new())
    }
}

impl Deref for Buffer {
    type Target = [u64];
    fn deref(&self) -> &[u64] {
        match self {
            Self::Plain(words) => words,
            Self::Pinned(pinned) => pinned.words(),
            Self::Gpu { twin, words, .. } => &twin.words()[..*words],
        }
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u64] {
        match self {
            Self::Plain(words) => words,
            Self::Pinned(pinned) => pinned.words_mut(),
            Self::Gpu { twin, words, .. } => &mut twin.words_mut()[..*words],
        }
    }
}
