//! The life of processes under the preload: with MPI or without, however they start and end.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::{BOTH, Mpi, Output, Run, build, launch, library};
use std::process::Command;
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_secs(60);

fn compressed(mpi: Mpi, program: &str) -> Run {
    Run::new(mpi, program)
        .env("TRANSPRESS_REPORT", "off")
        .env("TRANSPRESS_COMMS", "all")
        .env("CHECK_F32", 1e-4)
}

/// The same end and the same words as without the library. Launchers number their processes.
#[track_caller]
fn same_but_for_numbers(with: &Output, without: &Output) {
    let wordless = |text: &str| -> Vec<String> {
        let kept = |line: &str| line.chars().filter(|c| !c.is_ascii_digit()).collect();
        text.lines().map(kept).collect()
    };
    assert_eq!(with.code, without.code, "{with}\n{without}");
    assert_eq!(with.stdout, without.stdout, "{with}");
    let (mut said, mut expected) = (wordless(&with.stderr), wordless(&without.stderr));
    said.sort();
    expected.sort();
    assert_eq!(said, expected, "{with}\n{without}");
}

#[test]
fn every_way_to_start_and_end() {
    for mpi in BOTH {
        for way in [
            "init",
            "atexit",
            "never",
            "exit",
            "_exit",
            "fork",
            "without-mpi",
        ] {
            let run = compressed(mpi, "life").arg(way);
            let (with, without) = (run.output(), run.plain().output());
            assert!(without.stdout.ends_with("done\n"), "{without}");
            same_but_for_numbers(&with, &without);
        }
        // Launchers may lose what an aborted rank has printed.
        let output = compressed(mpi, "life").arg("abort").output();
        assert_eq!(output.code, Some(9), "{output}");
        assert!(!output.stderr.contains("panicked"), "{output}");
        assert!(!output.stderr.contains("signal"), "{output}");
    }
}

/// Processes with this word among their arguments, launchers and shells included.
fn processes_with(word: &str) -> Vec<i32> {
    let has_word = |pid: &i32| {
        let arguments = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        arguments
            .split(|&byte| byte == 0)
            .any(|one| one == word.as_bytes())
    };
    let entries = std::fs::read_dir("/proc").expect("/proc").flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(has_word).collect()
}

/// What waits for a message waits as MPI does: the launcher ends it, as without the library. Of the rank that died
/// and those that it kills then, launchers report now one and now another.
#[track_caller]
fn ends_as_without(run: Run, name: &str) {
    for run in [run.clone(), run.plain()] {
        let output = run.output();
        assert!(!output.stdout.contains("FAIL"), "{output}");
        assert!(!output.stderr.contains("panicked"), "{output}");
        // Launchers may leave before those that they killed.
        let patience_ends = Instant::now() + Duration::from_secs(10);
        while !processes_with(name).is_empty() && Instant::now() < patience_ends {
            std::thread::sleep(Duration::from_millis(20));
        }
        assert!(processes_with(name).is_empty(), "left behind: {output}");
        assert_ne!(output.code, Some(0), "{output}");
    }
}

#[test]
fn a_rank_dies_while_others_wait_for_it() {
    for (mpi, engine) in BOTH
        .into_iter()
        .flat_map(|mpi| [(mpi, "collective"), (mpi, "pairwise")])
    {
        for (how, when, handler) in [
            ("kill", "inside", "return"),
            ("_exit", "before", "fatal"),
            ("abort", "before", "return"),
        ] {
            let name = format!("dies-{}", std::process::id());
            let run = compressed(mpi, "dies")
                .ranks(4)
                .env("TRANSPRESS_ENGINE", engine);
            let run = [how, when, handler, &name].into_iter().fold(run, Run::arg);
            ends_as_without(run, &name);
        }
    }
}

fn under_preload(program: &str, args: &[&str]) -> Output {
    let mut command = Command::new("env");
    command
        .arg(format!("LD_PRELOAD={}", library().display()))
        .args(["TRANSPRESS_COMMS=all", "TRANSPRESS_RATE=banana", program])
        .args(args);
    launch(command, LIMIT)
}

/// No MPI, no opinion: not even on a wrong variable.
#[test]
fn programs_without_mpi_notice_nothing() {
    for (program, args) in [
        ("sh", ["-c", "true"]),
        ("sh", ["-c", "echo hello; exit 0"]),
        ("python3", ["-c", "pass"]),
        ("python3", ["-c", "import os, threading; print('hello')"]),
        ("ls", ["/", "/usr"]),
    ] {
        let with = under_preload(program, &args);
        let mut plain = Command::new(program);
        plain.args(args);
        let without = launch(plain, LIMIT);
        assert_eq!(with.code, Some(0), "{with}");
        assert_eq!(with.stdout, without.stdout, "{with}");
        assert_eq!(with.stderr, "", "{with}");
    }
}

/// The preload in the environment of the launcher, its daemons and a shell between.
#[test]
fn launchers_and_shells_carry_it() {
    for mpi in BOTH {
        let program = build(mpi, "once");
        let script = format!("{} -n 2 sh -c 'exec {}'", mpi.launcher(), program.display());
        let mut command = Command::new("env");
        command
            .arg(format!("LD_PRELOAD={}", library().display()))
            .args([
                "TRANSPRESS_REPORT=off",
                "TRANSPRESS_COMMS=all",
                "CHECK_F32=1e-4",
            ])
            .args(["sh", "-c", &script]);
        let output = launch(command, LIMIT).passes();
        assert_eq!(output.stderr, "", "{output}");
        assert_eq!(output.number("compressed"), 2.0, "{output}");

        let launcher = under_preload(mpi.launcher(), &["-n", "2", "true"]);
        assert_eq!(launcher.code, Some(0), "{launcher}");
        assert_eq!(
            (&*launcher.stdout, &*launcher.stderr),
            ("", ""),
            "{launcher}"
        );
    }
}

