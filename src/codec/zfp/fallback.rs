//! The `zfp-rs` crate behind our job interface.

use super::{DecodeJob, EncodeJob, Encoded, Grid, Mode, Value, stream_words};
use zfp_rs::{ZfpBitStreamRef, ZfpBitStreamRefMut, ZfpConfig, ZfpField, ZfpFieldMut};

/// Extents and strides as `zfp-rs` takes them: unused axes have extent 0.
fn dims(grid: &Grid) -> ([usize; 4], [isize; 4]) {
    let (mut extents, mut strides) = ([0; 4], [0; 4]);
    let dims = usize::from(grid.dims).min(3);
    extents[..dims].copy_from_slice(&grid.extents[..dims]);
    strides[..dims].copy_from_slice(&grid.strides[..dims]);
    (extents, strides)
}

/// Index of the lowest and the highest value in memory, relative to the value at (0, 0, 0).
fn span(grid: &Grid) -> (isize, isize) {
    let mut span = (0, 0);
    for axis in 0..usize::from(grid.dims) {
        let reach = (grid.extents[axis] as isize - 1) * grid.strides[axis];
        span.0 += reach.min(0);
        span.1 += reach.max(0);
    }
    span
}

fn config(mode: Mode) -> Option<ZfpConfig> {
    match mode {
        Mode::Rate { block_bits } => ZfpConfig::expert(block_bits, block_bits, 64, -1074).ok(),
        Mode::Accuracy { tolerance } => Some(ZfpConfig::fixed_accuracy(tolerance)),
    }
}

/// # Safety
/// As [`super::encode`].
pub unsafe fn encode<T: Value>(job: &EncodeJob<T>) -> Encoded {
    let failed = Encoded {
        overflow: true,
        ..Encoded::default()
    };
    if job.grid.values() == 0 {
        return Encoded::default();
    }
    let (low, high) = span(&job.grid);
    // SAFETY: `low..=high` spans the values of the grid, which the caller promised are readable.
    let values =
        unsafe { std::slice::from_raw_parts(job.source.offset(low), (high - low) as usize + 1) };
    // SAFETY: the caller promised these words are writable and overlap nothing.
    let words = unsafe { std::slice::from_raw_parts_mut(job.stream, job.words) };
    let (extents, strides) = dims(&job.grid);
    let (Some(config), Ok(field)) = (
        config(job.mode),
        ZfpField::new_strided(values, extents, strides),
    ) else {
        return failed;
    };
    match ZfpBitStreamRefMut::from_words(words).compress(&config, &field) {
        Ok(bytes) => Encoded {
            words: bytes.div_ceil(8),
            nonfinite_blocks: 0,
            overflow: false,
        },
        Err(_) => failed,
    }
}

/// # Safety
/// As [`super::decode`].
pub unsafe fn decode<T: Value>(job: &DecodeJob<T>) -> bool {
    if job.grid.values() == 0 {
        return true;
    }
    if let Mode::Rate { block_bits } = job.mode
        && stream_words(&job.grid, block_bits) > job.words
    {
        return false;
    }
    let (low, high) = span(&job.grid);
    // SAFETY: `low..=high` spans the values of the grid, which the caller promised are writable.
    let values = unsafe {
        std::slice::from_raw_parts_mut(job.target.offset(low), (high - low) as usize + 1)
    };
    // SAFETY: the caller promised these words are readable.
    let words = unsafe { std::slice::from_raw_parts(job.stream, job.words) };
    let (extents, strides) = dims(&job.grid);
    let (Some(config), Ok(mut field)) = (
        config(job.mode),
        ZfpFieldMut::new_strided(values, extents, strides),
    ) else {
        return false;
    };
    ZfpBitStreamRef::from_words(words)
        .decompress(&config, &mut field)
        .is_ok()
}
