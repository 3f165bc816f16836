//! One error bound for all blocks of a message, the smallest for which it fits its bytes.
//!
//! With as many bits for every block, a quiet block keeps digits that a busy one next to it has lost. Here
//! each block takes what the bound asks for (libzfp's fixed accuracy), and bits that quiet blocks leave go to the
//! busy ones. The message has the same length all the same.
//!
//! The bound, a power of two, leads the streams: one word with its exponent, then one with the length in
//! words of each stream, then for each long one eight words with the lengths in bits of its sixteen parts, so that
//! these can be decoded side by side.

use super::bound::Bound;
use super::boxes::{Boxes, Streams};
use super::float::Float;
use super::scale::exponent_of;
use super::survey::Survey;
use super::zfp::{self, Grid, SEGMENTS, Segments, Value};
use std::ops::Range;

/// A bound that fits is kept for the next message of its kind unless it leaves so many bits per value.
const WASTE: f64 = 1.25;
/// Bounds this much below the largest magnitude, as a power of two, are exact for all that matters.
const FINEST: i16 = 60;

/// A search begins with one of so many parts of the blocks, if there are this many. (An odd number does not keep in time
/// with rows of even length.)
const PART: usize = 15;
const FEWEST_BLOCKS: usize = 1 << 12;

/// Codes the values with the smallest bound that fits, from `hint` on, the exponent of an earlier message's.
/// `peak` is their largest magnitude. Returns the exponent; `None` where none fits.
pub fn encode<T: Float>(
    boxes: &Boxes,
    values: &[T],
    peak: f64,
    hint: Option<i16>,
    room: &mut [u64],
    threads: usize,
) -> Option<i16> {
    let peak = exponent_of(peak);
    let (lowest, highest) = (peak - FINEST, peak + 1);
    let room_words = room.len();
    let bits_per_value = (room_words * 64 / values.len().max(1)).min(64) as i16;
    let guess = (peak - bits_per_value).max(lowest);
    let waste = |words: usize| words as f64 * 64.0 / values.len() as f64;
    let mut tries = Tries {
        left: |exponent| try_bound(boxes, values, Bound::of_exponent(exponent), room, threads),
        last: None,
        bad: lowest - 1,
        good: i16::MAX,
    };
    let hint = hint.map(|hint| hint.clamp(lowest, highest));
    if let Some(hint) = hint
        && tries.make(hint).is_some_and(|left| waste(left) < WASTE)
    {
        return Some(hint);
    }
    let first = likely(boxes, values, room_words, lowest..highest);
    let first = first.or(hint).unwrap_or(guess);
    let found = if tries.fits(first) {
        smallest_below(first, lowest, &mut |exponent| tries.fits(exponent))
    } else {
        smallest_above(first, highest, &mut |exponent| tries.fits(exponent))?
    };
    // One that did not fit may have overwritten it since.
    let is_there = tries.last == Some(found) || tries.make(found).is_some();
    is_there.then_some(found)
}

/// What is known of exponents.
struct Tries<F> {
    /// Codes the values; the words that are left, if they fit.
    left: F,
    last: Option<i16>,
    /// The largest one that does not fit, and the smallest one that does.
    bad: i16,
    good: i16,
}

impl<F: FnMut(i16) -> Option<usize>> Tries<F> {
    fn make(&mut self, exponent: i16) -> Option<usize> {
        self.last = Some(exponent);
        let left = (self.left)(exponent);
        match left {
            Some(_) => self.good = exponent,
            None => self.bad = exponent,
        }
        left
    }

    fn fits(&mut self, exponent: i16) -> bool {
        exponent >= self.good || exponent > self.bad && self.make(exponent).is_some()
    }
}

/// Codes the values with a bound. Returns the words that it takes; `None` where there are not as many.
pub fn encode_bounded<T: Float>(
    boxes: &Boxes,
    values: &[T],
    bound: Bound,
    room: &mut [u64],
    threads: usize,
) -> Option<usize> {
    try_bound(boxes, values, bound, room, threads).map(|left| room.len() - left)
}

