//! Payloads → values.

use super::boxes::Boxes;
use super::float::Float;
use super::mask::Mask;
use super::plan::Plan;
use super::share::share_out;
use super::zfp::DecodeJob;
use super::{Coding, Element, Item, Memory, Place, cast, cuda, fit, lossless, scale, words, zfp};
use crate::layout::Axes;

/// One message to be decoded. `values` has room for `count` values, aligned for their type.
#[derive(Clone, Copy)]
pub struct Decode<'a> {
    pub coding: Coding,
    pub item: Item,
    pub values: *mut u8,
    pub place: Place,
    pub count: usize,
    pub axes: &'a Axes,
    /// The payload begins with a mask.
    pub masked: bool,
    /// Blocks have an error bound in common instead of a number of bits.
    pub fitted: bool,
    pub payload: &'a [u64],
    /// Where the payload is on the GPU, if it is not in this process's memory.
    pub on_device: Option<u64>,
}

// SAFETY: nothing is done with the values but by `decode`, whose caller promises that they can be written.
unsafe impl Send for Decode<'_> {}

/// Decodes every message, on up to `threads` threads. `false` where a payload cannot be what its message
/// says; the values then mean nothing.
///
/// # Safety
/// For each message, `values` must be writable and aligned as [`Decode`] says, and overlap no other.
pub unsafe fn decode(messages: &[Decode], threads: usize) -> Vec<bool> {
    let mut decoded = vec![None; messages.len()];
    // SAFETY: the caller's promise, handed on.
    unsafe { cuda::decode(messages, &mut decoded) };
    let brought = messages.iter().zip(&mut decoded);
    // SAFETY: the caller's promise.
    let mut brought: Vec<_> = brought
        .map(|(message, decoded)| unsafe { Brought::of(message, decoded) })
        .collect();
    let here: Vec<_> = messages
        .iter()
        .zip(&mut brought)
        .map(|(message, brought)| brought.stand_in(message))
        .collect();
    let left = here.into_iter().zip(&mut decoded);
    let left: Vec<_> = left.filter(|(_, decoded)| decoded.is_none()).collect();
    let values = |(message, _): &(Decode, &mut Option<bool>)| message.count;
    share_out(left, values, threads, |(message, decoded), threads| {
        // SAFETY: the caller's promise, or rooms of ours.
        *decoded = Some(unsafe { decode_here(&message, threads) });
    });
    let results = messages.iter().zip(brought).zip(decoded);
    results
        .map(|((message, brought), decoded)| {
            // SAFETY: the caller's promise.
            decoded == Some(true) && unsafe { brought.settle(message) }
        })
        .collect()
}

/// What stands in this process's memory for what is on a GPU and not decoded there.
#[derive(Default)]
struct Brought {
    payload: Vec<u64>,
    /// Room for the values.
    values: Vec<u64>,
}

impl Brought {
    /// # Safety
    /// As [`decode`].
    unsafe fn of(message: &Decode, decoded: &mut Option<bool>) -> Self {
        let mut brought = Self::default();
        if decoded.is_some() {
            return brought;
        }
        if let (Some(address), Some(device)) = (message.on_device, message.place.coder) {
            let from = std::ptr::without_provenance(address as usize);
            // SAFETY: the caller's promise.
            match unsafe { Memory::Gpu(device).read_words(from, size_of_val(message.payload)) } {
                Ok(payload) => brought.payload = payload,
                Err(error) => {
                    tracing::error!("a message could not be read from the GPU: {error}");
                    *decoded = Some(false);
                }
            }
        }
        if !message.place.memory.is_host() {
            brought.values = vec![0; (message.count * message.item.bytes()).div_ceil(8)];
        }
        brought
    }

    /// The message with what was brought.
    fn stand_in<'a>(&'a mut self, message: &Decode<'a>) -> Decode<'a> {
        let mut here = *message;
        if !self.values.is_empty() {
            here.values = self.values.as_mut_ptr().cast();
        }
        if !self.payload.is_empty() {
            here.payload = &self.payload;
        }
        here
    }

    /// Takes the values to the GPU.
    ///
    /// # Safety
    /// As [`decode`].
    unsafe fn settle(self, message: &Decode) -> bool {
        if self.values.is_empty() {
            return true;
        }
        let bytes = message.count * message.item.bytes();
        // SAFETY: the room has so many bytes, and the values too, by the caller's promise.
        let written = unsafe {
            let values = std::slice::from_raw_parts(self.values.as_ptr().cast::<u8>(), bytes);
            message.place.memory.write(message.values, values)
        };
        if let Err(error) = &written {
            tracing::error!("values could not be written to the GPU: {error}");
        }
        written.is_ok()
    }
}

