//! Random calls, and calls that are made to get stuck: whatever comes, each value arrives and no call hangs.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::{BOTH, Mpi, Run};
use std::time::Instant;

fn on_all(mpi: Mpi, program: &str, ranks: usize) -> Run {
    Run::new(mpi, program)
        .ranks(ranks)
        .env("TRANSPRESS_REPORT", "off")
        .env("TRANSPRESS_COMMS", "all")
}

/// Ranks, and what the environment says beside that all communicators are compressed.
type Setting = (usize, &'static [(&'static str, &'static str)]);

const SETTINGS: [Setting; 10] = [
    (4, &[("RATE", "16;rows=24")]),
    (
        3,
        &[
            ("ENGINE", "collective"),
            ("GUARD", "off"),
            ("RATE", "12"),
            ("MIN_BYTES", "0"),
        ],
    ),
    (
        5,
        &[("ENGINE", "pairwise"), ("GUARD", "off"), ("THREADS", "2")],
    ),
    (7, &[("TOLERANCE", "1e-3"), ("MIN_BYTES", "100")]),
    (6, &[("CODEC", "lossless"), ("BYTES", "f64")]),
    (
        2,
        &[
            ("CODEC", "fp16"),
            ("ENGINE", "pairwise"),
            ("MIN_BYTES", "64"),
        ],
    ),
    (
        4,
        &[
            ("CODEC", "bf16"),
            ("ENGINE", "collective"),
            ("THREADS", "2"),
        ],
    ),
    (3, &[("ENGINE", "pairwise"), ("ON_NODE", "raw")]),
    (
        5,
        &[
            ("ENGINE", "pairwise"),
            ("LAYOUT", "2c,*;10f,*"),
            ("MIN_BYTES", "0"),
        ],
    ),
    (6, &[("RATE", "20"), ("BITS", "fitted"), ("THREADS", "2")]),
];

/// Calls of each setting, and the limit of each in seconds.
const CALLS: u64 = 150;
const LIMIT: u64 = 60;
/// By how much the resident memory of a rank may grow once a tenth of the calls are done, in KiB. Buffers grow up to
/// what the largest calls take, and these are rare.
const GROWTH: f64 = 100_000.0;

/// A number from the environment: `STRESS_CALLS` (of each setting) and `STRESS_SEED` make a longer run of it.
fn number_from(name: &str, otherwise: u64) -> u64 {
    let given = std::env::var(name).ok().and_then(|text| text.parse().ok());
    given.unwrap_or(otherwise)
}

/// Every setting with one MPI.
fn random_calls(mpi: Mpi) {
    let (calls, seed) = (
        number_from("STRESS_CALLS", CALLS),
        number_from("STRESS_SEED", 1),
    );
    for (index, (ranks, variables)) in SETTINGS.into_iter().enumerate() {
        let run = on_all(mpi, "stress", ranks)
            .env("TRANSPRESS_LOG", "error")
            .arg((seed + index as u64).to_string())
            .arg(calls.to_string())
            .limit(LIMIT + calls / 10);
        let run = variables.iter().fold(run, |run, (name, value)| {
            run.env(&format!("TRANSPRESS_{name}"), value)
        });
        let started = Instant::now();
        let output = run.output().passes().complains_of_nothing();
        let [early, late] = ["resident-early", "resident-late"].map(|name| output.number(name));
        println!(
            "{mpi:?} {variables:?}, {ranks} ranks: {calls} calls in {:.0} s, {early} to {late} KiB",
            started.elapsed().as_secs_f64()
        );
        assert!(late <= early + GROWTH, "{output}");
    }
}

#[test]
fn random_calls_under_open_mpi() {
    random_calls(Mpi::OpenMpi);
}

#[test]
fn random_calls_under_mpich() {
    random_calls(Mpi::Mpich);
}

/// A window full of what is yet to come must not keep out what others wait for.
#[test]
fn long_messages_before_long_raw_ones() {
    for mpi in BOTH {
        on_all(mpi, "crossed", 6)
            .env("TRANSPRESS_ENGINE", "pairwise")
            .env("CHECK_F32", 1e-4)
            .output()
            .passes();
    }
}

/// MiB from each rank to each other in [`memory_is_what_the_page_says`], and the ranks.
const PER_PAIR: u32 = 8;
const RANKS: u32 = 8;

/// The largest memory of a rank beside the program's own, in MiB.
fn memory(mpi: Mpi, how: &str, engine: &str, codec: &str) -> f64 {
    let run = on_all(mpi, "memory", RANKS as usize)
        .env("TRANSPRESS_ENGINE", engine)
        .env("TRANSPRESS_CODEC", codec)
        .env("CHECK_F32", 1e-3)
        .arg(how)
        .arg(PER_PAIR.to_string());
    let output = run.output().passes().complains_of_nothing();
    output.number("peak") / 1024.0
}

/// As docs/architecture.md states it, at 16 of 32 bits.
#[test]
fn memory_is_what_the_page_says() {
    let (raw, others) = (f64::from(PER_PAIR), f64::from(RANKS - 1));
    let staged = 2.0 * others * raw / 2.0;
    // What MPI itself takes, segments under way, tables.
    let slack = 16.0;
    for mpi in BOTH {
        for (how, engine, codec, expected) in [
            ("dense", "collective", "zfp", staged),
            ("gaps", "collective", "zfp", staged + others * raw),
            ("dense", "pairwise", "zfp", 0.0),
            // A receive may be much longer than what comes: only that is touched.
            ("dense", "pairwise", "lossless", 0.0),
            ("gaps", "pairwise", "zfp", 6.0 * raw),
        ] {
            let most = memory(mpi, how, engine, codec);
            assert!(
                most <= expected + slack,
                "{mpi:?} {how} {engine} {codec}: {most:.0} MiB, not {expected} MiB"
            );
        }
    }
}
