//! Which layout a kind of message has, found by coding a sample of it along each candidate.
//!
//! The sender alone decides and the layout travels with the message, so that nothing here has to be alike
//! on two ranks: neither the data nor the time that is looked at.

use super::{Axes, Axis, Kind, Layout, candidates};
use crate::codec::{self, Element, Float, Goal, Window};
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Values of a window, about.
const WINDOW: usize = 1 << 13;
/// A smooth axis is not cut shorter than this.
const SHORTEST: usize = 8;
/// Fields of a window, at most.
const MOST_FIELDS: usize = 64;
/// Lanes that errors are told apart by, at most (see [`codec::trial`]).
const MOST_LANES: usize = 1024;
/// Layouts of the first round that are looked at more closely.
const FINALISTS: usize = 8;
/// A layout with more axes, or scales, must be so much better.
const BETTER: f64 = 0.9;
/// Fitting bits takes longer than sharing them out evenly, and must leave no more than this of the error.
const WORTH_FITTING: f64 = 0.9;
/// A layout is looked for again when the error has grown by this since it was found …
const DRIFT: f64 = 8.0;
/// … and at most once in so many messages.
const PATIENCE: u32 = 64;
/// The same where the guard refused a message; those that go raw meanwhile are not counted.
const PATIENCE_WHEN_REFUSED: u32 = 8;
/// The share of the time spent on coding that may go into looking for layouts, after an allowance for the
/// first ones.
const SHARE: f64 = 0.02;
const ALLOWANCE: Duration = Duration::from_millis(500);

/// Messages that are taken to have one layout: those of calls with these counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Pattern {
    /// The call, and a hash of all its counts.
    pub call: u64,
    pub element: Element,
    pub complex: bool,
    /// A GPU codes them: it shares bits out evenly.
    pub on_gpu: bool,
    /// Common to the counts of all messages.
    pub divisor: usize,
}

/// A message to look at.
#[derive(Clone, Copy, Debug)]
pub struct Specimen<'a> {
    pub values: *const u8,
    pub count: usize,
    pub goal: Goal,
    /// The extents of its datatype, fastest first.
    pub datatype: &'a [usize],
    /// Layouts to choose from, first choice first; none to find one.
    pub given: &'a [Layout],
    /// How bits are to be shared out; `None` to find out.
    pub bits: Option<BitsPolicy>,
}

/// How the bits of a message are shared out over its blocks (see [`codec::Bits`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BitsPolicy {
    Even,
    Fitted,
}

/// The layouts found so far.
#[derive(Debug, Default)]
pub struct Inference {
    found: HashMap<Pattern, Choice>,
    spent: Duration,
    coding: Duration,
}

/// Which of the messages of a pattern: the peer it goes to, and the segment of it.
pub type Piece = (usize, usize);

/// How the messages of a pattern are coded.
#[derive(Debug)]
struct Choice {
    layout: Layout,
    bits: BitsPolicy,
    history: HashMap<Piece, History>,
    messages: u32,
}

/// What became of the messages to one peer.
#[derive(Clone, Copy, Debug, Default)]
struct History {
    /// The exponent of the error bound that the last one was fitted to.
    exponent: Option<i16>,
    /// The error of the first one.
    error: Option<f64>,
}

/// Patterns that are remembered; a program whose counts never repeat must not fill the memory.
const MOST_PATTERNS: usize = 256;

impl Inference {
    /// How to code the messages of a pattern, from its record or from `specimen`; `None` (flat, evenly) when
    /// looking would take too much of the time.
    ///
    /// # Safety
    /// The specimen must point to its values, aligned for the pattern's element.
    pub unsafe fn choose(&mut self, pattern: Pattern, specimen: Specimen) -> Option<&Layout> {
        if !self.found.contains_key(&pattern) {
            if !self.looks_at(pattern) {
                return None;
            }
            let started = Instant::now();
            // SAFETY: the caller's promise.
            let (layout, bits) = unsafe { best(pattern, specimen) };
            self.spent += started.elapsed();
            tracing::debug!(
                "layout {layout}, bits {bits:?} for messages of {} values, found in {:.1?}",
                specimen.count,
                started.elapsed()
            );
            if self.found.len() >= MOST_PATTERNS {
                self.found.clear();
            }
            let choice = Choice {
                layout,
                bits,
                history: HashMap::new(),
                messages: 0,
            };
            self.found.insert(pattern, choice);
        }
        self.found.get(&pattern).map(|choice| &choice.layout)
    }

