//! How far coded values are from what was sent.

use super::float::Float;

/// Sums over some values, from which their relative L2 error follows: |x − x̂| ÷ |x|.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    values: usize,
    /// In several sums each, of which none waits for another.
    difference: [f64; SUMS],
    norm: [f64; SUMS],
}

const SUMS: usize = 4;

impl Tally {
    /// Whether squares tell values of up to `peak` from zero.
    pub fn tells(peak: f64) -> bool {
        peak == 0.0 || peak > 1e-150
    }

    /// From squared differences and squared values of so many values, summed up.
    pub fn of_sums(values: usize, difference: f64, norm: f64) -> Self {
        Self {
            values,
            difference: [difference, 0.0, 0.0, 0.0],
            norm: [norm, 0.0, 0.0, 0.0],
        }
    }

    /// Adds values, of which one after the other came back as `back`.
    pub fn add<T: Float>(&mut self, values: &[T], back: &[T]) {
        let (fours, rest) = values.as_chunks::<SUMS>();
        let (back_fours, back_rest) = back.as_chunks::<SUMS>();
        for (values, back) in fours.iter().zip(back_fours) {
            let (mut difference, mut norm) = (self.difference, self.norm);
            for i in 0..SUMS {
                let (value, back): (f64, f64) = (values[i].into(), back[i].into());
                difference[i] += (value - back) * (value - back);
                norm[i] += value * value;
            }
            (self.difference, self.norm) = (difference, norm);
        }
        self.values += SUMS * fours.len();
        for (&value, &back) in rest.iter().zip(back_rest) {
            self.add_scaled(value.into(), back.into(), 1.0);
        }
    }

    /// Adds a value that was multiplied by a scale before it was coded, as it was before that.
    pub fn add_scaled(&mut self, value: f64, back: f64, scale: f64) {
        let (value, back) = (value * scale, back * scale);
        self.values += 1;
        self.difference[0] += (value - back) * (value - back);
        self.norm[0] += value * value;
    }

    /// The relative error of the values that were added.
    pub fn error(&self) -> f64 {
        self.error_against(0.0)
    }

    /// The relative error of a message of `count` values that reach up to `peak`, of which those added are
    /// a sample. For codecs whose error has an absolute part, since a sample may miss the few values that
    /// make up the norm.
    pub fn error_of_message(&self, count: usize, peak: f64) -> f64 {
        self.error_against(peak * peak * self.values as f64 / count.max(1) as f64)
    }

    fn error_against(&self, least_norm: f64) -> f64 {
        let norm = self.norm.iter().sum::<f64>().max(least_norm);
        let difference: f64 = self.difference.iter().sum();
        // Zeros that came back as zeros have no error; anything else in their place is all error. So it is where
        // squares exceed the numbers there are, since nobody knows then.
        let is_known = norm > 0.0 && norm.is_finite() && difference.is_finite();
        match (difference == 0.0, is_known) {
            (true, _) => 0.0,
            (false, false) => f64::INFINITY,
            (false, true) => (difference / norm).sqrt(),
        }
    }
}

/// Relative L2 errors of some messages.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ErrorSample {
    pub messages: u64,
    pub sum: f64,
    pub worst: f64,
}

impl ErrorSample {
    pub fn add(&mut self, error: f64) {
        self.messages += 1;
        self.sum += error;
        self.worst = self.worst.max(error);
    }

    pub fn merge(&mut self, other: &Self) {
        self.messages += other.messages;
        self.sum += other.sum;
        self.worst = self.worst.max(other.worst);
    }

    pub fn mean(&self) -> f64 {
        if self.messages == 0 {
            0.0
        } else {
            self.sum / self.messages as f64
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_that_cannot_be_told_is_none_to_pass() {
        let error = |value: f64, back: f64| {
            let mut tally = Tally::default();
            tally.add(&[value], &[back]);
            tally.error()
        };
        assert_eq!(error(2.0, 1.0), 0.5);
        assert_eq!(error(0.0, 0.0), 0.0);
        assert_eq!(error(0.0, 1.0), f64::INFINITY);
        for huge in [1e200, 1e308] {
            assert_eq!(error(huge, huge), 0.0);
            assert_eq!(error(huge, 0.9 * huge), f64::INFINITY);
        }
    }

    #[test]
    fn squares_of_tiny_values_tell_nothing() {
        assert!(Tally::tells(0.0) && Tally::tells(1e-140) && Tally::tells(1e300));
        assert!(!Tally::tells(1e-160) && !Tally::tells(5e-324));
    }
}
