//! Seconds that the codec takes for messages, stage by stage: what the guard, the survey for fill values
//! and the header-to-payload path add to the bare ZFP kernels; and what a second thread takes off again.
//!
//! `cargo bench --bench message [-- NAME]` prints medians of several runs, all in one process, one and two threads by turns,
//! of the cases whose name begins so.

use std::time::Instant;
use transpress::codec::{self, Bits, Coding, Decode, Element, Encode, Guard, Item, Place};
use transpress::layout::{Axes, Kind};

const RUNS: usize = 31;
const HINTS: [i16; 2] = [-7, -51];
const SHAPE: [usize; 3] = [128, 128, 64];
/// Into how many messages the field is cut.
const MESSAGES: [usize; 2] = [1, 16];

struct Case {
    name: &'static str,
    coding: Coding,
    rate: usize,
    guard: Option<f64>,
    bits: Bits,
}

fn cases() -> Vec<Case> {
    let case = |name, coding, rate, guard, bits| Case {
        name,
        coding,
        rate,
        guard,
        bits,
    };
    let guard = Some(1e-2);
    // The exponents are those that a first search finds for this field.
    let [eight, sixteen] = HINTS.map(|hint| Bits::Fitted(Some(hint)));
    vec![
        case("zfp 8, no guard", Coding::Zfp, 8, None, Bits::Even),
        case("zfp 8, guard", Coding::Zfp, 8, guard, Bits::Even),
        case("zfp 16, no guard", Coding::Zfp, 16, None, Bits::Even),
        case("zfp 16, guard", Coding::Zfp, 16, guard, Bits::Even),
        case("zfp 8, guard, fitted", Coding::Zfp, 8, guard, eight),
        case("zfp 16, guard, fitted", Coding::Zfp, 16, guard, sixteen),
        case("fp16, no guard", Coding::Fp16, 16, None, Bits::Even),
        case("fp16, guard", Coding::Fp16, 16, guard, Bits::Even),
    ]
}

fn field() -> Vec<f32> {
    let [nx, ny, nz] = SHAPE;
    (0..nx * ny * nz)
        .map(|i| {
            let (x, y, z) = ((i % nx) as f32, (i / nx % ny) as f32, (i / nx / ny) as f32);
            250.0 + 40.0 * (0.02 * y).sin() * (1.0 - 0.01 * z) + (0.8 * x + 0.5 * y).sin()
        })
        .collect()
}

fn encode(
    case: &Case,
    values: &[f32],
    axes: &Axes,
    payload: &mut [u64],
    messages: usize,
    threads: usize,
) {
    let each = values.len() / messages;
    let payloads = payload.chunks_mut(each * case.rate / 64);
    let mut messages: Vec<_> = values
        .chunks(each)
        .zip(payloads)
        .map(|(values, payload)| Encode {
            coding: case.coding,
            item: Item::Float(Element::F32),
            values: values.as_ptr().cast(),
            place: Place::HOST,
            count: values.len(),
            axes,
            bits: case.bits,
            payload,
            on_device: None,
        })
        .collect();
    // SAFETY: the messages describe a live slice.
    let done = unsafe { codec::encode(&mut messages, Guard::of(case.guard), |_| false, threads) };
    assert!(done.iter().all(Result::is_ok));
}

fn decode(
    case: &Case,
    payload: &[u64],
    axes: &Axes,
    values: &mut [f32],
    messages: usize,
    threads: usize,
) {
    let each = values.len() / messages;
    let payloads = payload.chunks(each * case.rate / 64);
    let messages: Vec<_> = values
        .chunks_mut(each)
        .zip(payloads)
        .map(|(values, payload)| Decode {
            coding: case.coding,
            item: Item::Float(Element::F32),
            values: values.as_mut_ptr().cast(),
            place: Place::HOST,
            count: values.len(),
            axes,
            masked: false,
            fitted: case.bits != Bits::Even,
            payload,
            on_device: None,
        })
        .collect();
    // SAFETY: the messages describe a live slice.
    let done = unsafe { codec::decode(&messages, threads) };
    assert!(done.into_iter().all(|done| done));
}

/// Median seconds on one thread and on two.
fn medians(mut run: impl FnMut(usize)) -> [f64; 2] {
    let mut seconds = [const { Vec::new() }; 2];
    for _ in 0..RUNS {
        for (threads, seconds) in (1..).zip(&mut seconds) {
            let started = Instant::now();
            run(threads);
            seconds.push(started.elapsed().as_secs_f64());
        }
    }
    seconds.map(|mut seconds| {
        seconds.sort_by(f64::total_cmp);
        seconds[RUNS / 2]
    })
}

fn main() {
    let chosen = std::env::args().skip(1).find(|word| !word.starts_with('-'));
    let chosen = chosen.unwrap_or_default();
    let is_chosen = |case: &Case| case.name.starts_with(&chosen);
    let values = field();
    let bytes = size_of_val(&*values) as f64;
    let mut back = vec![0f32; values.len()];
    println!("GB/s of values, f32, on one thread; times as fast on two");
    for messages in MESSAGES {
        let [nx, ny, nz] = SHAPE;
        let axes = [nx, ny, nz / messages].map(|extent| (Kind::Smooth, extent as u32));
        let axes: Axes = axes.into_iter().collect();
        let title = format!(
            "{messages} x {} KiB",
            size_of_val(&*values) / messages / 1024
        );
        println!("{title:<24} {:>14} {:>14}", "encode", "decode");
        for case in cases().into_iter().filter(is_chosen) {
            let mut payload = vec![0u64; values.len() * case.rate / 64];
            let encoding =
                medians(|threads| encode(&case, &values, &axes, &mut payload, messages, threads));
            let decoding =
                medians(|threads| decode(&case, &payload, &axes, &mut back, messages, threads));
            let show = |[one, two]: [f64; 2]| format!("{:.2} {:.2}x", bytes / one / 1e9, one / two);
            println!(
                "{:<24} {:>14} {:>14}",
                case.name,
                show(encoding),
                show(decoding)
            );
        }
    }
}
