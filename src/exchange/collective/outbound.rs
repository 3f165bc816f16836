//! Blocks of the program → messages in their slots.

use super::escape::Escaped;
use super::staging::Slots;
use crate::codec::Refusal;
use crate::exchange::Result;
use crate::exchange::axes;
use crate::exchange::context::Context;
use crate::exchange::form::Form;
use crate::exchange::message::{self, Message, Values};
use crate::exchange::outgoing::{Outgoing, Part, Sent, here};
use crate::exchange::side::Side;
use crate::report::CallStats;

/// Fills the slots of `forms` from the blocks of `side`. Returns the messages that escaped.
///
/// # Safety
/// `side` must describe a live buffer, as MPI asks of the program.
pub unsafe fn encode(
    context: Context,
    side: &Side,
    forms: &[Form],
    slots: &mut Slots,
    outgoing: &mut Outgoing,
    stats: &mut CallStats,
) -> Result<Vec<Escaped>> {
    for (peer, form) in forms.iter().enumerate() {
        // The block that stays here has no slot.
        if matches!(form, Form::Raw(bytes) if *bytes > 0) {
            let (comm, to) = (context.registration.private, slots.place(peer));
            // SAFETY: the caller's promise; the slot is as long as the block.
            unsafe { side.gather_to(context.mpi, comm, peer, to)? };
        }
    }
    let mut messages = message::coded(forms);
    // SAFETY: the caller's promise.
    let values = messages
        .iter()
        .map(|message| unsafe { Values::of(context, side, message) })
        .collect::<Result<Vec<_>>>()?;
    let mut pattern = None;
    if let Some(longest) = message::longest(&messages) {
        let (inference, specimen) = (&mut outgoing.inference, &values[longest]);
        // SAFETY: the specimen is the values of the longest message.
        pattern =
            unsafe { axes::choose(context, side, &mut messages, longest, specimen, inference)? };
    }
    let mut parts = parts(&messages, &values, slots);
    // SAFETY: each part points to its values, in the program's buffer or gathered.
    let outcomes = unsafe { outgoing.code(context, pattern, &mut parts, stats) };
    drop(parts);
    let ready = messages.iter().zip(&outcomes);
    slots.publish(ready.map(|(message, outcome)| (message.peer, here(outcome))))?;
    escaped(&messages, &values, &outcomes)
}

fn parts<'a>(messages: &'a [Message], values: &[Values], slots: &'a mut Slots) -> Vec<Part<'a>> {
    let on_device = slots.on_device();
    let mut slots: Vec<_> = slots.all_words_mut().into_iter().map(Some).collect();
    let part = |(message, values): (&'a Message, &Values)| {
        let slot = slots[message.peer].take()?;
        Some(Part {
            message,
            segment: 0,
            count: message.coded.count,
            axes: &message.axes,
            values: values.pointer,
            place: values.place,
            // The header alone: the values follow point to point.
            bytes_if_refused: 8 * slot.len(),
            on_device: on_device[message.peer],
            slot,
        })
    };
    messages.iter().zip(values).filter_map(part).collect()
}

fn escaped(
    messages: &[Message],
    values: &[Values],
    outcomes: &[std::result::Result<Sent, Refusal>],
) -> Result<Vec<Escaped>> {
    let refused = messages
        .iter()
        .zip(values)
        .zip(outcomes)
        .filter(|(_, outcome)| outcome.is_err());
    refused
        .map(|((message, values), _)| {
            let mut bytes = vec![0; message.coded.raw_bytes()];
            // SAFETY: the values are that many bytes.
            unsafe { values.place.memory.read(values.pointer, &mut bytes)? };
            let peer = message.peer;
            Ok(Escaped { peer, bytes })
        })
        .collect()
}
