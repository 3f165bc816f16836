//! Who sends how many bytes to whom.
//!
//! Every decision about a pair of ranks in this folder rests on facts that both hold: the type
//! signature, the count, the agreed terms, the node, and the escapes that went between them before. Which
//! engine carries a call rests on facts that hold for the whole communicator.

mod axes;
mod backoff;
mod buffer;
mod collective;
mod context;
mod engine;
mod form;
mod home;
mod message;
mod outgoing;
mod pairwise;
mod plain;
mod shadow;
mod side;
mod tuner;

pub use backoff::Backoff;
pub use collective::{Staging, free_unit_types};
pub use engine::{Choice, Engine};
pub use outgoing::Outgoing;
pub use pairwise::Pool;
pub use side::{Holds, Side, Slices};
pub use tuner::Tuners;

use crate::codec::{Memory, cuda};
use crate::mpi::{Error, Mpi};
use crate::registry::Registration;
use crate::report::CallStats;
use crate::session;
use crate::wire::Fault;
use context::Context;
use std::time::Instant;
use tuner::Order;

/// The program's call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Collective {
    Alltoall,
    Alltoallv,
}

impl Collective {
    pub fn name(self) -> &'static str {
        match self {
            Self::Alltoall => "MPI_Alltoall",
            Self::Alltoallv => "MPI_Alltoallv",
        }
    }
}

/// An intercepted all-to-all on a registered communicator.
pub struct Call {
    pub collective: Collective,
    /// `None` for `MPI_IN_PLACE`: what is received lies where it was sent from.
    pub send: Option<Side>,
    pub receive: Side,
}

impl Call {
    /// Where what is sent lies.
    fn source(&self) -> &Side {
        self.send.as_ref().unwrap_or(&self.receive)
    }

    fn sides(&self) -> impl Iterator<Item = &Side> {
        self.send.iter().chain([&self.receive])
    }

    /// Has what we do on GPUs wait for what the program did there.
    fn begin(&self) -> Result<()> {
        let mut begun: Option<&cuda::Device> = None;
        for side in self.sides() {
            if let Memory::Gpu(device) = side.place().memory
                && !begun.is_some_and(|other| std::ptr::eq(other, device))
            {
                device.enter()?.begin()?;
                begun = Some(device);
            }
        }
        Ok(())
    }

    /// Whether MPI can work on the program's buffers where they lie.
    fn is_open_to_mpi(&self) -> bool {
        self.sides().all(Side::is_open_to_mpi)
    }
}

/// What became of a call.
pub enum Outcome {
    /// The results are in the program's buffers.
    Done,
    /// It is to go to MPI as the program made it. Every rank of the communicator passes it on alike, or
    /// stands in the same MPI function.
    PassOn {
        /// Whoever passes it on is to say how long it took; see [`passed_on`].
        is_timed: bool,
    },
}

/// Why a call failed.
pub enum Failure {
    /// The communicator's error handler has been called.
    Raised(Error),
    /// MPI gave this code for one of our own calls.
    Code(Error),
    /// What went wrong, in words.
    Told(String),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Code(error)
    }
}

impl From<cuda::Error> for Failure {
    fn from(error: cuda::Error) -> Self {
        Self::Told(format!("the GPU failed: {error}"))
    }
}

type Result<T> = std::result::Result<T, Failure>;

fn too_large() -> String {
    "the messages of this rank exceed what MPI's int counts reach, and this MPI has no calls with large ones"
        .into()
}

/// What a call came to whose messages have all been read.
fn verdict(context: Context, faults: &[(usize, Fault)], self_copied: bool) -> Result<()> {
    let rank = context.registration.rank;
    match faults.first() {
        Some((peer, fault)) => Err(Failure::Told(format!(
            "message from rank {peer} to rank {rank}: {fault}"
        ))),
        None if !self_copied => Err(Failure::Told(format!(
            "rank {rank} sends itself another length than it receives"
        ))),
        None => Ok(()),
    }
}

/// Performs an all-to-all on a registered communicator.
///
/// # Safety
/// The call must describe live buffers, as MPI asks of the program.
pub unsafe fn run(mpi: &Mpi, registration: &Registration, call: &Call) -> Result<Outcome> {
    let terms = registration.terms();
    let context = Context {
        mpi,
        registration,
        terms: &terms,
        settings: session::settings(),
        collective: call.collective,
    };
    call.begin()?;
    let mut stats = CallStats {
        calls: 1,
        ..CallStats::default()
    };
    let mut working = registration.working();
    let Order { engine, is_timed } = engine::of(context, call, &mut working)?;
    let started = Instant::now();
    // SAFETY: the caller's promise.
    let result = unsafe {
        match engine {
            Engine::Plain => {
                stats.count_raw(registration.rank, call.source());
                if call.is_open_to_mpi() {
                    Ok(Outcome::PassOn { is_timed })
                } else {
                    plain::exchange(context, call).map(|()| Outcome::Done)
                }
            }
            Engine::Collective => collective::exchange(context, call, &mut working, &mut stats)
                .map(|()| Outcome::Done),
            Engine::Pairwise => {
                pairwise::exchange(context, call, &mut working, &mut stats).map(|()| Outcome::Done)
            }
        }
    };
    // SAFETY: the caller's promise.
    let result = result.and_then(|outcome| unsafe {
        call.sides().try_for_each(|side| side.settle())?;
        Ok(outcome)
    });
    if is_timed && matches!(result, Ok(Outcome::Done)) {
        let tuner = working.tuners.of(call.collective);
        tuner.record(started.elapsed().as_secs_f64());
    }
    registration.stats().add(call.collective, &stats);
    result
}

/// After a call that was passed on and is to be timed.
pub fn passed_on(registration: &Registration, collective: Collective, seconds: f64) {
    registration.working().tuners.of(collective).record(seconds);
}
