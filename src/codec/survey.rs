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
    /// `None` for a message without values.
    pub fn of(values: &[T]) -> Option<Self> {
        let first = *values.first()?;
        let (mut codable, mut smallest, mut largest) = (true, first, first);
        // In pieces, so that the inner loop has no exits and becomes vector code.
        for piece in values.chunks(1024) {
            let (low, high) = extremes(piece, smallest, largest);
            (smallest, largest) = (low, high);
            codable &= piece.iter().all(|value| value.is_codable());
        }
        Some(Self {
            codable,
            smallest,
            largest,
        })
    }
}

fn extremes<T: Float>(values: &[T], smallest: T, largest: T) -> (T, T) {
    values
        .iter()
        .fold((smallest, largest), |(low, high), &value| {
            let low = if value.order() < low.order() {
                value
            } else {
                low
            };
            let high = if value.order() > high.order() {
                value
            } else {
                high
            };
            (low, high)
        })
}

/// At most `most` values, evenly spread.
pub fn spread<T: Copy>(values: &[T], most: usize) -> impl Iterator<Item = T> {
    let step = values.len().div_ceil(most).max(1);
    // An odd step does not keep in time with axes of even length.
    values.iter().copied().step_by(step | 1)
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
