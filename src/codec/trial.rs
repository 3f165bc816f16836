//! What a layout would be worth, found by coding a part of a message along it.

use super::bound::Bound;
use super::boxes::Boxes;
use super::float::Float;
use super::plan::{self, Plan};
use super::{Coding, Element, decode, fit, lossless, mask, scale, zfp};
use crate::layout::{Axes, without_scales};

/// A box within a message, cut out along a layout's axes.
#[derive(Clone, Debug, PartialEq)]
pub struct Window {
    /// Extents of the box, fastest first.
    pub axes: Axes,
    /// Distance in the message of neighbours along each axis.
    pub strides: Vec<usize>,
    /// Index in the message of the first value.
    pub start: usize,
}

impl Window {
    /// Indices in the message of the values of the box, in the order of its axes.
    fn indices(&self) -> Vec<usize> {
        self.axes.iter().zip(&self.strides).fold(
            vec![self.start],
            |inner, (&(_, extent), stride)| {
                (0..extent as usize)
                    .flat_map(|step| inner.iter().map(move |index| index + step * stride))
                    .collect()
            },
        )
    }
}

/// What a message is to come to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Goal {
    /// So many bits per value.
    Rate(f64),
    /// No larger absolute error.
    Tolerance(f64),
    /// No error at all.
    Exact,
}

/// What a window loses when it is coded for a goal. Where errors are bounded that is 2 to the bits per value, as a
/// bit more halves errors. At a rate it is the error, with bits shared out evenly or fitted: the root mean square of
/// the errors of the lanes. A lane is every `lanes`-th value of the message, so that with several
/// quantities side by side the small ones count as much as the large ones; its error is relative to its
/// typical magnitude, (mean of √|x|)², so that a mean that is stored beside anomalies does not hide them.
/// `None` where the axes cannot be coded. Where `holes` (none, or one for each value of the message) says
/// so, a value is made up from its neighbours and does not count.
///
/// # Safety
/// `values` must point to the readable values of a message, aligned for the element, with the window in it.
pub unsafe fn trial(
    element: Element,
    values: *const u8,
    window: &Window,
    goal: Goal,
    lanes: usize,
    fitted: bool,
    holes: &[bool],
) -> Option<f64> {
    // SAFETY: the caller's promise, handed on.
    unsafe {
        match element {
            Element::F32 => {
                let values = values.cast::<f32>();
                try_elements(values, window, goal, lanes, fitted, holes)
            }
            Element::F64 => {
                let values = values.cast::<f64>();
                try_elements(values, window, goal, lanes, fitted, holes)
            }
        }
    }
}

/// # Safety
/// As [`trial`].
unsafe fn try_elements<T: Float>(
    message: *const T,
    window: &Window,
    goal: Goal,
    lanes: usize,
    fitted: bool,
    holes: &[bool],
) -> Option<f64> {
    let indices = window.indices();
    // SAFETY: the caller promised that the window lies in the message.
    let mut values: Vec<T> = indices
        .iter()
        .map(|&index| unsafe { *message.add(index) })
        .collect();
    if !values.iter().all(|value| value.is_codable()) {
        return None;
    }
    let is_hole: Vec<bool> = indices
        .iter()
        .map(|&index| holes.get(index).copied().unwrap_or(false))
        .collect();
    if is_hole.contains(&true) {
        let smooth = plan::smooth(&window.axes, values.len());
        mask::fill_holes(&mut values, &is_hole, &smooth);
    }
    let Goal::Rate(rate) = goal else {
        let words = words_along(&values, &window.axes, goal)?;
        return Some((words as f64 * 64.0 / values.len() as f64).exp2());
    };
    let mut words = vec![0u64; (values.len() as f64 * rate / 64.0).ceil() as usize];
    let plan = Plan::new(
        Coding::Zfp,
        T::ELEMENT,
        values.len(),
        &window.axes,
        words.len(),
    )?;
    let (scales, streams) = words.split_at_mut(plan.scale_words());
    let scaled = plan
        .fields
        .as_ref()
        .map(|fields| scale::apply(&values, fields, scales));
    let source = scaled.as_deref().unwrap_or(&values);
    if fitted {
        let peak = fit::peak(source);
        fit::encode(&plan.boxes, source, peak, None, streams, 1)?;
    } else {
        // SAFETY: the source holds all values of the window.
        let jobs = unsafe {
            plan.boxes
                .encode_jobs(source.as_ptr(), &plan.boxes.even(), streams)
        };
        // SAFETY: the jobs read the source and write to streams of their own.
        unsafe { zfp::encode(&jobs, 1) };
    }
    let mut back = vec![T::default(); values.len()];
    decode::decode_streams(&plan, fitted, streams, &mut back, 1);
    if let Some(fields) = &plan.fields {
        scale::undo(&mut back, fields, scales);
    }
    let lanes = lanes.max(1);
    let places = indices.iter().zip(is_hole).zip(values.iter().zip(&back));
    let wanted = places.filter(|((_, is_hole), _)| !is_hole);
    Some(lane_error(
        wanted.map(|((index, _), pair)| (pair, index % lanes)),
        lanes,
    ))
}

