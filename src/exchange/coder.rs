//! Blocks of the program ↔ messages in their slots.

use super::side::Side;
use super::staging::Slots;
use super::{Coded, Form};
use crate::codec::{self, Decode, Encode, Plan};
use crate::layout::{Kind, Layout};
use crate::mpi::{Mpi, Result};
use crate::registry::{Registration, Terms, Working};
use crate::report::CallStats;
use crate::wire::{Fault, HEADER_BYTES, Header};

const HEADER_WORDS: usize = HEADER_BYTES / 8;
/// One message in so many has its error measured, which takes about as long as decoding it.
const SAMPLE_EVERY: u64 = 32;

/// What coding needs to know of its surroundings.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    pub mpi: &'a Mpi,
    pub registration: &'a Registration,
    pub terms: &'a Terms,
    pub threads: usize,
}

/// A message that could not be coded, kept aside until it is sent raw: with `MPI_IN_PLACE` its block is
/// about to be overwritten.
pub struct Escaped {
    pub peer: usize,
    pub bytes: Vec<u8>,
}

/// The values of one block, in place or gathered.
struct Source {
    peer: usize,
    coded: Coded,
    plan: Option<Plan>,
    pointer: *const u8,
    _gathered: Vec<u64>,
}

/// Fills the slots of `forms` from the blocks of `side`.
///
/// # Safety
/// `side` must describe a live buffer, as MPI asks of the program.
pub unsafe fn encode(
    context: Context,
    side: &Side,
    forms: &[Form],
    slots: &mut Slots,
    working_coded: &mut u64,
    stats: &mut CallStats,
) -> Result<Vec<Escaped>> {
    let Context {
        mpi,
        registration,
        terms,
        threads,
    } = context;
    let mut sources = Vec::new();
    for (peer, form) in forms.iter().enumerate() {
        match *form {
            // SAFETY: the caller's promise.
            Form::Raw(_) => unsafe {
                side.gather(mpi, registration.private, peer, slots.bytes_mut(peer))?;
            },
            // SAFETY: the caller's promise.
            Form::Coded(coded) => sources.push(unsafe { source(context, side, peer, coded)? }),
        }
    }
    choose_plans(context, &mut sources);

    // SAFETY: each source points to `count` aligned values, in the program's buffer or gathered above.
    let coded = unsafe { encode_sources(&sources, slots, threads, working_coded, stats) };

    let mut escaped = Vec::new();
    for (source, is_coded) in sources.iter().zip(coded) {
        let axes = source
            .plan
            .as_ref()
            .filter(|_| is_coded)
            .map(|plan| plan.axes.clone());
        let header = Header {
            coding: terms.coding,
            element: source.coded.element,
            escaped: !is_coded,
            count: source.coded.count,
            wire_bytes: source.coded.wire_bytes,
            axes: axes.unwrap_or_default(),
        };
        slots.bytes_mut(source.peer)[..HEADER_BYTES].copy_from_slice(&header.to_bytes());
        if !is_coded {
            let length = source.coded.count * source.coded.element.bytes();
            // SAFETY: the source points to that many bytes.
            let bytes = unsafe { std::slice::from_raw_parts(source.pointer, length) }.to_vec();
            escaped.push(Escaped {
                peer: source.peer,
                bytes,
            });
        }
    }
    Ok(escaped)
}

/// Codes the sources into the payloads of their slots; for each, whether it could be coded. Measures the
/// error of one in [`SAMPLE_EVERY`].
///
/// # Safety
/// Each source must point to its values.
unsafe fn encode_sources(
    sources: &[Source],
    slots: &mut Slots,
    threads: usize,
    coded_before: &mut u64,
    stats: &mut CallStats,
) -> Vec<bool> {
    let mut slot_words: Vec<_> = slots.all_words_mut().into_iter().map(Some).collect();
    let (mut messages, mut owners) = (Vec::new(), Vec::new());
    for (index, source) in sources.iter().enumerate() {
        if let (Some(plan), Some(words)) = (&source.plan, slot_words[source.peer].take()) {
            let payload = &mut words[HEADER_WORDS..];
            messages.push(Encode {
                plan,
                values: source.pointer,
                payload,
            });
            owners.push(index);
        }
    }
    // SAFETY: the caller's promise.
    let done = unsafe { codec::encode(&mut messages, threads) };
    let mut coded = vec![false; sources.len()];
    for ((message, index), done) in messages.iter().zip(owners).zip(done) {
        coded[index] = done;
        if done {
            if coded_before.is_multiple_of(SAMPLE_EVERY) {
                // SAFETY: the caller's promise.
                stats.error.add(unsafe { codec::sample_error(message) });
            }
            *coded_before += 1;
        }
    }
    coded
}

/// # Safety
/// As [`encode`].
unsafe fn source(context: Context, side: &Side, peer: usize, coded: Coded) -> Result<Source> {
    let mut gathered = Vec::new();
    let pointer = match side.piece(peer, coded.element.bytes()) {
        Some(piece) => piece.cast_const(),
        None => {
            let bytes = bytes_of(&mut gathered, coded);
            // SAFETY: the caller's promise.
            unsafe { side.gather(context.mpi, context.registration.private, peer, bytes)? };
            bytes.as_ptr()
        }
    };
    Ok(Source {
        peer,
        coded,
        plan: None,
        pointer,
        _gathered: gathered,
    })
}