    /// Whether [`Self::choose`] is going to look at the specimen of a pattern.
    pub fn looks_at(&self, pattern: Pattern) -> bool {
        !self.found.contains_key(&pattern) && self.spent <= ALLOWANCE + self.coding.mul_f64(SHARE)
    }

    /// Whether the bits of these messages are fitted.
    pub fn is_fitted(&self, pattern: Pattern) -> bool {
        let choice = self.found.get(&pattern);
        choice.is_some_and(|choice| choice.bits == BitsPolicy::Fitted)
    }

    /// How the bits of a message are shared out. A segment that has no history begins with the one before.
    pub fn bits(&self, pattern: Pattern, (peer, segment): Piece) -> codec::Bits {
        let Some(choice) = self.found.get(&pattern) else {
            return codec::Bits::Even;
        };
        match choice.bits {
            BitsPolicy::Even => codec::Bits::Even,
            BitsPolicy::Fitted => {
                let of = |segment: usize| choice.history.get(&(peer, segment))?.exponent;
                codec::Bits::Fitted(of(segment).or_else(|| of(segment.checked_sub(1)?)))
            }
        }
    }

    /// What became of a message of this pattern: the error that was measured, and the exponent its bits were
    /// fitted to. When the error has drifted away from what it was, the layout is looked for again; at once
    /// when the first messages were zeros, which tell nothing.
    pub fn record(
        &mut self,
        pattern: Pattern,
        piece: Piece,
        error: Option<f64>,
        exponent: Option<i16>,
        refused: bool,
    ) {
        let Some(choice) = self.found.get_mut(&pattern) else {
            return;
        };
        choice.messages += 1;
        let history = choice.history.entry(piece).or_default();
        history.exponent = exponent.or(history.exponent);
        let Some(error) = error else { return };
        let first = *history.error.get_or_insert(error);
        let patience = match (refused, first == 0.0) {
            (_, true) => 0,
            (true, false) => PATIENCE_WHEN_REFUSED,
            (false, false) => PATIENCE,
        };
        if error > DRIFT * first && choice.messages > patience {
            self.found.remove(&pattern);
        }
    }

    /// Time that went into coding.
    pub fn record_coding(&mut self, time: Duration) {
        self.coding += time;
    }
}

/// How a message of these values is coded by itself: along the first of the `given` layouts that fits, or
/// the one found in the data where there are none. `divisor` is common to the counts of all messages of its
/// call.
pub fn infer<T: Float>(
    values: &[T],
    divisor: usize,
    goal: Goal,
    given: &[Layout],
    bits: Option<BitsPolicy>,
) -> (Layout, BitsPolicy) {
    if values.is_empty() {
        return (Layout::flat(), BitsPolicy::Even);
    }
    let pattern = Pattern {
        call: 0,
        element: T::ELEMENT,
        complex: false,
        on_gpu: false,
        divisor,
    };
    let specimen = Specimen {
        values: values.as_ptr().cast(),
        count: values.len(),
        goal,
        datatype: &[],
        given,
        bits,
    };
    // SAFETY: the specimen is a live slice of values of its type.
    unsafe { best(pattern, specimen) }
}

