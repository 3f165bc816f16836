//! The collective engine: encode everything, one Alltoallv of the MPI on the compressed bytes, decode
//! everything.

mod escape;
mod inbound;
mod outbound;
mod staging;

pub use staging::{Staging, free_unit_types};

use super::context::Context;
use super::form::{Form, forms, headers};
use super::side::{Side, copy_self};
use super::{Call, Failure, Result, too_large, verdict};
use crate::mpi::Half;
use crate::registry::Working;
use crate::report::{CallStats, Fate};
use escape::Escaped;
use inbound::Received;
use staging::Slots;
use std::time::Instant;

/// What this rank sends, ready for MPI.
struct Outbound {
    half: Half,
    forms: Vec<Form>,
    escaped: Vec<Escaped>,
}

/// Where what this rank receives goes to.
struct Inbound {
    half: Half,
    forms: Vec<Form>,
    /// Into slots, from which it is yet to be read.
    staged: bool,
}

/// Performs an all-to-all.
///
/// # Safety
/// The call must describe live buffers, as MPI asks of the program.
pub unsafe fn exchange(
    context: Context,
    call: &Call,
    working: &mut Working,
    stats: &mut CallStats,
) -> Result<()> {
    let source = call.source();
    let Context {
        mpi, registration, ..
    } = context;
    let started = Instant::now();
    // SAFETY: the caller's promise.
    let outbound = unsafe { outbound(context, call, source, working, stats)? };
    // Everything that is sent has been read by now or lies where MPI itself will read it, so that writing
    // to the receive buffer is safe even if the program aliases the two.
    let self_copied = match &call.send {
        // SAFETY: the caller's promise.
        Some(send) => unsafe {
            let (comm, rank) = (registration.private, registration.rank);
            copy_self(mpi, comm, rank, send, &call.receive)?
        },
        None => true,
    };
    let inbound = inbound(context, &call.receive, working)?;
    let encoded = Instant::now();

    // SAFETY: both halves describe slots of ours or the program's own buffers.
    match unsafe { mpi.alltoallv(&outbound.half, &inbound.half, registration.comm) } {
        Some(result) => result.map_err(Failure::Raised)?,
        None => return Err(Failure::Told(too_large())),
    }
    let wired = Instant::now();
    // SAFETY: the caller's promise.
    let received = unsafe { read(context, &call.receive, &inbound, working)? };
    let decoded = Instant::now();
    let Outbound { forms, escaped, .. } = outbound;
    // SAFETY: the caller's promise.
    unsafe {
        let incoming = &received.escaped;
        escape::exchange(mpi, registration, &escaped, incoming, &call.receive)?;
    }
    stats.encode += (encoded - started).as_secs_f64();
    stats.wire += (wired - encoded + decoded.elapsed()).as_secs_f64();
    stats.decode += (decoded - wired).as_secs_f64();
    count_sent(context, source, &forms, &escaped, stats);

    verdict(context, &received.faults, self_copied)
}

/// Codes what this rank sends. Under `MPI_IN_PLACE` all of it is staged, since it lies where the received
/// will be.
///
/// # Safety
/// As [`exchange`].
unsafe fn outbound(
    context: Context,
    call: &Call,
    source: &Side,
    working: &mut Working,
    stats: &mut CallStats,
) -> Result<Outbound> {
    let forms = forms(context, source, |peer| working.sent[peer].holds_back());
    let in_place = call.send.is_none();
    let mut escaped = Vec::new();
    let half = match direct(context, source, &forms).filter(|_| !in_place) {
        Some(half) => half,
        None => {
            let slots = &mut working.staging.send;
            let lengths = forms.iter().map(|form| form.wire_bytes(context.terms));
            slots.arrange(lengths, source.buffer_kind());
            let state = &mut working.outgoing;
            // SAFETY: the caller's promise.
            escaped = unsafe { outbound::encode(context, source, &forms, slots, state, stats)? };
            slots.half(context.mpi)?
        }
    };
    record_sent(working, &forms, &escaped);
    Ok(Outbound {
        half,
        forms,
        escaped,
    })
}

/// Makes room for what this rank receives.
fn inbound(context: Context, side: &Side, working: &mut Working) -> Result<Inbound> {
    let forms = forms(context, side, |peer| working.received[peer].holds_back());
    Ok(match direct(context, side, &forms) {
        Some(half) => Inbound {
            half,
            forms,
            staged: false,
        },
        None => Inbound {
            half: staged_receive(context, side, &forms, &mut working.staging.receive)?,
            forms,
            staged: true,
        },
    })
}

/// Reads what was received into the blocks of the program.
///
/// # Safety
/// As [`exchange`].
unsafe fn read(
    context: Context,
    side: &Side,
    inbound: &Inbound,
    working: &mut Working,
) -> Result<Received> {
    if !inbound.staged {
        return Ok(Received::default());
    }
    let (slots, backoffs) = (&mut working.staging.receive, &mut working.received);
    // SAFETY: the caller's promise.
    unsafe { inbound::decode(context, side, &inbound.forms, slots, backoffs) }
}

/// A side that MPI can work on where it lies, if it can go there: foreign types as they are, floats of which none is
/// compressed as bytes, since the other end may have some that are. The own block is left out.
fn direct(context: Context, side: &Side, forms: &[Form]) -> Option<Half> {
    let rank = context.registration.rank;
    if !side.is_ours(context.terms.holds()) && side.is_open_to_mpi() {
        let mut half = side.as_passed();
        half.counts[rank] = 0;
        half.displacements[rank] = 0;
        return Some(half);
    }
    let none_coded = forms.iter().all(|form| matches!(form, Form::Raw(_)));
    if none_coded {
        side.as_bytes(context.mpi, rank)
    } else {
        None
    }
}

/// Slots for what is received. A message that does not come, or comes short, must not find a header that
/// an earlier call left there.
fn staged_receive(
    context: Context,
    side: &Side,
    forms: &[Form],
    slots: &mut Slots,
) -> Result<Half> {
    let lengths = forms.iter().map(|form| form.wire_bytes(context.terms));
    slots.arrange(lengths, side.buffer_kind());
    for (peer, bytes) in headers(forms) {
        slots.bytes_mut(peer)[..bytes].fill(0);
    }
    slots.publish(headers(forms))?;
    slots.half(context.mpi)
}

fn record_sent(working: &mut Working, forms: &[Form], escaped: &[Escaped]) {
    for (peer, form) in forms.iter().enumerate() {
        if matches!(form, Form::Coded(_)) {
            working.sent[peer].record(escaped.iter().any(|one| one.peer == peer));
        }
    }
}

fn count_sent(
    context: Context,
    source: &Side,
    forms: &[Form],
    escaped: &[Escaped],
    stats: &mut CallStats,
) {
    let own = context.registration.rank;
    for (peer, form) in forms.iter().enumerate().filter(|(peer, _)| *peer != own) {
        let before = source.bytes(peer);
        let wire_bytes = form.wire_bytes(context.terms);
        match form {
            // A foreign type goes from where it lies, whatever its form says.
            Form::Raw(_) => stats.count(Fate::Raw, before, before),
            Form::Coded(_) if escaped.iter().any(|one| one.peer == peer) => {
                stats.count(Fate::Escaped, before, wire_bytes + before);
            }
            Form::Coded(_) => stats.count(Fate::Compressed, before, wire_bytes),
        }
    }
}
