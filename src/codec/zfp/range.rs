//! Codes a range of one grid's blocks: gather, transform, code, append; and back.

use super::ahead::{self, Ahead};
use super::arch::{Arch, BATCH};
use super::bits::{BitWriter, bytes_of, low_bits, peek, peek_word};
use super::blocks::{self, Place, Source, Walk};
use super::encoder::{BLOCK_WORDS, BlockBits};
use super::planes::Planes;
use super::shape::{Cube, Line, Shape, Square};
use super::transform::{Header, Headers, LowestExponent};
use super::value::Int;
use super::{Grid, Mode, Value};
use std::ops::Range;

/// A mode, ready for use.
#[derive(Clone, Copy)]
pub struct Limits {
    /// Bits of every block at fixed rate.
    pub block_bits: Option<usize>,
    pub lowest: LowestExponent,
    /// Blocks below 2 to this power are encoded as zeros.
    pub quiet: Option<i32>,
}

impl Limits {
    pub fn of(mode: Mode) -> Limits {
        match mode {
            Mode::Rate { block_bits } => Limits {
                block_bits: Some(block_bits as usize),
                lowest: LowestExponent::NONE,
                quiet: None,
            },
            Mode::Accuracy { tolerance } => Limits {
                block_bits: None,
                lowest: LowestExponent::of_tolerance(tolerance),
                quiet: None,
            },
            Mode::Bound { exponent, quiet } => Limits {
                block_bits: None,
                lowest: LowestExponent::of_power(exponent),
                quiet: Some(quiet),
            },
        }
    }
}

/// Something on whole cache lines: stores across two of them are slow.
#[repr(align(64))]
pub struct Aligned<T>(pub T);

/// Blocks to encode.
pub struct EncodeTask<T> {
    /// The grid's first value.
    pub first: *const T,
    pub grid: Grid,
    pub blocks: Range<usize>,
    pub limits: Limits,
}

/// Encodes blocks and appends them to `writer`. Returns how many of them hold a NaN or an infinity.
///
/// # Safety
/// The values of the grid must be readable.
#[inline(always)]
pub unsafe fn encode<A: Arch, T: Value>(
    arch: A,
    task: &EncodeTask<T>,
    writer: &mut BitWriter,
) -> usize {
    // SAFETY: the caller's promise, handed on.
    unsafe {
        match task.grid.dims {
            1 => encode_shape::<A, T, Line>(arch, task, writer),
            2 => encode_shape::<A, T, Square>(arch, task, writer),
            _ => encode_shape::<A, T, Cube>(arch, task, writer),
        }
    }
}

/// # Safety
/// As [`encode`].
#[inline(always)]
unsafe fn encode_shape<A: Arch, T: Value, S: Shape>(
    arch: A,
    task: &EncodeTask<T>,
    writer: &mut BitWriter,
) -> usize {
    let (range, limits) = (task.blocks.clone(), task.limits);
    let mut walk = Walk::new::<S>(&task.grid, range.start);
    let mut copies = [[T::default(); 64]; BATCH];
    let mut headers = Headers::default();
    let mut planes = Aligned([[0; 64]; BATCH]);
    let mut coded = [const { BlockBits::EMPTY }; BATCH];
    let budget = limits.block_bits.unwrap_or(usize::MAX);
    // Where every block is whole words or a half, and not longer than one can be.
    let are_words = |bits: &usize| bits.is_multiple_of(32) && *bits <= 64 * BLOCK_WORDS;
    let halves_of_block = limits.block_bits.filter(are_words).map(|bits| bits / 32);
    let mut nonfinite = 0;
    let in_batch = |batch: usize| range.end.saturating_sub(batch).min(A::blocks::<T, S>());
    let mut places = Places::new::<A, S>(task);
    places.look_ahead::<A, S>(task, &mut walk, in_batch(range.start));
    for batch in range.clone().step_by(A::blocks::<T, S>()) {
        let count = in_batch(batch);
        // SAFETY: the caller promised that the grid's values are readable.
        let sources = unsafe { places.find::<A, S>(task, count, &mut copies) };
        places.look_ahead::<A, S>(task, &mut walk, in_batch(batch + A::blocks::<T, S>()));
        nonfinite += arch.forward::<T, S>(&sources, limits.lowest, &mut headers, &mut planes.0);
        places.fetch_rest::<A, S>(task);
        if let Some(quiet) = limits.quiet {
            headers.silence(quiet + T::BIAS);
        }
        if let Some(length) = halves_of_block.filter(|_| count == A::blocks::<T, S>())
            && let Some(words) = writer.next_words(count * length / 2)
            && arch.encode_words::<T, S>(&headers, &mut planes.0, words)
        {
            writer.skip(count * length / 2);
            continue;
        }
        arch.encode::<T, S>(&headers, &mut planes.0, budget, &mut coded);
        for block in &mut coded[..count] {
            append(block, limits.block_bits, writer);
        }
    }
    nonfinite
}

