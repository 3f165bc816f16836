#![allow(clippy::unwrap_used, clippy::panic)]

use super::*;
use std::mem::MaybeUninit;
use std::sync::Barrier;
use std::time::Instant;

/// Threads may use it for ever. LeakSanitizer finds it here.
fn kept<T>(value: &'static T) -> &'static T {
    static KEPT: Mutex<Vec<usize>> = Mutex::new(Vec::new());
    KEPT.lock().unwrap().push(ptr::from_ref(value).addr());
    value
}

fn crew() -> &'static Crew {
    kept(Crew::new(std::process::id()))
}

/// Has `look` called by a helper while the caller is at work too, and returns what the helper saw.
fn seen_by_helper<R: Send>(crew: &'static Crew, look: impl Fn() -> R + Sync) -> R {
    let caller = std::thread::current().id();
    let (seen, both) = (Mutex::new(None), Barrier::new(2));
    crew.together(1, &|| {
        both.wait();
        if std::thread::current().id() != caller {
            *seen.lock().unwrap() = Some(look());
        }
    });
    seen.into_inner().unwrap().unwrap()
}

#[test]
fn helpers_work_at_the_same_time() {
    let crew = crew();
    for count in [0, 1, 3] {
        let (begun, barrier) = (AtomicUsize::new(0), Barrier::new(count + 1));
        crew.together(count, &|| {
            // None comes past it alone.
            barrier.wait();
            begun.fetch_add(1, Ordering::Relaxed);
        });
        assert_eq!(begun.into_inner(), count + 1);
    }
}

#[test]
fn calls_of_several_threads_get_their_own_work_done() {
    let crew = crew();
    let call = |number: usize| {
        for _ in 0..200 {
            let (next, sum) = (AtomicUsize::new(0), AtomicUsize::new(0));
            crew.together(2, &|| {
                while next.fetch_add(1, Ordering::Relaxed) < 50 {
                    sum.fetch_add(number, Ordering::Relaxed);
                }
            });
            assert_eq!(sum.into_inner(), 50 * number);
        }
    };
    std::thread::scope(|scope| {
        for number in 1..5 {
            scope.spawn(move || call(number));
        }
    });
}

#[test]
fn a_panic_reaches_the_caller_when_all_are_done() {
    let crew = crew();
    for panics in 0..2 {
        let (order, done, barrier) = (AtomicUsize::new(0), AtomicUsize::new(0), Barrier::new(2));
        let caught = catch_unwind(AssertUnwindSafe(|| {
            crew.together(1, &|| {
                let is_mine = order.fetch_add(1, Ordering::Relaxed) == panics;
                barrier.wait();
                assert!(!is_mine, "on purpose");
                done.fetch_add(1, Ordering::Relaxed);
            });
        }));
        assert!(caught.is_err());
        assert_eq!(done.into_inner(), 1);
    }
}

#[test]
fn a_helper_that_does_not_begin_is_neither_waited_for_nor_replaced() {
    let crew = crew();
    // It was woken up, and gets no processor.
    crew.state().idle = 1;
    for _ in 0..2 {
        let id = crew.open(1, &|| {});
        assert!(crew.close(id).is_none());
        assert_eq!(crew.state().idle, 1);
    }
}

#[test]
fn helpers_leave_when_there_are_no_calls() {
    let crew = crew();
    let begun = kept(Box::leak(Box::new(Barrier::new(2))));
    let work = kept(Box::leak(Box::new(|| {
        begun.wait();
    })));
    let id = crew.open(1, work);
    work();
    crew.close(id);
    assert_eq!(crew.state().idle, 1);
    let long_after = Instant::now() + 20 * PATIENCE;
    while crew.state().idle > 0 {
        assert!(Instant::now() < long_after);
        std::thread::sleep(PATIENCE / 20);
    }
}

#[test]
fn a_forked_process_has_helpers_of_its_own() {
    // As if one of ours held it just now.
    let held = Crew::here().state();
    // SAFETY: the child allocates, which glibc allows, takes no lock of the test runner's, and leaves by `_exit`.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: these are calls without memory.
        unsafe {
            libc::alarm(20);
            seen_by_helper(Crew::here(), || ());
            libc::_exit(7);
        }
    }
    drop(held);
    let mut status = 0;
    // SAFETY: the status is ours.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    assert!(
        libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 7,
        "{status}"
    );
}

fn is_blocked(signal: i32) -> bool {
    let mut blocked = MaybeUninit::uninit();
    // SAFETY: without a new set, the old one is written.
    unsafe {
        libc::pthread_sigmask(libc::SIG_BLOCK, ptr::null(), blocked.as_mut_ptr());
        libc::sigismember(blocked.as_ptr(), signal) == 1
    }
}

#[test]
fn helpers_take_no_signals_but_their_own() {
    let of_program = [libc::SIGUSR1, libc::SIGALRM, libc::SIGTERM, libc::SIGCHLD];
    for signal in of_program {
        assert!(seen_by_helper(crew(), || is_blocked(signal)));
        assert!(!is_blocked(signal));
    }
    assert!(!seen_by_helper(crew(), || is_blocked(libc::SIGSEGV)));
}

fn cores_here() -> Vec<usize> {
    let set = cores::of_thread(0).unwrap();
    // SAFETY: the cores are those of the set.
    let has = |&core: &usize| unsafe { libc::CPU_ISSET(core, &set) };
    (0..8 * size_of_val(&set)).filter(has).collect()
}

#[test]
fn a_bound_thread_gets_helpers_on_all_cores_of_the_program() {
    let all = cores_here();
    let bound = || {
        // SAFETY: zeros are an empty set, and it is as long as said.
        unsafe {
            let mut one: libc::cpu_set_t = std::mem::zeroed();
            libc::CPU_SET(all[0], &mut one);
            assert_eq!(libc::sched_setaffinity(0, size_of_val(&one), &one), 0);
        }
        assert_eq!(seen_by_helper(crew(), cores_here), all);
        assert_eq!(cores_here(), all[..1]);
        assert_eq!(cores::count(), Some(all.len()));
    };
    std::thread::scope(|scope| scope.spawn(bound).join().unwrap());
}

#[cfg(target_arch = "x86_64")]
#[test]
fn helpers_have_the_callers_floating_point_mode() {
    /// Subnormal results are zeros.
    const FLUSH: u32 = 1 << 15;
    let crew = crew();
    let calls = |flush: bool| {
        let usual = FloatMode::here();
        let register = if flush { 0x1f80 | FLUSH } else { 0x1f80 };
        // SAFETY: this thread computes nothing that the mode would change.
        unsafe { std::arch::asm!("ldmxcsr [{}]", in(reg) &raw const register, options(nostack)) };
        assert_eq!(FloatMode::here() != usual, flush);
        // Helpers of the other mode leave, so not every call gets one.
        let mut helped = 0;
        for _ in 0..1000 {
            let modes = Mutex::new(Vec::new());
            crew.together(1, &|| {
                modes.lock().unwrap().push(FloatMode::here());
                std::thread::sleep(Duration::from_millis(1));
            });
            let modes = modes.into_inner().unwrap();
            assert!(modes.iter().all(|&mode| mode == FloatMode::here()));
            helped += modes.len() - 1;
            if helped == 5 {
                return;
            }
        }
        panic!("{helped} calls were helped");
    };
    for flush in [true, false, true] {
        std::thread::scope(|scope| scope.spawn(move || calls(flush)).join().unwrap());
    }
}
