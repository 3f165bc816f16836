//! From a stream of fixed rate to a grid of `f32`, eight 3-D blocks at a time, which are written where they belong if
//! they are in a row.

use super::columns::{self, BLOCKS, Columns, Copy, Destination};
use super::fours::{self, Run};
use crate::codec::zfp::Value;
use crate::codec::zfp::arch::{BATCH, Bmi};
use crate::codec::zfp::bits::bytes_of;
use crate::codec::zfp::blocks::{self, LINE, Place, Walk};
use crate::codec::zfp::range::{Aligned, DecodeTask};
use crate::codec::zfp::shape::Cube;
use crate::codec::zfp::transform::Header;
use crate::codec::zfp::value::Int;

/// Blocks whose planes are decoded together: more than are transformed together, as fewer go on to the end.
const MOST: usize = 4 * BLOCKS;

/// Decodes the first blocks of a task, if this is the way to; returns how many.
///
/// # Safety
/// As [`range::decode`](crate::codec::zfp::range::decode).
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
pub unsafe fn decode<T: Value, B: Bmi>(bmi: B, task: &DecodeTask<T>, block_bits: usize) -> usize {
    let usual = T::HEADER_BITS as usize..=fours::LONGEST;
    if !B::EXTRACTS || task.grid.dims != 3 || T::Int::BITS != 32 || !usual.contains(&block_bits) {
        return 0;
    }
    let task = DecodeTask {
        words: task.words,
        position: task.position,
        limits: task.limits,
        blocks: task.blocks.clone(),
        // The only value type of 32 bits.
        first: task.first.cast::<f32>(),
        grid: task.grid,
    };
    let mut walk = Walk::new::<Cube>(&task.grid, task.blocks.start);
    let mut spot = Spot::next(&task, &mut walk);
    let mut planes = Aligned([[0; 64]; BATCH]);
    let mut headers = [Header::ZEROS; MOST];
    let mut done = 0;
    loop {
        let mut run = Run {
            bytes: bytes_of(task.words),
            position: task.position + done * block_bits,
            block_bits,
            count: MOST,
        };
        let left = task.blocks.len() - done;
        if left < MOST || !run.is_amid() {
            run.count = BLOCKS;
        }
        if left < run.count {
            return done;
        }
        fours::decode::<f32>(run, bmi, &mut headers[..run.count], &mut planes.0);
        let headers = headers[..run.count].as_chunks::<BLOCKS>().0;
        for (headers, planes) in headers.iter().zip(columns::quarters(&mut planes.0)) {
            let this = std::mem::replace(&mut spot, Spot::next(&task, &mut walk));
            // SAFETY: the caller's promise, handed on.
            unsafe { this.put(&task, &headers.map(|header| header.bits), planes) };
        }
        done += run.count;
    }
}

/// Where eight blocks belong.
enum Spot {
    /// They are whole and next to each other along x, from this offset on.
    Row(isize),
    Apart([Place; BLOCKS]),
}

impl Spot {
    /// Goes on to the next eight blocks, and has what will be written fetched into the caches.
    #[inline]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
    fn next(task: &DecodeTask<f32>, walk: &mut Walk) -> Spot {
        let [along, strides @ ..] = task.grid.strides;
        let row = if along == 1 {
            walk.row::<Cube>(BLOCKS)
        } else {
            None
        };
        let Some(offset) = row else {
            return Spot::Apart(std::array::from_fn(|_| walk.step::<Cube>()));
        };
        for row in 0..16 {
            let [y, z] = [row % 4 * strides[0], row / 4 * strides[1]];
            let first = task.first.wrapping_offset(offset + y + z);
            for line in 1..=4 * BLOCKS * size_of::<f32>() / LINE {
                // (The values before it are in this line, or in one that was fetched for the row before.)
                let last = line * LINE / size_of::<f32>() - 1;
                blocks::prefetch_to_write(first.wrapping_add(last));
            }
        }
        Spot::Row(offset)
    }

    /// Writes the blocks to the grid.
    ///
    /// # Safety
    /// They must be writable.
    #[inline]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
    unsafe fn put(self, task: &DecodeTask<f32>, headers: &[u32; BLOCKS], planes: &mut Columns) {
        let [_, strides @ ..] = task.grid.strides;
        let places = match self {
            Spot::Row(offset) => {
                // SAFETY: the blocks are inside the grid, which the caller promised is writable.
                let row = unsafe { Destination::new(task.first.offset(offset), strides) };
                columns::inverse(headers, planes, row);
                return;
            }
            Spot::Apart(places) => places,
        };
        let mut copy = Copy::empty();
        columns::inverse(headers, planes, copy.destination());
        for (i, place) in places.into_iter().enumerate() {
            // SAFETY: `place` is a block of the grid, which the caller promised is writable.
            unsafe {
                let first = task.first.offset(place.offset);
                let strides = &task.grid.strides;
                blocks::scatter::<f32, Cube>(first, strides, place.extents, &copy.block(i));
            }
        }
    }
}
