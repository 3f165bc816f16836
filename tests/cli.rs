//! The command from outside: what a program sees that `transpress run` starts, and what `transpress
//! info` says of programs.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The command, in an environment without anything of ours or of a preload.
fn transpress(arguments: &[&str]) -> Command {
    let mut command = clean(env!("CARGO_BIN_EXE_transpress"));
    command.args(arguments);
    command
}

fn clean(program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("TRANSPRESS_") || name == "LD_PRELOAD" {
            command.env_remove(name);
        }
    }
    command
}

/// `transpress run` with a library that any program can bear to have preloaded.
fn run(arguments: &[&str]) -> Command {
    let mut command = transpress(&["run"]);
    command.args(arguments).env("TRANSPRESS_LIBRARY", libc());
    command
}

/// The C library that this test runs with.
fn libc() -> String {
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let path = maps.lines().find_map(|line| {
        let path = &line[line.find('/')?..];
        path.contains("/libc.so").then(|| path.to_owned())
    });
    path.unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// Runs a command that must succeed and say nothing on stderr.
fn succeed(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert_eq!(stderr(&output), "");
    assert!(output.status.success(), "{output:?}");
    stdout(&output)
}

/// Runs a command that must end with `status`, one line on stderr and nothing on stdout.
fn fail(command: &mut Command, status: i32) -> String {
    let output = command.output().unwrap();
    let line = stderr(&output);
    assert_eq!(output.status.code(), Some(status), "{line}");
    assert_eq!(stdout(&output), "");
    assert_eq!(line.lines().count(), 1, "{line}");
    line.strip_prefix("transpress: ").unwrap().trim().to_owned()
}

/// An empty folder for one test.
fn folder(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).unwrap();
    path
}

/// Compiles a C program.
fn compile(folder: &Path, compiler: &[&str], source: &str) -> String {
    let (input, output) = (folder.join("program.c"), folder.join("program"));
    fs::write(&input, source).unwrap();
    let status = clean(compiler[0])
        .args(&compiler[1..])
        .arg("-o")
        .args([&output, &input])
        .status();
    assert!(status.unwrap().success());
    output.to_str().unwrap().into()
}

/// The value of a row that `info` prints.
fn row(page: &str, label: &str) -> String {
    page.lines()
        .filter_map(|line| line.split_at_checked(22))
        .find(|(found, _)| found.trim() == label)
        .unwrap_or_else(|| panic!("no {label} in\n{page}"))
        .1
        .to_owned()
}

mod run_program {
    use super::*;

    #[test]
    fn every_option_sets_its_variable() {
        let options = [
            ("--comms", "rows,#2"),
            ("--codec", "fp16"),
            ("--rate", "8;rows=9.5"),
            ("--layout", "2c,100f,*"),
            ("--bytes", "off;rows=f32"),
            ("--min-bytes", "0"),
            ("--on-node", "compress"),
            ("--mode", "off"),
            ("--guard", "off"),
            ("--device", "cpu"),
            ("--threads", "2"),
            ("--report", "a b.json"),
            ("--log", "debug"),
        ];
        let mut arguments: Vec<_> = options.iter().flat_map(|(a, b)| [*a, *b]).collect();
        arguments.extend(["--layout", "256,128", "--", "env"]);
        let seen = succeed(&mut run(&arguments));
        for (option, value) in options {
            let variable = option[2..].to_uppercase().replace('-', "_");
            let value = if option == "--layout" {
                "2c,100f,*;256,128"
            } else {
                value
            };
            let line = format!("TRANSPRESS_{variable}={value}");
            assert!(seen.lines().any(|seen| seen == line), "{line} in\n{seen}");
        }
    }

    #[test]
    fn nothing_is_set_that_was_not_asked_for() {
        let seen = succeed(&mut run(&["--", "env"]));
        let ours: Vec<_> = seen
            .lines()
            .filter(|line| line.starts_with("TRANSPRESS_"))
            .collect();
        assert_eq!(ours, [format!("TRANSPRESS_LIBRARY={}", libc())]);
    }