/// Decodes a message here.
///
/// # Safety
/// As [`decode`].
unsafe fn decode_here(message: &Decode, threads: usize) -> bool {
    // SAFETY: the caller's promise, handed on; the types are those that are named.
    unsafe {
        match message.item {
            Item::Float(Element::F32) => decode_floats::<f32>(message, threads).is_some(),
            Item::Float(Element::F64) => decode_floats::<f64>(message, threads).is_some(),
            Item::Word(width) => decode_words(message, width.into()),
        }
    }
}

/// # Safety
/// As [`decode`]; the message must be one of words of this width.
unsafe fn decode_words(message: &Decode, width: usize) -> bool {
    // SAFETY: the caller promised room for that many bytes, which is referred to by nothing else.
    let target = unsafe { std::slice::from_raw_parts_mut(message.values, message.count * width) };
    words::decode(message.payload, width, target)
}

/// `None` where the payload cannot be what the message says.
///
/// # Safety
/// As [`decode`]; `T` must be the type of the message's values.
unsafe fn decode_floats<T: Float>(message: &Decode, threads: usize) -> Option<()> {
    // SAFETY: the caller promised `count` writable, aligned values of this type, which nothing else refers to.
    let target =
        unsafe { std::slice::from_raw_parts_mut(message.values.cast::<T>(), message.count) };
    let mut words = message.payload;
    let mut mask = None;
    if message.masked {
        let (found, length) = Mask::from_words(words, message.count)?;
        mask = Some(found);
        words = &words[length..];
    }
    let plan = plan::<T>(message, words.len())?;
    let streams = words.get(plan.scale_words()..)?;
    read(&plan, message.fitted, streams, target, threads).then_some(())?;
    if let Some(fields) = &plan.fields {
        scale::undo(target, fields, words);
    }
    if let Some(mask) = &mask {
        mask.restore(target);
    }
    Some(())
}

/// How a message was coded whose payload has so many words after the mask.
fn plan<T: Float>(message: &Decode, words: usize) -> Option<Plan> {
    // Bits that are not shared out evenly are as many as the sender says. Without axes, the room decides how a
    // flat message is folded.
    let is_free = message.fitted && !message.axes.is_empty();
    let room = if is_free || message.coding == Coding::Lossless {
        Boxes::UNLIMITED
    } else {
        words
    };
    let Decode {
        coding,
        count,
        axes,
        ..
    } = *message;
    Plan::new(coding, T::ELEMENT, count, axes, room)
}

/// Streams → values, scales and mask aside.
fn read<T: Float>(
    plan: &Plan,
    fitted: bool,
    words: &[u64],
    target: &mut [T],
    threads: usize,
) -> bool {
    match plan.coding {
        Coding::Zfp => decode_streams(plan, fitted, words, target, threads),
        Coding::Fp16 => cast::from_f16(words, target),
        Coding::Bf16 => cast::from_bf16(words, target),
        Coding::Lossless => lossless::decode(&plan.boxes, words, target),
    }
}

/// The jobs that decode one message, scales and mask aside; none where its streams cannot be.
fn zfp_jobs<T: Float>(
    plan: &Plan,
    fitted: bool,
    words: &[u64],
    target: &mut [T],
) -> Vec<DecodeJob<T>> {
    let boxes = &plan.boxes;
    let streams = if fitted {
        fit::read::<T>(boxes, words)
    } else {
        Some((boxes.even(), 0))
    };
    let Some((streams, head)) = streams else {
        return Vec::new();
    };
    // SAFETY: the target has room for all values of the message.
    unsafe { boxes.decode_jobs(target.as_mut_ptr(), &streams, &words[head..]) }
}

/// The values of one ZFP message as the codec gives them, scales and mask aside.
pub fn decode_streams<T: Float>(
    plan: &Plan,
    fitted: bool,
    words: &[u64],
    target: &mut [T],
    threads: usize,
) -> bool {
    let jobs = zfp_jobs(plan, fitted, words, target);
    // SAFETY: the boxes of a message are disjoint parts of the target.
    let done = unsafe { zfp::decode(&jobs, threads) };
    !done.is_empty() && done.into_iter().all(|done| done)
}
