//! `make install`, and a program that runs with what it installed.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const PREFIX: &str = "/opt/transpress";

/// A program that registers its communicator with the installed header, and says what came of it.
const PROGRAM: &str = r#"
#include <mpi.h>
#include <stdio.h>
#include <transpress.h>

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  int code = transpress_register(MPI_COMM_WORLD);
  if (rank == 0) printf("register: %d\n", code);
  MPI_Finalize();
  return 0;
}
"#;

fn output(command: &mut Command) -> String {
    let output = command
        .output()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// What is installed, below the prefix.
fn install(name: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&root);
    // The command lies in TARGET/PROFILE; make installs the release of the same TARGET.
    let target = Path::new(env!("CARGO_BIN_EXE_transpress"))
        .ancestors()
        .nth(2);
    let mut make = Command::new("make");
    make.args(["-C", env!("CARGO_MANIFEST_DIR"), "install"])
        .arg(format!("PREFIX={PREFIX}"))
        .arg(format!("DESTDIR={}", root.display()))
        .env("CARGO_TARGET_DIR", target.unwrap())
        // Those of a `make test` around this test.
        .env_remove("MAKEFLAGS")
        .env_remove("MAKELEVEL");
    output(&mut make);
    root.join(PREFIX.trim_start_matches('/'))
}

#[test]
fn the_command_finds_its_library_and_programs_its_header() {
    let installed = install("install");
    for file in [
        "bin/transpress",
        "lib/libtranspress.so",
        "include/transpress.h",
        "include/transpress.f90",
        "share/doc/transpress/LICENSE",
        "share/doc/transpress/environment.md",
    ] {
        assert!(installed.join(file).is_file(), "{file} is not installed");
    }

    let (source, program) = (installed.join("program.c"), installed.join("program"));
    fs::write(&source, PROGRAM).unwrap();
    let include = format!("-I{}", installed.join("include").display());
    output(
        Command::new("mpicc.openmpi")
            .arg(include)
            .arg("-o")
            .args([&program, &source]),
    );

    let mpirun = |arguments: &[&Path]| {
        let mut mpirun = Command::new("mpirun.openmpi");
        mpirun
            .args(["--oversubscribe", "-n", "2"])
            .args(arguments)
            .env_remove("TRANSPRESS_LIBRARY")
            .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
            .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
        output(&mut mpirun)
    };
    let command = installed.join("bin/transpress");
    let (run, end) = (Path::new("run"), Path::new("--"));
    // TRANSPRESS_OK with the library, TRANSPRESS_ABSENT without.
    assert_eq!(mpirun(&[&command, run, end, &program]), "register: 0\n");
    assert_eq!(mpirun(&[&program]), "register: 1\n");
}