/// Ranks of one MPI under the launcher of the other are worlds of one; nothing else changes.
#[test]
fn a_program_of_the_other_mpi() {
    for (launcher, mpi) in [(BOTH[0], BOTH[1]), (BOTH[1], BOTH[0])] {
        let program = build(mpi, "once");
        let run = |preload: Option<String>| {
            let mut command = Command::new(launcher.launcher());
            command.args([
                "-n",
                "1",
                "env",
                "TRANSPRESS_COMMS=all",
                "TRANSPRESS_REPORT=off",
            ]);
            command.args(preload.map(|library| format!("LD_PRELOAD={library}")));
            command.arg(&program);
            launch(command, LIMIT)
        };
        let with = run(Some(library().display().to_string()));
        let without = run(None);
        same_but_for_numbers(&with, &without);
        with.passes();
    }
}

/// A tool before the library sees every call of the program. One after it sees those that are passed on;
/// what the library sends in place of the others is its own business.
#[test]
fn another_tool_before_or_after() {
    for mpi in BOTH {
        let run = compressed(mpi, "once").ranks(3);
        let before = run.clone().tool_before("count-tool");
        let output = before.output().passes().complains_of_nothing();
        assert_eq!(output.number("tool"), 2.0, "{output}");
        assert_eq!(output.number("compressed"), 4.0, "{output}");

        let after = run.tool_after("count-tool");
        let output = after.clone().output().passes().complains_of_nothing();
        assert_eq!(output.number("compressed"), 4.0, "{output}");
        let off = after.env("TRANSPRESS_CODEC", "off");
        let output = off.output().passes().complains_of_nothing();
        assert_eq!(output.number("tool"), 2.0, "{output}");
    }
}

#[test]
fn mpi_loaded_by_a_host_that_has_none() {
    for mpi in BOTH {
        let plugin = build(mpi, "local-plugin").display().to_string();
        let run = compressed(mpi, "local").ranks(3).arg(plugin);
        run.clone().plain().output().passes();
        let output = run.output().passes().complains_of_nothing();
        assert_eq!(output.number("compressed"), 2.0, "{output}");
    }
}

#[test]
fn errors_go_to_the_handler_of_the_communicator() {
    for mpi in BOTH {
        let run = compressed(mpi, "error_handler").ranks(3).arg("program");
        run.clone().plain().output().passes();
        run.output().passes();
    }
}

/// Never a crash, never silent zeros.
#[test]
fn a_broken_header_is_an_error() {
    for (mpi, engine) in BOTH
        .into_iter()
        .flat_map(|mpi| [(mpi, "collective"), (mpi, "pairwise")])
    {
        let run = compressed(mpi, "error_handler")
            .ranks(3)
            .env("TRANSPRESS_ENGINE", engine);
        let output = run
            .tool_after("corrupt-tool")
            .arg("header")
            .output()
            .passes();
        let error = output
            .stdout
            .lines()
            .find(|line| line.starts_with("error "));
        let error = error.unwrap_or_default();
        assert!(
            error.contains("transpress") && error.contains("rank"),
            "{output}"
        );

        // Under the default handler the program ends.
        let output = compressed(mpi, "once").tool_after("corrupt-tool").output();
        assert_ne!(output.code, Some(0), "{output}");
        assert!(!output.stderr.contains("Segmentation"), "{output}");
    }
}

#[test]
fn the_report() {
    for mpi in BOTH {
        let file = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"))
            .join(format!("report-{}-{mpi:?}.json", std::process::id()));
        compressed(mpi, "once")
            .ranks(3)
            .env("TRANSPRESS_REPORT", file.display())
            .output()
            .passes();
        let text = std::fs::read_to_string(&file).expect("the report");
        std::fs::remove_file(&file).expect("the report");
        let report: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        let call = &report["communicators"][0]["calls"][0];
        assert_eq!(call["call"], "MPI_Alltoall", "{text}");
        let number = |name: &str| {
            call[name]
                .as_u64()
                .unwrap_or_else(|| panic!("{name}: {text}"))
        };
        assert!(number("messages_compressed") > 0, "{text}");
        assert_eq!(number("messages_escaped"), 0, "{text}");
        assert!(number("bytes_after") < number("bytes_before"), "{text}");

        let run = Run::new(mpi, "once");
        let silent = run.clone().output().passes();
        assert_eq!(
            silent.stderr,
            run.clone().plain().output().stderr,
            "{silent}"
        );
        let spoken = run.env("TRANSPRESS_COMMS", "all").env("CHECK_F32", 1e-4);
        let spoken = spoken.output().passes();
        assert!(spoken.stderr.contains("MPI_COMM_WORLD"), "{spoken}");
        assert!(spoken.stderr.contains("MPI_Alltoall"), "{spoken}");
    }
}

/// The library's threads take no core, signal or time that would be missed.
#[test]
fn threads_that_help_keep_apart() {
    for mpi in BOTH {
        for (way, warns) in [("openmp", false), ("bound", true)] {
            let run = compressed(mpi, "helpers").env("TRANSPRESS_THREADS", 2);
            let output = run.arg(way).output().passes();
            let warnings = output.stderr.lines().filter(|line| {
                line.starts_with("transpress: TRANSPRESS_THREADS=2, but ") && line.contains(" 1;")
            });
            let cores = std::thread::available_parallelism().map_or(1, usize::from);
            assert_eq!(warnings.count() == 1, warns || cores == 1, "{output}");
        }
    }
}