/// One below the smallest exponent that is likely to fit, by a part of the blocks; of a short message none. It is tried
/// first, as the one that fits is to be the last.
fn likely<T: Float>(
    boxes: &Boxes,
    values: &[T],
    words: usize,
    exponents: Range<i16>,
) -> Option<i16> {
    if boxes.blocks() < FEWEST_BLOCKS {
        return None;
    }
    let bits = |exponent| {
        let mode = Bound::of_exponent(exponent).mode();
        let bits_of = |index| {
            // SAFETY: `values` are those of the whole message.
            unsafe { zfp::estimate_bits(&boxes.encode_job(index, values.as_ptr(), mode), PART) }
        };
        (0..boxes.len()).map(bits_of).sum::<usize>()
    };
    let mut fits = |exponent| bits(exponent) <= 64 * words;
    let smallest = bisect(exponents.start - 1, exponents.end, &mut fits);
    Some((smallest - 1).max(exponents.start))
}

/// The smallest exponent from `lowest` on that fits, when `good` does.
fn smallest_below(good: i16, lowest: i16, fits: &mut impl FnMut(i16) -> bool) -> i16 {
    let (mut good, mut step) = (good, 1);
    while good > lowest {
        let next = (good - step).max(lowest);
        if !fits(next) {
            return bisect(next, good, fits);
        }
        good = next;
        step *= 2;
    }
    good
}

/// The smallest exponent up to `highest` that fits, when `bad` does not; `None` where none does.
fn smallest_above(bad: i16, highest: i16, fits: &mut impl FnMut(i16) -> bool) -> Option<i16> {
    let (mut bad, mut step) = (bad, 1);
    while bad < highest {
        let next = (bad + step).min(highest);
        if fits(next) {
            return Some(bisect(bad, next, fits));
        }
        bad = next;
        step *= 2;
    }
    None
}

/// The smallest exponent that fits, between one that does not and one that does.
fn bisect(mut bad: i16, mut good: i16, fits: &mut impl FnMut(i16) -> bool) -> i16 {
    while good - bad > 1 {
        let middle = bad + (good - bad) / 2;
        if fits(middle) {
            good = middle
        } else {
            bad = middle
        }
    }
    good
}

/// The largest magnitude of finite values.
pub fn peak<T: Float>(values: &[T]) -> f64 {
    Survey::of(values).map_or(0.0, |survey| survey.peak())
}

/// Codes the values with a bound. Returns the words that are left; `None` where
/// the streams do not fit.
fn try_bound<T: Float>(
    boxes: &Boxes,
    values: &[T],
    bound: Bound,
    room: &mut [u64],
    threads: usize,
) -> Option<usize> {
    let (head, mut rest) = room.split_at_mut_checked(head_words::<T>(boxes))?;
    let (exponent, head) = head.split_first_mut()?;
    *exponent = bound.exponent as u16 as u64;
    let (lengths, indices) = head.split_at_mut(boxes.len());
    let mut indices = indices.chunks_exact_mut(INDEX_WORDS);
    for (index, length) in lengths.iter_mut().enumerate() {
        // SAFETY: `values` are those of the whole message.
        let mut job = unsafe { boxes.encode_job(index, values.as_ptr(), bound.mode()) };
        (job.stream, job.words) = (rest.as_mut_ptr(), rest.len());
        // SAFETY: the job reads `values` and writes to `rest`.
        let (done, segments) = unsafe { zfp::encode_in_segments(&job, threads) };
        if done.overflow || done.nonfinite_blocks > 0 {
            return None;
        }
        *length = done.words as u64;
        if Segments::are_known::<T>(&job.grid) {
            write_index(&segments, indices.next()?);
        }
        rest = std::mem::take(&mut rest).get_mut(done.words..)?;
    }
    Some(rest.len())
}

/// Words of the lengths of a stream's parts.
const INDEX_WORDS: usize = SEGMENTS / 2;

/// The bound, the lengths of the streams, and those of the parts of long streams.
fn head_words<T: Value>(boxes: &Boxes) -> usize {
    let index = |(_, grid): &(usize, Grid)| {
        if Segments::are_known::<T>(grid) {
            INDEX_WORDS
        } else {
            0
        }
    };
    1 + boxes.len() + boxes.grids().iter().map(index).sum::<usize>()
}

fn write_index(segments: &Segments, words: &mut [u64]) {
    for (word, pair) in words.iter_mut().zip(segments.0.chunks_exact(2)) {
        *word = u64::from(pair[0]) | u64::from(pair[1]) << 32;
    }
}

