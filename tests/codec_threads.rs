//! Messages are coded alike on however many threads.

#![allow(clippy::unwrap_used)]

use transpress::codec::{
    Bits, Coding, Decode, Element, Encode, Encoded, Guard, Item, Place, Refusal, decode, encode,
};
use transpress::layout::{Axes, Layout};

/// Extents of messages that one thread codes, that several share, and that are coded side by side.
const SHAPES: [[usize; 3]; 7] = [
    [100, 60, 50],
    [61, 33, 35],
    [5, 5, 5],
    [64, 64, 32],
    [200, 300, 1],
    [1, 1, 1],
    [128, 64, 9],
];

/// How messages are coded: all in the same way, as the values of a communicator are.
const WAYS: [(Coding, Bits); 6] = [
    (Coding::Zfp, Bits::Even),
    (Coding::Zfp, Bits::Fitted(None)),
    (Coding::Zfp, Bits::Bounded(1e-3)),
    (Coding::Fp16, Bits::Even),
    (Coding::Bf16, Bits::Even),
    (Coding::Lossless, Bits::Even),
];

struct Message {
    values: Vec<f64>,
    axes: Axes,
}

/// Waves, with some fill values in every third message.
fn messages() -> Vec<Message> {
    let message = |(number, extents): (usize, [usize; 3])| {
        let [nx, ny, nz] = extents;
        let mut values: Vec<f64> = (0..nx * ny * nz)
            .map(|i| {
                let (x, y, z) = (i % nx, i / nx % ny, i / nx / ny);
                1.5 + (0.1 * x as f64).sin() * (0.07 * y as f64).cos() + 0.013 * z as f64
            })
            .collect();
        if number % 3 == 0 {
            values[10..20].fill(-1e30);
        }
        let text = extents.map(|extent| extent.to_string()).join(",");
        let axes = Layout::parse(&text).unwrap().resolve(values.len()).unwrap();
        Message { values, axes }
    };
    SHAPES.into_iter().enumerate().map(message).collect()
}

/// What became of the messages, their payloads, and the bits of the values that came back.
type Results = Vec<(Result<Encoded, Refusal>, Vec<u64>, Vec<u64>)>;

fn there_and_back<T: Copy + Default>(
    element: Element,
    of: fn(f64) -> T,
    bits_of: fn(T) -> u64,
    (coding, bits): (Coding, Bits),
    threads: usize,
) -> Results {
    let messages = messages();
    let values: Vec<Vec<T>> = messages
        .iter()
        .map(|message| message.values.iter().map(|&value| of(value)).collect())
        .collect();
    let rate = if matches!(bits, Bits::Bounded(_)) || coding == Coding::Lossless {
        8 * size_of::<T>()
    } else {
        16
    };
    let mut payloads: Vec<Vec<u64>> = values
        .iter()
        .map(|values| vec![0; (values.len() * rate).div_ceil(64)])
        .collect();
    let item = Item::Float(element);
    let mut sent: Vec<Encode> = (messages.iter().zip(&values).zip(&mut payloads))
        .map(|((message, values), payload)| Encode {
            coding,
            item,
            values: values.as_ptr().cast(),
            place: Place::HOST,
            count: values.len(),
            axes: &message.axes,
            bits,
            payload,
            on_device: None,
        })
        .collect();
    // SAFETY: the messages describe live vectors.
    let outcomes = unsafe { encode(&mut sent, Guard::of(Some(0.1)), |_| true, threads) };
    let mut back: Vec<Vec<T>> = (values.iter())
        .map(|values| vec![T::default(); values.len()])
        .collect();
    let flat = Axes::new();
    let arrived = messages.iter().zip(&payloads).zip(&mut back).zip(&outcomes);
    let received: Vec<Decode> = arrived
        .filter_map(|(((message, payload), back), outcome)| {
            let encoded = outcome.ok()?;
            Some(Decode {
                coding,
                item,
                values: back.as_mut_ptr().cast(),
                place: Place::HOST,
                count: back.len(),
                axes: if encoded.flat { &flat } else { &message.axes },
                masked: encoded.masked,
                fitted: encoded.exponent.is_some(),
                payload: &payload[..encoded.words],
                on_device: None,
            })
        })
        .collect();
    // SAFETY: the messages describe live vectors.
    let decoded = unsafe { decode(&received, threads) };
    assert!(decoded.into_iter().all(|decoded| decoded));
    let results = outcomes.into_iter().zip(payloads).zip(back);
    results
        .map(|((outcome, payload), back)| {
            (outcome, payload, back.into_iter().map(bits_of).collect())
        })
        .collect()
}

fn same_on_threads<T: Copy + Default>(element: Element, of: fn(f64) -> T, bits_of: fn(T) -> u64) {
    for way in WAYS {
        let run = |threads| there_and_back(element, of, bits_of, way, threads);
        let expected = run(1);
        let coded = expected.iter().filter(|(outcome, ..)| outcome.is_ok());
        assert!(coded.count() >= 4, "{way:?}");
        for threads in [2, 3, 8] {
            for (index, (found, expected)) in run(threads).iter().zip(&expected).enumerate() {
                let what = format!("{element:?} {way:?}, message {index}, {threads} threads");
                assert_eq!(found.0, expected.0, "{what}");
                if found.0.is_ok() {
                    assert!(found.1 == expected.1, "payload: {what}");
                    assert!(found.2 == expected.2, "values: {what}");
                }
            }
        }
    }
}

#[test]
fn results_do_not_depend_on_threads() {
    same_on_threads(
        Element::F32,
        |value| value as f32,
        |value| value.to_bits().into(),
    );
    same_on_threads(Element::F64, |value| value, f64::to_bits);
}
