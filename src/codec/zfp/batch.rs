//! A batch of jobs, cut into pieces of blocks and shared out over threads.
//!
//! At fixed rate a block's place in the stream is known, so pieces that start on whole words are
//! independent. With an accuracy only the order of the blocks is: a piece is encoded into words of its
//! own and appended when it is its turn, and a stream is decoded by one thread unless it is known where its parts
//! start.

use super::arch::Kind;
use super::bits::BitWriter;
use super::range::{DecodeTask, EncodeTask, Limits};
use super::segments::{SEGMENTS, Segments, longest_block};
use super::spare;
use super::{DecodeJob, EncodeJob, Encoded, Grid, Mode, Value, stream_words};
use crate::codec::helpers;
use crate::codec::share;
use std::ops::Range;

/// Values in a piece, about: enough to outweigh its hand-over, few enough to share out evenly.
const PIECE_VALUES: usize = share::WORTH_A_THREAD;

/// Some blocks of one job.
struct Piece {
    job: usize,
    blocks: Range<usize>,
}

/// As many of `threads` as are worth it.
fn useful<'a>(threads: usize, grids: impl Iterator<Item = &'a Grid>) -> usize {
    share::useful(
        threads,
        grids.map(|grid| grid.blocks() << (2 * grid.dims)).sum(),
    )
}

/// A job's pieces: one if there is only one thread, else about [`PIECE_VALUES`] values each, starting on
/// whole words at fixed rate.
fn cut(job: usize, grid: &Grid, mode: Mode, threads: usize) -> impl Iterator<Item = Piece> {
    let blocks = grid.blocks();
    let aligned = match mode {
        Mode::Rate { block_bits } => 64 >> block_bits.trailing_zeros().min(6),
        Mode::Accuracy { .. } | Mode::Bound { .. } => 1,
    };
    let size = (PIECE_VALUES >> (2 * grid.dims)).next_multiple_of(aligned);
    let size = if threads > 1 { size } else { blocks.max(1) };
    (0..blocks).step_by(size).map(move |start| Piece {
        job,
        blocks: start..blocks.min(start + size),
    })
}

/// Jobs that threads may share.
#[derive(Clone, Copy)]
struct Shared<'a, J>(&'a [J]);

// SAFETY: the jobs are not changed, and whoever works on one keeps to the blocks of its piece.
unsafe impl<J> Send for Shared<'_, J> {}
// SAFETY: as above.
unsafe impl<J> Sync for Shared<'_, J> {}

impl<J> Shared<'_, J> {
    fn job(&self, index: usize) -> &J {
        &self.0[index]
    }
}

/// Some words of a stream, which may be no words at nowhere.
///
/// # Safety
/// The words must be ours to write.
unsafe fn words_mut<'a>(stream: *mut u64, words: Range<usize>) -> &'a mut [u64] {
    if words.is_empty() {
        return &mut [];
    }
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts_mut(stream.add(words.start), words.len()) }
}

/// The words of a stream, which may be no words at nowhere.
///
/// # Safety
/// The words must be readable.
unsafe fn words<'a>(stream: *const u64, words: usize) -> &'a [u64] {
    if words == 0 {
        return &[];
    }
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts(stream, words) }
}

/// # Safety
/// As [`super::encode`].
pub unsafe fn encode<T: Value>(arch: Kind, jobs: &[EncodeJob<T>], threads: usize) -> Vec<Encoded> {
    let threads = useful(threads, jobs.iter().map(|job| &job.grid));
    let pieces: Vec<Piece> = (jobs.iter().enumerate())
        .flat_map(|(i, job)| cut(i, &job.grid, job.mode, threads))
        .collect();
    let shared = Shared(jobs);
    // SAFETY: the caller's promise, handed on.
    let coded = helpers::each(&pieces, threads, |piece| unsafe {
        encode_piece(arch, shared.job(piece.job), piece)
    });
    let mut coded = pieces.iter().zip(coded).peekable();
    jobs.iter()
        .enumerate()
        .map(|(i, job)| {
            let pieces = std::iter::from_fn(|| coded.next_if(|(piece, _)| piece.job == i));
            // SAFETY: the caller promised that the stream's words are ours to write; nobody else does any more.
            let words = unsafe { words_mut(job.stream, 0..job.words) };
            join(pieces.map(|(_, coded)| coded), words)
        })
        .collect()
}

/// What encoding a piece came to.
struct Coded {
    nonfinite: usize,
    /// Words written, if they all fit.
    words: Option<usize>,
    /// Bits that must still be appended to the stream, and their words.
    apart: Option<(usize, Vec<u64>)>,
}

