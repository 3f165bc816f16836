//! Ranks on nodes of their own, joined by real links: tests/network/bed. Skipped where this machine allows no
//! network namespaces.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::bed::Bed;
use common::fields::Field;
use common::{BOTH, Mpi, Output, Run, launch};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

const BYTES: u64 = 1 << 19;
const CALLS: u64 = 2;

/// The field whose planes are sent, for `field_exchange`.
fn field_file() -> (PathBuf, [usize; 3]) {
    let field = Field::ocean([96, 64, 12]);
    let name = format!(
        "field-{}-{:?}",
        std::process::id(),
        std::thread::current().id()
    );
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let bytes: Vec<u8> = field.values.iter().flat_map(|v| v.to_ne_bytes()).collect();
    fs::write(&path, bytes).unwrap();
    (path, field.extents)
}

/// All-to-alls over the communicator named "coded", and what its line of JSON says.
fn exchange(mpi: Mpi, ranks: usize, bed: &Bed, env: &[(&str, &str)]) -> Exchanged {
    let (path, extents) = field_file();
    let mut run = Run::new(mpi, "field_exchange")
        .on(bed)
        .ranks(ranks)
        .env("TRANSPRESS_REPORT", "off")
        .arg(path.display().to_string());
    for extent in extents {
        run = run.arg(extent.to_string());
    }
    let run = run
        .arg(BYTES.to_string())
        .arg("0")
        .arg(CALLS.to_string())
        .arg("coded");
    let output = env
        .iter()
        .fold(run, |run, (name, value)| run.env(name, value))
        .output()
        .complains_of_nothing();
    fs::remove_file(path).unwrap();
    // Also when a message that was not compressed came changed.
    assert_eq!(output.code, Some(0), "{output}");
    let line = output.stdout.lines().find(|line| line.starts_with('{'));
    let said = line.and_then(|line| serde_json::from_str(line).ok());
    Exchanged {
        said: said.unwrap_or_else(|| panic!("no JSON: {output}")),
        output,
    }
}

struct Exchanged {
    said: serde_json::Value,
    output: Output,
}

impl Exchanged {
    #[track_caller]
    fn number(&self, name: &str) -> f64 {
        let number = self.said[name].as_f64();
        number.unwrap_or_else(|| panic!("no {name}: {}", self.output))
    }
}

const AT_16: [(&str, &str); 2] = [("TRANSPRESS_COMMS", "coded"), ("TRANSPRESS_RATE", "16")];

/// The values arrive, the library counts half the bytes, and half the bytes cross the links.
#[test]
fn half_the_bytes_cross_the_links() {
    const RANKS: usize = 4;
    let Some(bed) = Bed::new(RANKS, 1) else {
        return;
    };
    for mpi in BOTH {
        let plain = exchange(mpi, RANKS, &bed, &[]);
        assert_eq!(plain.number("largest_error"), 0.0, "{}", plain.output);
        let messages = ((RANKS - 1) as u64 * CALLS) as f64;
        let by_rank = messages * BYTES as f64;
        let before = bed.sent();
        for &bytes in &before {
            let frames = bytes / by_rank;
            assert!((1.0..1.1).contains(&frames), "{before:?} for {by_rank}");
        }

        let coded = exchange(mpi, RANKS, &bed, &AT_16);
        let error = coded.number("largest_error");
        assert!(error > 0.0 && error < 1e-2, "{}", coded.output);
        let all = RANKS as f64 * messages;
        assert_eq!(coded.number("compressed"), all, "{}", coded.output);
        assert_eq!(coded.number("bytes_before"), RANKS as f64 * by_rank);
        let ratio = coded.number("bytes_before") / coded.number("bytes_after");
        assert!((1.95..2.0).contains(&ratio), "{}", coded.output);
        for (before, after) in before.iter().zip(bed.sent()) {
            let shrunk = before / after;
            assert!(
                (0.93 * ratio..1.02 * ratio).contains(&shrunk),
                "{before} to {after} bytes: {}",
                coded.output
            );
        }
    }
}

