//! Messages in their slots → blocks of the program.

use super::staging::Slots;
use crate::codec::{self, Decode, Memory, Place};
use crate::exchange::Result;
use crate::exchange::backoff::Backoff;
use crate::exchange::context::{Context, HEADER_WORDS};
use crate::exchange::form::{Coded, Form, headers};
use crate::exchange::side::Side;
use crate::wire::{Fault, HEADER_BYTES, Header};

/// What came of reading the messages of a call.
#[derive(Default)]
pub struct Received {
    /// Ranks whose message follows raw.
    pub escaped: Vec<usize>,
    pub faults: Vec<(usize, Fault)>,
}

/// A message whose header is right.
struct Target {
    peer: usize,
    coded: Coded,
    header: Header,
    pointer: *mut u8,
    place: Place,
    /// Where `pointer` points when the block is not in one piece.
    scattered: Vec<u64>,
}

/// Reads the slots of `forms` into the blocks of `side`, but for the messages that escaped.
///
/// # Safety
/// `side` must describe a live buffer, as MPI asks of the program.
pub unsafe fn decode(
    context: Context,
    side: &Side,
    forms: &[Form],
    slots: &mut Slots,
    backoffs: &mut [Backoff],
) -> Result<Received> {
    let Context {
        mpi,
        registration,
        terms,
        ..
    } = context;
    let mut received = Received::default();
    let mut targets = Vec::new();
    slots.fetch(headers(forms))?;
    for (peer, form) in forms.iter().enumerate() {
        let coded = match *form {
            // The block that stays here has no slot.
            Form::Raw(0) => continue,
            Form::Raw(_) => {
                let (memory, from) = slots.place(peer);
                // SAFETY: the caller's promise; the slot is as long as the block.
                unsafe {
                    let from = (memory, from.cast_const());
                    side.scatter_from(mpi, registration.private, peer, from)?;
                }
                continue;
            }
            Form::Coded(coded) => coded,
        };
        let Coded { item, count, .. } = coded;
        let slot = slots.bytes(peer);
        match Header::read(slot, terms.coding, item, count..=count, slot.len()) {
            Ok(header) => {
                backoffs[peer].record(header.escaped);
                if header.escaped {
                    received.escaped.push(peer);
                } else {
                    targets.push(target(side, peer, coded, header));
                }
            }
            Err(fault) => received.faults.push((peer, fault)),
        }
    }

    let on_device = slots.on_device();
    let messages: Vec<_> = targets
        .iter()
        .map(|target| Decode {
            coding: terms.coding,
            item: target.coded.item,
            values: target.pointer,
            place: target.place,
            count: target.coded.count,
            axes: &target.header.axes,
            masked: target.header.masked,
            fitted: target.header.fitted,
            payload: &slots.words(target.peer)[HEADER_WORDS..],
            on_device: on_device[target.peer].map(|slot| slot + HEADER_BYTES as u64),
        })
        .collect();
    // SAFETY: each target has room for its values, aligned, in the program's buffer or in a vector.
    let decoded = unsafe { codec::decode(&messages, context.settings.threads) };
    drop(messages);
    for (target, decoded) in targets.iter().zip(decoded) {
        if !decoded {
            received.faults.push((target.peer, Fault::Payload));
        } else if !target.scattered.is_empty() {
            // SAFETY: the values lie in the vector; the block is the caller's promise.
            unsafe {
                let bytes = std::slice::from_raw_parts(target.pointer, target.coded.raw_bytes());
                side.scatter(mpi, registration.private, target.peer, bytes)?;
            }
        }
    }
    Ok(received)
}

fn target(side: &Side, peer: usize, coded: Coded, header: Header) -> Target {
    let (mut scattered, mut place) = (Vec::new(), side.place());
    let pointer = side.piece(peer, coded.item.bytes()).unwrap_or_else(|| {
        place.memory = Memory::Host;
        coded.room(&mut scattered)
    });
    Target {
        peer,
        coded,
        header,
        pointer,
        place,
        scattered,
    }
}
