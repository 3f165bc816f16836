//! Payloads → values, on a GPU: those of even bits and without fill values. The CPU decodes the others.

use super::array::{Array, Plain};
use super::jobs::{Addresses, Boxed, MOST_VALUES, Placed, first_batch};
use super::{Device, Result, launch};
use crate::codec::plan::Plan;
use crate::codec::{Coding, Decode, Element, Float, Item};

/// Decodes the messages that are a GPU's to decode, as far as it can; the others have no outcome.
///
/// # Safety
/// As [`crate::codec::decode`].
pub unsafe fn decode(messages: &[Decode], decoded: &mut [Option<bool>]) {
    // All messages of a call are decoded in one place.
    let Some(device) = messages.iter().find_map(|message| message.place.coder) else {
        return;
    };
    // SAFETY: the caller's promise, in both cases.
    let done = unsafe {
        decode_elements::<f32>(device, messages, decoded)
            .and_then(|()| decode_elements::<f64>(device, messages, decoded))
    };
    if let Err(error) = done {
        super::say_failure(&error);
        decoded.fill(None);
    }
}

fn is_for_a_gpu(message: &Decode, element: Element, device: &Device) -> bool {
    message.place.is_coded_on(device)
        && message.item == Item::Float(element)
        && message.coding == Coding::Zfp
        && message.count <= MOST_VALUES
        && !message.masked
        && !message.fitted
}

/// # Safety
/// As [`crate::codec::decode`]; `T` must be the type that its element names.
unsafe fn decode_elements<T: Float + Plain>(
    device: &'static Device,
    messages: &[Decode],
    decoded: &mut [Option<bool>],
) -> Result<()> {
    let mut mine: Vec<_> = (0..messages.len())
        .filter(|&index| is_for_a_gpu(&messages[index], T::ELEMENT, device))
        .collect();
    while !mine.is_empty() {
        let rest = mine.split_off(first_batch(mine.iter().map(|&index| messages[index].count)));
        // SAFETY: the caller's promise.
        unsafe { decode_batch::<T>(device, messages, &mine, decoded)? };
        mine = rest;
    }
    Ok(())
}

/// # Safety
/// As [`decode_elements`].
unsafe fn decode_batch<T: Float + Plain>(
    device: &'static Device,
    messages: &[Decode],
    mine: &[usize],
    decoded: &mut [Option<bool>],
) -> Result<()> {
    let work = device.enter()?;
    let (mut boxed, mut placed) = (Boxed::default(), Vec::new());
    for &index in mine {
        let message = &messages[index];
        let Decode {
            count,
            axes,
            payload,
            ..
        } = *message;
        let plan = Plan::new(Coding::Zfp, T::ELEMENT, count, axes, payload.len());
        let Some(plan) = plan else {
            decoded[index] = Some(false);
            continue;
        };
        // The exponents of fields lie before the streams, as kernels read them.
        let (first_word, words) = match message.on_device {
            Some(address) => (address, None),
            None => {
                // SAFETY: the payload is borrowed for longer than the work takes.
                let words = unsafe { Array::of_borrowed(&work, payload)? };
                (words.address(), Some(words))
            }
        };
        let values = Placed::<T>::target(&work, message.place.memory, message.values, count)?;
        let at = Addresses {
            values: values.address,
            streams: first_word + 8 * plan.scale_words() as u64,
            exponents: match plan.fields {
                Some(_) => first_word,
                None => 0,
            },
        };
        boxed.add::<T>(0, &plan, at);
        placed.push((index, values, words));
    }
    launch::decode::<T>(&work, &launch::tell(&work, &boxed)?)?;
    for (index, values, _) in &placed {
        let message = &messages[*index];
        // SAFETY: the caller's promise; the work is waited for below.
        unsafe { values.settle(&work, message.values, message.count)? };
    }
    work.finish()?;
    for (index, ..) in &placed {
        decoded[*index] = Some(true);
    }
    Ok(())
}
