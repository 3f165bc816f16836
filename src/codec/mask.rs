//! Fill values: land in an ocean field, missing observations, NaN.
//!
//! One of them ruins every ZFP block it falls into. So they leave the message: where they stand goes into
//! a section of the payload, exactly, and their places are filled with values like their neighbours'.

use super::float::Float;
use super::survey::{Survey, spread};

/// Different fill values of one message, at most.
const MOST_FILLS: usize = 4;
/// A value must occur this often to be a fill value, and in one of so many places.
const FEWEST: usize = 3;
const RAREST: usize = 10_000;
/// Values looked at for the range of what is not fill.
pub const SAMPLE: usize = 1024;
/// Times that holes are smoothed.
const SWEEPS: usize = 3;

/// Fill values and their places.
#[derive(Clone, Debug, PartialEq)]
pub struct Mask {
    /// Bits of each fill value.
    fills: Vec<u64>,
    /// Runs of one fill value: values before it since the last run, its length, and which it is.
    runs: Vec<(usize, usize, usize)>,
}

/// The values that cannot be coded are more different than a mask can hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManyFills;

impl Mask {
    /// The mask of a message; `None` where it has no fill values.
    pub fn find<T: Float>(values: &[T], survey: &Survey<T>) -> Result<Option<Self>, TooManyFills> {
        let mut fills = Vec::new();
        if !survey.codable {
            for value in values.iter().filter(|value| !value.is_codable()) {
                if !fills.contains(&value.bits()) {
                    fills.push(value.bits());
                }
                if fills.len() > MOST_FILLS {
                    return Err(TooManyFills);
                }
            }
        }
        while fills.len() < MOST_FILLS {
            let Some(fill) = outlying_fill(values, survey, &fills) else {
                break;
            };
            fills.push(fill);
        }
        Ok((!fills.is_empty()).then(|| Self {
            runs: runs(values, &fills),
            fills,
        }))
    }

    /// [`fill_holes`] for the fill values of a message.
    pub fn fill<T: Float>(&self, values: &mut [T], smooth: &[(usize, usize)]) {
        fill_holes(values, &self.holes(values.len()), smooth);
    }

    /// For each of `count` values, whether it is a fill value.
    fn holes(&self, count: usize) -> Vec<bool> {
        let mut holes = vec![false; count];
        self.each_run(count, |run, _| holes[run].fill(true));
        holes
    }

    /// Puts the fill values back in their places.
    pub fn restore<T: Float>(&self, values: &mut [T]) {
        self.each_run(values.len(), |run, fill| {
            values[run].fill(T::from_bits(self.fills[fill]));
        });
    }

    fn each_run(&self, count: usize, mut f: impl FnMut(std::ops::Range<usize>, usize)) {
        let mut at = 0;
        for &(gap, length, fill) in &self.runs {
            let start = (at + gap).min(count);
            at = start.saturating_add(length).min(count);
            f(start..at, fill);
        }
    }

    /// The section of the payload that holds the mask. Its first word has its length in words (low half),
    /// the number of fill values, and 1 at bit 56 where places are a bitmap.
    pub fn to_words(&self, count: usize) -> Vec<u64> {
        let mut bytes = Vec::new();
        for &(gap, length, fill) in &self.runs {
            put_varint(&mut bytes, gap as u64);
            put_varint(&mut bytes, (length as u64) << 2 | fill as u64);
        }
        let is_bitmap = self.fills.len() == 1 && count.div_ceil(8) < bytes.len();
        if is_bitmap {
            bytes = vec![0; count.div_ceil(8)];
            self.each_run(count, |run, _| {
                run.for_each(|at| bytes[at / 8] |= 1 << (at % 8))
            });
        }
        let length = 1 + self.fills.len() + bytes.len().div_ceil(8);
        let head = length as u64 | (self.fills.len() as u64) << 32 | u64::from(is_bitmap) << 56;
        let words = bytes.chunks(8).map(|bytes| {
            bytes
                .iter()
                .rev()
                .fold(0u64, |word, &byte| word << 8 | u64::from(byte))
        });
        std::iter::once(head)
            .chain(self.fills.iter().copied())
            .chain(words)
            .collect()
    }

