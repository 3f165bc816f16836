//! The report as text.

use super::{CallStats, Row, calls, ratio};
use std::fmt::Write;
use std::io::Write as _;

/// To stderr; where that is closed, nowhere.
pub fn print(rows: &[Row]) {
    let _ = std::io::stderr().write_all(text(rows).as_bytes());
}

/// A table, one line per communicator and call.
pub fn text(rows: &[Row]) -> String {
    let mut out = String::new();
    let _ = write_table(&mut out, rows);
    out
}

fn write_table(out: &mut String, rows: &[Row]) -> std::fmt::Result {
    writeln!(
        out,
        "transpress: communicators of rank 0, summed over their ranks; seconds of the slowest rank"
    )?;
    writeln!(
        out,
        "{:<28} {:<13} {:>7} {:>10} {:>8} {:>8} {:>10} {:>10} {:>6} {:>8} {:>8} {:>8} {:>9} {:>9}",
        "communicator",
        "call",
        "calls",
        "compressed",
        "raw",
        "escaped",
        "MB before",
        "MB after",
        "ratio",
        "encode s",
        "wire s",
        "decode s",
        "worst err",
        "mean err"
    )?;
    for row in rows {
        let name = format!("#{} {}", row.number, row.name);
        for (call, stats) in calls(&row.stats) {
            write_call(out, &name, call, stats)?;
        }
        let missing = row.size - row.ranks;
        let partly = match missing {
            0 => String::new(),
            _ => format!(" (counts of {} of them)", row.ranks),
        };
        writeln!(out, "  {} ranks{partly}, {}", row.size, row.terms)?;
        let on_gpu = row.stats.total().on_gpu;
        if on_gpu > 0 {
            writeln!(out, "  a GPU coded {on_gpu} messages or segments of them")?;
        }
        for decision in &row.decisions {
            writeln!(out, "  {decision}")?;
        }
    }
    writeln!(
        out,
        "err: relative L2 error of one message in 32, |x - x'| / |x|; MB: 10^6 bytes to other ranks"
    )
}

fn write_call(out: &mut String, name: &str, call: &str, stats: &CallStats) -> std::fmt::Result {
    let megabytes = |bytes: u64| bytes as f64 / 1e6;
    let error = |value: f64| match stats.error.messages {
        0 => "-".into(),
        _ => format!("{value:.2e}"),
    };
    writeln!(
        out,
        "{name:<28} {call:<13} {:>7} {:>10} {:>8} {:>8} {:>10.3} {:>10.3} {:>6.2} {:>8.3} {:>8.3} {:>8.3} {:>9} {:>9}",
        stats.calls,
        stats.compressed,
        stats.raw,
        stats.escaped,
        megabytes(stats.bytes_before),
        megabytes(stats.bytes_after),
        ratio(stats),
        stats.encode,
        stats.wire,
        stats.decode,
        error(stats.error.worst),
        error(stats.error.mean())
    )
}
