//! The examples: right with the library and without, and smaller with it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::{BOTH, Run};

#[test]
fn pencil_transposes() {
    for mpi in BOTH {
        for example in [
            "pencil_transpose",
            "pencil_transpose_mpif",
            "pencil_transpose_f08",
        ] {
            let run = Run::new(mpi, example)
                .ranks(4)
                .env("TRANSPRESS_REPORT", "off");
            let plain = run.clone().plain().output();
            assert_eq!(plain.code, Some(0), "{plain}");
            assert!(plain.stdout.contains("max relative error"), "{plain}");
            assert!(!plain.stdout.contains("times fewer"), "{plain}");

            let coded = run.clone().output();
            assert_eq!(coded.code, Some(0), "{coded}");
            assert!(coded.stdout.contains("times fewer"), "{coded}");
            assert_ne!(
                coded.stdout.lines().next(),
                plain.stdout.lines().next(),
                "{coded}"
            );

            // One bit per value is too few: the example says so.
            let poor = run.env("TRANSPRESS_RATE", 1).output();
            assert_ne!(poor.code, Some(0), "{poor}");
        }
    }
}
