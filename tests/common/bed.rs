//! Several nodes, made of this machine by tests/network/bed.

use super::{ROOT, SCRATCH};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What the command says where it may not create namespaces.
const NOT_ALLOWED: i32 = 77;

#[derive(Clone)]
pub struct Bed {
    nodes: usize,
    /// Ranks that a node has room for.
    slots: usize,
    counters: PathBuf,
}

impl Bed {
    /// None, and one line on stderr, where there can be no bed.
    pub fn new(nodes: usize, slots: usize) -> Option<Self> {
        static BEDS: AtomicUsize = AtomicUsize::new(0);
        let tried = Command::new(program()).status().expect("the bed starts");
        if tried.code() == Some(NOT_ALLOWED) {
            eprintln!("skipped: no network namespaces here");
            return None;
        }
        assert!(tried.success(), "{tried}");
        let number = BEDS.fetch_add(1, Ordering::Relaxed);
        let counters = format!("counters-{}-{number}.json", std::process::id());
        Some(Self {
            nodes,
            slots,
            counters: Path::new(SCRATCH).join(counters),
        })
    }

    /// Runs `words` on the switch. Links are fast: nothing here is measured by time.
    pub fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(program());
        command
            .arg(format!("--nodes={}", self.nodes))
            .arg(format!("--slots={}", self.slots))
            .arg("--rate=1gbit")
            .arg("--counters")
            .arg(&self.counters)
            .arg("--")
            .args(words);
        command
    }

    /// Bytes that each node sent over its link in the last run.
    #[track_caller]
    pub fn sent(&self) -> Vec<f64> {
        let text = fs::read_to_string(&self.counters).expect("the counters");
        fs::remove_file(&self.counters).expect("the counters");
        let counters: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        let sent = (0..self.nodes).map(|node| counters[format!("node{node}")]["sent"].as_f64());
        sent.map(|bytes| bytes.unwrap_or_else(|| panic!("no bytes: {text}")))
            .collect()
    }
}

fn program() -> PathBuf {
    Path::new(ROOT).join("tests/network/bed")
}
