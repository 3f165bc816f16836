//! The cores that helpers run on: all those that the program's own threads may run on.
//!
//! A helper would be confined to the cores of the thread that started it. OpenMP binds each of its threads to one, the
//! first thread, which calls MPI, among them; and while that is in MPI the others have nothing to do.

use std::time::{Duration, Instant};

/// What threads that help are called.
pub const NAME: &str = "transpress-zfp";

/// Programs may start and bind threads at any time; a helper looks that often.
const PERIOD: Duration = Duration::from_secs(1);

/// The cores of a helper.
#[derive(Default)]
pub struct Cores {
    looked: Option<Instant>,
}

impl Cores {
    /// Lets this thread run on all cores that threads of the program may run on, if it is time to look again.
    pub fn refresh(&mut self) {
        let now = Instant::now();
        if self.looked.is_some_and(|then| now - then < PERIOD) {
            return;
        }
        self.looked = Some(now);
        if let Some(cores) = of_program() {
            // SAFETY: the set is as long as said, and 0 is this thread.
            unsafe { libc::sched_setaffinity(0, size_of_val(&cores), &cores) };
        }
    }
}

/// How many there are.
pub fn count() -> Option<usize> {
    // SAFETY: it counts the bits of a set.
    of_program().map(|cores| unsafe { libc::CPU_COUNT(&cores) as usize })
}

/// Those of all threads of the process that are no helpers. Nothing where there is no `/proc`.
fn of_program() -> Option<libc::cpu_set_t> {
    let mut all: Option<libc::cpu_set_t> = None;
    for thread in std::fs::read_dir("/proc/self/task").ok()?.flatten() {
        let name = std::fs::read_to_string(thread.path().join("comm"));
        let id = thread.file_name().to_str().and_then(|id| id.parse().ok());
        let (Some(id), Ok(name)) = (id, name) else {
            continue;
        };
        if name.trim_end() == NAME {
            continue;
        }
        if let Some(cores) = of_thread(id) {
            let known = all.unwrap_or(cores);
            all = Some(union(&known, &cores));
        }
    }
    all
}

/// Those of a thread; 0 is this one.
pub fn of_thread(id: libc::pid_t) -> Option<libc::cpu_set_t> {
    // SAFETY: a set is an array of bits; zeros are an empty one.
    let mut cores: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the set is as long as said.
    let known = unsafe { libc::sched_getaffinity(id, size_of_val(&cores), &mut cores) == 0 };
    known.then_some(cores)
}

fn union(a: &libc::cpu_set_t, b: &libc::cpu_set_t) -> libc::cpu_set_t {
    let mut union = *a;
    for core in 0..8 * size_of_val(b) {
        // SAFETY: the core is one of the set's.
        unsafe {
            if libc::CPU_ISSET(core, b) {
                libc::CPU_SET(core, &mut union);
            }
        }
    }
    union
}
