//! What was done, counted per communicator and call, and written when MPI is finalised.

mod gather;
mod table;

use crate::codec::ErrorSample;
use crate::exchange::{Collective, Side};
use crate::mpi::Mpi;
use crate::registry::{self, Registration};
use crate::settings;
use serde::Serialize;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// Counts of one kind of call. Bytes and messages are those to other ranks; times are seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CallStats {
    pub calls: u64,
    pub compressed: u64,
    pub raw: u64,
    pub escaped: u64,
    /// Messages, or segments of them, that a GPU coded.
    pub on_gpu: u64,
    /// As the program gave them.
    pub bytes_before: u64,
    /// As they went over the wire.
    pub bytes_after: u64,
    pub encode: f64,
    pub wire: f64,
    pub decode: f64,
    pub error: ErrorSample,
}

/// What became of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It was not to be compressed.
    Raw,
    Compressed,
    /// It was to be, but could not.
    Escaped,
}

impl CallStats {
    /// A call that goes to MPI as it is.
    pub fn count_raw(&mut self, rank: usize, side: &Side) {
        for peer in (0..side.ranks()).filter(|&peer| peer != rank) {
            self.count(Fate::Raw, side.bytes(peer), side.bytes(peer));
        }
    }

    /// A message to another rank, of so many bytes before and on the wire.
    pub fn count(&mut self, fate: Fate, before: usize, after: usize) {
        match fate {
            Fate::Raw => self.raw += u64::from(before > 0),
            Fate::Compressed => self.compressed += 1,
            Fate::Escaped => self.escaped += 1,
        }
        self.bytes_before += before as u64;
        self.bytes_after += after as u64;
    }

    fn merge(&mut self, other: &Self) {
        // Ranks make the same calls.
        self.calls = self.calls.max(other.calls);
        self.compressed += other.compressed;
        self.raw += other.raw;
        self.escaped += other.escaped;
        self.on_gpu += other.on_gpu;
        self.bytes_before += other.bytes_before;
        self.bytes_after += other.bytes_after;
        // The slowest rank is what the program waited for.
        self.encode = self.encode.max(other.encode);
        self.wire = self.wire.max(other.wire);
        self.decode = self.decode.max(other.decode);
        self.error.merge(&other.error);
    }
}

/// What one rank did on one communicator.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Stats {
    pub alltoall: CallStats,
    pub alltoallv: CallStats,
}

impl Stats {
    pub fn add(&mut self, collective: Collective, call: &CallStats) {
        let sum = match collective {
            Collective::Alltoall => &mut self.alltoall,
            Collective::Alltoallv => &mut self.alltoallv,
        };
        let calls = sum.calls + call.calls;
        let seconds = (
            sum.encode + call.encode,
            sum.wire + call.wire,
            sum.decode + call.decode,
        );
        sum.merge(call);
        sum.calls = calls;
        (sum.encode, sum.wire, sum.decode) = seconds;
    }

    /// Both kinds of call together.
    pub fn total(&self) -> CallStats {
        let mut total = Self {
            alltoall: self.alltoall,
            ..Self::default()
        };
        total.add(Collective::Alltoall, &self.alltoallv);
        total.alltoall
    }

    fn merge(&mut self, other: &Self) {
        self.alltoall.merge(&other.alltoall);
        self.alltoallv.merge(&other.alltoallv);
    }
}

/// One communicator's part of the report.
#[derive(Clone, Debug)]
pub struct Row {
    pub number: usize,
    pub name: String,
    pub size: usize,
    /// Ranks whose counts are in the sums.
    pub ranks: usize,
    pub terms: String,
    /// What carries its calls, and why, where that was measured.
    pub decisions: Vec<String>,
    pub stats: Stats,
}

impl Row {
    fn of(registration: &Registration) -> Self {
        let terms = registration.terms();
        Self {
            number: registration.number,
            name: registration.name.clone(),
            size: registration.size,
            ranks: 1,
            terms: terms.to_string(),
            decisions: registration.working().tuners.reasons(),
            stats: *registration.stats(),
        }
    }
}

/// Rows of communicators that were freed before the end. Those of one number and name are one row, since
/// programs that make a communicator per time step would fill the report otherwise.
static FREED: Mutex<Vec<Row>> = Mutex::new(Vec::new());

