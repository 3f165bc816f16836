//! TRANSPRESS_MODE=auto: what is measured decides, alike on every rank.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::{BOTH, Mpi, Run};

const CALLS: usize = 40;
/// Of the last 10 calls, those whose messages are long enough to be compressed, to each of two peers.
const LAST_LONG: f64 = 2.0 * 7.0;

fn auto(mpi: Mpi, values: usize) -> Run {
    Run::new(mpi, "auto")
        .ranks(3)
        .arg(CALLS.to_string())
        .arg(values.to_string())
        .env("TRANSPRESS_COMMS", "all")
        .env("TRANSPRESS_RATE", "8")
        .env("TRANSPRESS_MODE", "auto")
        .env("TRANSPRESS_LOG", "info")
        .env("CHECK_F32", 2e-2)
}

#[test]
fn a_slow_network_makes_it_compress() {
    for mpi in BOTH {
        let output = auto(mpi, 150_000).tool_after("slow-tool").output().passes();
        assert_eq!(output.number("compressed"), LAST_LONG, "{output}");
        assert!(output.stderr.contains("MPI_Alltoallv: "), "{output}");
        let chosen = output
            .stderr
            .lines()
            .find(|line| line.contains("as a call took plain"));
        let chosen = chosen.unwrap_or_else(|| panic!("no reason is given\n{output}"));
        assert!(!chosen.contains(": plain,"), "{output}");
    }
}

#[test]
fn engines_that_are_not_allowed_are_not_tried() {
    for (mpi, engine, other) in [
        (Mpi::OpenMpi, "collective", "pairwise"),
        (Mpi::Mpich, "pairwise", "collective"),
    ] {
        let run = auto(mpi, 150_000)
            .tool_after("slow-tool")
            .env("TRANSPRESS_ENGINE", engine);
        let output = run.output().passes();
        assert_eq!(output.number("compressed"), LAST_LONG, "{output}");
        let chosen = format!(": {engine}, as a call took plain");
        assert!(output.stderr.contains(&chosen), "{output}");
        assert!(!output.stderr.contains(other), "{output}");
    }
}

/// Messages whose length the data decide.
#[test]
fn a_tolerance_is_tried_too() {
    let run = auto(Mpi::Mpich, 150_000).tool_after("slow-tool");
    let output = run.env("TRANSPRESS_TOLERANCE", "1e-2").output().passes();
    assert_eq!(output.number("compressed"), LAST_LONG, "{output}");
}

/// Too little happens for a trial to pay.
#[test]
fn short_programs_go_plain() {
    for mpi in BOTH {
        let run = auto(mpi, 3000).env("CHECK_F32", 0);
        let output = run.output().passes();
        assert_eq!(output.number("compressed"), 0.0, "{output}");
    }
}