    /// Reads a section; the mask, and how many words it took. `None` where it cannot be one.
    pub fn from_words(words: &[u64], count: usize) -> Option<(Self, usize)> {
        let head = *words.first()?;
        let length = (head & 0xffff_ffff) as usize;
        let fill_count = (head >> 32 & 0xff_ffff) as usize;
        if !(1..=MOST_FILLS).contains(&fill_count) || length < 1 + fill_count {
            return None;
        }
        let section = words.get(..length)?;
        let fills = section[1..=fill_count].to_vec();
        let bytes: Vec<u8> = section[1 + fill_count..]
            .iter()
            .flat_map(|word| word.to_le_bytes())
            .collect();
        let runs = if head >> 56 == 1 {
            bitmap_runs(&bytes, count)?
        } else {
            varint_runs(&bytes, count, fill_count)?
        };
        Some((Self { fills, runs }, length))
    }
}

/// For each value, whether a message of these values would carry it apart from the others: fill values, and
/// what no codec takes.
pub fn fill_values<T: Float>(values: &[T]) -> Vec<bool> {
    let mask = Survey::of(values).and_then(|survey| Mask::find(values, &survey).ok()?);
    match mask {
        Some(mask) => mask.holes(values.len()),
        None => values.iter().map(|value| !value.is_codable()).collect(),
    }
}

/// A copy with fill values replaced by what lies on straight lines between their neighbours, and where they
/// are; `None` where there are none.
pub fn without_fill_values<T: Float>(values: &[T]) -> Option<(Vec<T>, Vec<bool>)> {
    let mask = Mask::find(values, &Survey::of(values)?).ok()??;
    let (mut filled, holes) = (values.to_vec(), mask.holes(values.len()));
    fill_holes(&mut filled, &holes, &[(1, values.len())]);
    Some((filled, holes))
}

/// Replaces the values where there are holes by values like their neighbours' along the `smooth` axes, each
/// given as the distance of neighbours and the extent: first by straight lines along the first axis, then
/// by the means of the values around, a few times over.
pub fn fill_holes<T: Float>(values: &mut [T], holes: &[bool], smooth: &[(usize, usize)]) {
    let stride = smooth.first().map_or(1, |&(stride, _)| stride);
    for lane in 0..stride.min(values.len()) {
        fill_lane(values, holes, lane, stride);
    }
    if smooth.len() > 1 {
        for _ in 0..SWEEPS {
            for at in (0..values.len()).filter(|&at| holes[at]) {
                values[at] = mean_around(values, at, smooth);
            }
        }
    }
}

/// The largest or the smallest value, where it is repeated and stands apart from all others.
fn outlying_fill<T: Float>(values: &[T], survey: &Survey<T>, fills: &[u64]) -> Option<u64> {
    let rest = |value: &T| value.is_codable() && !fills.contains(&value.bits());
    let (smallest, largest) = if fills.is_empty() {
        (survey.smallest, survey.largest)
    } else {
        extremes_of(values.iter().copied().filter(rest))?
    };
    [largest, smallest].into_iter().find_map(|extreme| {
        let is_other = |value: &T| rest(value) && value.bits() != extreme.bits();
        // Where nearly all is fill, a sample may hold nothing else.
        let (low, high) = extremes_of(spread(values, SAMPLE).filter(is_other))
            .or_else(|| extremes_of(values.iter().copied().filter(is_other)))?;
        if !stands_apart(extreme, low, high) {
            return None;
        }
        let times = values
            .iter()
            .filter(|value| value.bits() == extreme.bits())
            .count();
        is_often(times, values.len()).then(|| extreme.bits())
    })
}

/// Whether a value is far from the range of others.
fn stands_apart<T: Float>(extreme: T, low: T, high: T) -> bool {
    let (low, high, extreme): (f64, f64, f64) = (low.into(), high.into(), extreme.into());
    let margin = (high - low) / 2.0;
    !(low - margin..=high + margin).contains(&extreme)
}

/// Whether a value that so many of `count` are is a fill value, if it stands apart.
pub fn is_often(times: usize, count: usize) -> bool {
    times >= FEWEST.max(count / RAREST)
}

/// The extremes of a message that are fill values if they occur often, as far as [`SAMPLE`] of its values, evenly
/// spread, can tell; `None` where they cannot. All its values can be coded.
pub fn suspects<T: Float>(sample: &[T], survey: &Survey<T>) -> Option<Vec<T>> {
    let mut found = Vec::new();
    for extreme in [survey.largest, survey.smallest] {
        let others = sample.iter().copied();
        let (low, high) = extremes_of(others.filter(|value| value.bits() != extreme.bits()))?;
        if stands_apart(extreme, low, high) {
            found.push(extreme);
        }
    }
    Some(found)
}

fn extremes_of<T: Float>(values: impl Iterator<Item = T>) -> Option<(T, T)> {
    values.fold(None, |extremes, value| {
        let (low, high) = extremes.unwrap_or((value, value));
        Some((
            if value.order() < low.order() {
                value
            } else {
                low
            },
            if value.order() > high.order() {
                value
            } else {
                high
            },
        ))
    })
}