/// Encodes a piece to its place in the stream if that is known, else into words of its own.
///
/// # Safety
/// As [`super::encode`].
unsafe fn encode_piece<T: Value>(arch: Kind, job: &EncodeJob<T>, piece: &Piece) -> Coded {
    let task = EncodeTask {
        first: job.source,
        grid: job.grid,
        blocks: piece.blocks.clone(),
        limits: Limits::of(job.mode),
    };
    let in_place = match job.mode {
        Mode::Rate { block_bits } => {
            let word = |block: usize| (block * block_bits as usize).div_ceil(64).min(job.words);
            Some(word(piece.blocks.start)..word(piece.blocks.end))
        }
        _ if piece.blocks.len() == job.grid.blocks() => Some(0..job.words),
        _ => None,
    };
    if let Some(place) = in_place {
        // SAFETY: the caller promised that the stream's words are ours to write. Pieces start on whole words, so
        // these are this piece's alone.
        let words =
            unsafe { std::slice::from_raw_parts_mut(job.stream.add(place.start), place.len()) };
        let mut writer = BitWriter::new(words);
        // SAFETY: the caller's promise, handed on.
        let nonfinite = unsafe { arch.encode(&task, &mut writer) };
        return Coded {
            nonfinite,
            words: writer.finish(),
            apart: None,
        };
    }
    let longest = longest_block::<T>(job.grid.dims);
    let most = (piece.blocks.len() * longest).div_ceil(64).min(job.words);
    // Few pieces need more than twice their share of the stream.
    let share = job.words * piece.blocks.len() / job.grid.blocks();
    let few = (2 * share + longest).min(most);
    // SAFETY: the caller's promise, handed on.
    let coded = unsafe { encode_apart(arch, &task, few) };
    match coded.words {
        // SAFETY: as above.
        None if few < most => unsafe { encode_apart(arch, &task, most) },
        _ => coded,
    }
}

/// Encodes blocks into so many words of their own.
///
/// # Safety
/// As [`super::encode`].
unsafe fn encode_apart<T: Value>(arch: Kind, task: &EncodeTask<T>, words: usize) -> Coded {
    let mut words = spare::take(words);
    let mut writer = BitWriter::new(&mut words);
    // SAFETY: the caller's promise, handed on.
    let nonfinite = unsafe { arch.encode(task, &mut writer) };
    let bits = writer.position();
    let written = writer.finish();
    Coded {
        nonfinite,
        words: written,
        apart: written.map(|_| (bits, words)),
    }
}

/// Puts the pieces of one job together.
fn join(pieces: impl Iterator<Item = Coded>, stream: &mut [u64]) -> Encoded {
    let mut encoded = Encoded::default();
    let mut writer = BitWriter::new(stream);
    for coded in pieces {
        encoded.nonfinite_blocks += coded.nonfinite;
        encoded.words += coded.words.unwrap_or(0);
        encoded.overflow |= coded.words.is_none();
        if let Some((bits, words)) = coded.apart {
            writer.append(&words, bits);
            spare::give(words);
        }
    }
    if writer.position() > 0 || writer.is_full() {
        let written = writer.finish();
        encoded.words = written.unwrap_or(0);
        encoded.overflow |= written.is_none();
    }
    encoded
}

/// # Safety
/// As [`super::encode_in_segments`].
pub unsafe fn encode_in_segments<T: Value>(
    arch: Kind,
    job: &EncodeJob<T>,
    threads: usize,
) -> (Encoded, Segments) {
    let has_place = matches!(job.mode, Mode::Rate { .. });
    if !has_place && useful(threads, std::iter::once(&job.grid)) > 1 {
        // SAFETY: the caller's promise, handed on.
        unsafe { encode_segments_apart(arch, job, threads) }
    } else {
        // SAFETY: as above.
        unsafe { encode_segments_in_turn(arch, job) }
    }
}

/// # Safety
/// As [`super::encode_in_segments`].
unsafe fn encode_segments_in_turn<T: Value>(arch: Kind, job: &EncodeJob<T>) -> (Encoded, Segments) {
    // SAFETY: the caller promised that the stream's words are ours to write.
    let mut writer = BitWriter::new(unsafe { words_mut(job.stream, 0..job.words) });
    let mut encoded = Encoded::default();
    let mut segments = Segments([0; SEGMENTS]);
    for (index, bits) in segments.0.iter_mut().enumerate() {
        let start = writer.position();
        let task = EncodeTask {
            first: job.source,
            grid: job.grid,
            blocks: Segments::blocks(&job.grid, index),
            limits: Limits::of(job.mode),
        };
        // SAFETY: the caller's promise, handed on.
        encoded.nonfinite_blocks += unsafe { arch.encode(&task, &mut writer) };
        *bits = (writer.position() - start) as u32;
        if writer.is_full() {
            break;
        }
    }
    let words = writer.finish();
    encoded.words = words.unwrap_or(0);
    encoded.overflow = words.is_none();
    (encoded, segments)
}

