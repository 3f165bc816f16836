//! The MPI functions that the program reaches us by.
//!
//! [`table`] lists them and exports each under both its names; this file says what happens behind each.

mod guard;
mod next;
mod table;

use crate::exchange::{self, Call, Collective, Failure, Outcome, Side, Slices};
use crate::mpi::{Error, Handle, Mpi, SUCCESS};
use crate::registry::{self, Known, Registration};
use crate::session;
use guard::Guard;
use std::ffi::{c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;

/// Counts and displacements of one side, as the program passed them.
#[derive(Clone, Copy)]
enum Blocks {
    /// `MPI_Alltoall`: as many items to each rank.
    Equal(i64),
    /// `MPI_Alltoallv`: counts and displacements.
    Ints(*const c_int, *const c_int),
    /// `MPI_Alltoallv_c`.
    Large(*const i64, *const isize),
}

impl Blocks {
    /// `None` where MPI will refuse the call: an array is missing, or a count negative.
    ///
    /// # Safety
    /// The arrays must have one element per rank, as MPI asks of the program.
    unsafe fn slices(self, ranks: usize) -> Option<Slices> {
        // SAFETY: the caller's promise.
        unsafe {
            match self {
                Self::Equal(items) => Slices::equal(ranks, items),
                Self::Ints(counts, at) if !counts.is_null() && !at.is_null() => Slices::new(
                    (0..ranks).map(|rank| (i64::from(*counts.add(rank)), *at.add(rank) as isize)),
                ),
                Self::Large(counts, at) if !counts.is_null() && !at.is_null() => {
                    Slices::new((0..ranks).map(|rank| (*counts.add(rank), *at.add(rank))))
                }
                Self::Ints(..) | Self::Large(..) => None,
            }
        }
    }
}

/// One side of an all-to-all, as the program passed it.
#[derive(Clone, Copy)]
struct Argument {
    buffer: *mut c_void,
    blocks: Blocks,
    datatype: Handle,
}

/// Performs an all-to-all, if need be by `next`, which passes it to MPI as it came.
///
/// # Safety
/// The arguments must be what MPI asks of the program.
unsafe fn all_to_all(
    collective: Collective,
    send: Argument,
    receive: Argument,
    comm: Handle,
    next: impl FnOnce() -> c_int,
) -> c_int {
    // SAFETY: the caller's promise.
    match unsafe { answer(collective, send, receive, comm) } {
        Answer::Done(code) => code,
        Answer::PassOn(_guard) => next(),
        Answer::Time(registration, _guard) => {
            let started = Instant::now();
            let code = next();
            let seconds = started.elapsed().as_secs_f64();
            let record = || exchange::passed_on(&registration, collective, seconds);
            let _ = catch_unwind(AssertUnwindSafe(record));
            code
        }
    }
}

/// What passes a call on keeps the guard: another tool may make a `PMPI_X` of the `MPI_X` that it gets, which comes
/// back to us.
enum Answer {
    Done(c_int),
    PassOn(Option<Guard>),
    /// Pass it on, and say how long that took.
    Time(Arc<Registration>, Guard),
}

/// # Safety
/// As [`all_to_all`].
unsafe fn answer(
    collective: Collective,
    send: Argument,
    receive: Argument,
    comm: Handle,
) -> Answer {
    let (Some(guard), Some(mpi)) = (Guard::enter(), Mpi::get()) else {
        return Answer::PassOn(None);
    };
    let comm = mpi.abi.normalise(comm);
    let known = registry::lookup(comm).or_else(|| first_meeting(mpi, comm));
    let Some(Known::Registered(registration)) = known else {
        return Answer::PassOn(None);
    };
    // Unwinding must not leave here, and by now the other ranks count on this one: an error is all that
    // is left.
    let result = catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: the caller's promise.
        unsafe { compressed(mpi, &registration, collective, send, receive) }
    }));
    let failure = match result {
        Ok(Ok(Outcome::Done)) => return Answer::Done(SUCCESS),
        Ok(Ok(Outcome::PassOn { is_timed: false })) => return Answer::PassOn(Some(guard)),
        Ok(Ok(Outcome::PassOn { is_timed: true })) => return Answer::Time(registration, guard),
        Ok(Err(failure)) => failure,
        Err(_) => Failure::Told("internal error (a panic, reported above)".into()),
    };
    Answer::Done(raise(mpi, &registration, collective, failure))
}

/// The ranks of a communicator that is not known agree what to do with it.
fn first_meeting(mpi: &'static Mpi, comm: Handle) -> Option<Known> {
    if comm == mpi.abi.comm_null || !mpi.is_active() || session::is_closed() {
        return None;
    }
    session::open(mpi);
    catch_unwind(|| registry::meet(mpi, comm).ok())
        .ok()
        .flatten()
}

/// # Safety
/// As [`all_to_all`].
unsafe fn compressed(
    mpi: &Mpi,
    registration: &Registration,
    collective: Collective,
    send: Argument,
    receive: Argument,
) -> Result<Outcome, Failure> {
    // MPI says that the other send arguments are ignored then: they may be anything.
    let in_place = send.buffer.addr() == mpi.abi.in_place;
    // SAFETY: the caller's promise.
    let (send_slices, receive_slices) = unsafe {
        let slices = |argument: Argument| argument.blocks.slices(registration.size);
        (
            if in_place {
                Some(Slices::default())
            } else {
                slices(send)
            },
            slices(receive),
        )
    };
    let (Some(send_slices), Some(receive_slices)) = (send_slices, receive_slices) else {
        return Ok(Outcome::PassOn { is_timed: false });
    };
    // MPI refuses its null datatype where there is something to send or receive, in its own words.
    let is_refused = |argument: Argument, slices: &Slices| {
        !slices.is_empty() && mpi.abi.normalise(argument.datatype) == mpi.abi.datatype_null
    };
    if is_refused(send, &send_slices) || is_refused(receive, &receive_slices) {
        return Ok(Outcome::PassOn { is_timed: false });
    }
    let side = |argument: Argument, slices| {
        let buffer = argument.buffer.cast();
        Side::new(mpi, registration, buffer, slices, argument.datatype)
    };
    let call = Call {
        collective,
        send: if in_place {
            None
        } else {
            Some(side(send, send_slices)?)
        },
        receive: side(receive, receive_slices)?,
    };
    // SAFETY: the caller's promise.
    unsafe { exchange::run(mpi, registration, &call) }
}

/// Reports a failure through the communicator's error handler, where MPI has not done so.
fn raise(
    mpi: &Mpi,
    registration: &Registration,
    collective: Collective,
    failure: Failure,
) -> c_int {
    let Error(code) = match failure {
        Failure::Raised(error) => error,
        Failure::Code(error) => mpi.raise_code(registration.comm, error),
        Failure::Told(cause) => {
            let message = format!(
                "{} on communicator {}: {cause}",
                collective.name(),
                registration.label()
            );
            tracing::error!("{message}");
            mpi.raise(registration.comm, &format!("transpress: {message}"))
        }
    };
    code
}

/// After MPI was initialised.
fn initialised(code: c_int) -> c_int {
    let _guard = Guard::enter();
    if code == SUCCESS
        && let Some(mpi) = Mpi::get()
    {
        let _ = catch_unwind(|| session::open(mpi));
    }
    code
}

/// Before MPI is finalised.
fn finalising() {
    let Some(_guard) = Guard::enter() else { return };
    if let Some(mpi) = Mpi::get()
        && mpi.is_active()
    {
        let _ = catch_unwind(AssertUnwindSafe(|| session::close(mpi)));
    }
}
