//! Messages → the boxes that a launch is told of.

use super::array::{Array, Plain};
use super::kernels::BoxJob;
use super::{Entered, Result};
use crate::codec::plan::Plan;
use crate::codec::zfp::Mode;
use crate::codec::{Float, Memory};

/// Values of a launch, at most: jobs count in 32 bits.
pub const MOST_VALUES: usize = u32::MAX as usize;

/// How many of the first messages, given by their counts, make up a launch.
pub fn first_batch(counts: impl Iterator<Item = usize>) -> usize {
    let mut sum = 0usize;
    counts
        .take_while(|&count| {
            sum = sum.saturating_add(count);
            sum <= MOST_VALUES
        })
        .count()
}

/// Where a message is on the device.
#[derive(Clone, Copy)]
pub struct Addresses {
    pub values: u64,
    pub streams: u64,
    /// 0 where there is no field axis.
    pub exponents: u64,
}

/// The boxes of some messages, by their number of axes: each kind is one launch.
#[derive(Default)]
pub struct Boxed {
    by_dims: [Vec<BoxJob>; 3],
    blocks: [u32; 3],
}

impl Boxed {
    /// Adds the boxes of a message. All messages together have at most [`MOST_VALUES`].
    pub fn add<T: Float>(&mut self, message: u32, plan: &Plan, at: Addresses) {
        let even = plan.boxes.even();
        let Mode::Rate { block_bits } = even.mode else {
            return;
        };
        let (run, fields) = plan
            .fields
            .as_ref()
            .map_or((1, 1), |fields| fields.extents());
        let mut stream = at.streams;
        for (&(offset, grid), words) in plan.boxes.grids().iter().zip(&even.words) {
            let dims = usize::from(grid.dims) - 1;
            let first_block = self.blocks[dims];
            self.blocks[dims] += grid.blocks() as u32;
            self.by_dims[dims].push(BoxJob {
                values: at.values + (offset * size_of::<T>()) as u64,
                stream,
                exponents: at.exponents,
                origin: offset as u64,
                strides: grid.strides.map(|stride| stride as i64),
                extents: grid.extents.map(|extent| extent as u32),
                run: run as u32,
                fields: fields as u32,
                block_bits,
                first_block,
                message,
            });
            stream += 8 * *words as u64;
        }
    }

    /// For each number of axes that there are boxes of: it, the boxes, and how many blocks they have.
    pub fn launches(&self) -> impl Iterator<Item = (u8, &[BoxJob], u32)> {
        let all = self.by_dims.iter().zip(self.blocks).enumerate();
        all.filter(|(_, (jobs, _))| !jobs.is_empty())
            .map(|(index, (jobs, blocks))| (index as u8 + 1, &jobs[..], blocks))
    }
}

/// The values of a message on a device: where they lie, or a copy.
pub struct Placed<T> {
    pub address: u64,
    copy: Option<Array<T>>,
}

impl<T: Float + Plain> Placed<T> {
    /// Values to be read.
    ///
    /// # Safety
    /// `values` must point to `count` values in this memory.
    pub unsafe fn source(
        work: &Entered,
        memory: Memory,
        values: *const u8,
        count: usize,
    ) -> Result<Self> {
        let placed = Self::target(work, memory, values.cast_mut(), count)?;
        if placed.copy.is_some() {
            // SAFETY: the caller's promise; the copy has room for them.
            unsafe { work.upload_from(placed.address, values, count * size_of::<T>())? };
        }
        Ok(placed)
    }

    /// Room for values.
    pub fn target(work: &Entered, memory: Memory, values: *mut u8, count: usize) -> Result<Self> {
        Ok(match memory {
            Memory::Gpu(_) => Self {
                address: values.addr() as u64,
                copy: None,
            },
            Memory::Host => {
                let copy = Array::room(work, count)?;
                Self {
                    address: copy.address(),
                    copy: Some(copy),
                }
            }
        })
    }

    /// Takes values that were written to a copy where they belong.
    ///
    /// # Safety
    /// `values` must have room for `count` values, and not be touched before the work is done.
    pub unsafe fn settle(&self, work: &Entered, values: *mut u8, count: usize) -> Result<()> {
        match &self.copy {
            // SAFETY: the caller's promise.
            Some(copy) => unsafe { work.download(values, copy.address(), count * size_of::<T>()) },
            None => Ok(()),
        }
    }
}
