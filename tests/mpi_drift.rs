//! A program whose messages become other ones while it runs.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::relay::Relay;
use common::{BOTH, Mpi};

const RANKS: usize = 3;
const NX: usize = 24;
const COUNT: usize = NX * 20 * 8;

fn along(pair: usize, x: usize, y: usize, z: usize) -> f32 {
    let (x, y, z) = (x as f64, y as f64, z as f64);
    ((0.2 * x + pair as f64).sin() * (0.15 * y).cos() + 0.3 * (0.2 * z).sin() + 2.0) as f32
}

/// A box, x fastest.
fn boxed(pair: usize, i: usize) -> f32 {
    along(pair, i % NX, i / NX % 20, i / NX / 20)
}

/// The same quantities side by side: x slowest.
fn turned(pair: usize, i: usize) -> f32 {
    10f32.powi((i % 40) as i32 % 7 - 3) * along(pair, i / 40, 3 * (i % 40), 0)
}

fn rough(pair: usize, i: usize) -> f32 {
    let hash = (i * 2_654_435_761 + pair * 40_503) % 65_537;
    hash as f32 / 65_537.0 - 0.5
}

/// So many calls with messages of one kind: a value by pair and index.
type Calls<'a> = (usize, &'a dyn Fn(usize, usize) -> f32);

/// The messages of some calls, one kind after the other.
fn one_after_another(kinds: &[Calls]) -> Vec<f32> {
    let mut values = vec![];
    for (calls, kind) in kinds {
        for _ in 0..*calls {
            for pair in 0..RANKS * RANKS {
                values.extend((0..COUNT).map(|i| kind(pair, i)));
            }
        }
    }
    values
}

fn at_8(mpi: Mpi) -> Relay {
    Relay::alltoall(mpi, RANKS, "float", COUNT).env("TRANSPRESS_RATE", 8)
}

#[test]
fn every_message_stays_within_the_guard() {
    let count = |pair: usize, i: usize| (pair + i) as f32;
    let sent = one_after_another(&[
        (4, &boxed),
        (6, &turned),
        (3, &count),
        (3, &rough),
        (6, &boxed),
        (2, &turned),
    ]);
    for mpi in BOTH {
        let arrived = at_8(mpi).send(&sent);
        let worst = arrived.worst_error();
        assert!(worst <= 1.25e-2, "{worst:e} {}", arrived.output);
        assert!(arrived.count("compressed") > 0.0, "{}", arrived.output);
        let counts = arrived
            .messages()
            .filter(|message| (10..13).contains(&message.call));
        for message in counts {
            assert!(message.is_exact(), "{}", arrived.output);
        }
    }
}

/// Errors of the last call, within two of those of a run that has seen nothing else.
#[track_caller]
fn ends_as_if_it_had_begun_so(before: &[Calls], now: &dyn Fn(usize, usize) -> f32) {
    const CALLS: usize = 200;
    let afresh = at_8(Mpi::OpenMpi).send(&one_after_another(&[(1, now)]));
    afresh.expect_compressed();
    let mut kinds = before.to_vec();
    kinds.push((CALLS, now));
    let arrived = at_8(Mpi::OpenMpi).send(&one_after_another(&kinds));
    let last_call = kinds.iter().map(|(calls, _)| calls).sum::<usize>() - 1;
    for message in arrived
        .messages()
        .filter(|message| message.call == last_call)
    {
        assert!(!message.is_exact(), "still raw: {}", arrived.output);
        let error = message.error();
        assert!(
            error <= 2.0 * afresh.worst_error(),
            "{error:e}: {}",
            arrived.output
        );
    }
}

#[test]
fn another_layout_is_found_when_the_structure_changes() {
    ends_as_if_it_had_begun_so(&[(20, &boxed)], &turned);
}

/// Models begin at rest.
#[test]
fn a_layout_is_found_after_zeros() {
    ends_as_if_it_had_begun_so(&[(3, &|_, _| 0.0)], &turned);
}
