//! Fortran's three interfaces to MPI, and the module transpress.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::{BOTH, Run};

#[test]
fn every_kind_through_every_interface() {
    for mpi in BOTH {
        for interface in ["MPIF", "MPI_MODULE", "MPI_F08"] {
            let run = Run::new(mpi, &format!("kinds:{interface}"))
                .ranks(3)
                .env("TRANSPRESS_REPORT", "off")
                .env("TRANSPRESS_COMMS", "all")
                .env("CHECK_F32", 5e-3);
            let plain = run.clone().plain().env("CHECK_F32", 0).output().passes();
            assert_eq!(plain.number("compressed"), 0.0, "{plain}");
            let coded = run.output().passes().complains_of_nothing();
            // Thirteen real and complex types, two calls in place; two peers.
            assert_eq!(coded.number("compressed"), 2.0 * 15.0, "{coded}");
        }
    }
}

#[test]
fn every_call_of_the_module() {
    for mpi in BOTH {
        for interface in ["MPI_MODULE", "MPI_F08"] {
            let run = Run::new(mpi, &format!("module:{interface}"))
                .ranks(2)
                .env("TRANSPRESS_REPORT", "off");
            run.clone().plain().arg("absent").output().passes();
            run.arg("there").output().passes();
        }
    }
}
