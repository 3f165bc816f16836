//! Values → payloads.

use super::bound::Bound;
use super::boxes::{Boxes, Streams};
use super::decode::decode_streams;
use super::float::Float;
use super::lies::{are_doubles, are_integers, are_sparse};
use super::mask::Mask;
use super::plan::Plan;
use super::quality::Tally;
use super::scale::Scales;
use super::survey::{self, Survey, spread};
use super::{Coding, Element, Item, Memory, Place, cast, cuda, fit, lossless, scale, words, zfp};
use crate::layout::Axes;
use std::borrow::Cow;

/// One message to be coded. `values` holds `count` values, aligned for their type.
pub struct Encode<'a> {
    pub coding: Coding,
    pub item: Item,
    pub values: *const u8,
    pub place: Place,
    pub count: usize,
    /// Empty for a flat message.
    pub axes: &'a Axes,
    pub bits: Bits,
    pub payload: &'a mut [u64],
    /// Where a GPU that codes the message is to put the payload, instead.
    pub on_device: Option<u64>,
}

/// How the bits of a ZFP message are shared out over its blocks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bits {
    /// As many for each.
    Even,
    /// As many as each needs for one error bound, the smallest for which the message fits. With the
    /// exponent that an earlier message like this one came to, if there was one.
    Fitted(Option<i16>),
    /// As many as each needs to keep every error at or below this; however long the message gets. Axes must be
    /// given.
    Bounded(f64),
}

/// A payload that is ready to be sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Encoded {
    /// Words of the payload that are used: all of them, unless the data decide it.
    pub words: usize,
    /// It begins with a mask.
    pub masked: bool,
    /// The axes left blocks too few bits, and were not used.
    pub flat: bool,
    /// The exponent of the error bound, where bits were fitted.
    pub exponent: Option<i16>,
    /// Relative L2 error, measured on a sample where a guard or the caller asked for it.
    pub error: Option<f64>,
    /// What coded it.
    pub coder: Coder,
}

/// Why a message has to go as it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Refusal {
    /// NaNs, infinities or numbers close to them, of more kinds than a mask holds, or beyond float16.
    Uncodable,
    /// Whole numbers, which count, number or mark something.
    Integers,
    /// Doubles in pairs of single-precision values.
    Doubles,
    /// Hardly any values but zeros, too few to tell what they are.
    Sparse,
    /// Its relative error is above the guard.
    Guard(f64),
    /// The axes do not make up the count, or the mask leaves too little room.
    NoRoom,
    /// It would not get shorter, or only by more error than the bound allows.
    NoGain,
    /// Its values are on a GPU and could not be read.
    OutOfReach,
}

/// What coded a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coder {
    Cpu,
    Gpu {
        /// The payload is where [`Encode::on_device`] says.
        stays: bool,
    },
}

/// What became of a message; `None` as long as nothing did.
pub type Outcome = Option<Result<Encoded, Refusal>>;

/// What is checked before a message is sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Guard {
    /// Messages that are not what their type says, or that a program means exactly, are refused.
    pub against_lies: bool,
    /// Largest relative L2 error; with `None` every message that can be coded is sent.
    pub error: Option<f64>,
}

impl Guard {
    pub const OFF: Self = Self {
        against_lies: false,
        error: None,
    };

    /// As a user sets it: with a bound, or not at all.
    pub fn of(error: Option<f64>) -> Self {
        let against_lies = error.is_some();
        Self {
            against_lies,
            error,
        }
    }

    pub fn check(self, error: f64) -> Result<(), Refusal> {
        match self.error {
            // An error that is not a number is refused as well.
            Some(bound) if error <= bound => Ok(()),
            Some(_) => Err(Refusal::Guard(error)),
            None => Ok(()),
        }
    }
}

