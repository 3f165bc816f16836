//! Weather-like fields through the real ecTrans and back, compressed by environment alone: no layout, no
//! shape, no change to the program.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::Path;
use std::process::Command;

/// The errors of each variable after one round trip, as the example's table has them.
fn errors_at(codec: &str) -> Vec<f64> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let run = Command::new(root.join("examples/ectrans_roundtrip.sh"))
        .args([
            "--truncation",
            "159",
            "--levels",
            "20",
            "--round-trips",
            "1",
        ])
        .env("CODECS", codec)
        .env("TRANSPRESS", env!("CARGO_BIN_EXE_transpress"))
        .env("BUILD", Path::new(env!("CARGO_TARGET_TMPDIR")).join(codec))
        .output()
        .expect("the example starts");
    let table = String::from_utf8_lossy(&run.stdout);
    let complaints = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success(), "{table}{complaints}");
    let row = table.lines().find(|line| line.starts_with(codec));
    let row = row.unwrap_or_else(|| panic!("no row for {codec} in\n{table}{complaints}"));
    // Codec, round trips, five variables, seconds.
    let errors: Vec<f64> = row
        .split_whitespace()
        .skip(2)
        .take(5)
        .map(|error| error.parse().unwrap())
        .collect();
    assert_eq!(errors.len(), 5, "{row}");
    errors
}

fn assert_below(codec: &str, bound: f64) {
    let errors = errors_at(codec);
    assert!(
        errors.iter().all(|&error| error > 0.0 && error <= bound),
        "{codec}: {errors:?}"
    );
}

#[test]
fn no_variable_loses_much_at_8_bits() {
    assert_below("zfp-8", 2e-2);
}

#[test]
fn no_variable_loses_anything_of_note_at_16_bits() {
    assert_below("zfp-16", 1e-4);
}