fn runs<T: Float>(values: &[T], fills: &[u64]) -> Vec<(usize, usize, usize)> {
    let which = |value: &T| fills.iter().position(|&fill| fill == value.bits());
    let mut runs = Vec::new();
    let mut end = 0;
    for same in values.chunk_by(|a, b| which(a) == which(b)) {
        let start = same
            .as_ptr_range()
            .start
            .addr()
            .wrapping_sub(values.as_ptr().addr())
            / size_of::<T>();
        if let Some(fill) = same.first().and_then(which) {
            runs.push((start - end, same.len(), fill));
            end = start + same.len();
        }
    }
    runs
}

/// The mean of the neighbours of a value along some axes.
fn mean_around<T: Float>(values: &[T], at: usize, axes: &[(usize, usize)]) -> T {
    let (mut sum, mut count) = (0.0, 0.0);
    for &(stride, extent) in axes {
        let place = at / stride % extent;
        let before = (place > 0).then(|| at - stride);
        let after = (place + 1 < extent).then_some(at + stride);
        for neighbour in before.into_iter().chain(after) {
            sum += values[neighbour].into();
            count += 1.0;
        }
    }
    if count == 0.0 {
        values[at]
    } else {
        T::from_f64(sum / count)
    }
}

fn fill_lane<T: Float>(values: &mut [T], holes: &[bool], lane: usize, stride: usize) {
    let mut before: Option<usize> = None;
    let mut at = lane;
    while at < values.len() {
        if !holes[at] {
            before = Some(at);
            at += stride;
            continue;
        }
        let after = (at..values.len())
            .step_by(stride)
            .find(|&next| !holes[next]);
        let end = after.unwrap_or(values.len());
        let (from, to) = match (before, after) {
            (Some(before), Some(after)) => (values[before], values[after]),
            (Some(edge), None) | (None, Some(edge)) => (values[edge], values[edge]),
            (None, None) => (T::default(), T::default()),
        };
        let (from, to): (f64, f64) = (from.into(), to.into());
        let steps = (end.saturating_sub(at)).div_ceil(stride) as f64 + 1.0;
        let mut step = 1.0;
        while at < end {
            values[at] = T::from_f64(from + (to - from) * (step / steps));
            step += 1.0;
            at += stride;
        }
    }
}