/// Fill values are left out of it, as they are when the message is coded.
///
/// # Safety
/// As [`Inference::choose`].
unsafe fn best(pattern: Pattern, specimen: Specimen) -> (Layout, BitsPolicy) {
    /// # Safety
    /// As [`Inference::choose`], and `T` must be the pattern's element.
    unsafe fn without_fill_values<T: Float>(
        pattern: Pattern,
        specimen: Specimen,
    ) -> (Layout, BitsPolicy) {
        // SAFETY: the caller's promise.
        let values =
            unsafe { std::slice::from_raw_parts(specimen.values.cast::<T>(), specimen.count) };
        let Some((filled, holes)) = codec::without_fill_values(values) else {
            // SAFETY: the caller's promise.
            return unsafe { best_as_it_is(pattern, specimen, &[]) };
        };
        let values = filled.as_ptr().cast();
        // SAFETY: as many values as before, in a copy that lives on here.
        unsafe { best_as_it_is(pattern, Specimen { values, ..specimen }, &holes) }
    }
    // SAFETY: the caller's promise.
    unsafe {
        match pattern.element {
            Element::F32 => without_fill_values::<f32>(pattern, specimen),
            Element::F64 => without_fill_values::<f64>(pattern, specimen),
        }
    }
}

/// # Safety
/// As [`Inference::choose`].
unsafe fn best_as_it_is(
    pattern: Pattern,
    specimen: Specimen,
    holes: &[bool],
) -> (Layout, BitsPolicy) {
    // SAFETY: the caller's promise.
    let focus = unsafe { codec::focus(pattern.element, specimen.values, specimen.count) };
    // SAFETY: the caller's promise.
    let lanes = unsafe { lanes(pattern, specimen, focus) };
    let error_along = |layout: &Layout, bits: BitsPolicy| {
        // SAFETY: the caller's promise.
        unsafe { error_along(layout, bits, pattern, specimen, focus, lanes, holes) }
    };
    let layouts = if specimen.given.is_empty() {
        let strides = candidates::strides(pattern.divisor, |stride| {
            let Specimen { values, count, .. } = specimen;
            // SAFETY: the caller's promise.
            unsafe { codec::roughness(pattern.element, values, count, focus, stride) }
        });
        contest(pattern, specimen, &strides, &error_along)
    } else {
        let fitting = specimen.given.iter().find_map(|layout| {
            let error = error_along(layout, BitsPolicy::Even)?;
            Some((error, layout.clone()))
        });
        fitting.into_iter().collect()
    };

    // Of those that are about as good as the best, the simplest; of equally simple ones, the best.
    let simplest = |layouts: Vec<(f64, Layout)>| {
        let least = layouts
            .iter()
            .map(|(error, _)| *error)
            .fold(f64::INFINITY, f64::min);
        let good = layouts
            .into_iter()
            .filter(|(error, _)| *error * BETTER <= least);
        good.min_by_key(|(_, layout)| layout.complexity())
            .unwrap_or((f64::INFINITY, Layout::flat()))
    };
    let fitted = layouts.iter().take(FINALISTS).filter_map(|(_, layout)| {
        let error = error_along(layout, BitsPolicy::Fitted)?;
        Some((error, layout.clone()))
    });
    let bits = match specimen.goal {
        Goal::Rate(_) => specimen.bits,
        // There is nothing to share out.
        Goal::Tolerance(_) | Goal::Exact => Some(BitsPolicy::Even),
    };
    match bits {
        Some(BitsPolicy::Even) => (simplest(layouts).1, BitsPolicy::Even),
        Some(BitsPolicy::Fitted) => (simplest(fitted.collect()).1, BitsPolicy::Fitted),
        None => {
            let (fitted, even) = (simplest(fitted.collect()), simplest(layouts));
            // Blocks at a coast are the busy ones, wherever the window may lie: with bits shared out evenly
            // they were measured to be ten times worse.
            if !holes.is_empty() && fitted.0.is_finite() || fitted.0 < even.0 * WORTH_FITTING {
                (fitted.1, BitsPolicy::Fitted)
            } else {
                (even.1, BitsPolicy::Even)
            }
        }
    }
}

