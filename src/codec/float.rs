//! What the codecs need to know of a value type.

use super::cast::Cast;
use super::{Element, zfp};

/// A value type of a message.
pub trait Float: zfp::Value + zfp_rs::ZfpScalar + Cast + Into<f64> + PartialOrd + Default {
    const ELEMENT: Element;
    /// The leading one among them.
    const MANTISSA_BITS: i16;
    /// Integers of a block that has magnitudes of two to this and more become values by a normal factor.
    const LEAST_BOUND: i16;

    /// Values from this magnitude up, infinities and NaN are not coded: rounding could carry them to
    /// infinity.
    fn is_codable(self) -> bool;
    /// Bits of the value, in the low half for f32.
    fn bits(self) -> u64;
    fn from_bits(bits: u64) -> Self;
    fn from_f64(value: f64) -> Self;
    /// Orders as the values do, negative zero below zero, and NaN outside the infinities.
    type Order: Ord + Copy;
    fn order(self) -> Self::Order;
    fn from_order(order: Self::Order) -> Self;
    /// An order that was widened to 64 bits.
    fn narrow(order: i64) -> Self::Order;
    /// The value times two to the `exponent`, rounded once or twice below the normal range.
    fn times_power_of_two(self, exponent: i32) -> Self;
}

impl Float for f32 {
    const ELEMENT: Element = Element::F32;
    const MANTISSA_BITS: i16 = 24;
    const LEAST_BOUND: i16 = -96;

    fn is_codable(self) -> bool {
        self.to_bits() & 0x7fff_ffff < 252 << 23
    }

    fn bits(self) -> u64 {
        self.to_bits().into()
    }

    fn from_bits(bits: u64) -> Self {
        Self::from_bits(bits as u32)
    }

    fn from_f64(value: f64) -> Self {
        value as Self
    }

    type Order = i32;

    fn narrow(order: i64) -> i32 {
        order as i32
    }

    fn order(self) -> i32 {
        let bits = self.to_bits() as i32;
        bits ^ (((bits >> 31) as u32 >> 1) as i32)
    }

    fn from_order(order: i32) -> Self {
        // The map is its own inverse.
        Self::from_bits(Self::from_bits(order as u32).order() as u32)
    }

    fn times_power_of_two(self, exponent: i32) -> Self {
        let half = exponent / 2;
        let power = |exponent: i32| Self::from_bits(((exponent + 127) as u32) << 23);
        self * power(half) * power(exponent - half)
    }
}

impl Float for f64 {
    const ELEMENT: Element = Element::F64;
    const MANTISSA_BITS: i16 = 53;
    const LEAST_BOUND: i16 = -960;

    fn is_codable(self) -> bool {
        self.to_bits() & 0x7fff_ffff_ffff_ffff < 2044 << 52
    }

    fn bits(self) -> u64 {
        self.to_bits()
    }

    fn from_bits(bits: u64) -> Self {
        Self::from_bits(bits)
    }

    fn from_f64(value: f64) -> Self {
        value
    }

    type Order = i64;

    fn narrow(order: i64) -> i64 {
        order
    }

    fn order(self) -> i64 {
        let bits = self.to_bits() as i64;
        bits ^ (((bits >> 63) as u64 >> 1) as i64)
    }

    fn from_order(order: i64) -> Self {
        // The map is its own inverse.
        Self::from_bits(Self::from_bits(order as u64).order() as u64)
    }

    fn times_power_of_two(self, exponent: i32) -> Self {
        let half = exponent / 2;
        let power = |exponent: i32| Self::from_bits(((exponent + 1023) as u64) << 52);
        self * power(half) * power(exponent - half)
    }
}