/// The words that values take where errors are bounded; `None` where coding would not make them shorter.
fn words_along<T: Float>(values: &[T], axes: &Axes, goal: Goal) -> Option<usize> {
    let mut axes = axes.clone();
    without_scales(&mut axes, values.len());
    let boxes = Boxes::new(T::ELEMENT, values.len(), &axes, Boxes::UNLIMITED)?;
    let mut room = vec![0u64; size_of_val(values).div_ceil(8)];
    match goal {
        Goal::Tolerance(tolerance) => {
            let peak = fit::peak(values);
            let (bound, _) = Bound::of_tolerance::<T>(tolerance, boxes.dims(), peak);
            fit::encode_bounded(&boxes, values, bound, &mut room, 1)
        }
        _ => lossless::encode(&boxes, values, &mut room),
    }
}

fn lane_error<'a, T: Float>(
    values: impl Iterator<Item = ((&'a T, &'a T), usize)>,
    lanes: usize,
) -> f64 {
    let mut sums = vec![(0.0, 0.0, 0u32); lanes];
    for ((&value, &back), lane) in values {
        let (value, back): (f64, f64) = (value.into(), back.into());
        let (squares, roots, count) = &mut sums[lane];
        *squares += (value - back) * (value - back);
        *roots += value.abs().sqrt();
        *count += 1;
    }
    // A lane cannot be worse than lost, and one without values other than zero has nothing to lose.
    let errors =
        sums.iter()
            .filter(|(_, roots, _)| *roots > 0.0)
            .map(|&(squares, roots, count)| {
                let typical = (roots / f64::from(count)).powi(2);
                (squares / f64::from(count) / (typical * typical)).min(1.0)
            });
    let (sum, lanes) = errors.fold((0.0, 0u32), |(sum, lanes), error| (sum + error, lanes + 1));
    if lanes == 0 {
        0.0
    } else {
        (sum / f64::from(lanes)).sqrt()
    }
}

/// Calls a function of values, generic over their type, with the `count` values of an element at a pointer.
macro_rules! with_values {
    ($element:ident, $values:ident, $count:ident, $function:ident($($argument:ident),*)) => {
        match $element {
            Element::F32 => {
                $function(std::slice::from_raw_parts($values.cast::<f32>(), $count), $($argument),*)
            }
            Element::F64 => {
                $function(std::slice::from_raw_parts($values.cast::<f64>(), $count), $($argument),*)
            }
        }
    };
}