/// Layouts and their errors, the best first.
fn contest(
    pattern: Pattern,
    specimen: Specimen,
    strides: &[usize],
    error_along: &impl Fn(&Layout, BitsPolicy) -> Option<f64>,
) -> Vec<(f64, Layout)> {
    let mut scored: Vec<(f64, Layout)> = Vec::new();
    let score = |layouts: Vec<Layout>, scored: &mut Vec<(f64, Layout)>| {
        for layout in layouts {
            let error = error_along(&layout, BitsPolicy::Even);
            scored.extend(error.map(|error| (error, layout)));
        }
        scored.sort_by(|one, other| one.0.total_cmp(&other.0));
    };
    let mut first = candidates::first(pattern.divisor, strides, pattern.complex);
    first.extend(candidates::of_datatype(specimen.datatype, pattern.complex));
    score(first, &mut scored);
    for finer in [candidates::smoothed, candidates::refined] {
        let finalists = scored.iter().take(FINALISTS);
        let layouts = finalists
            .flat_map(|(_, layout)| finer(layout, strides))
            .collect();
        score(layouts, &mut scored);
    }
    scored
}

/// What the message loses around `focus` when it is coded along a layout (see [`codec::trial`]).
///
/// # Safety
/// As [`Inference::choose`].
unsafe fn error_along(
    layout: &Layout,
    bits: BitsPolicy,
    pattern: Pattern,
    specimen: Specimen,
    focus: usize,
    lanes: usize,
    holes: &[bool],
) -> Option<f64> {
    let window = window(&layout.resolve(specimen.count)?, focus, lanes);
    let Specimen { values, goal, .. } = specimen;
    let fitted = bits == BitsPolicy::Fitted;
    // SAFETY: the window is a part of the message.
    unsafe { codec::trial(pattern.element, values, &window, goal, lanes, fitted, holes) }
}

/// A box of a message that holds `focus`, about as long along each smooth axis. Axes within the `lanes` are
/// not cut, so that every quantity is in it.
fn window(axes: &Axes, focus: usize, lanes: usize) -> Window {
    let mut reach = 1;
    let is_cut: Vec<bool> = axes
        .iter()
        .map(|&(kind, extent)| {
            reach *= extent as usize;
            kind == Kind::Smooth && reach > lanes
        })
        .collect();
    let mut lengths: Vec<usize> = axes
        .iter()
        .map(|&(kind, extent)| match kind {
            Kind::Field => (extent as usize).min(MOST_FIELDS.max(lanes)),
            _ => extent as usize,
        })
        .collect();
    let whole = is_cut.iter().zip(&lengths).filter(|(is_cut, _)| !**is_cut);
    let mut budget = WINDOW / whole.map(|(_, &length)| length).product::<usize>().max(1);
    // Short axes first, so that what they leave goes to the long ones.
    let mut smooth: Vec<usize> = (0..axes.len()).filter(|&axis| is_cut[axis]).collect();
    smooth.sort_by_key(|&axis| lengths[axis]);
    for (index, &axis) in smooth.iter().enumerate() {
        let axes_left = (smooth.len() - index) as f64;
        let share = (budget as f64).powf(1.0 / axes_left) as usize;
        // Whole blocks, where the axis has more than one.
        lengths[axis] = lengths[axis].min((share / 4 * 4).max(SHORTEST));
        budget /= lengths[axis].max(1);
    }

    let mut stride = 1;
    let (mut start, mut strides) = (0, Vec::new());
    for (&(_, extent), &length) in axes.iter().zip(&lengths) {
        let extent = extent as usize;
        let at = focus / stride % extent;
        let first = at.saturating_sub(length / 2).min(extent - length);
        // Blocks begin at multiples of four.
        start += first / 4 * 4 * stride;
        strides.push(stride);
        stride *= extent;
    }
    let axes = axes
        .iter()
        .zip(lengths)
        .map(|(&(kind, _), length)| (kind, length as u32))
        .collect();
    Window {
        axes,
        strides,
        start,
    }
}

