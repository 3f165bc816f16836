//! The embedded decoder for 1-D blocks, eight blocks in lockstep, one in each 64-bit lane.
//!
//! Planes of zeros come first, a bit each, and are skipped at once. From then on at least one coefficient is
//! significant, a plane's tail is at most five bits of code, and it is looked up in a table in a register.

use super::bytes::Permutation;
use super::window::LANES;
use crate::codec::zfp::Value;
use crate::codec::zfp::arch::BATCH;
use crate::codec::zfp::bits::{low_bits, peek_word};
use crate::codec::zfp::planes::Planes;
use crate::codec::zfp::transform::{Headers, LowestExponent};
use crate::codec::zfp::value::Int;
use std::arch::x86_64::*;

/// Bits of the longest blocks that [`decode`] takes.
pub const LONGEST: usize = 256;

/// Bit planes of two groups of eight blocks: 16 planes of four bits to a word, a block to a lane.
pub type Words = [[__m512i; 4]; 2];

/// Headers and bit planes of `count` blocks of `bits` bits each, up to [`LONGEST`].
#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
pub fn decode<T: Value>(
    bytes: &[u8],
    position: usize,
    bits: usize,
    count: usize,
    headers: &mut Headers,
) -> Words {
    match bits {
        0..=64 => decode_words::<T, 1>(bytes, position, bits, count, headers),
        65..=128 => decode_words::<T, 2>(bytes, position, bits, count, headers),
        _ => decode_words::<T, 4>(bytes, position, bits, count, headers),
    }
}

#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
fn decode_words<T: Value, const C: usize>(
    bytes: &[u8],
    position: usize,
    bits: usize,
    count: usize,
    headers: &mut Headers,
) -> Words {
    let code = load::<C>(bytes, position, bits, count);
    let (halves, _) = headers.bits.as_chunks_mut::<LANES>();
    let mut first = Group::open::<T>(code[0], bits, &mut halves[0]);
    let mut second = Group::open::<T>(code[1], bits, &mut halves[1]);
    let mut words = [[_mm512_setzero_si512(); 4]; 2];
    'words: for word in 0..T::Int::BITS as usize / 16 {
        for quarter in 0..4 {
            let place = _mm_cvtsi64_si128(16 * quarter);
            let is_first = word == 0 && quarter == 0;
            for (group, words) in [&mut first, &mut second].into_iter().zip(&mut words) {
                let planes = _mm512_sll_epi64(group.four_planes(is_first), place);
                words[word] = _mm512_or_si512(words[word], planes);
            }
            if first.is_done() && second.is_done() {
                break 'words;
            }
        }
    }
    [first.place::<T>(words[0]), second.place::<T>(words[1])]
}

/// Eight blocks on their way.
struct Group<const C: usize> {
    /// What is left of each block's code, and the number of its bits.
    code: [__m512i; C],
    left: __m512i,
    significant: __m512i,
    /// Bits of the planes of zeros that come first, and of all planes.
    zero_bits: __m512i,
    plane_bits: __m512i,
}

