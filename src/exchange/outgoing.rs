//! Values → compressed messages in their slots, for either engine.

use super::context::{Context, HEADER_WORDS};
use super::message::Message;
use crate::codec::{self, Bits, Coder, Coding, Encode, Encoded, Guard, Place, Refusal};
use crate::layout::{Axes, Inference, Pattern};
use crate::report::CallStats;
use crate::wire::{HEADER_BYTES, Header};
use std::time::Instant;

/// Without a guard, one message in so many has its error measured for the report.
const MEASURE_EVERY: u64 = 32;

/// What outlives a call.
#[derive(Default)]
pub struct Outgoing {
    pub inference: Inference,
    /// Messages so far, to pick those whose error is measured.
    messages: u64,
    /// The user was told that messages go raw, and why.
    refusal_said: bool,
}

/// A message, or a segment of one, and the slot that it goes to.
pub struct Part<'a> {
    pub message: &'a Message,
    /// Which one of the message's segments.
    pub segment: usize,
    pub count: usize,
    pub axes: &'a Axes,
    pub values: *const u8,
    pub place: Place,
    /// Bytes on the wire where it cannot be coded, its header among them.
    pub bytes_if_refused: usize,
    /// Header and payload.
    pub slot: &'a mut [u64],
    /// Address of the slot on the GPU that MPI sends it from, where it does.
    pub on_device: Option<u64>,
}

/// A part in its slot.
#[derive(Clone, Copy)]
pub struct Sent {
    pub bytes: usize,
    /// Of these, from the first on, those that are in this process's memory: all, or those that a GPU has not put
    /// where they are sent from.
    pub here: usize,
}

/// Bytes of a slot that are in this process's memory.
pub fn here(outcome: &Result<Sent, Refusal>) -> usize {
    outcome.as_ref().map_or(HEADER_BYTES, |sent| sent.here)
}

impl Outgoing {
    /// Codes the parts into their slots. Returns what each came to, or why it has to go as it is; its slot
    /// then holds nothing but a header that says so.
    ///
    /// # Safety
    /// Each part must point to its values.
    pub unsafe fn code(
        &mut self,
        context: Context,
        pattern: Option<Pattern>,
        parts: &mut [Part],
        stats: &mut CallStats,
    ) -> Vec<Result<Sent, Refusal>> {
        let started = Instant::now();
        // SAFETY: the caller's promise.
        let outcomes = unsafe { self.encode(context, pattern, parts) };
        self.inference.record_coding(started.elapsed());
        self.messages += parts.len() as u64;
        let mut sent = Vec::with_capacity(parts.len());
        for (part, outcome) in parts.iter_mut().zip(outcomes) {
            self.record(pattern, part, outcome, stats);
            // Without loss it is no news that some values do not get shorter.
            let is_news = context.terms.coding != Coding::Lossless;
            if let Err(refusal) = outcome
                && is_news
            {
                self.say_refusal(context, part, refusal);
            }
            let header = header(context, part, outcome);
            part.slot[..HEADER_WORDS].copy_from_slice(&header.to_words());
            sent.push(outcome.map(|encoded| Sent {
                bytes: header.wire_bytes,
                here: match encoded.coder {
                    Coder::Gpu { stays: true } => HEADER_BYTES,
                    _ => header.wire_bytes,
                },
            }));
        }
        sent
    }

    /// # Safety
    /// As [`Self::code`].
    unsafe fn encode(
        &self,
        context: Context,
        pattern: Option<Pattern>,
        parts: &mut [Part],
    ) -> Vec<Result<Encoded, Refusal>> {
        let bits = |part: &Part| match (context.terms.tolerance, pattern) {
            (Some(tolerance), _) => Bits::Bounded(tolerance),
            (None, Some(pattern)) => {
                let piece = (part.message.peer, part.segment);
                self.inference.bits(pattern, piece)
            }
            (None, None) => Bits::Even,
        };
        let mut messages: Vec<_> = parts
            .iter_mut()
            .map(|part| Encode {
                coding: context.terms.coding,
                item: part.message.coded.item,
                values: part.values,
                place: part.place,
                count: part.count,
                axes: part.axes,
                bits: bits(part),
                payload: &mut part.slot[HEADER_WORDS..],
                on_device: part.on_device.map(|slot| slot + HEADER_BYTES as u64),
            })
            .collect();
        let mut guard = Guard::of(context.settings.guard);
        if context.terms.is_variable() {
            // Whoever bounds the absolute error may mean small values to go.
            guard.error = None;
        }
        let measure = |index| (self.messages + index as u64).is_multiple_of(MEASURE_EVERY);
        // SAFETY: the caller's promise.
        unsafe { codec::encode(&mut messages, guard, measure, context.settings.threads) }
    }

    fn record(
        &mut self,
        pattern: Option<Pattern>,
        part: &Part,
        outcome: Result<Encoded, Refusal>,
        stats: &mut CallStats,
    ) {
        let (error, exponent) = match outcome {
            Ok(encoded) => (encoded.error, encoded.exponent),
            Err(Refusal::Guard(error)) => (Some(error), None),
            Err(_) => (None, None),
        };
        if let (Ok(_), Some(error)) = (outcome, error) {
            stats.error.add(error);
        }
        let on_gpu = outcome.is_ok_and(|encoded| encoded.coder != Coder::Cpu);
        stats.on_gpu += u64::from(on_gpu);
        if let Some(pattern) = pattern {
            let (peer, refused) = (part.message.peer, outcome.is_err());
            self.inference
                .record(pattern, (peer, part.segment), error, exponent, refused);
        }
    }

    /// Says once per communicator that messages go raw, and why.
    fn say_refusal(&mut self, context: Context, part: &Part, refusal: Refusal) {
        if std::mem::replace(&mut self.refusal_said, true) || context.registration.rank != 0 {
            return;
        }
        let count = part.count;
        let bound = context.settings.guard.unwrap_or(f64::INFINITY);
        let reason = match refusal {
            Refusal::Uncodable => {
                "values that cannot be coded (NaN, infinite, or out of range)".into()
            }
            Refusal::Integers => "whole numbers only, which a program means exactly".into(),
            Refusal::NoRoom => "a mask of fill values that leaves too little room".into(),
            Refusal::Sparse => "hardly any values but zeros, too few to tell what they are".into(),
            Refusal::Doubles => "doubles, sent as twice as many single-precision values".into(),
            Refusal::NoGain => "values that do not get shorter by coding".into(),
            Refusal::OutOfReach => "values that could not be read from the GPU".into(),
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
}

fn header(context: Context, part: &Part, outcome: Result<Encoded, Refusal>) -> Header {
    let wire_bytes = match outcome {
        Ok(encoded) => HEADER_BYTES + 8 * encoded.words,
        Err(_) => part.bytes_if_refused,
    };
    let has_axes = outcome.is_ok_and(|encoded| !encoded.flat);
    Header {
        coding: context.terms.coding,
        item: part.message.coded.item,
        escaped: outcome.is_err(),
        masked: outcome.is_ok_and(|encoded| encoded.masked),
        fitted: outcome.is_ok_and(|encoded| encoded.exponent.is_some()),
        count: part.count,
        wire_bytes,
        axes: if has_axes {
            part.axes.clone()
        } else {
            Axes::new()
        },
    }
}