/// Codes every message: on a GPU what is to be coded there and can be, the rest on up to `threads` threads. Where `measure` says so for its index, or there is a
/// guard, the error of a message is measured.
///
/// # Safety
/// For each message, `values` must be readable and aligned as [`Encode`] says.
pub unsafe fn encode(
    messages: &mut [Encode],
    guard: Guard,
    measure: impl Fn(usize) -> bool + Copy,
    threads: usize,
) -> Vec<Result<Encoded, Refusal>> {
    let mut outcomes = vec![None; messages.len()];
    // SAFETY: the caller's promise, handed on.
    unsafe { cuda::encode(messages, guard, measure, &mut outcomes) };
    // SAFETY: the caller's promise; the copies live as long as the messages are looked at.
    let copies = unsafe { bring(messages, &mut outcomes) };
    // SAFETY: as above; each call takes the messages of its element only.
    unsafe {
        encode_elements::<f32>(
            messages,
            Element::F32,
            guard,
            measure,
            threads,
            &mut outcomes,
        );
        encode_elements::<f64>(
            messages,
            Element::F64,
            guard,
            measure,
            threads,
            &mut outcomes,
        );
    }
    for (message, outcome) in messages.iter_mut().zip(&mut outcomes) {
        if let (Item::Word(width), None) = (message.item, &outcome) {
            // SAFETY: the caller promised that many readable bytes.
            let bytes = unsafe {
                std::slice::from_raw_parts(message.values, message.count * usize::from(width))
            };
            *outcome = Some(encode_words(bytes, width, message.payload));
        }
    }
    drop(copies);
    outcomes
        .into_iter()
        .map(|outcome| outcome.unwrap_or(Err(Refusal::NoRoom)))
        .collect()
}

/// Copies the values that are on a GPU, and were not coded there, to this process's memory.
///
/// # Safety
/// As [`encode`]. The messages point into what is returned.
unsafe fn bring(messages: &mut [Encode], outcomes: &mut [Outcome]) -> Vec<Vec<u64>> {
    let mut copies = Vec::new();
    for (message, outcome) in messages.iter_mut().zip(outcomes) {
        let memory = message.place.memory;
        if memory.is_host() || outcome.is_some() {
            continue;
        }
        let bytes = message.count * message.item.bytes();
        // SAFETY: the caller's promise.
        match unsafe { memory.read_words(message.values, bytes) } {
            Ok(copy) => {
                message.values = copy.as_ptr().cast();
                message.place.memory = Memory::Host;
                copies.push(copy);
            }
            Err(error) => {
                tracing::error!("values could not be read from the GPU: {error}");
                *outcome = Some(Err(Refusal::OutOfReach));
            }
        }
    }
    copies
}

fn encode_words(bytes: &[u8], width: u8, payload: &mut [u64]) -> Result<Encoded, Refusal> {
    let words = words::encode(bytes, width.into(), payload).ok_or(Refusal::NoGain)?;
    Ok(Encoded {
        words,
        masked: false,
        flat: true,
        exponent: None,
        error: None,
        coder: Coder::Cpu,
    })
}

/// A message on its way through the codec.
struct Prepared<'a, T: Float> {
    index: usize,
    plan: Plan,
    masked: bool,
    flat: bool,
    /// The largest magnitude among the program's values.
    peak: f64,
    /// What the codec sees: the program's values, or a copy with holes filled and fields scaled.
    source: Cow<'a, [T]>,
    scales: Option<Scales>,
    /// The payload after mask and scales.
    streams: &'a mut [u64],
    /// Words before the streams, and words of the streams that are used.
    words: (usize, usize),
    bits: Bits,
    /// The error bound, once bits have been fitted.
    bound: Option<Bound>,
}

/// # Safety
/// As [`encode`]; `T` must be the type that `element` names.
unsafe fn encode_elements<T: Float>(
    messages: &mut [Encode],
    element: Element,
    guard: Guard,
    measure: impl Fn(usize) -> bool,
    threads: usize,
    outcomes: &mut [Outcome],
) {
    let mut prepared: Vec<Prepared<T>> = Vec::new();
    for (index, message) in messages.iter_mut().enumerate() {
        if message.item != Item::Float(element) || outcomes[index].is_some() {
            continue;
        }
        // SAFETY: the caller promised `count` readable, aligned values of this type.
        let values =
            unsafe { std::slice::from_raw_parts(message.values.cast::<T>(), message.count) };
        match prepare(index, message, values, guard) {
            Ok(message) => prepared.push(message),
            Err(refusal) => outcomes[index] = Some(Err(refusal)),
        }
    }
    let coded = code(&mut prepared, threads);
    for (message, coded) in prepared.iter_mut().zip(coded) {
        let outcome = coded.and_then(|()| {
            let measured = guard.error.is_some() || measure(message.index);
            let error = measured.then(|| sample_error(message));
            error.map_or(Ok(()), |error| guard.check(error))?;
            Ok(Encoded {
                words: message.words.0 + message.words.1,
                masked: message.masked,
                flat: message.flat,
                exponent: message.bound.map(|bound| bound.exponent),
                error,
                coder: Coder::Cpu,
            })
        });
        outcomes[message.index] = Some(outcome);
    }
}

