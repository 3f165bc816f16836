//! The exact error of a sample of blocks.

use super::arch::{BATCH, Kind};
use super::bits::{BitWriter, bytes_of, peek_word};
use super::blocks::{self, Place, Walk};
use super::range::{DecodeTask, EncodeTask, Limits};
use super::segments::longest_block;
use super::shape::{Cube, Line, Shape, Square};
use super::{EncodeJob, Grid, Mode, SampledError, Value, stream_words};

/// Values of a block that are neighbours along x, and what they were decoded to.
pub struct Row<'a, T> {
    /// Where the first one is, as a distance from the first value of the job.
    offset: isize,
    stride: isize,
    pub values: &'a [T],
    pub decoded: &'a [T],
}

impl<T: Value> Row<'_, T> {
    /// Each value: its distance from the first value of the job, itself, and what it was decoded to.
    pub fn values(&self) -> impl Iterator<Item = (isize, T, T)> {
        let pairs = self.values.iter().zip(self.decoded);
        let offset = |x: usize| self.offset + x as isize * self.stride;
        pairs
            .enumerate()
            .map(move |(x, (&value, &decoded))| (offset(x), value, decoded))
    }
}

/// # Safety
/// As [`super::sample_error`].
pub unsafe fn sample_error<T: Value>(job: &EncodeJob<T>, every: usize) -> SampledError {
    let mut error = SampledError::default();
    let visit = |row: Row<T>| {
        for (_, value, decoded) in row.values() {
            let (value, decoded) = (value.to_f64(), decoded.to_f64());
            let off = decoded - value;
            error.max_abs = error.max_abs.max(off.abs());
            error.sum_sq_err += off * off;
            error.sum_sq += value * value;
            error.values += 1;
        }
    };
    // SAFETY: the caller's promise, handed on.
    error.blocks = unsafe { sample(job, every, visit) };
    error
}

/// Calls `visit` with each row of every `every`-th block. Returns the number of blocks.
///
/// # Safety
/// As [`super::sample_error`].
pub unsafe fn sample<T: Value>(
    job: &EncodeJob<T>,
    every: usize,
    visit: impl FnMut(Row<T>),
) -> usize {
    // SAFETY: the caller's promise, handed on.
    unsafe {
        match job.grid.dims {
            1 => sample_shape::<T, Line>(job, every, visit),
            2 => sample_shape::<T, Square>(job, every, visit),
            _ => sample_shape::<T, Cube>(job, every, visit),
        }
    }
}

/// Blocks that are coded together: a machine codes many side by side in little more time than one.
const TOGETHER: usize = 64;

/// # Safety
/// As [`super::sample_error`].
unsafe fn sample_shape<T: Value, S: Shape>(
    job: &EncodeJob<T>,
    every: usize,
    mut visit: impl FnMut(Row<T>),
) -> usize {
    if let Mode::Rate { block_bits } = job.mode
        && stream_words(&job.grid, block_bits) > job.words
    {
        return 0;
    }
    let mut chosen = (0..job.grid.blocks()).step_by(every.max(1)).peekable();
    let mut sample = Sample::default();
    let mut blocks = 0;
    while chosen.peek().is_some() {
        // SAFETY: the caller's promise, handed on.
        unsafe {
            sample.gather::<S>(job, chosen.by_ref().take(TOGETHER));
            sample.decode::<S>(job);
        }
        sample.visit::<S>(&job.grid.strides, &mut visit);
        blocks += sample.places.len();
    }
    blocks
}

/// Some blocks of a job, whole and one after the other: a grid of their own, one block wide.
#[derive(Default)]
struct Sample<T> {
    /// Which blocks they are, and where.
    places: Vec<(usize, Place)>,
    values: Vec<T>,
    decoded: Vec<T>,
    stream: Vec<u64>,
}

impl<T: Value> Sample<T> {
    /// Takes those of the blocks that are finite.
    ///
    /// # Safety
    /// The values of the job's grid must be readable, and the blocks be some of it.
    unsafe fn gather<S: Shape>(&mut self, job: &EncodeJob<T>, blocks: impl Iterator<Item = usize>) {
        self.places.clear();
        self.values.clear();
        for block in blocks {
            let place = Walk::new::<S>(&job.grid, block).step::<S>();
            let mut values = [T::default(); 64];
            // SAFETY: `place` is a block of the grid, which the caller promised is readable.
            unsafe {
                let first = job.source.offset(place.offset);
                blocks::gather::<T, S>(first, &job.grid.strides, place.extents, &mut values);
            }
            let values = &values[..S::SIZE];
            // What padding repeats is no less finite than what it repeats. (Compilers find vectors in this.)
            let is_finite = |value: &T| value.to_f64().is_finite();
            if values
                .iter()
                .fold(true, |all, value| all & is_finite(value))
            {
                self.places.push((block, place));
                self.values.extend_from_slice(values);
            }
        }
    }

