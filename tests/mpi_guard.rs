//! The guard: what lossy coding would spoil arrives bit for bit.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::relay::{Arrived, Relay, relative_error};
use common::{BOTH, Mpi};

const RANKS: usize = 3;
const PAIRS: usize = RANKS * RANKS;
const COUNT: usize = 3000;
/// The guard looks at a part of a long message.
const SLACK: f64 = 1.25;

/// The messages of some calls, from a value by call, pair and index.
fn messages(calls: usize, value: impl Fn(usize, usize, usize) -> f32) -> Vec<f32> {
    let index = |at: usize| value(at / COUNT / PAIRS, at / COUNT % PAIRS, at % COUNT);
    (0..calls * PAIRS * COUNT).map(index).collect()
}

fn relay(mpi: Mpi, datatype: &str) -> Relay {
    Relay::alltoall(mpi, RANKS, datatype, COUNT)
}

fn smooth(pair: usize, i: usize) -> f64 {
    280.0 + 20.0 * (0.03 * i as f64 + pair as f64).sin()
}

/// A random number from 0 to 1.
fn noise(seed: usize) -> f64 {
    let mut bits = seed as u64 ^ 0x9e37_79b9_7f4a_7c15;
    for _ in 0..3 {
        bits = (bits ^ (bits >> 31)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    }
    (bits >> 11) as f64 / (1u64 << 53) as f64
}

/// Each message is one half of the doubles after the other.
fn halves(calls: usize, double: impl Fn(usize, usize) -> f64) -> Vec<f32> {
    messages(calls, |_, pair, i| {
        let bits = double(pair, i / 2).to_bits();
        f32::from_bits((bits >> (32 * (i % 2))) as u32)
    })
}

/// A double, by pair and index.
type Double<'a> = &'a dyn Fn(usize, usize) -> f64;

/// One line says why.
#[track_caller]
fn says_why(arrived: Arrived<f32>, words: &[&str]) {
    arrived.output.complains_once(words);
}

#[test]
fn doubles_declared_as_floats() {
    let kinds: [(&str, Double); 4] = [
        ("temperatures", &smooth),
        ("winds", &|pair, i| smooth(pair, i) - 280.0),
        ("noise", &|pair, i| noise(pair * COUNT + i) - 0.5),
        ("from single precision", &|pair, i| {
            f64::from(smooth(pair, i) as f32)
        }),
    ];
    for mpi in BOTH {
        for (datatype, (name, double)) in ["float", "real"].into_iter().cycle().zip(kinds) {
            let sent = halves(6, double);
            let arrived = relay(mpi, datatype).send(&sent);
            assert!(arrived.is_exact(), "{name}: {}", arrived.output);
            arrived.expect_raw();
            says_why(arrived, &["doubles", "MPI_COMM_WORLD"]);
            // Of the others some half is a NaN, so that they would escape anyway.
            if name == "from single precision" {
                let unguarded = relay(mpi, datatype)
                    .env("TRANSPRESS_GUARD", "off")
                    .send(&sent);
                assert!(!unguarded.is_exact(), "{name}: {}", unguarded.output);
            }
        }
    }
}

/// Doubles whose lower halves say little: zeros, or zeros but for a few.
#[test]
fn doubles_of_few_digits_declared_as_floats() {
    let kinds: [(&str, Double); 3] = [
        ("whole numbers", &|pair, i| (i * 37 % 1000 + pair) as f64),
        ("quarters", &|pair, i| 0.25 * (i * 31 % 977 + pair) as f64),
        ("one harmonic among zeros", &|pair, i| {
            if i == 700 { smooth(pair, i) } else { 0.0 }
        }),
    ];
    for (mpi, (name, double)) in BOTH.into_iter().cycle().zip(kinds) {
        let arrived = relay(mpi, "float").send(&halves(2, double));
        assert!(arrived.is_exact(), "{name}: {}", arrived.output);
    }
}

#[test]
fn whole_numbers_in_floats() {
    let labels = |_: usize, pair: usize, i: usize| ((i * 7_919 + pair) % 1_000_003) as f32;
    let land =
        |_: usize, pair: usize, i: usize| f32::from(u8::from((i / 37 + pair).is_multiple_of(3)));
    let kinds = |_: usize, pair: usize, i: usize| (noise(i + pair) * 17.0).floor() as f32;
    for mpi in BOTH {
        for sent in [messages(4, labels), messages(4, land), messages(4, kinds)] {
            let arrived = relay(mpi, "float").env("TRANSPRESS_RATE", 4).send(&sent);
            arrived.expect_raw();
            says_why(arrived, &["whole numbers"]);
        }
        let unguarded = relay(mpi, "float").env("TRANSPRESS_GUARD", "off");
        assert!(
            !unguarded
                .env("TRANSPRESS_RATE", 4)
                .send(&messages(4, labels))
                .is_exact()
        );
    }
}

#[test]
fn noise_at_a_low_rate() {
    let sent = messages(4, |call, pair, i| {
        noise((call * PAIRS + pair) * COUNT + i) as f32
    });
    for mpi in BOTH {
        let at_4 = relay(mpi, "float").env("TRANSPRESS_RATE", 4);
        let arrived = at_4.send(&sent);
        arrived.expect_raw();
        says_why(arrived, &["relative error", "TRANSPRESS_GUARD"]);
        at_4.env("TRANSPRESS_GUARD", "off")
            .send(&sent)
            .expect_compressed();
    }
}

/// Too strict for the rate: everything is raw. Off: nothing is. By default a smooth message is compressed.
#[test]
fn the_bound_is_the_users() {
    let sent = messages(3, |_, pair, i| {
        (smooth(pair, i) + noise(pair * COUNT + i)) as f32
    });
    for mpi in BOTH {
        let at_8 = relay(mpi, "float").env("TRANSPRESS_RATE", 8);
        let strict = at_8.clone().env("TRANSPRESS_GUARD", "1e-6").send(&sent);
        strict.expect_raw();
        says_why(strict, &["1.0e-6"]);
        for lax in [at_8.clone(), at_8.env("TRANSPRESS_GUARD", "off")] {
            let arrived = lax.send(&sent);
            arrived.expect_compressed();
            assert!(
                (1e-6..1e-2).contains(&arrived.worst_error()),
                "{}",
                arrived.output
            );
        }
    }
}

/// From smooth to as good as noise, message by message: what is compressed is within the bound.
#[test]
fn no_message_is_worse_than_the_bound() {
    let sent = messages(12, |call, pair, i| {
        let rough = (call * PAIRS + pair) as f64 / (12 * PAIRS) as f64;
        (smooth(pair, i) - 280.0 + 40.0 * rough * rough * noise(i * 977 + pair)) as f32
    });
    for (mpi, rate, bound) in [(Mpi::OpenMpi, 7, 3e-3), (Mpi::Mpich, 4, 3e-2)] {
        let arrived = relay(mpi, "float")
            .env("TRANSPRESS_RATE", rate)
            .env("TRANSPRESS_GUARD", bound)
            .send(&sent);
        assert!(arrived.count("compressed") >= 6.0, "{}", arrived.output);
        assert!(arrived.count("escaped") >= 6.0, "{}", arrived.output);
        let worst = arrived.worst_error();
        assert!(worst <= bound * SLACK, "{worst:e} {}", arrived.output);
    }
}

/// A strong quantity that is noise, beside many weak ones that are smooth: most of the message is noise.
#[test]
fn one_rough_field_among_smooth_ones() {
    const FIELDS: usize = 60;
    let sent = messages(3, |_, pair, i| {
        let (field, point) = (i % FIELDS, i / FIELDS);
        let value = match field {
            0 => 1e5 * (noise(pair * COUNT + i) - 0.5),
            _ => 1e-3 * (0.05 * point as f64 + (field + pair) as f64).sin(),
        };
        value as f32
    });
    for (mpi, rate) in [(Mpi::OpenMpi, 6), (Mpi::Mpich, 8)] {
        let arrived = relay(mpi, "float").env("TRANSPRESS_RATE", rate).send(&sent);
        let worst = arrived.worst_error();
        assert!(
            worst <= 1e-2 * SLACK,
            "{worst:e} at {rate}: {}",
            arrived.output
        );
    }
}

/// Most of a message lies in a few of its values, and these are noise.
#[test]
fn a_peak_in_a_long_message() {
    let sent = messages(3, |_, pair, i| {
        let peak = 1500 + 8 * pair..1508 + 8 * pair;
        let strength = if peak.contains(&i) { 1e6 } else { 1.0 };
        (strength * (noise(pair * COUNT + i) - 0.5)) as f32
    });
    for mpi in BOTH {
        let arrived = relay(mpi, "float").env("TRANSPRESS_RATE", 8).send(&sent);
        let worst = arrived.worst_error();
        assert!(worst <= 1e-2 * SLACK, "{worst:e}: {}", arrived.output);
    }
}

/// A little water that is noise, and land: the land makes the error of the water no smaller.
#[test]
fn rough_water_in_much_land() {
    const LAND: f32 = 1e20;
    let sent = messages(3, |_, pair, i| {
        if i % 1500 < 60 {
            (noise(pair * COUNT + i) - 0.5) as f32
        } else {
            LAND
        }
    });
    for (mpi, rate) in [(Mpi::OpenMpi, 6), (Mpi::Mpich, 8)] {
        let arrived = relay(mpi, "float").env("TRANSPRESS_RATE", rate).send(&sent);
        for message in arrived.messages() {
            let wet = message
                .sent
                .iter()
                .zip(message.arrived)
                .filter(|(sent, _)| **sent != LAND);
            let (sent, back): (Vec<f32>, Vec<f32>) = wet.unzip();
            let error = relative_error(&sent, &back);
            assert!(
                error <= 1e-2 * SLACK,
                "{error:e} at {rate}: {}",
                arrived.output
            );
        }
    }
}
