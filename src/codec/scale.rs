//! Field axes: one power of two per field, so that a ZFP block across two quantities keeps both.
//!
//! The exponents lead the payload, two bytes each, padded to whole words.

use super::float::Float;
use crate::layout::{Axes, Kind};

/// The field axis of a message.
#[derive(Clone, Debug, PartialEq)]
pub struct Fields {
    /// Neighbouring values that belong to one field.
    run: usize,
    count: usize,
}

const EXPONENTS_PER_WORD: usize = 4;

impl Fields {
    pub fn of(axes: &Axes) -> Option<Self> {
        let mut run = 1usize;
        for &(kind, extent) in axes {
            if kind == Kind::Field {
                return Some(Self {
                    run,
                    count: extent as usize,
                });
            }
            run = run.checked_mul(extent as usize)?;
        }
        None
    }

    /// Neighbouring values that belong to one field, and how many fields there are.
    pub fn extents(&self) -> (usize, usize) {
        (self.run, self.count)
    }

    /// Words that the exponents take.
    pub fn words(&self) -> usize {
        self.count.div_ceil(EXPONENTS_PER_WORD)
    }

    /// Calls `f` with every run of values and the index of its field.
    fn each_run<T>(&self, values: &[T], mut f: impl FnMut(usize, &[T])) {
        for (index, run) in values.chunks(self.run).enumerate() {
            f(index % self.count, run);
        }
    }
}

/// Values of a field that are looked at for its scale, about.
const SAMPLE: usize = 1024;
/// A scaled value must stay below two to this: squares of errors are summed up.
const HEADROOM: i16 = 60;

/// For each field the exponent `e` for which the typical magnitude of its values, (mean of √|x|)², is in
/// [0.5, 1) times 2^e; 0 for a field of zeros. The largest magnitude would not do: next to a mean that is
/// stored as one value among many, it would leave all others too few bits.
fn exponents<T: Float>(values: &[T], fields: &Fields) -> Vec<i16> {
    let mut sums = vec![(0f64, 0f64, 0u32); fields.count];
    let point = fields.run * fields.count;
    let step = (values.len() / point.max(1) * fields.run / SAMPLE) | 1;
    for point in values.chunks(point).step_by(step) {
        fields.each_run(point, |field, run| {
            let (roots, largest, count) = &mut sums[field];
            for &value in run {
                let magnitude = value.into().abs();
                *roots += magnitude.sqrt();
                *largest = largest.max(magnitude);
                *count += 1;
            }
        });
    }
    sums.into_iter()
        .map(|(roots, largest, count)| {
            let typical = (roots / f64::from(count.max(1))).powi(2);
            exponent_of(typical).max(exponent_of(largest) - HEADROOM)
        })
        .collect()
}

/// The exponent `e` for which a magnitude is below 2^e and at least 2^(e-1); 0 for zero.
pub fn exponent_of(magnitude: f64) -> i16 {
    let biased = |value: f64| (value.to_bits() >> 52) as i16;
    match biased(magnitude) {
        0 if magnitude == 0.0 => 0,
        // A subnormal f64: scale it into the normal range first.
        0 => biased(magnitude * 2f64.powi(64)) - 1022 - 64,
        exponent => exponent - 1022,
    }
}

/// 2 to the `exponent`, also where it is no normal number.
pub fn power_of_two(exponent: i16) -> f64 {
    let half = exponent / 2;
    2f64.powi(half.into()) * 2f64.powi((exponent - half).into())
}

/// The values with every field scaled to a typical magnitude of about one; the exponents go to `words`.
pub fn apply<T: Float>(values: &[T], fields: &Fields, words: &mut [u64]) -> Vec<T> {
    let exponents = exponents(values, fields);
    write(&exponents, words);
    let mut scaled = Vec::with_capacity(values.len());
    fields.each_run(values, |field, run| {
        let shift = -i32::from(exponents[field]);
        scaled.extend(run.iter().map(|value| value.times_power_of_two(shift)));
    });
    scaled
}

/// Puts exponents into words.
pub fn write(exponents: &[i16], words: &mut [u64]) {
    for (word, group) in words.iter_mut().zip(exponents.chunks(EXPONENTS_PER_WORD)) {
        *word = group
            .iter()
            .enumerate()
            .fold(0, |word, (index, &exponent)| {
                word | u64::from(exponent as u16) << (16 * index)
            });
    }
}

/// The exponents that [`apply`] wrote.
fn read(fields: &Fields, words: &[u64]) -> Vec<i32> {
    let halves = words.iter().flat_map(|word| {
        (0..EXPONENTS_PER_WORD).map(move |index| (word >> (16 * index)) as u16 as i16)
    });
    halves.map(i32::from).take(fields.count).collect()
}

/// What each value is to be multiplied by to be what it was before [`apply`].
pub struct Scales {
    fields: Fields,
    factors: Vec<f64>,
}

impl Scales {
    pub fn read(fields: &Fields, words: &[u64]) -> Self {
        let factors = read(fields, words)
            .into_iter()
            .map(|exponent| 2f64.powi(exponent))
            .collect();
        Self {
            fields: fields.clone(),
            factors,
        }
    }

    /// The factor of the value at `index` of the message.
    pub fn at(&self, index: usize) -> f64 {
        self.factors
            .get(index / self.fields.run % self.fields.count)
            .copied()
            .unwrap_or(1.0)
    }
}

/// Undoes [`apply`] in place. Exponents that no sender writes are held to the range of the type, so that
/// a damaged message stays a wrong number.
pub fn undo<T: Float>(values: &mut [T], fields: &Fields, words: &[u64]) {
    let limit = if size_of::<T>() == 4 { 160 } else { 1100 };
    let exponents = read(fields, words);
    for (index, run) in values.chunks_mut(fields.run).enumerate() {
        let Some(&exponent) = exponents.get(index % fields.count) else {
            return;
        };
        for value in run {
            *value = value.times_power_of_two(exponent.clamp(-limit, limit));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_of_two_come_and_go_without_loss() {
        let fields = Fields::of(&vec![
            (Kind::Component, 2),
            (Kind::Field, 5),
            (Kind::Smooth, 3),
        ])
        .unwrap();
        let magnitudes = [3e38f32, 1.0, 1e-5, 1e-38, 0.0];
        let values: Vec<f32> = (0..30)
            .map(|index| magnitudes[index / 2 % 5] / (1.0 + index as f32))
            .collect();
        let mut words = vec![0; fields.words()];
        let mut scaled = apply(&values, &fields, &mut words);
        for field in 0..4 {
            let largest = (0..30)
                .filter(|i| i / 2 % 5 == field)
                .map(|i| scaled[i].abs())
                .fold(0., f32::max);
            assert!((0.5..8.0).contains(&largest), "{field} {largest}");
        }
        undo(&mut scaled, &fields, &words);
        assert_eq!(scaled, values);
    }

    #[test]
    fn exponents_reach_both_ends_of_f64() {
        for (value, expected) in [
            (1.0, 1),
            (0.99, 0),
            (f64::MAX, 1024),
            (5e-324, -1073),
            (0.0, 0),
        ] {
            assert_eq!(exponent_of(value), expected, "{value}");
        }
    }
}
