//! A pair whose messages keep escaping goes raw for a while.

/// What the two ends of one direction of a pair count alike. An escaped message costs its compressed
/// size on top of its raw one, so after the second in a row the next 4 are sent raw, then 8, up to 64;
/// one that could be coded starts afresh.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backoff {
    escapes_in_a_row: u8,
    raw_left: u8,
}

const LONGEST_SHIFT: u8 = 6;

impl Backoff {
    /// Whether the next message that could be coded goes raw; counts it.
    pub fn holds_back(&mut self) -> bool {
        let holds = self.raw_left > 0;
        self.raw_left = self.raw_left.saturating_sub(1);
        holds
    }

    /// After a message that was to be coded.
    pub fn record(&mut self, escaped: bool) {
        if !escaped {
            *self = Self::default();
            return;
        }
        self.escapes_in_a_row = self.escapes_in_a_row.saturating_add(1);
        if self.escapes_in_a_row > 1 {
            self.raw_left = 1 << self.escapes_in_a_row.min(LONGEST_SHIFT);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn raw_spells_grow_and_end_with_the_first_coded_message() {
        let mut backoff = Backoff::default();
        let spell = |backoff: &mut Backoff| (0..).take_while(|_| backoff.holds_back()).count();
        for expected in [0, 4, 8, 16, 32, 64, 64, 64] {
            backoff.record(true);
            assert_eq!(spell(&mut backoff), expected);
        }
        backoff.record(false);
        backoff.record(true);
        assert_eq!(spell(&mut backoff), 0);
    }
}
