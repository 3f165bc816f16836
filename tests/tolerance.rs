//! No value is further from what was sent than the tolerance, whatever the values are.

#![allow(clippy::expect_used)]

use proptest::prelude::*;
use transpress::codec::{
    Bits, Coding, Decode, Encode, Float, Guard, Item, Place, Refusal, decode, encode,
};
use transpress::layout::{Axes, Layout};

/// A small generator, so that a failing case is a seed and not a page of numbers.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ x >> 31
    }
    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }
    /// In -1..1.
    fn unit(&mut self) -> f64 {
        (self.next() as i64) as f64 / (1u64 << 63) as f64
    }
}

/// A message as it comes out at the other end, and the words that it took.
fn through<T: Float>(
    values: &[T],
    axes: &Axes,
    tolerance: f64,
) -> Result<(Vec<T>, usize), Refusal> {
    let mut payload = vec![u64::MAX; 2 * values.len() + 600];
    let mut messages = [Encode {
        coding: Coding::Zfp,
        item: Item::Float(T::ELEMENT),
        values: values.as_ptr().cast(),
        place: Place::HOST,
        count: values.len(),
        axes,
        bits: Bits::Bounded(tolerance),
        payload: &mut payload,
        on_device: None,
    }];
    // SAFETY: the slice holds that many values of its type.
    let encoded = unsafe { encode(&mut messages, Guard::OFF, |_| false, 1) }[0]?;
    let mut back = vec![T::from_f64(f64::NAN); values.len()];
    let messages = [Decode {
        coding: Coding::Zfp,
        item: Item::Float(T::ELEMENT),
        values: back.as_mut_ptr().cast(),
        place: Place::HOST,
        count: back.len(),
        axes,
        masked: encoded.masked,
        fitted: encoded.exponent.is_some(),
        payload: &payload[..encoded.words],
        on_device: None,
    }];
    // SAFETY: the vector has room for that many values of its type.
    let decoded = unsafe { decode(&messages, 1) };
    assert_eq!(decoded, [true]);
    Ok((back, encoded.words))
}

fn axes(layout: &str, count: usize) -> Axes {
    let layout = Layout::parse(layout).expect("a layout");
    layout.resolve(count).expect("a layout of that many values")
}

/// The largest error of a message that was sent, relative to its tolerance.
fn worst<T: Float>(
    values: &[T],
    layout: &str,
    tolerance: f64,
) -> Result<Option<f64>, TestCaseError> {
    let Ok((back, _)) = through(values, &axes(layout, values.len()), tolerance) else {
        return Ok(None);
    };
    let mut worst = 0f64;
    for (at, (&value, &back)) in values.iter().zip(&back).enumerate() {
        let is_same = value.bits() == back.bits();
        let (value, back): (f64, f64) = (value.into(), back.into());
        let is_kept = is_same || (value - back).abs() <= tolerance;
        prop_assert!(
            is_kept,
            "{layout}, {tolerance:e}: {value:e} at {at} came as {back:e}"
        );
        if !is_same {
            worst = worst.max((value - back).abs() / tolerance);
        }
    }
    Ok(Some(worst))
}

#[derive(Clone, Copy, Debug)]
enum Look {
    Smooth,
    Noise,
    /// Of any magnitude up to the field's.
    Wide,
    Constant,
    Zero,
    /// With land, missing data and infinities.
    Masked,
    /// Mostly far below the tolerance.
    Quiet,
}

const LOOKS: [Look; 7] = [
    Look::Smooth,
    Look::Noise,
    Look::Wide,
    Look::Constant,
    Look::Zero,
    Look::Masked,
    Look::Quiet,
];

fn field<T: Float>(look: Look, count: usize, magnitude: f64, seed: u64) -> Vec<T> {
    let mut random = Random(seed);
    let pace = 0.3 + random.unit() * 0.29;
    let nan = [
        T::from_f64(f64::NAN),
        T::from_bits(f32::NAN.to_bits() as u64 | 77),
    ];
    let nan = nan[usize::from(size_of::<T>() == 4)];
    let fills = [nan, T::from_f64(f64::NEG_INFINITY), T::from_f64(-1e34)];
    let mut land = 0;
    let value = |i: usize| {
        let smooth = (pace * i as f64).sin() + 0.01 * random.unit();
        T::from_f64(match look {
            Look::Smooth => magnitude * smooth,
            Look::Noise => magnitude * random.unit(),
            Look::Wide => magnitude * random.unit() * 2f64.powi(-(random.below(90) as i32)),
            Look::Constant => magnitude * pace,
            Look::Zero => 0.0 * random.unit(),
            Look::Masked => {
                if random.below(20) == 0 {
                    land = random.below(12);
                }
                if land > 0 {
                    land -= 1;
                    return fills[(i / 7 + seed as usize) % 3];
                }
                magnitude * smooth
            }
            Look::Quiet => magnitude * smooth * if random.below(40) == 0 { 1.0 } else { 1e-3 },
        })
    };
    (0..count).map(value).collect()
}

/// Layouts of some axes, and their number of values.
fn layout() -> impl Strategy<Value = (String, usize)> {
    let extent = || prop_oneof![1usize..=5, 1usize..=40];
    prop_oneof![
        (1usize..400).prop_map(|n| ("*".into(), n)),
        (extent(), extent()).prop_map(|(x, y)| (format!("{x},*"), x * y)),
        (extent(), extent(), 1usize..=12).prop_map(|(x, y, z)| (format!("{x},{y},*"), x * y * z)),
        (extent(), extent()).prop_map(|(x, y)| (format!("2c,{x},*"), 2 * x * y)),
        (extent(), extent(), 1usize..=4)
            .prop_map(|(x, y, c)| (format!("{x},{y},{c}c,*"), x * y * c)),
    ]
}

