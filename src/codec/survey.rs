//! One pass over the values of a message before anything is decided.

use super::float::Float;

/// What the pass found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Survey<T> {
    /// Every value can be coded: none is a NaN, an infinity or close to one.
    pub codable: bool,
    /// Smallest and largest value; NaN counts as outside the infinities.
    pub smallest: T,
    pub largest: T,
}

impl<T: Float> Survey<T> {
    /// From the extremes in the order of [`Float::order`].
    pub fn of_extremes(smallest: T::Order, largest: T::Order) -> Self {
        let (smallest, largest) = (T::from_order(smallest), T::from_order(largest));
        // What cannot be coded lies outside of what can.
        Self {
            codable: smallest.is_codable() && largest.is_codable(),
            smallest,
            largest,
        }
    }

    /// The largest magnitude.
    pub fn peak(&self) -> f64 {
        self.smallest.into().abs().max(self.largest.into().abs())
    }

    /// `None` for a message without values.
    pub fn of(values: &[T]) -> Option<Self> {
        let first = values.first()?.order();
        let (smallest, largest) = extremes(values, first);
        Some(Self::of_extremes(smallest, largest))
    }
}

fn extremes<T: Float>(values: &[T], first: T::Order) -> (T::Order, T::Order) {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has AVX2.
        return unsafe { extremes_avx2(values, first) };
    }
    scan(values, first)
}

/// The same loop, which the compiler turns into twice as wide instructions here.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn extremes_avx2<T: Float>(values: &[T], first: T::Order) -> (T::Order, T::Order) {
    scan(values, first)
}

#[inline(always)]
fn scan<T: Float>(values: &[T], first: T::Order) -> (T::Order, T::Order) {
    values.iter().fold((first, first), |(low, high), value| {
        (low.min(value.order()), high.max(value.order()))
    })
}

/// At most `most` values, evenly spread.
pub fn spread<T: Copy>(values: &[T], most: usize) -> impl Iterator<Item = T> {
    values.iter().copied().step_by(step(values.len(), most))
}

/// The distance of at most `most` among `count` values, evenly spread.
pub fn step(count: usize, most: usize) -> usize {
    // An odd step does not keep in time with axes of even length.
    count.div_ceil(most).max(1) | 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extremes_and_codability() {
        let survey = |values: &[f32]| Survey::of(values).unwrap();
        let plain = survey(&[3.0, -7.5, -0.0, 1e37]);
        assert_eq!(
            (plain.codable, plain.smallest, plain.largest),
            (true, -7.5, 1e37)
        );
        for odd in [
            f32::NAN,
            f32::INFINITY,
            f32::NEG_INFINITY,
            f32::MAX,
            -f32::MAX,
        ] {
            assert!(!survey(&[1.0, odd, 2.0]).codable, "{odd}");
        }
        assert_eq!(Survey::<f64>::of(&[]), None);
        assert!(!Survey::of(&[0.0, f64::MAX]).unwrap().codable);
    }
}
