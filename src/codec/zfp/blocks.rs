//! From a grid in memory to whole blocks and back.

use std::marker::PhantomData;

use super::shape::Shape;
use super::{Grid, Value};

/// Where one block lies in memory.
#[derive(Clone, Copy, Default)]
pub struct Place {
    /// Of the block's first value, counted in values from the grid's first.
    pub offset: isize,
    /// Values inside the grid along each axis, 1 to 4.
    pub extents: [u8; 3],
}

/// The blocks of a grid in stream order, from some block on.
pub struct Walk<'a> {
    grid: &'a Grid,
    /// The next block's first value, as an index into the grid.
    at: [usize; 3],
    place: Place,
}

impl<'a> Walk<'a> {
    /// Starts at block number `block`.
    pub fn new<S: Shape>(grid: &'a Grid, block: usize) -> Self {
        let columns = grid.extents[0].div_ceil(4).max(1);
        let rows = grid.extents[1].div_ceil(4).max(1);
        let at = [
            block % columns * 4,
            block / columns % rows * 4,
            block / columns / rows * 4,
        ];
        let mut walk = Walk {
            grid,
            at,
            place: Place::default(),
        };
        walk.locate::<S>();
        walk
    }

    /// The next block's first value, counted in values from the grid's first.
    #[inline(always)]
    pub fn offset(&self) -> isize {
        self.place.offset
    }

    /// The next block. The caller counts: past the last block the answer means nothing.
    #[inline(always)]
    pub fn step<S: Shape>(&mut self) -> Place {
        let place = self.place;
        self.at[0] += 4;
        self.place.offset += 4 * self.grid.strides[0];
        if self.at[0] + 4 > self.grid.extents[0] {
            self.turn::<S>();
        }
        place
    }

    /// Whether the next `count` blocks are whole ones in one row.
    #[inline(always)]
    pub fn is_row<S: Shape>(&self, count: usize) -> bool {
        self.at[0] + 4 * count <= self.grid.extents[0] && self.place.extents == whole::<S>()
    }

    /// As `count` steps, which [`Self::is_row`]: the first one's offset.
    #[inline(always)]
    pub fn row<S: Shape>(&mut self, count: usize) -> isize {
        let offset = self.place.offset;
        self.at[0] += 4 * count;
        self.place.offset += 4 * count as isize * self.grid.strides[0];
        if self.at[0] + 4 > self.grid.extents[0] {
            self.turn::<S>();
        }
        offset
    }

    /// The line of blocks along x that the next block is in, as its index along y and z.
    #[inline(always)]
    pub fn line(&self) -> [usize; 2] {
        [self.at[1], self.at[2]]
    }

    /// Where the line after that starts, counted in values from the grid's first. (Past the end of the grid if there is
    /// none.)
    pub fn next_line(&self) -> isize {
        let [mut y, mut z] = self.line();
        y += 4;
        if y >= self.grid.extents[1] {
            (y, z) = (0, z + 4);
        }
        let [_, along_y, along_z] = self.grid.strides;
        let z = along_z.wrapping_mul(z as isize);
        along_y.wrapping_mul(y as isize).wrapping_add(z)
    }

    /// At the last block of a row, and after it.
    #[inline(never)]
    fn turn<S: Shape>(&mut self) {
        for axis in 0..S::DIMS - 1 {
            if self.at[axis] >= self.grid.extents[axis] {
                self.at[axis] = 0;
                self.at[axis + 1] += 4;
            }
        }
        self.locate::<S>();
    }

    fn locate<S: Shape>(&mut self) {
        self.place.offset = 0;
        self.place.extents = [1; 3];
        for axis in 0..S::DIMS {
            let (at, extent) = (self.at[axis], self.grid.extents[axis]);
            self.place.offset += at as isize * self.grid.strides[axis];
            self.place.extents[axis] = extent.saturating_sub(at).min(4) as u8;
        }
    }
}

/// The extents of a block that lies wholly inside its grid.
#[inline(always)]
pub fn whole<S: Shape>() -> [u8; 3] {
    std::array::from_fn(|axis| if axis < S::DIMS { 4 } else { 1 })
}

/// Reads the block at `first` and pads it to a whole one.
///
/// # Safety
/// The values of the block inside the grid must be readable, and so must what lies between those of a row.
#[inline(always)]
pub unsafe fn gather<T: Value, S: Shape>(
    first: *const T,
    strides: &[isize; 3],
    extents: [u8; 3],
    block: &mut [T; 64],
) {
    let [nx, ny, nz] = extents.map(usize::from);
    for z in 0..nz {
        for y in 0..ny {
            let (row, at) = (
                first.wrapping_offset(index(0, y, z, strides)),
                16 * z + 4 * y,
            );
            // SAFETY: the row is inside the grid, and the caller promised that it is readable.
            unsafe {
                match (nx, strides[0]) {
                    (4, 1) => {
                        block[at..at + 4].copy_from_slice(&row.cast::<[T; 4]>().read_unaligned())
                    }
                    (4, 2) => block[at..at + 4].copy_from_slice(&every_other(row)),
                    (_, stride) => {
                        for (x, value) in block[at..at + nx].iter_mut().enumerate() {
                            *value = row.offset(x as isize * stride).read();
                        }
                    }
                }
            }
        }
    }
    if extents != whole::<S>() {
        pad::<T, S>(block, extents);
    }
}