    #[test]
    fn options_win_over_the_environment_and_the_rest_of_it_stays() {
        let mut command = run(&["--rate", "8", "--", "env"]);
        command
            .env("TRANSPRESS_RATE", "a rate that would be refused")
            .env("TRANSPRESS_COMMS", "all");
        let seen = succeed(&mut command);
        assert!(seen.contains("\nTRANSPRESS_RATE=8\n") || seen.starts_with("TRANSPRESS_RATE=8\n"));
        assert!(seen.contains("TRANSPRESS_COMMS=all\n"));
    }

    #[test]
    fn the_library_goes_before_other_preloads() {
        let preload = |present: Option<&str>| {
            let mut command = run(&["--", "sh", "-c", "echo \"$LD_PRELOAD\""]);
            if let Some(present) = present {
                command.env("LD_PRELOAD", present);
            }
            succeed(&mut command).trim().to_owned()
        };
        assert_eq!(preload(None), libc());
        // The same library under another name, so that there is one to load.
        let other = folder("preload").join("other.so");
        std::os::unix::fs::symlink(libc(), &other).unwrap();
        let other = other.to_str().unwrap();
        assert_eq!(preload(Some(other)), format!("{}:{other}", libc()));
        assert_eq!(preload(Some(&libc())), libc());
    }

    #[test]
    fn the_program_gets_its_arguments_and_status() {
        let script = "printf '%s|' \"$0\" \"$@\"; exit 5";
        for separator in [&["--"][..], &[]] {
            let mut arguments = separator.to_vec();
            arguments.extend(["sh", "-c", script, "a b", "--rate", "", "--", "-x", "*"]);
            let output = run(&arguments).output().unwrap();
            assert_eq!(stdout(&output), "a b|--rate||--|-x|*|");
            assert_eq!(
                (output.status.code(), stderr(&output)),
                (Some(5), "".into())
            );
        }
    }

    #[test]
    fn the_program_takes_our_process() {
        let child = run(&["--", "sh", "-c", "echo $$"])
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let ours = child.id();
        assert_eq!(
            stdout(&child.wait_with_output().unwrap()).trim(),
            ours.to_string()
        );
    }

    #[test]
    fn no_signal_is_left_ignored() {
        let ignored = |command: &mut Command| {
            let status = succeed(command);
            let line = status.lines().find(|line| line.starts_with("SigIgn"));
            line.unwrap().to_owned()
        };
        assert_eq!(
            ignored(&mut run(&["--", "cat", "/proc/self/status"])),
            ignored(clean("cat").arg("/proc/self/status"))
        );
    }

    #[test]
    fn bad_settings_end_it() {
        for (arguments, line) in [
            (
                &["--mode", "fast"][..],
                "TRANSPRESS_MODE=fast: accepted is on, auto or off",
            ),
            (
                &["--threads", "-2"],
                "TRANSPRESS_THREADS=-2: accepted is 1 to 1024",
            ),
            (
                &["--guard", "2"],
                "TRANSPRESS_GUARD=2: accepted is a number above 0 and below 1, or off",
            ),
            (
                &["--tolerance", "-1"],
                "TRANSPRESS_TOLERANCE=-1: accepted is a number above 0",
            ),
        ] {
            let mut arguments = arguments.to_vec();
            arguments.extend(["--", "echo", "started"]);
            assert_eq!(fail(&mut run(&arguments), 2), line);
        }
        let line = fail(run(&["--", "true"]).env("TRANSPRESS_RATES", "8"), 2);
        assert_eq!(
            line,
            "TRANSPRESS_RATES=8: no such variable; did you mean TRANSPRESS_RATE?"
        );
    }

