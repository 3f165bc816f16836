//! What a registered communicator carries.

use super::agreement::Proposal;
use crate::codec::{Coding, Goal, Item};
use crate::exchange::{Backoff, Choice, Holds, Outgoing, Pool, Staging, Tuners};
use crate::layout::Layout;
use crate::mpi::{Handle, Mpi, Result};
use crate::report::Stats;
use crate::settings::OnNode;
use crate::wire;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What both ends of every message have agreed on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Terms {
    pub coding: Coding,
    /// Bits per value on the wire.
    pub rate: f64,
    /// Largest absolute error, instead of the rate.
    pub tolerance: Option<f64>,
    /// What messages of `MPI_BYTE` hold.
    pub bytes: Option<Item>,
    pub min_bytes: usize,
    pub on_node: OnNode,
}

impl Terms {
    /// The casts have a rate of their own, which stays.
    pub fn set_rate(&mut self, rate: f64) {
        if self.coding == Coding::Zfp {
            self.rate = rate;
            self.tolerance = None;
        }
    }

    /// What may be compressed beside floats.
    pub fn holds(&self) -> Holds {
        Holds {
            bytes: self.bytes,
            integers: self.coding == Coding::Lossless,
        }
    }

    /// Whether the data decide how long a compressed message is.
    pub fn is_variable(&self) -> bool {
        self.tolerance.is_some() || self.coding == Coding::Lossless
    }

    /// What a compressed message is expected to have of the bytes of its values; a guess where the data decide it.
    pub fn expected_share(&self, item: Item) -> f64 {
        if self.is_variable() {
            0.5
        } else {
            self.rate / (8 * item.bytes()) as f64
        }
    }

    /// What layouts are compared by.
    pub fn goal(&self) -> Goal {
        match self.tolerance {
            _ if self.coding == Coding::Lossless => Goal::Exact,
            Some(tolerance) => Goal::Tolerance(tolerance),
            None => Goal::Rate(self.rate),
        }
    }

    /// Bytes on the wire of a compressed message, at most; exactly where the data do not decide it.
    pub fn wire_bytes(&self, count: usize, item: Item) -> usize {
        if self.is_variable() {
            wire::raw_wire_bytes(count, item)
        } else {
            wire::wire_bytes(count, self.rate)
        }
    }
}

impl std::fmt::Display for Terms {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let codec = match self.coding {
            Coding::Zfp => "zfp",
            Coding::Fp16 => "fp16",
            Coding::Bf16 => "bf16",
            Coding::Lossless => "lossless",
        };
        match self.tolerance {
            _ if self.coding == Coding::Lossless => write!(f, "{codec}"),
            Some(tolerance) => write!(f, "{codec} with errors of at most {tolerance:e}"),
            None => write!(f, "{codec} at {} bits per value", self.rate),
        }?;
        write!(f, ", messages of {} bytes and more", self.min_bytes)
    }
}

/// What an all-to-all works with, and only one at a time: MPI allows one collective per communicator.
#[derive(Default)]
pub struct Working {
    pub choice: Choice,
    pub tuners: Tuners,
    pub staging: Staging,
    pub send_pool: Pool,
    pub receive_pool: Pool,
    /// Per peer, for messages sent and for messages received.
    pub sent: Vec<Backoff>,
    pub received: Vec<Backoff>,
    /// The same for integers and bytes, lest those that get no shorter hold floats back.
    pub sent_words: Vec<Backoff>,
    pub received_words: Vec<Backoff>,
    pub outgoing: Outgoing,
}

pub struct Registration {
    /// The program's communicator.
    pub comm: Handle,
    /// The same ranks, for our own messages.
    pub private: Handle,
    pub rank: usize,
    pub size: usize,
    /// As the report and `#2` in the environment number it: alike on all ranks.
    pub number: usize,
    pub name: String,
    /// For each rank, whether it is on this node.
    pub on_node: Vec<bool>,
    /// Whether the ranks are on several nodes.
    pub spans_nodes: bool,
    terms: Mutex<Terms>,
    layouts: Mutex<Layouts>,
    working: Mutex<Working>,
    stats: Mutex<Stats>,
}

/// The layouts of a communicator's messages, first choice first.
#[derive(Clone, Default)]
pub struct Layouts {
    pub known: Vec<Layout>,
    /// The user was told that none fits.
    pub misfit_said: bool,
}

impl Registration {
    /// Collective over `comm`.
    pub fn new(mpi: &Mpi, comm: Handle, proposal: Proposal) -> Result<Self> {
        let private = mpi.private_copy(comm)?;
        let on_node = mpi.on_node(private)?;
        let size = on_node.len();
        Ok(Self {
            comm,
            private,
            rank: proposal.rank,
            size,
            number: proposal.number,
            name: proposal.name,
            spans_nodes: !on_node.iter().all(|&here| here),
            on_node,
            terms: Mutex::new(proposal.terms),
            layouts: Mutex::new(Layouts {
                known: proposal.layouts,
                misfit_said: false,
            }),
            working: Mutex::new(Working {
                sent: vec![Backoff::default(); size],
                received: vec![Backoff::default(); size],
                sent_words: vec![Backoff::default(); size],
                received_words: vec![Backoff::default(); size],
                ..Working::default()
            }),
            stats: Mutex::default(),
        })
    }

    /// The ranks of this node before this one.
    pub fn rank_on_node(&self) -> usize {
        self.on_node[..self.rank]
            .iter()
            .filter(|&&here| here)
            .count()
    }

    /// The ranks but this one.
    pub fn others(&self) -> impl Iterator<Item = usize> + use<> {
        let own = self.rank;
        (0..self.size).filter(move |&rank| rank != own)
    }

    pub fn terms(&self) -> Terms {
        *lock(&self.terms)
    }

    pub fn change_terms(&self, change: impl FnOnce(&mut Terms)) {
        change(&mut lock(&self.terms));
    }

    pub fn layouts(&self) -> MutexGuard<'_, Layouts> {
        lock(&self.layouts)
    }

    pub fn working(&self) -> MutexGuard<'_, Working> {
        lock(&self.working)
    }

    pub fn stats(&self) -> MutexGuard<'_, Stats> {
        lock(&self.stats)
    }

    /// As messages to the user name it.
    pub fn label(&self) -> String {
        label(self.number, &self.name)
    }
}

pub fn label(number: usize, name: &str) -> String {
    if name.is_empty() {
        format!("#{number}")
    } else {
        format!("#{number} ({name})")
    }
}

/// Nothing that is locked here can be left half-changed by a panic.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
