//! The command line.

use crate::Result;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

#[derive(Clone, Copy)]
pub enum Command {
    Load,
    Identity,
    Throughput,
}

pub struct Options {
    pub command: Command,
    /// Messages, and boxes; fewer where each takes more than `time`.
    pub cases: usize,
    pub time: Duration,
    pub seed: u64,
    /// MiB of values.
    pub mib: usize,
    /// Runs that a median is taken of.
    pub runs: usize,
    pub cuzfp: Option<PathBuf>,
}

impl Options {
    pub fn parse(arguments: impl Iterator<Item = String>) -> Result<Self> {
        let mut options = Self {
            command: Command::Identity,
            cases: 2000,
            time: Duration::from_secs(18),
            seed: 1,
            mib: 4096,
            runs: 7,
            cuzfp: None,
        };
        // cargo bench adds one of its own.
        let mut arguments = arguments.filter(|argument| argument != "--bench");
        while let Some(argument) = arguments.next() {
            let mut value = || {
                let value = arguments.next();
                value.ok_or_else(|| format!("{argument} needs a value"))
            };
            match argument.as_str() {
                "load" => options.command = Command::Load,
                "identity" => options.command = Command::Identity,
                "throughput" => options.command = Command::Throughput,
                "--cases" => options.cases = number(&value()?)?,
                "--seconds" => options.time = Duration::from_secs(number(&value()?)?),
                "--seed" => options.seed = number(&value()?)?,
                "--mib" => options.mib = number(&value()?)?,
                "--runs" => options.runs = number(&value()?)?,
                "--cuzfp" => options.cuzfp = Some(value()?.into()),
                other => return Err(format!("{other}: no such command or option")),
            }
        }
        Ok(options)
    }
}

fn number<T: FromStr>(text: &str) -> Result<T> {
    text.parse().map_err(|_| format!("{text}: no number"))
}
