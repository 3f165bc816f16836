//! Medians of several runs.

use crate::Result;
use std::fmt;
use std::time::Instant;

/// Seconds of some runs, after one that warms up.
pub fn median(runs: usize, mut run: impl FnMut() -> Result<f64>) -> Result<f64> {
    run()?;
    let mut seconds = (0..runs.max(1))
        .map(|_| run())
        .collect::<Result<Vec<_>>>()?;
    seconds.sort_by(f64::total_cmp);
    Ok(seconds[seconds.len() / 2])
}

/// Seconds by the host's clock.
pub fn by_the_host(run: impl FnOnce() -> Result<()>) -> Result<f64> {
    let started = Instant::now();
    run()?;
    Ok(started.elapsed().as_secs_f64())
}

/// Bytes per second.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
pub struct Rate(pub f64);

impl Rate {
    pub fn of(bytes: usize, seconds: f64) -> Self {
        Self(bytes as f64 / seconds)
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let gigabytes = self.0 * 1e-9;
        let digits = if gigabytes < 10.0 { 2 } else { 0 };
        write!(f, "{gigabytes:.digits$} GB/s")
    }
}
