//! Bad input: one line says which variable is wrong, and the program runs on uncompressed.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::{BOTH, Mpi, Output, Run};

/// Compressed unless something is wrong.
fn once(mpi: Mpi, ranks: usize) -> Run {
    Run::new(mpi, "once")
        .ranks(ranks)
        .env("TRANSPRESS_REPORT", "off")
        .env("TRANSPRESS_COMMS", "all")
}

/// Bit for bit, as without the library, and one line with these words.
#[track_caller]
fn runs_uncompressed(run: Run, words: &[&str]) {
    let output = run.output().passes().complains_once(words);
    assert_eq!(output.number("compressed"), 0.0, "{output}");
}

fn compresses(run: Run) -> Output {
    let output = run.env("CHECK_F32", 1e-4).output().passes();
    assert!(output.number("compressed") > 0.0, "{output}");
    output
}

#[test]
fn good_settings_are_silent() {
    for mpi in BOTH {
        compresses(once(mpi, 2)).complains_of_nothing();
        compresses(
            once(mpi, 2)
                .env("TRANSPRESS_RATE", "16;elsewhere=8;#7=12")
                .env("TRANSPRESS_LAYOUT", "*")
                .env("TRANSPRESS_MIN_BYTES", 0)
                .env("TRANSPRESS_ON_NODE", "compress")
                .env("TRANSPRESS_DEVICE", "cpu")
                .env("TRANSPRESS_THREADS", 1)
                .env("TRANSPRESS_GUARD", "off")
                .env("TRANSPRESS_MODE", "on"),
        )
        .complains_of_nothing();
        compresses(
            once(mpi, 2)
                .env("TRANSPRESS_LAYOUT", "auto")
                .env("TRANSPRESS_GUARD", "1e-3"),
        )
        .complains_of_nothing();
        let none = once(mpi, 2).env("TRANSPRESS_COMMS", "rows,columns");
        let output = none.output().passes().complains_of_nothing();
        assert_eq!(output.number("compressed"), 0.0, "{output}");
        let raw = once(mpi, 2).env("TRANSPRESS_ON_NODE", "raw");
        let output = raw.output().passes().complains_of_nothing();
        assert_eq!(output.number("compressed"), 0.0, "{output}");
        let small = once(mpi, 2).env("TRANSPRESS_MIN_BYTES", 1_000_000);
        let output = small.output().passes().complains_of_nothing();
        assert_eq!(output.number("compressed"), 0.0, "{output}");
    }
}

#[test]
fn values_out_of_range() {
    let wrong = [
        ("RATE", "0"),
        ("RATE", "65"),
        ("RATE", "-8"),
        ("RATE", "nan"),
        ("RATE", "sixteen"),
        ("RATE", "16;#1="),
        ("CODEC", "gzip"),
        ("LAYOUT", "2c,x,*"),
        ("LAYOUT", "*,*"),
        ("MIN_BYTES", "-1"),
        ("MIN_BYTES", "4k"),
        ("ON_NODE", "sometimes"),
        ("MODE", "maybe"),
        ("DEVICE", "tpu"),
        ("BYTES", "f16"),
        ("THREADS", "0"),
        ("GUARD", "-1"),
        ("GUARD", "0"),
        ("GUARD", "1"),
        ("GUARD", "none"),
        ("LAYOUT", "auto;64,*"),
        ("TOLERANCE", "0"),
        ("REPORT", "stdrr"),
    ];
    for (i, (name, value)) in wrong.into_iter().enumerate() {
        let variable = format!("TRANSPRESS_{name}");
        let run = once(BOTH[i % 2], 2).env(&variable, value);
        runs_uncompressed(run, &[&variable, value, "accepted"]);
    }
    for mpi in BOTH {
        let run = once(mpi, 2).env("TRANSPRESS_RATTE", "8");
        runs_uncompressed(run, &["TRANSPRESS_RATTE=8", "TRANSPRESS_RATE"]);
    }
}

#[test]
fn what_is_not_yet_available() {
    for mpi in BOTH {
        let run = once(mpi, 2).env("TRANSPRESS_REPORT", "all.html");
        runs_uncompressed(run, &["TRANSPRESS_REPORT=all.html", "not yet available"]);
    }
}

#[test]
fn a_layout_that_fits_no_message() {
    for mpi in BOTH {
        let run = once(mpi, 2).env("TRANSPRESS_LAYOUT", "17,*");
        compresses(run).complains_once(&["17,*", "5000"]);
    }
}

/// Where ranks were started with unlike settings, nobody hangs and nobody compresses.
#[test]
fn settings_that_differ_between_ranks() {
    let differing = [
        ("RATE", "8"),
        ("CODEC", "fp16"),
        ("CODEC", "off"),
        ("COMMS", "registered"),
        ("COMMS", "rows"),
        ("MODE", "off"),
        ("MIN_BYTES", "100"),
        ("ON_NODE", "raw"),
        ("BYTES", "f64"),
    ];
    for mpi in BOTH {
        for (i, (name, value)) in differing.into_iter().enumerate() {
            let variable = format!("TRANSPRESS_{name}");
            let run = once(mpi, 3).env_of(i % 3, &variable, value);
            runs_uncompressed(run, &[&variable]);
        }
    }
}

#[test]
fn a_wrong_value_on_one_rank() {
    for mpi in BOTH {
        for rank in [0, 2] {
            for (name, value) in [("RATE", "99"), ("CODEC", "gzip"), ("DEVICE", "gpu")] {
                let variable = format!("TRANSPRESS_{name}");
                let run = once(mpi, 3).env_of(rank, &variable, value);
                runs_uncompressed(run, &[&variable]);
            }
        }
    }
}

#[test]
fn an_unknown_variable_on_one_rank() {
    for (mpi, rank) in [(Mpi::OpenMpi, 0), (Mpi::Mpich, 2)] {
        let run = once(mpi, 3).env_of(rank, "TRANSPRESS_RATTE", "8");
        runs_uncompressed(run, &["TRANSPRESS_RATTE"]);
    }
}
