//! Seconds that the codec takes for one message, stage by stage: what the guard, the survey for fill values
//! and the header-to-payload path add to the bare ZFP kernels.
//!
//! `cargo bench --bench message` prints medians of several runs, all in one process on one core.

use std::time::Instant;
use transpress::codec::{self, Bits, Coding, Decode, Element, Encode, Guard, Item, Place};
use transpress::layout::{Axes, Kind};

const RUNS: usize = 15;
const HINTS: [i16; 2] = [-7, -51];
const SHAPE: [u32; 3] = [128, 128, 64];

fn median(mut run: impl FnMut()) -> f64 {
    let mut seconds: Vec<f64> = (0..RUNS)
        .map(|_| {
            let started = Instant::now();
            run();
            started.elapsed().as_secs_f64()
        })
        .collect();
    seconds.sort_by(f64::total_cmp);
    seconds[RUNS / 2]
}

fn field() -> Vec<f32> {
    let [nx, ny, nz] = SHAPE.map(|n| n as usize);
    (0..nx * ny * nz)
        .map(|i| {
            let (x, y, z) = ((i % nx) as f32, (i / nx % ny) as f32, (i / nx / ny) as f32);
            250.0 + 40.0 * (0.02 * y).sin() * (1.0 - 0.01 * z) + (0.8 * x + 0.5 * y).sin()
        })
        .collect()
}

fn main() {
    let values = field();
    let bytes = (values.len() * 4) as f64;
    let axes: Axes = SHAPE.iter().map(|&extent| (Kind::Smooth, extent)).collect();
    println!(
        "{:<28} {:>12} {:>12}",
        "message of 4 MiB, f32", "encode GB/s", "decode GB/s"
    );
    for (name, coding, rate, guard, bits) in [
        ("zfp 8, no guard", Coding::Zfp, 8, None, Bits::Even),
        ("zfp 8, guard", Coding::Zfp, 8, Some(1e-2), Bits::Even),
        ("zfp 16, no guard", Coding::Zfp, 16, None, Bits::Even),
        ("zfp 16, guard", Coding::Zfp, 16, Some(1e-2), Bits::Even),
        // The exponents are those that a first search finds for this field.
        (
            "zfp 8, guard, fitted",
            Coding::Zfp,
            8,
            Some(1e-2),
            Bits::Fitted(Some(HINTS[0])),
        ),
        (
            "zfp 16, guard, fitted",
            Coding::Zfp,
            16,
            Some(1e-2),
            Bits::Fitted(Some(HINTS[1])),
        ),
        ("fp16, no guard", Coding::Fp16, 16, None, Bits::Even),
        ("fp16, guard", Coding::Fp16, 16, Some(1e-2), Bits::Even),
    ] {
        let mut payload = vec![0u64; values.len() * rate / 64];
        let encode = median(|| {
            let mut message = [Encode {
                coding,
                item: Item::Float(Element::F32),
                values: values.as_ptr().cast(),
                place: Place::HOST,
                count: values.len(),
                axes: &axes,
                bits,
                payload: &mut payload,
                on_device: None,
            }];
            // SAFETY: the message describes a live vector.
            let done = unsafe { codec::encode(&mut message, Guard::of(guard), |_| false, 1) };
            assert!(done[0].is_ok());
        });
        let mut back = vec![0f32; values.len()];
        let decode = median(|| {
            let message = [Decode {
                coding,
                item: Item::Float(Element::F32),
                values: back.as_mut_ptr().cast(),
                place: Place::HOST,
                count: values.len(),
                axes: &axes,
                masked: false,
                fitted: bits != Bits::Even,
                payload: &payload,
                on_device: None,
            }];
            // SAFETY: the message describes a live vector.
            assert!(unsafe { codec::decode(&message, 1) }[0]);
        });
        println!(
            "{name:<28} {:>12.2} {:>12.2}",
            bytes / encode / 1e9,
            bytes / decode / 1e9
        );
    }
}
