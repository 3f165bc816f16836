//! The embedded decoder for short 1-D blocks, sixteen blocks in lockstep, one in each 32-bit lane.
//!
//! Planes of zeros come first, a bit each, and are skipped at once: later the coefficients are shifted down instead.
//! From then on at least one coefficient is significant, a plane's tail is at most five bits of code, and it is looked
//! up in a table in a register.

use super::bytes::{Permutation, bytes_of_bits, join_line_words};
use super::shifts::trailing_zeros32;
use super::words::{Blocks, Words, block, block_of_lane};
use crate::codec::zfp::Value;
use crate::codec::zfp::arch::BATCH;
use crate::codec::zfp::planes::Planes;
use crate::codec::zfp::shape::Line;
use crate::codec::zfp::transform::Headers;
use crate::codec::zfp::value::Int;
use std::arch::x86_64::*;

/// Headers and bit planes of sixteen blocks, a block to a 32-bit lane; see [`block`].
pub struct Lines {
    pub headers: __m512i,
    /// The number of planes of each block,
    count: __m512i,
    /// and of those of zeros that come before the others.
    zeros: __m512i,
    /// Sixteen of the others at a time, of the blocks in the first two lanes of each four, and in the other two. Byte
    /// `c` of 64 bits has the first eight planes of coefficient `c`, byte `4 + c` the next eight.
    planes: [[__m512i; 2]; 4],
    /// The first so many of these have planes that are not zero.
    used: usize,
}

impl Lines {
    #[inline]
    #[target_feature(
        enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
    )]
    pub fn empty() -> Lines {
        let zero = _mm512_setzero_si512();
        Lines {
            headers: zero,
            count: zero,
            zeros: zero,
            planes: [[zero; 2]; 4],
            used: 0,
        }
    }

    /// Decodes blocks, unless one has more planes of zeros than any that was encoded.
    #[inline]
    #[target_feature(
        enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
    )]
    pub fn decode<T: Value>(&mut self, blocks: &Blocks, headers: &mut Headers) -> bool {
        match blocks.span() {
            0..=32 => self.decode_words::<T, 1>(blocks, headers),
            33..=64 => self.decode_words::<T, 2>(blocks, headers),
            65..=128 => self.decode_words::<T, 4>(blocks, headers),
            _ => self.decode_words::<T, 8>(blocks, headers),
        }
    }

    #[inline]
    #[target_feature(
        enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
    )]
    fn decode_words<T: Value, const C: usize>(
        &mut self,
        blocks: &Blocks,
        headers: &mut Headers,
    ) -> bool {
        let mut words = Words::<C>::open(blocks);
        [self.headers, self.count] = words.take_headers::<T, Line>(headers);
        let nothing = _mm512_testn_epi32_mask(words.code[0], words.code[0]);
        let word = _mm512_set1_epi32(32);
        if _mm512_mask_cmpgt_epi32_mask(nothing, words.left, word) != 0 {
            return false;
        }
        self.zeros = trailing_zeros32(words.code[0]);
        words.take(self.zeros);
        words.left = _mm512_maskz_mov_epi32(!nothing, words.left);
        let mut group = Group::open(words);
        self.used = 0;
        while self.used < T::Int::BITS as usize / 16 {
            self.planes[self.used] = group.sixteen_planes(self.used == 0);
            self.used += 1;
            if group.is_done() {
                break;
            }
        }
        true
    }

    /// Blocks that were decoded otherwise.
    #[inline]
    #[target_feature(
        enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
    )]
    pub fn of_planes(headers: &Headers, planes: &[Planes; BATCH]) -> Lines {
        let words = |word: usize, half: usize| {
            let each: [u64; 8] = std::array::from_fn(|i| {
                let lane = 4 * (i / 2) + 2 * half + i % 2;
                planes[block(lane)][word]
            });
            // SAFETY: 64 readable bytes.
            join_line_words(unsafe { _mm512_loadu_si512(each.as_ptr().cast()) })
        };
        // SAFETY: 64 readable bytes.
        let bits = unsafe { _mm512_loadu_si512(headers.bits.as_ptr().cast()) };
        Lines {
            headers: _mm512_permutexvar_epi32(block_of_lane(), bits),
            count: _mm512_set1_epi32(64),
            zeros: _mm512_setzero_si512(),
            planes: four!(|word| two!(|half| words(word, half))),
            used: 4,
        }
    }

    /// Coefficients of 32 bits.
    #[inline]
    #[target_feature(
        enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
    )]
    pub fn join32(&self) -> [__m512i; 4] {
        let v = self.join(0);
        let beyond = _mm512_srlv_epi32(_mm512_set1_epi32(-1), self.count);
        four!(|c| _mm512_andnot_si512(beyond, _mm512_srlv_epi32(v[c], self.zeros)))
    }

    /// Coefficients of 64 bits, of blocks in the first two lanes of each four, and in the other two.
    #[inline]
    #[target_feature(
        enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
    )]
    pub fn join64(&self) -> [[__m512i; 4]; 2] {
        let (high, low) = (self.join(0), self.join(2));
        let (zeros, count) = (widen(self.zeros), widen(self.count));
        two!(|half| {
            let beyond = _mm512_srlv_epi64(_mm512_set1_epi64(-1), count[half]);
            four!(|c| {
                let v = unpack(low[c], high[c])[half];
                _mm512_andnot_si512(beyond, _mm512_srlv_epi64(v, zeros[half]))
            })
        })
    }

    /// For each coefficient, 32 planes of all blocks, from plane `16 * first` on.
    #[inline]
    #[target_feature(
        enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
    )]
    fn join(&self, first: usize) -> [__m512i; 4] {
        if self.used <= first {
            return [_mm512_setzero_si512(); 4];
        }
        // For two blocks, two coefficients.
        let parts = two!(|half| {
            let upper = self.planes[first][half];
            if self.used == first + 1 {
                two!(|i| _mm512_shuffle_epi8(upper, UPPER[i].load()))
            } else {
                let lower = self.planes[first + 1][half];
                two!(|i| _mm512_permutex2var_epi8(upper, BOTH[i].load(), lower))
            }
        });
        [
            _mm512_unpacklo_epi64(parts[0][0], parts[1][0]),
            _mm512_unpackhi_epi64(parts[0][0], parts[1][0]),
            _mm512_unpacklo_epi64(parts[0][1], parts[1][1]),
            _mm512_unpackhi_epi64(parts[0][1], parts[1][1]),
        ]
    }
}

