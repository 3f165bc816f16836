//! What a GPU makes of ZFP: whether its bits are the CPU's, and how fast it is. `tests/gpu/check.sh` runs this.
//!
//!     cargo bench --bench gpu -- load        how long the driver takes to compile the kernels
//!                                identity    random messages through the codec, and random boxes through the kernels
//!                                throughput  GB/s of kernels and calls, beside the card's copies and cuZFP
//!
//! Options: `--cases N`, `--seconds N`, `--seed N` (identity); `--mib N`, `--runs N`, `--cuzfp LIBRARY` (throughput).
//! Each result is a line of three columns with tabs between them: what, `ok` or what else, figures.

#[path = "../../tests/gpu/boxes.rs"]
mod boxes;
mod buffer;
mod case;
mod clock;
mod cuzfp;
mod driver;
mod fields;
#[path = "../../tests/gpu/guarded.rs"]
mod guarded;
mod identity;
mod kernels;
mod messages;
mod options;
#[path = "../../tests/gpu/random.rs"]
mod random;
mod rates;
mod strided;
mod throughput;
#[path = "../../tests/zfp_judge/mod.rs"]
mod zfp_judge;

use options::{Command, Options};
use std::process::ExitCode;
use std::time::Instant;
use tracing::level_filters::LevelFilter;
use transpress::codec::cuda::{self, Device};

/// What went wrong, for people.
type Result<T> = std::result::Result<T, String>;

fn main() -> ExitCode {
    // What the codec does without a GPU after all, it says there.
    transpress::log::install(LevelFilter::WARN);
    let done = Options::parse(std::env::args().skip(1)).and_then(|options| run(&options));
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("gpu: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Whether all was as it should be.
fn run(options: &Options) -> Result<bool> {
    let device = device()?;
    let started = Instant::now();
    if !device.load(cuda::kernels::ptx(), true) {
        return Err("the kernels cannot be loaded".into());
    }
    match options.command {
        Command::Load => Ok(row(
            "load the kernels",
            true,
            format_args!("{:.0} ms", started.elapsed().as_secs_f64() * 1e3),
        )),
        Command::Identity => {
            let codec = identity::run(device, options)?;
            Ok(strided::run(device, options)? && codec)
        }
        Command::Throughput => throughput::run(device, options),
    }
}

fn device() -> Result<&'static Device> {
    cuda::for_host_buffers(0)
        .map_err(|error| error.to_string())?
        .ok_or_else(|| "no CUDA driver, or no device".into())
}

/// Prints a result; returns whether it is a good one.
fn row(what: &str, is_good: bool, figures: impl std::fmt::Display) -> bool {
    let result = if is_good { "ok" } else { "FAILED" };
    println!("{what}\t{result}\t{figures}");
    is_good
}
