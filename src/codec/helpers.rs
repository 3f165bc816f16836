//! Threads that help with a call. Between calls they sleep, as to wake one takes half as long as to start one, which
//! moreover may get no processor before the call is over; without calls they leave.
//!
//! The program knows nothing of them. So a call does not wait for a helper that has not begun, they take none of its
//! signals, and a process that was forked has its own.

mod cores;
mod float_mode;
mod signals;

use cores::Cores;
use float_mode::FloatMode;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// What is to be done by several threads at once.
type Work<'a> = &'a (dyn Fn() + Sync);

/// A helper leaves after that long without a call.
const PATIENCE: Duration = Duration::from_secs(1);

/// `work` of each item, in their order, on up to `threads` threads, this one among them. A thread takes the next item when
/// it is done with one; one that cannot be had is done without.
pub fn each<I: Sync, R: Send>(
    items: &[I],
    threads: usize,
    work: impl Fn(&I) -> R + Sync,
) -> Vec<R> {
    let threads = threads.min(items.len());
    if threads <= 1 {
        return items.iter().map(work).collect();
    }
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::with_capacity(items.len()));
    let take = || {
        let mut mine = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(index) else {
                break;
            };
            mine.push((index, work(item)));
        }
        done.lock()
            .unwrap_or_else(PoisonError::into_inner)
            .append(&mut mine);
    };
    Crew::here().together(threads - 1, &take);
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_unstable_by_key(|&(index, _)| index);
    done.into_iter().map(|(_, result)| result).collect()
}

/// How many cores helpers may run on, if the program's calls were large enough for any.
pub fn cores_of_helpers() -> Option<usize> {
    if CREW.load(Ordering::Acquire).is_null() {
        return None;
    }
    cores::count()
}

static CREW: AtomicPtr<Crew> = AtomicPtr::new(ptr::null_mut());

/// The helpers of a process.
struct Crew {
    process: u32,
    state: Mutex<State>,
    /// Some call is open for helpers.
    invited: Condvar,
    /// The last helper of some call is done.
    done: Condvar,
}

#[derive(Default)]
struct State {
    calls: Vec<Call>,
    next_id: u64,
    /// Helpers that are not at work, those that were just started or woken up among them.
    idle: usize,
}

struct Call {
    id: u64,
    work: Work<'static>,
    mode: FloatMode,
    /// Helpers that may still begin.
    open: usize,
    /// Helpers at work.
    running: usize,
    panic: Option<Panic>,
}

type Panic = Box<dyn Any + Send>;

impl State {
    /// Adds a call, and says how many helpers there are too few.
    fn open(&mut self, count: usize, work: Work<'static>) -> (u64, usize) {
        let id = self.next_id;
        self.next_id += 1;
        self.calls.push(Call {
            id,
            work,
            mode: FloatMode::here(),
            open: count,
            running: 0,
            panic: None,
        });
        let wanted: usize = self.calls.iter().map(|call| call.open).sum();
        (id, wanted.saturating_sub(self.idle).min(count))
    }

    fn is_open(&self) -> bool {
        self.calls.iter().any(|call| call.open > 0)
    }

    fn call(&mut self, id: u64) -> Option<&mut Call> {
        self.calls.iter_mut().find(|call| call.id == id)
    }

    /// A helper begins with a call of this mode, if there is one.
    fn begin(&mut self, mode: FloatMode) -> Option<(u64, Work<'static>)> {
        let invites = |call: &&mut Call| call.open > 0 && call.mode == mode;
        let call = self.calls.iter_mut().find(invites)?;
        call.open -= 1;
        call.running += 1;
        self.idle -= 1;
        Some((call.id, call.work))
    }

    /// A helper is done with a call. Says whether no other is at work on it.
    fn end(&mut self, id: u64, panic: Option<Panic>) -> bool {
        self.idle += 1;
        self.call(id).is_some_and(|call| {
            call.running -= 1;
            call.panic = panic.or(call.panic.take());
            call.running == 0
        })
    }
}

impl Crew {
    /// That of this process. One that was forked has left the threads behind, and maybe a lock that one of them held; so
    /// it gets a new one, and the other is never freed.
    fn here() -> &'static Crew {
        let process = std::process::id();
        let known = CREW.load(Ordering::Acquire);
        // SAFETY: it is null or was leaked below.
        if let Some(crew) = unsafe { known.as_ref() }
            && crew.process == process
        {
            return crew;
        }
        let crew = Crew::new(process);
        // Of two threads that come here at once, each has its own for this call.
        CREW.store(ptr::from_ref(crew).cast_mut(), Ordering::Release);
        crew
    }

    fn new(process: u32) -> &'static Crew {
        Box::leak(Box::new(Crew {
            process,
            state: Mutex::default(),
            invited: Condvar::new(),
            done: Condvar::new(),
        }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs `work` on this thread and, as long as it runs here, has up to `count` helpers begin with it too. No thread
    /// runs it any more afterwards.
    fn together(&'static self, count: usize, work: Work) {
        // SAFETY: the reference is used by helpers of this call only, which are done when `close` returns, and nothing
        // returns or unwinds before it.
        let lasting = unsafe { std::mem::transmute::<Work<'_>, Work<'static>>(work) };
        let id = self.open(count, lasting);
        let ours = catch_unwind(AssertUnwindSafe(work)).err();
        let theirs = self.close(id);
        if let Some(panic) = ours.or(theirs) {
            resume_unwind(panic);
        }
    }

    /// Invites helpers, and starts those that there are too few. One that cannot be had is done without.
    fn open(&'static self, count: usize, work: Work<'static>) -> u64 {
        let mut state = self.state();
        let (id, missing) = state.open(count, work);
        state.idle += missing;
        drop(state);
        for _ in missing..count {
            self.invited.notify_one();
        }
        for started in 0..missing {
            let helper = std::thread::Builder::new().name(cores::NAME.into());
            let thread = signals::without(|| helper.spawn(|| self.help()));
            if thread.is_err() {
                self.state().idle -= missing - started;
                break;
            }
        }
        id
    }

    /// Has no helper begin any more, and waits for those at work. Returns what one of them panicked with.
    fn close(&self, id: u64) -> Option<Panic> {
        let mut state = self.state();
        if let Some(call) = state.call(id) {
            call.open = 0;
        }
        while state.call(id).is_some_and(|call| call.running > 0) {
            state = (self.done.wait(state)).unwrap_or_else(PoisonError::into_inner);
        }
        let index = state.calls.iter().position(|call| call.id == id)?;
        state.calls.swap_remove(index).panic
    }

    /// A helper's life. It keeps the mode that it was started in and helps threads of the same only, as results must not
    /// depend on who computes them.
    fn help(&self) {
        let mode = FloatMode::here();
        let mut cores = Cores::default();
        let mut state = self.state();
        loop {
            if let Some((id, work)) = state.begin(mode) {
                drop(state);
                cores.refresh();
                let panic = catch_unwind(AssertUnwindSafe(work)).err();
                state = self.state();
                if state.end(id, panic) {
                    self.done.notify_all();
                }
                continue;
            }
            if state.is_open() {
                // For another mode: whoever calls next in that finds a helper too few.
                break;
            }
            let (woken, waited) = (self.invited.wait_timeout(state, PATIENCE))
                .unwrap_or_else(PoisonError::into_inner);
            state = woken;
            if waited.timed_out() && !state.is_open() {
                break;
            }
        }
        state.idle -= 1;
    }
}

#[cfg(test)]
mod tests;