/// 32-bit lanes → 64-bit lanes, of the first two of each four, and of the other two.
#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
pub fn widen(v: __m512i) -> [__m512i; 2] {
    unpack(v, _mm512_setzero_si512())
}

#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
fn unpack(low: __m512i, high: __m512i) -> [__m512i; 2] {
    [
        _mm512_unpacklo_epi32(low, high),
        _mm512_unpackhi_epi32(low, high),
    ]
}

/// Blocks on their way.
struct Group<const C: usize> {
    words: Words<C>,
    /// The tail of the next plane's code, and ones where bits of it may be.
    tail: __m512i,
    shown: __m512i,
}

impl<const C: usize> Group<C> {
    #[inline]
    #[target_feature(
        enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
    )]
    fn open(words: Words<C>) -> Self {
        Group {
            tail: words.code[0],
            words,
            shown: _mm512_setzero_si512(),
        }
    }

    #[inline]
    #[target_feature(
        enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
    )]
    fn is_done(&self) -> bool {
        _mm512_test_epi32_mask(self.words.left, self.words.left) == 0
    }

    /// As in [`Lines`].
    #[inline]
    #[target_feature(
        enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
    )]
    fn sixteen_planes(&mut self, are_first: bool) -> [__m512i; 2] {
        let mut fours = [_mm512_setzero_si512(); 4];
        for (i, four) in fours.iter_mut().enumerate() {
            *four = self.four_planes(are_first && i == 0);
            if self.is_done() {
                break;
            }
        }
        let [a, b, c, d] = fours;
        let ac = _mm512_or_si512(a, _mm512_slli_epi32::<4>(c));
        let bd = _mm512_or_si512(b, _mm512_slli_epi32::<4>(d));
        let [first, others] = unpack(ac, bd);
        [bytes_of_bits(first), bytes_of_bits(others)]
    }

    /// Four planes of each block, a byte each.
    #[inline]
    #[target_feature(
        enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
    )]
    fn four_planes(&mut self, are_first: bool) -> __m512i {
        let a = if are_first {
            self.first_plane()
        } else {
            self.plane()
        };
        let (b, c, d) = (self.plane(), self.plane(), self.plane());
        let ab = _mm512_or_si512(a, _mm512_slli_epi32::<8>(b));
        let cd = _mm512_or_si512(c, _mm512_slli_epi32::<8>(d));
        _mm512_or_si512(ab, _mm512_slli_epi32::<16>(cd))
    }

    /// The first plane that is not all zeros.
    #[inline]
    #[target_feature(
        enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
    )]
    fn first_plane(&mut self) -> __m512i {
        let said = _mm512_srli_epi32::<1>(self.words.code[0]);
        let index = _mm512_and_si512(said, _mm512_set1_epi32(63));
        let low = 0x1111_1111_1111_1111;
        let look_up = |table: &Permutation| _mm512_maskz_permutexvar_epi8(low, index, table.load());
        self.shown = look_up(&FIRST_SHOWN);
        self.tail = _mm512_srlv_epi32(self.words.code[0], look_up(&FIRST_TO_TAIL));
        self.take(look_up(&FIRST_LENGTH), look_up(&FIRST_BITS))
    }

    /// The next plane of each block.
    #[inline]
    #[target_feature(
        enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
    )]
    fn plane(&mut self) -> __m512i {
        let here = self.words.code[0];
        let mark = _mm512_add_epi32(self.shown, _mm512_set1_epi32(1));
        let index = _mm512_ternarylogic_epi32::<A_AND_B_OR_C>(self.tail, self.shown, mark);
        // (The upper bytes of an index are zeros, and so are the first entries of tables.)
        let look_up = |table: &Permutation| _mm512_permutexvar_epi8(index, table.load());
        self.shown = look_up(&SHOWN);
        self.tail = _mm512_srlv_epi32(here, look_up(&TO_TAIL));
        let bits = self.take(look_up(&LENGTH), look_up(&BITS));
        _mm512_ternarylogic_epi32::<A_AND_B_OR_C>(here, look_up(&KNOWN), bits)
    }

    /// Takes a plane's code, and gives the bits of its tail.
    #[inline]
    #[target_feature(
        enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
    )]
    fn take(&mut self, length: __m512i, bits: __m512i) -> __m512i {
        let over = _mm512_subs_epu16(length, self.words.left);
        self.words.take(length);
        // A run of zeros that is cut ends in a one-bit where it is cut, and not in the last place.
        let last = _mm512_and_si512(bits, _mm512_set1_epi32(8));
        let last = _mm512_srlv_epi32(last, over);
        _mm512_ternarylogic_epi32::<A_AND_B_OR_C>(bits, _mm512_set1_epi32(7), last)
    }
}

