//! What the steps of one all-to-all share.

use super::Collective;
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
