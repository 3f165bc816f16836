//! Decodes whatever bytes as a ZFP stream, on every kind of machine that this one is: they must agree,
//! and write nothing but the grid.
#![no_main]

use libfuzzer_sys::fuzz_target;
use transpress::codec::zfp::{Arch, DecodeJob, Grid, Mode, Segments, Value, decode_on};

fuzz_target!(|data: &[u8]| {
    let Some((head, body)) = data.split_first_chunk::<8>() else {
        return;
    };
    if head[0] & 1 == 0 {
        decode::<f32>(head, body);
    } else {
        decode::<f64>(head, body);
    }
});

/// The head says what the grid and the mode are, the body is the stream.
fn decode<T: Value + From<f32> + Into<f64>>(head: &[u8; 8], body: &[u8]) {
    let dims = 1 + head[0] / 2 % 3;
    let mut grid = Grid {
        dims,
        extents: [1; 3],
        strides: [1; 3],
    };
    let mut stride = 1 + isize::from(head[0] / 8 % 2);
    for axis in 0..usize::from(dims) {
        grid.extents[axis] = usize::from(head[1 + axis] % 20);
        grid.strides[axis] = stride;
        stride *= grid.extents[axis] as isize + isize::from(head[0] / 16 % 2);
    }
    let mode = if head[4] & 1 == 0 {
        let bits = u32::from(head[5]) + 256 * u32::from(head[6] % 20);
        Mode::Rate {
            block_bits: bits.max(T::HEADER_BITS),
        }
    } else {
        Mode::Accuracy {
            tolerance: f64::from(i8::from_le_bytes([head[5]])).exp2(),
        }
    };
    let words: Vec<u64> = body
        .chunks_exact(8)
        .map(|bytes| u64::from_le_bytes(bytes.try_into().expect("eight bytes")))
        .collect();
    // With an accuracy the stream may come with what its parts are said to be.
    let segment = |i: usize| body.get(i).map_or(0, |&byte| u32::from(byte)) << (head[7] >> 1 & 31);
    let segments = (head[7] & 1 == 1).then(|| Segments(std::array::from_fn(segment)));
    let blank: T = 7.0f32.into();
    let mut first: Option<(Vec<u64>, bool)> = None;
    for arch in Arch::all() {
        let mut values = vec![blank; stride.unsigned_abs() + 1];
        let job = DecodeJob {
            target: values.as_mut_ptr(),
            grid,
            stream: words.as_ptr(),
            words: words.len(),
            mode,
            segments,
        };
        // SAFETY: the grid lies inside the values; the stream in its words.
        let whole = unsafe { decode_on(arch, &[job], 1) }[0];
        let bits = values.iter().map(|&value| value.into().to_bits()).collect();
        let result = (bits, whole);
        match &first {
            Some(first) => assert!(*first == result, "{arch:?} differs"),
            None => first = Some(result),
        }
    }
}