/// Planes when 1, 2, 3 or 4 coefficients were significant before, by 5, 3, 1 or 0 bits of their tails with a 1 above
/// them.
static LENGTH: Permutation = table(Entry::Length);
static BITS: Permutation = table(Entry::Bits);
static KNOWN: Permutation = table(Entry::Known);
static SHOWN: Permutation = table(Entry::Shown);
static TO_TAIL: Permutation = table(Entry::ToTail);

/// The same when none was, by the six bits after the first one, which is a 1.
static FIRST_LENGTH: Permutation = first_table(Entry::Length);
static FIRST_BITS: Permutation = first_table(Entry::Bits);
static FIRST_SHOWN: Permutation = first_table(Entry::Shown);
static FIRST_TO_TAIL: Permutation = first_table(Entry::ToTail);

#[derive(Clone, Copy)]
enum Entry {
    /// Bits of code.
    Length,
    /// Bits of the tail of the plane.
    Bits,
    /// Ones for coefficients that were significant before.
    Known,
    /// Ones for the bits that the tail of the next plane may have.
    Shown,
    /// Bits of code to that.
    ToTail,
}

const fn table(entry: Entry) -> Permutation {
    let mut entries = [0; 64];
    let mut index = 1;
    while index < 64usize {
        let shown = index.ilog2();
        if shown == 0 {
            entries[index] = of_plane(entry, 4, [0, 0, 0]);
        } else if shown % 2 == 1 {
            let code = (index - (1 << shown)) as u32;
            let significant = 4 - shown.div_ceil(2);
            let tail = if code & 1 == 1 {
                tail(significant, code >> 1)
            } else {
                [0, 1, 0]
            };
            entries[index] = of_plane(entry, significant, tail);
        }
        index += 1;
    }
    Permutation::of(entries)
}

const fn first_table(entry: Entry) -> Permutation {
    let mut entries = [0; 64];
    let mut code = 0;
    while code < 64 {
        entries[code] = of_plane(entry, 0, tail(0, code as u32));
        code += 1;
    }
    Permutation::of(entries)
}

const fn of_plane(entry: Entry, significant: u32, [reach, length, bits]: [u32; 3]) -> u8 {
    let now = significant + reach;
    (match entry {
        Entry::Length => significant + length,
        Entry::Bits => bits,
        Entry::Known => (1 << significant) - 1,
        Entry::Shown => 127 >> (2 * now),
        Entry::ToTail => significant + length + now,
    }) as u8
}

/// The tail of a plane by the bits of code after its first one, a 1: how many more coefficients are significant after
/// it, the length of its code, and its bits.
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

/// In 128 bits: planes of two blocks → 32 bits each of the first two coefficients of both, and of the last two. The
/// bytes come from planes of the upper 16 bits and, for `BOTH`, of the lower ones.
static UPPER: [Permutation; 2] = [pick(0, 128), pick(2, 128)];
static BOTH: [Permutation; 2] = [pick(0, 64), pick(2, 64)];

const fn pick(first: usize, lower: usize) -> Permutation {
    let mut table = [0; 64];
    let mut i = 0;
    while i < 64 {
        let (lane, coefficient, element, byte) = (i / 16, first + i / 8 % 2, i / 4 % 2, i % 4);
        let from = 8 * element + coefficient + if byte % 2 == 0 { 4 } else { 0 };
        let lane = if lower == 64 { 16 * lane } else { 0 };
        let part = if byte < 2 { lower } else { 0 };
        table[i] = (lane + from + part) as u8;
        i += 1;
    }
    Permutation::of(table)
}
