//! What arrives: every way to call MPI_Alltoall(v), under both MPIs, with and without compression.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::{BOTH, Mpi, Run};

fn exchange(mpi: Mpi, ranks: usize) -> Run {
    Run::new(mpi, "exchange")
        .ranks(ranks)
        .env("TRANSPRESS_REPORT", "off")
}

/// Compressed, to the largest errors that the smooth 1-D messages of check.c may show.
fn compressed(mpi: Mpi, ranks: usize, codec: &str, rate: &str, f32: f64, f64: f64) -> Run {
    exchange(mpi, ranks)
        .env("TRANSPRESS_COMMS", "all")
        .env("TRANSPRESS_CODEC", codec)
        .env("TRANSPRESS_RATE", rate)
        .env("CHECK_COMPRESSED", 1)
        .env("CHECK_F32", f32)
        .env("CHECK_F64", f64)
}

#[test]
fn zfp_16_on_any_number_of_ranks() {
    for mpi in BOTH {
        for ranks in [1, 2, 3, 4, 7] {
            compressed(mpi, ranks, "zfp", "16", 1e-4, 5e-4)
                .output()
                .passes()
                .complains_of_nothing();
        }
    }
}

/// Point to point, whatever the messages' lengths.
#[test]
fn pairwise_on_any_number_of_ranks() {
    for mpi in BOTH {
        for ranks in [1, 2, 3, 4, 7] {
            compressed(mpi, ranks, "zfp", "16", 1e-4, 5e-4)
                .env("TRANSPRESS_ENGINE", "pairwise")
                .output()
                .passes()
                .complains_of_nothing();
        }
    }
}

#[test]
fn casts_pairwise() {
    for (mpi, codec, error) in [(Mpi::OpenMpi, "fp16", 5e-4), (Mpi::Mpich, "bf16", 4e-3)] {
        compressed(mpi, 3, codec, "16", error, error)
            .env("TRANSPRESS_ENGINE", "pairwise")
            .output()
            .passes()
            .complains_of_nothing();
    }
}

/// Messages whose length the data decide.
#[test]
fn without_loss() {
    for mpi in BOTH {
        for ranks in [2, 3] {
            compressed(mpi, ranks, "lossless", "16", 0.0, 0.0)
                .output()
                .passes()
                .complains_of_nothing();
        }
    }
}

/// Integers, and bytes where the user says that they may be.
#[test]
fn integers_without_loss() {
    for mpi in BOTH {
        for (codec, bytes, compressed) in [
            ("zfp", "off", 0.0),
            ("lossless", "off", 4.0),
            ("lossless", "any", 5.0),
        ] {
            let output = Run::new(mpi, "integers")
                .ranks(3)
                .env("TRANSPRESS_REPORT", "off")
                .env("TRANSPRESS_COMMS", "all")
                .env("TRANSPRESS_CODEC", codec)
                .env("TRANSPRESS_BYTES", bytes)
                .output()
                .passes()
                .complains_of_nothing();
            // To each of two peers.
            assert_eq!(output.number("compressed"), 2.0 * compressed, "{output}");
        }
    }
}

#[test]
fn within_a_tolerance() {
    for mpi in BOTH {
        for (ranks, tolerance) in [(2, 1e-3), (3, 1e-6), (4, 0.1)] {
            compressed(mpi, ranks, "zfp", "16", tolerance, tolerance)
                .env("TRANSPRESS_TOLERANCE", tolerance)
                .output()
                .passes()
                .complains_of_nothing();
        }
    }
}

#[test]
fn other_rates() {
    for (mpi, rate, f32, f64) in [
        (Mpi::OpenMpi, "4", 0.5, 0.9),
        (Mpi::Mpich, "8", 2e-2, 0.2),
        (Mpi::OpenMpi, "12.5", 1e-3, 1e-2),
        (Mpi::Mpich, "24", 1e-6, 1e-6),
    ] {
        compressed(mpi, 3, "zfp", rate, f32, f64)
            .env("TRANSPRESS_GUARD", "off")
            .output()
            .passes()
            .complains_of_nothing();
    }
}

#[test]
fn casts() {
    for mpi in BOTH {
        for (codec, error) in [("fp16", 5e-4), ("bf16", 4e-3)] {
            compressed(mpi, 2, codec, "16", error, error)
                .output()
                .passes()
                .complains_of_nothing();
        }
    }
}

/// Without the library, with it but nothing registered, with the codec or the mode off: bit-identical, and
/// the same answers from MPI where it has an opinion.
#[test]
fn exact_when_not_asked() {
    for mpi in BOTH {
        let plain = exchange(mpi, 3).plain().output().passes();
        let off = exchange(mpi, 3).env("TRANSPRESS_COMMS", "all");
        for run in [
            exchange(mpi, 3),
            off.clone().env("TRANSPRESS_CODEC", "off"),
            off.env("TRANSPRESS_MODE", "off"),
        ] {
            let output = run.output().passes().complains_of_nothing();
            assert_eq!(output.stdout, plain.stdout, "{output}");
        }
        let coded = compressed(mpi, 3, "zfp", "16", 1e-4, 5e-4)
            .output()
            .passes();
        assert_eq!(coded.stdout, plain.stdout, "{coded}");
    }
}

/// MPI_BYTE is coded only when the user says what it holds.
#[test]
fn bytes_that_hold_floats() {
    for (mpi, element) in [
        (Mpi::OpenMpi, "f32"),
        (Mpi::Mpich, "f64"),
        (Mpi::OpenMpi, "f64"),
        (Mpi::Mpich, "f32"),
    ] {
        compressed(mpi, 3, "zfp", "16", 1e-4, 5e-4)
            .env("TRANSPRESS_BYTES", element)
            .env("CHECK_BYTES", element)
            .arg("elements")
            .output()
            .passes()
            .complains_of_nothing();
    }
}

/// MPI 4's calls; of Debian's two MPIs only MPICH has them.
#[test]
fn calls_with_large_counts() {
    let run = Run::new(Mpi::Mpich, "large_counts")
        .ranks(3)
        .env("TRANSPRESS_REPORT", "off");
    run.clone().plain().output().passes();
    run.env("TRANSPRESS_COMMS", "all")
        .env("CHECK_COMPRESSED", 1)
        .env("CHECK_F32", 1e-4)
        .output()
        .passes()
        .complains_of_nothing();
}

/// One buffer for both sides, which MPI forbids and Open MPI lets pass. The plain run is no measure: what
/// it makes of it depends on who comes first.
#[test]
fn one_buffer_for_both_sides() {
    for (ranks, engine) in [
        (2, "collective"),
        (3, "collective"),
        (2, "pairwise"),
        (3, "pairwise"),
    ] {
        Run::new(Mpi::OpenMpi, "aliased")
            .ranks(ranks)
            .env("TRANSPRESS_ENGINE", engine)
            .env("TRANSPRESS_REPORT", "off")
            .env("TRANSPRESS_COMMS", "all")
            .env("CHECK_COMPRESSED", 1)
            .env("CHECK_F32", 1e-4)
            .output()
            .passes()
            .complains_of_nothing();
    }
}