/// Keeps the counts of a communicator that is being freed.
pub fn keep(registration: &Registration) {
    let row = Row::of(registration);
    let mut freed = FREED.lock().unwrap_or_else(PoisonError::into_inner);
    let same = |other: &&mut Row| {
        other.name == row.name && other.size == row.size && other.terms == row.terms
    };
    match freed.iter_mut().find(same) {
        Some(known) => {
            known.decisions = row.decisions;
            known.stats.add(Collective::Alltoall, &row.stats.alltoall);
            known.stats.add(Collective::Alltoallv, &row.stats.alltoallv);
        }
        None => freed.push(row),
    }
}

/// Rank 0 of `MPI_COMM_WORLD` writes the report on the communicators it belongs to; the other ranks send
/// it their counts.
pub fn write(mpi: &Mpi, destination: &settings::Report) {
    let live = registry::live();
    let is_reporter = mpi.rank(mpi.abi.comm_world) == Ok(0);
    let mut rows: Vec<Row> = live
        .iter()
        .map(|registration| {
            let (stats, ranks) = gather::sum_over_ranks(mpi, registration, is_reporter);
            Row {
                stats,
                ranks,
                ..Row::of(registration)
            }
        })
        .collect();
    rows.append(&mut FREED.lock().unwrap_or_else(PoisonError::into_inner));
    rows.sort_by_key(|row| row.number);
    if !is_reporter || rows.is_empty() {
        return;
    }
    match destination {
        settings::Report::Off => {}
        settings::Report::Stderr => table::print(&rows),
        settings::Report::File(path) => save(path, &table::text(&rows)),
        settings::Report::Json(path) => save(path, &json(&rows)),
    }
}

fn save(path: &Path, text: &str) {
    if let Err(error) = std::fs::write(path, text) {
        tracing::error!(
            "TRANSPRESS_REPORT={}: the report was not written: {error}",
            path.display()
        );
    }
}

#[derive(Serialize)]
struct JsonReport<'a> {
    version: &'a str,
    communicators: Vec<JsonRow<'a>>,
}

#[derive(Serialize)]
struct JsonRow<'a> {
    number: usize,
    name: &'a str,
    size: usize,
    ranks_counted: usize,
    settings: &'a str,
    decisions: &'a [String],
    calls: Vec<JsonCall>,
}

#[derive(Serialize)]
struct JsonCall {
    call: &'static str,
    count: u64,
    messages_compressed: u64,
    messages_raw: u64,
    messages_escaped: u64,
    coded_on_gpu: u64,
    bytes_before: u64,
    bytes_after: u64,
    ratio: f64,
    seconds_encode: f64,
    seconds_wire: f64,
    seconds_decode: f64,
    messages_sampled: u64,
    worst_error: f64,
    mean_error: f64,
}

impl JsonCall {
    fn new(call: &'static str, stats: &CallStats) -> Self {
        Self {
            call,
            count: stats.calls,
            messages_compressed: stats.compressed,
            messages_raw: stats.raw,
            messages_escaped: stats.escaped,
            coded_on_gpu: stats.on_gpu,
            bytes_before: stats.bytes_before,
            bytes_after: stats.bytes_after,
            ratio: ratio(stats),
            seconds_encode: stats.encode,
            seconds_wire: stats.wire,
            seconds_decode: stats.decode,
            messages_sampled: stats.error.messages,
            worst_error: stats.error.worst,
            mean_error: stats.error.mean(),
        }
    }
}

fn ratio(stats: &CallStats) -> f64 {
    if stats.bytes_after == 0 {
        1.0
    } else {
        stats.bytes_before as f64 / stats.bytes_after as f64
    }
}

/// The kinds of call that were made.
fn calls(stats: &Stats) -> impl Iterator<Item = (&'static str, &CallStats)> {
    [
        (Collective::Alltoall, &stats.alltoall),
        (Collective::Alltoallv, &stats.alltoallv),
    ]
    .into_iter()
    .filter(|(_, stats)| stats.calls > 0)
    .map(|(collective, stats)| (collective.name(), stats))
}

fn json(rows: &[Row]) -> String {
    let communicators = rows
        .iter()
        .map(|row| JsonRow {
            number: row.number,
            name: &row.name,
            size: row.size,
            ranks_counted: row.ranks,
            settings: &row.terms,
            decisions: &row.decisions,
            calls: calls(&row.stats)
                .map(|(name, stats)| JsonCall::new(name, stats))
                .collect(),
        })
        .collect();
    let report = JsonReport {
        version: env!("CARGO_PKG_VERSION"),
        communicators,
    };
    let mut text = serde_json::to_string_pretty(&report).unwrap_or_default();
    text.push('\n');
    text
}
