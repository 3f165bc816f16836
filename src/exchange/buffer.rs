//! The memory that messages are put together in.

use crate::codec::cuda::{Device, Lent, Pinned};
use std::ops::{Deref, DerefMut};

/// Words of ours: page-locked where a GPU reads and writes them.
pub enum Buffer {
    Plain(Vec<u64>),
    Pinned(Lent<Pinned>),
}

impl Buffer {
    /// At least so many words, of whatever content.
    pub fn new(words: usize, gpu: Option<&'static Device>) -> Self {
        match gpu.and_then(|device| device.lend_pinned(8 * words).ok()) {
            Some(pinned) => Self::Pinned(pinned),
            // Fresh zeros cost nothing until they are touched.
            None => Self::Plain(vec![0; words]),
        }
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
        }
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u64] {
        match self {
            Self::Plain(words) => words,
            Self::Pinned(pinned) => pinned.words_mut(),
        }
    }
}
