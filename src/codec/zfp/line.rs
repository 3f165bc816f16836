//! 1-D blocks: planes of four bits, by table.

use super::bits::peek;
use super::encoder::{BLOCK_WORDS, Pen, Supply};
use super::planes::Planes;
use super::shape::Line;

/// The code of one plane of four bits, `significant` of which were so before: (bits, length, and how
/// many are significant after it).
pub const fn plane_code(plane: u32, significant: u32) -> (u32, u32, u32) {
    let mut code = plane & ((1 << significant) - 1);
    let (mut length, mut n) = (significant, significant);
    while n < 4 {
        if plane >> n == 0 {
            return (code, length + 1, n);
        }
        code |= 1 << length;
        length += 1;
        while n < 3 {
            let bit = plane >> n & 1;
            code |= bit << length;
            length += 1;
            if bit == 1 {
                break;
            }
            n += 1;
        }
        n += 1;
    }
    (code, length, n)
}

/// Two planes' code in the low 16 bits, its length in the next 8, above it how many coefficients are
/// significant then; for each number that were before.
static PAIRS: [[u32; 256]; 4] = pairs();

const fn pairs() -> [[u32; 256]; 4] {
    let mut table = [[0; 256]; 4];
    let mut i = 0;
    while i < 4 * 256 {
        let (significant, planes) = (i / 256, i % 256);
        let (first, length, n) = plane_code(planes & 15, significant);
        let (second, more, n) = plane_code(planes >> 4, n);
        let entry = first | second << length | (length + more) << 16 | n << 24;
        table[significant as usize][planes as usize] = entry;
        i += 1;
    }
    table
}

/// Codes pairs of planes as long as not all coefficients are significant; see
/// [`super::encoder::encode_planes`]. Returns the next plane and how many coefficients are significant.
#[inline(always)]
pub fn encode_pairs(
    planes: &mut Supply<impl FnMut(&mut Planes, u32) -> u32>,
    count: u32,
    budget: usize,
    words: &mut [u64; BLOCK_WORDS],
    pen: &mut Pen,
) -> (u32, u32) {
    let (mut k, mut significant) = (0, 0);
    while k + 2 <= count && pen.position() < budget && significant < 4 {
        let pair = planes.word::<Line>(k) >> (4 * (k % 16)) & 0xff;
        let entry = PAIRS[significant as usize][pair as usize];
        pen.push(words, (entry & 0xffff).into(), entry >> 16 & 0xff);
        significant = entry >> 24;
        k += 2;
    }
    (k, significant)
}

/// What eight bits of code begin with, for each number of coefficients that were significant before:
/// whole planes in the low 32 bits, then, in bytes, their number, the bits they take, and how many
/// coefficients are significant after them. No plane is there once all four are.
static STEPS: [[u64; 256]; 4] = steps();

const fn steps() -> [[u64; 256]; 4] {
    let mut table = [[0; 256]; 4];
    let mut i = 0;
    while i < 4 * 256 {
        let (mut significant, code) = (i / 256, i % 256);
        let (mut planes, mut count, mut used) = (0u64, 0, 0);
        while significant < 4 && count < 8 {
            let Some((plane, length, n)) = first_plane(code >> used, significant) else {
                break;
            };
            if used + length > 8 {
                break;
            }
            planes |= (plane as u64) << (4 * count);
            count += 1;
            used += length;
            significant = n;
        }
        let entry =
            planes | (count as u64) << 32 | (used as u64) << 40 | (significant as u64) << 48;
        table[(i / 256) as usize][(i % 256) as usize] = entry;
        i += 1;
    }
    table
}

/// The plane that `code` begins with, the length of its code, and how many coefficients are significant
/// after it.
const fn first_plane(code: u32, significant: u32) -> Option<(u32, u32, u32)> {
    let mut plane = 0;
    while plane < 16 {
        let (bits, length, n) = plane_code(plane, significant);
        if code & ((1 << length) - 1) == bits {
            return Some((plane, length, n));
        }
        plane += 1;
    }
    None
}

/// As [`STEPS`], of fewer than eight bits after which there are no more, below a 1: all planes that come of
/// them in the low 32 bits, and above them their number.
static LAST: [[u64; 256]; 4] = last();

const fn last() -> [[u64; 256]; 4] {
    let mut table = [[0; 256]; 4];
    let mut i = 0u32;
    while i < 4 * 256 {
        let (mut significant, bits) = (i / 256, i % 256);
        let mut left = if bits == 0 { 0 } else { bits.ilog2() };
        let mut code = bits & ((1 << left) - 1);
        let (mut planes, mut count) = (0u64, 0);
        while left > 0 {
            let (plane, used, n) = cut_plane(code, left, significant);
            planes |= (plane as u64) << (4 * count);
            count += 1;
            code >>= used;
            left -= used;
            significant = n;
        }
        table[(i / 256) as usize][(i % 256) as usize] = planes | count << 32;
        i += 1;
    }
    table
}

/// The plane that the first `left` bits of `code` begin with, the bits it takes of them, and how many
/// coefficients are significant after it.
const fn cut_plane(code: u32, left: u32, significant: u32) -> (u32, u32, u32) {
    let mut used = if significant < left {
        significant
    } else {
        left
    };
    let mut plane = code & ((1 << used) - 1);
    let mut n = significant;
    while used < left && n < 4 {
        used += 1;
        if code >> (used - 1) & 1 == 0 {
            break;
        }
        // A cut in the middle of a run makes a one-bit of the coefficient that it stopped at.
        while used < left && n < 3 {
            used += 1;
            if code >> (used - 1) & 1 == 1 {
                break;
            }
            n += 1;
        }
        plane |= 1 << n;
        n += 1;
    }
    (plane, used, n)
}

/// Decodes planes as long as not all coefficients are significant; see [`super::decoder::decode_planes`], but
/// bits from `end` on may be anything. Returns the position, the next plane and how many coefficients are
/// significant.
#[inline(always)]
pub fn decode_steps(
    bytes: &[u8],
    mut position: usize,
    end: usize,
    count: u32,
    planes: &mut Planes,
) -> (usize, u32, u32) {
    let (mut k, mut significant) = (0, 0);
    while k < count && significant < 4 && position < end {
        let code = peek(bytes, position) as u32 & 0xff;
        let entry = STEPS[significant as usize][code as usize];
        let (more, used) = ((entry >> 32) as u32 & 0xff, (entry >> 40) as usize & 0xff);
        let left = end - position;
        if used > left {
            let bits = 1 << left | code & ((1 << left) - 1);
            let entry = LAST[significant as usize][bits as usize & 0xff];
            let room = 4 * (count - k).min(8);
            put(planes, k, entry & 0xffff_ffff & ((1 << room) - 1));
            return (end, k, significant);
        }
        if k + more > count {
            let (plane, used, n) = cut_plane(code, left.min(8) as u32, significant);
            put(planes, k, plane.into());
            position += used as usize;
            significant = n;
            k += 1;
            continue;
        }
        put(planes, k, entry & 0xffff_ffff);
        position += used;
        significant = (entry >> 48) as u32;
        k += more;
    }
    (position, k, significant)
}

/// Adds planes from plane `k` on.
#[inline(always)]
fn put(planes: &mut Planes, k: u32, bits: u64) {
    let at = 4 * (k % 16);
    planes[(k / 16) as usize % 64] |= bits << at;
    planes[(k / 16 + 1) as usize % 64] |= bits >> 1 >> (63 - at);
}
