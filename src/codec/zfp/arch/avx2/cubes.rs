//! The embedded coder of 3-D blocks, where bit extraction is quick.
//!
//! See [`crate::codec::zfp::encoder`] for the code. How many coefficients are significant after a plane follows
//! from the union of the planes, so that no plane waits for the code of another. To put a 1 after each one-bit,
//! the bits are moved apart, doubled, and the places that stayed empty are taken out again.

use super::bytes::CubeOrder;
use super::{cube_order, load, split_cube};
use crate::codec::zfp::Value;
use crate::codec::zfp::arch::BATCH;
use crate::codec::zfp::bits::low_bits;
use crate::codec::zfp::encoder::{BLOCK_WORDS, BlockBits, Pen};
use crate::codec::zfp::planes::Planes;
use crate::codec::zfp::shape::{Cube, Shape};
use crate::codec::zfp::transform::{Header, Headers};
use std::arch::x86_64::*;

/// [`crate::codec::zfp::arch::Arch::encode`], of bytes of equal significance.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
pub fn encode<T: Value>(
    headers: &Headers,
    planes: &mut [Planes; BATCH],
    budget: usize,
    coded: &mut [BlockBits; BATCH],
) {
    let order = cube_order::<T>();
    let mut leads = [Lead::NONE; Cube::BATCH];
    // Apart from the coder: it cannot foresee where a block ends, and then has to wait for all that it began with.
    for (i, (planes, lead)) in planes.iter_mut().zip(&mut leads).enumerate() {
        let count = headers.planes[i] as usize;
        for group in 0..usual_groups(count, budget) {
            split_cube(planes, group, order);
        }
        *lead = Lead::of(planes, count);
    }
    for (i, (lead, coded)) in leads.into_iter().zip(coded).enumerate() {
        let header = headers.get(i);
        if header.is_coded() {
            encode_block::<T>(header, &mut planes[i], lead, budget, coded);
        } else {
            coded.clear();
            coded.push(0, 1);
        }
    }
}

/// How often eight planes of `count` are made to begin with; mostly these are enough.
fn usual_groups(count: usize, budget: usize) -> usize {
    count.min(budget / 64 + 10).div_ceil(8)
}

/// Codes a block from its first planes on. (Not inlined: the coder needs all registers.)
#[inline(never)]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
fn encode_block<T: Value>(
    header: Header,
    planes: &mut Planes,
    lead: Lead,
    budget: usize,
    coded: &mut BlockBits,
) {
    let count = header.planes as usize;
    let mut planes = Supply {
        planes,
        order: cube_order::<T>(),
        ready: 8 * usual_groups(count, budget),
    };
    let start = Tip {
        position: T::HEADER_BITS as usize,
        at: 0,
        pending: header.bits.into(),
    };
    let mut coder = Coder {
        tip: start.push(&mut coded.words, lead.code, lead.length),
        words: &mut coded.words,
        budget,
        union: lead.union,
    };
    let mut k = lead.count;
    while k < count && coder.tip.position < budget {
        let some = planes.some(k, count);
        let done = coder.push_some(some);
        k += done;
        if let Some(&plane) = some.get(done)
            && coder.tip.position < budget
        {
            coder.push_long_plane(plane);
            k += 1;
        }
    }
    let tip = coder.tip;
    coded.pen = Pen {
        at: tip.at,
        pending: tip.pending,
        fill: (tip.position % 64) as u32,
    };
}

/// A block's bit planes, made as they are needed.
struct Supply<'a> {
    planes: &'a mut Planes,
    order: &'a CubeOrder,
    ready: usize,
}

impl Supply<'_> {
    /// Some planes from plane `k` on, which must be below `count`, those before it having been asked for.
    #[inline]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
    fn some(&mut self, k: usize, count: usize) -> &[u64] {
        if k >= self.ready {
            split_cube(self.planes, k / 8, self.order);
            self.ready += 8;
        }
        self.planes.get(k..count.min(self.ready)).unwrap_or(&[])
    }
}

/// A block that is being coded.
struct Coder<'a> {
    words: &'a mut [u64; BLOCK_WORDS],
    tip: Tip,
    budget: usize,
    /// Of the planes so far.
    union: u64,
}

