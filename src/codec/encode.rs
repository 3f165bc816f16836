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
use super::share::share_out;
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

// SAFETY: nothing is done with the values but by `encode`, whose caller promises that they can be read.
unsafe impl Send for Encode<'_> {}

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

/// Codes every message: on a GPU what is to be coded there and can be, the rest on up to `threads` threads. Where
/// `measure` says so for its index, or there is a guard, the error of a message is measured.
///
/// # Safety
/// For each message, `values` must be readable and aligned as [`Encode`] says.
pub unsafe fn encode(
    messages: &mut [Encode],
    guard: Guard,
    measure: impl Fn(usize) -> bool + Copy + Sync,
    threads: usize,
) -> Vec<Result<Encoded, Refusal>> {
    let mut outcomes = vec![None; messages.len()];
    // SAFETY: the caller's promise, handed on.
    unsafe { cuda::encode(messages, guard, measure, &mut outcomes) };
    // SAFETY: the caller's promise; the copies live as long as the messages are looked at.
    let copies = unsafe { bring(messages, &mut outcomes) };
    let left = messages.iter_mut().zip(&mut outcomes).enumerate();
    let left: Vec<_> = left.filter(|(_, (_, outcome))| outcome.is_none()).collect();
    let values = |(_, (message, _)): &(usize, (&mut Encode, &mut Outcome))| message.count;
    share_out(
        left,
        values,
        threads,
        |(index, (message, outcome)), threads| {
            // SAFETY: as above.
            *outcome = Some(unsafe { encode_here(message, guard, measure(index), threads) });
        },
    );
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

/// Codes a message here.
///
/// # Safety
/// As [`encode`].
unsafe fn encode_here(
    message: &mut Encode,
    guard: Guard,
    measure: bool,
    threads: usize,
) -> Result<Encoded, Refusal> {
    // SAFETY: the caller's promise, handed on; the types are those that are named.
    unsafe {
        match message.item {
            Item::Float(Element::F32) => encode_floats::<f32>(message, guard, measure, threads),
            Item::Float(Element::F64) => encode_floats::<f64>(message, guard, measure, threads),
            Item::Word(width) => encode_words(message, width.into()),
        }
    }
}

/// # Safety
/// As [`encode`]; the message must be one of words of this width.
unsafe fn encode_words(message: &mut Encode, width: usize) -> Result<Encoded, Refusal> {
    // SAFETY: the caller promised that many readable bytes.
    let bytes = unsafe { std::slice::from_raw_parts(message.values, message.count * width) };
    let words = words::encode(bytes, width, message.payload).ok_or(Refusal::NoGain)?;
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

impl<T: Float> Prepared<'_, T> {
    /// The largest magnitude among what the codec sees.
    fn peak_of_source(&self) -> f64 {
        match &self.source {
            Cow::Borrowed(_) => self.peak,
            Cow::Owned(source) => fit::peak(source),
        }
    }
}

/// # Safety
/// As [`encode`]; `T` must be the type of the message's values.
unsafe fn encode_floats<T: Float>(
    message: &mut Encode,
    guard: Guard,
    measure: bool,
    threads: usize,
) -> Result<Encoded, Refusal> {
    // SAFETY: the caller promised `count` readable, aligned values of this type.
    let values = unsafe { std::slice::from_raw_parts(message.values.cast::<T>(), message.count) };
    let mut message = prepare(message, values, guard)?;
    code(&mut message, threads)?;
    let is_measured = guard.error.is_some() || measure;
    let error = is_measured.then(|| sample_error(&mut message));
    error.map_or(Ok(()), |error| guard.check(error))?;
    Ok(Encoded {
        words: message.words.0 + message.words.1,
        masked: message.masked,
        flat: message.flat,
        exponent: message.bound.map(|bound| bound.exponent),
        error,
        coder: Coder::Cpu,
    })
}

/// Writes mask and scales into the payload, and makes what the codec is to see.
fn prepare<'a, T: Float>(
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

/// Fills the streams.
fn code<T: Float>(message: &mut Prepared<T>, threads: usize) -> Result<(), Refusal> {
    let cast = |done: bool| done.then_some(()).ok_or(Refusal::Uncodable);
    match (message.plan.coding, message.bits) {
        (Coding::Zfp, Bits::Even) => evenly(message, threads),
        (Coding::Zfp, Bits::Fitted(hint)) => fitted(message, hint, threads),
        (Coding::Zfp, Bits::Bounded(tolerance)) => bound(message, tolerance, threads),
        (Coding::Fp16, _) => cast(cast::to_f16(&message.source, message.streams)),
        (Coding::Bf16, _) => cast(cast::to_bf16(&message.source, message.streams)),
        (Coding::Lossless, _) => exactly(message),
    }
}

/// Codes a message with as many bits for each block.
fn evenly<T: Float>(message: &mut Prepared<T>, threads: usize) -> Result<(), Refusal> {
    let boxes = &message.plan.boxes;
    // SAFETY: the source holds all values of the message.
    let jobs =
        unsafe { boxes.encode_jobs(message.source.as_ptr(), &boxes.even(), message.streams) };
    // SAFETY: source and streams are borrowed by the message; boxes have streams of their own.
    let done = unsafe { zfp::encode(&jobs, threads) };
    let is_whole = |done: &zfp::Encoded| !done.overflow && done.nonfinite_blocks == 0;
    let is_coded = !done.is_empty() && done.iter().all(is_whole);
    is_coded.then_some(()).ok_or(Refusal::Uncodable)
}

/// Codes a message with the smallest error bound for which it fits, if there is one.
fn fitted<T: Float>(
    message: &mut Prepared<T>,
    hint: Option<i16>,
    threads: usize,
) -> Result<(), Refusal> {
    let (boxes, peak) = (&message.plan.boxes, message.peak_of_source());
    let streams = &mut *message.streams;
    match fit::encode(boxes, &message.source, peak, hint, streams, threads) {
        Some(exponent) => {
            message.bound = Some(Bound::of_exponent(exponent));
            Ok(())
        }
        None => evenly(message, threads),
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
fn bound<T: Float>(
    message: &mut Prepared<T>,
    tolerance: f64,
    threads: usize,
) -> Result<(), Refusal> {
    let (boxes, source) = (&message.plan.boxes, &*message.source);
    let peak = message.peak_of_source();
    let (bound, is_certain) = Bound::of_tolerance::<T>(tolerance, boxes.dims(), peak);
    let words = fit::encode_bounded(boxes, source, bound, message.streams, threads);
    message.words.1 = words.ok_or(Refusal::NoGain)?;
    message.bound = Some(bound);
    if is_certain {
        return Ok(());
    }
    let mut back = vec![T::default(); source.len()];
    let words = &message.streams[..message.words.1];
    decode_streams(&message.plan, true, words, &mut back, threads);
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
    let through = match message.plan.coding {
        Coding::Zfp => return sample_blocks(message),
        Coding::Fp16 => cast::through_f16,
        Coding::Bf16 => cast::through_bf16,
        Coding::Lossless => return 0.0,
    };
    let sample: Vec<T> = spread(&message.source, CAST_SAMPLE).collect();
    let Some(back) = through(&sample) else {
        return f64::INFINITY;
    };
    let mut tally = Tally::default();
    tally.add(&sample, &back);
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
        let visit = |row: zfp::Row<T>| {
            as_coded.add(row.values, row.decoded);
            let Some(scales) = &message.scales else {
                return;
            };
            for (offset, value, back) in row.values() {
                let scale = scales.at((first + offset) as usize);
                as_given.add_scaled(value.into(), back.into(), scale);
            }
        };
        // SAFETY: the job's values and its stream are borrowed by the message.
        unsafe { zfp::sample_rows(&job, every, visit) };
    }
    let as_given = match Tally::tells(message.peak) {
        true => as_given.error(),
        // Of fields that were scaled the other tally tells.
        false if message.scales.is_some() => 0.0,
        false => f64::INFINITY,
    };
    as_coded.error().max(as_given)
}