/// Two ranks on each of two nodes: only what crosses a link is compressed.
#[test]
fn within_a_node_nothing_is_compressed() {
    const RANKS: usize = 4;
    let Some(bed) = Bed::new(2, 2) else { return };
    for mpi in BOTH {
        let coded = exchange(mpi, RANKS, &bed, &AT_16);
        let ranks = RANKS as f64;
        let calls = CALLS as f64;
        assert_eq!(
            coded.number("compressed"),
            2.0 * ranks * calls,
            "{}",
            coded.output
        );
        assert_eq!(coded.number("raw"), ranks * calls, "{}", coded.output);
        let error = coded.number("largest_error");
        assert!(error > 0.0 && error < 1e-2, "{}", coded.output);
        // Two ranks of a node, to two others, at half the bytes.
        let bytes = 4.0 * calls * BYTES as f64 / 2.0;
        for sent in bed.sent() {
            assert!((1.0..1.1).contains(&(sent / bytes)), "{sent} of {bytes}");
        }
    }
}

/// What a bed could leave on the machine.
#[derive(Debug, PartialEq)]
struct Traces {
    links: String,
    mounts: String,
    hosts: String,
    named: Vec<String>,
}

impl Traces {
    fn now() -> Self {
        let links = Command::new("ip")
            .args(["-brief", "link"])
            .output()
            .unwrap();
        let folder = |path: &str| fs::read_dir(path).into_iter().flatten().flatten();
        let named = ["/run/netns", "/etc/netns", "/dev/shm"]
            .into_iter()
            .flat_map(folder);
        Self {
            links: String::from_utf8(links.stdout).unwrap(),
            mounts: fs::read_to_string("/proc/self/mounts").unwrap(),
            hosts: fs::read_to_string("/etc/hosts").unwrap_or_default(),
            // Other tests' programs may come and go in /dev/shm.
            named: named
                .map(|entry| entry.path().display().to_string())
                .filter(|path| {
                    path.contains("node") || path.contains("netns") || path.contains("hosts")
                })
                .collect(),
        }
    }
}

/// Processes that have `word` among their arguments.
fn processes_with(word: &str) -> usize {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    processes
        .filter_map(|process| fs::read(process.path().join("cmdline")).ok())
        .filter(|line| {
            line.split(|&byte| byte == 0)
                .any(|one| one == word.as_bytes())
        })
        .count()
}

#[track_caller]
fn soon(otherwise: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !is_so() {
        assert!(Instant::now() < deadline, "{otherwise}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A word of this test's own, and what starts a process on a node that has it among its arguments.
fn straggler(number: i32) -> (String, String) {
    let seconds = format!("{}.{number}", 100_000 + std::process::id());
    let start = format!("setsid $OMPI_MCA_plm_rsh_agent node1 sleep {seconds} &");
    (seconds, start)
}

#[test]
fn nothing_stays_behind() {
    let Some(bed) = Bed::new(3, 1) else { return };
    let before = Traces::now();
    let (word, start) = straggler(0);
    let script = format!("{start} sleep 0.5; hostname; exit 3");
    let output = launch(bed.command(&["sh", "-c", &script]), Duration::from_secs(60));
    assert_eq!(output.code, Some(3), "{output}");
    assert_eq!(output.stdout, "switch\n", "{output}");
    assert_eq!(processes_with(&word), 0, "{output}");
    bed.sent();
    assert_eq!(Traces::now(), before);
}

/// However it is ended, and with another bed beside it.
#[test]
fn nothing_stays_behind_when_it_is_killed() {
    let Some(bed) = Bed::new(3, 1) else { return };
    let before = Traces::now();
    for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGKILL] {
        let words = [10, 20].map(|bed| straggler(bed * signal));
        let mut beds = words.clone().map(|(_, start)| {
            let script = format!("{start} sleep 1000");
            bed.command(&["sh", "-c", &script]).spawn().unwrap()
        });
        for (word, _) in &words {
            soon("no process on the node", || processes_with(word) > 0);
        }
        for child in &mut beds {
            // SAFETY: kill takes no pointers, and the process is one that this test started.
            unsafe { libc::kill(child.id() as i32, signal) };
            soon("the bed lives on", || child.try_wait().unwrap().is_some());
        }
        for (word, _) in &words {
            soon("a process of the bed lives on", || {
                processes_with(word) == 0
            });
        }
    }
    assert_eq!(Traces::now(), before);
}
