//! Narrower floats: float16 and bfloat16, the baselines that people compare with.

use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};

/// A 16-bit float of a payload.
trait Half: Copy {
    /// Bits of positive infinity; NaNs are above.
    const INFINITY: u16;
    fn bits(self) -> u16;
}

impl Half for f16 {
    const INFINITY: u16 = 0x7c00;
    fn bits(self) -> u16 {
        self.to_bits()
    }
}

impl Half for bf16 {
    const INFINITY: u16 = 0x7f80;
    fn bits(self) -> u16 {
        self.to_bits()
    }
}

/// A value that can be rounded to a 16-bit float and back. Slices are equally long.
pub trait Cast: Copy {
    fn narrow_f16(values: &[Self], halves: &mut [f16]);
    fn narrow_bf16(values: &[Self], halves: &mut [bf16]);
    fn widen_f16(halves: &[f16], values: &mut [Self]);
    fn widen_bf16(halves: &[bf16], values: &mut [Self]);
}

impl Cast for f32 {
    fn narrow_f16(values: &[Self], halves: &mut [f16]) {
        halves.convert_from_f32_slice(values);
    }
    fn narrow_bf16(values: &[Self], halves: &mut [bf16]) {
        halves.convert_from_f32_slice(values);
    }
    fn widen_f16(halves: &[f16], values: &mut [Self]) {
        halves.convert_to_f32_slice(values);
    }
    fn widen_bf16(halves: &[bf16], values: &mut [Self]) {
        halves.convert_to_f32_slice(values);
    }
}

impl Cast for f64 {
    fn narrow_f16(values: &[Self], halves: &mut [f16]) {
        halves.convert_from_f64_slice(values);
    }
    fn narrow_bf16(values: &[Self], halves: &mut [bf16]) {
        halves.convert_from_f64_slice(values);
    }
    fn widen_f16(halves: &[f16], values: &mut [Self]) {
        halves.convert_to_f64_slice(values);
    }
    fn widen_bf16(halves: &[bf16], values: &mut [Self]) {
        halves.convert_to_f64_slice(values);
    }
}

/// Values as they come back from float16; `None` where one is beyond its range.
pub fn through_f16<T: Cast + Default>(values: &[T]) -> Option<Vec<T>> {
    let (mut words, mut back) = rooms(values);
    (to_f16(values, &mut words) && from_f16(&words, &mut back)).then_some(back)
}

/// Values as they come back from bfloat16.
pub fn through_bf16<T: Cast + Default>(values: &[T]) -> Option<Vec<T>> {
    let (mut words, mut back) = rooms(values);
    (to_bf16(values, &mut words) && from_bf16(&words, &mut back)).then_some(back)
}

fn rooms<T: Clone + Default>(values: &[T]) -> (Vec<u64>, Vec<T>) {
    (
        vec![0; values.len().div_ceil(4)],
        vec![T::default(); values.len()],
    )
}

/// Rounds finite values to float16. `false` where one is beyond its range (65504), or `words` too short.
pub fn to_f16<T: Cast>(values: &[T], words: &mut [u64]) -> bool {
    narrow(values, words, T::narrow_f16)
}

/// Rounds finite values to bfloat16, whose range is that of f32.
pub fn to_bf16<T: Cast>(values: &[T], words: &mut [u64]) -> bool {
    narrow(values, words, T::narrow_bf16)
}

/// `false` where `words` is too short.
pub fn from_f16<T: Cast>(words: &[u64], values: &mut [T]) -> bool {
    widen(words, values, T::widen_f16)
}

/// `false` where `words` is too short.
pub fn from_bf16<T: Cast>(words: &[u64], values: &mut [T]) -> bool {
    widen(words, values, T::widen_bf16)
}

fn narrow<T, H: Half>(values: &[T], words: &mut [u64], convert: fn(&[T], &mut [H])) -> bool {
    let Some(halves) = halves_of(words).get_mut(..values.len()) else {
        return false;
    };
    convert(values, halves);
    // Without an exit on the way, so that the compiler can use vectors.
    let largest = halves
        .iter()
        .fold(0, |largest, half| (half.bits() & 0x7fff).max(largest));
    largest < H::INFINITY
}

fn widen<T, H: Half>(words: &[u64], values: &mut [T], convert: fn(&[H], &mut [T])) -> bool {
    let length = words.len() * 4;
    // SAFETY: a word holds four halves, is aligned for them, and any bits are a half.
    let halves = unsafe { std::slice::from_raw_parts(words.as_ptr().cast::<H>(), length) };
    let Some(halves) = halves.get(..values.len()) else {
        return false;
    };
    convert(halves, values);
    true
}

fn halves_of<H: Half>(words: &mut [u64]) -> &mut [H] {
    let length = words.len() * 4;
    // SAFETY: a word holds four halves, is aligned for them, and any bits are a half.
    unsafe { std::slice::from_raw_parts_mut(words.as_mut_ptr().cast::<H>(), length) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_back_rounded_to_nearest() {
        let values = [1.0f64, -0.333, 65504.0, 6e-8, -0.0, 3.140625];
        let mut words = [0; 2];
        let mut back = [0f64; 6];
        assert!(to_f16(&values, &mut words) && from_f16(&words, &mut back));
        for (value, back) in values.iter().zip(back) {
            assert!(
                (value - back).abs() <= value.abs() / 2048.0 + 3e-8,
                "{value} {back}"
            );
        }
        assert!(to_bf16(&values, &mut words) && from_bf16(&words, &mut back));
        for (value, back) in values.iter().zip(back) {
            assert!(
                (value - back).abs() <= value.abs() / 256.0,
                "{value} {back}"
            );
        }
    }

    #[test]
    fn values_beyond_float16_are_reported() {
        assert!(!to_f16(&[1.0f32, 101_325.0], &mut [0]));
        assert!(to_bf16(&[1.0f32, 101_325.0], &mut [0]));
    }

    #[test]
    fn short_payloads_are_reported() {
        assert!(!to_f16(&[1.0f32; 5], &mut [0]));
        assert!(!from_f16(&[0], &mut [1.0f32; 5]));
    }
}
