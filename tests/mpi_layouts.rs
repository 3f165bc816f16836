//! Layouts found in the data are about as good as those that a user who knows would give.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::fields::{Field, Transpose};
use common::relay::{Arrived, Relay, relative_error};
use common::{BOTH, Mpi};

const RANKS: usize = 3;

fn at_8(relay: Relay) -> Relay {
    relay.env("TRANSPRESS_RATE", 8)
}

/// The worst error with the layouts found, at most twice that with `layout`, which is far better than flat.
#[track_caller]
fn as_good_as(layout: &str, relay: Relay, sent: &[f32], error: impl Fn(&Arrived<f32>) -> f64) {
    let relay = at_8(relay).env("TRANSPRESS_GUARD", "off");
    let along = |layout: &str| {
        let arrived = relay.clone().env("TRANSPRESS_LAYOUT", layout).send(sent);
        arrived.expect_compressed();
        (error(&arrived), arrived)
    };
    let (flat, _) = along("*");
    let (known, _) = along(layout);
    assert!(known < flat / 3.0, "{layout} {known:e}, flat {flat:e}");
    let (found, arrived) = along("auto");
    assert!(
        found <= 2.0 * known,
        "found {found:e}, {layout} {known:e}, flat {flat:e}: {}",
        arrived.output
    );
}

fn waves(x: usize, y: usize, z: usize) -> f64 {
    let (x, y, z) = (x as f64, y as f64, z as f64);
    3.0 + (0.23 * x + 0.1).sin() * (0.21 * y).cos() + 0.5 * (0.3 * z + 0.15 * x).sin()
}

/// One box for each pair, each with a phase of its own.
fn boxes([nx, ny, nz]: [usize; 3]) -> Vec<f32> {
    (0..RANKS * RANKS)
        .flat_map(|pair| {
            Field::new([nx, ny, nz], |x, y, z| waves(x + 5 * pair, y + 3 * pair, z)).values
        })
        .collect()
}

#[test]
fn boxes_of_equal_size() {
    for mpi in BOTH {
        for [nx, ny, nz] in [[40, 32, 16], [20, 50, 12], [34, 17, 30], [160, 64, 1]] {
            let relay = Relay::alltoall(mpi, RANKS, "float", nx * ny * nz);
            as_good_as(
                &format!("{nx},{ny},{nz}"),
                relay,
                &boxes([nx, ny, nz]),
                Arrived::worst_error,
            );
        }
    }
}

/// 24 × 20 columns of unlike numbers of levels.
#[test]
fn boxes_of_unlike_height() {
    let height = |pair: usize| 8 + 3 * (pair % 4);
    let table = (0..RANKS * RANKS)
        .map(|pair| 24 * 20 * height(pair))
        .collect();
    let sent: Vec<f32> = (0..RANKS * RANKS)
        .flat_map(|pair| Field::new([24, 20, height(pair)], waves).values)
        .collect();
    as_good_as(
        "24,20,*",
        Relay::alltoallv(Mpi::OpenMpi, RANKS, "float", table),
        &sent,
        Arrived::worst_error,
    );
}

#[test]
fn pencils_of_a_transpose() {
    let field = Field::new([90, 60, 24], waves);
    let transpose = Transpose::new(field.extents, RANKS);
    let relay = Relay::alltoallv(Mpi::Mpich, RANKS, "float", transpose.table.clone());
    as_good_as(
        "30,20,*",
        relay,
        &transpose.cut(&field.values),
        Arrived::worst_error,
    );
}

const FIELDS: usize = 10;
const POINTS: usize = 1400;

/// Real and imaginary parts of ten quantities, at every point.
fn spectral(pair: usize) -> impl Iterator<Item = f32> {
    let scale = [1e5, 300.0, 1e-3, 2e-5, 40.0, 1e-7, 9e4, 0.5, 1e-2, 3e3];
    (0..2 * FIELDS * POINTS).map(move |i| {
        let (part, field, point) = (i % 2, i / 2 % FIELDS, i / 2 / FIELDS);
        let phase = 0.013 * point as f64 + (field * 3 + part * 2 + pair) as f64;
        (scale[field] * phase.sin()) as f32
    })
}

/// The worst of all quantities of all messages.
fn worst_field(arrived: &Arrived<f32>) -> f64 {
    let of = |values: &[f32], field: usize| -> Vec<f32> {
        values
            .chunks(2 * FIELDS)
            .flat_map(|point| [point[2 * field], point[2 * field + 1]])
            .collect()
    };
    let errors = arrived.messages().flat_map(|message| {
        let error = |field| relative_error(&of(message.sent, field), &of(message.arrived, field));
        (0..FIELDS).map(error).collect::<Vec<_>>()
    });
    errors.fold(0.0, f64::max)
}

#[test]
fn complex_fields_of_unlike_magnitude() {
    let sent: Vec<f32> = (0..RANKS * RANKS).flat_map(spectral).collect();
    for mpi in BOTH {
        let as_reals = Relay::alltoall(mpi, RANKS, "float", 2 * FIELDS * POINTS);
        as_good_as("2c,10f,*", as_reals, &sent, worst_field);
        let as_complex = Relay::alltoall(mpi, RANKS, "complex", FIELDS * POINTS);
        as_good_as("10f,*", as_complex, &sent, worst_field);
    }
}

/// Types that pick a box out of a larger one say what its extents are.
#[test]
fn derived_datatypes() {
    for mpi in BOTH {
        let sent = boxes([44, 36, 1]);
        let vector = Relay::alltoall(mpi, RANKS, "vector:44,36", 44 * 36);
        as_good_as("44,36", vector, &sent, Arrived::worst_error);
        let sent = boxes([26, 22, 14]);
        let subarray = Relay::alltoall(mpi, RANKS, "subarray:26,22,14", 26 * 22 * 14);
        as_good_as("26,22,14", subarray, &sent, Arrived::worst_error);
    }
}
