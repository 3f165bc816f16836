//! `transpress info`: what this version does, what the machine offers, what the environment asks
//! for, and which MPI a program uses.

use std::ffi::OsString;
use std::fmt;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use super::program::{self, Format, Missing};
use super::{complain, gpu, mpi};
use crate::codec::zfp::Arch;
use crate::settings::Settings;
use crate::settings::table::VARIABLES;

/// Say what is there: version, codecs, CPU, GPU, settings, and the MPI of a program
#[derive(clap::Args)]
#[command(after_help = "\
The program is not started: its dynamic loader lists what it would load, and the MPI found is asked for
its version without being initialised.
  transpress info ./app")]
pub struct Info {
    /// A program whose MPI to look for; a path, or a name on PATH
    program: Option<OsString>,
}

impl Info {
    pub fn print(self) -> ExitCode {
        let mut page = Page::default();
        page.row("transpress", env!("CARGO_PKG_VERSION"));
        page.row("codecs", "zfp, fp16, bf16, lossless");
        page.row("CPU", cpu_features());
        page.row("ZFP kernels", zfp_kernels());
        for line in gpu::describe() {
            page.row("GPU", line);
        }
        settings(&mut page);
        let found = match &self.program {
            Some(name) => find(name).map(|path| describe(&mut page, &path)),
            None => Ok(()),
        };
        // Whoever pipes this into head wants no complaint.
        let _ = std::io::stdout().write_all(page.text.as_bytes());
        match found {
            Ok(()) => ExitCode::SUCCESS,
            Err(line) => {
                complain(line);
                ExitCode::FAILURE
            }
        }
    }
}

/// Lines of a label and a value, one below the other.
#[derive(Default)]
struct Page {
    text: String,
}

impl Page {
    fn heading(&mut self, text: impl fmt::Display) {
        self.text += &format!("\n{text}\n");
    }

    fn row(&mut self, label: &str, value: impl fmt::Display) {
        self.text += &format!("{label:<22}{value}\n");
    }
}

/// The vector extensions that ZFP kernels may use.
fn cpu_features() -> String {
    let mut present = Vec::new();
    macro_rules! look_for {
        ($detected:ident: $($feature:tt)*) => {
            $(if std::arch::$detected!($feature) {
                present.push($feature);
            })*
        };
    }
    #[cfg(target_arch = "x86_64")]
    look_for!(is_x86_feature_detected: "avx2" "bmi2" "avx512f" "avx512bw" "avx512cd" "avx512dq"
        "avx512vl" "avx512vbmi" "avx512vbmi2" "avx512bitalg" "avx512vpopcntdq" "gfni");
    #[cfg(target_arch = "aarch64")]
    look_for!(is_aarch64_feature_detected: "neon" "sve");
    let arch = std::env::consts::ARCH;
    match present.is_empty() {
        true => format!("{arch}, no vector extension of use"),
        false => format!("{arch}: {}", present.join(" ")),
    }
}

/// The ZFP kernels that this machine gets.
fn zfp_kernels() -> String {
    format!("{:?}", Arch::best())
}

/// The variables that are set, and what becomes of them.
fn settings(page: &mut Page) {
    let (settings, problems) = Settings::from_env();
    page.heading("Settings (those not listed are at their defaults)");
    let mut any = false;
    for variable in VARIABLES {
        if let Some(value) = std::env::var_os(variable.name) {
            page.row(variable.name, value.display());
            any = true;
        }
    }
    if !any {
        page.row("none set", "");
    }
    for problem in &problems {
        page.row("problem", problem);
    }
    page.row(
        "compression",
        match (settings.enabled, settings.valid) {
            (true, _) => "on",
            (false, true) => "off, as TRANSPRESS_MODE or TRANSPRESS_CODEC asks",
            (false, false) => "off, because of the problem above",
        },
    );
}

/// A program, or any file whose path is given: a Python script need not be executable.
fn find(name: &OsString) -> Result<PathBuf, String> {
    match program::find(name) {
        Ok(path) | Err(Missing::NotExecutable(path)) => Some(path),
        Err(Missing::NotFound) => Some(PathBuf::from(name)),
    }
    .filter(|path| path.is_file())
    .ok_or_else(|| format!("{}: no such program", name.display()))
}

fn describe(page: &mut Page, path: &Path) {
    page.heading("Program");
    page.row("file", path.display());
    match program::format(path) {
        Err(error) => page.row("problem", error),
        Ok(Format::Dynamic { loader }) => linked_mpi(page, &loader, path),
        Ok(Format::Static) => page.row(
            "MPI",
            "none to be seen: statically linked, so no library can be preloaded under it",
        ),
        Ok(Format::Foreign) => page.row("MPI", "unknown: built for another machine than this"),
        Ok(Format::Script { interpreter }) => {
            page.row("script of", interpreter);
            at_run_time(page);
        }
        Ok(Format::Other) => {
            page.row("kind", "neither a program of this machine nor a #! script");
            at_run_time(page);
        }
    }
}

/// The MPI of a dynamically linked program.
fn linked_mpi(page: &mut Page, loader: &Path, path: &Path) {
    // Libraries may be named relative to the program ($ORIGIN), and that means the real file.
    let path = path.canonicalize().unwrap_or_else(|_| path.into());
    let found = match mpi::linked(loader, &path) {
        Ok(found) => found,
        Err(error) => return page.row("problem", error),
    };
    if found.is_empty() {
        page.row("linked with MPI", "no");
        return at_run_time(page);
    }
    if found.len() > 1 {
        page.row("problem", "linked with more than one MPI library");
    }
    for library in found {
        let version = library.file.as_deref().and_then(mpi::version);
        page.row("MPI", mpi::family(&library.name, version.as_deref()));
        page.row("version", version.as_deref().unwrap_or("it does not say"));
        match &library.file {
            Some(file) => page.row(
                "library",
                file.canonicalize().as_deref().unwrap_or(file).display(),
            ),
            None => page.row(
                "library",
                format_args!("{} is not found (LD_LIBRARY_PATH, modules?)", library.name),
            ),
        }
    }
}

fn at_run_time(page: &mut Page) {
    page.row(
        "MPI",
        "none before it runs; it may load one then, as Python does",
    );
    page.row(
        "",
        "to see: transpress run --report stderr -- PROGRAM, and read the report",
    );
}
