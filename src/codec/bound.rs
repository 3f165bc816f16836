//! A tolerance → the bit plane at which the streams of a message may end, so that no error is above it.
//!
//! With integers whose largest magnitude is just below 2^30 (f32; 2^62 for f64) times 2^−e of their block, and
//! `exponent` as libzfp's `minexp`, the digits of the coefficients that are left out weigh less than
//! w = 2^(exponent − 2d). In base −2 these add up to at most 2/3 w, and the inverse transform makes at most
//! 15/4 times that an axis: the sum of the magnitudes in each row of its matrix. So errors are at most
//! 2/3 · (15/16)^d · 2^exponent, which some blocks come arbitrarily close to, and libzfp's promise of 2^exponent
//! leaves room for. What rounding adds is [`roundings`]. See also Diffenderfer, Fox, Hittinger,
//! Sanders and Lindstrom, "Error Analysis of ZFP Compression for Floating-Point Data", 2019.
//!
//! A block whose values are below the tolerance is left out. That is shorter, and it is needed: an error that
//! is above the block's largest magnitude might take integers beyond their range, and then there is no bound.

use super::float::Float;
use super::scale::{exponent_of, power_of_two};
use super::zfp::Mode;

/// How far the streams of a message go.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bound {
    /// libzfp's `minexp`, which the decoder must know.
    pub exponent: i16,
    /// Blocks of magnitudes below two to this are left out.
    pub quiet: i16,
}

impl Bound {
    /// libzfp's fixed accuracy.
    pub fn of_exponent(exponent: i16) -> Self {
        let quiet = i16::MIN;
        Self { exponent, quiet }
    }

    /// The bound for blocks of `dims` axes without a value above `peak`, and whether it is certain that no error is
    /// above the tolerance. Otherwise that has to be seen.
    pub fn of_tolerance<T: Float>(tolerance: f64, dims: u8, peak: f64) -> (Self, bool) {
        let quiet = floor_exponent(tolerance);
        let left = tolerance * ROUNDED_DOWN - roundings::<T>(dims, peak);
        let exponent = floor_exponent(left / cut_off(dims));
        // Below, the factor that makes integers values is no normal number.
        let is_certain = left > 0.0 && quiet >= T::LEAST_BOUND && exponent + 1 >= quiet;
        if is_certain {
            (Self { exponent, quiet }, true)
        } else {
            let exponent = quiet;
            (Self { exponent, quiet }, false)
        }
    }

    pub fn mode(self) -> Mode {
        Mode::Bound {
            exponent: self.exponent.into(),
            quiet: self.quiet.into(),
        }
    }
}

/// For the roundings of this file.
const ROUNDED_DOWN: f64 = 1.0 - 1e-9;

/// What the inverse transform of so many axes may make of an error.
fn gain(dims: u8) -> f64 {
    3.75f64.powi(dims.into())
}

/// The largest error by digits that are left out, as a part of 2^exponent.
fn cut_off(dims: u8) -> f64 {
    2.0 / 3.0 * gain(dims) / 4f64.powi(dims.into())
}

/// The largest error by roundings. In units of a block's integers these are: before the inverse transform one from
/// making values integers and at most two an axis from halving (the forward transform makes no error larger), in
/// it 5/4 an axis, which the axes after it make larger, and after it half of the last place of a value.
fn roundings<T: Float>(dims: u8, peak: f64) -> f64 {
    let before = (1.0 + 2.0 * f64::from(dims)) * gain(dims);
    let within = 1.25 * (gain(dims) - 1.0) / 2.75;
    let bits = 8 * size_of::<T>() as i16;
    // Integers have a bit more than the largest magnitude needs.
    let after = power_of_two(bits - 1 - T::MANTISSA_BITS - 1);
    (before + within + after) * power_of_two(exponent_of(peak) - (bits - 2))
}

/// The exponent of the largest power of two that is not above a positive number.
fn floor_exponent(number: f64) -> i16 {
    exponent_of(number) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn planes_are_left_out_as_the_theorem_allows() {
        let exponent = |tolerance: f64, dims: u8| {
            let (bound, is_certain) = Bound::of_tolerance::<f64>(tolerance, dims, 1.0);
            assert!(is_certain && 2f64.powi(bound.quiet.into()) <= tolerance);
            bound.exponent
        };
        for (dims, part) in [(1, 0.625), (2, 0.585_937_5), (3, 0.549_316_406_25)] {
            assert!((cut_off(dims) - part).abs() < 1e-12);
            assert_eq!(exponent(part * 1.001 / 1024.0, dims), -10);
            assert_eq!(exponent(part * 1.999 / 1024.0, dims), -10);
            assert_eq!(exponent(part * 2.001 / 1024.0, dims), -9);
        }
    }

    #[test]
    fn a_tolerance_near_the_last_place_is_not_certain() {
        for (peak, tolerance, expected) in [
            (1.0, 2f64.powi(-19), true),
            (1.0, 2f64.powi(-22), false),
            (1e30, 1e22, false),
            (1e-30, 1e-33, false),
            (1.0, 1e300, true),
        ] {
            let (_, is_certain) = Bound::of_tolerance::<f32>(tolerance, 3, peak);
            assert_eq!(is_certain, expected, "{tolerance} of {peak}");
        }
    }
}
