//! A shape of the measured field, at a rate: how kernels, the codec and cuZFP are told of it, and what must come out.

use crate::Result;
use crate::buffer::Buffer;
use crate::cuzfp;
use crate::fields::Field;
use crate::kernels::Boxes;
use transpress::codec::Float;
use transpress::codec::cuda::Device;
use transpress::codec::cuda::kernels::BoxJob;
use transpress::codec::zfp::{
    Arch, DecodeJob, EncodeJob, Grid, Mode, decode_on, encode_on, stream_words,
};
use transpress::layout::{Axes, Kind};

/// What is measured in one go: a shape of a field, and bits per value.
pub struct Case<'a, T> {
    pub field: &'a Field<T>,
    pub dims: u8,
    pub rate: u32,
    pub stream: Buffer,
    pub back: Buffer,
}

impl<T: Float> Case<'_, T> {
    pub fn grid(&self) -> Grid {
        self.field.grid(self.dims, self.field.count)
    }

    pub fn block_bits(&self) -> u32 {
        self.rate << (2 * self.dims)
    }

    pub fn words(&self) -> usize {
        stream_words(&self.grid(), self.block_bits())
    }

    pub fn name(&self, what: &str) -> String {
        format!(
            "{what} {} {}-D rate {}",
            T::ELEMENT.as_str(),
            self.dims,
            self.rate
        )
    }

    pub fn axes(&self) -> Axes {
        let Grid { dims, extents, .. } = self.grid();
        let axis = |&extent: &usize| (Kind::Smooth, extent as u32);
        extents[..usize::from(dims)].iter().map(axis).collect()
    }

    pub fn boxes(&self, device: &'static Device, values: &Buffer) -> Result<Boxes> {
        let grid = self.grid();
        let job = BoxJob {
            values: values.address(),
            stream: self.stream.address(),
            exponents: 0,
            origin: 0,
            strides: grid.strides.map(|stride| stride as i64),
            extents: grid.extents.map(|extent| extent as u32),
            run: 1,
            fields: 1,
            block_bits: self.block_bits(),
            first_block: 0,
            message: 0,
        };
        Boxes::new(
            device,
            T::ELEMENT,
            self.dims,
            (&[job], grid.blocks() as u32),
            1,
        )
    }

    pub fn cuzfp_job(&self, values: &Buffer) -> cuzfp::Job {
        cuzfp::Job {
            bytes: size_of::<T>(),
            dims: self.dims,
            extents: self.grid().extents,
            block_bits: self.block_bits(),
            values: values.address(),
            stream: self.stream.address(),
        }
    }

    /// The CPU's stream of what repeats.
    pub fn expected_stream(&self) -> Vec<u64> {
        let grid = self.field.grid(self.dims, self.field.slab.len());
        let block_bits = self.block_bits();
        let mut words = vec![0; stream_words(&grid, block_bits)];
        let job = EncodeJob {
            source: self.field.slab.as_ptr(),
            grid,
            stream: words.as_mut_ptr(),
            words: words.len(),
            mode: Mode::Rate { block_bits },
        };
        // SAFETY: the slab has the values of the grid, and `words` those of its stream.
        unsafe { encode_on(Arch::best(), &[job], threads()) };
        words
    }

    /// The CPU's values of that stream.
    pub fn expected_values(&self, words: &[u64]) -> Vec<T> {
        let mut values = vec![T::default(); self.field.slab.len()];
        let job = DecodeJob {
            target: values.as_mut_ptr(),
            grid: self.field.grid(self.dims, values.len()),
            stream: words.as_ptr(),
            words: words.len(),
            mode: Mode::Rate {
                block_bits: self.block_bits(),
            },
            segments: None,
        };
        // SAFETY: as above.
        unsafe { decode_on(Arch::best(), &[job], threads()) };
        values
    }

    /// Whether a buffer repeats these items: the first time, the last, and some in between.
    pub fn repeats<I: Copy + Default + PartialEq>(
        &self,
        buffer: &Buffer,
        items: &[I],
    ) -> Result<bool> {
        let last = self.field.repetitions() - 1;
        let mut found = vec![I::default(); items.len()];
        for repetition in [0, last / 3, last / 2, last] {
            buffer.read(repetition * size_of_val(items), &mut found)?;
            if found != items {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
