//! The axes of each message that a call sends: the user's layouts, else those found in the data.

use super::context::Context;
use super::outgoing::Source;
use super::side::Side;
use crate::codec::Coding;
use crate::layout::{Axes, Inference, Layout, MAX_AXES, Pattern, Specimen, common_divisor};
use crate::registry::Registration;
use crate::wire::fnv1a;

/// Gives every source its axes and its share of bits. Returns the pattern under which these were looked for.
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
    let given = given_layouts(context, sources);
    // A call has one send type, so that all its messages have one element.
    let largest = sources.iter().max_by_key(|source| source.coded.count)?;
    // The block that stays here has the same inner axes.
    let own = side
        .values(context.registration.rank, context.terms.bytes)
        .map(|own| own.count);
    let counts = sources.iter().map(|source| source.coded.count).chain(own);
    let pattern = Pattern {
        call: call_hash(context, sources, &given),
        element: largest.coded.element,
        complex: largest.coded.complex,
        divisor: common_divisor(counts),
    };
    let specimen = Specimen {
        values: largest.pointer,
        count: largest.coded.count,
        rate: context.terms.rate,
        datatype: &side.datatype_extents(context.mpi),
        given: &given,
        bits: context.settings.bits,
    };
    // SAFETY: the caller's promise.
    let choice = unsafe { inference.choose(pattern, specimen) };
    for source in sources {
        let found = choice.map(|choice| &choice.layout);
        let layouts = given.iter().chain(found.filter(|_| given.is_empty()));
        source.axes = layouts
            .filter_map(|layout| resolve(layout, source))
            .next()
            .unwrap_or_default();
        if let Some(choice) = choice {
            source.bits = choice.bits(source.peer);
        }
    }
    Some(pattern)
}

/// The user's layouts, where one fits a message of the call. Says once if they never do.
fn given_layouts(context: Context, sources: &[Source]) -> Vec<Layout> {
    let mut layouts = context.registration.layouts();
    let fits = |layout: &Layout| {
        sources
            .iter()
            .any(|source| resolve(layout, source).is_some())
    };
    if layouts.known.is_empty() || layouts.known.iter().any(fits) {
        layouts.misfit_said = true;
        return layouts.known.clone();
    }
    if !std::mem::replace(&mut layouts.misfit_said, true) && context.registration.rank == 0 {
        say_misfit(context.registration, &layouts.known, sources);
    }
    Vec::new()
}

fn resolve(layout: &Layout, source: &Source) -> Option<Axes> {
    let with_parts = source.coded.complex.then(|| layout.with_complex_parts());
    let axes = with_parts
        .as_ref()
        .unwrap_or(layout)
        .resolve(source.coded.count)?;
    (axes.len() <= MAX_AXES).then_some(axes)
}

/// Tells calls with different counts apart.
fn call_hash(context: Context, sources: &[Source], given: &[Layout]) -> u64 {
    let numbers = sources
        .iter()
        .flat_map(|source| [source.peer, source.coded.count]);
    let numbers = numbers.chain([context.collective as usize]);
    let mut bytes: Vec<u8> = numbers
        .flat_map(|number| (number as u64).to_le_bytes())
        .collect();
    for layout in given {
        bytes.extend(layout.to_string().bytes().chain(*b";"));
    }
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
