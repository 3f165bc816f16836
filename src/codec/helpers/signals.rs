//! The program's signals are for its own threads.

use std::mem::MaybeUninit;
use std::ptr;

/// Those that tell a thread what it did itself.
const OWN: [i32; 7] = [
    libc::SIGSEGV,
    libc::SIGBUS,
    libc::SIGFPE,
    libc::SIGILL,
    libc::SIGTRAP,
    libc::SIGSYS,
    libc::SIGABRT,
];

/// Starts a thread by `start`, which will take no signals but its own. Those that come meanwhile are taken afterwards.
pub fn without<R>(start: impl FnOnce() -> R) -> R {
    let (mut blocked, mut before) = (MaybeUninit::uninit(), MaybeUninit::uninit());
    // SAFETY: the sets are ours, and `blocked` is filled first; `before` is written unless the call fails, and then not
    // read.
    let changed = unsafe {
        libc::sigfillset(blocked.as_mut_ptr());
        for signal in OWN {
            libc::sigdelset(blocked.as_mut_ptr(), signal);
        }
        libc::pthread_sigmask(libc::SIG_SETMASK, blocked.as_ptr(), before.as_mut_ptr()) == 0
    };
    let started = start();
    if changed {
        // SAFETY: the set was written above.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), ptr::null_mut()) };
    }
    started
}