/// # Safety
/// As [`super::encode_in_segments`].
unsafe fn encode_segments_apart<T: Value>(
    arch: Kind,
    job: &EncodeJob<T>,
    threads: usize,
) -> (Encoded, Segments) {
    let pieces: [Piece; SEGMENTS] = std::array::from_fn(|index| Piece {
        job: 0,
        blocks: Segments::blocks(&job.grid, index),
    });
    let jobs = [*job];
    let shared = Shared(&jobs);
    // SAFETY: the caller's promise, handed on.
    let coded = helpers::each(&pieces, threads, |piece| unsafe {
        encode_piece(arch, shared.job(0), piece)
    });
    let bits = |coded: &Coded| coded.apart.as_ref().map_or(0, |&(bits, _)| bits as u32);
    let mut segments = Segments([0; SEGMENTS]);
    for (segment, coded) in segments.0.iter_mut().zip(&coded) {
        *segment = bits(coded);
    }
    // SAFETY: the caller promised that the stream's words are ours to write; nobody else does any more.
    let words = unsafe { words_mut(job.stream, 0..job.words) };
    (join(coded.into_iter(), words), segments)
}

/// Some blocks of one job, one after the other in its stream, and the bit that they end at, if that is known.
struct Run {
    blocks: Range<usize>,
    position: usize,
    end: Option<usize>,
}

/// What a thread decodes at a time: runs of blocks of one job, which may go side by side.
struct Share {
    job: usize,
    runs: Vec<Run>,
}

/// Cuts a job into what threads take.
fn shares_of<T: Value>(index: usize, job: &DecodeJob<T>, threads: usize) -> Vec<Share> {
    let share = |runs| Share { job: index, runs };
    match (job.mode, job.segments) {
        (Mode::Rate { block_bits }, _) => cut(index, &job.grid, job.mode, threads)
            .map(|piece| {
                share(vec![Run {
                    position: piece.blocks.start * block_bits as usize,
                    blocks: piece.blocks,
                    end: None,
                }])
            })
            .collect(),
        (_, Some(segments)) => {
            let starts = segments.starts();
            let mut runs: Vec<Run> = (0..SEGMENTS)
                .map(|index| Run {
                    blocks: Segments::blocks(&job.grid, index),
                    position: starts[index],
                    end: starts.get(index + 1).copied(),
                })
                .collect();
            let mut shares = Vec::new();
            let each = SEGMENTS.div_ceil(threads.max(1)).next_multiple_of(2);
            while !runs.is_empty() {
                let rest = runs.split_off(each.min(runs.len()));
                shares.push(share(std::mem::replace(&mut runs, rest)));
            }
            shares
        }
        // Where a block starts in such a stream, only the one before it tells.
        (_, None) => vec![share(vec![Run {
            blocks: 0..job.grid.blocks(),
            position: 0,
            end: None,
        }])],
    }
}

/// # Safety
/// As [`super::decode`].
pub unsafe fn decode<T: Value>(arch: Kind, jobs: &[DecodeJob<T>], threads: usize) -> Vec<bool> {
    let threads = useful(threads, jobs.iter().map(|job| &job.grid));
    let is_short = |job: &DecodeJob<T>| match job.mode {
        Mode::Rate { block_bits } => stream_words(&job.grid, block_bits) > job.words,
        Mode::Accuracy { .. } | Mode::Bound { .. } => false,
    };
    let mut whole: Vec<bool> = jobs.iter().map(|job| !is_short(job)).collect();
    let shares: Vec<Share> = (jobs.iter().enumerate())
        .filter(|&(i, _)| whole[i])
        .flat_map(|(i, job)| shares_of(i, job, threads))
        .collect();
    let shared = Shared(jobs);
    let done = helpers::each(&shares, threads, |share| {
        let job = shared.job(share.job);
        let tasks: Vec<DecodeTask<T>> = (share.runs.iter())
            .map(|run| DecodeTask {
                // SAFETY: the caller promised that the stream's words are readable.
                words: unsafe { words(job.stream, job.words) },
                position: run.position,
                limits: Limits::of(job.mode),
                blocks: run.blocks.clone(),
                first: job.target,
                grid: job.grid,
            })
            .collect();
        // SAFETY: the caller promised that the grid's values are writable.
        let ends = unsafe { arch.decode_together(&tasks) };
        let is_right = |(end, run): (usize, &Run)| {
            end.div_ceil(64) <= job.words && run.end.is_none_or(|expected| end == expected)
        };
        ends.into_iter().zip(&share.runs).all(is_right)
    });
    for (share, done) in shares.iter().zip(done) {
        whole[share.job] &= done;
    }
    whole
}