/// The index around which most of a message's energy (sum of squares) lies, looked for in pieces; 0 where
/// there is none.
///
/// # Safety
/// `values` must point to `count` readable values of the element, aligned for it.
pub unsafe fn focus(element: Element, values: *const u8, count: usize) -> usize {
    const PIECE: usize = 512;
    fn strongest<T: Float>(values: &[T]) -> usize {
        let energy = |piece: &[T]| {
            let squares = piece
                .iter()
                .filter(|value| value.is_codable())
                .map(|&value| {
                    let value: f64 = value.into();
                    value * value
                });
            squares.sum::<f64>()
        };
        let pieces = values.chunks(PIECE).map(energy).enumerate();
        let strongest = pieces.max_by(|one, other| one.1.total_cmp(&other.1));
        strongest.map_or(0, |(piece, _)| {
            (piece * PIECE + PIECE / 2).min(values.len() - 1)
        })
    }
    // SAFETY: the caller's promise.
    unsafe { with_values!(element, values, count, strongest()) }
}

/// Pairs that [`roughness`] looks at.
const PAIRS: usize = 512;

/// How unlike values are that lie `stride` apart, around `focus`: the mean of |a − b| ÷ (|a| + |b|), from 0
/// (alike) to 1. It does not depend on magnitudes, which may differ from value to value.
///
/// # Safety
/// `values` must point to `count` readable values of the element, aligned for it.
pub unsafe fn roughness(
    element: Element,
    values: *const u8,
    count: usize,
    focus: usize,
    stride: usize,
) -> f64 {
    fn of<T: Float>(values: &[T], focus: usize, stride: usize) -> f64 {
        let Some(last) = values.len().checked_sub(stride + 1) else {
            return 1.0;
        };
        let first = focus
            .saturating_sub(PAIRS / 2)
            .min(last.saturating_sub(PAIRS));
        let pairs = (first..=last)
            .take(PAIRS)
            .map(|at| (values[at].into(), values[at + stride].into()));
        let (sum, pairs) = pairs
            .filter(|(a, b): &(f64, f64)| (a.abs() + b.abs()).is_normal())
            .fold((0.0, 0u32), |(sum, pairs), (a, b)| {
                (sum + (a - b).abs() / (a.abs() + b.abs()), pairs + 1)
            });
        if pairs == 0 {
            1.0
        } else {
            sum / f64::from(pairs)
        }
    }
    // SAFETY: the caller's promise.
    unsafe { with_values!(element, values, count, of(focus, stride)) }
}

/// Values that [`magnitude_spread`] looks at.
const MAGNITUDES: usize = 1 << 14;

/// How unlike in magnitude the values of a lane are, around `focus`: the mean over the lanes of the variance
/// of log2 |x|. It is least where a lane holds values of one quantity only.
///
/// # Safety
/// `values` must point to `count` readable values of the element, aligned for it.
pub unsafe fn magnitude_spread(
    element: Element,
    values: *const u8,
    count: usize,
    focus: usize,
    lanes: usize,
) -> f64 {
    fn of<T: Float>(values: &[T], focus: usize, lanes: usize) -> f64 {
        let first = focus.saturating_sub(MAGNITUDES / 2);
        let first = first.min(values.len().saturating_sub(MAGNITUDES));
        // Sums of log2 |x| and of its square, and how many.
        let mut sums = vec![(0.0, 0.0, 0.0); lanes];
        for (index, &value) in values[first..].iter().take(MAGNITUDES).enumerate() {
            let magnitude = value.into().abs();
            if magnitude.is_normal() {
                let log = magnitude.log2();
                let (sum, squares, count) = &mut sums[(first + index) % lanes];
                (*sum, *squares, *count) = (*sum + log, *squares + log * log, *count + 1.0);
            }
        }
        let known = sums.into_iter().filter(|(.., count)| *count > 1.0);
        let variances = known.map(|(sum, squares, count): (f64, f64, f64)| {
            (squares - sum * sum / count) / (count - 1.0)
        });
        let (sum, lanes) = variances.fold((0.0, 0u32), |(sum, lanes), one| (sum + one, lanes + 1));
        if lanes == 0 {
            f64::INFINITY
        } else {
            sum / f64::from(lanes)
        }
    }
    // SAFETY: the caller's promise.
    unsafe { with_values!(element, values, count, of(focus, lanes)) }
}
