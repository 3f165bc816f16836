//! What a rank does while nothing has come and nothing can go.

/// Polls without a pause before the core is offered to others.
const SPINS: u32 = 64;

#[derive(Default)]
pub struct Idle {
    polls: u32,
}

impl Idle {
    /// After a poll. Where ranks outnumber cores, whoever waits must let the others work; where they do not,
    /// to yield costs nothing.
    pub fn step(&mut self, progress: bool) {
        if progress {
            self.polls = 0;
        } else if self.polls < SPINS {
            self.polls += 1;
            std::hint::spin_loop();
        } else {
            std::thread::yield_now();
        }
    }
}
