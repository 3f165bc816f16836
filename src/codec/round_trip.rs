//! Values → payload → values, for whoever wants to see what a message does to them.

use super::float::Float;
use super::{Bits, Coding, Decode, Encode, Encoded, Guard, Item, Place, Refusal, decode, encode};
use crate::layout::Axes;

/// Values as they come out of a message.
#[derive(Clone, Debug, PartialEq)]
pub struct Returned<T> {
    pub values: Vec<T>,
    pub encoded: Encoded,
}

/// Codes values along `axes` (none: flat) into a payload of so many 64-bit words, and decodes it.
pub fn round_trip<T: Float>(
    coding: Coding,
    values: &[T],
    axes: &Axes,
    bits: Bits,
    payload_words: usize,
    guard: Guard,
    threads: usize,
) -> Result<Returned<T>, Refusal> {
    let mut payload = vec![0; payload_words];
    let mut messages = [Encode {
        coding,
        item: Item::Float(T::ELEMENT),
        values: values.as_ptr().cast(),
        place: Place::HOST,
        count: values.len(),
        axes,
        bits,
        payload: &mut payload,
        on_device: None,
    }];
    // SAFETY: the slice holds that many values of its type.
    let outcomes = unsafe { encode(&mut messages, guard, |_| true, threads) };
    let encoded = outcomes
        .into_iter()
        .next()
        .unwrap_or(Err(Refusal::NoRoom))?;
    let flat = Axes::new();
    let mut back = vec![T::default(); values.len()];
    let messages = [Decode {
        coding,
        item: Item::Float(T::ELEMENT),
        values: back.as_mut_ptr().cast(),
        place: Place::HOST,
        count: back.len(),
        axes: if encoded.flat { &flat } else { axes },
        masked: encoded.masked,
        fitted: encoded.exponent.is_some(),
        payload: &payload[..encoded.words],
        on_device: None,
    }];
    // SAFETY: the vector has room for that many values of its type, and nothing else refers to it.
    let decoded = unsafe { decode(&messages, threads) };
    match decoded[..] {
        [true] => Ok(Returned {
            values: back,
            encoded,
        }),
        _ => Err(Refusal::NoRoom),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Layout;

    const NO_GUARD: Guard = Guard::OFF;

    #[test]
    fn values_come_back_nearly_and_fill_values_exactly() {
        let mut values: Vec<f32> = (0..4096)
            .map(|i| 280.0 + (i as f32 * 0.01).sin() * 30.0)
            .collect();
        values[1000..1100].fill(-1e34);
        let axes = Layout::parse("64,*").unwrap().resolve(4096).unwrap();
        let back = round_trip(Coding::Zfp, &values, &axes, Bits::Even, 1024, NO_GUARD, 1).unwrap();
        assert!(back.encoded.masked);
        for (value, back) in values.iter().zip(&back.values) {
            assert!((value - back).abs() < 0.1, "{value} {back}");
        }
        assert_eq!(back.values[1000..1100], values[1000..1100]);
    }

    #[test]
    fn what_is_refused_is_told() {
        let integers: Vec<f64> = (0..100).map(f64::from).collect();
        let guard = Guard::of(Some(1e-2));
        let refusal = round_trip(
            Coding::Zfp,
            &integers,
            &Axes::new(),
            Bits::Even,
            25,
            guard,
            1,
        );
        assert_eq!(refusal, Err(Refusal::Integers));
        let large = [1e9f32; 8];
        let refusal = round_trip(
            Coding::Fp16,
            &large,
            &Axes::new(),
            Bits::Even,
            2,
            NO_GUARD,
            1,
        );
        assert_eq!(refusal, Err(Refusal::Uncodable));
    }

    #[test]
    fn values_whose_squares_are_zero_are_not_let_through_unseen() {
        let noise: Vec<f64> = (0..1024u64)
            .map(|i| ((i * 7919) % 1009) as f64 * 1e-170 + 1e-171)
            .collect();
        let guard = Guard::of(Some(1e-2));
        let refusal = round_trip(Coding::Zfp, &noise, &Axes::new(), Bits::Even, 128, guard, 1);
        assert_eq!(refusal, Err(Refusal::Guard(f64::INFINITY)));
    }
}