/// Where the blocks of a batch are.
struct Places<'a, T> {
    /// Where they start, if they are whole and next to each other along x; else each is at its own place.
    row: Option<isize>,
    places: [Place; BATCH],
    ahead: Option<Ahead<'a, T>>,
}

impl<'a, T: Value> Places<'a, T> {
    #[inline(always)]
    fn new<A: Arch, S: Shape>(task: &'a EncodeTask<T>) -> Self {
        let ahead = || Ahead::new::<S>(&task.grid, task.first);
        Places {
            row: None,
            places: Default::default(),
            ahead: A::FETCHES_LINES.then(ahead).flatten(),
        }
    }

    /// Goes on to the next `count` blocks, and has values fetched into the caches.
    #[inline(always)]
    fn look_ahead<A: Arch, S: Shape>(
        &mut self,
        task: &EncodeTask<T>,
        walk: &mut Walk,
        count: usize,
    ) {
        self.row = None;
        if count == A::blocks::<T, S>() && task.grid.strides[0] == 1 && walk.is_row::<S>(count) {
            self.fetch::<A, S>(task, walk, count);
            self.row = Some(walk.row::<S>(count));
            return;
        }
        for i in 0..count {
            self.fetch::<A, S>(task, walk, 1);
            self.places[i] = walk.step::<S>();
        }
    }

    /// Has values fetched that will be needed after the next `blocks` blocks, or those of these; if they are many, half of
    /// them.
    #[inline(always)]
    fn fetch<A: Arch, S: Shape>(&mut self, task: &EncodeTask<T>, walk: &Walk, blocks: usize) {
        if A::FETCHES_LINES
            && let Some(ahead) = &mut self.ahead
        {
            return ahead.fetch_half::<S>(walk, blocks);
        }
        let first = task.first.wrapping_offset(walk.offset());
        let rows = ahead::rows::<S>() / if blocks > 1 { 2 } else { 1 };
        ahead::prefetch_rows(first, &task.grid.strides, 0..rows, 4 * blocks);
    }

    /// Has the other half fetched. A processor cannot wait for all at once and do other work.
    #[inline(always)]
    fn fetch_rest<A: Arch, S: Shape>(&mut self, task: &EncodeTask<T>) {
        if A::FETCHES_LINES
            && let Some(ahead) = &mut self.ahead
        {
            ahead.fetch_rest::<S>();
        } else if let Some(offset) = self.row {
            let first = task.first.wrapping_offset(offset);
            let rows = ahead::rows::<S>();
            let length = 4 * A::blocks::<T, S>();
            ahead::prefetch_rows(first, &task.grid.strides, rows / 2..rows, length);
        }
    }

    /// The `count` blocks; see [`find`]. Zeros follow them.
    ///
    /// # Safety
    /// The values of the grid must be readable while the answer is used.
    #[inline(always)]
    unsafe fn find<'b, A: Arch, S: Shape>(
        &self,
        task: &EncodeTask<T>,
        count: usize,
        copies: &'b mut [[T; 64]; BATCH],
    ) -> [Source<'b, T>; BATCH] {
        if let Some(offset) = self.row {
            let [_, strides @ ..] = task.grid.strides;
            let first = task.first.wrapping_offset(offset);
            return std::array::from_fn(|i| match i < A::blocks::<T, S>() {
                // SAFETY: these blocks are inside the grid, whose first value is at `first`; the caller promised
                // that it is readable.
                true => unsafe { Source::in_place(first.wrapping_add(4 * i), strides) },
                false => Source::copied(T::ZEROS),
            });
        }
        let mut sources = [Source::copied(T::ZEROS); BATCH];
        let found = sources.iter_mut().zip(copies).zip(&self.places);
        for ((source, copy), &place) in found.take(count) {
            // SAFETY: the caller's promise, handed on.
            *source = unsafe { find::<T, S>(task.first, &task.grid, place, copy) };
        }
        sources
    }
}

