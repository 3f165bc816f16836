//! The embedded coder of 3-D blocks, where bit extraction is quick.
//!
//! See [`crate::codec::zfp::encoder`] for the code. How many coefficients are significant after a plane follows
//! from the union of the planes, so that no plane waits for the code of another. To put a 1 after each one-bit,
//! the bits are moved apart, doubled, and the places that stayed empty are taken out again.

use super::columns;
use super::supply::Supply;
use crate::codec::zfp::Value;
use crate::codec::zfp::arch::BATCH;
use crate::codec::zfp::bits::low_bits;
use crate::codec::zfp::encoder::{BLOCK_WORDS, BlockBits, Pen};
use crate::codec::zfp::planes::Planes;
use crate::codec::zfp::shape::{Cube, Shape};
use crate::codec::zfp::transform::{Header, Headers};
use std::arch::x86_64::*;

/// [`crate::codec::zfp::arch::Arch::encode`].
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
pub fn encode<T: Value>(
    headers: &Headers,
    planes: &mut [Planes; BATCH],
    budget: usize,
    coded: &mut [BlockBits; BATCH],
) {
    let length = budget.div_ceil(64).min(BLOCK_WORDS);
    let mut supply = Supply::begun::<T>(planes, headers, usual(length));
    let leads = supply.leads::<T>();
    for (i, (coded, lead)) in coded.iter_mut().zip(leads).enumerate() {
        let header = headers.get(i);
        coded.clear();
        if header.is_coded() {
            let page = &mut coded.words[..length];
            coded.pen = encode_block::<T>(header, lead, &mut supply, i, page).pen();
        } else {
            coded.push(0, 1);
        }
    }
}

/// [`crate::codec::zfp::arch::Arch::encode_words`].
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
pub fn encode_words<T: Value>(headers: &Headers, planes: &mut [Planes; BATCH], words: &mut [u64]) {
    let length = words.len() / Cube::BATCH;
    let mut supply = Supply::begun::<T>(planes, headers, usual(length));
    let leads = supply.leads::<T>();
    for (i, (page, lead)) in words.chunks_exact_mut(length.max(1)).zip(leads).enumerate() {
        let header = headers.get(i);
        if header.is_coded() {
            encode_block::<T>(header, lead, &mut supply, i, page).close(page);
        } else {
            page.fill(0);
        }
    }
}

/// How many planes are made to begin with; mostly these are enough. (Apart from the coder: it cannot foresee where a
/// block ends, and then has to wait for all that it began with.)
fn usual(words: usize) -> usize {
    words + 10
}

/// Codes a block from its first planes on, until `page` is full. (Not inlined: the coder needs all registers.)
#[inline(never)]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
fn encode_block<T: Value>(
    header: Header,
    lead: u32,
    supply: &mut Supply,
    block: usize,
    page: &mut [u64],
) -> Tip {
    let count = header.planes;
    let lead = Lead::of(lead, count);
    let start = Tip {
        position: T::HEADER_BITS.into(),
        at: 0,
        pending: header.bits.into(),
    };
    let mut coder = Coder {
        tip: start.push(page, lead.code, lead.length),
        page,
        union: lead.union,
    };
    let mut k = lead.count as usize;
    while k < count as usize && !coder.is_full() {
        let planes = supply.planes::<T>(block, k, count as usize);
        coder.push_planes::<T>(planes);
        k += planes.len() / columns::stride::<T>();
    }
    coder.tip
}

/// A block that is being coded.
struct Coder<'a> {
    page: &'a mut [u64],
    tip: Tip,
    /// Of the planes so far.
    union: u64,
}