impl Coder<'_> {
    /// Appends planes, until there is a long one or the budget is used up. Returns how many.
    #[inline]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
    fn push_some(&mut self, planes: &[u64]) -> usize {
        if self.union >> 63 == 0 {
            self.push_short_planes(planes)
        } else {
            self.push_known_planes(planes)
        }
    }

    /// As long as a code has no more than 64 bits and says no more than 32 coefficients.
    #[inline]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
    fn push_short_planes(&mut self, planes: &[u64]) -> usize {
        let (mut tip, mut union) = (self.tip, self.union);
        // How many coefficients are not significant.
        let mut room = union.leading_zeros() as usize;
        let mut done = 0;
        while done < planes.len() && tip.position < self.budget {
            let plane = planes[done];
            // (Shifts count modulo 64.)
            let significant = room.wrapping_neg() as u32;
            let rest = plane.wrapping_shr(significant);
            let ones = rest.count_ones() as usize;
            let now = (union | plane).leading_zeros() as usize;
            if ones >= now || room > now + 32 {
                break;
            }
            // The coefficients that were significant, a 1 for the first run, then all others; and after the last
            // one-bit, or instead of any, a 0.
            let last = ones.wrapping_sub(now);
            let code = (rest ^ (double(rest) << 1 | 1)).wrapping_shl(significant) ^ plane;
            let code = code ^ 1u64.wrapping_shl(last as u32);
            tip = tip.push(self.words, code, last.wrapping_add(65));
            union |= plane;
            room = now;
            done += 1;
        }
        (self.tip, self.union) = (tip, union);
        done
    }

    /// Once all coefficients are significant, a plane is its own code.
    #[inline(always)]
    fn push_known_planes(&mut self, planes: &[u64]) -> usize {
        let mut tip = self.tip;
        let mut done = 0;
        while done < planes.len() && tip.position < self.budget {
            tip = tip.push(self.words, planes[done], 64);
            done += 1;
        }
        self.tip = tip;
        done
    }

    /// Appends a plane that makes some coefficient significant.
    #[inline]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
    fn push_long_plane(&mut self, plane: u64) {
        let significant = 64 - self.union.leading_zeros() as usize;
        self.union |= plane;
        let now = 64 - self.union.leading_zeros() as usize;
        let known = plane & low_bits(significant as u32);
        self.push(known | 1 << significant, significant + 1);
        let (mut rest, mut reach) = (plane >> significant, now - significant);
        if reach > 32 {
            let low = rest & low_bits(32);
            self.push(double(low), 32 + low.count_ones() as usize);
            (rest, reach) = (rest >> 32, reach - 32);
        }
        let length = reach + rest.count_ones() as usize;
        // When nobody else is left to be the last one-bit, neither it nor the end is said.
        let said = if now == 64 { length - 2 } else { length };
        let end = if now == 64 { 0 } else { 1 << (length - 1) };
        self.push((double(rest) ^ end) & low_bits(said as u32), said);
    }

    #[inline(always)]
    fn push(&mut self, value: u64, count: usize) {
        self.tip = self.tip.push(self.words, value, count);
    }
}

/// The first planes, in which no coefficient but the first is not zero.
#[derive(Clone, Copy)]
struct Lead {
    count: usize,
    /// Their union.
    union: u64,
    code: u64,
    length: usize,
}

impl Lead {
    const NONE: Lead = Lead {
        count: 0,
        union: 0,
        code: 0,
        length: 0,
    };

    /// Those among eight planes and the first `count`.
    #[inline]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
    fn of(planes: &Planes, count: usize) -> Lead {
        let one = _mm256_set1_epi64x(1);
        let tops = |v| _mm256_movemask_pd(_mm256_castsi256_pd(v)) as u32;
        let only_first = |v| _mm256_cmpeq_epi64(_mm256_or_si256(v, one), one);
        let [a, b] = [0, 1].map(|half: usize| load(&planes.as_chunks::<4>().0[half]));
        let lead = (tops(only_first(a)) | tops(only_first(b)) << 4).trailing_ones();
        let lead = lead.min(count as u32);
        let firsts = tops(_mm256_slli_epi64::<63>(a)) | tops(_mm256_slli_epi64::<63>(b)) << 4;
        let firsts = firsts & ((1 << lead) - 1);
        let entry = LEADS[(firsts | 1 << lead) as usize % 512];
        Lead {
            count: lead as usize,
            union: u64::from(firsts != 0),
            code: (entry & 0xff_ffff).into(),
            length: (entry >> 24) as usize,
        }
    }
}

/// Where the next bit of a block goes.
#[derive(Clone, Copy)]
struct Tip {
    position: usize,
    /// The word that it lies in, and its bits so far.
    at: usize,
    pending: u64,
}

impl Tip {
    /// Appends `count` bits, at most 64; those of `value` above them must be zero.
    #[inline(always)]
    fn push(self, words: &mut [u64; BLOCK_WORDS], value: u64, count: usize) -> Tip {
        // (Shifts count modulo 64.)
        let fill = self.position as u32;
        let pending = self.pending | value.wrapping_shl(fill);
        if let Some(word) = words.get_mut(self.at) {
            *word = pending;
        }
        let carry = (value >> 1).wrapping_shr(!fill);
        let position = self.position.wrapping_add(count);
        let at = position / 64;
        Tip {
            position,
            at,
            // No branch: whether a word is full is anyone's guess.
            pending: std::hint::select_unpredictable(at == self.at, pending, carry),
        }
    }
}

/// Each one-bit followed by another 1. `bits` must be below 2^32.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
fn double(bits: u64) -> u64 {
    const EVEN: u64 = 0x5555_5555_5555_5555;
    let pairs = 3 * _pdep_u64(bits, EVEN);
    _pext_u64(pairs, pairs | EVEN)
}

/// The code of up to eight planes of zeros and ones, bits of the block's first coefficient, below a 1; its length
/// from bit 24 on.
static LEADS: [u32; 512] = leads();

const fn leads() -> [u32; 512] {
    let mut table = [0; 512];
    let mut i = 1u32;
    while i < 512 {
        let (mut code, mut length, mut significant) = (0, 0, false);
        let mut plane = 0;
        while plane < i.ilog2() {
            let bit = i >> plane & 1;
            if significant {
                code |= bit << length;
                length += 2;
            } else if bit == 1 {
                code |= 3 << length;
                length += 3;
                significant = true;
            } else {
                length += 1;
            }
            plane += 1;
        }
        table[i as usize] = code | length << 24;
        i += 1;
    }
    table
}
