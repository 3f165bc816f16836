//! Blocks of the program → messages in their slots.

use super::axes;
use super::context::{Context, HEADER_WORDS};
use super::side::Side;
use super::staging::Slots;
use super::{Coded, Form};
use crate::codec::{self, Bits, Encode, Encoded, Guard, Refusal};
use crate::layout::{Axes, Inference};
use crate::mpi::Result;
use crate::report::CallStats;
use crate::wire::{HEADER_BYTES, Header};
use std::time::Instant;

/// Without a guard, one message in so many has its error measured for the report.
const MEASURE_EVERY: u64 = 32;

/// What outlives a call.
#[derive(Default)]
pub struct Outgoing {
    inference: Inference,
    /// Messages so far, to pick those whose error is measured.
    messages: u64,
    /// The user was told that messages go raw, and why.
    refusal_said: bool,
}

/// A message that could not be coded, kept aside until it is sent raw: with `MPI_IN_PLACE` its block is
/// about to be overwritten.
pub struct Escaped {
    pub peer: usize,
    pub bytes: Vec<u8>,
}

/// The values of one block, in place or gathered.
pub struct Source {
    pub peer: usize,
    pub coded: Coded,
    pub axes: Axes,
    pub bits: Bits,
    pub pointer: *const u8,
    /// Where `pointer` points when the block is not in one piece.
    _gathered: Vec<u64>,
}

impl Source {
    /// # Safety
    /// As [`encode`].
    unsafe fn new(context: Context, side: &Side, peer: usize, coded: Coded) -> Result<Self> {
        let mut gathered = Vec::new();
        let pointer = match side.piece(peer, coded.element.bytes()) {
            Some(piece) => piece.cast_const(),
            None => {
                let room = coded.room(&mut gathered);
                // SAFETY: there is room for that many bytes; the block is the caller's promise.
                unsafe {
                    let bytes = std::slice::from_raw_parts_mut(room, coded.raw_bytes());
                    side.gather(context.mpi, context.registration.private, peer, bytes)?;
                }
                room.cast_const()
            }
        };
        Ok(Self {
            peer,
            coded,
            axes: Axes::new(),
            bits: Bits::Even,
            pointer,
            _gathered: gathered,
        })
    }
}

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
    let mut sources = Vec::new();
    for (peer, form) in forms.iter().enumerate() {
        match *form {
            // SAFETY: the caller's promise.
            Form::Raw(_) => unsafe {
                let bytes = slots.bytes_mut(peer);
                side.gather(context.mpi, context.registration.private, peer, bytes)?;
            },
            // SAFETY: the caller's promise.
            Form::Coded(coded) => sources.push(unsafe { Source::new(context, side, peer, coded)? }),
        }
    }
    // SAFETY: each source points to its values, in the program's buffer or gathered.
    let outcomes = unsafe {
        let pattern = axes::choose(context, side, &mut sources, &mut outgoing.inference);
        let started = Instant::now();
        let outcomes = encode_sources(context, &sources, slots, outgoing.messages);
        outgoing.inference.record_coding(started.elapsed());
        for (source, outcome) in sources.iter().zip(&outcomes) {
            let (error, exponent) = match outcome {
                Ok(encoded) => (encoded.error, encoded.exponent),
                Err(Refusal::Guard(error)) => (Some(*error), None),
                Err(_) => (None, None),
            };
            if let (Ok(_), Some(error)) = (outcome, error) {
                stats.error.add(error);
            }
            if let Some(pattern) = pattern {
                let (peer, refused) = (source.peer, outcome.is_err());
                outgoing
                    .inference
                    .record(pattern, peer, error, exponent, refused);
            }
        }
        outcomes
    };
    outgoing.messages += sources.len() as u64;

    let mut escaped = Vec::new();
    for (source, outcome) in sources.iter().zip(outcomes) {
        write_header(context, source, outcome, slots.bytes_mut(source.peer));
        if let Err(refusal) = outcome {
            say_refusal(context, source, refusal, &mut outgoing.refusal_said);
            // SAFETY: the source points to that many bytes.
            let bytes = unsafe {
                std::slice::from_raw_parts(source.pointer, source.coded.raw_bytes()).to_vec()
            };
            escaped.push(Escaped {
                peer: source.peer,
                bytes,
            });
        }
    }
    Ok(escaped)
}

/// Codes the sources into the payloads of their slots.
///
/// # Safety
/// Each source must point to its values.
unsafe fn encode_sources(
    context: Context,
    sources: &[Source],
    slots: &mut Slots,
    messages_before: u64,
) -> Vec<std::result::Result<Encoded, Refusal>> {
    let mut slot_words: Vec<_> = slots.all_words_mut().into_iter().map(Some).collect();
    let mut messages: Vec<_> = sources
        .iter()
        .filter_map(|source| {
            let words = slot_words[source.peer].take()?;
            Some(Encode {
                coding: context.terms.coding,
                element: source.coded.element,
                values: source.pointer,
                count: source.coded.count,
                axes: &source.axes,
                bits: source.bits,
                payload: &mut words[HEADER_WORDS..],
            })
        })
        .collect();
    let guard = Guard {
        error: context.settings.guard,
    };
    let measure = |index| (messages_before + index as u64).is_multiple_of(MEASURE_EVERY);
    // SAFETY: the caller's promise.
    unsafe { codec::encode(&mut messages, guard, measure, context.settings.threads) }
}

fn write_header(
    context: Context,
    source: &Source,
    outcome: std::result::Result<Encoded, Refusal>,
    slot: &mut [u8],
) {
    let has_axes = outcome.is_ok_and(|encoded| !encoded.flat);
    let header = Header {
        coding: context.terms.coding,
        element: source.coded.element,
        escaped: outcome.is_err(),
        masked: outcome.is_ok_and(|encoded| encoded.masked),
        fitted: outcome.is_ok_and(|encoded| encoded.exponent.is_some()),
        count: source.coded.count,
        wire_bytes: source.coded.wire_bytes,
        axes: if has_axes {
            source.axes.clone()
        } else {
            Axes::new()
        },
    };
    slot[..HEADER_BYTES].copy_from_slice(&header.to_bytes());
}

/// Says once per communicator that messages go raw, and why.
fn say_refusal(context: Context, source: &Source, refusal: Refusal, said: &mut bool) {
    if std::mem::replace(said, true) || context.registration.rank != 0 {
        return;
    }
    let count = source.coded.count;
    let bound = context.settings.guard.unwrap_or(f64::INFINITY);
    let reason = match refusal {
        Refusal::Uncodable => "values that cannot be coded (NaN, infinite, or out of range)".into(),
        Refusal::Integers => "whole numbers only, which a program means exactly".into(),
        Refusal::NoRoom => "a mask of fill values that leaves too little room".into(),
        Refusal::Sparse => "hardly any values but zeros, too few to tell what they are".into(),
        Refusal::Doubles => "doubles, sent as twice as many single-precision values".into(),
        Refusal::Guard(error) => format!(
            "a relative error of {error:.1e}, and TRANSPRESS_GUARD allows {bound:.1e} (too low a rate, or \
             values that are like noise)"
        ),
    };
    tracing::warn!(
        "communicator {}: a message of {count} values goes as it is, exactly, because it has {reason}; \
         further ones are counted in the report as escaped",
        context.registration.label()
    );
}
