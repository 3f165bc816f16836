//! ECMWF's ecTrans, a program that we did not build, by environment alone: its own norms say how near the
//! fields come back. Debian's ectrans-utils.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::report::report_file;
use common::{Mpi, Output, Run};

fn benchmark() -> Run {
    let run = Run::of_system(Mpi::OpenMpi, "ectrans-benchmark-sp")
        .ranks(4)
        .env("OMP_NUM_THREADS", 1);
    let options = "-t 159 --nfld 5 --nlev 20 --niter 3 --norms";
    options
        .split(' ')
        .fold(run, |run, option| run.arg(option))
        .limit(180)
}

/// It says the error and ends with 0 whatever the error is.
#[track_caller]
fn error_of(output: &Output) -> f64 {
    assert_eq!(output.code, Some(0), "{output}");
    let line = output
        .stdout
        .lines()
        .find(|line| line.contains("max error combined"));
    let number = line.and_then(|line| line.split_whitespace().find_map(|word| word.parse().ok()));
    number.unwrap_or_else(|| panic!("no error: {output}"))
}

#[test]
fn without_a_layout() {
    for (rate, bound) in [(8, 1e-4), (16, 1e-6)] {
        let report = report_file("ectrans");
        let output = benchmark()
            .env("TRANSPRESS_COMMS", "all")
            .env("TRANSPRESS_RATE", rate)
            .env("TRANSPRESS_REPORT", report.path())
            .output();
        let error = error_of(&output);
        assert!(error <= bound, "{error:e} at {rate}: {output}");
        let (compressed, before, after) = report
            .communicators()
            .iter()
            .flat_map(|row| row.calls.clone())
            .fold((0, 0, 0), |(compressed, before, after), call| {
                (
                    compressed + call.compressed,
                    before + call.before,
                    after + call.after,
                )
            });
        assert!(compressed > 0, "{output}");
        assert!(
            5 * after < 4 * before,
            "{before} bytes to {after}: {output}"
        );
    }
}