impl<const C: usize> Group<C> {
    /// Takes the headers off.
    #[inline]
    #[target_feature(
        enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
    )]
    fn open<T: Value>(mut code: [__m512i; C], bits: usize, headers: &mut [u32; LANES]) -> Self {
        let header = _mm512_set1_epi64((1 << T::HEADER_BITS) - 1);
        let header = _mm512_and_si512(code[0], header);
        let coded = _mm512_test_epi64_mask(header, _mm512_set1_epi64(1));
        let header = _mm512_maskz_mov_epi64(coded, header);
        // SAFETY: 32 writable bytes.
        unsafe { _mm256_storeu_si256(headers.as_mut_ptr().cast(), _mm512_cvtepi64_epi32(header)) };
        let above = LowestExponent::NONE.planes_above::<T, crate::codec::zfp::shape::Line>();
        let planes = _mm512_add_epi64(
            _mm512_srli_epi64::<1>(header),
            _mm512_set1_epi64(above.into()),
        );
        let most = _mm512_set1_epi64(T::Int::BITS.into());
        let planes = _mm512_max_epi64(_mm512_min_epi64(planes, most), _mm512_setzero_si512());
        drop_bits(&mut code, _mm512_set1_epi64(T::HEADER_BITS.into()));
        let below = _mm512_add_epi64(code[0], _mm512_set1_epi64(-1));
        let zeros = _mm512_popcnt_epi64(_mm512_andnot_si512(code[0], below));
        drop_bits(&mut code, zeros);
        let left = _mm512_maskz_set1_epi64(coded, bits as i64 - i64::from(T::HEADER_BITS));
        Group {
            code,
            left: _mm512_subs_epu16(left, zeros),
            significant: _mm512_setzero_si512(),
            zero_bits: _mm512_slli_epi64::<2>(zeros),
            plane_bits: _mm512_maskz_slli_epi64::<2>(coded, planes),
        }
    }

    #[inline]
    #[target_feature(
        enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
    )]
    fn is_done(&self) -> bool {
        _mm512_test_epi64_mask(self.left, self.left) == 0
    }

    #[inline]
    #[target_feature(
        enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
    )]
    fn four_planes(&mut self, is_first: bool) -> __m512i {
        let a = if is_first {
            self.first_plane()
        } else {
            self.plane()
        };
        let (b, c, d) = (self.plane(), self.plane(), self.plane());
        let ab = _mm512_or_si512(a, _mm512_slli_epi64::<4>(b));
        let cd = _mm512_or_si512(c, _mm512_slli_epi64::<4>(d));
        _mm512_or_si512(ab, _mm512_slli_epi64::<8>(cd))
    }

    /// The first plane that is not all zeros.
    #[inline]
    #[target_feature(
        enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
    )]
    fn first_plane(&mut self) -> __m512i {
        let said = _mm512_srli_epi64::<1>(self.code[0]);
        let index = _mm512_and_si512(said, _mm512_set1_epi64(63));
        self.significant = look_up(&FIRST_REACH, index);
        self.take(look_up(&FIRST_LENGTH, index), look_up(&FIRST_BITS, index))
    }

    /// The next plane of each block.
    #[inline]
    #[target_feature(
        enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
    )]
    fn plane(&mut self) -> __m512i {
        let (here, before) = (self.code[0], self.significant);
        let tail = _mm512_srlv_epi64(here, before);
        let twice = _mm512_add_epi64(before, before);
        let mark = _mm512_srlv_epi64(_mm512_set1_epi64(128), twice);
        let said = _mm512_srlv_epi64(_mm512_set1_epi64(127), twice);
        let index = _mm512_ternarylogic_epi64::<A_AND_B_OR_C>(tail, said, mark);
        self.significant = _mm512_add_epi64(before, look_up(&REACH, index));
        let length = _mm512_add_epi64(before, look_up(&LENGTH, index));
        let bits = self.take(length, look_up(&BITS, index));
        let unknown = _mm512_sllv_epi64(_mm512_set1_epi64(-1), before);
        _mm512_ternarylogic_epi64::<A_NOT_B_OR_C>(here, unknown, bits)
    }

    /// Takes a plane's code, and gives the bits of its tail.
    #[inline]
    #[target_feature(
        enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
    )]
    fn take(&mut self, length: __m512i, bits: __m512i) -> __m512i {
        let over = _mm512_subs_epu16(length, self.left);
        self.left = _mm512_subs_epu16(self.left, length);
        drop_bits(&mut self.code, length);
        // A run of zeros that is cut ends in a one-bit where it is cut, and not in the last place.
        let last = _mm512_and_si512(bits, _mm512_set1_epi64(8));
        let last = _mm512_srlv_epi64(last, over);
        _mm512_ternarylogic_epi64::<A_AND_B_OR_C>(bits, _mm512_set1_epi64(7), last)
    }

    /// Moves the planes after the first ones, which are zeros, and drops those that are too many.
    #[inline]
    #[target_feature(
        enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
    )]
    fn place<T: Value>(&self, words: [__m512i; 4]) -> [__m512i; 4] {
        let count = T::Int::BITS as usize / 16;
        let mut placed = [_mm512_setzero_si512(); 4];
        for (to, placed) in placed.iter_mut().enumerate().take(count) {
            for (from, &word) in words.iter().enumerate().take(to + 1) {
                // A shift by less than nothing is one by very much.
                let between = _mm512_set1_epi64(64 * (to - from) as i64);
                let up = _mm512_sllv_epi64(word, _mm512_sub_epi64(self.zero_bits, between));
                let down = _mm512_srlv_epi64(word, _mm512_sub_epi64(between, self.zero_bits));
                let either = if to == from {
                    up
                } else {
                    _mm512_or_si512(up, down)
                };
                *placed = _mm512_or_si512(*placed, either);
            }
            let before = _mm512_set1_epi64(64 * to as i64);
            let there = _mm512_subs_epu16(self.plane_bits, before);
            let beyond = _mm512_sllv_epi64(_mm512_set1_epi64(-1), there);
            *placed = _mm512_andnot_si512(beyond, *placed);
        }
        placed
    }
}

/// Drops up to 63 bits from the front of each lane's code.
#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
fn drop_bits<const C: usize>(code: &mut [__m512i; C], count: __m512i) {
    for i in 0..C - 1 {
        code[i] = _mm512_shrdv_epi64(code[i], code[i + 1], count);
    }
    code[C - 1] = _mm512_srlv_epi64(code[C - 1], count);
}