/// The block at `place`, where it lies if it is whole and its rows are contiguous, else as a padded copy.
///
/// # Safety
/// The values of the grid must be readable while the answer is used.
#[inline(always)]
unsafe fn find<'a, T: Value, S: Shape>(
    first: *const T,
    grid: &Grid,
    place: Place,
    copy: &'a mut [T; 64],
) -> Source<'a, T> {
    // SAFETY: `place` is a block of the grid, whose first value is at this offset.
    let first = unsafe { first.offset(place.offset) };
    if place.extents == blocks::whole::<S>() && grid.strides[0] == 1 {
        // SAFETY: the block is inside the grid, and the caller promised that that is readable.
        return unsafe { Source::in_place(first, [grid.strides[1], grid.strides[2]]) };
    }
    // SAFETY: as above.
    unsafe { blocks::gather::<T, S>(first, &grid.strides, place.extents, copy) };
    Source::copied(copy)
}

/// Appends one coded block; at fixed rate, exactly `block_bits` of it, with zeros after its end.
#[inline(always)]
fn append(block: &mut BlockBits, block_bits: Option<usize>, writer: &mut BitWriter) {
    let Some(block_bits) = block_bits else {
        block.pad(block.len());
        writer.append(&block.words, block.len());
        return;
    };
    block.pad(block_bits);
    let coded = block_bits.min(64 * BLOCK_WORDS);
    writer.append(&block.words, coded);
    let mut left = block_bits - coded;
    while left > 0 {
        let zeros = left.min(64 * BLOCK_WORDS);
        writer.append(&[0; BLOCK_WORDS], zeros);
        left -= zeros;
    }
}

/// Blocks to decode.
pub struct DecodeTask<'a, T> {
    pub words: &'a [u64],
    /// Bit of `words` that the first block starts at.
    pub position: usize,
    pub limits: Limits,
    pub blocks: Range<usize>,
    /// The grid's first value.
    pub first: *mut T,
    pub grid: Grid,
}

/// Decodes blocks. Returns the position after the last one, which is past the end of the words when
/// they are too few.
///
/// # Safety
/// The values of the grid must be writable.
#[inline(always)]
pub unsafe fn decode<A: Arch, T: Value>(arch: A, task: &DecodeTask<T>) -> usize {
    // SAFETY: the caller's promise, handed on.
    unsafe {
        match task.grid.dims {
            1 => decode_shape::<A, T, Line>(arch, task),
            2 => decode_shape::<A, T, Square>(arch, task),
            _ => decode_shape::<A, T, Cube>(arch, task),
        }
    }
}

/// # Safety
/// As [`decode`].
#[inline(always)]
unsafe fn decode_shape<A: Arch, T: Value, S: Shape>(arch: A, task: &DecodeTask<T>) -> usize {
    let (grid, range, limits) = (&task.grid, task.blocks.clone(), task.limits);
    let bytes = bytes_of(task.words);
    let mut position = task.position;
    let mut walk = Walk::new::<S>(grid, range.start);
    let mut headers = Headers::default();
    let mut planes: [Planes; BATCH] = [[0; 64]; BATCH];
    let mut values = [[T::default(); 64]; BATCH];
    let mut copy = [0; BLOCK_WORDS + 4];
    let mut ahead = Ahead::new::<S>(grid, task.first);
    for batch in range.clone().step_by(S::BATCH) {
        let count = (range.end - batch).min(S::BATCH);
        if let Some(ahead) = &mut ahead {
            ahead.fetch_half::<S>(&walk, count);
        }
        position = decode_blocks::<A, T, S>(
            arch,
            bytes,
            position,
            limits,
            &mut copy,
            &mut headers,
            &mut planes[..count],
        );
        if let Some(ahead) = &mut ahead {
            ahead.fetch_rest::<S>();
        }
        headers.bits[count..].fill(0);
        arch.inverse::<T, S>(&headers, &planes, &mut values);
        for block in &values[..count] {
            let place = walk.step::<S>();
            // SAFETY: `place` is a block of the grid, which the caller promised is writable.
            unsafe {
                let first = task.first.offset(place.offset);
                blocks::scatter::<T, S>(first, &grid.strides, place.extents, block);
            }
        }
    }
    position
}

