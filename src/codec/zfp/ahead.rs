//! Has values fetched into the caches before it is their turn.
//!
//! The blocks of a grid in a line along x lie in many rows, each of which is left after a few cache lines: more
//! places, and of more pages, than a processor foresees. So while one line of blocks is coded the next one is fetched,
//! row by row as it lies in memory.

use super::blocks::Walk;
use super::shape::Shape;
use super::{Grid, Value};
use std::ops::Range;

/// Bytes of a cache line, on most machines.
pub const CACHE_LINE: usize = 64;

/// The longest line of blocks, in bytes, that a second-level cache holds with the next one and more besides.
const LONGEST: usize = 256 << 10;

/// Fetches the next line of blocks into the second-level cache.
pub struct Ahead<'a, T> {
    grid: &'a Grid,
    /// The grid's first value.
    first: *const T,
    /// Cache lines to a row, and those to fetch for a block that is coded.
    row_length: usize,
    share: usize,
    /// The line that is coded, by the index of its blocks along y and z.
    line: [usize; 2],
    /// The first value of the next line, and what is left to fetch of it: rows from `row` on, of that one cache lines from
    /// `column` on.
    next: *const T,
    row: usize,
    column: usize,
    /// Cache lines that are to be fetched.
    due: usize,
}

impl<'a, T: Value> Ahead<'a, T> {
    /// Nothing if there is no gain: in 1-D, or if rows are not contiguous, or too long.
    pub fn new<S: Shape>(grid: &'a Grid, first: *const T) -> Option<Self> {
        let row_bytes = grid.extents[0].saturating_mul(size_of::<T>());
        let row_length = row_bytes.div_ceil(CACHE_LINE);
        let lines = rows::<S>().saturating_mul(row_length);
        let pays = lines > 0 && grid.strides[0] == 1 && lines <= LONGEST / CACHE_LINE;
        pays.then(|| Ahead {
            grid,
            first,
            row_length,
            share: lines.div_ceil(grid.extents[0].div_ceil(4).max(1)),
            line: [usize::MAX; 2],
            next: first,
            row: 0,
            column: 0,
            due: 0,
        })
    }

    /// A share of the next line is due, as the walk is about to go on by `blocks` blocks. The first half of it is
    /// fetched; the rest is for [`Self::fetch_rest`]: a processor cannot wait for all at once and do other work.
    #[inline(always)]
    pub fn fetch_half<S: Shape>(&mut self, walk: &Walk, blocks: usize) {
        if walk.line() != self.line {
            self.fetch_rest::<S>();
            self.turn(walk);
        }
        self.due += self.share * blocks;
        self.fetch::<S>(self.due / 2);
    }

    /// Fetches what is due.
    #[inline(always)]
    pub fn fetch_rest<S: Shape>(&mut self) {
        self.fetch::<S>(self.due);
    }

    /// Fetches `count` cache lines, or as many as are left.
    #[inline(always)]
    fn fetch<S: Shape>(&mut self, count: usize) {
        let mut left = count;
        self.due -= count;
        while left > 0 && self.row < rows::<S>() {
            let row = row_of(self.next, &self.grid.strides, self.row);
            let count = left.min(self.row_length - self.column);
            for column in self.column..self.column + count {
                prefetch_far(row.wrapping_byte_add(CACHE_LINE * column));
            }
            left -= count;
            self.column += count;
            if self.column == self.row_length {
                self.column = 0;
                self.row += 1;
            }
        }
    }

    #[inline(never)]
    fn turn(&mut self, walk: &Walk) {
        self.line = walk.line();
        self.next = self.first.wrapping_offset(walk.next_line());
        self.row = 0;
        self.column = 0;
    }
}

/// Has `length` values of some of the [`rows`] of a block fetched. They need not be there.
#[inline(always)]
pub fn prefetch_rows<T: Value>(
    first: *const T,
    strides: &[isize; 3],
    rows: Range<usize>,
    length: usize,
) {
    for row in rows {
        let first = row_of(first, strides, row);
        let line = CACHE_LINE / size_of::<T>();
        for i in (0..length).step_by(line) {
            // The last of so many values: if rows do not start with a cache line, the first ones' was fetched for the
            // blocks before.
            prefetch(first.wrapping_add(length.min(i + line) - 1));
        }
    }
}

/// Rows of a block, and so of a line of blocks; none in 1-D, as there a processor foresees what comes.
pub const fn rows<S: Shape>() -> usize {
    if S::DIMS > 1 { S::SIZE / 4 } else { 0 }
}

/// Where a row starts of those that start with `first`.
#[inline(always)]
fn row_of<T>(first: *const T, [_, y, z]: &[isize; 3], row: usize) -> *const T {
    let (along_y, along_z) = ((row % 4) as isize, (row / 4) as isize);
    first
        .wrapping_offset(y.wrapping_mul(along_y))
        .wrapping_offset(z.wrapping_mul(along_z))
}

/// Has the cache line of an address fetched, which need not be ours.
#[inline(always)]
pub fn prefetch<T>(at: *const T) {
    fetch_line::<T, false>(at);
}

/// As [`prefetch`], into the second-level cache only.
#[inline(always)]
pub fn prefetch_far<T>(at: *const T) {
    fetch_line::<T, true>(at);
}

#[inline(always)]
fn fetch_line<T, const FAR: bool>(at: *const T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _MM_HINT_T1, _mm_prefetch};
        // SAFETY: any address may be asked for.
        unsafe {
            match FAR {
                true => _mm_prefetch::<_MM_HINT_T1>(at.cast()),
                false => _mm_prefetch::<_MM_HINT_T0>(at.cast()),
            }
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::zfp::shape::{Cube, Square};

    /// Codes a grid by sixteen blocks; before each line but the first all of it must have been fetched.
    fn lines_are_fetched<S: Shape>(nx: usize) {
        let grid = Grid {
            dims: S::DIMS as u8,
            extents: [nx, 12, if S::DIMS == 3 { 8 } else { 1 }],
            strides: [1, nx as isize, 12 * nx as isize],
        };
        let mut ahead = Ahead::new::<S>(&grid, std::ptr::null::<f32>()).unwrap();
        let mut walk = Walk::new::<S>(&grid, 0);
        for block in 0..grid.blocks() {
            let line = walk.line();
            if block % 16 == 8 {
                ahead.fetch_rest::<S>();
            }
            ahead.fetch_half::<S>(&walk, 1);
            walk.step::<S>();
            if walk.line() != line {
                ahead.fetch_rest::<S>();
                assert_eq!((ahead.row, ahead.column), (rows::<S>(), 0), "{nx}");
            }
        }
    }

    #[test]
    fn a_line_of_blocks_is_fetched_before_its_turn() {
        for nx in [1, 4, 7, 16, 64, 216, 500, 2000] {
            lines_are_fetched::<Square>(nx);
            lines_are_fetched::<Cube>(nx);
        }
    }

    #[test]
    fn what_has_no_rows_or_too_long_ones_is_left_alone() {
        let grid = |nx: usize, along_x| Grid {
            dims: 3,
            extents: [nx, 8, 8],
            strides: [along_x, 3 * nx as isize, 24 * nx as isize],
        };
        let first = std::ptr::null::<f32>();
        assert!(Ahead::new::<Cube>(&grid(100, 1), first).is_some());
        assert!(Ahead::new::<Cube>(&grid(100, 3), first).is_none());
        assert!(Ahead::new::<Cube>(&grid(1 << 20, 1), first).is_none());
    }
}
