//! Payloads → values.

use super::boxes::Boxes;
use super::float::Float;
use super::mask::Mask;
use super::plan::Plan;
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
    // SAFETY: the caller's promise, or rooms of ours; each call takes the messages of its element only.
    unsafe {
        decode_elements::<f32>(&here, Element::F32, threads, &mut decoded);
        decode_elements::<f64>(&here, Element::F64, threads, &mut decoded);
    }
    for (message, decoded) in here.iter().zip(&mut decoded) {
        if let (Item::Word(width), None) = (message.item, &decoded) {
            let width = usize::from(width);
            // SAFETY: the caller promised room for that many bytes, or it is ours.
            let target =
                unsafe { std::slice::from_raw_parts_mut(message.values, message.count * width) };
            *decoded = Some(words::decode(message.payload, width, target));
        }
    }
    drop(here);
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

/// A message on its way through the codec.
struct Opened<'a, T> {
    index: usize,
    plan: Plan,
    mask: Option<Mask>,
    target: &'a mut [T],
    /// The payload after the mask: scales, then streams.
    words: &'a [u64],
    fitted: bool,
}

/// # Safety
/// As [`decode`]; `T` must be the type that `element` names.
unsafe fn decode_elements<T: Float>(
    messages: &[Decode],
    element: Element,
    threads: usize,
    decoded: &mut [Option<bool>],
) {
    let mut opened: Vec<Opened<T>> = Vec::new();
    for (index, message) in messages.iter().enumerate() {
        if message.item == Item::Float(element) && decoded[index].is_none() {
            // SAFETY: the caller promised `count` writable, aligned values of this type.
            let target = unsafe {
                std::slice::from_raw_parts_mut(message.values.cast::<T>(), message.count)
            };
            opened.extend(open(index, message, target));
        }
    }
    for message in &opened {
        decoded[message.index] = Some(true);
    }
    read(&mut opened, threads, decoded);
    for message in &mut opened {
        if let Some(fields) = message
            .plan
            .fields
            .as_ref()
            .filter(|_| decoded[message.index] == Some(true))
        {
            scale::undo(message.target, fields, message.words);
        }
        if let Some(mask) = &message.mask {
            mask.restore(message.target);
        }
    }
}

/// `None` where the payload cannot be what the message says.
fn open<'a, T: Float>(
    index: usize,
    message: &Decode<'a>,
    target: &'a mut [T],
) -> Option<Opened<'a, T>> {
    let mut words = message.payload;
    let mut mask = None;
    if message.masked {
        let (found, length) = Mask::from_words(words, message.count)?;
        mask = Some(found);
        words = &words[length..];
    }
    // Bits that are not shared out evenly are as many as the sender says. Without axes, the room decides how a
    // flat message is folded.
    let is_free = message.fitted && !message.axes.is_empty();
    let room = if is_free || message.coding == Coding::Lossless {
        Boxes::UNLIMITED
    } else {
        words.len()
    };
    let Decode {
        coding,
        count,
        axes,
        ..
    } = *message;
    let plan = Plan::new(coding, T::ELEMENT, count, axes, room)?;
    Some(Opened {
        index,
        plan,
        mask,
        target,
        words,
        fitted: message.fitted,
    })
}

fn read<T: Float>(opened: &mut [Opened<T>], threads: usize, decoded: &mut [Option<bool>]) {
    let (mut jobs, mut owners) = (Vec::new(), Vec::new());
    for message in opened.iter_mut() {
        let Some(words) = message.words.get(message.plan.scale_words()..) else {
            decoded[message.index] = Some(false);
            continue;
        };
        match message.plan.coding {
            Coding::Zfp => {
                let boxes = zfp_jobs(&message.plan, message.fitted, words, message.target);
                decoded[message.index] = Some(!boxes.is_empty());
                owners.extend(std::iter::repeat_n(message.index, boxes.len()));
                jobs.extend(boxes);
            }
            Coding::Fp16 => decoded[message.index] = Some(cast::from_f16(words, message.target)),
            Coding::Bf16 => decoded[message.index] = Some(cast::from_bf16(words, message.target)),
            Coding::Lossless => {
                let done = lossless::decode(&message.plan.boxes, words, message.target);
                decoded[message.index] = Some(done);
            }
        }
    }
    // SAFETY: targets are disjoint boxes of slices that `opened` borrows, streams are parts of payloads.
    let done = unsafe { zfp::decode(&jobs, threads) };
    for (owner, done) in owners.into_iter().zip(done) {
        decoded[owner] = decoded[owner].map(|before| before && done);
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

/// The values of one message as the codec gives them, scales and mask aside.
pub fn decode_streams<T: Float>(plan: &Plan, fitted: bool, words: &[u64], target: &mut [T]) {
    let jobs = zfp_jobs(plan, fitted, words, target);
    // SAFETY: the boxes of a message are disjoint parts of the target.
    unsafe { zfp::decode(&jobs, 1) };
}
