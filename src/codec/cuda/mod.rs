//! ZFP on a GPU, for values that live there: the same streams as on the CPU.

pub mod kernels;
