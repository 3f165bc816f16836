//! The three block shapes: 4, 4×4 and 4×4×4 values.

/// A block's shape as a type, so that every loop over a block has a fixed length.
pub trait Shape: Copy + 'static {
    const DIMS: usize;
    /// Values in a block; also the bits of a bit plane.
    const SIZE: usize = 1 << (2 * Self::DIMS);
    /// Blocks that go through a stage together.
    const BATCH: usize;
    /// Coding position → index in the block (x fastest): low frequencies first, by the sum of the
    /// frequencies, then by the sum of their squares. The order among equals is part of the format.
    const ORDER: &'static [u8];
}

#[derive(Clone, Copy)]
pub struct Line;
#[derive(Clone, Copy)]
pub struct Square;
#[derive(Clone, Copy)]
pub struct Cube;

impl Shape for Line {
    const DIMS: usize = 1;
    const BATCH: usize = 16;
    const ORDER: &'static [u8] = &[0, 1, 2, 3];
}

impl Shape for Square {
    const DIMS: usize = 2;
    const BATCH: usize = 8;
    const ORDER: &'static [u8] = &[0, 1, 4, 5, 2, 8, 6, 9, 3, 12, 10, 7, 13, 11, 14, 15];
}

impl Shape for Cube {
    const DIMS: usize = 3;
    const BATCH: usize = 8;
    #[rustfmt::skip]
    const ORDER: &'static [u8] = &[
        0,
        1, 4, 16,
        20, 17, 5, 2, 8, 32,
        21, 6, 18, 24, 9, 33, 36, 3, 12, 48,
        22, 25, 37, 40, 34, 10, 7, 19, 28, 13, 49, 52,
        41, 38, 26, 23, 29, 53, 11, 35, 44, 14, 50, 56,
        42, 27, 39, 45, 30, 54, 57, 60, 51, 15,
        43, 46, 58, 61, 55, 31,
        62, 59, 47,
        63,
    ];
}

/// Index in a 3-D block → coding position: the inverse of its order.
#[cfg(target_arch = "x86_64")]
pub static CUBE_POSITIONS: [u8; 64] = {
    let mut positions = [0; 64];
    let mut position = 0;
    while position < 64 {
        positions[Cube::ORDER[position] as usize] = position as u8;
        position += 1;
    }
    positions
};
