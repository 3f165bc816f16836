//! A batch of jobs, shared out over threads.

use super::arch::Kind;
use super::bits::BitWriter;
use super::range::{DecodeTask, EncodeTask, Limits};
use super::{DecodeJob, EncodeJob, Encoded, Mode, Value, stream_words};

/// # Safety
/// As [`super::encode`].
pub unsafe fn encode<T: Value>(arch: Kind, jobs: &[EncodeJob<T>], threads: usize) -> Vec<Encoded> {
    let _ = threads;
    jobs.iter()
        .map(|job| {
            // SAFETY: the caller promised that the stream's words are ours to write.
            let words = unsafe { std::slice::from_raw_parts_mut(job.stream, job.words) };
            let mut writer = BitWriter::new(words);
            let task = EncodeTask {
                first: job.source,
                grid: job.grid,
                blocks: 0..job.grid.blocks(),
                limits: Limits::of(job.mode),
            };
            // SAFETY: the caller promised that the grid's values are readable.
            let nonfinite_blocks = unsafe { arch.encode(&task, &mut writer) };
            let written = writer.finish();
            Encoded {
                words: written.unwrap_or(0),
                nonfinite_blocks,
                overflow: written.is_none(),
            }
        })
        .collect()
}

/// # Safety
/// As [`super::decode`].
pub unsafe fn decode<T: Value>(arch: Kind, jobs: &[DecodeJob<T>], threads: usize) -> Vec<bool> {
    let _ = threads;
    jobs.iter()
        .map(|job| {
            if let Mode::Rate { block_bits } = job.mode
                && stream_words(&job.grid, block_bits) > job.words
            {
                return false;
            }
            // SAFETY: the caller promised that the stream's words are readable.
            let words = unsafe { std::slice::from_raw_parts(job.stream, job.words) };
            let task = DecodeTask {
                words,
                position: 0,
                limits: Limits::of(job.mode),
                blocks: 0..job.grid.blocks(),
                first: job.target,
                grid: job.grid,
            };
            // SAFETY: the caller promised that the grid's values are writable.
            let end = unsafe { arch.decode(&task) };
            end.div_ceil(64) <= job.words
        })
        .collect()
}
