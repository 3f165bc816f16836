//! `transpress run`: the variables and the preload for one program, which then takes our place.
//!
//! It is meant to stand behind the launcher (`mpirun -n 4 transpress run -- ./app`), so that the
//! launcher, its daemons and its shells stay as they are.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use super::options::Options;
use super::program::{self, Format, Missing};
use super::{BAD_INPUT, complain};
use crate::settings::Settings;

const LIBRARY: &str = "libtranspress.so";
const LIBRARY_VARIABLE: &str = "TRANSPRESS_LIBRARY";
const PRELOAD: &str = "LD_PRELOAD";

/// The exit statuses that shells give.
const NOT_EXECUTABLE: u8 = 126;
const NOT_FOUND: u8 = 127;

/// Run a program with the library under it
#[derive(clap::Args)]
#[command(
    override_usage = "transpress run [OPTIONS] -- PROGRAM [ARGUMENTS]...",
    after_help = "\
Each option sets its TRANSPRESS_ variable for the program alone; variables that are set already stay
otherwise. Put the command behind the launcher:
  mpirun -n 4 transpress run --comms all --rate 16 -- ./app arguments..."
)]
pub struct Run {
    #[command(flatten)]
    options: Options,
    /// The program and its arguments
    #[arg(trailing_var_arg = true, required = true)]
    program: Vec<OsString>,
}

/// A line for the user, and the status to exit with.
type Failure = (String, u8);

impl Run {
    /// Comes back only when the program could not be started.
    pub fn exec(self) -> ExitCode {
        let (line, status) = match self.prepare() {
            Ok(mut command) => {
                let error = command.exec();
                not_started(command.get_program(), &error)
            }
            Err(failure) => failure,
        };
        complain(line);
        ExitCode::from(status)
    }

    fn prepare(&self) -> Result<Command, Failure> {
        check(&self.options.set)?;
        let library = find_library().map_err(|line| (line, BAD_INPUT))?;
        let (name, arguments) = self.program.split_first().ok_or_else(|| {
            // clap has seen to it that there is one.
            ("no program given".into(), BAD_INPUT)
        })?;
        let program = program::find(name).map_err(|missing| not_found(name, &missing))?;
        if let Some(reason) = why_without_effect(&program) {
            complain(format_args!(
                "{}: {reason}, so its messages stay as they are",
                program.display()
            ));
        }

        let mut command = Command::new(&program);
        command
            .arg0(name)
            .args(arguments)
            .envs(self.options.set.iter().cloned())
            .env(PRELOAD, preload(&library, std::env::var_os(PRELOAD)));
        Ok(command)
    }
}

/// Reads the settings that the program would see, so that a slip ends here and not on every rank.
fn check(set: &[(OsString, OsString)]) -> Result<(), Failure> {
    // The first of two counts: the options go before the environment.
    let vars = set.iter().cloned().chain(std::env::vars_os());
    let (_, problems) = Settings::parse(vars);
    if problems.is_empty() {
        return Ok(());
    }
    let lines: Vec<_> = problems.iter().map(ToString::to_string).collect();
    Err((lines.join("\ntranspress: "), BAD_INPUT))
}

/// The library: where the variable says, beside the command (a build folder), or in the lib folder
/// beside the command's bin folder (an installation).
fn find_library() -> Result<PathBuf, String> {
    let library = match std::env::var_os(LIBRARY_VARIABLE).filter(|path| !path.is_empty()) {
        Some(path) => named_library(Path::new(&path))?,
        None => neighbouring_library()?,
    };
    // ld.so splits the list at both, and knows no way to quote them.
    if library
        .as_os_str()
        .as_bytes()
        .iter()
        .any(|b| b" :".contains(b))
    {
        return Err(format!(
            "{}: a library cannot be preloaded from a path with a space or a colon; move it, or name \
             a link to it with {LIBRARY_VARIABLE}",
            library.display()
        ));
    }
    Ok(library)
}

/// Kept as named, but absolute: the program may change directory, and a link may be there to avoid
/// the characters that a preload cannot have.
fn named_library(path: &Path) -> Result<PathBuf, String> {
    if !path.is_file() {
        return Err(format!(
            "{LIBRARY_VARIABLE}={}: no such file; accepted is the path of a {LIBRARY}",
            path.display()
        ));
    }
    std::path::absolute(path).map_err(|error| format!("{}: {error}", path.display()))
}

fn neighbouring_library() -> Result<PathBuf, String> {
    let command = std::env::current_exe()
        .and_then(|path| path.canonicalize())
        .map_err(|error| format!("cannot tell where this command lies: {error}"))?;
    let folder = command.parent().unwrap_or(Path::new("/"));
    [".", "../lib", "../lib64"]
        .iter()
        .find_map(|place| folder.join(place).join(LIBRARY).canonicalize().ok())
        .ok_or_else(|| {
            format!(
                "{LIBRARY} is neither in {} nor in ../lib or ../lib64 beside it; name it with \
                 {LIBRARY_VARIABLE}",
                folder.display()
            )
        })
}

/// `library` before what is preloaded already.
fn preload(library: &Path, present: Option<OsString>) -> OsString {
    let present = present.unwrap_or_default();
    let library = library.as_os_str();
    let mut entries = present.as_bytes().split(|b| b" :".contains(b));
    if entries.any(|entry| entry == library.as_bytes()) {
        return present;
    }
    let mut list = library.to_owned();
    if !present.is_empty() {
        list.push(":");
        list.push(present);
    }
    list
}

/// Why the loader would not preload anything into the program, where that can be told beforehand.
fn why_without_effect(program: &Path) -> Option<&'static str> {
    if program::gains_rights(program) {
        return Some("setuid or setgid programs take no preloaded library");
    }
    match program::format(program) {
        Ok(Format::Static) => Some("statically linked programs take no preloaded library"),
        Ok(Format::Foreign) => Some("it is built for another machine than the library"),
        _ => None,
    }
}

fn not_found(name: &OsStr, missing: &Missing) -> Failure {
    match missing {
        Missing::NotFound => (format!("{}: no such program", name.display()), NOT_FOUND),
        Missing::NotExecutable(path) if path.is_dir() => (
            format!("{}: is a directory, not a program", path.display()),
            NOT_EXECUTABLE,
        ),
        Missing::NotExecutable(path) => (
            format!("{}: may not be executed", path.display()),
            NOT_EXECUTABLE,
        ),
    }
}

fn not_started(program: &OsStr, error: &std::io::Error) -> Failure {
    let program = program.display();
    let line = match error.kind() {
        // The file itself is there.
        std::io::ErrorKind::NotFound => {
            format!("{program}: its interpreter or dynamic loader does not exist")
        }
        _ => format!("{program}: {error}"),
    };
    (line, NOT_EXECUTABLE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_preload_keeps_what_is_there() {
        let list = |present: Option<&str>| preload(Path::new("/t.so"), present.map(Into::into));
        assert_eq!(list(None), "/t.so");
        assert_eq!(list(Some("")), "/t.so");
        assert_eq!(list(Some("/a.so /b.so")), "/t.so:/a.so /b.so");
        assert_eq!(list(Some("/a.so:/t.so")), "/a.so:/t.so");
        assert_eq!(list(Some("/a/t.so")), "/t.so:/a/t.so");
    }
}