/// The blocks' code, word by word, a block to a lane, with zeros after it.
#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
fn load<const C: usize>(
    bytes: &[u8],
    position: usize,
    bits: usize,
    count: usize,
) -> [[__m512i; C]; 2] {
    let mut words = [[_mm512_setzero_si512(); C]; 2];
    let whole = bytes.get(position / 8..).unwrap_or(&[]);
    let is_whole = count == BATCH && position.is_multiple_of(8);
    if is_whole
        && bits == 64
        && let Some(all) = whole.first_chunk::<128>()
    {
        // SAFETY: 128 readable bytes.
        unsafe {
            words[0][0] = _mm512_loadu_si512(all.as_ptr().cast());
            words[1][0] = _mm512_loadu_si512(all.as_ptr().add(64).cast());
        }
        return words;
    }
    if is_whole
        && bits == 32
        && let Some(all) = whole.first_chunk::<64>()
    {
        // SAFETY: 64 readable bytes.
        unsafe {
            words[0][0] = _mm512_cvtepu32_epi64(_mm256_loadu_si256(all.as_ptr().cast()));
            words[1][0] = _mm512_cvtepu32_epi64(_mm256_loadu_si256(all.as_ptr().add(32).cast()));
        }
        return words;
    }
    for (word, before) in (0..bits).step_by(64).enumerate() {
        let mut each = [0; BATCH];
        for (i, each) in each.iter_mut().enumerate().take(count) {
            let there = (bits - before).min(64) as u32;
            *each = peek_word(bytes, position + i * bits + before) & low_bits(there);
        }
        for (words, each) in words.iter_mut().zip(each.as_chunks::<LANES>().0) {
            // SAFETY: 64 readable bytes.
            words[word] = unsafe { _mm512_loadu_si512(each.as_ptr().cast()) };
        }
    }
    words
}

/// The entry of a table that the low byte of each lane names.
#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
fn look_up(table: &Permutation, index: __m512i) -> __m512i {
    _mm512_maskz_permutexvar_epi8(0x0101_0101_0101_0101, index, table.load())
}

/// Tails of planes when 1, 2 or 3 coefficients were significant before, by 5, 3 or 1 bits of code with a 1 above
/// them: how many more are so after it, the length of its code, and its bits.
static REACH: Permutation = table(0);
static LENGTH: Permutation = table(1);
static BITS: Permutation = table(2);

/// The same when none was, by the six bits after the first one, which is a 1.
static FIRST_REACH: Permutation = first_table(0);
static FIRST_LENGTH: Permutation = first_table(1);
static FIRST_BITS: Permutation = first_table(2);

const fn table(what: usize) -> Permutation {
    let mut entries = [0; 64];
    let mut index = 2;
    while index < 64usize {
        let shown = index.ilog2();
        if shown % 2 == 1 {
            let code = (index - (1 << shown)) as u32;
            let entry = if code & 1 == 1 {
                tail(4 - shown.div_ceil(2), code >> 1)
            } else {
                [0, 1, 0]
            };
            entries[index] = entry[what] as u8;
        }
        index += 1;
    }
    Permutation::of(entries)
}

const fn first_table(what: usize) -> Permutation {
    let mut entries = [0; 64];
    let mut code = 0;
    while code < 64 {
        entries[code] = tail(0, code as u32)[what] as u8;
        code += 1;
    }
    Permutation::of(entries)
}

/// The tail of a plane by the bits of code after its first one, a 1.
const fn tail(significant: u32, code: u32) -> [u32; 3] {
    let (mut n, mut length, mut bits) = (significant, 1, 0);
    loop {
        while n < 3 {
            let bit = code >> (length - 1) & 1;
            length += 1;
            if bit == 1 {
                break;
            }
            n += 1;
        }
        bits |= 1 << n;
        n += 1;
        if n == 4 {
            break;
        }
        let more = code >> (length - 1) & 1;
        length += 1;
        if more == 0 {
            break;
        }
    }
    [n - significant, length, bits]
}

// Functions of three bits for `ternarylogic`.
const A_AND_B_OR_C: i32 = 0xea;
const A_NOT_B_OR_C: i32 = 0xba;

/// The bit planes of sixteen blocks that were decoded otherwise.
#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
pub fn words_of(planes: &[Planes; BATCH]) -> Words {
    let (halves, _) = planes.as_chunks::<LANES>();
    std::array::from_fn(|half| {
        std::array::from_fn(|word| {
            let each: [u64; LANES] = std::array::from_fn(|lane| halves[half][lane][word]);
            // SAFETY: 64 readable bytes.
            unsafe { _mm512_loadu_si512(each.as_ptr().cast()) }
        })
    })
}
