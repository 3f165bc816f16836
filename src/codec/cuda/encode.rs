//! Values → payloads, on a GPU.
//!
//! What decides how a message is coded is what decides it on the CPU: kernels go over the values, and the same
//! functions judge what they found. Messages that need more than kernels can do (fill values, bits fitted to a
//! bound, other codecs) are left to the CPU.

use super::array::{Array, Plain};
use super::jobs::{Addresses, Boxed, MOST_VALUES, Placed, first_batch};
use super::kernels::{FieldsJob, SampledError};
use super::launch;
use super::look::{Suspected, Verdict, have_fill, look};
use super::{Device, Entered, Result};
use crate::codec::encode::{Coder, Outcome, sample_step};
use crate::codec::plan::Plan;
use crate::codec::quality::Tally;
use crate::codec::{Bits, Coding, Encode, Encoded, Float, Guard, Item, Refusal};
use crate::layout::Axes;

/// Codes the messages that are a GPU's to code, as far as it can; the others have no outcome.
///
/// # Safety
/// As [`crate::codec::encode`].
pub unsafe fn encode(
    messages: &mut [Encode],
    guard: Guard,
    measure: impl Fn(usize) -> bool + Copy,
    outcomes: &mut [Outcome],
) {
    // All messages of a call are coded in one place.
    let Some(device) = messages.iter().find_map(|message| message.place.coder) else {
        return;
    };
    let mut mine: Vec<_> = messages
        .iter_mut()
        .zip(outcomes)
        .enumerate()
        .filter(|(_, (message, _))| is_for_a_gpu(message, device))
        .map(|(index, (message, outcome))| Ours {
            measured: guard.error.is_some() || measure(index),
            message,
            outcome,
        })
        .collect();
    // SAFETY: the caller's promise, in both cases.
    let coded = unsafe {
        encode_elements::<f32>(device, &mut mine, guard)
            .and_then(|()| encode_elements::<f64>(device, &mut mine, guard))
    };
    if let Err(error) = coded {
        super::say_failure(&error);
        for message in &mut mine {
            *message.outcome = None;
        }
    }
}

/// A message for a GPU.
struct Ours<'a, 'm> {
    message: &'a mut Encode<'m>,
    outcome: &'a mut Outcome,
    measured: bool,
}

fn is_for_a_gpu(message: &Encode, device: &Device) -> bool {
    message.place.is_coded_on(device)
        && message.coding == Coding::Zfp
        && message.bits == Bits::Even
        && (1..=MOST_VALUES).contains(&message.count)
}

/// # Safety
/// As [`encode`]; `T` must be the type that its element names.
unsafe fn encode_elements<T: Float + Plain>(
    device: &'static Device,
    mine: &mut [Ours],
    guard: Guard,
) -> Result<()> {
    let mut mine: Vec<_> = mine
        .iter_mut()
        .filter(|ours| ours.message.item == Item::Float(T::ELEMENT))
        .collect();
    while !mine.is_empty() {
        let rest = mine.split_off(first_batch(mine.iter().map(|ours| ours.message.count)));
        // SAFETY: the caller's promise.
        unsafe { encode_batch::<T>(device, mine, guard)? };
        mine = rest;
    }
    Ok(())
}

/// # Safety
/// As [`encode_elements`].
unsafe fn encode_batch<T: Float + Plain>(
    device: &'static Device,
    mine: Vec<&mut Ours>,
    guard: Guard,
) -> Result<()> {
    let work = device.enter()?;
    let mut placed = Vec::with_capacity(mine.len());
    for ours in mine {
        let Encode {
            values,
            count,
            place,
            ..
        } = *ours.message;
        // SAFETY: the caller's promise.
        let values = unsafe { Placed::<T>::source(&work, place.memory, values, count)? };
        placed.push((ours, values));
    }
    let values: Vec<_> = placed
        .iter()
        .map(|(ours, values)| (values.address, ours.message.count))
        .collect();
    let found = look::<T>(&work, &values, guard.against_lies)?;
    let (mut survivors, mut suspected) = (Vec::new(), Vec::new());
    for ((ours, values), found) in placed.into_iter().zip(found) {
        let count = ours.message.count;
        match found.verdict(count, guard.against_lies) {
            Verdict::Code(suspects) => {
                let address = values.address;
                suspected.push(Suspected {
                    address,
                    count,
                    suspects,
                });
                survivors.push((ours, values));
            }
            Verdict::Refuse(refusal) => *ours.outcome = Some(Err(refusal)),
            Verdict::LeaveToCpu => {}
        }
    }
    let have_fill = have_fill(&work, &suspected)?;
    let survivors = survivors.into_iter().zip(have_fill);
    let mut prepared: Vec<_> = survivors
        .filter(|(_, has_fill)| !has_fill)
        .filter_map(|((ours, values), _)| prepare(ours, values))
        .collect();
    if !prepared.is_empty() {
        code(&work, &mut prepared, guard)?;
    }
    work.finish()
}

/// A message that is to be coded.
struct Prepared<'p, 'a, 'm, T: Float> {
    ours: &'p mut Ours<'a, 'm>,
    values: Placed<T>,
    plan: Plan,
    flat: bool,
}

/// `None` where the message has no room for its values.
fn prepare<'p, 'a, 'm, T: Float>(
    ours: &'p mut Ours<'a, 'm>,
    values: Placed<T>,
) -> Option<Prepared<'p, 'a, 'm, T>> {
    let (count, words) = (ours.message.count, ours.message.payload.len());
    let plan_along = |axes: &Axes| Plan::new(Coding::Zfp, T::ELEMENT, count, axes, words);
    let along_axes = plan_along(ours.message.axes);
    let flat = along_axes.is_none();
    let Some(plan) = along_axes.or_else(|| plan_along(&Axes::new())) else {
        *ours.outcome = Some(Err(Refusal::NoRoom));
        return None;
    };
    Some(Prepared {
        ours,
        values,
        plan,
        flat,
    })
}

