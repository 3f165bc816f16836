//! Memory for what is encoded apart, kept for the next time: the system takes as long to give it as encoding into it.

use std::sync::{Mutex, TryLockError};

/// No more are kept than these, nor longer ones.
const MOST: usize = 32;
const MOST_WORDS: usize = 1 << 17;

static SPARE: Mutex<Vec<Vec<u64>>> = Mutex::new(Vec::new());

/// So many words, of whatever content.
pub fn take(words: usize) -> Vec<u64> {
    let is_long_enough = |spare: &Vec<u64>| spare.capacity() >= words;
    let found = with_spare(|spare| {
        let index = spare.iter().rposition(is_long_enough)?;
        Some(spare.swap_remove(index))
    });
    let mut found = found.flatten().unwrap_or_default();
    found.resize(words, 0);
    found
}

/// Keeps them.
pub fn give(words: Vec<u64>) {
    if words.capacity() <= MOST_WORDS {
        with_spare(|spare| {
            if spare.len() < MOST {
                spare.push(words);
            }
        });
    }
}

/// Nothing if others are at it, which a forked process may take them to be for ever.
fn with_spare<R>(work: impl FnOnce(&mut Vec<Vec<u64>>) -> R) -> Option<R> {
    match SPARE.try_lock() {
        Ok(mut spare) => Some(work(&mut spare)),
        Err(TryLockError::Poisoned(spare)) => Some(work(&mut spare.into_inner())),
        Err(TryLockError::WouldBlock) => None,
    }
}
