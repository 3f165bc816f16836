//! A batch of jobs, shared out over threads.

use super::arch::Kind;
use super::bits::BitWriter;
use super::range::Limits;
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
            let blocks = 0..job.grid.blocks();
            let limits = Limits::of(job.mode);
            // SAFETY: the caller promised that the grid's values are readable.
            let nonfinite_blocks =
                unsafe { arch.encode(job.source, &job.grid, blocks, limits, &mut writer) };
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
            let blocks = 0..job.grid.blocks();
            let limits = Limits::of(job.mode);
            // SAFETY: the caller promised that the grid's values are writable.
            let end = unsafe { arch.decode(words, 0, limits, blocks, job.target, &job.grid) };
            end.div_ceil(64) <= job.words
        })
        .collect()
}
