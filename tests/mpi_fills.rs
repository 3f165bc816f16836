//! Fill values in an ocean with land: bit for bit they arrive, and the ocean beside them is none the worse.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::fields::Field;
use common::fills::Transposed;
use common::relay::Relay;
use common::{BOTH, Mpi};

const EXTENTS: [usize; 3] = [96, 72, 12];
const RANKS: usize = 3;

/// Whether each point is dry, and the ocean with `fill` there.
fn with_land(ocean: &Field, fill: impl Fn(usize) -> f32) -> (Vec<bool>, Field) {
    let land = Field::land(EXTENTS);
    let mut field = ocean.clone();
    for (index, value) in field.values.iter_mut().enumerate() {
        if land[index] {
            *value = fill(index);
        }
    }
    (land, field)
}

fn wet(land: &[bool]) -> Vec<bool> {
    land.iter().map(|dry| !dry).collect()
}

/// Every fill point arrives as it was. How much worse than without land the worst point of the ocean is.
#[track_caller]
fn times_worse(mpi: Mpi, rate: u32, layout: &str, clean: f64, fill: impl Fn(usize) -> f32) -> f64 {
    let (land, field) = with_land(&Field::ocean(EXTENTS), fill);
    let transposed = Transposed::along(mpi, &field, RANKS, rate, layout);
    transposed.expect_exact(&land);
    assert!(
        transposed.arrived.count("compressed") > 0.0,
        "{}",
        transposed.output()
    );
    transposed.largest_error(&wet(&land)) / clean
}

#[track_caller]
fn expect_at_most_ten(times_worse: &[f64]) {
    assert!(
        times_worse.iter().all(|times| *times <= 10.0),
        "{times_worse:.1?}"
    );
}

#[track_caller]
fn keeps_fills_and_ocean(rate: u32, layout: &str) {
    let clean = clean_error(rate, layout);
    let times = FILLS.into_iter().enumerate().map(|(i, fill)| {
        let mpi = BOTH[(i + rate as usize / 8) % 2];
        times_worse(mpi, rate, layout, clean, |_| fill)
    });
    expect_at_most_ten(&times.collect::<Vec<_>>());
}

/// The largest error of the ocean without land.
fn clean_error(rate: u32, layout: &str) -> f64 {
    let ocean = Transposed::along(Mpi::OpenMpi, &Field::ocean(EXTENTS), RANKS, rate, layout);
    ocean.arrived.expect_compressed();
    let error = ocean.largest_error(&vec![true; ocean.arrived.sent.len()]);
    assert!(error > 0.0 && error < 0.1, "{error:e} {}", ocean.output());
    error
}

const FILLS: [f32; 7] = [1e20, 9.96921e36, -1e34, -9999.0, -1e10, -999.9, f32::NAN];

#[test]
fn within_a_tolerance() {
    for (mpi, fill, tolerance) in [
        (Mpi::OpenMpi, f32::NAN, 0.01f64),
        (Mpi::Mpich, -1e34, 0.01),
        (Mpi::OpenMpi, -9999.0, 0.6),
        (Mpi::Mpich, 1e20, 1e-3),
    ] {
        let (land, field) = with_land(&Field::ocean(EXTENTS), |_| fill);
        let tolerated = ("TRANSPRESS_TOLERANCE", tolerance.to_string());
        let transposed = Transposed::with(mpi, &field, RANKS, [tolerated]);
        transposed.expect_exact(&land);
        transposed.arrived.expect_compressed();
        let error = transposed.largest_error(&wet(&land));
        assert!(
            error > 0.1 * tolerance && error <= tolerance,
            "{error} of {tolerance}"
        );
    }
}

/// The layout of the messages of this transpose.
const LAYOUT: &str = "32,24,*";

#[test]
fn along_the_layout_of_the_user() {
    keeps_fills_and_ocean(16, LAYOUT);
}