/// Writes mask and scales into the payload, and makes what the codec is to see.
fn prepare<'a, T: Float>(
    index: usize,
    message: &'a mut Encode,
    values: &'a [T],
    guard: Guard,
) -> Result<Prepared<'a, T>, Refusal> {
    if guard.against_lies && message.coding != Coding::Lossless {
        if are_integers(values) {
            return Err(Refusal::Integers);
        }
        if are_sparse(values) {
            return Err(Refusal::Sparse);
        }
        if are_doubles(values) {
            return Err(Refusal::Doubles);
        }
    }
    let survey = Survey::of(values).ok_or(Refusal::NoRoom)?;
    let mask = match message.coding {
        Coding::Zfp => Mask::find(values, &survey).map_err(|_| Refusal::Uncodable)?,
        Coding::Lossless => None,
        // These code each value by itself, so that finite fill values harm no others.
        Coding::Fp16 | Coding::Bf16 if survey.codable => None,
        Coding::Fp16 | Coding::Bf16 => return Err(Refusal::Uncodable),
    };
    let payload_words = message.payload.len();
    let mut words = &mut *message.payload;
    if let Some(mask) = &mask {
        let section = mask.to_words(values.len());
        // More than half of the budget for the mask would leave the values too little.
        if section.len() > words.len() / 2 {
            return Err(Refusal::NoRoom);
        }
        let (head, rest) = words.split_at_mut(section.len());
        head.copy_from_slice(&section);
        words = rest;
    }
    let room = match message.coding {
        Coding::Lossless => Boxes::UNLIMITED,
        _ => words.len(),
    };
    let plan_along = |axes: &Axes| Plan::new(message.coding, T::ELEMENT, values.len(), axes, room);
    let along_axes = plan_along(message.axes);
    let flat = along_axes.is_none();
    if flat && matches!(message.bits, Bits::Bounded(_)) {
        return Err(Refusal::NoRoom);
    }
    let plan = along_axes
        .or_else(|| plan_along(&Axes::new()))
        .ok_or(Refusal::NoRoom)?;
    let mut source = Cow::Borrowed(values);
    if let Some(mask) = &mask {
        mask.fill(source.to_mut(), &plan.smooth);
    }
    let (scale_words, streams) = words.split_at_mut(plan.scale_words());
    let mut scales = None;
    if let Some(fields) = &plan.fields {
        source = Cow::Owned(scale::apply(&source, fields, scale_words));
        scales = Some(Scales::read(fields, scale_words));
    }
    Ok(Prepared {
        index,
        plan,
        peak: survey.peak(),
        masked: mask.is_some(),
        flat,
        source,
        scales,
        words: (payload_words - streams.len(), streams.len()),
        streams,
        bits: message.bits,
        bound: None,
    })
}

/// Fills the streams; for each message, why it could not be coded.
fn code<T: Float>(prepared: &mut [Prepared<T>], threads: usize) -> Vec<Result<(), Refusal>> {
    let mut coded = vec![Ok(()); prepared.len()];
    let (mut jobs, mut owners) = (Vec::new(), Vec::new());
    for (owner, message) in prepared.iter_mut().enumerate() {
        let cast = |done: bool| done.then_some(()).ok_or(Refusal::Uncodable);
        coded[owner] = match message.plan.coding {
            Coding::Zfp => match fit(message) {
                Some(fitted) => fitted,
                None => {
                    let (source, boxes) = (message.source.as_ptr(), &message.plan.boxes);
                    let streams = &mut *message.streams;
                    // SAFETY: the source holds all values of the message.
                    let boxes = unsafe { boxes.encode_jobs(source, &boxes.even(), streams) };
                    owners.extend(std::iter::repeat_n(owner, boxes.len()));
                    let is_there = !boxes.is_empty();
                    jobs.extend(boxes);
                    cast(is_there)
                }
            },
            Coding::Fp16 => cast(cast::to_f16(&message.source, message.streams)),
            Coding::Bf16 => cast(cast::to_bf16(&message.source, message.streams)),
            Coding::Lossless => exactly(message),
        };
    }
    // SAFETY: sources and streams are borrowed by `prepared`; boxes of a message have streams of their own.
    let done = unsafe { zfp::encode(&jobs, threads) };
    for (owner, done) in owners.into_iter().zip(done) {
        if done.overflow || done.nonfinite_blocks > 0 {
            coded[owner] = Err(Refusal::Uncodable);
        }
    }
    coded
}