/// The divisor, up to [`MOST_LANES`], whose lanes hold values of the most alike magnitudes; of about equally
/// good ones the smallest. So every quantity of a message has lanes of its own.
///
/// # Safety
/// As [`Inference::choose`].
unsafe fn lanes(pattern: Pattern, specimen: Specimen, focus: usize) -> usize {
    let spreads: Vec<(f64, usize)> = (1..=MOST_LANES.min(pattern.divisor))
        .filter(|&lanes| pattern.divisor.is_multiple_of(lanes))
        .map(|lanes| {
            let Specimen { values, count, .. } = specimen;
            // SAFETY: the caller's promise.
            let spread =
                unsafe { codec::magnitude_spread(pattern.element, values, count, focus, lanes) };
            (spread, lanes)
        })
        .collect();
    let least = spreads
        .iter()
        .map(|(spread, _)| *spread)
        .fold(f64::INFINITY, f64::min);
    let good = spreads
        .iter()
        .find(|(spread, _)| *spread <= least * 1.05 + 1e-3);
    good.map_or(1, |(_, lanes)| *lanes)
}

impl Layout {
    /// One smooth axis.
    fn flat() -> Self {
        Self {
            axes: vec![Axis {
                kind: Kind::Smooth,
                extent: None,
            }],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inferred(values: &[f32], divisor: usize, rate: f64) -> String {
        infer(values, divisor, Goal::Rate(rate), &[], None)
            .0
            .to_string()
    }

    /// Something smooth in three directions, with some small structure.
    fn smooth(x: usize, y: usize, z: usize) -> f32 {
        let (x, y, z) = (x as f32, y as f32, z as f32);
        (0.11 * x).sin() * (0.07 * y).cos() + (0.05 * z + 0.02 * x).sin() + 3.0
    }

    #[test]
    fn a_box_is_found() {
        let (nx, ny, nz) = (48, 36, 20);
        let mut values = Vec::new();
        for z in 0..nz {
            for y in 0..ny {
                values.extend((0..nx).map(|x| smooth(x, y, z)));
            }
        }
        assert_eq!(inferred(&values, nx * ny * nz, 8.0), "48,36,*");
    }

    #[test]
    fn fill_values_do_not_hide_a_box() {
        let (nx, ny, nz) = (48, 36, 20);
        let mut values = Vec::new();
        for z in 0..nz {
            for y in 0..ny {
                let is_land = |x: usize| (10..22).contains(&x) && y > 12;
                values.extend((0..nx).map(|x| if is_land(x) { -1e34 } else { smooth(x, y, z) }));
            }
        }
        // Scales for each x do no harm here, and are as good as none.
        let found = inferred(&values, nx * ny * nz, 8.0);
        assert!(["48,36,*", "48f,36,*"].contains(&&*found), "{found}");
    }

    #[test]
    fn interleaved_fields_of_unlike_magnitude_are_found() {
        let (fields, points) = (10, 700);
        let mut values = Vec::new();
        for point in 0..points {
            for field in 0..fields {
                let scale = 10f32.powi(-(field as i32) * 7 % 13);
                for part in 0..2 {
                    values.push(scale * smooth(point, 17 * field, 40 * part));
                }
            }
        }
        // Real and imaginary parts are as unlike here as two fields are: both readings will do.
        let layout = inferred(&values, 2 * fields, 8.0);
        assert!(["2c,10f,*", "20f,*"].contains(&&*layout), "{layout}");
    }

    #[test]
    fn a_message_of_zeros_is_flat() {
        assert_eq!(inferred(&[0.0; 4800], 4800, 8.0), "*");
    }

    #[test]
    fn windows_lie_within_the_message_and_hold_the_focus() {
        for (text, count) in [
            ("*", 10),
            ("*", 100_000),
            ("512,512,*", 1 << 22),
            ("2c,50f,*", 944_100),
            ("3c,5,*", 45),
        ] {
            let axes = Layout::parse(text).unwrap().resolve(count).unwrap();
            for focus in [0, count / 3, count - 1] {
                let Window {
                    axes: extents,
                    strides,
                    start,
                } = window(&axes, focus, 1);
                let reach: usize = extents
                    .iter()
                    .zip(&strides)
                    .map(|(&(_, extent), stride)| (extent as usize - 1) * stride)
                    .sum();
                assert!(start + reach < count, "{text} {focus}");
                let values: usize = extents.iter().map(|&(_, extent)| extent as usize).product();
                assert!(values <= 2 * WINDOW, "{text} {values}");
            }
        }
    }
}
