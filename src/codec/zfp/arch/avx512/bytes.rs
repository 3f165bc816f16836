//! Coefficients ↔ bit planes: gather the bytes of equal significance, put them in coding order, and
//! transpose 8×8 bits at a time.
//!
//! Planes come out in the order of [`crate::codec::zfp::planes`]: the most significant first.

use super::later::BITS_OF_BYTES;
use super::lifting::{transpose_elements, transpose_lanes, transpose8};
use super::registers;
use crate::codec::zfp::arch::BATCH;
use crate::codec::zfp::planes::Planes;
use crate::codec::zfp::shape::{Cube, Shape, Square};
use std::arch::x86_64::*;

/// A byte permutation of one register.
#[repr(align(64))]
pub struct Permutation([u8; 64]);

impl Permutation {
    #[inline]
    #[target_feature(
        enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
    )]
    pub fn apply(&self, v: __m512i) -> __m512i {
        _mm512_permutexvar_epi8(self.load(), v)
    }

    #[inline]
    #[target_feature(
        enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
    )]
    pub fn load(&self) -> __m512i {
        // SAFETY: 64 readable bytes, aligned.
        unsafe { _mm512_load_si512(self.0.as_ptr().cast()) }
    }

    pub const fn of(bytes: [u8; 64]) -> Permutation {
        Permutation(bytes)
    }

    pub const fn inverse(&self) -> Permutation {
        let mut inverse = [0; 64];
        let mut i = 0;
        while i < 64 {
            inverse[self.0[i] as usize] = i as u8;
            i += 1;
        }
        Permutation(inverse)
    }
}

/// Element-wise bytes, `size` of them an element, to all top bytes, all second bytes, and so on.
const fn by_significance(size: usize) -> Permutation {
    let count = 64 / size;
    let mut table = [0; 64];
    let mut i = 0;
    while i < 64 {
        let (byte, element) = (i / count, i % count);
        table[i] = (element * size + size - 1 - byte) as u8;
        i += 1;
    }
    Permutation(table)
}

static BYTES32: Permutation = by_significance(4);
static BYTES64: Permutation = by_significance(8);
static WORDS64: Permutation = by_significance(8).inverse();

/// Where the transforms leave the bytes of equal significance of the values (x, y, z) of one block, or
/// (x, y) of four: the place of each, by its index in the block or blocks.
type Places = [u8; 64];

const SQUARE32: Places = places(Kind::Square32);
const CUBE64: Places = places(Kind::Cube64);
const SQUARE64: Places = places(Kind::Square64);

#[derive(Clone, Copy)]
enum Kind {
    Square32,
    Cube64,
    Square64,
}

const fn places(kind: Kind) -> Places {
    let mut places = [0; 64];
    let mut i = 0;
    while i < 64 {
        // The third axis, or the number of the block.
        let (x, y, z) = (i % 4, i / 4 % 4, i / 16);
        places[i] = match kind {
            Kind::Square32 => 16 * y + 4 * x + z,
            Kind::Cube64 => 8 * (4 * (y % 2) + z) + 4 * (y / 2) + x,
            Kind::Square64 => {
                8 * (4 * (z / 2) + 2 * (y % 2) + y / 2) + 4 * (x / 2) + 2 * (z % 2) + x % 2
            }
        } as u8;
        i += 1;
    }
    places
}

/// The value at a coding position of the block or blocks.
const fn ordered(position: usize, order: &[u8]) -> usize {
    position / order.len() * order.len() + order[position % order.len()] as usize
}

/// Places → coding order, each eight backwards, as the bit matrix transpose wants them.
const fn to_coding_order(places: Places, order: &[u8]) -> Permutation {
    let mut table = [0; 64];
    let mut p = 0;
    while p < 64 {
        table[p ^ 7] = places[ordered(p, order)];
        p += 1;
    }
    Permutation(table)
}

/// Coding order → places.
const fn from_coding_order(places: Places, order: &[u8]) -> Permutation {
    let mut table = [0; 64];
    let mut p = 0;
    while p < 64 {
        table[places[ordered(p, order)] as usize] = p as u8;
        p += 1;
    }
    Permutation(table)
}

/// Eight planes of each group of eight coefficients → whole planes, for blocks of `groups` groups.
pub const fn whole_planes(groups: usize) -> Permutation {
    let mut table = [0; 64];
    let mut i = 0;
    while i < 64 {
        let (block, plane, group) = (i / (8 * groups), i / groups % 8, i % groups);
        table[i] = (8 * (groups * block + group) + plane) as u8;
        i += 1;
    }
    Permutation(table)
}

static CUBE_PLANES: Permutation = whole_planes(8);
static SQUARE_PLANES: Permutation = whole_planes(2);
static CUBE_GROUPS: Permutation = whole_planes(8).inverse();

