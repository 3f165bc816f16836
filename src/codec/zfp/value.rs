//! What the codec needs to know about `f32` and `f64`, and about the integers their blocks become.

use std::fmt::Debug;

/// A value type that ZFP codes: `f32` or `f64`.
pub trait Value: Copy + Debug + Default + PartialEq + Send + Sync + Float + 'static {
    /// Bits of a block's header: one flag and the exponent. A block needs at least this many.
    const HEADER_BITS: u32;
}

impl Value for f32 {
    const HEADER_BITS: u32 = 1 + <f32 as Float>::EXPONENT_BITS;
}

impl Value for f64 {
    const HEADER_BITS: u32 = 1 + <f64 as Float>::EXPONENT_BITS;
}

/// The IEEE format behind a [`Value`]. Public only because `Value` names it; the module is private.
pub trait Float: Copy + PartialEq + 'static {
    /// The integer a value becomes, as wide as the value.
    type Int: Int;
    const EXPONENT_BITS: u32;
    /// Bits below the exponent.
    const FRACTION_BITS: u32;
    /// ZFP's exponent bias; its exponents are `frexp`'s, one above IEEE's.
    const BIAS: i32;
    const ZEROS: &'static [Self; 64];

    /// The bits without the sign. They order as the magnitudes do, with NaN above infinity.
    fn magnitude(self) -> Self::Int;
    /// 2 to the power `exponent`, rounded as `ldexp(1, exponent)` does: 0 when it underflows.
    /// Only exponents that do not overflow may be asked for.
    fn power_of_two(exponent: i32) -> Self;
    fn times(self, factor: Self) -> Self;
    fn plus(self, other: Self) -> Self;
    fn abs(self) -> Self;
    /// The larger one of two numbers; `other` if one is none.
    fn larger(self, other: Self) -> Self;
    /// Towards zero.
    ///
    /// # Safety
    /// The result must be one that the integer can hold.
    unsafe fn truncate(self) -> Self::Int;
    /// To the nearest value.
    fn from_int(int: Self::Int) -> Self;
    fn to_f64(self) -> f64;
}

/// A two's complement integer, with wrapping arithmetic: overflow happens in hostile streams only,
/// and then any value will do as long as it is always the same.
pub trait Int: Copy + Default + Ord + 'static {
    const BITS: u32;
    fn plus(self, other: Self) -> Self;
    fn minus(self, other: Self) -> Self;
    /// Half, towards minus infinity.
    fn half(self) -> Self;
    /// Base -2, in which small magnitudes of both signs have zero high digits.
    fn to_negabinary(self) -> Self;
    fn of_negabinary(digits: Self) -> Self;
    /// As many bits as it has, below zeros.
    fn bits(self) -> u64;
    /// The inverse of [`Self::bits`], whatever is above them.
    fn of_bits(bits: u64) -> Self;
}

macro_rules! implement {
    ($float:ty, $int:ty, $bits:ty, $exponent_bits:expr) => {
        impl Float for $float {
            type Int = $int;
            const EXPONENT_BITS: u32 = $exponent_bits;
            const FRACTION_BITS: u32 = <$float>::MANTISSA_DIGITS - 1;
            const BIAS: i32 = <$float>::MAX_EXP - 1;
            const ZEROS: &'static [$float; 64] = &[0.0; 64];

            #[inline(always)]
            fn magnitude(self) -> $int {
                (self.to_bits() & (<$bits>::MAX >> 1)) as $int
            }
            #[inline(always)]
            fn power_of_two(exponent: i32) -> $float {
                let biased = exponent + Self::BIAS;
                let bits = if biased > 0 {
                    (biased as $bits) << Self::FRACTION_BITS
                } else {
                    // Subnormal, down to nothing.
                    (1 as $bits << Self::FRACTION_BITS)
                        .checked_shr((1 - biased) as u32)
                        .unwrap_or(0)
                };
                <$float>::from_bits(bits)
            }
            #[inline(always)]
            fn times(self, factor: $float) -> $float {
                self * factor
            }
            #[inline(always)]
            fn plus(self, other: $float) -> $float {
                self + other
            }
            #[inline(always)]
            fn abs(self) -> $float {
                self.abs()
            }
            #[inline(always)]
            fn larger(self, other: $float) -> $float {
                if self > other { self } else { other }
            }
            #[inline(always)]
            unsafe fn truncate(self) -> $int {
                // SAFETY: the caller's promise, handed on.
                unsafe { self.to_int_unchecked() }
            }
            #[inline(always)]
            fn from_int(int: $int) -> $float {
                int as $float
            }
            #[inline(always)]
            fn to_f64(self) -> f64 {
                f64::from(self)
            }
        }

        impl Int for $int {
            const BITS: u32 = <$int>::BITS;

            #[inline(always)]
            fn plus(self, other: $int) -> $int {
                self.wrapping_add(other)
            }
            #[inline(always)]
            fn minus(self, other: $int) -> $int {
                self.wrapping_sub(other)
            }
            #[inline(always)]
            fn half(self) -> $int {
                self >> 1
            }
            #[inline(always)]
            fn to_negabinary(self) -> $int {
                const ODD_DIGITS: $int = (<$bits>::MAX / 3 * 2) as $int;
                self.wrapping_add(ODD_DIGITS) ^ ODD_DIGITS
            }
            #[inline(always)]
            fn of_negabinary(digits: $int) -> $int {
                const ODD_DIGITS: $int = (<$bits>::MAX / 3 * 2) as $int;
                (digits ^ ODD_DIGITS).wrapping_sub(ODD_DIGITS)
            }
            #[inline(always)]
            fn bits(self) -> u64 {
                u64::from(self as $bits)
            }
            #[inline(always)]
            fn of_bits(bits: u64) -> $int {
                bits as $int
            }
        }
    };
}

implement!(f32, i32, u32, 8);
implement!(f64, i64, u64, 11);