/// Codes the messages and brings back their payloads, but those that are to stay on the device.
fn code<T: Float + Plain>(
    work: &Entered,
    prepared: &mut [Prepared<T>],
    guard: Guard,
) -> Result<()> {
    let payloads = Payloads::of(work, prepared)?;
    let (boxed, scaled) = lay_out(prepared, &payloads.addresses);
    launch::exponents::<T>(work, &scaled)?;
    let refused = Array::of(work, &vec![0u32; prepared.len()])?;
    let told = launch::tell(work, &boxed)?;
    launch::encode::<T>(work, &told, &refused)?;
    let every: Vec<_> = prepared.iter().map(Prepared::sampled).collect();
    let errors = launch::sample::<T>(work, &told, &every)?;
    let (refused, errors) = (refused.fetch(work)?, errors.fetch(work)?);
    payloads.fetch(work, prepared)?;
    let (refused, errors) = (refused.items()?, errors.items()?);
    for ((one, &refused), errors) in prepared.iter_mut().zip(refused).zip(errors) {
        *one.ours.outcome = Some(one.outcome(refused != 0, errors, guard));
    }
    Ok(())
}

/// Where kernels put payloads.
struct Payloads {
    /// Those that are brought back, one after the other.
    _room: Array<u64>,
    /// Of the first word of each.
    addresses: Vec<u64>,
}

impl Payloads {
    fn of<T: Float>(work: &Entered, prepared: &[Prepared<T>]) -> Result<Self> {
        let words = |one: &Prepared<T>| match one.ours.message.on_device {
            Some(_) => 0,
            None => one.payload_words(),
        };
        let room = Array::room(work, prepared.iter().map(words).sum())?;
        let mut first = 0;
        let address = |one: &Prepared<T>| {
            let own = room.address_of(first);
            first += words(one);
            one.ours.message.on_device.unwrap_or(own)
        };
        let addresses: Vec<_> = prepared.iter().map(address).collect();
        for (one, &address) in prepared.iter().zip(&addresses) {
            // Behind the last exponent there may be room for others.
            // SAFETY: the payload is lent or the caller's, and begins with so many words for exponents.
            unsafe { work.fill_zero(address, 8 * one.plan.scale_words())? };
        }
        Ok(Self {
            _room: room,
            addresses,
        })
    }

    /// Starts to bring back those that are not to stay.
    fn fetch<T: Float>(&self, work: &Entered, prepared: &mut [Prepared<T>]) -> Result<()> {
        debug_assert!(self.addresses.len() == prepared.len());
        for (one, &address) in prepared.iter_mut().zip(&self.addresses) {
            let words = one.payload_words();
            if one.ours.message.on_device.is_none() {
                let payload = &mut one.ours.message.payload[..words];
                // SAFETY: the room has these words, and the payload is not touched before the work is done.
                unsafe {
                    let to = payload.as_mut_ptr().cast();
                    work.download(to, address, size_of_val(payload))?;
                }
            }
        }
        Ok(())
    }
}

/// The boxes of all messages, and those whose fields are to be given exponents.
fn lay_out<T: Float>(prepared: &[Prepared<T>], payloads: &[u64]) -> (Boxed, Vec<FieldsJob>) {
    let (mut boxed, mut scaled) = (Boxed::default(), Vec::new());
    let mut first_field = 0;
    for (index, (one, &payload)) in prepared.iter().zip(payloads).enumerate() {
        let mut at = Addresses {
            values: one.values.address,
            streams: payload + 8 * one.plan.scale_words() as u64,
            exponents: 0,
        };
        if let Some(fields) = &one.plan.fields {
            let (run, count) = fields.extents();
            at.exponents = payload;
            scaled.push(FieldsJob {
                values: at.values,
                count: one.ours.message.count as u64,
                exponents: at.exponents,
                run: run as u32,
                fields: count as u32,
                first_field,
                unused: 0,
            });
            first_field += count as u32;
        }
        boxed.add::<T>(index as u32, &one.plan, at);
    }
    (boxed, scaled)
}

impl<T: Float> Prepared<'_, '_, '_, T> {
    /// Words that kernels write.
    fn payload_words(&self) -> usize {
        let streams: usize = self.plan.boxes.even().words.iter().sum();
        self.plan.scale_words() + streams
    }

    /// One in so many of its blocks is looked at for the error; where nobody asks, the first one.
    fn sampled(&self) -> u32 {
        match self.ours.measured {
            true => sample_step(&self.plan.boxes) as u32,
            false => u32::MAX,
        }
    }

    fn outcome(
        &self,
        refused: bool,
        errors: &SampledError,
        guard: Guard,
    ) -> std::result::Result<Encoded, Refusal> {
        if refused {
            return Err(Refusal::Uncodable);
        }
        let error = self.ours.measured.then(|| {
            let tallies = [errors.as_coded, errors.as_given];
            let [coded, given] =
                tallies.map(|of| Tally::of_sums(of.values as usize, of.difference, of.norm));
            coded.error().max(given.error())
        });
        error.map_or(Ok(()), |error| guard.check(error))?;
        Ok(Encoded {
            words: self.ours.message.payload.len(),
            masked: false,
            flat: self.flat,
            exponent: None,
            error,
            coder: Coder::Gpu {
                stays: self.ours.message.on_device.is_some(),
            },
        })
    }
}
