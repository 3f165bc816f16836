//! From a stream to a grid, sixteen blocks at a time.

use super::leads::FirstCoefficients;
use super::unlanes::{self, Group};
use super::unlines::Lines;
use super::unsquares;
use super::window::LANES;
use super::words::Blocks;
use super::{Avx512, double, single};
use crate::codec::zfp::Value;
use crate::codec::zfp::ahead::{self, Ahead, CACHE_LINE};
use crate::codec::zfp::arch::bmi2::Bmi2;
use crate::codec::zfp::arch::{Arch, BATCH};
use crate::codec::zfp::bits::bytes_of;
use crate::codec::zfp::blocks::{self, Place, Target, Walk};
use crate::codec::zfp::encoder::BLOCK_WORDS;
use crate::codec::zfp::planes::Planes;
use crate::codec::zfp::range::{self, Aligned, DecodeTask, Limits};
use crate::codec::zfp::shape::Shape;
use crate::codec::zfp::transform::{Headers, LowestExponent};
use crate::codec::zfp::value::Int;

/// [`range::decode`] for one shape.
///
/// # Safety
/// As there.
#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
pub unsafe fn decode<T: Value, S: Shape>(arch: Avx512, task: &DecodeTask<T>) -> usize {
    let (range, limits) = (task.blocks.clone(), task.limits);
    let bytes = bytes_of(task.words);
    let mut position = task.position;
    let mut walk = Walk::new::<S>(&task.grid, range.start);
    let mut headers = Headers::default();
    let mut planes = Aligned([[0; 64]; BATCH]);
    let mut lines = Lines::empty();
    let mut first = FirstCoefficients::zeros();
    let mut copies = [[T::default(); 64]; BATCH];
    let ahead = || Ahead::new::<S>(&task.grid, task.first);
    let mut ahead = (S::DIMS == 2).then(ahead).flatten();
    for batch in range.clone().step_by(BATCH) {
        let count = (range.end - batch).min(BATCH);
        if let Some(ahead) = &mut ahead {
            ahead.fetch_half::<S>(&walk, count);
        }
        let are_lines =
            short_lines::<T, S>(bytes, position, limits, count, &mut headers, &mut lines);
        position = match limits.block_bits {
            Some(bits) if are_lines => position + count * bits,
            Some(bits) if S::DIMS > 1 => {
                let blocks = Blocks {
                    bytes,
                    position,
                    bits,
                    count,
                };
                let bmi = arch.bmi();
                fixed::<T, S>(bmi, &blocks, &mut headers, &mut planes.0, &mut first)
            }
            _ => one_by_one::<T, S>(
                arch,
                bytes,
                position,
                limits,
                count,
                &mut headers,
                &mut planes.0,
            ),
        };
        if let Some(ahead) = &mut ahead {
            ahead.fetch_rest::<S>();
        }
        let mut places = [None; BATCH];
        let is_row = count == BATCH && task.grid.strides[0] == 1 && walk.is_row::<S>(count);
        let row = is_row.then(|| walk.row::<S>(count));
        let mut targets = match row {
            Some(offset) => {
                // SAFETY: the blocks are inside the grid, which the caller promised is writable.
                unsafe { row_of_targets(task, offset) }
            }
            None => Target::all_copied(&mut copies),
        };
        let apart = if row.is_some() { 0 } else { count };
        for (target, place) in targets.iter_mut().zip(&mut places).take(apart) {
            // SAFETY: the caller's promise, handed on.
            *place = unsafe { aim::<T, S>(task, walk.step::<S>(), target) };
        }
        if are_lines {
            inverse_lines::<T>(&lines, &mut targets);
        } else {
            inverse::<T, S>(&headers, &planes.0, &first, &mut targets);
        }
        for (place, copy) in places.iter().zip(&copies).take(apart) {
            if let Some((first, extents)) = *place {
                // SAFETY: the block is inside the grid, which the caller promised is writable.
                unsafe { blocks::scatter::<T, S>(first, &task.grid.strides, extents, copy) };
            }
        }
    }
    position
}

/// Blocks that are whole and lie next to each other along x, from the grid's value at `offset` on.
///
/// # Safety
/// Their values must be in the grid, and writable while the targets are.
#[inline(always)]
unsafe fn row_of_targets<'a, T: Value>(
    task: &DecodeTask<T>,
    offset: isize,
) -> [Target<'a, T>; BATCH] {
    let [_, strides @ ..] = task.grid.strides;
    std::array::from_fn(|i| {
        // SAFETY: the caller's promise, handed on.
        unsafe { Target::in_place(task.first.offset(offset + 4 * i as isize), strides) }
    })
}

