//! What the steps of one all-to-all share.

use super::{Coded, Collective};
use crate::mpi::Mpi;
use crate::registry::{Registration, Terms};
use crate::settings::Settings;
use crate::wire::HEADER_BYTES;

#[derive(Clone, Copy)]
pub struct Context<'a> {
    pub mpi: &'a Mpi,
    pub registration: &'a Registration,
    pub terms: &'a Terms,
    pub settings: &'a Settings,
    pub collective: Collective,
}

/// Words of a message before its payload.
pub const HEADER_WORDS: usize = HEADER_BYTES / 8;

impl Coded {
    /// Bytes of the values.
    pub fn raw_bytes(&self) -> usize {
        self.count * self.element.bytes()
    }

    /// Room for the values, aligned for any of them.
    pub fn room(&self, words: &mut Vec<u64>) -> *mut u8 {
        words.resize(self.raw_bytes().div_ceil(8), 0);
        words.as_mut_ptr().cast()
    }
}
