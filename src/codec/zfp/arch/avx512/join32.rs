//! Bit planes → coefficients of 32 bits: transpose 8×8 bits at a time, and bring the bytes of each coefficient
//! together, in as many steps as there are planes for.

use super::bytes::{Permutation, bytes_of_bits, load_cube, load_pairs, whole_planes};
use crate::codec::zfp::planes::Planes;
use crate::codec::zfp::shape::{Cube, Shape, Square};
use std::arch::x86_64::*;

/// Coefficients of a 3-D block: (z), x in lanes, y in elements. All but the first `count` planes are zero.
#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
pub fn join_cube(planes: &Planes, count: u32) -> [__m512i; 4] {
    CUBE.join(count, |i| load_cube(planes, 8 * i))
}

/// Coefficients of four 2-D blocks: (y), blocks in lanes, x in elements. Only `count` planes from plane `first` on, a
/// multiple of 16, are not zero; those that follow up to the next multiple of eight, and 16 at least, must be there too.
#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
pub fn join_squares(planes: &[Planes; 4], first: usize, count: u32) -> [__m512i; 4] {
    SQUARE.join(count, |i| load_pairs(planes, first / 4 + 2 * i))
}

static CUBE: Join = Join::new(8, &cube_places());
static SQUARE: Join = Join::new(2, &square_places());

/// The tables of a shape.
struct Join {
    /// Eight planes → for each group of eight coefficients its bytes of them.
    groups: Permutation,
    /// Two bytes each of the coefficients of two registers, in order, from the lower bytes of all and the upper ones.
    pairs: [Permutation; 2],
    /// Coefficients from such upper halves and the bytes below them of all.
    lower: [Permutation; 4],
}

/// Coefficients from lower and upper halves of two registers of them.
static HALVES: [Permutation; 2] = [halves(0), halves(1)];
/// The same without lower halves, and what is there of them.
static UPPER: [Permutation; 2] = [upper(0), upper(1)];
const UPPER_BYTES: u64 = 0xcccc_cccc_cccc_cccc;

impl Join {
    /// For blocks of `groups` groups of coefficients, of which the `i`th belongs in element `places[i]` of the
    /// registers.
    const fn new(groups: usize, places: &[u8; 64]) -> Join {
        let mut coefficients = [0; 64];
        let mut i = 0;
        while i < 64 {
            coefficients[places[i] as usize] = i as u8;
            i += 1;
        }
        Join {
            groups: whole_planes(groups).inverse(),
            pairs: [pairs(&coefficients, 0), pairs(&coefficients, 1)],
            lower: [
                lower(&coefficients, 0),
                lower(&coefficients, 1),
                lower(&coefficients, 2),
                lower(&coefficients, 3),
            ],
        }
    }

    /// Coefficients from planes, of which `load` gives eight at a time.
    #[inline]
    #[target_feature(
        enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
    )]
    fn join(&self, count: u32, load: impl Fn(usize) -> __m512i) -> [__m512i; 4] {
        let byte = |i| bytes_of_bits(self.groups.apply(load(i)));
        let (a, b) = (byte(0), byte(1));
        let upper = [self.pair(0, b, a), self.pair(1, b, a)];
        if count <= 16 {
            return four!(|r| {
                let order = UPPER[r % 2].load();
                _mm512_maskz_permutexvar_epi8(UPPER_BYTES, order, upper[r / 2])
            });
        }
        let c = byte(2);
        if count <= 24 {
            return four!(|r| {
                let order = self.lower[r].load();
                _mm512_maskz_permutex2var_epi8(!0x1111_1111_1111_1111, c, order, upper[r / 2])
            });
        }
        let d = byte(3);
        let lower = [self.pair(0, d, c), self.pair(1, d, c)];
        four!(|r| _mm512_permutex2var_epi8(lower[r / 2], HALVES[r % 2].load(), upper[r / 2]))
    }

    #[inline]
    #[target_feature(
        enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
    )]
    fn pair(&self, i: usize, low: __m512i, high: __m512i) -> __m512i {
        _mm512_permutex2var_epi8(low, self.pairs[i].load(), high)
    }
}

const fn pairs(coefficients: &[u8; 64], half: usize) -> Permutation {
    let mut table = [0; 64];
    let mut i = 0;
    while i < 32 {
        table[2 * i] = coefficients[32 * half + i];
        table[2 * i + 1] = 64 + coefficients[32 * half + i];
        i += 1;
    }
    Permutation::of(table)
}

const fn lower(coefficients: &[u8; 64], register: usize) -> Permutation {
    let mut table = [0; 64];
    let mut i = 0;
    while i < 16 {
        let pair = 2 * (register % 2 * 16 + i);
        table[4 * i + 1] = coefficients[16 * register + i];
        table[4 * i + 2] = (64 + pair) as u8;
        table[4 * i + 3] = (64 + pair + 1) as u8;
        i += 1;
    }
    Permutation::of(table)
}

const fn halves(register: usize) -> Permutation {
    let mut table = [0; 64];
    let mut i = 0;
    while i < 64 {
        let byte = 2 * (16 * register + i / 4) + i % 2;
        table[i] = (i / 2 % 2 * 64 + byte) as u8;
        i += 1;
    }
    Permutation::of(table)
}

const fn upper(register: usize) -> Permutation {
    let mut table = [0; 64];
    let mut i = 0;
    while i < 64 {
        table[i] = (2 * (16 * register + i / 4) + i % 2) as u8;
        i += 1;
    }
    Permutation::of(table)
}

/// By coding position: value (x, y, z).
const fn cube_places() -> [u8; 64] {
    let mut places = [0; 64];
    let mut i = 0;
    while i < 64 {
        let value = Cube::ORDER[i];
        let (x, y, z) = (value % 4, value / 4 % 4, value / 16);
        places[i] = 16 * z + 4 * x + y;
        i += 1;
    }
    places
}

/// By block and coding position: value (x, y).
const fn square_places() -> [u8; 64] {
    let mut places = [0; 64];
    let mut i = 0;
    while i < 64 {
        let (block, value) = (i as u8 / 16, Square::ORDER[i % 16]);
        let (x, y) = (value % 4, value / 4);
        places[i] = 16 * y + 4 * block + x;
        i += 1;
    }
    places
}