/// Has a block decoded to where it belongs if it is whole and its rows are contiguous, else to a copy, and says
/// where that belongs.
///
/// # Safety
/// The values of the grid must be writable while the target is.
#[inline(always)]
unsafe fn aim<T: Value, S: Shape>(
    task: &DecodeTask<T>,
    place: Place,
    target: &mut Target<T>,
) -> Option<(*mut T, [u8; 3])> {
    let strides = task.grid.strides;
    // SAFETY: the block is inside the grid.
    let first = unsafe { task.first.offset(place.offset) };
    if place.extents != blocks::whole::<S>() || strides[0] != 1 {
        return Some((first, place.extents));
    }
    // SAFETY: the caller's promise, handed on.
    *target = unsafe { Target::in_place(first, [strides[1], strides[2]]) };
    None
}

/// Decodes up to sixteen runs of blocks of varying length side by side. Returns the position after each.
///
/// # Safety
/// As [`range::decode`], for every task; all are of the same stream and grid.
#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
pub unsafe fn decode_together<T: Value, S: Shape>(
    arch: Avx512,
    tasks: &[DecodeTask<T>],
) -> Vec<usize> {
    let Some(task) = tasks.first() else {
        return Vec::new();
    };
    let mut positions = [0; BATCH];
    for (position, task) in positions.iter_mut().zip(tasks) {
        *position = task.position;
    }
    let mut runs: Vec<Run> = tasks.iter().map(Run::new::<T, S>).collect();
    let mut headers = Headers::default();
    let mut planes = Aligned([[0; 64]; BATCH]);
    let first = FirstCoefficients::zeros();
    let mut copies = [[T::default(); 64]; BATCH];
    loop {
        let mut places = [None; BATCH];
        for (place, run) in places.iter_mut().zip(&mut runs) {
            *place = run.next::<S>();
        }
        let there = places.map(|place| place.is_some());
        if !there.contains(&true) {
            return positions[..tasks.len()].to_vec();
        }
        let mut lanes = Lanes {
            bytes: bytes_of(task.words),
            positions: &mut positions,
            there,
            lowest: task.limits.lowest,
        };
        lanes.decode::<T, S>(arch.bmi(), &mut headers, &mut planes.0);
        let mut copied = [None; BATCH];
        let mut targets = Target::all_copied(&mut copies);
        for ((target, copied), place) in targets.iter_mut().zip(&mut copied).zip(places) {
            if let Some(place) = place {
                // SAFETY: the caller's promise, handed on.
                *copied = unsafe { aim::<T, S>(task, place, target) };
            }
        }
        inverse::<T, S>(&headers, &planes.0, &first, &mut targets);
        for (copied, copy) in copied.iter().zip(&copies) {
            if let Some((first, extents)) = *copied {
                // SAFETY: the block is inside the grid, which the caller promised is writable.
                unsafe { blocks::scatter::<T, S>(first, &task.grid.strides, extents, copy) };
            }
        }
    }
}

/// A run of blocks.
struct Run<'a> {
    left: usize,
    walk: Walk<'a>,
}

impl<'a> Run<'a> {
    fn new<T: Value, S: Shape>(task: &'a DecodeTask<T>) -> Self {
        Run {
            left: task.blocks.len(),
            walk: Walk::new::<S>(&task.grid, task.blocks.start),
        }
    }

    /// The next block, if there is one.
    #[inline(always)]
    fn next<S: Shape>(&mut self) -> Option<Place> {
        self.left = self.left.checked_sub(1)?;
        Some(self.walk.step::<S>())
    }
}

#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
pub fn inverse<T: Value, S: Shape>(
    headers: &Headers,
    planes: &[Planes; BATCH],
    first: &FirstCoefficients,
    targets: &mut [Target<T>; BATCH],
) {
    // SAFETY: the only value type of 32 bits is `f32`, the only one of 64 `f64`.
    unsafe {
        if T::Int::BITS == 32 {
            single::inverse::<S>(headers, planes, first, Target::reinterpret(targets));
        } else {
            double::inverse::<S>(headers, planes, first, Target::reinterpret(targets));
        }
    }
}

#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
fn inverse_lines<T: Value>(lines: &Lines, targets: &mut [Target<T>; BATCH]) {
    // SAFETY: as in `inverse`.
    unsafe {
        if T::Int::BITS == 32 {
            single::inverse_lines(lines, Target::reinterpret(targets));
        } else {
            double::inverse_lines(lines, Target::reinterpret(targets));
        }
    }
}

/// Decodes `count` blocks if they are 1-D ones of equal length, and short.
#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
fn short_lines<T: Value, S: Shape>(
    bytes: &[u8],
    position: usize,
    limits: Limits,
    count: usize,
    headers: &mut Headers,
    lines: &mut Lines,
) -> bool {
    let Some(bits) = limits.block_bits.filter(|_| S::DIMS == 1) else {
        return false;
    };
    let blocks = Blocks {
        bytes,
        position,
        bits,
        count,
    };
    blocks.are_short() && lines.decode::<T>(&blocks, headers)
}