/// Codes a message by an error bound, where it has one or one is found; `None` where its bits are to be shared
/// out evenly.
fn fit<T: Float>(message: &mut Prepared<T>) -> Option<Result<(), Refusal>> {
    match message.bits {
        Bits::Even => None,
        Bits::Bounded(tolerance) => Some(bound(message, tolerance)),
        Bits::Fitted(hint) => {
            let boxes = &message.plan.boxes;
            let exponent = fit::encode(boxes, &message.source, hint, message.streams)?;
            message.bound = Some(Bound::of_exponent(exponent));
            Some(Ok(()))
        }
    }
}

/// Codes a message without loss.
fn exactly<T: Float>(message: &mut Prepared<T>) -> Result<(), Refusal> {
    let boxes = &message.plan.boxes;
    let words = lossless::encode(boxes, &message.source, message.streams);
    message.words.1 = words.ok_or(Refusal::NoGain)?;
    Ok(())
}

/// Codes a message with errors of at most `tolerance`.
fn bound<T: Float>(message: &mut Prepared<T>, tolerance: f64) -> Result<(), Refusal> {
    let (boxes, source) = (&message.plan.boxes, &*message.source);
    // Fill values are no longer there.
    let peak = if message.masked {
        fit::peak(source)
    } else {
        message.peak
    };
    let (bound, is_certain) = Bound::of_tolerance::<T>(tolerance, boxes.dims(), peak);
    let words = fit::encode_bounded(boxes, source, bound, message.streams);
    message.words.1 = words.ok_or(Refusal::NoGain)?;
    message.bound = Some(bound);
    if is_certain {
        return Ok(());
    }
    let mut back = vec![T::default(); source.len()];
    let words = &message.streams[..message.words.1];
    decode_streams(&message.plan, true, words, &mut back);
    let keeps = |(&value, &back): (&T, &T)| (value.into() - back.into()).abs() <= tolerance;
    if source.iter().zip(&back).all(keeps) {
        Ok(())
    } else {
        Err(Refusal::NoGain)
    }
}

/// Values of a cast message, and blocks of a ZFP message, whose error is measured.
const CAST_SAMPLE: usize = 4096;
const BLOCK_SAMPLE: usize = 128;

/// The relative error of a message that was just coded. With a field axis, the larger one of the values as
/// they are and of the scaled ones, among which every field counts alike.
fn sample_error<T: Float>(message: &mut Prepared<T>) -> f64 {
    let mut tally = Tally::default();
    let through = match message.plan.coding {
        Coding::Zfp => return sample_blocks(message),
        Coding::Fp16 => cast::through_f16,
        Coding::Bf16 => cast::through_bf16,
        Coding::Lossless => return 0.0,
    };
    spread(&message.source, CAST_SAMPLE).for_each(|value| tally.add(value, through(value)));
    tally.error_of_message(message.source.len(), message.peak)
}

/// One in so many blocks has its error measured.
pub fn sample_step(boxes: &Boxes) -> usize {
    survey::step(boxes.blocks(), BLOCK_SAMPLE)
}

fn sample_blocks<T: Float>(message: &mut Prepared<T>) -> f64 {
    let (mut as_coded, mut as_given) = (Tally::default(), Tally::default());
    let boxes = &message.plan.boxes;
    let every = sample_step(boxes);
    let source = message.source.as_ptr();
    let fitted = message.bound.and_then(|bound| {
        let (streams, head) = fit::read::<T>(boxes, message.streams)?;
        let mode = bound.mode();
        Some((Streams { mode, ..streams }, head))
    });
    let (streams, head) = fitted.unwrap_or_else(|| (boxes.even(), 0));
    // SAFETY: the source holds all values of the message.
    let jobs = unsafe { boxes.encode_jobs(source, &streams, &mut message.streams[head..]) };
    for job in jobs {
        // SAFETY: the box begins within the source.
        let first = unsafe { job.source.offset_from(source) };
        let visit = |offset: isize, value: f64, back: f64| {
            as_coded.add_scaled(value, back, 1.0);
            if let Some(scales) = &message.scales {
                as_given.add_scaled(value, back, scales.at((first + offset) as usize));
            }
        };
        // SAFETY: the job's values and its stream are borrowed by the message.
        unsafe { zfp::sample_values(&job, every, visit) };
    }
    let as_given = match Tally::tells(message.peak) {
        true => as_given.error(),
        // Of fields that were scaled the other tally tells.
        false if message.scales.is_some() => 0.0,
        false => f64::INFINITY,
    };
    as_coded.error().max(as_given)
}