/// Headers and planes of blocks from bit `position` on, each after the one before; returns where the next one
/// starts. `copy` must be all zeros before the first block of a size, and then be left alone.
#[inline(always)]
pub fn decode_blocks<A: Arch, T: Value, S: Shape>(
    arch: A,
    bytes: &[u8],
    mut position: usize,
    limits: Limits,
    copy: &mut [u64; BLOCK_WORDS + 4],
    headers: &mut Headers,
    planes: &mut [Planes],
) -> usize {
    for (i, planes) in planes.iter_mut().enumerate() {
        let mut header = Header::ZEROS;
        position =
            decode_block::<A, T, S>(arch, bytes, position, limits, copy, &mut header, planes);
        headers.set(i, header);
    }
    position
}

/// Header and planes of the block at bit `position`; returns where the next one starts. `copy` is as above.
#[inline(always)]
fn decode_block<A: Arch, T: Value, S: Shape>(
    arch: A,
    bytes: &[u8],
    position: usize,
    limits: Limits,
    copy: &mut [u64; BLOCK_WORDS + 4],
    header: &mut Header,
    planes: &mut Planes,
) -> usize {
    let Some(block_bits) = limits.block_bits else {
        return decode_bits::<A, T, S>(arch, bytes, position, usize::MAX, limits, header, planes);
    };
    let next = position + block_bits;
    if S::DIMS == 1 {
        decode_bits::<A, T, S>(arch, bytes, position, next, limits, header, planes);
        return next;
    }
    // A copy of the block alone, with zeros after it, so that the coder need not watch the end.
    let bits = block_bits.min(64 * BLOCK_WORDS);
    copy_bits(bytes, position, bits, copy);
    decode_bits::<A, T, S>(arch, bytes_of(copy), 0, bits, limits, header, planes);
    next
}

/// Header and planes of the block in bits `position..end`.
#[inline(always)]
fn decode_bits<A: Arch, T: Value, S: Shape>(
    arch: A,
    bytes: &[u8],
    position: usize,
    end: usize,
    limits: Limits,
    header: &mut Header,
    planes: &mut Planes,
) -> usize {
    let bits = (peek(bytes, position) & low_bits(T::HEADER_BITS)) as u32;
    if bits & 1 == 0 {
        *header = Header::ZEROS;
        return position + 1;
    }
    header.bits = bits;
    header.planes = limits.lowest.planes::<T, S>(header.biased_exponent());
    let words_used = (T::Int::BITS as usize * S::SIZE / 64).max(1);
    planes[..words_used].fill(0);
    let position = position + T::HEADER_BITS as usize;
    arch.decode::<S>(bytes, position, end, header.planes, planes)
}

/// Copies `bits` bits from bit `position` of `bytes` on to the start of `block`.
#[inline(always)]
pub fn copy_bits(bytes: &[u8], position: usize, bits: usize, block: &mut [u64]) {
    let whole = bits / 64;
    let words = bytes.get(position / 8..).map(|rest| rest.as_chunks().0);
    match words.and_then(|words| words.get(..whole)) {
        Some(words) if position.is_multiple_of(8) => {
            for (word, &eight) in block[..whole].iter_mut().zip(words) {
                *word = u64::from_le_bytes(eight);
            }
        }
        _ => {
            for (i, word) in block[..whole].iter_mut().enumerate() {
                *word = peek_word(bytes, position + 64 * i);
            }
        }
    }
    block[whole] = peek_word(bytes, position + 64 * whole) & low_bits((bits % 64) as u32);
}
