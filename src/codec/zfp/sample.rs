//! The exact error of a sample of blocks.

use super::arch::Kind;
use super::bits::BitWriter;
use super::blocks::{self, Walk};
use super::encoder::BLOCK_WORDS;
use super::range::{DecodeTask, EncodeTask, Limits};
use super::shape::{Cube, Line, Shape, Square};
use super::{EncodeJob, Grid, Mode, SampledError, Value, stream_words};

/// # Safety
/// As [`super::sample_error`].
pub unsafe fn sample_error<T: Value>(job: &EncodeJob<T>, every: usize) -> SampledError {
    let mut error = SampledError::default();
    let visit = |_: isize, value: f64, decoded: f64| {
        let off = decoded - value;
        error.max_abs = error.max_abs.max(off.abs());
        error.sum_sq_err += off * off;
        error.sum_sq += value * value;
        error.values += 1;
    };
    // SAFETY: the caller's promise, handed on.
    error.blocks = unsafe { sample(job, every, visit) };
    error
}

/// Calls `visit` with the place (as a distance from the job's first value), the value and the decoded value
/// of every value of every `every`-th block. Returns the number of blocks.
///
/// # Safety
/// As [`super::sample_error`].
pub unsafe fn sample<T: Value>(
    job: &EncodeJob<T>,
    every: usize,
    visit: impl FnMut(isize, f64, f64),
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

/// # Safety
/// As [`super::sample_error`].
unsafe fn sample_shape<T: Value, S: Shape>(
    job: &EncodeJob<T>,
    every: usize,
    mut visit: impl FnMut(isize, f64, f64),
) -> usize {
    if let Mode::Rate { block_bits } = job.mode
        && stream_words(&job.grid, block_bits) > job.words
    {
        return 0;
    }
    let mut blocks = 0;
    for block in (0..job.grid.blocks()).step_by(every.max(1)) {
        let place = Walk::new::<S>(&job.grid, block).step::<S>();
        let mut values = [T::default(); 64];
        // SAFETY: `place` is a block of the grid, which the caller promised is readable.
        unsafe {
            let first = job.source.offset(place.offset);
            blocks::gather::<T, S>(first, &job.grid.strides, place.extents, &mut values);
        }
        // What padding repeats is no less finite than what it repeats.
        if !values[..S::SIZE]
            .iter()
            .all(|value| value.to_f64().is_finite())
        {
            continue;
        }
        let grid = Grid {
            dims: job.grid.dims,
            extents: place.extents.map(usize::from),
            strides: [1, 4, 16],
        };
        // SAFETY: the caller's promise, handed on.
        let decoded = unsafe { decode_block(job, block, grid) };
        blocks += 1;
        let strides = job.grid.strides;
        let [nx, ny, nz] = grid.extents;
        for (z, y, x) in
            (0..nz).flat_map(|z| (0..ny).flat_map(move |y| (0..nx).map(move |x| (z, y, x))))
        {
            let at = 16 * z + 4 * y + x;
            let offset = place.offset
                + x as isize * strides[0]
                + y as isize * strides[1]
                + z as isize * strides[2];
            visit(offset, values[at].to_f64(), decoded[at].to_f64());
        }
    }
    blocks
}

/// Decodes one block of a job, which inside is a grid of its own: at fixed rate from the job's stream,
/// else from its code made again, which does not depend on what is around it.
///
/// # Safety
/// As [`super::sample_error`]; at fixed rate the stream must have as many words as its blocks need.
unsafe fn decode_block<T: Value>(job: &EncodeJob<T>, block: usize, grid: Grid) -> [T; 64] {
    let arch = Kind::best();
    let limits = Limits::of(job.mode);
    let mut own = [0; BLOCK_WORDS];
    let (words, position) = match limits.block_bits {
        // SAFETY: the caller promised that the stream's words are readable.
        Some(bits) => (
            unsafe { std::slice::from_raw_parts(job.stream.cast_const(), job.words) },
            block * bits,
        ),
        None => {
            let task = EncodeTask {
                first: job.source,
                grid: job.grid,
                blocks: block..block + 1,
                limits,
            };
            let mut writer = BitWriter::new(&mut own);
            // SAFETY: the caller promised that the grid is readable.
            unsafe { arch.encode(&task, &mut writer) };
            writer.finish();
            (&own[..], 0)
        }
    };
    let mut decoded = [T::default(); 64];
    let task = DecodeTask {
        words,
        position,
        limits,
        blocks: 0..1,
        first: decoded.as_mut_ptr(),
        grid,
    };
    // SAFETY: the grid is inside `decoded`.
    unsafe { arch.decode(&task) };
    decoded
}