/// A value that is to be coded so finely that libzfp would not keep its promise, or so coarsely that it could say
/// anything; often a power of two or next to one.
fn tolerance(magnitude: f64) -> impl Strategy<Value = f64> {
    let exponent = magnitude.abs().log2();
    prop_oneof![
        (-60.0..8.0).prop_map(move |e| 2f64.powf(exponent + e)),
        (-30i32..4, -2i64..=2).prop_map(move |(e, ulps)| {
            let power = 2f64.powi(exponent as i32 + e);
            f64::from_bits((power.to_bits() as i64 + ulps) as u64)
        }),
    ]
    .prop_filter("tolerances are above 0", |&tolerance| tolerance > 0.0)
}

fn case(least: f64, largest: f64) -> impl Strategy<Value = (f64, f64)> {
    prop_oneof![1 => least..largest, 2 => -4.0..4.0]
        .prop_map(|e| 10f64.powf(e))
        .prop_flat_map(|magnitude| (Just(magnitude), tolerance(magnitude)))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6000))]

    #[test]
    fn singles_keep_it(
        look in prop::sample::select(&LOOKS[..]),
        (layout, count) in layout(),
        (magnitude, tolerance) in case(-44.0, 38.0),
        seed in any::<u64>(),
    ) {
        worst(&field::<f32>(look, count, magnitude, seed), &layout, tolerance)?;
    }

    #[test]
    fn doubles_keep_it(
        look in prop::sample::select(&LOOKS[..]),
        (layout, count) in layout(),
        (magnitude, tolerance) in case(-320.0, 306.0),
        seed in any::<u64>(),
    ) {
        worst(&field::<f64>(look, count, magnitude, seed), &layout, tolerance)?;
    }
}

/// Blocks whose coefficients all lie where leaving out digits that weigh less than `weight` does most harm.
fn worst_blocks(dims: usize, weight: f64, blocks: usize, random: &mut Random) -> Vec<f64> {
    const INVERSE: [[f64; 4]; 4] = [
        [1.0, 1.5, -1.0, -0.25],
        [1.0, 0.5, 1.0, 1.25],
        [1.0, -0.5, 1.0, -1.25],
        [1.0, -1.5, -1.0, 0.25],
    ];
    let size = 1 << (2 * dims);
    let mut values = Vec::with_capacity(size * blocks);
    for _ in 0..blocks {
        let left_out = (2.0 / 3.0 - 1e-6 - 0.05 * random.below(3) as f64)
            * if random.below(2) == 0 { 1.0 } else { -1.0 };
        let most = 1 << random.below(12);
        let mut block: Vec<f64> = (0..size)
            .map(|i| {
                let most = if i == 0 {
                    4 * most
                } else {
                    1 + most / (1 + i as u64)
                };
                let kept = random.below(2 * most + 1) as f64 - most as f64;
                weight * (kept + left_out)
            })
            .collect();
        for axis in 0..dims {
            let stride = 1 << (2 * axis);
            for first in (0..size).filter(|i| i / stride % 4 == 0) {
                let line = [0, 1, 2, 3].map(|i| block[first + i * stride]);
                for (i, row) in INVERSE.iter().enumerate() {
                    block[first + i * stride] = row.iter().zip(line).map(|(a, b)| a * b).sum();
                }
            }
        }
        values.extend(block);
    }
    values
}

/// Lays blocks of 4, 4 × 4 or 4 × 4 × 4 values one after the other along the slowest axis.
const STACKED: [&str; 3] = ["*", "4,*", "4,4,*"];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    #[test]
    fn the_worst_blocks_keep_it(
        dims in 1usize..=3,
        exponent in -20i32..20,
        part in prop_oneof![0.5f64..1.0, 0.999f64..1.0, Just(1.0)],
        finer in -4i32..3,
        is_double in any::<bool>(),
        seed in any::<u64>(),
    ) {
        let mut random = Random(seed);
        let tolerance = part * 2f64.powi(exponent);
        let values = worst_blocks(dims, 2f64.powi(exponent - 2 * dims as i32 + finer), 8, &mut random);
        let layout = STACKED[dims - 1];
        if is_double {
            worst(&values, layout, tolerance)?;
        } else {
            let values: Vec<f32> = values.into_iter().map(|value| value as f32).collect();
            worst(&values, layout, tolerance)?;
        }
    }
}

/// What the theorem allows is met, so that no coarser bound would do.
#[test]
fn the_bound_is_met() {
    for (dims, part) in [(1, 0.625), (2, 0.585_937_5), (3, 0.549_316_406_25)] {
        let mut random = Random(dims as u64);
        let tolerance = part * (1.0 + 1e-6);
        let values = worst_blocks(dims, 0.25f64.powi(dims as i32), 4000, &mut random);
        let worst = worst(&values, STACKED[dims - 1], tolerance).expect("kept");
        assert!(worst.expect("sent") > 0.97, "{dims}-D: {worst:?}");
    }
}

/// A field that can be bounded goes, and takes few words.
#[test]
fn a_smooth_field_is_sent() {
    let values: Vec<f32> = (0..64_000)
        .map(|i| 300.0 * (i as f32 * 0.01).sin())
        .collect();
    for tolerance in [1e-3, 0.1, 5.0] {
        let (_, words) = through(&values, &axes("40,40,*", 64_000), tolerance).expect("sent");
        assert!(words < 64_000 / 2, "{tolerance}: {words}");
    }
    let (_, words) = through(&values, &axes("40,40,*", 64_000), 600.0).expect("sent");
    assert!(
        words < 64_000 / 64 / 32,
        "blocks below the tolerance take a bit each: {words}"
    );
}
