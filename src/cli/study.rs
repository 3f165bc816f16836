//! `transpress study`: what compression does to the values of a file, by the library's own codec, layouts
//! and rules. Nothing here knows of MPI.

mod errors;
mod html;
mod input;
mod json;
mod measure;
mod message;
mod netcdf;
mod plot;
mod result;
mod table;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use super::{BAD_INPUT, complain};
use crate::codec::Goal;
use crate::layout::Layout;
use crate::settings::{RATES, Settings, is_tolerance};
use input::{Field, Raw, Source};
use measure::Plan;
use result::Results;

/// Say what compression does to the fields of a file: bytes, errors, layouts, fp16 and bf16 beside
#[derive(clap::Args)]
#[command(after_help = "\
The file is NetCDF, classic or NetCDF-4, or raw values with --shape. docs/study.md says what each column means.
  transpress study forecast.nc --variable T --rate 8,12,16 --html study.html
  transpress study dump.bin --shape 256,128,64 --type f64 --ranks 16")]
pub struct Study {
    /// A NetCDF file, or raw little-endian values (with --shape)
    file: PathBuf,
    /// A variable to look at; may be repeated [default: every floating-point variable of 4096 values or more]
    #[arg(long = "variable", value_name = "NAME")]
    variables: Vec<String>,
    /// Bits per value, with commas between several [default: 8,16 if neither --tolerance nor --codec is given]
    #[arg(long, value_name = "RATES", allow_negative_numbers = true)]
    rate: Option<String>,
    /// Largest absolute error, in the unit of the values, with commas between several
    #[arg(long, value_name = "TOLERANCES", allow_negative_numbers = true)]
    tolerance: Option<String>,
    /// A further codec to compare: lossless
    #[arg(long, value_name = "CODEC")]
    codec: Option<String>,
    /// The file is raw: its extents, fastest first
    #[arg(long, value_name = "NX,NY,...", allow_negative_numbers = true)]
    shape: Option<String>,
    /// The values of a raw file: f32 or f64 [default: f32]
    #[arg(long = "type", value_name = "TYPE")]
    element: Option<String>,
    /// A further layout to compare, like that of TRANSPRESS_LAYOUT; may be repeated
    #[arg(long = "layout", value_name = "LAYOUT")]
    layouts: Vec<String>,
    /// Cut the field as a transpose between so many ranks does, and look at its messages
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    ranks: Option<String>,
    /// How bits are shared out over blocks: auto, even or fitted
    #[arg(long, value_name = "BITS", default_value = "auto")]
    bits: String,
    /// Largest relative error of a message before it goes as it is: above 0 and below 1, or off
    #[arg(
        long,
        value_name = "GUARD",
        default_value = "1e-2",
        allow_negative_numbers = true
    )]
    guard: String,
    /// Write the figures as JSON to a file, or to stdout (-) in place of the table
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write a page with the table and plots to a file
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

/// Rates where nothing else is asked for.
const RATES_IF_NONE: &str = "8,16";
/// Rates of the curves on the page, beside those asked for.
const CURVE: [f64; 8] = [2.0, 4.0, 6.0, 8.0, 12.0, 16.0, 20.0, 24.0];

impl Study {
    pub fn print(self) -> ExitCode {
        match self.run() {
            Ok(()) => ExitCode::SUCCESS,
            Err(line) => {
                // A file's names may hold anything; an error is one line.
                complain(line.replace(|c: char| c.is_control(), " "));
                ExitCode::from(BAD_INPUT)
            }
        }
    }

    fn run(&self) -> Result<(), String> {
        let plan = self.plan()?;
        let raw = self.raw()?;
        let mut source = Source::open(&self.file, raw)?;
        let names = source.select(&self.variables)?;
        let mut results = Results {
            transpress: env!("CARGO_PKG_VERSION"),
            file: self.file.display().to_string(),
            format: source.format(),
            ranks: plan.ranks,
            guard: plan.guard,
            variables: Vec::new(),
        };
        for name in names {
            let field = source.read(&name)?;
            let variable =
                measure::variable(&field, &plan).map_err(|line| self.blame(&field, &line))?;
            results.variables.push(variable);
        }
        self.write(&results)
    }

    fn blame(&self, field: &Field, line: &str) -> String {
        format!("{}: variable {}: {line}", self.file.display(), field.name)
    }

