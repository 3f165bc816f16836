//! The kernels, and what they are told and tell: laid out as in `kernels/common.cuh`.
//!
//! All addresses are of memory of the device. Values may be aligned as their type only; they are moved faster where
//! they and their rows begin on multiples of 16 bytes.

use crate::codec::Element;
use std::ffi::CStr;

/// All kernels, as PTX for compute capability 7.0 and later. `kernels/build-ptx` makes it.
pub fn ptx() -> &'static CStr {
    const TEXT: &str = concat!(include_str!("kernels/zfp.ptx"), "\0");
    CStr::from_bytes_until_nul(TEXT.as_bytes()).unwrap_or_default()
}

/// A box of values and its stream.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BoxJob {
    /// Address of the value at index (0, 0, 0): read by `encode`, written by `decode`.
    pub values: u64,
    /// Address of the first 64-bit word of the stream.
    pub stream: u64,
    /// Address of the exponents of the fields, 16 bits each; 0 where there is no field axis.
    pub exponents: u64,
    /// Index of the value at (0, 0, 0) in its message.
    pub origin: u64,
    /// Distance of neighbours along each axis, in values.
    pub strides: [i64; 3],
    /// Values along each axis; 1 for axes that are not there.
    pub extents: [u32; 3],
    /// The value at index i of a message belongs to field i / run % fields.
    pub run: u32,
    pub fields: u32,
    /// Bits of each ZFP block.
    pub block_bits: u32,
    /// ZFP blocks of the boxes before this one in the launch.
    pub first_block: u32,
    /// Which message of the launch this is a box of.
    pub message: u32,
}

/// Sums over some values, as [`crate::codec`] has them for the relative L2 error. All 0 at first.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Tally {
    pub difference: f64,
    pub norm: f64,
    pub values: u64,
}

/// What `sample` adds to, for each message.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SampledError {
    /// Of the values that the codec saw.
    pub as_coded: Tally,
    /// Of the program's values. Nothing where there is no field axis: the two are the same.
    pub as_given: Tally,
}

/// The values of a message.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Span {
    pub values: u64,
    /// Values.
    pub count: u64,
    /// [`Span::chunks`] of the messages before this one in the launch.
    pub first_chunk: u32,
    pub unused: u32,
}

impl Span {
    /// Values that one thread block goes through.
    const CHUNK: u64 = 16384;

    /// Thread blocks for this many values.
    pub const fn chunks(count: u64) -> u64 {
        count.div_ceil(Self::CHUNK)
    }
}

/// What `survey` finds out about a message. The launch narrows what is there: [`Survey::NOTHING`] at first.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Survey {
    /// Of the smallest and the largest value, their `Float::order`.
    pub lowest: i64,
    pub highest: i64,
    /// Values that are not zero.
    pub nonzero: u64,
    /// 1 where all are whole numbers.
    pub whole: u32,
    pub unused: u32,
}

impl Survey {
    /// Of no values.
    pub const NOTHING: Self = Self {
        lowest: i64::MAX,
        highest: i64::MIN,
        nonzero: 0,
        whole: 1,
        unused: 0,
    };
}

/// Values to be put together: `items` items of `width` neighbours each, every `step`-th one.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GatherJob {
    pub values: u64,
    /// Where they go; room for `items` × `width` values.
    pub out: u64,
    /// Items from one to the next.
    pub step: u64,
    pub items: u32,
    pub width: u32,
}

/// The fields of a message, whose exponents are sought.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FieldsJob {
    pub values: u64,
    /// Values of the message.
    pub count: u64,
    /// Where the exponents go, 16 bits each.
    pub exponents: u64,
    /// As in [`BoxJob`].
    pub run: u32,
    pub fields: u32,
    /// Fields of the messages before this one in the launch.
    pub first_field: u32,
    pub unused: u32,
}

const _: () = {
    use std::mem::offset_of;
    assert!(size_of::<BoxJob>() == 88 && offset_of!(BoxJob, extents) == 56);
    assert!(offset_of!(BoxJob, strides) == 32 && offset_of!(BoxJob, message) == 84);
    assert!(size_of::<Tally>() == 24 && size_of::<SampledError>() == 48);
    assert!(size_of::<Span>() == 24 && offset_of!(Span, first_chunk) == 16);
    assert!(size_of::<Survey>() == 32 && offset_of!(Survey, whole) == 24);
    assert!(size_of::<GatherJob>() == 32 && offset_of!(GatherJob, width) == 28);
    assert!(size_of::<FieldsJob>() == 40 && offset_of!(FieldsJob, first_field) == 32);
};

