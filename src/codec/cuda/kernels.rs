//! The kernels, and what they are told: laid out as in `kernels/zfp.cu`.

/// A box of values and its stream, both in memory of the device.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BoxJob {
    /// Address of the value at index (0, 0, 0): read by `encode`, written by `decode`.
    pub values: u64,
    /// Address of the first word of the stream.
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
