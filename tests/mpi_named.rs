//! Which communicators are compressed, and how much, by name and by number: the report's bytes say so.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::report::report_file;
use common::{BOTH, Mpi, Run};

/// Bits per value on the wire in each call of each communicator, by the report.
fn bits(mpi: Mpi, comms: &str, rate: &str) -> Vec<(u64, String, f64)> {
    let report = report_file("named");
    Run::new(mpi, "named")
        .ranks(3)
        .env("TRANSPRESS_COMMS", comms)
        .env("TRANSPRESS_RATE", rate)
        .env("TRANSPRESS_REPORT", report.path())
        .env("CHECK_F32", 2e-2)
        .output()
        .passes()
        .complains_of_nothing();
    let mut rows = vec![];
    for row in report.communicators() {
        let names: Vec<_> = row.calls.iter().map(|call| &*call.name).collect();
        assert_eq!(names, ["MPI_Alltoall", "MPI_Alltoallv"]);
        for call in row.calls {
            // To two peers; of a communicator that was freed, rank 0 knows its own.
            assert_eq!((call.before, call.escaped), (row.ranks * 2 * 5000 * 4, 0));
            rows.push((
                row.number,
                row.name.clone(),
                32.0 * call.after as f64 / call.before as f64,
            ));
        }
    }
    rows
}

/// A header makes up for less than a tenth.
#[track_caller]
fn expect_bits(rows: &[(u64, String, f64)], expected: &[(&str, f64)]) {
    let twice: Vec<_> = expected.iter().flat_map(|row| [row, row]).collect();
    assert_eq!(rows.len(), twice.len(), "{rows:?}");
    for ((_, name, bits), (expected_name, expected)) in rows.iter().zip(twice) {
        assert!(
            name == expected_name && *bits >= *expected && *bits < 1.1 * expected,
            "{rows:?}"
        );
    }
}

#[test]
fn rates_by_communicator() {
    for mpi in BOTH {
        let rows = bits(mpi, "all", "16;rows=8;the columns=12");
        expect_bits(
            &rows,
            &[
                ("MPI_COMM_WORLD", 16.0),
                ("rows", 8.0),
                ("the columns", 12.0),
            ],
        );
        let number = rows[4].0;
        let rows = bits(mpi, "all", &format!("20;#{number}=10"));
        expect_bits(
            &rows,
            &[
                ("MPI_COMM_WORLD", 20.0),
                ("rows", 20.0),
                ("the columns", 10.0),
            ],
        );
    }
}

#[test]
fn communicators_by_name_and_number() {
    for mpi in BOTH {
        expect_bits(
            &bits(mpi, "rows,the columns", "8"),
            &[("rows", 8.0), ("the columns", 8.0)],
        );
        expect_bits(&bits(mpi, "the columns", "16"), &[("the columns", 16.0)]);
        let number = bits(mpi, "all", "16")[2].0;
        expect_bits(&bits(mpi, &format!("#{number}"), "16"), &[("rows", 16.0)]);
        assert!(bits_of_none(mpi));
    }
}

/// Names that no communicator has: there is nothing to report.
fn bits_of_none(mpi: Mpi) -> bool {
    let output = Run::new(mpi, "named")
        .ranks(3)
        .env("TRANSPRESS_COMMS", "row,columns,#77")
        .output()
        .passes();
    output.stderr.is_empty()
}
