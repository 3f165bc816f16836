//! Coefficients ↔ bit planes, by way of bytes of equal significance.
//!
//! The bytes of a kind go into coding order by byte shuffles; then eight bytes at a time are an 8×8 bit
//! matrix, whose transpose is a byte of each of eight bit planes.

use super::lifting::{Four, exchange_lanes, exchange64, transpose32};
use crate::codec::zfp::shape::{Cube, Shape, Square};
use std::arch::x86_64::*;

/// In each lane: the bytes of four coefficients by significance, the top ones first, then back.
const BY_SIGNIFICANCE: [u8; 16] = [3, 7, 11, 15, 2, 6, 10, 14, 1, 5, 9, 13, 0, 4, 8, 12];
const BY_ELEMENT: [u8; 16] = [12, 8, 4, 0, 13, 9, 5, 1, 14, 10, 6, 2, 15, 11, 7, 3];

/// In each lane: two groups of eight bytes, which are bits 0 to 7 of eight coefficients, become eight
/// pairs, the top bits first; and back.
const PAIRS: [u8; 16] = [7, 15, 6, 14, 5, 13, 4, 12, 3, 11, 2, 10, 1, 9, 0, 8];
const UNPAIRED: [u8; 16] = [14, 12, 10, 8, 6, 4, 2, 0, 15, 13, 11, 9, 7, 5, 3, 1];

/// The same byte shuffle in both lanes.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
pub fn shuffle(v: __m256i, order: &[u8; 16]) -> __m256i {
    // SAFETY: 16 readable bytes.
    let order = unsafe { _mm_loadu_si128(order.as_ptr().cast()) };
    _mm256_shuffle_epi8(v, _mm256_broadcastsi128_si256(order))
}

/// Of every eight bytes: bit `j` of byte `i` changes places with bit `i` of byte `j`.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
pub fn transpose_bits(v: __m256i) -> __m256i {
    let v = swap_bits::<7>(v, 0x00aa_00aa_00aa_00aa);
    let v = swap_bits::<14>(v, 0x0000_cccc_0000_cccc);
    swap_bits::<28>(v, 0x0000_0000_f0f0_f0f0)
}

/// The bits of `low` change places with those that are `DISTANCE` above them.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
fn swap_bits<const DISTANCE: i32>(v: __m256i, low: i64) -> __m256i {
    let differ = _mm256_xor_si256(v, _mm256_srli_epi64::<DISTANCE>(v));
    let swap = _mm256_and_si256(differ, _mm256_set1_epi64x(low));
    let v = _mm256_xor_si256(v, swap);
    _mm256_xor_si256(v, _mm256_slli_epi64::<DISTANCE>(swap))
}

/// Coefficients of 32 bits → in register `s`, their bytes of significance `s`, the top ones being the
/// first: byte 4 r + e of a lane is from element `e` of that lane of register `r`.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
pub fn by_significance(v: Four) -> Four {
    transpose32(four!(|i| lane_by_significance(v[i])))
}

/// In each lane: the bytes of four coefficients of 32 bits, the top ones of all first.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
pub fn lane_by_significance(v: __m256i) -> __m256i {
    shuffle(v, &BY_SIGNIFICANCE)
}

/// In each lane: the bytes of the low halves of two registers by turns, and those of the high halves.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
pub fn unpack8(a: __m256i, b: __m256i) -> [__m256i; 2] {
    [_mm256_unpacklo_epi8(a, b), _mm256_unpackhi_epi8(a, b)]
}

/// The inverse of [`by_significance`].
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
pub fn by_element(v: Four) -> Four {
    let v = transpose32(v);
    four!(|i| shuffle(v[i], &BY_ELEMENT))
}

/// A permutation of 64 bytes: for each 16 bytes that they come from, for each 32 that they go to.
pub struct Permutation([[[u8; 32]; 2]; 4]);

impl Permutation {
    /// Byte `i` of the result is byte `from[i]`.
    const fn new(from: [u8; 64]) -> Permutation {
        // A set top bit makes a zero.
        let mut shuffles = [[[0x80; 32]; 2]; 4];
        let mut i = 0;
        while i < 64 {
            shuffles[from[i] as usize / 16][i / 32][i % 32] = from[i] % 16;
            i += 1;
        }
        Permutation(shuffles)
    }

    /// Of sixteen bytes in both lanes of each register.
    #[inline]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
    fn apply(&self, parts: Four) -> [__m256i; 2] {
        [self.half(parts, 0), self.half(parts, 1)]
    }

    #[inline]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
    fn half(&self, parts: Four, half: usize) -> __m256i {
        let [a, b, c, d] = four!(|i| {
            // SAFETY: 32 readable bytes.
            let order = unsafe { _mm256_loadu_si256(self.0[i][half].as_ptr().cast()) };
            _mm256_shuffle_epi8(parts[i], order)
        });
        _mm256_or_si256(_mm256_or_si256(a, b), _mm256_or_si256(c, d))
    }
}