/// Four values with another one after each but the last: real or imaginary parts, mostly. Compilers know how to read
/// seven at once and pick those.
///
/// # Safety
/// All seven values must be readable.
#[inline(always)]
unsafe fn every_other<T: Value>(row: *const T) -> [T; 4] {
    // SAFETY: the caller's promise.
    let [a, _, b, _, c, _, d] = unsafe { row.cast::<[T; 7]>().read_unaligned() };
    [a, b, c, d]
}

/// Writes the part of `block` that lies inside the grid.
///
/// # Safety
/// The values of the block inside the grid must be writable.
#[inline(always)]
pub unsafe fn scatter<T: Value, S: Shape>(
    first: *mut T,
    strides: &[isize; 3],
    extents: [u8; 3],
    block: &[T; 64],
) {
    if extents == whole::<S>() {
        for (i, row) in block.as_chunks::<4>().0[..S::SIZE / 4].iter().enumerate() {
            let offset = index(0, i % 4, i / 4, strides);
            // SAFETY: the row is inside the grid; the caller promised it is writable.
            unsafe { put_row(first.offset(offset), strides[0], row) };
        }
        return;
    }
    let [nx, ny, nz] = extents.map(usize::from);
    for z in 0..nz {
        for y in 0..ny {
            for x in 0..nx {
                let offset = index(x, y, z, strides);
                // SAFETY: (x, y, z) is inside the grid; the caller promised it is writable.
                unsafe { first.offset(offset).write(block[16 * z + 4 * y + x]) };
            }
        }
    }
}

/// Writes four values at this stride.
///
/// # Safety
/// Their places must be writable.
#[inline(always)]
unsafe fn put_row<T: Value>(first: *mut T, stride: isize, row: &[T; 4]) {
    // SAFETY: the caller's promise.
    unsafe {
        if stride == 1 {
            first.cast::<[T; 4]>().write_unaligned(*row);
        } else {
            first.write(row[0]);
            first.offset(stride).write(row[1]);
            first.offset(2 * stride).write(row[2]);
            first.offset(3 * stride).write(row[3]);
        }
    }
}

/// Where a value of a block is, counted in values from the block's first.
#[inline(always)]
pub fn index(x: usize, y: usize, z: usize, strides: &[isize; 3]) -> isize {
    x as isize * strides[0] + y as isize * strides[1] + z as isize * strides[2]
}

/// Fills a partial block: along x, then y, then z, each row past its end repeats its last value, and
/// its fourth value is its first.
fn pad<T: Value, S: Shape>(block: &mut [T; 64], extents: [u8; 3]) {
    let [nx, ny, nz] = extents.map(usize::from);
    for z in 0..nz {
        for y in 0..ny {
            pad_row(block, 16 * z + 4 * y, 1, nx);
        }
    }
    if S::DIMS > 1 {
        for z in 0..nz {
            for x in 0..4 {
                pad_row(block, 16 * z + x, 4, ny);
            }
        }
    }
    if S::DIMS > 2 {
        for column in 0..16 {
            pad_row(block, column, 16, nz);
        }
    }
}

fn pad_row<T: Value>(block: &mut [T; 64], first: usize, stride: usize, count: usize) {
    if count < 2 {
        block[first + stride] = block[first];
    }
    if count < 3 {
        block[first + 2 * stride] = block[first + stride];
    }
    if count < 4 {
        block[first + 3 * stride] = block[first];
    }
}

/// A whole block that can be read: values next to each other along x, other strides free.
///
/// Points either into the caller's grid or at a gathered copy.
#[derive(Clone, Copy)]
pub struct Source<'a, T> {
    first: *const T,
    /// Strides in y and z.
    strides: [isize; 2],
    readable: PhantomData<&'a T>,
}

impl<'a, T: Value> Source<'a, T> {
    /// # Safety
    /// The values of the block must be readable for `'a`.
    #[inline(always)]
    pub unsafe fn in_place(first: *const T, strides: [isize; 2]) -> Self {
        Source {
            first,
            strides,
            readable: PhantomData,
        }
    }

    /// The same blocks of the same values, called another type.
    ///
    /// # Safety
    /// `T` and `U` must be the same type.
    #[inline(always)]
    pub unsafe fn reinterpret<U, const N: usize>(sources: &[Self; N]) -> &[Source<'a, U>; N] {
        let sources: *const [Self; N] = sources;
        // SAFETY: the caller promised that the types are the same.
        unsafe { &*sources.cast() }
    }

