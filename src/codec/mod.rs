//! Floats ↔ bytes. Nothing below this folder knows of MPI.
//!
//! A collective hands over all its messages at once: one pass of the thread pool, later one launch on a
//! GPU, codes them all.

mod boxes;
mod cast;
mod element;
mod error;
mod scale;
pub mod zfp;

pub use element::Element;
pub use error::ErrorSample;

use crate::layout::Axes;
use crate::wire::Coding;
use boxes::Boxes;

/// How one message is coded: everything both ends must do alike.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    pub coding: Coding,
    pub element: Element,
    pub count: usize,
    /// Empty for a flat message.
    pub axes: Axes,
    boxes: Boxes,
}

impl Plan {
    /// The plan for `count` values along `axes` (none: flat) in `words` 64-bit words of payload. `None`
    /// where the axes do not make up the count, or leave a ZFP block too few bits to mean anything.
    pub fn new(
        coding: Coding,
        element: Element,
        count: usize,
        axes: Axes,
        words: usize,
    ) -> Option<Self> {
        let boxes = match coding {
            Coding::Zfp => Boxes::new(element, count, &axes, words)?,
            Coding::Fp16 | Coding::Bf16 => Boxes::default(),
        };
        Some(Self {
            coding,
            element,
            count,
            axes,
            boxes,
        })
    }
}

/// One message to be coded. `values` holds the `plan.count` values, aligned for their type.
pub struct Encode<'a> {
    pub plan: &'a Plan,
    pub values: *const u8,
    pub payload: &'a mut [u64],
}

/// One message to be decoded. `values` has room for `plan.count` values, aligned for their type.
pub struct Decode<'a> {
    pub plan: &'a Plan,
    pub values: *mut u8,
    pub payload: &'a [u64],
}

/// A value type of a message.
trait Float: zfp::Value + Into<f64> + PartialOrd {
    /// Values from here up, infinities and NaN are not coded: rounding could carry them to infinity.
    fn is_codable(self) -> bool;
    /// The value times two to the `exponent`, which is rounded once or twice below the normal range.
    fn times_power_of_two(self, exponent: i32) -> Self;
}

impl Float for f32 {
    fn is_codable(self) -> bool {
        self.to_bits() & 0x7fff_ffff < 252 << 23
    }

    fn times_power_of_two(self, exponent: i32) -> Self {
        let half = exponent / 2;
        let power = |exponent: i32| Self::from_bits(((exponent + 127) as u32) << 23);
        self * power(half) * power(exponent - half)
    }
}

impl Float for f64 {
    fn is_codable(self) -> bool {
        self.to_bits() & 0x7fff_ffff_ffff_ffff < 2044 << 52
    }

    fn times_power_of_two(self, exponent: i32) -> Self {
        let half = exponent / 2;
        let power = |exponent: i32| Self::from_bits(((exponent + 1023) as u64) << 52);
        self * power(half) * power(exponent - half)
    }
}

/// Codes every message, on up to `threads` threads. `false` where a message holds values that cannot be
/// coded (see [`Float::is_codable`], and float16's range): its payload then means nothing.
///
/// # Safety
/// For each message, `values` must be readable and aligned as [`Encode`] says.
pub unsafe fn encode(messages: &mut [Encode], threads: usize) -> Vec<bool> {
    // SAFETY: the caller's promise, handed on; each function takes the messages of its element only.
    unsafe {
        let mut coded = vec![false; messages.len()];
        encode_elements::<f32>(messages, Element::F32, threads, &mut coded);
        encode_elements::<f64>(messages, Element::F64, threads, &mut coded);
        coded
    }
}

/// Decodes every message, on up to `threads` threads. `false` where a payload was not what its plan says;
/// the values then mean nothing.
///
/// # Safety
/// For each message, `values` must be writable and aligned as [`Decode`] says, and overlap no other.
pub unsafe fn decode(messages: &mut [Decode], threads: usize) -> Vec<bool> {
    // SAFETY: the caller's promise, handed on; each function takes the messages of its element only.
    unsafe {
        let mut decoded = vec![false; messages.len()];
        decode_elements::<f32>(messages, Element::F32, threads, &mut decoded);
        decode_elements::<f64>(messages, Element::F64, threads, &mut decoded);
        decoded
    }
}