impl Coder<'_> {
    #[inline(always)]
    fn is_full(&self) -> bool {
        self.tip.at >= self.page.len()
    }

    /// Appends planes, [`columns::stride`] words apart, until the page is full.
    #[inline]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
    fn push_planes<T: Value>(&mut self, mut planes: &[u64]) {
        let stride = columns::stride::<T>();
        while self.union >> 63 == 0 {
            planes = self.push_short_planes(planes, stride);
            let Some(&plane) = planes.first() else {
                return;
            };
            if self.is_full() {
                return;
            }
            self.push_long_plane(plane);
            planes = planes.get(stride..).unwrap_or(&[]);
        }
        // Once all coefficients are significant, a plane is its own code.
        let mut tip = self.tip;
        let mut at = 0;
        while let Some(&plane) = planes.get(at)
            && tip.at < self.page.len()
        {
            tip = tip.push(self.page, plane, 64);
            at += stride;
        }
        self.tip = tip;
    }

    /// As long as a code has no more than 64 bits and says no more than 32 coefficients. Returns the planes that are
    /// left.
    #[inline]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
    fn push_short_planes<'p>(&mut self, planes: &'p [u64], stride: usize) -> &'p [u64] {
        let (mut tip, mut union) = (self.tip, self.union);
        // How many coefficients are not significant.
        let mut room = u64::from(union.leading_zeros());
        let mut at = 0;
        while let Some(&plane) = planes.get(at)
            && tip.at < self.page.len()
        {
            let significant = room.wrapping_neg();
            let rest = shr(plane, significant);
            let ones = u64::from(rest.count_ones());
            let next = union | plane;
            let now = u64::from(next.leading_zeros());
            if ones >= now || room > now + 32 {
                break;
            }
            // The coefficients that were significant, a 1 for the first run, then all others; and after the last
            // one-bit, or instead of any, a 0.
            let last = ones.wrapping_sub(now);
            let code = shl(rest ^ (double(rest) << 1 | 1), significant) ^ plane;
            tip = tip.push(self.page, code ^ shl(1, last), last.wrapping_add(65));
            union = next;
            room = now;
            at += stride;
        }
        (self.tip, self.union) = (tip, union);
        planes.get(at..).unwrap_or(&[])
    }

    /// Appends a plane that makes some coefficient significant.
    #[inline]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
    fn push_long_plane(&mut self, plane: u64) {
        let significant = 64 - self.union.leading_zeros();
        self.union |= plane;
        let now = 64 - self.union.leading_zeros();
        let known = plane & low_bits(significant);
        self.push(known | 1 << significant, significant + 1);
        let (mut rest, mut reach) = (plane >> significant, now - significant);
        if reach > 32 {
            let low = rest & low_bits(32);
            self.push(double(low), 32 + low.count_ones());
            (rest, reach) = (rest >> 32, reach - 32);
        }
        let length = reach + rest.count_ones();
        // When nobody else is left to be the last one-bit, neither it nor the end is said.
        let said = if now == 64 { length - 2 } else { length };
        let end = if now == 64 { 0 } else { 1 << (length - 1) };
        self.push((double(rest) ^ end) & low_bits(said), said);
    }

    #[inline(always)]
    fn push(&mut self, value: u64, count: u32) {
        self.tip = self.tip.push(self.page, value, count.into());
    }
}

/// The first planes, in which no coefficient but the first is not zero.
#[derive(Clone, Copy)]
struct Lead {
    count: u32,
    /// Their union.
    union: u64,
    code: u64,
    length: u64,
}

impl Lead {
    /// Those of them among the first `count`, given the bits of the first coefficient, below a 1.
    #[inline(always)]
    fn of(bits: u32, count: u32) -> Lead {
        let lead = bits.ilog2().min(count);
        let end = 1 << lead;
        let firsts = bits & (end - 1);
        let entry = LEADS[(firsts | end) as usize % 512];
        Lead {
            count: lead,
            union: u64::from(firsts != 0),
            code: (entry & 0xff_ffff).into(),
            length: (entry >> 24).into(),
        }
    }
}

/// Where the next bit of a block goes.
#[derive(Clone, Copy)]
struct Tip {
    position: u64,
    /// The word that it lies in, and its bits so far.
    at: usize,
    pending: u64,
}

impl Tip {
    fn pen(self) -> Pen {
        Pen {
            at: self.at,
            pending: self.pending,
            fill: (self.position % 64) as u32,
        }
    }

    /// Writes the last word, and zeros after it.
    fn close(self, page: &mut [u64]) {
        if let Some((word, rest)) = page.get_mut(self.at..).and_then(<[u64]>::split_first_mut) {
            *word = self.pending;
            rest.fill(0);
        }
    }

    /// Appends `count` bits, at most 64; those of `value` above them must be zero.
    #[inline(always)]
    fn push(self, page: &mut [u64], value: u64, count: u64) -> Tip {
        let pending = self.pending | shl(value, self.position);
        if let Some(word) = page.get_mut(self.at) {
            *word = pending;
        }
        let carry = shr(value >> 1, !self.position);
        let position = self.position.wrapping_add(count);
        let at = (position / 64) as usize;
        Tip {
            position,
            at,
            // No branch: whether a word is full is anyone's guess.
            pending: std::hint::select_unpredictable(at == self.at, pending, carry),
        }
    }
}

/// By a number of bits modulo 64.
#[inline(always)]
fn shl(value: u64, by: u64) -> u64 {
    value << (by & 63)
}

/// By a number of bits modulo 64.
#[inline(always)]
fn shr(value: u64, by: u64) -> u64 {
    value >> (by & 63)
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
static LEADS: [u32; 512] = lead_codes();

const fn lead_codes() -> [u32; 512] {
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
