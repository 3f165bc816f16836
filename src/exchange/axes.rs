//! The axes of each message that a call sends: the user's layouts, else those found in the data.

use super::Result;
use super::context::Context;
use super::message::{Message, Values};
use super::side::Side;
use crate::codec::{Coding, Item};
use crate::layout::{
    Axes, BitsPolicy, Inference, Layout, MAX_AXES, Pattern, Specimen, common_divisor,
    without_scales,
};
use crate::registry::Registration;
use crate::wire::fnv1a;

/// Gives every message its axes. `specimen` is the values of the longest one. Returns the pattern
/// under which these were looked for.
///
/// # Safety
/// The specimen must be these values.
pub unsafe fn choose(
    context: Context,
    side: &Side,
    messages: &mut [Message],
    longest: usize,
    specimen: &Values,
    inference: &mut Inference,
) -> Result<Option<Pattern>> {
    if matches!(context.terms.coding, Coding::Fp16 | Coding::Bf16) {
        return Ok(None);
    }
    let given = given_layouts(context, messages);
    // A call has one send type, so that all its messages have one element.
    let coded = messages[longest].coded;
    let Item::Float(element) = coded.item else {
        return Ok(None);
    };
    // The block that stays here has the same inner axes.
    let own = side
        .values(context.registration.rank, context.terms.holds())
        .map(|own| own.count);
    let counts = messages
        .iter()
        .map(|message| message.coded.count)
        .chain(own);
    let pattern = Pattern {
        call: call_hash(context, messages, &given),
        element,
        complex: coded.complex,
        on_gpu: specimen.place.coder.is_some(),
        divisor: common_divisor(counts),
    };
    let copy;
    let mut values = specimen.pointer;
    if !specimen.place.memory.is_host() && inference.looks_at(pattern) {
        // SAFETY: the caller's promise.
        copy = unsafe {
            specimen
                .place
                .memory
                .read_words(values, coded.raw_bytes())?
        };
        values = copy.as_ptr().cast();
    }
    let bits = match context.settings.bits {
        None if pattern.on_gpu => Some(BitsPolicy::Even),
        bits => bits,
    };
    let specimen = Specimen {
        values,
        count: coded.count,
        goal: context.terms.goal(),
        datatype: &side.datatype_extents(context.mpi),
        given: &given,
        bits,
    };
    // SAFETY: the caller's promise, or a copy; a specimen that is not looked at is not followed.
    let found = unsafe { inference.choose(pattern, specimen) };
    for message in messages {
        let layouts = given.iter().chain(found.filter(|_| given.is_empty()));
        message.axes = layouts
            .filter_map(|layout| resolve(layout, message))
            .next()
            .unwrap_or_default();
        if context.terms.is_variable() {
            without_scales(&mut message.axes, message.coded.count);
        }
    }
    Ok(Some(pattern))
}

/// The user's layouts, where one fits a message of the call. Says once if they never do.
fn given_layouts(context: Context, messages: &[Message]) -> Vec<Layout> {
    let mut layouts = context.registration.layouts();
    let fits = |layout: &Layout| {
        messages
            .iter()
            .any(|message| resolve(layout, message).is_some())
    };
    if layouts.known.is_empty() || layouts.known.iter().any(fits) {
        layouts.misfit_said = true;
        return layouts.known.clone();
    }
    if !std::mem::replace(&mut layouts.misfit_said, true) && context.registration.rank == 0 {
        say_misfit(context.registration, &layouts.known, messages);
    }
    Vec::new()
}

fn resolve(layout: &Layout, message: &Message) -> Option<Axes> {
    let with_parts = message.coded.complex.then(|| layout.with_complex_parts());
    let axes = with_parts
        .as_ref()
        .unwrap_or(layout)
        .resolve(message.coded.count)?;
    (axes.len() <= MAX_AXES).then_some(axes)
}

/// Tells calls with different counts apart.
fn call_hash(context: Context, messages: &[Message], given: &[Layout]) -> u64 {
    let numbers = messages
        .iter()
        .flat_map(|message| [message.peer, message.coded.count]);
    let numbers = numbers.chain([context.collective as usize]);
    let mut bytes: Vec<u8> = numbers
        .flat_map(|number| (number as u64).to_le_bytes())
        .collect();
    for layout in given {
        bytes.extend(layout.to_string().bytes().chain(*b";"));
    }
    fnv1a(&bytes)
}

fn say_misfit(registration: &Registration, layouts: &[Layout], messages: &[Message]) {
    let layouts = layouts
        .iter()
        .map(Layout::to_string)
        .collect::<Vec<_>>()
        .join(";");
    let mut counts: Vec<_> = messages.iter().map(|message| message.coded.count).collect();
    counts.sort_unstable();
    counts.dedup();
    counts.truncate(4);
    tracing::warn!(
        "layout {layouts} fits no message on communicator {}: its messages have {counts:?} values, and the \
         product of the extents must be one of these; axes are looked for in the data instead",
        registration.label()
    );
}
