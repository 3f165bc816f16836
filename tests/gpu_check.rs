//! The check of a machine with a GPU, rehearsed with the stand-in for CUDA's driver.

use std::path::Path;
use std::process::{Command, Output};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// Built in a folder of its own, below cargo's target directory, by the profile that this test was built with.
fn rehearsal() -> Command {
    let scratch = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let target = scratch.parent().unwrap_or(scratch);
    let profile = if cfg!(debug_assertions) {
        "test"
    } else {
        "release"
    };
    let mut command = Command::new(Path::new(ROOT).join("tests/gpu/check.sh"));
    command
        .arg("rehearse")
        .env("CARGO_TARGET_DIR", target)
        .env("GPU_CHECK_PROFILE", profile)
        .env("GPU_CHECK_DIR", scratch.join("gpu-check"))
        .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
        .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    command
}

/// The table: what, result, and figures.
fn table(output: &Output) -> Vec<(String, String, String)> {
    let said = String::from_utf8_lossy(&output.stdout);
    let rows = said.lines().filter_map(|line| {
        let mut columns = line.splitn(3, " | ").map(str::to_owned);
        Some((columns.next()?, columns.next()?, columns.next()?))
    });
    rows.collect()
}

#[test]
fn the_check_can_be_rehearsed() {
    let output = rehearsal().output().expect("bash is there");
    let said = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(output.status.success(), "{said}");
    let table = table(&output);
    let result = |step: &str| {
        let row = table.iter().find(|(what, ..)| what == step);
        row.map(|(_, result, _)| result.as_str())
    };
    for step in [
        "info",
        "load the kernels",
        "codec's bits",
        "kernels' bits",
        "2 ranks, collective",
        "4 ranks, pairwise",
        "copy on the device",
        "survey f32",
    ] {
        assert_eq!(result(step), Some("ok"), "{step}\n{said}");
    }
    for what in ["encode", "decode"] {
        for element in ["f32", "f64"] {
            for shape in ["3-D", "2-D", "1-D"] {
                for rate in [8, 16] {
                    let step = format!("{what} {element} {shape} rate {rate}");
                    assert_eq!(result(&step), Some("ok"), "{step}\n{said}");
                }
            }
        }
    }
    for step in ["goals", "memcheck", "racecheck"] {
        assert_eq!(result(step), Some("not here"), "{step}\n{said}");
    }

    // The same programs, where kernels fail.
    let output = rehearsal()
        .env("FAKE_CUDA_FAIL", "cuLaunchKernel")
        .output()
        .expect("bash is there");
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{said}");
}