    #[inline(always)]
    pub fn copied(block: &'a [T; 64]) -> Self {
        Source {
            first: block.as_ptr(),
            strides: [4, 16],
            readable: PhantomData,
        }
    }

    /// The four values at (0, y, z), for a block of shape `S`.
    #[inline(always)]
    pub fn row<S: Shape>(&self, y: usize, z: usize) -> &'a [T; 4] {
        // SAFETY: the row lies inside the block, which whoever made `self` promised is readable.
        unsafe { &*self.row_start::<S>(y, z).cast() }
    }

    #[inline(always)]
    fn row_start<S: Shape>(&self, y: usize, z: usize) -> *const T {
        assert!(4 * y + 16 * z < S::SIZE);
        let offset = y as isize * self.strides[0] + z as isize * self.strides[1];
        self.first.wrapping_offset(offset)
    }

    /// Whether each block follows the one before it along x, in the same rows.
    #[inline(always)]
    pub fn are_in_a_row(sources: &[Self]) -> bool {
        let first = &sources[0];
        (sources.iter().zip(0..)).all(|(source, i)| {
            source.first == first.first.wrapping_add(4 * i) && source.strides == first.strides
        })
    }

    /// [`Self::row`] of this block and those that follow it, `N` values.
    ///
    /// # Safety
    /// It must be the first of so many blocks that [`Self::are_in_a_row`].
    #[inline(always)]
    pub unsafe fn long_row<S: Shape, const N: usize>(&self, y: usize, z: usize) -> &'a [T; N] {
        // SAFETY: the rows of the blocks are readable and lie one after the other.
        unsafe { &*self.row_start::<S>(y, z).cast() }
    }

    #[inline(always)]
    pub fn read<S: Shape>(&self, block: &mut [T; 64]) {
        for (i, row) in block.chunks_exact_mut(4).take(S::SIZE / 4).enumerate() {
            row.copy_from_slice(self.row::<S>(i % 4, i / 4));
        }
    }
}

/// A whole block that can be written: values next to each other along x, other strides free.
///
/// Points either into the caller's grid or at a copy.
pub struct Target<'a, T> {
    first: *mut T,
    /// Strides in y and z.
    strides: [isize; 2],
    writable: PhantomData<&'a mut T>,
}

impl<'a, T: Value> Target<'a, T> {
    /// # Safety
    /// The values of the block must be writable for `'a`, and nobody else's.
    #[inline(always)]
    pub unsafe fn in_place(first: *mut T, strides: [isize; 2]) -> Self {
        Target {
            first,
            strides,
            writable: PhantomData,
        }
    }

    /// The same blocks of the same values, called another type.
    ///
    /// # Safety
    /// `T` and `U` must be the same type.
    #[inline(always)]
    pub unsafe fn reinterpret<'b, U, const N: usize>(
        targets: &'b mut [Self; N],
    ) -> &'b mut [Target<'a, U>; N] {
        let targets: *mut [Self; N] = targets;
        // SAFETY: the caller promised that the types are the same.
        unsafe { &mut *targets.cast() }
    }

    /// Copies that are written to instead of the grid.
    #[inline(always)]
    pub fn all_copied<const N: usize>(blocks: &'a mut [[T; 64]; N]) -> [Self; N] {
        let first = blocks.as_mut_ptr();
        std::array::from_fn(|i| Target {
            // SAFETY: `i` is the index of one of the blocks.
            first: unsafe { first.add(i).cast() },
            strides: [4, 16],
            writable: PhantomData,
        })
    }

    /// Whether each block follows the one before it along x, in the same rows.
    #[inline(always)]
    pub fn are_in_a_row(targets: &[Self; 4]) -> bool {
        let [first, ..] = targets;
        (targets.iter().zip(0..)).all(|(target, i)| {
            target.first == first.first.wrapping_add(4 * i) && target.strides == first.strides
        })
    }

    /// [`Self::row`] of this block and the three that follow it.
    ///
    /// # Safety
    /// It must be the first of four blocks that [`Self::are_in_a_row`].
    #[inline(always)]
    pub unsafe fn long_row<S: Shape>(&mut self, y: usize, z: usize) -> &mut [T; 16] {
        // SAFETY: the rows of the four blocks are writable and lie one after the other.
        unsafe { &mut *self.first.offset(self.row_offset::<S>(y, z)).cast() }
    }

    /// The four values at (0, y, z), for a block of shape `S`.
    #[inline(always)]
    pub fn row<S: Shape>(&mut self, y: usize, z: usize) -> &mut [T; 4] {
        // SAFETY: the row lies inside the block, which whoever made `self` promised is writable.
        unsafe { &mut *self.first.offset(self.row_offset::<S>(y, z)).cast() }
    }

    #[inline(always)]
    fn row_offset<S: Shape>(&self, y: usize, z: usize) -> isize {
        assert!(4 * y + 16 * z < S::SIZE);
        y as isize * self.strides[0] + z as isize * self.strides[1]
    }
}