fn put_varint(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

fn take_varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0u64;
    for shift in (0..63).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

fn varint_runs(mut bytes: &[u8], count: usize, fills: usize) -> Option<Vec<(usize, usize, usize)>> {
    let mut runs = Vec::new();
    let mut end = 0usize;
    // The section ends with less than a word of padding, which reads as runs of no length.
    while !bytes.is_empty() {
        let gap = take_varint(&mut bytes)? as usize;
        let Some(run) = take_varint(&mut bytes) else {
            break;
        };
        let (length, fill) = ((run >> 2) as usize, (run & 3) as usize);
        if length == 0 {
            break;
        }
        end = end
            .checked_add(gap)?
            .checked_add(length)
            .filter(|&end| end <= count)?;
        if fill >= fills {
            return None;
        }
        runs.push((gap, length, fill));
    }
    Some(runs)
}

fn bitmap_runs(bytes: &[u8], count: usize) -> Option<Vec<(usize, usize, usize)>> {
    if bytes.len() < count.div_ceil(8) {
        return None;
    }
    let is_set = |at: usize| bytes[at / 8] >> (at % 8) & 1 == 1;
    let mut runs = Vec::new();
    let (mut at, mut end) = (0, 0);
    while at < count {
        if !is_set(at) {
            at += 1;
            continue;
        }
        let start = at;
        while at < count && is_set(at) {
            at += 1;
        }
        runs.push((start - end, at - start, 0));
        end = at;
    }
    Some(runs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn find(values: &[f32]) -> Option<Mask> {
        Mask::find(values, &Survey::of(values).unwrap()).unwrap()
    }

    /// A smooth field with `fill` where `is_land`.
    fn field(count: usize, fill: f32, is_land: impl Fn(usize) -> bool) -> Vec<f32> {
        (0..count)
            .map(|i| {
                if is_land(i) {
                    fill
                } else {
                    280.0 + (i as f32 * 0.01).sin() * 20.0
                }
            })
            .collect()
    }

    #[test]
    fn the_usual_fill_values_are_found_and_come_back_exactly() {
        for fill in [
            1e20,
            9.96921e36,
            -1e34,
            -9999.0,
            -1e10,
            f32::NAN,
            f32::INFINITY,
            0.0,
        ] {
            let values = field(5000, fill, |i| i % 100 < 30);
            let mask = find(&values).expect("a fill value");
            let mut filled = values.clone();
            mask.fill(&mut filled, &[(1, 5000)]);
            assert!(
                filled.iter().all(|value| (250.0..310.0).contains(value)),
                "{fill}"
            );
            let words = mask.to_words(values.len());
            let (read, length) = Mask::from_words(&words, values.len()).unwrap();
            assert_eq!((&read, length), (&mask, words.len()));
            read.restore(&mut filled);
            let bits = |values: &[f32]| values.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
            assert_eq!(bits(&filled), bits(&values));
        }
    }

    #[test]
    fn ordinary_fields_have_none() {
        assert_eq!(find(&field(5000, 0.0, |_| false)), None);
        // Rain: many exact zeros at the edge of the range, but not apart from it.
        let rain: Vec<f32> = (0..5000)
            .map(|i| ((i as f32 * 0.1).sin() - 0.5).max(0.0))
            .collect();
        assert_eq!(find(&rain), None);
        // One spike is data.
        let mut spike = field(5000, 0.0, |_| false);
        spike[777] = 1e20;
        assert_eq!(find(&spike), None);
    }

    #[test]
    fn a_lake_in_a_continent_is_seen() {
        for wet in [1, 3] {
            let mut values = vec![1e20f32; 20_000];
            values[777..777 + wet].fill(281.5);
            assert_eq!(find(&values).expect("a fill value").fills, [1e20f32.bits()]);
        }
    }

    #[test]
    fn holes_are_smoothed_across_axes() {
        // A plane with a square hole: what is put in lies between the edges on all four sides.
        let mut values: Vec<f32> = (0..400).map(|i| (i / 20) as f32 + 1.5).collect();
        for y in 5..9 {
            values[y * 20 + 5..y * 20 + 9].fill(f32::NAN);
        }
        let mask = find(&values).unwrap();
        mask.fill(&mut values, &[(1, 20), (20, 20)]);
        for (i, value) in values.iter().enumerate() {
            assert!((value - ((i / 20) as f32 + 1.5)).abs() < 0.3, "{i} {value}");
        }
    }

    #[test]
    fn two_fill_values_and_scattered_ones() {
        let mut values = field(5000, 1e20, |i| i % 7 == 0);
        for at in (3..5000).step_by(11) {
            values[at] = f32::NAN;
        }
        let mask = find(&values).unwrap();
        assert_eq!(mask.fills.len(), 2);
        let scattered = find(&field(5000, -1e34, |i| i % 3 == 0)).unwrap();
        assert_eq!(scattered.to_words(5000)[0] >> 56, 1, "a bitmap is shorter");
        assert_eq!(scattered.to_words(5000).len(), 2 + 5000usize.div_ceil(64));
    }

    #[test]
    fn too_many_different_infinities_are_refused() {
        let values: Vec<f32> = (0..10).map(|i| f32::from_bits(0x7fc0_0000 + i)).collect();
        assert_eq!(
            Mask::find(&values, &Survey::of(&values).unwrap()),
            Err(TooManyFills)
        );
    }

    #[test]
    fn holes_are_filled_along_their_own_lane() {
        let mut values = [
            1.0f32,
            100.0,
            f32::NAN,
            200.0,
            3.0,
            f32::NAN,
            f32::NAN,
            400.0,
        ];
        let mask = find(&values).unwrap();
        mask.fill(&mut values, &[(2, 4)]);
        assert_eq!(values, [1.0, 100.0, 2.0, 200.0, 3.0, 300.0, 3.0, 400.0]);
    }

    proptest! {
        #[test]
        fn any_words_are_read_without_harm(words in prop::collection::vec(any::<u64>(), 0..20), count in 0usize..2000) {
            if let Some((mask, length)) = Mask::from_words(&words, count) {
                prop_assert!(length <= words.len());
                mask.restore(&mut vec![0f32; count]);
            }
        }

        #[test]
        fn any_small_head_is_read_without_harm(fills in 0u64..6, length in 0u64..30, bitmap in 0u64..3, rest in prop::collection::vec(any::<u64>(), 0..30)) {
            let mut words = vec![length | fills << 32 | bitmap << 56];
            words.extend(rest);
            if let Some((mask, _)) = Mask::from_words(&words, 1000) {
                mask.restore(&mut vec![0f64; 1000]);
            }
        }
    }
}
