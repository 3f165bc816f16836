//! The life of the library in one MPI process: settings at the start, the report at the end.

use crate::codec;
use crate::exchange;
use crate::log;
use crate::mpi::Mpi;
use crate::report;
use crate::settings::{Problem, Settings, VALIDITY};
use once_cell::sync::OnceCell;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

struct Session {
    settings: Settings,
    problems: Vec<Problem>,
}

static SESSION: OnceCell<Session> = OnceCell::new();
static CLOSED: AtomicBool = AtomicBool::new(false);

fn session() -> &'static Session {
    SESSION.get_or_init(|| {
        let (settings, problems) = Settings::from_env();
        log::install(settings.log);
        Session { settings, problems }
    })
}

pub fn settings() -> &'static Settings {
    &session().settings
}

/// After MPI was initialised, or at the first call where that went by another way. Rank 0 of
/// `MPI_COMM_WORLD` says what is wrong with its settings.
pub fn open(mpi: &Mpi) {
    static OPENED: Once = Once::new();
    OPENED.call_once(|| {
        if has_problems() && mpi.rank(mpi.abi.comm_world) == Ok(0) {
            say_problems();
        }
    });
}

/// Whether this rank could not read one of its variables.
pub fn has_problems() -> bool {
    !session().problems.is_empty()
}

/// Says what is wrong with the settings of this rank, once.
pub fn say_problems() {
    static SAID: Once = Once::new();
    SAID.call_once(|| {
        for problem in &session().problems {
            tracing::error!("{problem}; nothing is compressed");
        }
    });
}

/// Before MPI is finalised: the report, and no more work after it.
pub fn close(mpi: &Mpi) {
    if SESSION.get().is_some() && !CLOSED.swap(true, Ordering::AcqRel) {
        say_if_cores_are_few(mpi);
        report::write(mpi, &settings().report);
        exchange::free_unit_types(mpi);
    }
}

/// Launchers may bind a rank to one core; more threads then only take turns.
fn say_if_cores_are_few(mpi: &Mpi) {
    let threads = settings().threads;
    let cores = codec::cores_of_helpers().filter(|&cores| cores < threads);
    if let Some(cores) = cores
        && mpi.rank(mpi.abi.comm_world) == Ok(0)
    {
        tracing::warn!(
            "TRANSPRESS_THREADS={threads}, but the cores that rank 0 was bound to are {cores}; its threads took turns \
             (mpirun --map-by slot:PE={threads}, mpiexec -bind-to core:{threads} or srun -c {threads} binds to more)"
        );
    }
}

/// From `MPI_Finalize` on.
pub fn is_closed() -> bool {
    CLOSED.load(Ordering::Acquire)
}

/// What the ranks of a communicator must have in common, with the text of a variable that this rank could
/// not read in place of its value.
pub fn agreement(name: &str, number: usize) -> Vec<(&'static str, String)> {
    let Session { settings, problems } = session();
    let mut facts = settings.agreement(name, number);
    for problem in problems {
        let fact = facts
            .iter()
            .position(|(variable, _)| *variable == problem.variable);
        let fact = fact.or_else(|| facts.iter().position(|(variable, _)| *variable == VALIDITY));
        if let Some(fact) = fact {
            facts[fact].1 = problem.to_string();
        }
    }
    facts
}
