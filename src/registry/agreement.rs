//! The ranks of a communicator compare what each of them wants.

use super::registration::{Terms, label};
use crate::codec::Coding;
use crate::layout::Layout;
use crate::mpi::{Handle, Mpi, Result};
use crate::session;
use crate::settings::{Codec, Comms, Settings};
use crate::wire::{VERSION, fnv1a};
use std::collections::HashSet;
use std::ffi::c_int;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// What the comparison came to; the same on every rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// All want the same: a registration, or none.
    Agreed { wanted: bool },
    /// They differ; rank 0 said in what.
    Differ,
}

/// What this rank wants for one communicator.
pub struct Proposal {
    pub rank: usize,
    size: usize,
    pub number: usize,
    pub name: String,
    pub terms: Terms,
    pub layouts: Vec<Layout>,
    wanted: bool,
    /// What must be alike on all ranks, by the name of the variable that decides it.
    facts: Vec<(&'static str, String)>,
}

/// The highest number any communicator of this process has.
static HIGHEST: AtomicUsize = AtomicUsize::new(0);

impl Proposal {
    /// Collective over `comm`, for the number. `asked`: the program itself asks for a registration.
    pub fn new(mpi: &Mpi, comm: Handle, asked: bool) -> Result<Self> {
        let settings = session::settings();
        let next = HIGHEST.load(Ordering::Relaxed) + 1;
        let number = mpi.max_over(comm, c_int::try_from(next).unwrap_or(c_int::MAX))? as usize;
        HIGHEST.fetch_max(number, Ordering::Relaxed);
        let name = mpi.comm_name(comm)?;

        let selected = match &settings.comms {
            Comms::Registered => false,
            Comms::All => true,
            Comms::Listed(selectors) => selectors.iter().any(|one| one.matches(&name, number)),
        };
        let wanted = settings.enabled && (asked || selected);
        let mut facts = session::agreement(&name, number);
        facts.push((
            "the version of transpress",
            format!("wire format {VERSION}"),
        ));
        if !asked {
            facts.push((
                "TRANSPRESS_COMMS",
                if selected {
                    "selects it"
                } else {
                    "leaves it out"
                }
                .into(),
            ));
        }
        Ok(Self {
            rank: mpi.rank(comm)?,
            size: mpi.size(comm)?,
            number,
            terms: terms(settings, &name, number),
            name,
            layouts: settings.layouts.clone(),
            wanted,
            facts,
        })
    }

    /// Collective over `comm`.
    pub fn compare(&self, mpi: &Mpi, comm: Handle) -> Result<Verdict> {
        // A bit that is set both in the or of all hashes and in the or of their complements differs
        // somewhere. The last word tells whether any rank wants a registration.
        let hashes = self.facts.iter().map(|(_, value)| fnv1a(value.as_bytes()));
        let words: Vec<u64> = hashes
            .flat_map(|hash| [hash, !hash])
            .chain([u64::from(self.wanted)])
            .collect();
        let joined = mpi.or_over(comm, &words)?;
        let differing: Vec<_> = joined
            .chunks_exact(2)
            .zip(&self.facts)
            .filter(|(pair, _)| pair[0] & pair[1] != 0)
            .map(|(_, fact)| fact)
            .collect();
        let any_wants = joined.last() == Some(&1);
        if differing.is_empty() || !any_wants {
            return Ok(Verdict::Agreed { wanted: any_wants });
        }
        // Where settings are wrong, one of the ranks whose they are says how: that is all there is to say.
        // Rank 0 of MPI_COMM_WORLD has said its own already.
        let distance = if session::has_problems() {
            self.size - self.rank
        } else {
            0
        };
        let spokesman =
            mpi.max_over(comm, c_int::try_from(distance).unwrap_or(c_int::MAX))? as usize;
        if spokesman > 0 {
            if spokesman == distance {
                session::say_problems();
            }
        } else if self.rank == 0 {
            self.say(&differing);
        }
        Ok(Verdict::Differ)
    }

    /// One line per set of variables, however many communicators it concerns.
    fn say(&self, differing: &[&(&'static str, String)]) {
        static SAID: Mutex<Option<HashSet<String>>> = Mutex::new(None);
        let facts = differing
            .iter()
            .map(|(variable, here)| format!("{variable} (rank 0: {here})"));
        let facts = facts.collect::<Vec<_>>().join(", ");
        let mut said = SAID.lock().unwrap_or_else(PoisonError::into_inner);
        if said.get_or_insert_default().insert(facts.clone()) {
            tracing::warn!(
                "communicator {} is left uncompressed, because its ranks differ in {facts}: set it \
                 alike on every rank",
                label(self.number, &self.name)
            );
        }
    }
}

fn terms(settings: &Settings, name: &str, number: usize) -> Terms {
    let (coding, rate) = match settings.codec {
        Codec::Fp16 => (Coding::Fp16, 16.0),
        Codec::Bf16 => (Coding::Bf16, 16.0),
        Codec::Lossless => (Coding::Lossless, 64.0),
        Codec::Zfp | Codec::Off => (Coding::Zfp, *settings.rate.get(name, number)),
    };
    Terms {
        coding,
        rate,
        tolerance: settings.tolerance.filter(|_| coding == Coding::Zfp),
        bytes: *settings.bytes.get(name, number),
        min_bytes: settings.min_bytes,
        on_node: settings.on_node,
    }
}

/// Whether every rank of the communicator gives the same value. Collective over `comm`.
pub fn all_give(mpi: &Mpi, comm: Handle, value: &str) -> Result<bool> {
    let hash = fnv1a(value.as_bytes());
    let joined = mpi.or_over(comm, &[hash, !hash])?;
    Ok(joined[0] & joined[1] == 0)
}
