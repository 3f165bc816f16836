//! Environment variables → one validated [`Settings`].
//!
//! [`table`] lists the variables, [`read`] turns the text of each into a value, and this file holds
//! what comes out. Nothing here knows of MPI, and nothing here prints: the caller says the
//! [`Problem`]s, from one rank.

mod per_comm;
mod problem;
mod read;
pub mod table;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::PathBuf;

use tracing::level_filters::LevelFilter;

pub use per_comm::{PerComm, Selector};
pub use problem::Problem;
pub use read::{RATES, is_tolerance};
use table::{Reader, VARIABLES};

use crate::codec::{Element, Item};
use crate::layout::{BitsPolicy, Layout};

/// What the user asked for. A variable with a problem is at its default here.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Compress at all: every variable was read, and neither mode nor codec is off.
    pub enabled: bool,
    /// Every variable was read.
    pub valid: bool,
    pub comms: Comms,
    pub codec: Codec,
    /// Bits per value on the wire.
    pub rate: PerComm<f64>,
    /// Largest absolute error, instead of a rate.
    pub tolerance: Option<f64>,
    /// What messages of MPI_BYTE hold; `None` leaves them alone.
    pub bytes: PerComm<Option<Item>>,
    /// Layouts for every communicator; empty where they are to be found in the data.
    pub layouts: Vec<Layout>,
    /// How the bits of a message are shared out over its blocks; `None` to find out.
    pub bits: Option<BitsPolicy>,
    /// Largest relative L2 error of a message before it goes raw.
    pub guard: Option<f64>,
    /// Smaller messages go raw.
    pub min_bytes: usize,
    pub on_node: OnNode,
    pub mode: Mode,
    pub engine: Engine,
    pub device: Device,
    pub gpu_aware: GpuAware,
    /// Codec threads per rank.
    pub threads: usize,
    pub report: Report,
    pub log: LevelFilter,
}

/// Which communicators are compressed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Comms {
    /// Those the program registers.
    Registered,
    All,
    /// Those listed, and those the program registers.
    Listed(Vec<Selector>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Codec {
    Zfp,
    Fp16,
    Bf16,
    Lossless,
    Off,
}

impl Codec {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Zfp => "zfp",
            Self::Fp16 => "fp16",
            Self::Bf16 => "bf16",
            Self::Lossless => "lossless",
            Self::Off => "off",
        }
    }
}

/// What happens between ranks of one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnNode {
    /// Raw when the communicator spans several nodes, compressed when it lies within one.
    Auto,
    Raw,
    Compress,
}

impl OnNode {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Raw => "raw",
            Self::Compress => "compress",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    On,
    /// Where it makes calls faster.
    Auto,
    Off,
}

impl Mode {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::On => "on",
            Self::Auto => "auto",
            Self::Off => "off",
        }
    }
}

/// How compressed messages travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// Pairwise where some message is long, collective where none is.
    Auto,
    /// In one Alltoallv of the MPI.
    Collective,
    /// Point to point, while others are being coded.
    Pairwise,
}

impl Engine {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Collective => "collective",
            Self::Pairwise => "pairwise",
        }
    }
}

/// Where the codec runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Device {
    /// Where the buffer lives.
    Auto,
    Cpu,
    /// On a GPU, also for buffers of the host.
    Cuda,
}

/// Whether the MPI takes buffers that live on a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GpuAware {
    /// As it says itself.
    Auto,
    Yes,
    No,
}

/// Where the report goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Report {
    Off,
    Stderr,
    /// As text.
    File(PathBuf),
    Json(PathBuf),
}

/// How [`Settings::agreement`] names whether a rank could read all its variables.
pub const VALIDITY: &str = "validity of the TRANSPRESS_ variables";

impl Settings {
    /// The settings of this process.
    pub fn from_env() -> (Self, Vec<Problem>) {
        Self::parse(std::env::vars_os())
    }

    /// Reads the `TRANSPRESS_` variables among `vars`; where one is given twice the first counts, as
    /// it does for getenv. Problems come in the order of the table, unknown variables last.
    pub fn parse(vars: impl IntoIterator<Item = (OsString, OsString)>) -> (Self, Vec<Problem>) {
        let mut given = HashMap::new();
        for (name, value) in vars {
            if table::is_ours(&name) {
                given.entry(name).or_insert(value);
            }
        }

        let mut settings = Self::blank();
        let mut problems = Vec::new();
        for variable in VARIABLES {
            let value = given.remove(std::ffi::OsStr::new(variable.name));
            let Reader::Library(read) = variable.reader else {
                continue;
            };
            // The default goes through the same reader, so the table is the only place that has it.
            // No default of the table is refused (a test), so a field is never left blank.
            let _ = read(&mut settings, variable.default);
            if let Some(value) = value
                && let Err(problem) = apply(&mut settings, variable, read, &value)
            {
                problems.push(problem);
            }
        }

        let mut unknown: Vec<_> = given.into_iter().collect();
        unknown.sort();
        problems.extend(
            unknown
                .iter()
                .map(|(name, value)| Problem::unknown(name, value)),
        );

        settings.valid = problems.is_empty();
        settings.enabled =
            settings.valid && settings.mode != Mode::Off && settings.codec != Codec::Off;
        (settings, problems)
    }

    /// What all ranks of a communicator must agree on before it is registered: pairs of a variable
    /// and its value in one spelling. TRANSPRESS_COMMS must agree too, but it decides whether the
    /// comparison takes place at all, so it cannot be compared here.
    pub fn agreement(&self, name: &str, number: usize) -> Vec<(&'static str, String)> {
        let bytes = self.bytes.get(name, number).map_or("off", Item::as_str);
        let tolerance = self
            .tolerance
            .map_or("unset".into(), |tolerance| tolerance.to_string());
        vec![
            ("TRANSPRESS_CODEC", self.codec.as_str().into()),
            ("TRANSPRESS_RATE", self.rate.get(name, number).to_string()),
            ("TRANSPRESS_TOLERANCE", tolerance),
            ("TRANSPRESS_BYTES", bytes.into()),
            ("TRANSPRESS_MIN_BYTES", self.min_bytes.to_string()),
            ("TRANSPRESS_ON_NODE", self.on_node.as_str().into()),
            ("TRANSPRESS_MODE", self.mode.as_str().into()),
            ("TRANSPRESS_ENGINE", self.engine.as_str().into()),
            (
                VALIDITY,
                if self.valid { "valid" } else { "invalid" }.into(),
            ),
        ]
    }

    /// What the readers of the table fill in.
    fn blank() -> Self {
        Self {
            enabled: false,
            valid: false,
            comms: Comms::Registered,
            codec: Codec::Off,
            rate: PerComm::all(0.0),
            tolerance: None,
            bytes: PerComm::all(None),
            layouts: Vec::new(),
            bits: None,
            guard: None,
            min_bytes: 0,
            on_node: OnNode::Auto,
            mode: Mode::Off,
            engine: Engine::Auto,
            device: Device::Auto,
            gpu_aware: GpuAware::Auto,
            threads: 0,
            report: Report::Off,
            log: LevelFilter::OFF,
        }
    }
}

/// Sets what `variable` stands for to the value that the user gave.
fn apply(
    settings: &mut Settings,
    variable: &table::Variable,
    read: read::Read,
    value: &std::ffi::OsStr,
) -> Result<(), Problem> {
    let Some(text) = value.to_str() else {
        return Err(Problem::not_utf8(variable, value));
    };
    let text = text.trim();
    if text.is_empty() {
        return Ok(());
    }
    read(settings, text).map_err(|refusal| Problem::refused(variable, text, refusal))
}
