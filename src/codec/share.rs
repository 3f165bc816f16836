//! Messages, shared out over threads.

use super::helpers;
use std::cmp::Reverse;
use std::sync::{Mutex, PoisonError};

/// Values that are worth another thread: fewer are coded before it has begun.
pub const WORTH_A_THREAD: usize = 1 << 15;

/// The part of coding a message that is one thread's work, however many there are: looking at the values, mostly.
const ALONE: f64 = 1.0 / 8.0;

/// As many of `threads` as so many values are worth.
pub fn useful(threads: usize, values: usize) -> usize {
    threads.min(values / WORTH_A_THREAD).max(1)
}

/// `work` of each message, in their order. Long ones go one after the other, on as many threads as `work` is told, the
/// rest side by side, a thread each. `values` says how many values a message has.
pub fn share_out<M: Send, R: Send>(
    messages: Vec<M>,
    values: impl Fn(&M) -> usize,
    threads: usize,
    work: impl Fn(M, usize) -> R + Sync,
) -> Vec<R> {
    let mut counts: Vec<usize> = messages.iter().map(&values).collect();
    let threads = useful(threads, counts.iter().sum());
    if threads == 1 {
        return messages
            .into_iter()
            .map(|message| work(message, 1))
            .collect();
    }
    // The longest first, so that threads end at about the same time.
    let mut messages: Vec<_> = messages.into_iter().enumerate().collect();
    messages.sort_by_key(|(_, message)| Reverse(values(message)));
    counts.sort_unstable_by_key(|&count| Reverse(count));

    let rest = messages.split_off(one_after_the_other(&counts, threads));
    let in_turn = messages.into_iter().zip(&counts);
    let mut done: Vec<_> = in_turn
        .map(|((index, message), &count)| (index, work(message, useful(threads, count))))
        .collect();
    let rest: Vec<_> = (rest.into_iter())
        .map(|(index, message)| (index, Mutex::new(Some(message))))
        .collect();
    let side_by_side = helpers::each(&rest, threads, |(index, message)| {
        let message = (message.lock().unwrap_or_else(PoisonError::into_inner)).take()?;
        Some((*index, work(message, 1)))
    });
    done.extend(side_by_side.into_iter().flatten());
    done.sort_unstable_by_key(|&(index, _)| index);
    done.into_iter().map(|(_, result)| result).collect()
}

/// How many of messages of so many values, the longest first, go one after the other for all to be done soonest. A value
/// takes one thread a time of 1.
fn one_after_the_other(counts: &[usize], threads: usize) -> usize {
    let (mut best, mut soonest) = (0, f64::INFINITY);
    let mut in_turn = 0.0;
    let mut rest: usize = counts.iter().sum();
    for (first, &count) in counts.iter().enumerate() {
        let end = in_turn + side_by_side(&counts[first..], rest, threads);
        if end < soonest {
            (best, soonest) = (first, end);
        }
        in_turn += count as f64 * (ALONE + (1.0 - ALONE) / useful(threads, count) as f64);
        rest -= count;
    }
    if in_turn < soonest {
        best = counts.len();
    }
    best
}

/// What messages of so many values, the longest first, take at least with a thread each.
fn side_by_side(counts: &[usize], all: usize, threads: usize) -> f64 {
    let longest = counts.first().copied().unwrap_or(0);
    // Of one more than there are threads, some thread has two.
    let two = counts.get(threads - 1..=threads);
    let two = two.map_or(0, |two| two.iter().sum());
    (all as f64 / threads as f64).max(longest.max(two) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    const MANY: usize = 1 << 20;

    /// The threads that each message of so many values is told to use.
    fn threads_of(values: &[usize], threads: usize) -> Vec<usize> {
        let (at_work, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let told = share_out(
            values.to_vec(),
            |&values| values,
            threads,
            |_, told| {
                let busy = at_work.fetch_add(told, Ordering::Relaxed) + told;
                most.fetch_max(busy, Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(1));
                at_work.fetch_sub(told, Ordering::Relaxed);
                told
            },
        );
        assert!(most.into_inner() <= threads);
        told
    }

    #[test]
    fn long_messages_get_more_threads_and_others_one_each() {
        assert!(threads_of(&[], 4).is_empty());
        assert_eq!(threads_of(&[MANY, MANY], 1), [1, 1]);
        assert_eq!(threads_of(&[MANY], 4), [4]);
        assert_eq!(threads_of(&[MANY, MANY], 4), [4, 4]);
        assert_eq!(threads_of(&[MANY, MANY], 2), [1, 1]);
        assert_eq!(threads_of(&[MANY; 20], 4), [1; 20]);
        assert_eq!(threads_of(&[1000, 100 * MANY, MANY, 1000], 4), [1, 4, 4, 1]);
        let mut values = [1000; 100];
        values[50] = MANY;
        let mut told = [1; 100];
        told[50] = 4;
        assert_eq!(threads_of(&values, 4), told);
    }

    #[test]
    fn no_message_gets_threads_that_it_is_not_worth() {
        assert_eq!(threads_of(&[1000; 60], 4), [1; 60]);
        assert_eq!(threads_of(&[60_000], 4), [1]);
        assert_eq!(threads_of(&[70_000], 4), [2]);
        assert_eq!(threads_of(&[100_000; 16], 16), [1; 16]);
    }

    /// With two threads the third message would keep one of them busy alone.
    #[test]
    fn what_does_not_come_out_even_is_not_left_to_one() {
        let told = threads_of(&[MANY; 3], 2);
        assert_eq!(told.iter().filter(|&&told| told == 2).count(), 1);
    }

    #[test]
    fn results_come_in_the_order_of_the_messages() {
        let values: Vec<usize> = (0..50)
            .map(|i| i * 7919 % 100_000 + i % 7 * 300_000)
            .collect();
        let results = share_out(values.clone(), |&values| values, 3, |values, _| values);
        assert_eq!(results, values);
    }
}