fn read_index(words: &[u64]) -> Segments {
    Segments(std::array::from_fn(|i| {
        (words[i / 2] >> (32 * (i % 2))) as u32
    }))
}

/// The streams that [`encode`] wrote, and the words of their head. `None` where they cannot be.
pub fn read<T: Value>(boxes: &Boxes, words: &[u64]) -> Option<(Streams, usize)> {
    let head = words.get(..head_words::<T>(boxes))?;
    let (exponent, rest) = head.split_first()?;
    let (lengths, indices) = rest.split_at(boxes.len());
    let lengths = lengths.iter().map(|&length| usize::try_from(length).ok());
    let mut indices = indices.chunks_exact(INDEX_WORDS).map(read_index);
    let segments = boxes.grids().iter().map(|(_, grid)| {
        Segments::are_known::<T>(grid)
            .then(|| indices.next())
            .flatten()
    });
    Some((
        Streams {
            mode: Bound::of_exponent(*exponent as u16 as i16).mode(),
            words: lengths.collect::<Option<_>>()?,
            segments: segments.collect(),
        },
        head.len(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::Element;
    use crate::layout::Layout;

    /// Quiet but for a few points.
    fn field(count: usize) -> Vec<f32> {
        (0..count)
            .map(|i| (i as f32 * 0.01).sin() * if i % 997 < 8 { 1e4 } else { 1.0 })
            .collect()
    }

    #[test]
    fn the_bound_is_the_smallest_that_fits_and_a_hint_finds_it_again() {
        smallest_bound_of(8000);
        // Enough blocks for a part of them to be tried first.
        smallest_bound_of(400_000);
    }

    fn smallest_bound_of(count: usize) {
        let values = field(count);
        let axes = Layout::parse("2c,20,*").unwrap().resolve(count).unwrap();
        let boxes = Boxes::new(Element::F32, count, &axes, count / 8).unwrap();
        let mut room = vec![0; count / 8];
        let exponent = encode(&boxes, &values, peak(&values), None, &mut room, 1).unwrap();
        let fits = |exponent| {
            try_bound(
                &boxes,
                &values,
                Bound::of_exponent(exponent),
                &mut room.clone(),
                1,
            )
            .is_some()
        };
        assert!(fits(exponent) && !fits(exponent - 1));
        for hint in [exponent, exponent - 3, exponent + 9, 1000, -1000] {
            let found = encode(&boxes, &values, peak(&values), Some(hint), &mut room, 1).unwrap();
            assert_eq!(found, exponent, "from {hint}");
        }

        let (streams, head) = read::<f32>(&boxes, &room).unwrap();
        let mut back = vec![0f32; count];
        // SAFETY: `back` has room for the message.
        let jobs = unsafe { boxes.decode_jobs(back.as_mut_ptr(), &streams, &room[head..]) };
        // SAFETY: the jobs write to disjoint parts of `back`.
        let done = unsafe { zfp::decode(&jobs, 1) };
        assert!(done.into_iter().all(|done| done));
        let bound = 2f32.powi(exponent.into());
        assert!(
            values
                .iter()
                .zip(&back)
                .all(|(value, back)| (value - back).abs() <= bound)
        );
    }

    #[test]
    fn a_message_that_never_fits_is_given_up() {
        let values: Vec<f32> = (0..4000).map(|i| (i as f32).sin()).collect();
        let boxes = Boxes::new(Element::F32, 4000, &vec![], 600).unwrap();
        assert_eq!(
            encode(&boxes, &values, peak(&values), None, &mut [0; 2], 1),
            None
        );
    }

    #[test]
    fn lengths_beyond_the_payload_give_no_jobs() {
        let boxes = Boxes::new(Element::F32, 100, &vec![], 60).unwrap();
        let (streams, head) = read::<f32>(&boxes, &[0, u64::MAX, 0]).unwrap();
        let mut back = [0f32; 100];
        // SAFETY: `back` has room for the message.
        assert!(unsafe { boxes.decode_jobs(back.as_mut_ptr(), &streams, &[0; 1]) }.is_empty());
        assert_eq!(head, 2);
        assert!(read::<f32>(&boxes, &[0]).is_none());
    }
}