    #[test]
    fn bad_arguments_end_it() {
        for arguments in [
            &["run"][..],
            &["run", "--", ""],
            &["run", "--rat", "8", "--", "true"],
            &["run", "--rate", "8", "--rate", "9", "--", "true"],
            &["walk"],
            &[],
        ] {
            let status = transpress(arguments)
                .env("TRANSPRESS_LIBRARY", libc())
                .output()
                .unwrap()
                .status
                .code();
            let expected = if arguments == ["run", "--", ""] {
                127
            } else {
                2
            };
            assert_eq!(status, Some(expected), "{arguments:?}");
        }
    }

    #[test]
    fn programs_that_are_not_there() {
        assert_eq!(
            fail(&mut run(&["--", "no-such-program"]), 127),
            "no-such-program: no such program"
        );
        assert_eq!(
            fail(&mut run(&["--", "/no/such/program"]), 127),
            "/no/such/program: no such program"
        );
    }

    #[test]
    fn programs_that_cannot_be_executed() {
        let folder = folder("not-executable");
        let file = folder.join("script");
        let path = file.to_str().unwrap();
        // Written by another process: a file that this one wrote may still be busy when it is started.
        let write = format!("echo '#!/no/such/interpreter' > '{path}'");
        succeed(clean("sh").args(["-c", &write]));
        assert_eq!(
            fail(&mut run(&["--", path]), 126),
            format!("{path}: may not be executed")
        );
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(
            fail(&mut run(&["--", path]), 126),
            format!("{path}: its interpreter or dynamic loader does not exist")
        );
        assert_eq!(
            fail(&mut run(&["--", "/etc"]), 126),
            "/etc: is a directory, not a program"
        );
    }

    #[test]
    fn a_static_program_is_warned_of() {
        let folder = folder("static");
        let program = compile(&folder, &["cc", "-static"], "int main(void) { return 3; }");
        assert_eq!(
            fail(&mut run(&["--", &program]), 3),
            format!(
                "{program}: statically linked programs take no preloaded library, so its messages \
                 stay as they are"
            )
        );
        let page = succeed(&mut transpress(&["info", &program]));
        assert!(row(&page, "MPI").contains("statically linked"));
    }

    #[test]
    fn the_library_must_be_there() {
        let mut command = transpress(&["run", "--", "true"]);
        assert_eq!(
            fail(command.env("TRANSPRESS_LIBRARY", "/no/such.so"), 2),
            "TRANSPRESS_LIBRARY=/no/such.so: no such file; accepted is the path of a libtranspress.so"
        );
    }

    #[test]
    fn a_path_that_a_preload_cannot_have() {
        for name in ["with space", "with:colon"] {
            let library = folder(name).join("lib.so");
            std::os::unix::fs::symlink(libc(), &library).unwrap();
            let mut command = transpress(&["run", "--", "true"]);
            let line = fail(command.env("TRANSPRESS_LIBRARY", &library), 2);
            assert!(line.contains("a space or a colon"), "{line}");
            // A link to it from a plain path will do.
            let link = folder("plain").join("lib.so");
            std::os::unix::fs::symlink(&library, &link).unwrap();
            let mut command = transpress(&["run", "--", "true"]);
            succeed(command.env("TRANSPRESS_LIBRARY", &link));
        }
    }

    /// Links the command into `bin` of a folder, and finds what it preloads.
    #[test]
    fn the_library_is_found_where_it_is_installed() {
        let root = folder("installed");
        let bin = root.join("bin");
        fs::create_dir(&bin).unwrap();
        let command = bin.join("transpress");
        // A link, not a copy: a file just written may still be busy in a child of another test.
        fs::hard_link(env!("CARGO_BIN_EXE_transpress"), &command).unwrap();
        let preload = || {
            let mut command = clean(&command);
            command.args(["run", "--", "printenv", "LD_PRELOAD"]);
            command
        };

        let line = fail(&mut preload(), 2);
        assert!(
            line.starts_with("libtranspress.so is neither in "),
            "{line}"
        );
        // The later in this list go before the earlier.
        for place in ["lib64", "lib", "bin"] {
            let library = root.join(place).join("libtranspress.so");
            fs::create_dir_all(root.join(place)).unwrap();
            fs::copy(libc(), &library).unwrap();
            assert_eq!(
                Path::new(succeed(&mut preload()).trim()),
                library.canonicalize().unwrap()
            );
        }
    }
}