    fn grid<S: Shape>(&self) -> Grid {
        let mut extents = blocks::whole::<S>().map(usize::from);
        extents[S::DIMS - 1] *= self.places.len();
        Grid {
            dims: S::DIMS as u8,
            extents,
            strides: [1, 4, 16],
        }
    }

    /// Decodes them: at fixed rate from their bits in the job's stream, else from their code made again, which does
    /// not depend on what is around a block.
    ///
    /// # Safety
    /// At fixed rate the job's stream must be readable and have as many words as its blocks need.
    unsafe fn decode<S: Shape>(&mut self, job: &EncodeJob<T>) {
        let (arch, limits, grid) = (Kind::best(), Limits::of(job.mode), self.grid::<S>());
        let longest = limits
            .block_bits
            .unwrap_or(longest_block::<T>(S::DIMS as u8));
        self.stream
            .resize((self.places.len() * longest).div_ceil(64), 0);
        self.decoded.resize(self.values.len(), T::default());
        let mut writer = BitWriter::new(&mut self.stream);
        if let Some(bits) = limits.block_bits {
            // SAFETY: the caller promised that the stream's words are readable.
            let words = unsafe { std::slice::from_raw_parts(job.stream.cast_const(), job.words) };
            for (block, _) in &self.places {
                copy_bits(words, block * bits, bits, &mut writer);
            }
        } else {
            let task = EncodeTask {
                first: self.values.as_ptr(),
                grid,
                blocks: 0..self.places.len(),
                limits,
            };
            // SAFETY: the grid is the whole of `values`.
            unsafe { arch.encode(&task, &mut writer) };
        }
        writer.finish();
        let task = DecodeTask {
            words: &self.stream,
            position: 0,
            limits,
            blocks: 0..self.places.len(),
            first: self.decoded.as_mut_ptr(),
            grid,
        };
        // SAFETY: the grid is the whole of `decoded`.
        unsafe { arch.decode(&task) };
    }

    /// Shows each row, as far as it lies inside the job's grid.
    fn visit<S: Shape>(&self, strides: &[isize; 3], visit: &mut impl FnMut(Row<T>)) {
        let blocks = self
            .values
            .chunks(S::SIZE)
            .zip(self.decoded.chunks(S::SIZE));
        for ((_, place), (values, decoded)) in self.places.iter().zip(blocks) {
            let [nx, ny, nz] = place.extents.map(usize::from);
            for z in 0..nz {
                for y in 0..ny {
                    let row = 16 * z + 4 * y..16 * z + 4 * y + nx;
                    visit(Row {
                        offset: place.offset + blocks::index(0, y, z, strides),
                        stride: strides[0],
                        values: &values[row.clone()],
                        decoded: &decoded[row],
                    });
                }
            }
        }
    }
}

/// As [`super::estimate_bits`].
///
/// # Safety
/// As [`super::estimate_bits`].
pub unsafe fn estimate_bits<T: Value>(job: &EncodeJob<T>, every: usize) -> usize {
    let blocks = job.grid.blocks();
    let mut words = vec![0; (BATCH * longest_block::<T>(job.grid.dims)).div_ceil(64)];
    let (mut bits, mut counted) = (0, 0);
    for start in (0..blocks).step_by(BATCH * every.max(1)) {
        let task = EncodeTask {
            first: job.source,
            grid: job.grid,
            blocks: start..blocks.min(start + BATCH),
            limits: Limits::of(job.mode),
        };
        let mut writer = BitWriter::new(&mut words);
        // SAFETY: the caller's promise, handed on.
        unsafe { Kind::best().encode(&task, &mut writer) };
        bits += writer.position();
        counted += task.blocks.len();
    }
    (bits as f64 * blocks as f64 / counted.max(1) as f64) as usize
}

/// Appends `bits` bits from bit `position` of `words` on.
fn copy_bits(words: &[u64], position: usize, bits: usize, writer: &mut BitWriter) {
    if position.is_multiple_of(64) {
        return writer.append(&words[position / 64..], bits);
    }
    for done in (0..bits).step_by(64) {
        let word = peek_word(bytes_of(words), position + done);
        writer.append(&[word], (bits - done).min(64));
    }
}
