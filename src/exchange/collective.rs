//! The collective engine: encode everything, one Alltoallv of the MPI on the compressed bytes, decode
//! everything.

use super::context::Context;
use super::incoming::{self, Received};
use super::outgoing::{self, Escaped};
use super::side::{Side, copy_self};
use super::staging::Slots;
use super::{Call, Collective, Form, escape, form, peer_allows};
use crate::mpi::{Error, Half, Mpi};
use crate::registry::{Registration, Terms, Working};
use crate::report::CallStats;
use crate::session;
use crate::settings::OnNode;
use crate::wire::HEADER_BYTES;
use std::time::Instant;

/// What became of a call.
pub enum Outcome {
    /// The results are in the program's buffers.
    Done,
    /// It is to go to MPI as the program made it. Every rank of the communicator passes it on alike, or
    /// stands in the same MPI function.
    PassOn,
}

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

/// Performs an all-to-all on a registered communicator.
///
/// # Safety
/// The call must describe live buffers, as MPI asks of the program.
pub unsafe fn run(mpi: &Mpi, registration: &Registration, call: &Call) -> Result<Outcome, Failure> {
    let terms = registration.terms();
    let source = call.send.as_ref().unwrap_or(&call.receive);
    let in_place = call.send.is_none();
    let send_floats = source.is_floats(terms.bytes);
    let receive_floats = call.receive.is_floats(terms.bytes);
    let ours = match call.collective {
        // All ranks have the same counts and signatures, so this is the same on each.
        Collective::Alltoall => send_floats && some_message_is_coded(registration, &terms, source),
        // A rank may have nothing to send or to receive, or foreign types, while others have floats. In
        // place, MPI would use another algorithm than on those, so that goes our way too.
        Collective::Alltoallv => send_floats || receive_floats || in_place,
    };
    let mut stats = CallStats {
        calls: 1,
        ..CallStats::default()
    };
    if !ours {
        stats.count_raw(registration.rank, source);
        registration.stats().add(call.collective, &stats);
        return Ok(Outcome::PassOn);
    }
    let context = Context {
        mpi,
        registration,
        terms: &terms,
        settings: session::settings(),
        collective: call.collective,
    };
    // SAFETY: the caller's promise.
    let result = unsafe { exchange(context, call, source, &mut stats) };
    registration.stats().add(call.collective, &stats);
    result.map(|()| Outcome::Done)
}

/// Whether any pair of ranks compresses an Alltoall of these counts.
fn some_message_is_coded(registration: &Registration, terms: &Terms, side: &Side) -> bool {
    let some_pair_allows = terms.on_node != OnNode::Raw || registration.spans_nodes;
    let form = form(terms, side.bytes(0), side.values(0, terms.bytes));
    some_pair_allows && matches!(form, Form::Coded(_))
}

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

/// # Safety
/// As [`run`].
unsafe fn exchange(
    context: Context,
    call: &Call,
    source: &Side,
    stats: &mut CallStats,
) -> Result<(), Failure> {
    let Context {
        mpi, registration, ..
    } = context;
    let mut working = registration.working();
    let started = Instant::now();
    // SAFETY: the caller's promise.
    let outbound = unsafe { outbound(context, call, source, &mut working, stats)? };
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
    let inbound = inbound(context, &call.receive, &mut working)?;
    let encoded = Instant::now();

    // SAFETY: both halves describe slots of ours or the program's own buffers.
    match unsafe { mpi.alltoallv(&outbound.half, &inbound.half, registration.comm) } {
        Some(result) => result.map_err(Failure::Raised)?,
        None => return Err(Failure::Told(too_large())),
    }
    let wired = Instant::now();
    // SAFETY: the caller's promise.
    let received = unsafe { read(context, &call.receive, &inbound, &mut working)? };
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
    let escaped = escaped.iter().map(|one| one.peer);
    stats.count_sent(registration.rank, source, &forms, escaped);

    match received.faults.first() {
        Some((peer, fault)) => Err(Failure::Told(format!(
            "message from rank {peer} to rank {}: {fault}",
            registration.rank
        ))),
        None if !self_copied => Err(Failure::Told(format!(
            "rank {} sends itself another length than it receives",
            registration.rank
        ))),
        None => Ok(()),
    }
}