static SQUARE32_CODING: Permutation = to_coding_order(SQUARE32, Square::ORDER);
static CUBE64_CODING: Permutation = to_coding_order(CUBE64, Cube::ORDER);
static SQUARE64_CODING: Permutation = to_coding_order(SQUARE64, Square::ORDER);
static CUBE64_NATURAL: Permutation = from_coding_order(CUBE64, Cube::ORDER);

/// [`super::later::bits_of_bytes`] by the instruction.
#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
fn bits_of_bytes(v: __m512i) -> __m512i {
    _mm512_gf2p8affine_epi64_epi8::<0>(_mm512_set1_epi64(BITS_OF_BYTES), v)
}

/// The inverse of [`bits_of_bytes`], but that the eight bytes run forwards.
#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
pub fn bytes_of_bits(v: __m512i) -> __m512i {
    let unit = 0x8040_2010_0804_0201u64;
    _mm512_gf2p8affine_epi64_epi8::<0>(_mm512_set1_epi64(unit as i64), v)
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,bmi1,bmi2,lzcnt,popcnt")]
pub fn to_negabinary32(v: __m512i) -> __m512i {
    let odd_digits = _mm512_set1_epi32(0xaaaa_aaaau32 as i32);
    _mm512_xor_si512(_mm512_add_epi32(v, odd_digits), odd_digits)
}

#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
pub fn from_negabinary32(v: __m512i) -> __m512i {
    let odd_digits = _mm512_set1_epi32(0xaaaa_aaaau32 as i32);
    _mm512_sub_epi32(_mm512_xor_si512(v, odd_digits), odd_digits)
}

#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
pub fn to_negabinary64(v: __m512i) -> __m512i {
    let odd_digits = _mm512_set1_epi64(0xaaaa_aaaa_aaaa_aaaau64 as i64);
    _mm512_xor_si512(_mm512_add_epi64(v, odd_digits), odd_digits)
}

#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
pub fn from_negabinary64(v: __m512i) -> __m512i {
    let odd_digits = _mm512_set1_epi64(0xaaaa_aaaa_aaaa_aaaau64 as i64);
    _mm512_sub_epi64(_mm512_xor_si512(v, odd_digits), odd_digits)
}

/// Stores eight planes of a 3-D block, from word `at` on.
#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
fn store_cube(v: __m512i, at: usize, planes: &mut Planes) {
    let eight: &mut [u64; 8] = &mut planes.as_chunks_mut().0[at / 8];
    // SAFETY: 64 writable bytes.
    unsafe { _mm512_storeu_si512(eight.as_mut_ptr().cast(), v) }
}

#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
pub fn load_cube(planes: &Planes, at: usize) -> __m512i {
    let eight: &[u64; 8] = &planes.as_chunks().0[at / 8];
    // SAFETY: 64 readable bytes.
    unsafe { _mm512_loadu_si512(eight.as_ptr().cast()) }
}

/// Stores eight planes of each of four 2-D blocks, from word `at` on.
#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
fn store_squares(v: __m512i, at: usize, planes: &mut [Planes; 4]) {
    let lanes = registers::lanes_of(v);
    for (lane, planes) in lanes.into_iter().zip(planes) {
        let pair: &mut [u64; 2] = &mut planes.as_chunks_mut().0[at / 2];
        // SAFETY: 16 writable bytes.
        unsafe { _mm_storeu_si128(pair.as_mut_ptr().cast(), lane) }
    }
}

#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
pub fn load_pairs(planes: &[Planes; 4], at: usize) -> __m512i {
    let lanes = four!(|block| {
        let pair: &[u64; 2] = &planes[block].as_chunks().0[at / 2];
        // SAFETY: 16 readable bytes.
        unsafe { _mm_loadu_si128(pair.as_ptr().cast()) }
    });
    registers::of_lanes(lanes)
}

/// Element-wise coefficients of 32 bits → bytes of equal significance, the top ones first.
#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
fn by_significance32(v: [__m512i; 4]) -> [__m512i; 4] {
    transpose_lanes(four!(|i| BYTES32.apply(v[i])))
}

#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
fn by_significance64(v: [__m512i; 8]) -> [__m512i; 8] {
    transpose8(eight!(|i| BYTES64.apply(v[i])))
}

#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
fn by_element64(v: [__m512i; 8]) -> [__m512i; 8] {
    let v = transpose8(v);
    eight!(|i| WORDS64.apply(v[i]))
}

#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
pub fn split_squares32(v: [__m512i; 4], planes: &mut [Planes; 4]) {
    let v = by_significance32(v);
    for (i, v) in v.into_iter().enumerate() {
        let bits = bits_of_bytes(SQUARE32_CODING.apply(v));
        store_squares(SQUARE_PLANES.apply(bits), 2 * i, planes);
    }
}

#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
pub fn split_cube64(v: [__m512i; 8], planes: &mut Planes) {
    let v = by_significance64(v);
    for (i, v) in v.into_iter().enumerate() {
        let bits = bits_of_bytes(CUBE64_CODING.apply(v));
        store_cube(CUBE_PLANES.apply(bits), 8 * i, planes);
    }
}

#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
pub fn join_cube64(planes: &Planes, count: u32) -> [__m512i; 8] {
    by_element64(eight!(|i| {
        if count > 8 * i as u32 {
            let groups = CUBE_GROUPS.apply(load_cube(planes, 8 * i));
            CUBE64_NATURAL.apply(bytes_of_bits(groups))
        } else {
            _mm512_setzero_si512()
        }
    }))
}

#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
pub fn split_squares64(v: [__m512i; 8], planes: &mut [Planes; 4]) {
    let v = by_significance64(v);
    for (i, v) in v.into_iter().enumerate() {
        let bits = bits_of_bytes(SQUARE64_CODING.apply(v));
        store_squares(SQUARE_PLANES.apply(bits), 2 * i, planes);
    }
}

/// Stores 16 planes of each of eight 1-D blocks as the lane coder wants them: byte `j` of lane `i` has
/// plane `j` of block `i` in its low half and plane `8 + j` in its high half.
#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
fn store_lines(bytes: __m512i, word: usize, planes: &mut Planes) {
    store_cube(bits_of_bytes(bytes), 8 * word, planes);
}

/// Coefficients of sixteen 1-D blocks: block (l >= 2, ..) in lane order; see [`super::single`].
#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
pub fn split_lines32(v: [__m512i; 4], planes: &mut [Planes; BATCH]) {
    // Two top bytes of the four coefficients, backwards, then the two others.
    let pick = _mm512_broadcast_i32x4(_mm_setr_epi8(
        14, 10, 6, 2, 15, 11, 7, 3, 12, 8, 4, 0, 13, 9, 5, 1,
    ));
    let v = transpose_elements(v);
    let [a, b, c, d] = four!(|i| _mm512_shuffle_epi8(v[i], pick));
    store_lines(_mm512_unpacklo_epi64(a, b), 0, &mut planes[0]);
    store_lines(_mm512_unpackhi_epi64(a, b), 1, &mut planes[0]);
    store_lines(_mm512_unpacklo_epi64(c, d), 0, &mut planes[1]);
    store_lines(_mm512_unpackhi_epi64(c, d), 1, &mut planes[1]);
}

/// For each 64-bit element: the bytes of two registers' elements that `table` names, 8 to 15 being the
/// second's.
const fn pairs(table: [u8; 8]) -> Permutation {
    let mut bytes = [0; 64];
    let mut i = 0;
    while i < 64 {
        let byte = table[i % 8];
        bytes[i] = (i / 8 * 8) as u8 + byte % 8 + byte / 8 * 64;
        i += 1;
    }
    Permutation(bytes)
}

static TOP_BYTES: Permutation = pairs([14, 6, 15, 7, 12, 4, 13, 5]);
static LOW_BYTES: Permutation = pairs([10, 2, 11, 3, 8, 0, 9, 1]);
static FIRST_PAIRS: Permutation = pairs([0, 1, 8, 9, 2, 3, 10, 11]);
static LAST_PAIRS: Permutation = pairs([4, 5, 12, 13, 6, 7, 14, 15]);

/// Coefficients of eight 1-D blocks, a block an element.
#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
pub fn split_lines64([a, b, c, d]: [__m512i; 4], planes: &mut Planes) {
    for (i, bytes) in [&TOP_BYTES, &LOW_BYTES].into_iter().enumerate() {
        let ab = _mm512_permutex2var_epi8(a, bytes.load(), b);
        let cd = _mm512_permutex2var_epi8(c, bytes.load(), d);
        for (j, pairs) in [&FIRST_PAIRS, &LAST_PAIRS].into_iter().enumerate() {
            let bytes = _mm512_permutex2var_epi8(cd, pairs.load(), ab);
            store_lines(bytes, 2 * i + j, planes);
        }
    }
}

/// 16 planes of 1-D blocks, packed, a word an element → for each, the top bytes of its four coefficients,
/// then their second bytes.
#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
pub fn join_line_words(v: __m512i) -> __m512i {
    // Byte j: nibble j below nibble 8 + j.
    let low = _mm512_multishift_epi64_epi8(_mm512_set1_epi64(0x1c18_1410_0c08_0400), v);
    let high = _mm512_multishift_epi64_epi8(_mm512_set1_epi64(0x3834_302c_2824_201c), v);
    let nibble = _mm512_set1_epi8(0x0f);
    bytes_of_bits(_mm512_ternarylogic_epi64::<0xca>(nibble, low, high))
}
