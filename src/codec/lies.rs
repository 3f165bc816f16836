//! Values that are not what their datatype says.

use super::float::Float;
use super::survey::spread;

/// Whether all values are whole numbers, and some are not zero. Such values count, number or mark
/// something, and a program that reads them back means them exactly.
pub fn are_integers<T: Float>(values: &[T]) -> bool {
    let is_integer = |value: T| {
        let value: f64 = value.into();
        value.trunc() == value
    };
    spread(values, 64).all(is_integer)
        && values.iter().all(|&value| is_integer(value))
        && values.iter().any(|&value| value.into() != 0.0)
}

/// The same, from what a pass over the values found.
pub fn count_something(all_whole: bool, nonzero: u64) -> bool {
    all_whole && nonzero > 0
}

/// Fewer values than this other than zero tell nothing of a message of at least so many.
const FEW: usize = 16;
const MANY: usize = 64;

/// Whether there are some values other than zero, but too few to tell what they are: they may be anything.
pub fn are_sparse<T: Float>(values: &[T]) -> bool {
    let nonzero = values.iter().filter(|&&value| value.into() != 0.0);
    are_few(values.len(), nonzero.take(FEW).count() as u64)
}

/// The same, from how many of the values are not zero.
pub fn are_few(count: usize, nonzero: u64) -> bool {
    count >= MANY && (1..FEW as u64).contains(&nonzero)
}

/// Pairs that are looked at for doubles.
pub const PAIRS: usize = 64;

/// Whether values are doubles that a program sends as twice as many single-precision numbers. The high
/// half of a double looks like a float of a narrow range; the low half is mantissa bits, which as a float
/// have any exponent whatever, or, where the double was made from a float, zeros in their 29 low bits.
pub fn are_doubles<T: Float>(values: &[T]) -> bool {
    if !may_be_doubles::<T>(values.len()) {
        return false;
    }
    let pairs: Vec<_> = spread(values.as_chunks::<2>().0, PAIRS).collect();
    pairs_are_doubles(&pairs)
}

/// Whether as many values may be pairs at all.
pub fn may_be_doubles<T: Float>(count: usize) -> bool {
    size_of::<T>() == 4 && count >= 64 && count.is_multiple_of(2)
}

/// The same, from [`PAIRS`] of the pairs, evenly spread.
pub fn pairs_are_doubles<T: Float>(pairs: &[[T; 2]]) -> bool {
    let bits = |half: usize| pairs.iter().map(move |pair| pair[half].bits() as u32);
    let exponents = |half: usize| {
        let mut exponents: Vec<u32> = bits(half).map(|bits| bits >> 23 & 0xff).collect();
        exponents.sort_unstable();
        exponents.dedup();
        exponents.len()
    };
    let looked_at = pairs.len();
    let (low, high) = (exponents(0), exponents(1));
    // Of 256 exponents, n random ones are n − n²/512 + … different; half of n is far from any field.
    let low_is_random = low > looked_at.min(128) / 2 && high * 4 < low;
    let is_tail = |bits: u32| bits & 0x1fff_ffff == 0;
    let low_is_tail = bits(0).all(is_tail)
        && bits(0).any(|bits| bits != 0)
        && bits(1).filter(|&bits| !is_tail(bits)).count() * 2 > looked_at;
    low_is_random || low_is_tail
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_are_known() {
        assert!(are_integers(&[0.0f32, 1.0, 2.0, 7e6]));
        assert!(!are_integers(&[0.0f32, 0.0]), "zeros are coded exactly");
        assert!(!are_integers(&[1.0f64, 2.5]));
        let mut long = vec![4.0f32; 100_000];
        assert!(are_integers(&long));
        long[77_777] = 4.25;
        assert!(!are_integers(&long));
    }

    #[test]
    fn a_few_values_among_zeros_are_known() {
        let mut values = vec![0f32; 1000];
        assert!(!are_sparse(&values), "zeros are coded exactly");
        values[500] = 0.1;
        assert!(are_sparse(&values) && !are_sparse(&values[450..510]));
        values[100..115].fill(2.5);
        assert!(!are_sparse(&values));
    }

    fn halves(doubles: impl Iterator<Item = f64>) -> Vec<f32> {
        doubles
            .flat_map(|double| {
                let bits = double.to_bits();
                [
                    f32::from_bits(bits as u32),
                    f32::from_bits((bits >> 32) as u32),
                ]
            })
            .collect()
    }

    #[test]
    fn doubles_in_disguise_are_known() {
        let wave = |i: usize| 280.0 + (i as f64 * 0.1).sin() * 20.0;
        assert!(are_doubles(&halves((0..1000).map(wave))));
        assert!(are_doubles(&halves((0..1000).map(|i| wave(i) - 280.0))));
        assert!(are_doubles(&halves(
            (0..1000).map(|i| f64::from(wave(i) as f32))
        )));
    }

    #[test]
    fn floats_are_not_taken_for_doubles() {
        let wave = |i: usize| (i as f32 * 0.1).sin();
        assert!(!are_doubles(&(0..1000).map(wave).collect::<Vec<_>>()));
        let interleaved = |i: usize| {
            if i.is_multiple_of(2) {
                1e5 + wave(i)
            } else {
                1e-5 * wave(i)
            }
        };
        assert!(!are_doubles(
            &(0..1000).map(interleaved).collect::<Vec<_>>()
        ));
        // A spectrum that falls off over 30 decades, and exact zeros beside values.
        let spectrum = |i: usize| wave(i) * 10f32.powf(-(i as f32) * 0.03);
        assert!(!are_doubles(&(0..1000).map(spectrum).collect::<Vec<_>>()));
        let complex = |i: usize| if i.is_multiple_of(2) { wave(i) } else { 0.0 };
        assert!(!are_doubles(&(0..1000).map(complex).collect::<Vec<_>>()));
        let swapped = |i: usize| if i % 2 == 1 { wave(i) } else { 0.0 };
        assert!(!are_doubles(&(0..1000).map(swapped).collect::<Vec<_>>()));
        assert!(!are_doubles(&vec![0.5f64; 1000]));
    }
}
