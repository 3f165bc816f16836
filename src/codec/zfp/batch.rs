//! A batch of jobs, cut into pieces of blocks and shared out over threads.
//!
//! At fixed rate a block's place in the stream is known, so pieces that start on whole words are
//! independent. With an accuracy only the order of the blocks is: a piece is encoded into words of its
//! own and appended when it is its turn, and a stream is decoded by one thread.

use super::arch::Kind;
use super::bits::BitWriter;
use super::range::{DecodeTask, EncodeTask, Limits};
use super::{DecodeJob, EncodeJob, Encoded, Grid, Mode, Value, stream_words};
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Values in a piece, about: enough to outweigh its hand-over, few enough to share out evenly.
const PIECE_VALUES: usize = 1 << 15;

/// Some blocks of one job.
struct Piece {
    job: usize,
    blocks: Range<usize>,
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

/// Does every piece, on up to `threads` threads, this one among them, and returns what each came to. A
/// thread that cannot be had is done without.
fn run<R: Send>(pieces: &[Piece], threads: usize, work: impl Fn(&Piece) -> R + Sync) -> Vec<R> {
    if threads <= 1 || pieces.len() <= 1 {
        return pieces.iter().map(work).collect();
    }
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::with_capacity(pieces.len()));
    let take = || {
        let mut mine = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(piece) = pieces.get(index) else {
                break;
            };
            mine.push((index, work(piece)));
        }
        done.lock()
            .unwrap_or_else(PoisonError::into_inner)
            .append(&mut mine);
    };
    std::thread::scope(|scope| {
        for _ in 1..threads.min(pieces.len()) {
            let helper = std::thread::Builder::new().name("transpress-zfp".into());
            if helper.spawn_scoped(scope, take).is_err() {
                break;
            }
        }
        take();
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_unstable_by_key(|&(index, _)| index);
    done.into_iter().map(|(_, result)| result).collect()
}

/// Jobs that threads may share.
#[derive(Clone, Copy)]
struct Shared<'a, J>(&'a [J]);

// SAFETY: the jobs are not changed, and whoever works on one keeps to the blocks of its piece.
unsafe impl<J> Send for Shared<'_, J> {}
// SAFETY: as above.
unsafe impl<J> Sync for Shared<'_, J> {}

impl<J> Shared<'_, J> {
    fn job(&self, piece: &Piece) -> &J {
        &self.0[piece.job]
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
    let pieces: Vec<Piece> = (jobs.iter().enumerate())
        .flat_map(|(i, job)| cut(i, &job.grid, job.mode, threads))
        .collect();
    let shared = Shared(jobs);
    // SAFETY: the caller's promise, handed on.
    let coded = run(&pieces, threads, |piece| unsafe {
        encode_piece(arch, shared.job(piece), piece)
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
    let mut words = vec![0; (piece.blocks.len() * longest).div_ceil(64)];
    let mut writer = BitWriter::new(&mut words);
    // SAFETY: the caller's promise, handed on.
    let nonfinite = unsafe { arch.encode(&task, &mut writer) };
    let bits = writer.position();
    Coded {
        nonfinite,
        words: writer.finish(),
        apart: Some((bits, words)),
    }
}

/// A bound on the bits of a block: every bit of every plane, one more a plane, two more a coefficient.
fn longest_block<T: Value>(dims: u8) -> usize {
    let (size, planes) = (1 << (2 * dims), 8 * size_of::<T>());
    T::HEADER_BITS as usize + planes * (size + 1) + 2 * size
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
/// As [`super::decode`].
pub unsafe fn decode<T: Value>(arch: Kind, jobs: &[DecodeJob<T>], threads: usize) -> Vec<bool> {
    let is_short = |job: &DecodeJob<T>| match job.mode {
        Mode::Rate { block_bits } => stream_words(&job.grid, block_bits) > job.words,
        Mode::Accuracy { .. } | Mode::Bound { .. } => false,
    };
    let mut whole: Vec<bool> = jobs.iter().map(|job| !is_short(job)).collect();
    let pieces: Vec<Piece> = (jobs.iter().enumerate())
        .filter(|&(i, _)| whole[i])
        .flat_map(|(i, job)| {
            // Where a block starts in a stream of varying blocks, only the one before it tells.
            let can_cut = matches!(job.mode, Mode::Rate { .. });
            cut(i, &job.grid, job.mode, if can_cut { threads } else { 1 })
        })
        .collect();
    let shared = Shared(jobs);
    let done = run(&pieces, threads, |piece| {
        let job = shared.job(piece);
        let position = match job.mode {
            Mode::Rate { block_bits } => piece.blocks.start * block_bits as usize,
            Mode::Accuracy { .. } | Mode::Bound { .. } => 0,
        };
        let task = DecodeTask {
            // SAFETY: the caller promised that the stream's words are readable.
            words: unsafe { words(job.stream, job.words) },
            position,
            limits: Limits::of(job.mode),
            blocks: piece.blocks.clone(),
            first: job.target,
            grid: job.grid,
        };
        // SAFETY: the caller promised that the grid's values are writable.
        let end = unsafe { arch.decode(&task) };
        end.div_ceil(64) <= job.words
    });
    for (piece, done) in pieces.iter().zip(done) {
        whole[piece.job] &= done;
    }
    whole
}
