//! The bytes of wire format 1 do not change: fixed messages, and the hashes of what they become.
//!
//! A change here is a new version of the format (src/wire.rs, docs/wire-format.md).

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use transpress::codec::{self, Bits, Coding, Decode, Element, Encode, Guard, Item, Place};
use transpress::layout::Layout;
use transpress::wire::{self, HEADER_BYTES, Header, fnv1a};

const COUNT: usize = 2 * 5 * 40;

fn values() -> Vec<f32> {
    // Whole numbers over a power of two: exact in binary, the same on every machine.
    let wave = |i: usize| ((i * i * 7 + i * 3) % 1024) as f32 / 64.0 - 8.0;
    (0..COUNT)
        .map(|i| wave(i) * [1.0, 256.0, 1.0 / 4096.0, 1.0, 8.0][i / 2 % 5])
        .collect()
}

/// The whole message, header included.
fn message(coding: Coding, rate: f64, layout: &str, bits: Bits, values: &[f32]) -> Vec<u8> {
    let axes = Layout::parse(layout).unwrap().resolve(COUNT).unwrap();
    let wire_bytes = wire::wire_bytes(COUNT, rate);
    let mut payload = vec![0u64; (wire_bytes - HEADER_BYTES) / 8];
    let encoded = {
        let mut messages = [Encode {
            coding,
            item: Item::Float(Element::F32),
            values: values.as_ptr().cast(),
            place: Place::HOST,
            count: COUNT,
            axes: &axes,
            bits,
            payload: &mut payload,
            on_device: None,
        }];
        // SAFETY: the message describes a live slice.
        let done = unsafe { codec::encode(&mut messages, Guard::OFF, |_| false, 1) };
        done[0].unwrap()
    };
    let header = Header {
        coding,
        item: Item::Float(Element::F32),
        escaped: false,
        masked: encoded.masked,
        fitted: encoded.exponent.is_some(),
        count: COUNT,
        wire_bytes,
        axes,
    };
    let words = payload.iter().flat_map(|word| word.to_le_bytes());
    header.to_bytes().into_iter().chain(words).collect()
}

fn decoded(bytes: &[u8], coding: Coding) -> Vec<f32> {
    let header = Header::read(
        bytes,
        coding,
        Item::Float(Element::F32),
        COUNT..=COUNT,
        bytes.len(),
    )
    .unwrap();
    let payload: Vec<u64> = bytes[HEADER_BYTES..]
        .chunks_exact(8)
        .map(|word| u64::from_le_bytes(word.try_into().unwrap()))
        .collect();
    let mut values = vec![0f32; COUNT];
    let messages = [Decode {
        coding,
        item: Item::Float(Element::F32),
        values: values.as_mut_ptr().cast(),
        place: Place::HOST,
        count: COUNT,
        axes: &header.axes,
        masked: header.masked,
        fitted: header.fitted,
        payload: &payload,
        on_device: None,
    }];
    // SAFETY: the message describes a live vector.
    assert!(unsafe { codec::decode(&messages, 1) }[0]);
    values
}

fn check(name: &str, bytes: &[u8], golden: u64) {
    assert_eq!(fnv1a(bytes), golden, "{name}: 0x{:016x}", fnv1a(bytes));
}

#[test]
fn messages_are_what_they_were() {
    let values = values();
    let golden = [
        (
            Coding::Zfp,
            12.5,
            "2c,5f,*",
            Bits::Even,
            0xc774_7c6a_92e9_bb0a,
        ),
        (
            Coding::Zfp,
            12.5,
            "2c,5f,*",
            Bits::Fitted(None),
            0x2a71_3427_4c08_2ce9,
        ),
        (Coding::Zfp, 8.0, "*", Bits::Even, 0x2ae3_5497_7c98_d246),
        (Coding::Fp16, 16.0, "*", Bits::Even, 0xa592_7dad_74d0_70aa),
        (Coding::Bf16, 16.0, "*", Bits::Even, 0x3b63_4a27_e54e_9bc9),
    ];
    let hashes = golden.map(|(coding, rate, layout, bits, _)| {
        fnv1a(&message(coding, rate, layout, bits, &values))
    });
    assert_eq!(hashes, golden.map(|row| row.4), "{hashes:#018x?}");
}

#[test]
fn a_masked_message_is_what_it_was_and_its_fill_values_come_back() {
    let mut values = values();
    values[100..140].fill(1e20);
    values[333] = f32::NAN;
    let bytes = message(Coding::Zfp, 16.0, "10,*", Bits::Even, &values);
    check("masked", &bytes, 0x19cb_9bf3_d98e_4be3);
    let back = decoded(&bytes, Coding::Zfp);
    for (value, back) in values.iter().zip(back) {
        if value.is_nan() || *value == 1e20 {
            assert_eq!(value.to_bits(), back.to_bits());
        } else {
            assert!((value - back).abs() < 30.0, "{value} {back}");
        }
    }
}
