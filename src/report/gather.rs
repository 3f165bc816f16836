//! Sums counts over the ranks of a communicator when MPI is finalised.
//!
//! No rank ever waits for another without end here: a rank that left early, or died, is missing from the
//! sum, and the report says over how many ranks it is.

use super::{CallStats, Stats};
use crate::codec::ErrorSample;
use crate::mpi::{Mpi, Request};
use crate::registry::Registration;
use std::time::{Duration, Instant};

const TAG: i32 = 0x7473;
const PATIENCE: Duration = Duration::from_secs(5);

/// Two kinds of call, of so many 64-bit words each.
const CALL_WORDS: usize = 13;
const WORDS: usize = 2 * CALL_WORDS;
const BYTES: i32 = 8 * WORDS as i32;

/// The sum over those ranks that answered, and how many. Where this rank is not the reporter it sends its
/// own counts to the communicator's member that is, and gets them back.
pub fn sum_over_ranks(mpi: &Mpi, registration: &Registration, is_reporter: bool) -> (Stats, usize) {
    let mut sum = *registration.stats();
    if !is_reporter {
        send(mpi, registration, &sum);
        return (sum, 1);
    }
    let others = registration.others();
    let mut buffers: Vec<(usize, [u64; WORDS])> = others.map(|rank| (rank, [0; WORDS])).collect();
    let mut pending: Vec<(usize, Request)> = Vec::new();
    for (index, (rank, buffer)) in buffers.iter_mut().enumerate() {
        // SAFETY: `buffers` outlives the requests: each is complete or cancelled when this returns.
        let request = unsafe {
            mpi.irecv(
                buffer.as_mut_ptr().cast(),
                BYTES,
                mpi.abi.byte,
                *rank,
                TAG,
                registration.private,
            )
        };
        if let Ok(request) = request {
            pending.push((index, request));
        }
    }
    let mut answered = Vec::new();
    let patience_ends = Instant::now() + PATIENCE;
    while !pending.is_empty() && Instant::now() < patience_ends {
        pending.retain_mut(|(index, request)| match request.test() {
            Ok(false) => true,
            Ok(true) => {
                answered.push(*index);
                false
            }
            Err(_) => false,
        });
        std::thread::yield_now();
    }
    for (_, request) in pending {
        // A request that MPI does not give back keeps its buffer: leak it rather than free it.
        if request.cancel().is_err() {
            std::mem::forget(buffers);
            return (sum, 1);
        }
    }
    for &index in &answered {
        sum.merge(&from_words(&buffers[index].1));
    }
    (sum, answered.len() + 1)
}

/// Sends the counts to the reporter, which is rank 0 of `MPI_COMM_WORLD`, if it belongs to the
/// communicator.
fn send(mpi: &Mpi, registration: &Registration, stats: &Stats) {
    let Ok(Some(reporter)) = mpi.rank_of_world_root(registration.private) else {
        return;
    };
    // Small enough to leave at once; leaked, because nobody waits for it.
    let words = Box::leak(Box::new(to_words(stats)));
    // SAFETY: the buffer lives for ever.
    let request = unsafe {
        mpi.isend(
            words.as_ptr().cast(),
            BYTES,
            mpi.abi.byte,
            reporter,
            TAG,
            registration.private,
        )
    };
    drop(request);
}

fn to_words(stats: &Stats) -> [u64; WORDS] {
    let call = |call: &CallStats| -> [u64; CALL_WORDS] {
        [
            call.calls,
            call.compressed,
            call.raw,
            call.escaped,
            call.on_gpu,
            call.bytes_before,
            call.bytes_after,
            call.encode.to_bits(),
            call.wire.to_bits(),
            call.decode.to_bits(),
            call.error.messages,
            call.error.sum.to_bits(),
            call.error.worst.to_bits(),
        ]
    };
    let mut words = [0; WORDS];
    words[..CALL_WORDS].copy_from_slice(&call(&stats.alltoall));
    words[CALL_WORDS..].copy_from_slice(&call(&stats.alltoallv));
    words
}

fn from_words(words: &[u64; WORDS]) -> Stats {
    let call = |words: &[u64]| CallStats {
        calls: words[0],
        compressed: words[1],
        raw: words[2],
        escaped: words[3],
        on_gpu: words[4],
        bytes_before: words[5],
        bytes_after: words[6],
        encode: f64::from_bits(words[7]),
        wire: f64::from_bits(words[8]),
        decode: f64::from_bits(words[9]),
        error: ErrorSample {
            messages: words[10],
            sum: f64::from_bits(words[11]),
            worst: f64::from_bits(words[12]),
        },
    };
    Stats {
        alltoall: call(&words[..CALL_WORDS]),
        alltoallv: call(&words[CALL_WORDS..]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_survive_the_journey() {
        let call = CallStats {
            calls: 1,
            compressed: 2,
            raw: 3,
            escaped: 4,
            on_gpu: 13,
            bytes_before: 5,
            bytes_after: 6,
            encode: 0.7,
            wire: 0.8,
            decode: 0.9,
            error: ErrorSample {
                messages: 10,
                sum: 1.1,
                worst: 1.2,
            },
        };
        let stats = Stats {
            alltoall: call,
            alltoallv: CallStats { calls: 9, ..call },
        };
        assert_eq!(from_words(&to_words(&stats)), stats);
    }
}
