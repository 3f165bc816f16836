//! From a stream of fixed rate to a grid, eight 3-D blocks at a time.

use super::columns::{self, BLOCKS, Columns, Copy};
use super::fours::{self, Run};
use super::uncolumns::{self, Destination};
use super::{Avx2, double};
use crate::codec::zfp::Value;
use crate::codec::zfp::ahead::Ahead;
use crate::codec::zfp::arch::{Arch, BATCH, Bmi};
use crate::codec::zfp::bits::bytes_of;
use crate::codec::zfp::blocks::{self, Place, Walk};
use crate::codec::zfp::encoder::BLOCK_WORDS;
use crate::codec::zfp::planes::Planes;
use crate::codec::zfp::range::{self, Aligned, DecodeTask, Limits};
use crate::codec::zfp::shape::Cube;
use crate::codec::zfp::transform::{Header, Headers};
use crate::codec::zfp::value::Int;

/// Blocks whose planes are decoded together: as many as there is room for, because towards the end there are fewer to
/// go on by turns.
const fn most<T: Value>() -> usize {
    64 * BATCH / T::Int::BITS as usize
}

/// Decodes the first blocks of a task, if this is the way to; returns how many.
///
/// # Safety
/// As [`range::decode`].
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
pub unsafe fn decode<T: Value, B: Bmi>(
    arch: Avx2<B>,
    task: &DecodeTask<T>,
    block_bits: usize,
) -> usize {
    let usual = T::HEADER_BITS as usize..=fours::LONGEST;
    let is_better = B::EXTRACTS || T::Int::BITS == 32;
    if !is_better || task.grid.dims != 3 || !usual.contains(&block_bits) {
        return 0;
    }
    let mut walk = Walk::new::<Cube>(&task.grid, task.blocks.start);
    let mut ahead = Ahead::new::<Cube>(&task.grid, task.first);
    let mut planes = Aligned([[0; 64]; BATCH]);
    let mut headers = [Header::ZEROS; fours::MOST];
    let mut done = 0;
    loop {
        let mut run = Run {
            bytes: bytes_of(task.words),
            position: task.position + done * block_bits,
            block_bits,
            count: most::<T>(),
        };
        let left = task.blocks.len() - done;
        if !B::EXTRACTS || left < run.count || !run.is_amid() {
            run.count = BLOCKS;
        }
        if left < run.count {
            return done;
        }
        let headers = &mut headers[..run.count];
        if B::EXTRACTS {
            fours::decode::<T>(run, arch.bmi(), headers, &mut planes.0);
        } else {
            one_by_one::<T, B>(arch, run, task.limits, headers, &mut planes.0);
        }
        for (i, headers) in headers.as_chunks().0.iter().enumerate() {
            if let Some(ahead) = &mut ahead {
                ahead.fetch_half::<Cube>(&walk, BLOCKS);
            }
            let spot = Spot::next(task, &mut walk);
            // SAFETY: the caller's promise, handed on.
            unsafe { spot.put(task, headers, &mut planes.0, i) };
            if let Some(ahead) = &mut ahead {
                ahead.fetch_rest::<Cube>();
            }
        }
        done += run.count;
    }
}

/// As [`fours::decode`], of eight blocks of `f32`, without bit extraction.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
fn one_by_one<T: Value, B: Bmi>(
    arch: Avx2<B>,
    run: Run,
    limits: Limits,
    headers: &mut [Header],
    planes: &mut [Planes; BATCH],
) {
    let mut copy = [0; BLOCK_WORDS + 4];
    let mut decoded = Headers::default();
    let mut blocks = [[0; 64]; BLOCKS];
    range::decode_blocks::<Avx2<B>, T, Cube>(
        arch,
        run.bytes,
        run.position,
        limits,
        &mut copy,
        &mut decoded,
        &mut blocks,
    );
    for (i, header) in headers.iter_mut().enumerate() {
        *header = decoded.get(i);
    }
    let bits = &decoded.bits.as_chunks().0[0];
    uncolumns::interleave(bits, &blocks, &mut columns::quarters(planes)[0]);
}

/// Where eight blocks belong.
enum Spot {
    /// They are whole and next to each other along x, from this offset on.
    Row(isize),
    Apart([Place; BLOCKS]),
}

impl Spot {
    /// Goes on to the next eight blocks.
    #[inline]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
    fn next<T: Value>(task: &DecodeTask<T>, walk: &mut Walk) -> Spot {
        let strides = &task.grid.strides;
        if strides[0] != 1 || !walk.is_row::<Cube>(BLOCKS) {
            return Spot::Apart(std::array::from_fn(|_| walk.step::<Cube>()));
        }
        Spot::Row(walk.row::<Cube>(BLOCKS))
    }

    /// Writes the blocks to the grid, which are the `eight`th eight of those that `planes` are of.
    ///
    /// # Safety
    /// They must be writable.
    #[inline]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
    unsafe fn put<T: Value>(
        self,
        task: &DecodeTask<T>,
        headers: &[Header; BLOCKS],
        planes: &mut [Planes; BATCH],
        eight: usize,
    ) {
        let strides = &task.grid.strides;
        // SAFETY: the caller's promise, handed on; the only value type of 32 bits is `f32`, the only one of 64 `f64`.
        unsafe {
            if T::Int::BITS == 32 {
                let planes = &mut columns::quarters(planes)[eight];
                self.put_single(task.first.cast(), strides, headers, planes);
            } else {
                let planes = &planes.as_chunks().0[eight];
                self.put_double(task.first.cast(), strides, headers, planes);
            }
        }
    }

    /// # Safety
    /// The blocks must be writable.
    #[inline]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
    unsafe fn put_single(
        self,
        first: *mut f32,
        strides: &[isize; 3],
        headers: &[Header; BLOCKS],
        planes: &mut Columns,
    ) {
        let headers = headers.map(|header| header.bits);
        if let Spot::Row(offset) = self {
            // SAFETY: the blocks are inside the grid, which the caller promised is writable.
            let row = unsafe { Destination::new(first.offset(offset), [strides[1], strides[2]]) };
            uncolumns::inverse(&headers, planes, row);
            return;
        }
        let mut copy = Copy::empty();
        uncolumns::inverse(&headers, planes, copy.destination());
        for (i, place) in self.places().into_iter().enumerate() {
            let block = copy.block(i);
            // SAFETY: `place` is a block of the grid, which the caller promised is writable.
            unsafe {
                let first = first.offset(place.offset);
                blocks::scatter::<f32, Cube>(first, strides, place.extents, &block);
            }
        }
    }

    /// # Safety
    /// The blocks must be writable.
    #[inline]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
    unsafe fn put_double(
        self,
        first: *mut f64,
        strides: &[isize; 3],
        headers: &[Header; BLOCKS],
        planes: &[Planes; BLOCKS],
    ) {
        for (i, place) in self.places().into_iter().enumerate() {
            let mut block = [0.0; 64];
            double::inverse_cube(headers[i], &planes[i], &mut block);
            // SAFETY: `place` is a block of the grid, which the caller promised is writable.
            unsafe {
                let first = first.offset(place.offset);
                blocks::scatter::<f64, Cube>(first, strides, place.extents, &block);
            }
        }
    }

    /// Where each block belongs.
    #[inline(always)]
    fn places(self) -> [Place; BLOCKS] {
        match self {
            Spot::Row(offset) => std::array::from_fn(|i| Place {
                offset: offset + 4 * i as isize,
                extents: blocks::whole::<Cube>(),
            }),
            Spot::Apart(places) => places,
        }
    }
}
