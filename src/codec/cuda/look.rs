//! What is to be known of the values of a message before it is coded.

use super::array::Plain;
use super::launch::{self, Samples};
use super::{Entered, Result};
use crate::codec::quality::Tally;
use crate::codec::survey::Survey;
use crate::codec::{Float, Refusal, lies, mask};

/// What kernels found in the values of a message.
pub struct Found<T: Float> {
    survey: Survey<T>,
    all_whole: bool,
    nonzero: u64,
    /// Some of the values, evenly spread.
    sample: Vec<T>,
    /// Some pairs of values, evenly spread, where they may be doubles.
    pairs: Vec<[T; 2]>,
}

/// Has kernels go over the values of messages, given by address and count.
pub fn look<T: Float + Plain>(
    work: &Entered,
    values: &[(u64, usize)],
    against_lies: bool,
) -> Result<Vec<Found<T>>> {
    let spans = launch::spans(values);
    let surveys = launch::survey::<T>(work, &spans)?;
    let mut samples = Samples::default();
    for &(address, count) in values {
        samples.add(address, count, 1, mask::SAMPLE);
        let pairs = match against_lies && lies::may_be_doubles::<T>(count) {
            true => count / 2,
            false => 0,
        };
        samples.add(address, pairs, 2, lies::PAIRS);
    }
    let (surveys, samples) = (surveys.fetch(work)?, samples.take::<T>(work)?);
    let samples = samples.each()?;
    let mut found = Vec::with_capacity(values.len());
    for (survey, samples) in surveys.items()?.iter().zip(samples.chunks(2)) {
        found.push(Found {
            survey: Survey::of_extremes(T::narrow(survey.lowest), T::narrow(survey.highest)),
            all_whole: survey.whole != 0,
            nonzero: survey.nonzero,
            sample: samples[0].to_vec(),
            pairs: samples[1].as_chunks::<2>().0.to_vec(),
        });
    }
    Ok(found)
}

/// What is to become of a message.
pub enum Verdict<T> {
    /// To be coded, unless it has enough of these to be fill values.
    Code(Vec<T>),
    Refuse(Refusal),
    LeaveToCpu,
}

impl<T: Float> Found<T> {
    pub fn verdict(&self, count: usize, against_lies: bool) -> Verdict<T> {
        if against_lies {
            if lies::count_something(self.all_whole, self.nonzero) {
                return Verdict::Refuse(Refusal::Integers);
            }
            if lies::are_few(count, self.nonzero) {
                return Verdict::Refuse(Refusal::Sparse);
            }
            if lies::pairs_are_doubles(&self.pairs) {
                return Verdict::Refuse(Refusal::Doubles);
            }
        }
        // What cannot be coded may be put into a mask, which the CPU makes.
        match mask::suspects(&self.sample, &self.survey) {
            Some(suspects) if self.survey.codable && Tally::tells(self.survey.peak()) => {
                Verdict::Code(suspects)
            }
            _ => Verdict::LeaveToCpu,
        }
    }
}

/// A message of so many values at an address, and those of its values that may be fill.
pub struct Suspected<T> {
    pub address: u64,
    pub count: usize,
    pub suspects: Vec<T>,
}

/// For each message, whether one of its suspects occurs so often that it is a fill value.
pub fn have_fill<T: Float + Plain>(work: &Entered, messages: &[Suspected<T>]) -> Result<Vec<bool>> {
    let mut has_fill = vec![false; messages.len()];
    let suspected: Vec<_> = (0..messages.len())
        .filter(|&index| !messages[index].suspects.is_empty())
        .collect();
    if suspected.is_empty() {
        return Ok(has_fill);
    }
    let of_all = suspected.iter().map(|&index| &messages[index]);
    let values: Vec<_> = of_all.clone().map(|one| (one.address, one.count)).collect();
    let patterns: Vec<_> = of_all
        .map(|Suspected { suspects, .. }| {
            [0, 1].map(|which: usize| suspects[which.min(suspects.len() - 1)].bits())
        })
        .collect();
    let times = launch::count::<T>(work, &launch::spans(&values), &patterns)?.fetch(work)?;
    for (&index, times) in suspected.iter().zip(times.items()?) {
        let is_often = |&times: &u64| mask::is_often(times as usize, messages[index].count);
        has_fill[index] = times.iter().any(is_often);
    }
    Ok(has_fill)
}