/// Headers and planes of `count` blocks, each after the one before.
#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
fn one_by_one<T: Value, S: Shape>(
    arch: Avx512,
    bytes: &[u8],
    position: usize,
    limits: Limits,
    count: usize,
    headers: &mut Headers,
    planes: &mut [Planes; BATCH],
) -> usize {
    let mut copy = [0; BLOCK_WORDS + 4];
    let planes = &mut planes[..count];
    let end = range::decode_blocks::<Avx512, T, S>(
        arch, bytes, position, limits, &mut copy, headers, planes,
    );
    headers.bits[count..].fill(0);
    end
}

/// Headers and planes of blocks, and what `first` has besides. Returns the position after them.
#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
)]
fn fixed<T: Value, S: Shape>(
    bmi: Bmi2,
    blocks: &Blocks,
    headers: &mut Headers,
    planes: &mut [Planes; BATCH],
    first: &mut FirstCoefficients,
) -> usize {
    blocks.fetch_next();
    match blocks.span() {
        _ if S::DIMS == 2 && blocks.are_short() => {
            *first = unsquares::decode::<T>(blocks, bmi, headers, planes);
        }
        0..=128 => blocks.decode::<T, S, 2, false>(bmi, headers, planes),
        129..=256 => blocks.decode::<T, S, 4, false>(bmi, headers, planes),
        257..=512 => blocks.decode::<T, S, 8, false>(bmi, headers, planes),
        _ => blocks.decode::<T, S, 8, true>(bmi, headers, planes),
    }
    blocks.position + blocks.count * blocks.bits
}

/// Where sixteen runs of blocks of varying length are.
struct Lanes<'a> {
    bytes: &'a [u8],
    /// The bit that the next block of each starts at,
    positions: &'a mut [usize; BATCH],
    /// if there is one.
    there: [bool; BATCH],
    lowest: LowestExponent,
}

impl Lanes<'_> {
    /// Headers and planes of the next block of each.
    #[inline]
    #[target_feature(
        enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
    )]
    fn decode<T: Value, S: Shape>(
        &mut self,
        bmi: Bmi2,
        headers: &mut Headers,
        planes: &mut [Planes; BATCH],
    ) {
        // Longer than any block; it ends when it has all its planes.
        const ENDLESS: usize = 1 << 32;
        let group = |first: usize| {
            let starts: [usize; LANES] = std::array::from_fn(|lane| self.positions[first + lane]);
            let ends = std::array::from_fn(|lane| {
                starts[lane] + if self.there[first + lane] { ENDLESS } else { 0 }
            });
            (starts, ends)
        };
        let lanes = [group(0), group(LANES)];
        let (halves, _) = headers.bits.as_chunks_mut::<LANES>();
        let mut group = |g: usize| {
            let (starts, ends) = &lanes[g];
            Group::<8>::open::<T, S>(self.bytes, starts, ends, self.lowest, &mut halves[g])
        };
        let (mut first, mut second) = (group(0), group(1));
        let mut groups = [&mut first, &mut second];
        headers.planes = unlanes::decode::<T, S, 8, true>(&mut groups, bmi, planes);
        let halves = self.positions.as_chunks_mut::<LANES>().0;
        for (positions, group) in halves.iter_mut().zip(&groups) {
            *positions = group.next();
        }
    }
}

impl Blocks<'_> {
    /// Has the blocks that follow, as many, fetched into the caches.
    #[inline(always)]
    fn fetch_next(&self) {
        let length = self.count * self.bits / 8;
        let next = self.bytes.as_ptr().wrapping_add(self.position / 8 + length);
        // (A longer block ends in zeros.)
        for i in (0..length.min(8 * BLOCK_WORDS * BATCH)).step_by(CACHE_LINE) {
            ahead::prefetch(next.wrapping_add(i));
        }
    }

    /// Where block `i` begins and ends; nowhere, if there is none.
    #[inline(always)]
    fn place(&self, i: usize) -> (usize, usize) {
        let start = self.position + i.min(self.count) * self.bits;
        (start, start + if i < self.count { self.bits } else { 0 })
    }

    #[inline]
    #[target_feature(
        enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,bmi1,bmi2,lzcnt,popcnt"
    )]
    fn decode<T: Value, S: Shape, const R: usize, const LONG: bool>(
        &self,
        bmi: Bmi2,
        headers: &mut Headers,
        planes: &mut [Planes; BATCH],
    ) {
        let (halves, _) = headers.bits.as_chunks_mut::<LANES>();
        let mut group = |g: usize| {
            let places = eight!(|lane| self.place(LANES * g + lane));
            let (starts, ends) = (eight!(|i| places[i].0), eight!(|i| places[i].1));
            let lowest = LowestExponent::NONE;
            Group::<R>::open::<T, S>(self.bytes, &starts, &ends, lowest, &mut halves[g])
        };
        let (mut first, mut second) = (group(0), group(1));
        let mut groups = [&mut first, &mut second];
        headers.planes = unlanes::decode::<T, S, R, LONG>(&mut groups, bmi, planes);
    }
}
