//! How fast this machine codes, measured once.

use super::{Bits, Coding, Element, Float, Guard, Item, Way, round_trips};
use crate::layout::{Axes, Kind};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// A smooth box, some of it in the caches.
const EXTENTS: [usize; 3] = [64, 64, 32];
/// One for each thread, as messages are shared out; so many threads and more are as fast each.
const SIDE_BY_SIDE: usize = 16;
/// The fastest of so many runs counts.
const RUNS: usize = 3;

/// What a speed was measured for; the rate as its bits.
type Case = (Coding, Item, u64, usize);

/// Bytes of values that are coded and decoded in a second, at so many bits per value where the coding has a rate,
/// on up to `threads` threads.
pub fn speed(coding: Coding, item: Item, rate: f64, threads: usize) -> f64 {
    static KNOWN: Mutex<Vec<(Case, f64)>> = Mutex::new(Vec::new());
    let kind = (coding, item, rate.to_bits(), threads);
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, speed)) = known.iter().find(|(other, _)| *other == kind) {
        return *speed;
    }
    let speed = match item {
        Item::Float(Element::F32) => measure::<f32>(coding, rate, threads),
        // As good a guess for what is no float.
        Item::Float(Element::F64) | Item::Word(_) => measure::<f64>(coding, rate, threads),
    };
    known.push((kind, speed));
    speed
}

fn measure<T: Float>(coding: Coding, rate: f64, threads: usize) -> f64 {
    let axes: Axes = EXTENTS.map(|extent| (Kind::Smooth, extent as u32)).into();
    let [nx, ny, nz] = EXTENTS;
    let values: Vec<T> = (0..nx * ny * nz)
        .map(|i| {
            let (x, y, z) = (i % nx, i / nx % ny, i / nx / ny);
            T::from_f64((0.1 * x as f64).sin() * (0.07 * y as f64).cos() + 0.05 * z as f64)
        })
        .collect();
    let bytes = size_of_val(&*values);
    let words = match coding {
        Coding::Lossless => bytes / 8,
        Coding::Zfp | Coding::Fp16 | Coding::Bf16 => {
            (values.len() as f64 * rate / 64.0).ceil() as usize
        }
    };
    let way = Way {
        coding,
        axes: &axes,
        bits: Bits::Even,
        payload_words: words,
        guard: Guard::OFF,
    };
    let side_by_side = threads.min(SIDE_BY_SIDE);
    let messages = vec![&*values; side_by_side];
    let seconds = (0..RUNS).map(|_| {
        let started = Instant::now();
        let done = round_trips(&messages, way, side_by_side);
        match done.iter().all(Result::is_ok) {
            true => started.elapsed().as_secs_f64(),
            false => f64::INFINITY,
        }
    });
    let seconds_each = seconds.fold(f64::INFINITY, f64::min) / threads as f64;
    bytes as f64 / seconds_each
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_coding_has_a_speed() {
        for coding in [Coding::Zfp, Coding::Fp16, Coding::Bf16, Coding::Lossless] {
            for item in [Element::F32, Element::F64].map(Item::Float) {
                let measured = speed(coding, item, 16.0, 1);
                assert!(
                    measured > 0.0 && measured.is_finite(),
                    "{coding:?} {item:?}"
                );
                assert_eq!(speed(coding, item, 16.0, 1), measured);
            }
        }
    }
}