/// A kernel for values of a type; those for boxes with this number of axes, 1 to 3. Their parameters:
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kernel {
    /// (jobs: `BoxJob`s, their number: u32, ZFP blocks of all: u32, refused: a u32 for each message). Writes every
    /// word of the streams. A message that has a NaN or an infinity has its `refused` set to 1; all 0 at first.
    Encode(Element, u8),
    /// (jobs: `BoxJob`s, their number: u32, ZFP blocks of all: u32).
    Decode(Element, u8),
    /// (jobs: `BoxJob`s, their number: u32, every: a u32 for each message, errors: a [`SampledError`] for each
    /// message). To be run after `Encode`: looks at every `every`-th block of each box.
    Sample(Element, u8),
    /// (spans: `Span`s, their number: u32, surveys: a [`Survey`] for each).
    Survey(Element),
    /// (spans: `Span`s, their number: u32, patterns: two u64 for each, counts: two u64 for each). Adds to each count
    /// how many values have exactly these bits.
    Count(Element),
    /// (jobs: `GatherJob`s, their number: u32).
    Gather(Element),
    /// (jobs: `FieldsJob`s, their number: u32).
    Exponents(Element),
}

/// ZFP blocks that a warp codes, and threads of a warp.
const TILE: u32 = 32;

impl Kernel {
    pub const fn name(self) -> &'static CStr {
        use Element::{F32, F64};
        match self {
            Self::Encode(F32, dims) => {
                by_dims(dims, [c"encode_f32_1", c"encode_f32_2", c"encode_f32_3"])
            }
            Self::Encode(F64, dims) => {
                by_dims(dims, [c"encode_f64_1", c"encode_f64_2", c"encode_f64_3"])
            }
            Self::Decode(F32, dims) => {
                by_dims(dims, [c"decode_f32_1", c"decode_f32_2", c"decode_f32_3"])
            }
            Self::Decode(F64, dims) => {
                by_dims(dims, [c"decode_f64_1", c"decode_f64_2", c"decode_f64_3"])
            }
            Self::Sample(F32, dims) => {
                by_dims(dims, [c"sample_f32_1", c"sample_f32_2", c"sample_f32_3"])
            }
            Self::Sample(F64, dims) => {
                by_dims(dims, [c"sample_f64_1", c"sample_f64_2", c"sample_f64_3"])
            }
            Self::Survey(F32) => c"survey_f32",
            Self::Survey(F64) => c"survey_f64",
            Self::Count(F32) => c"count_f32",
            Self::Count(F64) => c"count_f64",
            Self::Gather(F32) => c"gather_f32",
            Self::Gather(F64) => c"gather_f64",
            Self::Exponents(F32) => c"exponents_f32",
            Self::Exponents(F64) => c"exponents_f64",
        }
    }

    /// Threads of a thread block; no other number will do.
    pub const fn threads(self) -> u32 {
        match self {
            Self::Encode(Element::F64, 3) | Self::Decode(Element::F64, 3) => 2 * TILE,
            Self::Encode(..) | Self::Decode(..) => 4 * TILE,
            Self::Sample(..) => TILE,
            Self::Survey(_) | Self::Count(_) | Self::Gather(_) | Self::Exponents(_) => 256,
        }
    }

    /// Thread blocks for `jobs` jobs that together have `parts` ZFP blocks (`Encode`, `Decode`), chunks (`Survey`,
    /// `Count`) or fields (`Exponents`).
    pub const fn thread_blocks(self, jobs: u32, parts: u32) -> u32 {
        match self {
            Self::Encode(..) | Self::Decode(..) => {
                // A warp to each tile; a box has up to one that is not whole.
                let tiles = parts / TILE + jobs;
                tiles.div_ceil(self.threads() / TILE)
            }
            Self::Sample(..) | Self::Gather(_) => jobs,
            Self::Survey(_) | Self::Count(_) | Self::Exponents(_) => parts,
        }
    }
}

const fn by_dims(dims: u8, names: [&'static CStr; 3]) -> &'static CStr {
    match dims {
        1 => names[0],
        2 => names[1],
        _ => names[2],
    }
}
