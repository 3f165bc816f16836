//! The embedded coder of 3-D blocks, sixteen in lockstep, one in each 64-bit lane of two registers.
//!
//! See [`crate::codec::zfp::encoder`] for the code. The tail of a plane is the coefficients that are not significant
//! yet, each one-bit followed by another 1, with a 1 ahead; the last one-bit's own 1 becomes the 0 that ends the
//! plane, and where there is no one-bit that is the 1 ahead. The last coefficient of a block is never said, for what
//! is said before it leaves nothing else.
//!
//! Tails are short, as a rule. So those of both registers are doubled at once, in the halves of lanes; only where
//! one is longer is each register's doubled by itself.

use super::columns;
use super::doubling::{double16, double32, spread32};
use super::later::{Level, count_ones};
use super::pens::{self, Kept, Pages, Paper, Pens};
use super::registers::{Row, load, store};
use super::shifts::{sll, srl, trailing_zeros};
use crate::codec::zfp::Value;
use crate::codec::zfp::arch::BATCH;
use crate::codec::zfp::planes::Planes;
use crate::codec::zfp::transform::Headers;
use crate::codec::zfp::value::Int;
use std::arch::x86_64::*;

/// Encodes sixteen blocks, up to bit `budget` of each or a little more.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,bmi1,bmi2,lzcnt,popcnt")]
pub fn encode<L: Level, T: Value>(
    level: L,
    headers: &Headers,
    planes: &[Planes; BATCH],
    budget: usize,
    paper: &mut impl Paper,
) {
    let pens = Pens::new::<T>(level, headers, budget);
    let mut kept = Kept::pair();
    let mut pages = Pages::new(budget, &mut kept);
    let counts = two!(|g| pens::widen(&headers.planes.as_chunks().0[g]));
    let (are_whole, most) = planes_of::<T>(headers);
    let pens = if are_whole && budget != usize::MAX {
        encode_planes::<L, T, _, false>(level, planes, counts, most, pens, &mut pages, paper)
    } else {
        encode_planes::<L, T, _, true>(level, planes, counts, most, pens, &mut pages, paper)
    };
    pages.finish(&pens, paper);
}

/// Whether every block that is coded has all planes; and the most that one has.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,bmi1,bmi2,lzcnt,popcnt")]
fn planes_of<T: Value>(headers: &Headers) -> (bool, u32) {
    // SAFETY: each is 64 readable bytes.
    let [bits, planes] = [&headers.bits, &headers.planes]
        .map(|elements| unsafe { _mm512_loadu_si512(elements.as_ptr().cast()) });
    let all = _mm512_cmpeq_epi32_mask(planes, _mm512_set1_epi32(T::Int::BITS as i32));
    // The planes of others are zeros, if they are from `columns`, and may then well follow the header.
    let none = match T::Int::BITS {
        32 => _mm512_testn_epi32_mask(bits, bits),
        _ => 0,
    };
    match all {
        0 => (none == !0, headers.most_planes()),
        _ => (all | none == !0, T::Int::BITS),
    }
}

/// Encodes planes until each block has had its `counts`, or all have their budget.
#[inline(never)]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,bmi1,bmi2,lzcnt,popcnt")]
fn encode_planes<L: Level, T: Value, P: Paper, const COUNTED: bool>(
    level: L,
    planes: &[Planes; BATCH],
    counts: [__m512i; 2],
    most: u32,
    mut pens: Pens<L>,
    pages: &mut Pages,
    paper: &mut P,
) -> Pens<L> {
    let groups = planes.as_chunks().0;
    let mut rows: [[Row; 8]; 2] = Default::default();
    let mut state = State::start();
    for eight in (0..T::Int::BITS).step_by(8) {
        if eight >= most || pens.are_done() {
            return pens;
        }
        if T::Int::BITS == 32 {
            columns::split(planes, eight as usize, &mut rows);
        } else {
            for (rows, group) in rows.iter_mut().zip(groups) {
                for (row, v) in rows.iter_mut().zip(pens::turn(group, eight as usize)) {
                    store(v, row);
                }
            }
        }
        let lead = if COUNTED || eight > 0 {
            0
        } else {
            encode_lead(level, &rows, &mut state, &mut pens, pages)
        };
        for i in lead..8 {
            let k = eight + i;
            if k >= most || pens.are_done() {
                return pens;
            }
            let coded = if COUNTED {
                two!(|g| _mm512_cmpgt_epu64_mask(counts[g], _mm512_set1_epi64(k.into())))
            } else {
                [!0; 2]
            };
            encode_plane::<L, T, P, COUNTED>(
                level,
                two!(|g| load(&rows[g][i as usize])),
                coded,
                &mut state,
                &mut pens,
                pages,
                paper,
            );
        }
    }
    pens
}

