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

/// How messages are coded: along `axes` (none: flat), into payloads of so many 64-bit words.
#[derive(Clone, Copy)]
pub struct Way<'a> {
    pub coding: Coding,
    pub axes: &'a Axes,
    pub bits: Bits,
    pub payload_words: usize,
    pub guard: Guard,
}

/// Codes values and decodes them.
pub fn round_trip<T: Float>(
    values: &[T],
    way: Way,
    threads: usize,
) -> Result<Returned<T>, Refusal> {
    let mut returned = round_trips(&[values], way, threads);
    returned.pop().unwrap_or(Err(Refusal::NoRoom))
}

/// [`round_trip`] of several messages at once.
pub fn round_trips<T: Float>(
    messages: &[&[T]],
    way: Way,
    threads: usize,
) -> Vec<Result<Returned<T>, Refusal>> {
    let Way {
        coding,
        axes,
        bits,
        payload_words,
        guard,
    } = way;
    let item = Item::Float(T::ELEMENT);
    let mut payloads = vec![vec![0; payload_words]; messages.len()];
    let mut sent: Vec<_> = (messages.iter().zip(&mut payloads))
        .map(|(values, payload)| Encode {
            coding,
            item,
            values: values.as_ptr().cast(),
            place: Place::HOST,
            count: values.len(),
            axes,
            bits,
            payload,
            on_device: None,
        })
        .collect();
    // SAFETY: each slice holds that many values of its type.
    let outcomes = unsafe { encode(&mut sent, guard, |_| true, threads) };
    let flat = Axes::new();
    let mut back: Vec<Vec<T>> = (messages.iter())
        .map(|values| vec![T::default(); values.len()])
        .collect();
    let arrived = outcomes.iter().zip(&payloads).zip(&mut back);
    let received: Vec<_> = arrived
        .filter_map(|((outcome, payload), back)| {
            let encoded = outcome.as_ref().ok()?;
            Some(Decode {
                coding,
                item,
                values: back.as_mut_ptr().cast(),
                place: Place::HOST,
                count: back.len(),
                axes: if encoded.flat { &flat } else { axes },
                masked: encoded.masked,
                fitted: encoded.exponent.is_some(),
                payload: &payload[..encoded.words],
                on_device: None,
            })
        })
        .collect();
    // SAFETY: each vector has room for that many values of its type, and nothing else refers to it.
    let mut decoded = unsafe { decode(&received, threads) }.into_iter();
    let returned = outcomes.into_iter().zip(back);
    returned
        .map(|(outcome, values)| {
            let encoded = outcome?;
            match decoded.next() {
                Some(true) => Ok(Returned { values, encoded }),
                _ => Err(Refusal::NoRoom),
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Layout;

    fn way(coding: Coding, axes: &Axes, payload_words: usize, guard: Guard) -> Way<'_> {
        let bits = Bits::Even;
        Way {
            coding,
            axes,
            bits,
            payload_words,
            guard,
        }
    }

    #[test]
    fn values_come_back_nearly_and_fill_values_exactly() {
        let mut values: Vec<f32> = (0..4096)
            .map(|i| 280.0 + (i as f32 * 0.01).sin() * 30.0)
            .collect();
        values[1000..1100].fill(-1e34);
        let axes = Layout::parse("64,*").unwrap().resolve(4096).unwrap();
        let back = round_trip(&values, way(Coding::Zfp, &axes, 1024, Guard::OFF), 1).unwrap();
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
        let flat = Axes::new();
        let refusal = round_trip(&integers, way(Coding::Zfp, &flat, 25, guard), 1);
        assert_eq!(refusal, Err(Refusal::Integers));
        let large = [1e9f32; 8];
        let refusal = round_trip(&large, way(Coding::Fp16, &flat, 2, Guard::OFF), 1);
        assert_eq!(refusal, Err(Refusal::Uncodable));
    }

    #[test]
    fn values_whose_squares_are_zero_are_not_let_through_unseen() {
        let noise: Vec<f64> = (0..1024u64)
            .map(|i| ((i * 7919) % 1009) as f64 * 1e-170 + 1e-171)
            .collect();
        let guard = Guard::of(Some(1e-2));
        let flat = Axes::new();
        let refusal = round_trip(&noise, way(Coding::Zfp, &flat, 128, guard), 1);
        assert_eq!(refusal, Err(Refusal::Guard(f64::INFINITY)));
    }
}