/// Room for the values of a message, aligned for any of them.
fn bytes_of(words: &mut Vec<u64>, coded: Coded) -> &mut [u8] {
    let length = coded.count * coded.element.bytes();
    words.resize(length.div_ceil(8), 0);
    // SAFETY: the words hold at least `length` bytes, and any byte is valid.
    unsafe { std::slice::from_raw_parts_mut(words.as_mut_ptr().cast(), length) }
}

/// Picks the axes of each message: the first layout that makes up its count, else what the datatype
/// tells. Says once if the user gave layouts and none of them ever fits.
fn choose_plans(context: Context, sources: &mut [Source]) {
    let mut layouts = context.registration.layouts();
    let mut fitted = sources.is_empty();
    for source in &mut *sources {
        let fit = layouts
            .known
            .iter()
            .find_map(|layout| plan(context, source.coded, layout));
        fitted |= fit.is_some();
        source.plan = fit.or_else(|| default_plan(context, source.coded));
    }
    if layouts.known.is_empty() || fitted {
        layouts.misfit_said |= !sources.is_empty();
    } else if !layouts.misfit_said {
        layouts.misfit_said = true;
        if context.registration.rank == 0 {
            say_misfit(context.registration, &layouts.known, sources);
        }
    }
}

fn plan(context: Context, coded: Coded, layout: &Layout) -> Option<Plan> {
    let complex_layout = coded.complex.then(|| layout.with_complex_parts());
    let axes = complex_layout
        .as_ref()
        .unwrap_or(layout)
        .resolve(coded.count)?;
    Plan::new(
        context.terms.coding,
        coded.element,
        coded.count,
        axes,
        payload_words(coded),
    )
}

/// Nothing is known but the datatype: the parts of complex numbers are coded apart, all else is a line.
fn default_plan(context: Context, coded: Coded) -> Option<Plan> {
    let plan = |axes| {
        Plan::new(
            context.terms.coding,
            coded.element,
            coded.count,
            axes,
            payload_words(coded),
        )
    };
    let parts = coded
        .complex
        .then(|| u32::try_from(coded.count / 2).ok())
        .flatten();
    parts
        .and_then(|length| plan(vec![(Kind::Component, 2), (Kind::Smooth, length)]))
        .or_else(|| plan(Vec::new()))
}

fn payload_words(coded: Coded) -> usize {
    coded.wire_bytes / 8 - HEADER_WORDS
}

fn say_misfit(registration: &Registration, layouts: &[Layout], sources: &[Source]) {
    let layouts = layouts
        .iter()
        .map(Layout::to_string)
        .collect::<Vec<_>>()
        .join(";");
    let mut counts: Vec<_> = sources.iter().map(|source| source.coded.count).collect();
    counts.sort_unstable();
    counts.dedup();
    counts.truncate(4);
    tracing::warn!(
        "layout {layouts} fits no message on communicator {}: its messages have {counts:?} values, and the \
         product of the extents must be one of these; they are coded flat",
        registration.label()
    );
}

/// What came out of reading the messages of a call.
#[derive(Default)]
pub struct Received {
    /// Ranks whose message follows raw.
    pub escaped: Vec<usize>,
    pub faults: Vec<(usize, Fault)>,
}

/// Reads the slots of `forms` into the blocks of `side`, but for the messages that escaped.
///
/// # Safety
/// `side` must describe a live buffer, as MPI asks of the program.
pub unsafe fn decode(
    context: Context,
    side: &Side,
    forms: &[Form],
    slots: &Slots,
    working: &mut Working,
) -> Result<Received> {
    let Context {
        mpi,
        registration,
        terms,
        threads,
    } = context;
    let mut received = Received::default();
    let mut targets = Vec::new();
    for (peer, form) in forms.iter().enumerate() {
        let coded = match *form {
            Form::Raw(_) => {
                // SAFETY: the caller's promise.
                unsafe { side.scatter(mpi, registration.private, peer, slots.bytes(peer))? };
                continue;
            }
            Form::Coded(coded) => coded,
        };
        let (element, count) = (coded.element, coded.count);
        match Header::read(
            slots.bytes(peer),
            terms.coding,
            element,
            count,
            coded.wire_bytes,
        ) {
            Ok(header) => {
                working.received[peer].record(header.escaped);
                let words = payload_words(coded);
                if header.escaped {
                    received.escaped.push(peer);
                } else if let Some(plan) =
                    Plan::new(terms.coding, element, count, header.axes, words)
                {
                    targets.push((
                        peer,
                        plan,
                        side.piece(peer, element.bytes()),
                        Vec::new(),
                        coded,
                    ));
                } else {
                    received.faults.push((peer, Fault::Axes));
                }
            }
            Err(fault) => received.faults.push((peer, fault)),
        }
    }

    let mut messages: Vec<_> = targets
        .iter_mut()
        .map(|(peer, plan, piece, scattered, coded)| Decode {
            plan,
            values: piece.unwrap_or_else(|| bytes_of(scattered, *coded).as_mut_ptr()),
            payload: &slots.words(*peer)[HEADER_WORDS..],
        })
        .collect();
    // SAFETY: each target has room for `count` aligned values, in the program's buffer or in a vector.
    let decoded = unsafe { codec::decode(&mut messages, threads) };
    for ((peer, _, piece, scattered, coded), decoded) in targets.iter_mut().zip(decoded) {
        if !decoded {
            received.faults.push((*peer, Fault::Axes));
        } else if piece.is_none() {
            // SAFETY: the caller's promise.
            unsafe {
                side.scatter(
                    mpi,
                    registration.private,
                    *peer,
                    bytes_of(scattered, *coded),
                )?
            };
        }
    }
    Ok(received)
}
