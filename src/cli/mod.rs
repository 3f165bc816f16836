//! The `transpress` command: `run` puts the library under a program, `info` says what would happen,
//! `study` says what it would do to the values of a file.

mod gpu;
mod info;
mod mpi;
mod options;
mod probe;
mod program;
mod run;
mod study;

use std::fmt::Write as _;
use std::io::Write as _;
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::settings::table::VARIABLES;

/// Compresses the all-to-alls of an unmodified MPI program
#[derive(Parser)]
#[command(version, after_help = EXAMPLES)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Run(run::Run),
    Info(info::Info),
    Study(Box<study::Study>),
    #[command(subcommand, hide = true)]
    Probe(probe::Probe),
}

const EXAMPLES: &str = "\
Examples:
  Every all-to-all at 16 bits per value:
    mpirun -n 4 transpress run --comms all -- ./app
  8 bits per value along the true axes (real/imaginary, 100 fields, points):
    mpirun -n 4 transpress run --comms all --rate 8 --layout '2c,100f,*' -- ./app
  Two communicators by name, one of them at another rate, the report as JSON:
    mpirun -n 4 transpress run --comms rows,columns --rate '16;rows=8' --report out.json -- ./app
  Which MPI a program uses, and what this machine offers:
    transpress info ./app
  What compression would do to the fields of a file:
    transpress study forecast.nc --rate 8,16 --html study.html";

/// Exit status for arguments and settings that cannot be followed; clap's own is the same.
const BAD_INPUT: u8 = 2;

pub fn main() -> ExitCode {
    // clap prints and exits by itself where the arguments ask for help or make no sense.
    let long_help = format!("{EXAMPLES}\n\n{}", variables());
    let matches = Arguments::command()
        .after_long_help(long_help)
        .get_matches();
    let arguments = Arguments::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    match arguments.command {
        Command::Run(run) => run.exec(),
        Command::Info(info) => info.print(),
        Command::Study(study) => study.print(),
        Command::Probe(probe) => probe.answer(),
    }
}

/// The table of variables as text.
fn variables() -> String {
    let mut text = String::from("Variables (docs/environment.md has more):\n");
    for variable in VARIABLES {
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "  {:<22}{}\n{:24}accepted: {}; default: {}",
            variable.name,
            variable.meaning,
            "",
            variable.accepted,
            variable.default_text()
        );
    }
    text
}

/// One line on stderr. Unlike eprintln! it does not panic when stderr is gone.
fn complain(line: impl std::fmt::Display) {
    let _ = writeln!(std::io::stderr(), "transpress: {line}");
}