#[test]
fn along_the_layout_of_the_user_at_8() {
    keeps_fills_and_ocean(8, LAYOUT);
}

#[test]
fn along_the_layout_that_is_found() {
    keeps_fills_and_ocean(16, "auto");
}

#[test]
fn along_the_layout_that_is_found_at_8() {
    keeps_fills_and_ocean(8, "auto");
}

/// Land, and within it what was never measured; NaNs with bits of their own.
#[test]
fn several_fill_values_at_once() {
    let clean = clean_error(16, LAYOUT);
    for mpi in BOTH {
        let two = |index: usize| {
            if (index / 13).is_multiple_of(5) {
                f32::NAN
            } else {
                1e20
            }
        };
        let four = |index: usize| match index / 7 % 4 {
            0 => -1e34,
            1 => 9.96921e36,
            2 => f32::from_bits(0xffc1_2345),
            _ => f32::INFINITY,
        };
        let times = [
            times_worse(mpi, 16, LAYOUT, clean, two),
            times_worse(mpi, 16, LAYOUT, clean, four),
        ];
        expect_at_most_ten(&times);
    }
}

#[test]
fn doubles() {
    let (land, field) = with_land(&Field::ocean(EXTENTS), |_| 1e20);
    let transpose = common::fields::Transpose::new(EXTENTS, RANKS);
    for (mpi, fill) in [
        (Mpi::OpenMpi, 9.969_209_968_386_869e36),
        (Mpi::Mpich, f64::NAN),
    ] {
        let values: Vec<f64> = field
            .values
            .iter()
            .zip(&land)
            .map(|(&value, &dry)| if dry { fill } else { f64::from(value) })
            .collect();
        let sent = transpose.cut(&values);
        let arrived = Relay::alltoallv(mpi, RANKS, "double", transpose.table.clone())
            .env("TRANSPRESS_LAYOUT", LAYOUT)
            .send(&sent);
        arrived.expect_compressed();
        for (sent, arrived) in sent.iter().zip(&arrived.values) {
            let is_near = (sent - arrived).abs() <= 1e-2;
            assert!(
                is_near || sent.to_bits() == arrived.to_bits(),
                "{sent} {arrived}"
            );
            assert!(sent.is_finite() == arrived.is_finite(), "{sent} {arrived}");
        }
        let fills = sent
            .iter()
            .zip(&arrived.values)
            .filter(|(sent, _)| sent.to_bits() == fill.to_bits());
        for (sent, arrived) in fills {
            assert_eq!(sent.to_bits(), arrived.to_bits());
        }
    }
}

/// Messages of almost nothing but land, as ranks in the middle of a continent send them: some wet points in
/// each, side by side.
#[test]
fn a_lake_in_a_continent() {
    const COUNT: usize = 20_000;
    let mut changed = vec![];
    for (i, fill) in FILLS.into_iter().enumerate() {
        for wet in [0, 1, 3, 40] {
            let is_wet = |at: usize| (7_001..7_001 + wet).contains(&(at % COUNT));
            let depth = |at: usize| 4.0 + (0.1 * at as f32).sin();
            let sent: Vec<f32> = (0..4 * COUNT)
                .map(|at| if is_wet(at) { depth(at) } else { fill })
                .collect();
            let arrived = Relay::alltoall(BOTH[i % 2], 2, "float", COUNT)
                .env("TRANSPRESS_RATE", 8)
                .send(&sent);
            let is_kept = |at: usize| {
                let (sent, arrived) = (sent[at], arrived.values[at]);
                sent.to_bits() == arrived.to_bits() || is_wet(at) && (sent - arrived).abs() < 0.1
            };
            let bad = (0..sent.len()).filter(|&at| !is_kept(at)).count();
            if bad > 0 {
                changed.push(format!(
                    "{bad} points with fill {fill} and {wet} wet points"
                ));
            }
        }
    }
    assert!(changed.is_empty(), "{changed:#?}");
}
