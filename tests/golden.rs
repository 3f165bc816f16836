//! The bytes of wire format 2 do not change: fixed messages, and the hashes of what they become.
//!
//! A change here is a new version of the format (src/wire.rs, docs/wire-format.md).

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use transpress::codec::{self, Bits, Coding, Decode, Element, Encode, Guard, Item, Place};
use transpress::layout::Layout;
use transpress::wire::{self, HEADER_BYTES, Header, fnv1a};

const COUNT: usize = 2 * 5 * 40;

fn values(count: usize) -> Vec<f32> {
    // Whole numbers over a power of two: exact in binary, the same on every machine.
    let wave = |i: usize| ((i * i * 7 + i * 3) % 1024) as f32 / 64.0 - 8.0;
    (0..count)
        .map(|i| wave(i) * [1.0, 256.0, 1.0 / 4096.0, 1.0, 8.0][i / 2 % 5])
        .collect()
}

/// The whole message, header included.
fn message(coding: Coding, rate: f64, layout: &str, bits: Bits, values: &[f32]) -> Vec<u8> {
    let count = values.len();
    let axes = Layout::parse(layout).unwrap().resolve(count).unwrap();
    let wire_bytes = wire::wire_bytes(count, rate);
    let mut payload = vec![0u64; (wire_bytes - HEADER_BYTES) / 8];
    let encoded = {
        let mut messages = [Encode {
            coding,
            item: Item::Float(Element::F32),
            values: values.as_ptr().cast(),
            place: Place::HOST,
            count,
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
        count,
        wire_bytes,
        axes,
    };
    let words = payload.iter().flat_map(|word| word.to_le_bytes());
    header.to_bytes().into_iter().chain(words).collect()
}

fn decoded(bytes: &[u8], coding: Coding, count: usize) -> Vec<f32> {
    try_decode(bytes, coding, count).unwrap()
}

fn can_be_decoded(bytes: &[u8], count: usize) -> bool {
    try_decode(bytes, Coding::Zfp, count).is_some()
}

fn try_decode(bytes: &[u8], coding: Coding, count: usize) -> Option<Vec<f32>> {
    let header = Header::read(
        bytes,
        coding,
        Item::Float(Element::F32),
        count..=count,
        bytes.len(),
    )
    .unwrap();
    let payload: Vec<u64> = bytes[HEADER_BYTES..]
        .chunks_exact(8)
        .map(|word| u64::from_le_bytes(word.try_into().unwrap()))
        .collect();
    let mut values = vec![0f32; count];
    let messages = [Decode {
        coding,
        item: Item::Float(Element::F32),
        values: values.as_mut_ptr().cast(),
        place: Place::HOST,
        count,
        axes: &header.axes,
        masked: header.masked,
        fitted: header.fitted,
        payload: &payload,
        on_device: None,
    }];
    // SAFETY: the message describes a live vector.
    let done = unsafe { codec::decode(&messages, 1) };
    done[0].then_some(values)
}

fn check(name: &str, bytes: &[u8], golden: u64) {
    assert_eq!(fnv1a(bytes), golden, "{name}: 0x{:016x}", fnv1a(bytes));
}

#[test]
fn messages_are_what_they_were() {
    let values = values(COUNT);
    let golden = [
        (
            Coding::Zfp,
            12.5,
            "2c,5f,*",
            Bits::Even,
            0x17e4_36f1_fb20_cd25,
        ),
        (
            Coding::Zfp,
            12.5,
            "2c,5f,*",
            Bits::Fitted(None),
            0xeccb_ecd1_631b_18dd,
        ),
        (Coding::Zfp, 8.0, "*", Bits::Even, 0x56fa_8561_0981_fbb9),
        (Coding::Fp16, 16.0, "*", Bits::Even, 0xbfd7_c808_3682_dde9),
        (Coding::Bf16, 16.0, "*", Bits::Even, 0x6306_6015_4155_b587),
    ];
    let hashes = golden.map(|(coding, rate, layout, bits, _)| {
        fnv1a(&message(coding, rate, layout, bits, &values))
    });
    assert_eq!(hashes, golden.map(|row| row.4), "{hashes:#018x?}");
}

#[test]
fn a_masked_message_is_what_it_was_and_its_fill_values_come_back() {
    let mut values = values(COUNT);
    values[100..140].fill(1e20);
    values[333] = f32::NAN;
    let bytes = message(Coding::Zfp, 16.0, "10,*", Bits::Even, &values);
    check("masked", &bytes, 0x4804_b8e5_f29c_fb78);
    let back = decoded(&bytes, Coding::Zfp, COUNT);
    for (value, back) in values.iter().zip(back) {
        if value.is_nan() || *value == 1e20 {
            assert_eq!(value.to_bits(), back.to_bits());
        } else {
            assert!((value - back).abs() < 30.0, "{value} {back}");
        }
    }
}

#[test]
fn a_long_fitted_message_is_what_it_was_and_damage_to_its_index_is_found() {
    // Two streams of 20480 values each: two words of head and eight for each index.
    let values = values(2 * 5 * 4096);
    let bytes = message(Coding::Zfp, 12.5, "2c,5f,*", Bits::Fitted(None), &values);
    check("long", &bytes, 0x65da_21b8_1791_84b7);
    let back = decoded(&bytes, Coding::Zfp, values.len());
    assert!(
        values
            .iter()
            .zip(back)
            .all(|(value, back)| (value - back).abs() < 1.0)
    );

    // After the header and two words of scales: the bound, two lengths, then the first part's length.
    let mut damaged = bytes.clone();
    damaged[HEADER_BYTES + 8 * (2 + 1 + 2)] ^= 1;
    assert!(!can_be_decoded(&damaged, values.len()));
    assert!(can_be_decoded(&bytes, values.len()));
}
