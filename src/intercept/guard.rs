//! Stops double work: MPI implements some functions with others, Fortran bindings go through two of our
//! names, and our own traffic must not be taken for the program's.

use std::cell::Cell;

thread_local! {
    // Constant and without a destructor: no allocation, usable at any time in a process's life.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// While one lives, this thread is inside transpress.
pub struct Guard(());

impl Guard {
    /// `None` where this thread is inside already.
    pub fn enter() -> Option<Self> {
        INSIDE
            .with(|inside| !inside.replace(true))
            .then_some(Self(()))
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        INSIDE.with(|inside| inside.set(false));
    }
}
