//! A C program that does one all-to-all, built and launched with any MPI, and checked with and without the
//! library.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Of the values that arrive. Half an ulp of a half: values reach 5.
const FP16_ERROR: f64 = 2.1e-3;

/// Builds the program with `mpicc` and runs it with `mpiexec`: exact without the library, and compressed with
/// it.
pub fn check(mpicc: &str, mpiexec: &[&str]) {
    let program = build(mpicc);
    for ranks in [2, 4] {
        let plain = error_of(launch(mpiexec, ranks).arg(&program));
        assert_eq!(plain, 0.0, "{mpicc}, {ranks} ranks");

        let report = program.with_extension("json");
        let _ = fs::remove_file(&report);
        let mut compressed = launch(mpiexec, ranks);
        compressed
            .arg(env!("CARGO_BIN_EXE_transpress"))
            .args(["run", "--comms", "all", "--codec", "fp16", "--report"])
            .args([&report, Path::new("--"), &program]);
        let error = error_of(&mut compressed);
        assert!(
            error > 0.0 && error < FP16_ERROR,
            "{mpicc}, {ranks} ranks: error {error}"
        );

        let report = fs::read_to_string(&report).expect("the report");
        let report: serde_json::Value = serde_json::from_str(&report).expect("JSON");
        let call = &report["communicators"][0]["calls"][0];
        println!("{mpicc}, {ranks} ranks: error {error:.1e}, {call}");
        assert_eq!(call["call"], "MPI_Alltoall");
        assert_eq!(call["messages_compressed"], ranks * (ranks - 1));
        assert_eq!(call["messages_raw"], 0);
        assert!(call["ratio"].as_f64() > Some(1.9), "{call}");
    }
}

fn build(mpicc: &str) -> PathBuf {
    // One folder per compiler and process: tests of different MPIs may run at once.
    let compiler = Path::new(mpicc).file_name().unwrap().to_str().unwrap();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join(format!("alltoall-{compiler}-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let program = folder.join("alltoall");
    let source = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/alltoall_program/alltoall.c"
    );
    let status = Command::new(mpicc)
        .args(["-std=c11", "-O1", "-Wall", "-Wextra", "-Werror", "-o"])
        .args([program.as_path(), source.as_ref(), "-lm".as_ref()])
        .status()
        .unwrap_or_else(|error| panic!("{mpicc}: {error}"));
    assert!(status.success(), "{mpicc}: {status}");
    program
}

fn launch(mpiexec: &[&str], ranks: usize) -> Command {
    // Ranks that got out of step wait for each other forever.
    let mut command = Command::new("timeout");
    command
        .arg("120")
        .args(mpiexec)
        .args(["-n", &ranks.to_string()])
        // What Open MPI asks of those who run as root.
        .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
        .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    command
}

/// The number that the program prints.
fn error_of(command: &mut Command) -> f64 {
    let output = command.output().unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout);
    let number = stdout
        .lines()
        .find_map(|line| line.strip_prefix("error ")?.parse().ok());
    number
        .filter(|_| output.status.success())
        .unwrap_or_else(|| panic!("{command:?}: {output:?}"))
}