/// What is known of the blocks after some planes.
struct State {
    /// One more than the coefficients that are significant.
    after: [__m512i; 2],
    /// The bit of the first coefficient that is not.
    first: [__m512i; 2],
    /// Some tail was of more than 16 coefficients, and another may be.
    wide: bool,
    /// Some plane's code was of more than 64 bits, and another's may be. (Which it is changes from plane to plane; to
    /// ask each time takes longer than to do too much, as nobody can foresee the answer.)
    long: bool,
    /// All coefficients are significant.
    closed: bool,
}

impl State {
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,bmi1,bmi2,lzcnt,popcnt")]
    fn start() -> State {
        State {
            after: [_mm512_set1_epi64(1); 2],
            first: [_mm512_set1_epi64(1); 2],
            wide: false,
            long: false,
            closed: false,
        }
    }
}

/// The first planes, as long as no coefficient but the first is in any; returns how many those are. Before the first
/// coefficient is significant each is a 0; that one is 1, 1 and 0; after it each is its bit and a 0.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,bmi1,bmi2,lzcnt,popcnt")]
fn encode_lead<L: Level>(
    level: L,
    rows: &[[Row; 8]; 2],
    state: &mut State,
    pens: &mut Pens<L>,
    pages: &mut Pages,
) -> u32 {
    let one = _mm512_set1_epi64(1);
    let mut bits = [_mm512_setzero_si512(); 2];
    let mut count = 0;
    while count < 8 {
        let plane = two!(|g| load(&rows[g][count as usize]));
        let any = _mm512_or_si512(plane[0], plane[1]);
        if _mm512_test_epi64_mask(any, _mm512_set1_epi64(!1)) != 0 {
            break;
        }
        let k = _mm512_set1_epi64(count.into());
        bits = two!(|g| _mm512_or_si512(bits[g], sll(plane[g], k)));
        count += 1;
    }
    if count == 0 {
        return 0;
    }
    let some = two!(|g| _mm512_test_epi64_mask(bits[g], bits[g]));
    let zeros = two!(|g| trailing_zeros(bits[g]));
    let code = two!(|g| {
        let later = spread32(level, srl(bits[g], _mm512_add_epi64(zeros[g], one)));
        let code = _mm512_or_si512(_mm512_slli_epi64::<3>(later), _mm512_set1_epi64(0b011));
        sll(code, zeros[g])
    });
    let length = two!(|g| {
        let most = _mm512_set1_epi64((2 * count + 1).into());
        _mm512_mask_sub_epi64(_mm512_set1_epi64(count.into()), some[g], most, zeros[g])
    });
    pens.push(pages, code, length);
    state.after = two!(|g| _mm512_mask_add_epi64(one, some[g], one, one));
    state.first = state.after;
    count
}

/// One plane of each block.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,bmi1,bmi2,lzcnt,popcnt")]
fn encode_plane<L: Level, T: Value, P: Paper, const COUNTED: bool>(
    level: L,
    plane: [__m512i; 2],
    coded: [__mmask8; 2],
    state: &mut State,
    pens: &mut Pens<L>,
    pages: &mut Pages,
    paper: &mut P,
) {
    pages.make_room(level, paper);
    let of = |v: [__m512i; 2]| {
        if COUNTED {
            two!(|g| _mm512_maskz_mov_epi64(coded[g], v[g]))
        } else {
            v
        }
    };
    let size = _mm512_set1_epi64(64);
    if state.closed {
        pens.push(pages, of(plane), of([size; 2]));
        return;
    }
    let one = _mm512_set1_epi64(1);
    let (after, first) = (state.after, state.first);
    let next = two!(|g| {
        let reach = _mm512_sub_epi64(_mm512_set1_epi64(65), _mm512_lzcnt_epi64(plane[g]));
        _mm512_max_epi32(after[g], reach)
    });
    let now = two!(|g| _mm512_sub_epi64(next[g], one));
    state.after = next;
    state.first = two!(|g| sll(one, now[g]));
    // (Twice the plane, without the last coefficient.)
    let rest = two!(|g| srl(_mm512_add_epi64(plane[g], plane[g]), after[g]));
    let Tail { ones, low, high } = tails::<L, T, P, COUNTED>(level, rest, after, &mut state.wide);
    let length = two!(|g| _mm512_add_epi64(_mm512_min_epi32(next[g], size), ones[g]));
    // The 1 ahead, which is `first`, and the one that is none.
    let known = two!(|g| _mm512_sub_epi64(first[g], one));
    let tail = two!(|g| sll(low[g], after[g]));
    let code = two!(|g| _mm512_ternarylogic_epi64::<A_AND_B_OR_C>(plane[g], known[g], tail[g]));
    let closing = two!(|g| sll(state.first[g], ones[g]));
    let code = two!(|g| _mm512_ternarylogic_epi64::<XOR>(code[g], first[g], closing[g]));
    if !state.long {
        let longest = _mm512_max_epi32(length[0], length[1]);
        state.long = _mm512_cmpgt_epi32_mask(longest, size) != 0;
    }
    if !state.long {
        pens.push(pages, of(code), of(length));
        return;
    }
    let high = two!(|g| {
        let tail = srl(low[g], _mm512_sub_epi64(size, after[g]));
        let high = _mm512_or_si512(high[g], tail);
        let open = _mm512_cmplt_epi64_mask(now[g], size);
        let end = _mm512_add_epi64(now[g], ones[g]);
        let closing = sll(one, _mm512_sub_epi64(end, size));
        _mm512_mask_xor_epi64(high, open, high, closing)
    });
    pens.push_two(pages, of(code), of(high), of(length));
    state.closed = !are_below(now, 64);
}

