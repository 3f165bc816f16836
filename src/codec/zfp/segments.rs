//! A long stream of blocks of varying length in parts of as many blocks each. Who is told where they start can
//! decode them side by side.

use super::Grid;
use super::value::Value;
use std::ops::Range;

/// Parts of a stream.
pub const SEGMENTS: usize = 16;

/// The bits of each part of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segments(pub [u32; SEGMENTS]);

impl Segments {
    /// The fewest values of a grid for whose stream the parts are worth knowing: they take 64 bytes.
    const FEWEST: usize = 1 << 14;

    /// Whether it is known, of a grid's stream, where its parts start.
    pub fn are_known<T: Value>(grid: &Grid) -> bool {
        let longest = Self::blocks(grid, 0)
            .len()
            .saturating_mul(longest_block::<T>(grid.dims));
        grid.values() >= Self::FEWEST && u32::try_from(longest).is_ok()
    }

    /// The blocks of part `index`.
    pub fn blocks(grid: &Grid, index: usize) -> Range<usize> {
        let blocks = grid.blocks();
        let each = blocks.div_ceil(SEGMENTS);
        (index * each).min(blocks)..((index + 1) * each).min(blocks)
    }

    /// The bit that each part starts at.
    pub fn starts(&self) -> [usize; SEGMENTS] {
        let mut next = 0;
        self.0.map(|bits| {
            let start = next;
            next += bits as usize;
            start
        })
    }
}

/// A bound on the bits of a block: every bit of every plane, one more a plane, two more a coefficient.
pub fn longest_block<T: Value>(dims: u8) -> usize {
    let (size, planes) = (1 << (2 * dims), 8 * size_of::<T>());
    T::HEADER_BITS as usize + planes * (size + 1) + 2 * size
}
