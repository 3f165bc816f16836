//! Values, accuracy and the C interface: what lossy coding may do to a message, and what not.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::{BOTH, Mpi, Run};

fn on_all(mpi: Mpi, program: &str, ranks: usize) -> Run {
    Run::new(mpi, program)
        .ranks(ranks)
        .env("TRANSPRESS_REPORT", "off")
        .env("TRANSPRESS_COMMS", "all")
}

/// As [`on_all`], with the errors of zfp at 16 bits on the smooth messages of check.c.
fn checked(mpi: Mpi, program: &str, ranks: usize) -> Run {
    on_all(mpi, program, ranks)
        .env("CHECK_COMPRESSED", 1)
        .env("CHECK_F32", 1e-4)
        .env("CHECK_F64", 5e-4)
}

#[test]
fn values_that_are_not_finite() {
    for mpi in BOTH {
        on_all(mpi, "not_finite", 2).plain().output().passes();
        // What is not finite goes as a mask: two kinds, five ways, twelve times, two peers.
        let coded = checked(mpi, "not_finite", 3).output().passes();
        assert_eq!(coded.number("compressed"), 240.0, "{coded}");
        assert_eq!(coded.number("escaped"), 0.0, "{coded}");
        for codec in ["fp16", "bf16"] {
            // A cast has no mask: the message with the NaN is sent raw.
            let cast = checked(mpi, "not_finite", 2)
                .env("TRANSPRESS_CODEC", codec)
                .env("CHECK_F32", 4e-3)
                .env("CHECK_F64", 4e-3)
                .output()
                .passes();
            assert!(cast.number("escaped") > 0.0, "{cast}");
        }
    }
}

#[test]
fn structure_is_worth_more_than_bits() {
    let errors = |rate: &str| {
        on_all(Mpi::OpenMpi, "accuracy", 2)
            .env("TRANSPRESS_GUARD", "off")
            .env("TRANSPRESS_RATE", rate)
            .output()
            .passes()
    };
    let at_8 = errors("8");
    let error = |name| at_8.number(name);
    assert!(error("2-D") < error("flat") / 3.0, "{at_8}");
    assert!(error("3-D") < error("2-D"), "{at_8}");
    assert_eq!(error("3-D"), error("3-D by layout"), "{at_8}");
    assert!(error("3-D") < error("3-D swapped") / 3.0, "{at_8}");
    assert!(
        error("complex split") < error("complex flat") / 10.0,
        "{at_8}"
    );
    assert!(
        error("fields apart") < error("fields flat") / 10.0,
        "{at_8}"
    );
    assert!(error("fields apart") < 0.05, "{at_8}");

    let at_16 = errors("16");
    assert!(at_16.number("flat") < 1e-4, "{at_16}");
    assert!(at_16.number("3-D") < 1e-5, "{at_16}");
    assert!(at_16.number("fields apart") < 1e-3, "{at_16}");
    for name in ["flat", "2-D", "3-D", "complex split", "fields apart"] {
        assert!(
            at_16.number(name) < at_8.number(name) / 10.0,
            "{name}: {at_16}"
        );
    }

    // A layout of the environment comes before what the program registers.
    let by_environment = on_all(Mpi::Mpich, "accuracy", 2)
        .env("TRANSPRESS_RATE", "8")
        .env("TRANSPRESS_GUARD", "off")
        .env("TRANSPRESS_LAYOUT", "24,20,12")
        .output()
        .passes();
    assert_eq!(
        by_environment.number("flat"),
        error("3-D"),
        "{by_environment}"
    );
}

#[test]
fn tolerances_by_communicator() {
    for mpi in BOTH {
        for ranks in [2, 3] {
            Run::new(mpi, "tolerance")
                .ranks(ranks)
                .env("TRANSPRESS_REPORT", "off")
                .output()
                .passes()
                .complains_of_nothing();
        }
    }
}

#[test]
fn codes_of_the_c_interface() {
    for mpi in BOTH {
        let run = Run::new(mpi, "api")
            .ranks(3)
            .env("TRANSPRESS_REPORT", "off");
        run.clone().output().passes();
        run.clone().plain().arg("absent").output().passes();
        for (variable, value) in [("TRANSPRESS_CODEC", "off"), ("TRANSPRESS_MODE", "off")] {
            run.clone()
                .env(variable, value)
                .arg("off")
                .output()
                .passes();
        }
    }
}

#[test]
fn threads_on_communicators_of_their_own() {
    for mpi in BOTH {
        on_all(mpi, "threads", 3).plain().output().passes();
        checked(mpi, "threads", 3)
            .output()
            .passes()
            .complains_of_nothing();
    }
}

/// Past 2^31 bytes in one message; half a minute and 6 GB.
#[test]
fn huge_messages() {
    checked(Mpi::OpenMpi, "huge", 2)
        .env("TRANSPRESS_CODEC", "fp16")
        .limit(300)
        .output()
        .passes();
}