mod info {
    use super::*;

    const MPI_PROGRAM: &str = "\
        #include <mpi.h>\n\
        int main(int argc, char **argv) { MPI_Init(&argc, &argv); MPI_Finalize(); return 0; }";

    #[test]
    fn the_machine_and_the_settings() {
        let page = succeed(transpress(&["info"]).env("TRANSPRESS_RATE", "8"));
        assert_eq!(row(&page, "transpress"), env!("CARGO_PKG_VERSION"));
        assert_eq!(row(&page, "codecs"), "zfp, fp16, bf16, lossless");
        assert!(row(&page, "CPU").starts_with(std::env::consts::ARCH));
        assert_ne!(row(&page, "GPU"), "");
        assert_eq!(row(&page, "TRANSPRESS_RATE"), "8");
        assert_eq!(row(&page, "compression"), "on");
    }

    /// What it says of GPUs, with a stand-in for CUDA's driver of this version.
    fn gpus(version: u32, variables: &[(&str, &str)]) -> Vec<String> {
        let page = succeed(
            transpress(&["info"])
                .env("LD_LIBRARY_PATH", common::gpu::driver(version))
                .envs(variables.iter().copied()),
        );
        let lines = page.lines().filter_map(|line| line.strip_prefix("GPU "));
        lines.map(|line| line.trim().to_owned()).collect()
    }

    #[test]
    fn a_machine_with_gpus() {
        let current = common::gpu::CURRENT;
        assert_eq!(
            gpus(current, &[("FAKE_CUDA_DEVICES", "2")]),
            ["0", "1"].map(|number| format!(
                "Fake GPU {number}, 80 GiB, compute capability 9.0, driver of CUDA 12.4; kernels can be used"
            ))
        );
        assert_eq!(
            gpus(current, &[("FAKE_CUDA_CAPABILITY", "6.1")]),
            [
                "Fake GPU 0, 80 GiB, compute capability 6.1, driver of CUDA 12.4; kernels cannot be used: \
              compute capability 6.1 is below 7.0"
            ]
        );
        assert_eq!(
            gpus(current, &[("FAKE_CUDA_DEVICES", "0")]),
            ["none (driver of CUDA 12.4 sees no device)"]
        );
        assert_eq!(
            gpus(current, &[("FAKE_CUDA_FAIL", "cuDeviceGetCount")]),
            ["none (the CUDA driver cannot be used: cuDeviceGetCount: CUDA_ERROR_UNKNOWN (999))"]
        );
        assert_eq!(gpus(6050, &[]), ["none (the CUDA driver is too old)"]);
    }

    #[test]
    fn problems_are_told() {
        let page = succeed(transpress(&["info"]).env("TRANSPRESS_DEVICE", "gpu"));
        assert_eq!(
            row(&page, "problem"),
            "TRANSPRESS_DEVICE=gpu: accepted is auto, cpu or cuda"
        );
        assert!(row(&page, "compression").starts_with("off"));
    }

    #[test]
    fn a_program_of_open_mpi() {
        let page = succeed(&mut transpress(&["info", "ectrans-benchmark-sp"]));
        assert_eq!(row(&page, "file"), "/usr/bin/ectrans-benchmark-sp");
        assert_eq!(row(&page, "MPI"), "Open MPI");
        assert!(row(&page, "version").starts_with("Open MPI v"));
        assert!(row(&page, "library").contains("/libmpi.so."));

        let program = compile(&folder("openmpi"), &["mpicc.openmpi"], MPI_PROGRAM);
        let page = succeed(&mut transpress(&["info", &program]));
        assert_eq!(row(&page, "MPI"), "Open MPI");
    }