    fn plan(&self) -> Result<Plan, String> {
        let rates = self.rates()?;
        let settings = self.settings()?;
        let layouts = self
            .layouts
            .iter()
            .map(|text| Layout::parse(text).map_err(|reason| format!("--layout {text}: {reason}")));
        let ranks = |text: &String| match text.parse() {
            Ok(ranks) if ranks >= 2 => Ok(ranks),
            _ => Err(format!(
                "--ranks {text}: accepted is a whole number, 2 or more"
            )),
        };
        let mut curve = match self.html {
            Some(_) => [&rates[..], &CURVE].concat(),
            None => Vec::new(),
        };
        curve.sort_by(f64::total_cmp);
        curve.dedup();
        let rates = rates.into_iter().map(Goal::Rate);
        let tolerances = self.tolerances()?.into_iter().map(Goal::Tolerance);
        Ok(Plan {
            goals: rates.chain(tolerances).chain(self.exact()?).collect(),
            curve: curve.into_iter().map(Goal::Rate).collect(),
            layouts: layouts.collect::<Result<_, _>>()?,
            ranks: self.ranks.as_ref().map(ranks).transpose()?,
            bits: settings.bits,
            guard: settings.guard,
            min_bytes: settings.min_bytes,
            threads: std::thread::available_parallelism().map_or(1, usize::from),
        })
    }

    /// The options that are variables of the library, read as those are.
    fn settings(&self) -> Result<Settings, String> {
        let options = [
            ("--guard", "TRANSPRESS_GUARD", &self.guard),
            ("--bits", "TRANSPRESS_BITS", &self.bits),
        ];
        let variables = options.map(|(_, variable, text)| (variable.into(), text.into()));
        let (settings, problems) = Settings::parse(variables);
        let Some(problem) = problems.first() else {
            return Ok(settings);
        };
        let named = options
            .iter()
            .find(|(_, variable, _)| *variable == problem.variable);
        let option = named.map_or(problem.variable.as_str(), |(option, _, _)| option);
        Err(format!("{option} {}: {}", problem.value, problem.accepted))
    }

    fn rates(&self) -> Result<Vec<f64>, String> {
        let text = match &self.rate {
            Some(rate) => rate,
            None if self.tolerance.is_some() || self.codec.is_some() => return Ok(Vec::new()),
            None => RATES_IF_NONE,
        };
        numbers(text, |rate| RATES.contains(&rate)).ok_or_else(|| {
            let (least, most) = (RATES.start(), RATES.end());
            format!(
                "--rate {text}: accepted are {least} to {most} bits per value, with commas between several"
            )
        })
    }

    fn tolerances(&self) -> Result<Vec<f64>, String> {
        let Some(text) = &self.tolerance else {
            return Ok(Vec::new());
        };
        numbers(text, is_tolerance).ok_or_else(|| {
            format!("--tolerance {text}: accepted are numbers above 0, with commas between several")
        })
    }

    fn exact(&self) -> Result<Option<Goal>, String> {
        match self.codec.as_deref() {
            None => Ok(None),
            Some("lossless") => Ok(Some(Goal::Exact)),
            Some(other) => Err(format!(
                "--codec {other}: accepted is lossless; zfp, fp16 and bf16 are always compared"
            )),
        }
    }

    /// How to read the file if it is raw.
    fn raw(&self) -> Result<Option<Raw>, String> {
        match (&self.shape, &self.element) {
            (None, None) => Ok(None),
            (None, Some(_)) => Err("--type: only for raw files, with --shape".into()),
            (Some(_), _) if !self.variables.is_empty() => {
                Err("--variable: a raw file (--shape) has no variables".into())
            }
            (Some(shape), element) => Raw::parse(shape, element.as_deref()).map(Some),
        }
    }

    fn write(&self, results: &Results) -> Result<(), String> {
        if let Some(path) = &self.html {
            write(path, &html::page(results))?;
        }
        let on_stdout = match &self.json {
            Some(path) if path == Path::new("-") => json::text(results)?,
            Some(path) => {
                write(path, &json::text(results)?)?;
                table::text(results)
            }
            None => table::text(results),
        };
        // Whoever pipes this into head wants no complaint.
        let _ = std::io::stdout().write_all(on_stdout.as_bytes());
        Ok(())
    }
}

/// Numbers with commas between them, in order; `None` where one is not good.
fn numbers(text: &str, is_good: impl Fn(f64) -> bool) -> Option<Vec<f64>> {
    let number = |text: &str| text.trim().parse().ok().filter(|&number| is_good(number));
    let mut numbers: Vec<f64> = text.split(',').map(number).collect::<Option<_>>()?;
    numbers.sort_by(f64::total_cmp);
    numbers.dedup();
    Some(numbers)
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    std::fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}