/// # Safety
/// As [`encode`]; `T` must be the type that `element` names.
unsafe fn encode_elements<T: Float + cast::Cast>(
    messages: &mut [Encode],
    element: Element,
    threads: usize,
    coded: &mut [bool],
) {
    let mut jobs = Vec::new();
    let mut owners = Vec::new();
    // Scaled copies must outlive the jobs that point into them.
    let mut scaled = Vec::new();
    for (index, message) in messages.iter_mut().enumerate() {
        let plan = message.plan;
        if plan.element != element {
            continue;
        }
        // SAFETY: the caller promised `count` readable, aligned values of this type.
        let values = unsafe { std::slice::from_raw_parts(message.values.cast::<T>(), plan.count) };
        if !values.iter().all(|value| value.is_codable()) {
            continue;
        }
        coded[index] = true;
        match plan.coding {
            Coding::Zfp => {
                let mut source = values.as_ptr();
                let (scales, streams) = message.payload.split_at_mut(plan.boxes.scale_words());
                if let Some(fields) = &plan.boxes.fields {
                    scaled.push(scale::apply(values, fields, scales));
                    source = scaled.last().map_or(source, Vec::as_ptr);
                }
                let first = jobs.len();
                // SAFETY: the boxes lie within the `count` values, by construction.
                jobs.extend(unsafe { plan.boxes.encode_jobs(source, streams) });
                owners.extend(std::iter::repeat_n(index, jobs.len() - first));
            }
            Coding::Fp16 => coded[index] = cast::to_f16(values, message.payload),
            Coding::Bf16 => coded[index] = cast::to_bf16(values, message.payload),
        }
    }
    // SAFETY: sources are the caller's values or the scaled copies, streams are disjoint parts of the
    // payloads, and both outlive the call.
    let done = unsafe { zfp::encode(&jobs, threads) };
    for (&owner, done) in owners.iter().zip(done) {
        coded[owner] &= !done.overflow && done.nonfinite_blocks == 0;
    }
}

/// # Safety
/// As [`decode`]; `T` must be the type that `element` names.
unsafe fn decode_elements<T: Float + cast::Cast>(
    messages: &mut [Decode],
    element: Element,
    threads: usize,
    decoded: &mut [bool],
) {
    let mut jobs = Vec::new();
    let mut owners = Vec::new();
    for (index, message) in messages.iter_mut().enumerate() {
        let plan = message.plan;
        if plan.element != element {
            continue;
        }
        let target = message.values.cast::<T>();
        decoded[index] = true;
        match plan.coding {
            Coding::Zfp => {
                let streams =
                    &message.payload[plan.boxes.scale_words().min(message.payload.len())..];
                let first = jobs.len();
                // SAFETY: the boxes lie within the `count` values, by construction.
                jobs.extend(unsafe { plan.boxes.decode_jobs(target, streams) });
                owners.extend(std::iter::repeat_n(index, jobs.len() - first));
            }
            Coding::Fp16 | Coding::Bf16 => {
                // SAFETY: the caller promised `count` writable, aligned values of this type.
                let values = unsafe { std::slice::from_raw_parts_mut(target, plan.count) };
                decoded[index] = match plan.coding {
                    Coding::Bf16 => cast::from_bf16(message.payload, values),
                    _ => cast::from_f16(message.payload, values),
                };
            }
        }
    }
    // SAFETY: targets are disjoint boxes of the caller's values, streams are parts of the payloads.
    let done = unsafe { zfp::decode(&jobs, threads) };
    for (&owner, done) in owners.iter().zip(done) {
        decoded[owner] &= done;
    }
    for message in messages
        .iter_mut()
        .filter(|message| message.plan.element == element)
    {
        if let Some(fields) = &message.plan.boxes.fields {
            // SAFETY: the caller promised `count` writable, aligned values of this type.
            let values = unsafe {
                std::slice::from_raw_parts_mut(message.values.cast::<T>(), message.plan.count)
            };
            scale::undo(values, fields, message.payload);
        }
    }
}

/// The relative L2 error of a message that was just encoded.
///
/// # Safety
/// As [`encode`], for this one message.
pub unsafe fn sample_error(message: &Encode) -> f64 {
    // SAFETY: the caller's promise, handed on; `T` is the type that the plan names.
    unsafe {
        match message.plan.element {
            Element::F32 => sample_elements::<f32>(message),
            Element::F64 => sample_elements::<f64>(message),
        }
    }
}

/// # Safety
/// As [`encode`]; `T` must be the type that the plan names.
unsafe fn sample_elements<T: Float + cast::Cast + Default>(message: &Encode) -> f64 {
    let plan = message.plan;
    // SAFETY: the caller promised `count` readable, aligned values of this type.
    let values = unsafe { std::slice::from_raw_parts(message.values.cast::<T>(), plan.count) };
    let mut decoded = vec![T::default(); plan.count];
    let target = decoded.as_mut_ptr().cast();
    let mut back = [Decode {
        plan,
        values: target,
        payload: message.payload,
    }];
    // SAFETY: `decoded` has `count` values of this type.
    unsafe { decode_elements::<T>(&mut back, plan.element, 1, &mut [false]) };
    error::relative_error(values, &decoded)
}