    #[test]
    fn a_program_of_mpich() {
        let program = compile(&folder("mpich"), &["mpicc.mpich"], MPI_PROGRAM);
        let page = succeed(&mut transpress(&["info", &program]));
        assert_eq!(row(&page, "MPI"), "MPICH (MPICH family)");
        assert!(row(&page, "version").starts_with("MPICH "));
        assert!(row(&page, "library").contains("/libmpich.so."));
    }

    /// A library that looks like an MPI but dies when it is asked, and the same, lost.
    #[test]
    fn a_broken_mpi() {
        let folder = folder("broken");
        let library = folder.join("libmpi.so.40");
        fs::write(
            folder.join("mpi.c"),
            "#include <stdlib.h>\n\
             int MPI_Get_library_version(char *text, int *n) { abort(); }\n\
             int MPI_Init(int *c, char ***v) { return 0; }",
        )
        .unwrap();
        let status = clean("cc")
            .args(["-shared", "-fPIC", "-Wl,-soname,libmpi.so.40", "-o"])
            .args([&library, &folder.join("mpi.c")])
            .status();
        assert!(status.unwrap().success());
        let search = format!("-Wl,-rpath,{}", folder.display());
        let program = compile(
            &folder,
            &[
                "cc",
                "-Wl,--no-as-needed",
                library.to_str().unwrap(),
                &search,
            ],
            "int main(void) { return 0; }",
        );
        let page = succeed(&mut transpress(&["info", &program]));
        assert_eq!(row(&page, "MPI"), "Open MPI");
        assert_eq!(row(&page, "version"), "it does not say");
        assert_eq!(
            Path::new(&row(&page, "library")),
            library.canonicalize().unwrap()
        );
    }

    #[test]
    fn an_mpi_that_is_not_found() {
        let folder = folder("lost");
        let library = folder.join("libmpi_abi.so.1");
        fs::write(folder.join("mpi.c"), "int MPI_Init;").unwrap();
        let status = clean("cc")
            .args(["-shared", "-Wl,-soname,libmpi_abi.so.1", "-o"])
            .args([&library, &folder.join("mpi.c")])
            .status();
        assert!(status.unwrap().success());
        let program = compile(
            &folder,
            &["cc", "-Wl,--no-as-needed", library.to_str().unwrap()],
            "int main(void) { return 0; }",
        );
        fs::remove_file(library).unwrap();
        let page = succeed(&mut transpress(&["info", &program]));
        assert_eq!(row(&page, "MPI"), "MPI 5 standard ABI");
        assert!(row(&page, "library").starts_with("libmpi_abi.so.1 is not found"));
    }

    #[test]
    fn programs_without_mpi() {
        let page = succeed(&mut transpress(&["info", "sh"]));
        assert_eq!(row(&page, "linked with MPI"), "no");
        assert!(page.contains("read the report"));
    }

    #[test]
    fn scripts() {
        let script = folder("scripts").join("model.py");
        fs::write(&script, "#!/usr/bin/env python3\nimport mpi4py\n").unwrap();
        let page = succeed(&mut transpress(&["info", script.to_str().unwrap()]));
        assert_eq!(row(&page, "script of"), "/usr/bin/env python3");
        assert!(page.contains("read the report"));
    }

    #[test]
    fn programs_that_are_not_there() {
        let output = transpress(&["info", "no-such-program"]).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        assert_eq!(
            stderr(&output),
            "transpress: no-such-program: no such program\n"
        );
    }
}

#[test]
fn help_and_version() {
    let version = succeed(&mut transpress(&["--version"]));
    assert_eq!(
        version,
        format!("transpress {}\n", env!("CARGO_PKG_VERSION"))
    );
    let help = succeed(&mut transpress(&["--help"]));
    for variable in transpress::settings::table::VARIABLES {
        assert!(help.contains(variable.name), "{}", variable.name);
    }
    assert!(help.contains("Examples:\n"));
    assert!(!help.contains("probe"));
    let help = succeed(&mut transpress(&["run", "--help"]));
    assert!(help.contains("--min-bytes"));
}
