//! ZFP streams, bit for bit those of libzfp's default build.
//!
//! A [`Grid`] describes a box of values in memory; a job couples one grid with one stream of 64-bit
//! words. Callers pass every job of a collective at once, so that work can be shared out over threads.

mod ahead;
mod arch;
mod batch;
mod bits;
mod blocks;
mod cube;
mod decoder;
mod encoder;
mod line;
mod planes;
mod range;
mod sample;
mod segments;
mod shape;
mod spare;
mod transform;
mod value;

#[doc(hidden)]
pub use arch::Kind as Arch;
pub use sample::Row;
pub use segments::{SEGMENTS, Segments};
pub use value::Value;

/// A box of values in memory, up to three axes, x fastest.
///
/// `extents` and `strides` count values, not bytes; axes past `dims` have extent 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid {
    pub dims: u8,
    pub extents: [usize; 3],
    pub strides: [isize; 3],
}

impl Grid {
    /// Number of values.
    pub fn values(&self) -> usize {
        self.extents.iter().product()
    }

    /// Number of ZFP blocks (4, 16 or 64 values), the partial ones included.
    pub fn blocks(&self) -> usize {
        self.extents[..usize::from(self.dims)]
            .iter()
            .map(|n| n.div_ceil(4))
            .product()
    }
}

/// How many bits a block gets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Mode {
    /// Every block takes exactly this many bits, at least [`Value::HEADER_BITS`].
    Rate { block_bits: u32 },
    /// As many bits as the absolute error bound needs (libzfp's fixed accuracy).
    Accuracy { tolerance: f64 },
    /// As many bits as a bound of 2^`exponent` needs, as above. Encoding codes a block in which all magnitudes are
    /// below 2^`quiet` as zeros; the stream is one that libzfp decodes all the same.
    Bound { exponent: i32, quiet: i32 },
}

/// One grid to be encoded into one stream.
#[derive(Clone, Copy, Debug)]
pub struct EncodeJob<T> {
    /// The value at index (0, 0, 0).
    pub source: *const T,
    pub grid: Grid,
    /// The stream: `words` writable 64-bit words.
    pub stream: *mut u64,
    pub words: usize,
    pub mode: Mode,
}

/// One stream to be decoded into one grid.
#[derive(Clone, Copy, Debug)]
pub struct DecodeJob<T> {
    /// Where the value at index (0, 0, 0) goes.
    pub target: *mut T,
    pub grid: Grid,
    /// The stream: `words` readable 64-bit words.
    pub stream: *const u64,
    pub words: usize,
    pub mode: Mode,
    /// The parts of a stream of blocks of varying length, where they are known.
    pub segments: Option<Segments>,
}

/// What encoding one job came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Encoded {
    /// Words of the stream that were written; the same for every run at fixed rate.
    pub words: usize,
    /// Blocks that hold a NaN or an infinity. Their bits mean nothing: send those values otherwise.
    pub nonfinite_blocks: usize,
    /// The stream was too short for the blocks; what was written cannot be decoded.
    pub overflow: bool,
}

/// How far the decoded values of some blocks are from what was encoded.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SampledError {
    pub max_abs: f64,
    /// Sums over the values of squared errors and of squared values.
    pub sum_sq_err: f64,
    pub sum_sq: f64,
    pub values: usize,
    pub blocks: usize,
}

/// Words that a grid takes at `block_bits` bits per block.
pub fn stream_words(grid: &Grid, block_bits: u32) -> usize {
    (grid.blocks() * block_bits as usize).div_ceil(64)
}

/// Encodes every job, on up to `threads` threads. The streams do not depend on `threads`.
///
/// # Safety
/// For each job, every value of the grid must be readable, and so must what lies between those of a row; the `words`
/// words of the stream must be writable, and no stream may overlap another stream or a grid.
pub unsafe fn encode<T: Value>(jobs: &[EncodeJob<T>], threads: usize) -> Vec<Encoded> {
    // SAFETY: the caller's promise, handed on.
    unsafe { encode_on(Arch::best(), jobs, threads) }
}

/// [`encode`] of one job with an accuracy; also says what the parts of the stream are.
///
/// # Safety
/// As [`encode`].
pub unsafe fn encode_in_segments<T: Value>(
    job: &EncodeJob<T>,
    threads: usize,
) -> (Encoded, Segments) {
    // SAFETY: the caller's promise, handed on.
    unsafe { batch::encode_in_segments(Arch::best(), job, threads) }
}

/// The bits that a job with an accuracy takes, about: what they would be if one run of blocks in `every` were like the others.
///
/// # Safety
/// The values of the grid must be readable as for [`encode`].
pub unsafe fn estimate_bits<T: Value>(job: &EncodeJob<T>, every: usize) -> usize {
    // SAFETY: the caller's promise, handed on.
    unsafe { sample::estimate_bits(job, every) }
}

/// Decodes every job, on up to `threads` threads. `false` where a stream was too short for its grid, or its parts
/// are not what was said; the values of that grid then mean nothing.
///
/// # Safety
/// For each job, every value of the grid must be writable, the `words` words of the stream readable,
/// and no grid may overlap another grid or a stream.
pub unsafe fn decode<T: Value>(jobs: &[DecodeJob<T>], threads: usize) -> Vec<bool> {
    // SAFETY: the caller's promise, handed on.
    unsafe { decode_on(Arch::best(), jobs, threads) }
}

/// The exact error of every `every`-th block of a job that has been encoded, from those blocks alone.
/// Blocks that hold a NaN or an infinity are left out; a stream that is too short gives no blocks.
///
/// # Safety
/// Every value of the grid and the `words` words of the stream must be readable.
pub unsafe fn sample_error<T: Value>(job: &EncodeJob<T>, every: usize) -> SampledError {
    // SAFETY: the caller's promise, handed on.
    unsafe { sample::sample_error(job, every) }
}

/// [`sample_error`] value by value: calls `visit` with each row of each of those blocks.
///
/// # Safety
/// As [`sample_error`].
pub unsafe fn sample_rows<T: Value>(job: &EncodeJob<T>, every: usize, visit: impl FnMut(Row<T>)) {
    // SAFETY: the caller's promise, handed on.
    unsafe { sample::sample(job, every, visit) };
}

/// [`encode`] with the instructions of a given kind of machine, for tests and benchmarks.
///
/// # Safety
/// As [`encode`].
#[doc(hidden)]
pub unsafe fn encode_on<T: Value>(
    arch: Arch,
    jobs: &[EncodeJob<T>],
    threads: usize,
) -> Vec<Encoded> {
    // SAFETY: the caller's promise, handed on.
    unsafe { batch::encode(arch, jobs, threads) }
}

/// [`decode`] with the instructions of a given kind of machine, for tests and benchmarks.
///
/// # Safety
/// As [`decode`].
#[doc(hidden)]
pub unsafe fn decode_on<T: Value>(arch: Arch, jobs: &[DecodeJob<T>], threads: usize) -> Vec<bool> {
    // SAFETY: the caller's promise, handed on.
    unsafe { batch::decode(arch, jobs, threads) }
}
