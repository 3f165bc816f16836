//! The pairwise engine: messages travel point to point, while others are being coded and decoded.
//!
//! In step i a rank sends to the rank i above it and receives from the rank i below it, so that at any time
//! every rank sends to another one. It goes on to the next step without waiting for this one: so many bytes
//! are under way in either direction. A receive is posted at the largest length that its message can have,
//! and the message may be shorter. What cannot be coded goes as it is in the same place.
//!
//! No two ranks wait for each other for ever: among all messages that have not arrived, those of the lowest
//! step are within the windows of both their ends.

mod cut;
mod idle;
mod receiver;
mod sender;
mod window;

pub use cut::segments;
pub use window::Pool;

use super::context::Context;
use super::side::copy_self;
use super::{Call, Result, verdict};
use crate::registry::Working;
use crate::report::CallStats;
use idle::Idle;
use receiver::Receiver;
use sender::Sender;
use std::time::Instant;

const TAG: i32 = 0x7477;

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
    let started = Instant::now();
    let (mpi, source, target) = (context.mpi, call.source(), &call.receive);
    let Working {
        send_pool,
        receive_pool,
        sent,
        received,
        sent_words,
        received_words,
        outgoing,
        ..
    } = working;
    let holds = context.terms.holds();
    let sent = if source.is_words(holds) {
        sent_words
    } else {
        sent
    };
    let received = if target.is_words(holds) {
        received_words
    } else {
        received
    };
    let mut receiver = Receiver::new(context, target, received, receive_pool);
    // SAFETY: the caller's promise.
    let mut sender = unsafe { Sender::new(context, source, sent, outgoing, send_pool, stats)? };
    // SAFETY: the caller's promise.
    let self_copied = unsafe {
        if call.send.is_none() || source.overlaps(target, mpi)? {
            // What arrives would overwrite what is yet to be sent.
            sender.code_all()?;
        }
        receiver.post()?;
        while sender.send_next()? {}
        let (comm, rank) = (context.registration.private, context.registration.rank);
        match &call.send {
            Some(send) => copy_self(mpi, comm, rank, send, target)?,
            None => true,
        }
    };
    let mut idle = Idle::default();
    while !(sender.is_done() && receiver.is_done()) {
        // SAFETY: the caller's promise.
        let progress = unsafe { sender.send_next()? | receiver.read_next()? | sender.reap()? };
        idle.step(progress);
    }
    let received = receiver.into_received();
    drop(sender);
    stats.decode += received.seconds;
    stats.wire += started.elapsed().as_secs_f64() - stats.encode - stats.decode;
    verdict(context, &received.faults, self_copied)
}
