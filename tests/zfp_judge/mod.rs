//! libzfp itself, by way of `zfp-sys`, and what the tests and the benchmark share.
#![allow(dead_code)]

use transpress::codec::zfp::{
    Arch, DecodeJob, EncodeJob, Encoded, Grid, Mode, Value, decode_on, encode_on,
};
use zfp_sys::*;

/// A value type as libzfp names it.
pub trait Scalar: Value {
    const TYPE: zfp_type;
    fn bits(self) -> u64;
    fn from_bits(bits: u64) -> Self;
    fn of(value: f64) -> Self;
}

impl Scalar for f32 {
    const TYPE: zfp_type = zfp_type_zfp_type_float;
    fn bits(self) -> u64 {
        self.to_bits().into()
    }
    fn from_bits(bits: u64) -> f32 {
        f32::from_bits(bits as u32)
    }
    fn of(value: f64) -> f32 {
        value as f32
    }
}

impl Scalar for f64 {
    const TYPE: zfp_type = zfp_type_zfp_type_double;
    fn bits(self) -> u64 {
        self.to_bits()
    }
    fn from_bits(bits: u64) -> f64 {
        f64::from_bits(bits)
    }
    fn of(value: f64) -> f64 {
        value
    }
}

/// Bits of libzfp's longest block, rounded up.
const LONGEST_BLOCK: usize = 16658 / 64 + 1;

/// A libzfp stream over some words and a field over some memory.
pub struct Libzfp {
    stream: *mut zfp_stream,
    field: *mut zfp_field,
    bits: *mut bitstream,
}

impl Libzfp {
    pub fn new<T: Scalar>(first: *const T, grid: &Grid, mode: Mode, words: &[u64]) -> Libzfp {
        // SAFETY: libzfp's constructors; `words` and the grid outlive the calls that use them.
        unsafe {
            let field = zfp_field_alloc();
            zfp_field_set_pointer(field, first as *mut _);
            zfp_field_set_type(field, T::TYPE);
            let [nx, ny, nz] = grid.extents;
            let [sx, sy, sz] = grid.strides;
            match grid.dims {
                1 => {
                    zfp_field_set_size_1d(field, nx);
                    zfp_field_set_stride_1d(field, sx);
                }
                2 => {
                    zfp_field_set_size_2d(field, nx, ny);
                    zfp_field_set_stride_2d(field, sx, sy);
                }
                _ => {
                    zfp_field_set_size_3d(field, nx, ny, nz);
                    zfp_field_set_stride_3d(field, sx, sy, sz);
                }
            }
            let bits = stream_open(words.as_ptr() as *mut _, words.len() * 8);
            let stream = zfp_stream_open(bits);
            match mode {
                Mode::Rate { block_bits } => {
                    zfp_stream_set_params(stream, block_bits, block_bits, 64, -1074);
                }
                Mode::Accuracy { tolerance } => {
                    zfp_stream_set_accuracy(stream, tolerance);
                }
                Mode::Bound { exponent, .. } => {
                    zfp_stream_set_params(stream, 1, 16658, 64, exponent);
                }
            }
            Libzfp {
                stream,
                field,
                bits,
            }
        }
    }

    /// Returns the number of bytes written.
    pub fn compress(&self) -> usize {
        // SAFETY: `new` made the stream over a buffer that is large enough.
        unsafe {
            zfp_stream_rewind(self.stream);
            zfp_compress(self.stream, self.field)
        }
    }

    pub fn decompress(&self) -> usize {
        // SAFETY: as in `compress`.
        unsafe {
            zfp_stream_rewind(self.stream);
            zfp_decompress(self.stream, self.field)
        }
    }
}

impl Drop for Libzfp {
    fn drop(&mut self) {
        // SAFETY: made by `new`, dropped once.
        unsafe {
            zfp_field_free(self.field);
            zfp_stream_close(self.stream);
            stream_close(self.bits);
        }
    }
}

/// Words that hold any stream of `grid`.
pub fn largest_stream(grid: &Grid, mode: Mode) -> usize {
    match mode {
        Mode::Rate { block_bits } => grid.blocks() * block_bits as usize / 64 + 2,
        Mode::Accuracy { .. } | Mode::Bound { .. } => grid.blocks() * LONGEST_BLOCK.min(70) + 2,
    }
}

/// Values in memory, of which a grid uses some.
#[derive(Clone, Debug)]
pub struct Field<T> {
    pub values: Vec<T>,
    /// Of the grid's first value.
    pub first: usize,
    pub grid: Grid,
}

impl<T: Scalar> Field<T> {
    /// A contiguous field.
    pub fn contiguous(extents: &[usize], values: Vec<T>) -> Field<T> {
        let mut grid = Grid {
            dims: extents.len() as u8,
            extents: [1; 3],
            strides: [1; 3],
        };
        let mut stride = 1;
        for (axis, &extent) in extents.iter().enumerate() {
            grid.extents[axis] = extent;
            grid.strides[axis] = stride;
            stride *= extent as isize;
        }
        assert_eq!(stride as usize, values.len());
        Field {
            values,
            first: 0,
            grid,
        }
    }

    /// The same grid in memory full of `value`.
    pub fn filled(&self, value: T) -> Field<T> {
        Field {
            values: vec![value; self.values.len()],
            ..*self
        }
    }

    pub fn pointer(&self) -> *const T {
        &self.values[self.first]
    }

    pub fn bits(&self) -> Vec<u64> {
        self.values.iter().map(|value| value.bits()).collect()
    }
}

/// libzfp's stream of a field.
pub fn their_stream<T: Scalar>(field: &Field<T>, mode: Mode) -> Vec<u64> {
    let mut words = vec![0; largest_stream(&field.grid, mode)];
    let bytes = Libzfp::new(field.pointer(), &field.grid, mode, &words).compress();
    words.truncate(bytes.div_ceil(8));
    words
}

/// What libzfp makes of a stream; it reads zeros after the end.
pub fn their_values<T: Scalar>(words: &[u64], blank: &Field<T>, mode: Mode) -> Field<T> {
    let mut padded = words.to_vec();
    padded.resize(words.len().max(largest_stream(&blank.grid, mode)) + 2, 0);
    let values = blank.clone();
    Libzfp::new(values.pointer(), &values.grid, mode, &padded).decompress();
    values
}

pub fn our_stream<T: Scalar>(
    arch: Arch,
    field: &Field<T>,
    mode: Mode,
    threads: usize,
) -> (Vec<u64>, Encoded) {
    let mut words = vec![u64::MAX; largest_stream(&field.grid, mode)];
    let job = EncodeJob {
        source: field.pointer(),
        grid: field.grid,
        stream: words.as_mut_ptr(),
        words: words.len(),
        mode,
    };
    // SAFETY: the grid lies inside the field, and the stream in `words`.
    let encoded = unsafe { encode_on(arch, &[job], threads) }[0];
    assert!(words[encoded.words..].iter().all(|&word| word == u64::MAX));
    words.truncate(encoded.words);
    (words, encoded)
}

pub fn our_values<T: Scalar>(
    arch: Arch,
    words: &[u64],
    blank: &Field<T>,
    mode: Mode,
    threads: usize,
) -> (Field<T>, bool) {
    let mut values = blank.clone();
    let job = DecodeJob {
        target: &mut values.values[values.first],
        grid: values.grid,
        stream: words.as_ptr(),
        words: words.len(),
        mode,
        segments: None,
    };
    // SAFETY: the grid lies inside the field, and the stream in `words`.
    let whole = unsafe { decode_on(arch, &[job], threads) }[0];
    (values, whole)
}