/// Both ways between the bytes of a 3-D block of `f64` as the transform leaves them and coding order; but the lowest three
/// bits of a coefficient's position say in which register, which half of a lane and which lane its byte is, the
/// others where in these eight bytes. So [`split_cube`] brings a plane together.
struct CubeOrder {
    to_coding: Permutation,
    from_coding: Permutation,
}

impl CubeOrder {
    /// The transform leaves the coefficient (x, y, z) at byte `x * strides[0] + ...`, where the two bits
    /// of each coordinate have strides of their own, the upper one's first.
    const fn new(strides: [[usize; 2]; 3]) -> CubeOrder {
        let (mut to_coding, mut from_coding) = ([0; 64], [0; 64]);
        let mut position = 0;
        while position < 64 {
            let coefficient = Cube::ORDER[position] as usize;
            let (mut place, mut axis) = (0, 0);
            while axis < 3 {
                let at = coefficient >> (2 * axis) & 3;
                place += at / 2 * strides[axis][0] + at % 2 * strides[axis][1];
                axis += 1;
            }
            let (register, half, lane) = (position & 1, position >> 1 & 1, position >> 2 & 1);
            let byte = 32 * register + 16 * lane + 8 * half + position / 8;
            to_coding[byte] = place as u8;
            from_coding[place] = byte as u8;
            position += 1;
        }
        CubeOrder {
            to_coding: Permutation::new(to_coding),
            from_coding: Permutation::new(from_coding),
        }
    }
}

/// After [`by_significance`] of registers [y / 2][z], lane x / 2, element (y % 2, x % 2).
static CUBE: CubeOrder = CubeOrder::new([[16, 1], [32, 2], [8, 4]]);

/// Bytes of equal significance of a 3-D block of `f64` → eight bit planes.
///
/// Where a bit is among 512 is a number of nine bits: three say which of its byte's it is, the others which
/// register, lane, half and byte. It takes one of the first three after the other to where planes are told apart.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
pub fn split_cube(bytes: &[u64; 8]) -> [__m256i; 2] {
    let sixteens = bytes.as_chunks::<2>().0;
    let parts = four!(|i| {
        // SAFETY: 16 readable bytes.
        let part = unsafe { _mm_loadu_si128(sixteens[i].as_ptr().cast()) };
        _mm256_broadcastsi128_si256(part)
    });
    let [a, b] = exchange_bits::<1>(CUBE.to_coding.apply(parts), 0x55);
    let [a, b] = exchange_bits::<2>(exchange64(a, b), 0x33);
    exchange_bits::<4>(exchange_lanes(a, b), 0x0f)
}

/// The inverse of [`split_cube`].
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
pub fn join_cube([a, b]: [__m256i; 2]) -> [__m256i; 2] {
    let [b, a] = exchange_bits::<4>([b, a], 0x0f);
    let [a, b] = exchange_lanes(a, b);
    let [b, a] = exchange_bits::<2>([b, a], 0x33);
    let [a, b] = exchange64(a, b);
    let [b, a] = exchange_bits::<1>([b, a], 0x55);
    CUBE.from_coding.apply([
        _mm256_permute2x128_si256::<0x00>(a, a),
        _mm256_permute2x128_si256::<0x11>(a, a),
        _mm256_permute2x128_si256::<0x00>(b, b),
        _mm256_permute2x128_si256::<0x11>(b, b),
    ])
}

/// In each byte: the bits of `low` of two registers become one register, the bits `DISTANCE` above them the other,
/// which is the first; those of the first register are at `low` then.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
pub fn exchange_bits<const DISTANCE: i32>([a, b]: [__m256i; 2], low: i8) -> [__m256i; 2] {
    let differ = _mm256_xor_si256(_mm256_srli_epi64::<DISTANCE>(a), b);
    let differ = _mm256_and_si256(differ, _mm256_set1_epi8(low));
    [
        _mm256_xor_si256(b, differ),
        _mm256_xor_si256(a, _mm256_slli_epi64::<DISTANCE>(differ)),
    ]
}

/// Coding position → index in a 2-D block.
const SQUARE: [u8; 16] = {
    let mut order = [0; 16];
    let mut position = 0;
    while position < 16 {
        order[position] = Square::ORDER[position];
        position += 1;
    }
    order
};

const SQUARE_BACK: [u8; 16] = {
    let mut back = [0; 16];
    let mut position = 0;
    while position < 16 {
        back[SQUARE[position] as usize] = position as u8;
        position += 1;
    }
    back
};

/// Bytes of equal significance of two 2-D blocks, a block a lane → eight bit planes of each.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
pub fn split_squares(bytes: __m256i) -> __m256i {
    shuffle(transpose_bits(shuffle(bytes, &SQUARE)), &PAIRS)
}

/// The inverse of [`split_squares`].
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
pub fn join_squares(planes: __m256i) -> __m256i {
    shuffle(transpose_bits(shuffle(planes, &UNPAIRED)), &SQUARE_BACK)
}
