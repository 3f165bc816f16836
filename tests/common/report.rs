//! The report in JSON.

use super::SCRATCH;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Where a run is to write its report; the file goes with this.
pub struct ReportFile(PathBuf);

#[derive(Clone, Debug)]
pub struct Row {
    pub number: u64,
    pub name: String,
    /// Ranks whose counts are in it.
    pub ranks: u64,
    pub calls: Vec<Call>,
}

#[derive(Clone, Debug)]
pub struct Call {
    pub name: String,
    pub compressed: u64,
    pub escaped: u64,
    pub before: u64,
    pub after: u64,
}

pub fn report_file(name: &str) -> ReportFile {
    static REPORTS: AtomicUsize = AtomicUsize::new(0);
    let number = REPORTS.fetch_add(1, Ordering::Relaxed);
    let file = format!("report-{name}-{}-{number}.json", std::process::id());
    ReportFile(Path::new(SCRATCH).join(file))
}

impl ReportFile {
    pub fn path(&self) -> String {
        self.0.display().to_string()
    }

    /// What a run has written.
    #[track_caller]
    pub fn communicators(&self) -> Vec<Row> {
        let text = fs::read_to_string(&self.0).expect("the report");
        let report: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        let number = |value: &serde_json::Value, name: &str| {
            value[name]
                .as_u64()
                .unwrap_or_else(|| panic!("{name}: {text}"))
        };
        let word = |value: &serde_json::Value, name: &str| {
            value[name]
                .as_str()
                .unwrap_or_else(|| panic!("{name}: {text}"))
                .to_string()
        };
        let list = |value: &serde_json::Value, name: &str| {
            value[name]
                .as_array()
                .unwrap_or_else(|| panic!("{name}: {text}"))
                .clone()
        };
        let call = |call: &serde_json::Value| Call {
            name: word(call, "call"),
            compressed: number(call, "messages_compressed"),
            escaped: number(call, "messages_escaped"),
            before: number(call, "bytes_before"),
            after: number(call, "bytes_after"),
        };
        let row = |row: &serde_json::Value| Row {
            number: number(row, "number"),
            name: word(row, "name"),
            ranks: number(row, "ranks_counted"),
            calls: list(row, "calls").iter().map(call).collect(),
        };
        list(&report, "communicators").iter().map(row).collect()
    }
}

impl Drop for ReportFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}