/// Codes what this rank sends. Under `MPI_IN_PLACE` all of it is staged, since it lies where the received
/// will be.
///
/// # Safety
/// As [`run`].
unsafe fn outbound(
    context: Context,
    call: &Call,
    source: &Side,
    working: &mut Working,
    stats: &mut CallStats,
) -> Result<Outbound, Error> {
    let forms = forms(context, source, |peer| working.sent[peer].holds_back());
    let in_place = call.send.is_none();
    let mut escaped = Vec::new();
    let half = match direct(context, source, &forms).filter(|_| !in_place) {
        Some(half) => half,
        None => {
            let slots = &mut working.staging.send;
            slots.arrange(forms.iter().map(Form::wire_bytes));
            let state = &mut working.outgoing;
            // SAFETY: the caller's promise.
            escaped = unsafe { outgoing::encode(context, source, &forms, slots, state, stats)? };
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
fn inbound(context: Context, side: &Side, working: &mut Working) -> Result<Inbound, Error> {
    let forms = forms(context, side, |peer| working.received[peer].holds_back());
    Ok(match direct(context, side, &forms) {
        Some(half) => Inbound {
            half,
            forms,
            staged: false,
        },
        None => Inbound {
            half: staged_receive(context.mpi, &forms, &mut working.staging.receive)?,
            forms,
            staged: true,
        },
    })
}

/// Reads what was received into the blocks of the program.
///
/// # Safety
/// As [`run`].
unsafe fn read(
    context: Context,
    side: &Side,
    inbound: &Inbound,
    working: &mut Working,
) -> Result<Received, Error> {
    if !inbound.staged {
        return Ok(Received::default());
    }
    let (slots, backoffs) = (&working.staging.receive, &mut working.received);
    // SAFETY: the caller's promise.
    unsafe { incoming::decode(context, side, &inbound.forms, slots, backoffs) }
}

/// The form of each message. `holds_back` is asked for those that would be compressed, and counts them.
fn forms(context: Context, side: &Side, mut holds_back: impl FnMut(usize) -> bool) -> Vec<Form> {
    let Context {
        registration,
        terms,
        ..
    } = context;
    (0..registration.size)
        .map(|peer| {
            if peer == registration.rank {
                return Form::Raw(0);
            }
            let bytes = side.bytes(peer);
            if !peer_allows(registration, terms, peer) {
                return Form::Raw(bytes);
            }
            match form(terms, bytes, side.values(peer, terms.bytes)) {
                Form::Coded(_) if holds_back(peer) => Form::Raw(bytes),
                form => form,
            }
        })
        .collect()
}

/// A side that MPI can work on where it lies: foreign types as they are, floats of which none is
/// compressed as bytes, since the other end may have some that are. The own block is left out.
fn direct(context: Context, side: &Side, forms: &[Form]) -> Option<Half> {
    let rank = context.registration.rank;
    if !side.is_floats(context.terms.bytes) {
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
fn staged_receive(mpi: &Mpi, forms: &[Form], slots: &mut Slots) -> Result<Half, Error> {
    slots.arrange(forms.iter().map(Form::wire_bytes));
    for (peer, form) in forms.iter().enumerate() {
        if matches!(form, Form::Coded(_)) {
            slots.bytes_mut(peer)[..HEADER_BYTES].fill(0);
        }
    }
    slots.half(mpi)
}

fn record_sent(working: &mut Working, forms: &[Form], escaped: &[Escaped]) {
    for (peer, form) in forms.iter().enumerate() {
        if matches!(form, Form::Coded(_)) {
            working.sent[peer].record(escaped.iter().any(|one| one.peer == peer));
        }
    }
}

fn too_large() -> String {
    "the messages of this rank exceed what MPI's int counts reach, and this MPI has no MPI_Alltoallv_c"
        .into()
}
