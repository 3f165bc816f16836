//! Payloads → values.

use super::boxes::Boxes;
use super::float::Float;
use super::mask::Mask;
use super::plan::Plan;
use super::zfp::DecodeJob;
use super::{Coding, Element, Item, cast, fit, lossless, scale, words, zfp};
use crate::layout::Axes;

/// One message to be decoded. `values` has room for `count` values, aligned for their type.
pub struct Decode<'a> {
    pub coding: Coding,
    pub item: Item,
    pub values: *mut u8,
    pub count: usize,
    pub axes: &'a Axes,
    /// The payload begins with a mask.
    pub masked: bool,
    /// Blocks have an error bound in common instead of a number of bits.
    pub fitted: bool,
    pub payload: &'a [u64],
}

/// Decodes every message, on up to `threads` threads. `false` where a payload cannot be what its message
/// says; the values then mean nothing.
///
/// # Safety
/// For each message, `values` must be writable and aligned as [`Decode`] says, and overlap no other.
pub unsafe fn decode(messages: &[Decode], threads: usize) -> Vec<bool> {
    let mut decoded = vec![false; messages.len()];
    // SAFETY: the caller's promise, handed on; each call takes the messages of its element only.
    unsafe {
        decode_elements::<f32>(messages, Element::F32, threads, &mut decoded);
        decode_elements::<f64>(messages, Element::F64, threads, &mut decoded);
    }
    for (message, decoded) in messages.iter().zip(&mut decoded) {
        if let Item::Word(width) = message.item {
            let width = usize::from(width);
            // SAFETY: the caller promised room for that many bytes.
            let target =
                unsafe { std::slice::from_raw_parts_mut(message.values, message.count * width) };
            *decoded = words::decode(message.payload, width, target);
        }
    }
    decoded
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
    decoded: &mut [bool],
) {
    let mut opened: Vec<Opened<T>> = Vec::new();
    for (index, message) in messages.iter().enumerate() {
        if message.item == Item::Float(element) {
            // SAFETY: the caller promised `count` writable, aligned values of this type.
            let target = unsafe {
                std::slice::from_raw_parts_mut(message.values.cast::<T>(), message.count)
            };
            opened.extend(open(index, message, target));
        }
    }
    for message in &opened {
        decoded[message.index] = true;
    }
    read(&mut opened, threads, decoded);
    for message in &mut opened {
        if let Some(fields) = message
            .plan
            .fields
            .as_ref()
            .filter(|_| decoded[message.index])
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

fn read<T: Float>(opened: &mut [Opened<T>], threads: usize, decoded: &mut [bool]) {
    let (mut jobs, mut owners) = (Vec::new(), Vec::new());
    for message in opened.iter_mut() {
        let Some(words) = message.words.get(message.plan.scale_words()..) else {
            decoded[message.index] = false;
            continue;
        };
        match message.plan.coding {
            Coding::Zfp => {
                let boxes = zfp_jobs(&message.plan, message.fitted, words, message.target);
                decoded[message.index] = !boxes.is_empty();
                owners.extend(std::iter::repeat_n(message.index, boxes.len()));
                jobs.extend(boxes);
            }
            Coding::Fp16 => decoded[message.index] = cast::from_f16(words, message.target),
            Coding::Bf16 => decoded[message.index] = cast::from_bf16(words, message.target),
            Coding::Lossless => {
                decoded[message.index] =
                    lossless::decode(&message.plan.boxes, words, message.target);
            }
        }
    }
    // SAFETY: targets are disjoint boxes of slices that `opened` borrows, streams are parts of payloads.
    let done = unsafe { zfp::decode(&jobs, threads) };
    for (owner, done) in owners.into_iter().zip(done) {
        decoded[owner] &= done;
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
