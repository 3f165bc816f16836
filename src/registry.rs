//! Which communicator carries which registration.
//!
//! Every communicator that does an all-to-all is met once: its ranks compare their settings and agree
//! whether it is compressed. What came of it hangs on the communicator as an attribute, and goes with it.

mod agreement;
mod registration;

pub use registration::{Registration, Terms, Working};

use crate::mpi::{Handle, Mpi, Result, SUCCESS};
use crate::report;
use crate::session;
pub use agreement::{Verdict, all_give};
use once_cell::sync::OnceCell;
use std::collections::HashMap;
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

/// What is known of a communicator.
#[derive(Clone)]
pub enum Known {
    /// Its ranks agreed to leave it alone.
    Plain,
    Registered(Arc<Registration>),
}

struct Entry {
    /// Tells this communicator from a later one whose handle has the same value.
    id: usize,
    known: Known,
}

static COMMS: RwLock<Option<HashMap<Handle, Entry>>> = RwLock::new(None);
static NEXT_ID: AtomicUsize = AtomicUsize::new(1);
static KEY: OnceCell<c_int> = OnceCell::new();

/// What is known of `comm`; `None` where it was not met yet. `comm` is normalised.
pub fn lookup(comm: Handle) -> Option<Known> {
    let comms = COMMS.read().unwrap_or_else(PoisonError::into_inner);
    comms.as_ref()?.get(&comm).map(|entry| entry.known.clone())
}

/// Meets a communicator in its first all-to-all. Collective over `comm`.
pub fn meet(mpi: &'static Mpi, comm: Handle) -> Result<Known> {
    if mpi.is_inter(comm)? || mpi.size(comm)? == 1 {
        remember(mpi, comm, Known::Plain)?;
        return Ok(Known::Plain);
    }
    let (_, known) = settle(mpi, comm, false)?;
    Ok(known)
}

/// Registers a communicator at the program's wish. Collective over `comm`.
pub fn register(mpi: &'static Mpi, comm: Handle) -> Result<Verdict> {
    if let Some(Known::Registered(_)) = lookup(comm) {
        return Ok(Verdict::Agreed { wanted: true });
    }
    forget(mpi, comm)?;
    let (verdict, _) = settle(mpi, comm, true)?;
    Ok(verdict)
}

/// Makes a communicator plain again. Collective over `comm`.
pub fn unregister(mpi: &'static Mpi, comm: Handle) -> Result<()> {
    forget(mpi, comm)?;
    remember(mpi, comm, Known::Plain)
}

/// The registrations that are still alive, in the order of their numbers.
pub fn live() -> Vec<Arc<Registration>> {
    let comms = COMMS.read().unwrap_or_else(PoisonError::into_inner);
    let registered = comms
        .iter()
        .flatten()
        .filter_map(|(_, entry)| match &entry.known {
            Known::Registered(registration) => Some(Arc::clone(registration)),
            Known::Plain => None,
        });
    let mut registered: Vec<_> = registered.collect();
    registered.sort_by_key(|registration| registration.number);
    registered
}

/// Compares settings over the communicator, and makes the registration where all agree on one.
fn settle(mpi: &'static Mpi, comm: Handle, asked: bool) -> Result<(Verdict, Known)> {
    let proposal = agreement::Proposal::new(mpi, comm, asked)?;
    let verdict = proposal.compare(mpi, comm)?;
    let known = match verdict {
        Verdict::Agreed { wanted: true } => {
            Known::Registered(Arc::new(Registration::new(mpi, comm, proposal)?))
        }
        _ => Known::Plain,
    };
    remember(mpi, comm, known.clone())?;
    Ok((verdict, known))
}

fn remember(mpi: &'static Mpi, comm: Handle, known: Known) -> Result<()> {
    let key = *KEY.get_or_try_init(|| mpi.create_keyval(on_delete))?;
    let id = NEXT_ID.fetch_add(1, Ordering::Relaxed);
    COMMS
        .write()
        .unwrap_or_else(PoisonError::into_inner)
        .get_or_insert_default()
        .insert(comm, Entry { id, known });
    mpi.set_attribute(comm, key, id)
}

/// Drops what is known of a communicator that lives on.
fn forget(mpi: &'static Mpi, comm: Handle) -> Result<()> {
    match (lookup(comm), KEY.get()) {
        (Some(_), Some(&key)) => mpi.delete_attribute(comm, key),
        _ => Ok(()),
    }
}

/// MPI calls this when a communicator that we met is freed.
unsafe extern "C" fn on_delete(
    comm: Handle,
    _key: c_int,
    value: *mut c_void,
    _extra: *mut c_void,
) -> c_int {
    // Unwinding into MPI is not allowed; whatever happens, the communicator may go.
    let _ = std::panic::catch_unwind(|| drop_entry(comm, value as usize));
    SUCCESS
}

fn drop_entry(comm: Handle, id: usize) {
    let Some(mpi) = Mpi::get() else { return };
    let entry = {
        let mut comms = COMMS.write().unwrap_or_else(PoisonError::into_inner);
        let Some(comms) = comms.as_mut() else { return };
        let comm = mpi.abi.normalise(comm);
        if comms.get(&comm).is_none_or(|entry| entry.id != id) {
            return;
        }
        comms.remove(&comm)
    };
    // During MPI_Finalize the private communicator goes with everything else.
    if let Some(Entry {
        known: Known::Registered(registration),
        ..
    }) = entry
        && !session::is_closed()
    {
        report::keep(&registration);
        mpi.comm_free(registration.private);
    }
}
