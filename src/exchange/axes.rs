//! The axes of each message that a call sends: the user's layouts, else those found in the data.

use super::context::Context;
use super::outgoing::Source;
use super::side::Side;
use crate::codec::Coding;
use crate::layout::{Axes, Inference, Layout, MAX_AXES, Pattern, Specimen, common_divisor};
use crate::registry::Registration;
use crate::wire::fnv1a;

/// Gives every source its axes. Returns the pattern under which layouts were looked for, where they were.
///
/// # Safety
/// Each source must point to its values.
pub unsafe fn choose(
    context: Context,
    side: &Side,
    sources: &mut [Source],
    inference: &mut Inference,
) -> Option<Pattern> {
    if context.terms.coding != Coding::Zfp || sources.is_empty() {
        return None;
    }
    let mut layouts = context.registration.layouts();
    if !layouts.known.is_empty() {
        let mut fitted = false;
        for source in &mut *sources {
            let axes = layouts
                .known
                .iter()
                .find_map(|layout| resolve(layout, source));
            fitted |= axes.is_some();
            source.axes = axes.unwrap_or_default();
        }
        let is_first_misfit = !fitted && !layouts.misfit_said;
        layouts.misfit_said = true;
        if is_first_misfit && context.registration.rank == 0 {
            say_misfit(context.registration, &layouts.known, sources);
        }
        if fitted {
            return None;
        }
    }
    drop(layouts);
    // SAFETY: the caller's promise.
    unsafe { infer(context, side, sources, inference) }
}

fn resolve(layout: &Layout, source: &Source) -> Option<Axes> {
    let with_parts = source.coded.complex.then(|| layout.with_complex_parts());
    let axes = with_parts
        .as_ref()
        .unwrap_or(layout)
        .resolve(source.coded.count)?;
    (axes.len() <= MAX_AXES).then_some(axes)
}

/// # Safety
/// As [`choose`].
unsafe fn infer(
    context: Context,
    side: &Side,
    sources: &mut [Source],
    inference: &mut Inference,
) -> Option<Pattern> {
    // A call has one send type, so that all its messages have one element.
    let largest = sources.iter().max_by_key(|source| source.coded.count)?;
    // The block that stays here has the same inner axes.
    let own = side
        .values(context.registration.rank, context.terms.bytes)
        .map(|own| own.count);
    let counts = sources.iter().map(|source| source.coded.count).chain(own);
    let pattern = Pattern {
        call: call_hash(context, sources),
        element: largest.coded.element,
        complex: largest.coded.complex,
        divisor: common_divisor(counts),
    };
    let specimen = Specimen {
        values: largest.pointer,
        count: largest.coded.count,
        rate: context.terms.rate,
        datatype: &side.datatype_extents(context.mpi),
    };
    // SAFETY: the caller's promise.
    let layout = unsafe { inference.layout(pattern, specimen) };
    if let Some(layout) = layout {
        for source in sources {
            source.axes = layout.resolve(source.coded.count).unwrap_or_default();
        }
    }
    Some(pattern)
}

/// Tells calls with different counts apart.
fn call_hash(context: Context, sources: &[Source]) -> u64 {
    let numbers = sources
        .iter()
        .flat_map(|source| [source.peer, source.coded.count]);
    let bytes: Vec<u8> = numbers
        .chain([context.collective as usize])
        .flat_map(|number| (number as u64).to_le_bytes())
        .collect();
    fnv1a(&bytes)
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
         product of the extents must be one of these; axes are looked for in the data instead",
        registration.label()
    );
}