/// Tails, each one-bit followed by another 1: how many those are, the first 64 bits, and those after them.
struct Tail {
    ones: [__m512i; 2],
    low: [__m512i; 2],
    /// Moved up by `after`.
    high: [__m512i; 2],
}

/// Doubles tails. (Nothing in it depends on its types; but what is called from one place only is put there by the
/// compiler, and so it is with [`encode_plane`].)
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,bmi1,bmi2,lzcnt,popcnt")]
fn tails<L: Level, T: Value, P: Paper, const COUNTED: bool>(
    level: L,
    rest: [__m512i; 2],
    after: [__m512i; 2],
    wide: &mut bool,
) -> Tail {
    let mut high = [_mm512_setzero_si512(); 2];
    let any = _mm512_or_si512(rest[0], rest[1]);
    if !*wide {
        *wide = _mm512_test_epi64_mask(any, _mm512_set1_epi64(!0xffff)) != 0;
    }
    if !*wide {
        let both = _mm512_or_si512(rest[0], _mm512_slli_epi64::<32>(rest[1]));
        let (doubled, length) = double16(level, both);
        let ones = halves_of(_mm512_sub_epi32(length, _mm512_set1_epi32(16)));
        return Tail {
            ones: two!(|g| count_ones(level, rest[g], ones[g])),
            low: halves_of(doubled),
            high,
        };
    }
    // Of less there is no such tail.
    *wide = are_below(after, 49);
    let [(a, length_a), (b, length_b)] = two!(|g| double32(level, rest[g]));
    let half = _mm512_set1_epi64(32);
    let mut low = [a, b];
    let mut ones = [length_a, length_b].map(|length| _mm512_sub_epi64(length, half));
    if _mm512_test_epi64_mask(any, _mm512_set1_epi64(!0xffff_ffff)) != 0 {
        let upper = two!(|g| double32(level, _mm512_srli_epi64::<32>(rest[g])));
        for (g, (upper, length)) in upper.into_iter().enumerate() {
            let below = _mm512_add_epi64(half, ones[g]);
            low[g] = _mm512_or_si512(low[g], sll(upper, below));
            high[g] = sll(srl(upper, _mm512_sub_epi64(half, ones[g])), after[g]);
            ones[g] = _mm512_add_epi64(ones[g], _mm512_sub_epi64(length, half));
        }
    }
    let ones = two!(|g| count_ones(level, rest[g], ones[g]));
    Tail { ones, low, high }
}

/// The low halves of lanes, and the high ones.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,bmi1,bmi2,lzcnt,popcnt")]
fn halves_of(v: __m512i) -> [__m512i; 2] {
    let low = _mm512_and_si512(v, _mm512_set1_epi64(0xffff_ffff));
    [low, _mm512_srli_epi64::<32>(v)]
}

/// Whether any is below a limit.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,bmi1,bmi2,lzcnt,popcnt")]
fn are_below(v: [__m512i; 2], limit: i64) -> bool {
    let least = _mm512_min_epi32(v[0], v[1]);
    _mm512_cmplt_epi64_mask(least, _mm512_set1_epi64(limit)) != 0
}

const A_AND_B_OR_C: i32 = 0xea;
const XOR: i32 = 0x96;
