//! Builds the programs of tests/mpi/ and examples/ with each MPI and launches them, with or without the
//! library preloaded.

#![allow(dead_code, reason = "each test file uses a part")]

pub mod bed;
pub mod fields;
pub mod fills;
pub mod gpu;
pub mod relay;
pub mod report;

use bed::Bed;
use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");
const SCRATCH: &str = env!("CARGO_TARGET_TMPDIR");

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mpi {
    OpenMpi,
    Mpich,
}

pub const BOTH: [Mpi; 2] = [Mpi::OpenMpi, Mpi::Mpich];

impl Mpi {
    fn suffix(self) -> &'static str {
        match self {
            Mpi::OpenMpi => "openmpi",
            Mpi::Mpich => "mpich",
        }
    }

    pub fn launcher(self) -> &'static str {
        match self {
            Mpi::OpenMpi => "mpirun.openmpi",
            Mpi::Mpich => "mpiexec.mpich",
        }
    }
}

/// The launch under way: one at a time, as ranks outnumber cores already.
fn one_at_a_time(lock: &'static Mutex<()>) -> MutexGuard<'static, ()> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

fn modified(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).and_then(|data| data.modified()).ok()
}

fn files_below(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory)
        .unwrap_or_else(|e| panic!("{}: {e}", directory.display()))
        .flatten()
    {
        let path = entry.path();
        if path.is_dir() {
            files_below(&path, found);
        } else {
            found.push(path);
        }
    }
}

/// The library as cargo built it beside this test; older than its source, it would prove nothing.
pub fn library() -> PathBuf {
    let test = std::env::current_exe().expect("path of the test");
    let deps = test.parent().expect("deps/");
    let candidates = [
        deps.join("libtranspress.so"),
        deps.join("../libtranspress.so"),
    ];
    let newest = candidates
        .into_iter()
        .filter(|path| path.exists())
        .max_by_key(|path| modified(path))
        .expect("libtranspress.so: cargo build makes it");
    let mut sources = vec![];
    files_below(&Path::new(ROOT).join("src"), &mut sources);
    for source in sources {
        assert!(
            modified(&source) <= modified(&newest),
            "{} is newer than {}: cargo build",
            source.display(),
            newest.display()
        );
    }
    newest.canonicalize().expect("path of the library")
}

/// Where the program `name` of this MPI is, built if its sources are newer.
///
/// `name` is a file of tests/mpi, tests/network, tests/gpu or examples without its ending, or a folder of C files that make
/// one program; `name:INTERFACE` compiles a Fortran file with -DINTERFACE. Names in `-tool` and `-plugin`
/// become shared objects.
pub fn build(mpi: Mpi, name: &str) -> PathBuf {
    static BUILDING: Mutex<()> = Mutex::new(());
    let _one = one_at_a_time(&BUILDING);

    let (file, define) = name.split_once(':').unwrap_or((name, ""));
    let tests = Path::new(ROOT).join("tests/mpi");
    let network = Path::new(ROOT).join("tests/network");
    let on_gpu = Path::new(ROOT).join("tests/gpu");
    let include = Path::new(ROOT).join("include");
    let mut sources = vec![];
    let mut fortran = false;
    if tests.join(file).is_dir() {
        files_below(&tests.join(file), &mut sources);
        sources.retain(|path| path.extension().is_some_and(|ending| ending == "c"));
    } else {
        let folders = [
            tests.clone(),
            network.clone(),
            on_gpu.clone(),
            on_gpu.join("fake"),
            Path::new(ROOT).join("examples"),
        ];
        let endings = ["c", "f90", "F90"];
        let found = folders
            .iter()
            .flat_map(|folder| endings.map(|ending| folder.join(format!("{file}.{ending}"))));
        let found = found
            .filter(|path| path.exists())
            .collect::<Vec<_>>()
            .pop()
            .unwrap_or_else(|| panic!("no program {file}"));
        fortran = found.extension().is_some_and(|ending| ending != "c");
        sources.push(found);
    }
    let shared = file.ends_with("-tool") || file.ends_with("-plugin") || file == "yield";
    if fortran {
        sources.insert(0, include.join("transpress.f90"));
    }
    let text: String = sources
        .iter()
        .map(|path| fs::read_to_string(path).expect("source"))
        .collect();
    if text.contains("check_init") {
        sources.push(tests.join("check.c"));
    }

    let folder = Path::new(SCRATCH).join(format!("{}-{file}{define}", mpi.suffix()));
    fs::create_dir_all(&folder).expect("scratch folder");
    let program = folder.join(if shared {
        format!("{file}.so")
    } else {
        file.into()
    });
    let mut inputs = vec![];
    files_below(&tests, &mut inputs);
    files_below(&network, &mut inputs);
    files_below(&on_gpu, &mut inputs);
    files_below(&include, &mut inputs);
    files_below(&Path::new(ROOT).join("examples"), &mut inputs);
    let newest = inputs.iter().filter_map(|path| modified(path)).max();
    if program.exists() && modified(&program) >= newest {
        return program;
    }

    let (compiler, flags) = if fortran {
        (
            format!("mpifort.{}", mpi.suffix()),
            "-O1 -g -Wall -fallow-argument-mismatch",
        )
    } else {
        // A program that never says MPI is not linked with it.
        let wrapper = format!("mpicc.{}", mpi.suffix());
        let compiler = if text.contains("MPI_") {
            wrapper
        } else {
            "cc".into()
        };
        (
            compiler,
            "-std=c11 -D_GNU_SOURCE -O1 -g -Wall -Wextra -Werror",
        )
    };
    let mut command = Command::new(&compiler);
    command.args(flags.split(' ')).arg("-I").arg(&include);
    if fortran {
        command.arg("-J").arg(&folder);
    }
    if shared {
        command.args(["-shared", "-fPIC"]);
    }
    if !define.is_empty() {
        command.arg(format!("-D{define}"));
    }
    command.args(&sources).arg("-o").arg(&program);
    if text.contains("\"cuda.h\"") {
        gpu::link(&mut command);
    }
    let output = command
        .args(["-lm", "-lpthread", "-ldl"])
        .output()
        .unwrap_or_else(|e| panic!("{compiler}: {e}"));
    assert!(
        output.status.success(),
        "{command:?}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    program
}

/// One launch. With the library unless told otherwise.
#[derive(Clone)]
pub struct Run {
    mpi: Mpi,
    program: PathBuf,
    args: Vec<String>,
    ranks: usize,
    env: Vec<(String, String)>,
    env_of_rank: Vec<(usize, String, String)>,
    preload: Vec<PathBuf>,
    bed: Option<Bed>,
    limit: Duration,
}

impl Run {
    pub fn new(mpi: Mpi, program: &str) -> Self {
        Self {
            program: build(mpi, program),
            preload: vec![library()],
            ..Self::bare(mpi)
        }
    }

    fn bare(mpi: Mpi) -> Self {
        Self {
            mpi,
            program: PathBuf::new(),
            args: vec![],
            ranks: 2,
            env: vec![],
            env_of_rank: vec![],
            preload: vec![],
            bed: None,
            limit: Duration::from_secs(60),
        }
    }

    /// A program that is there already.
    pub fn of_system(mpi: Mpi, program: &str) -> Self {
        Self {
            program: program.into(),
            preload: vec![library()],
            ..Self::bare(mpi)
        }
    }

    /// Without the library, and without its variables.
    pub fn plain(mut self) -> Self {
        self.preload.clear();
        self.env
            .retain(|(name, _)| !name.starts_with("TRANSPRESS_"));
        self
    }

    pub fn ranks(mut self, ranks: usize) -> Self {
        self.ranks = ranks;
        self
    }

    pub fn arg(mut self, arg: impl Into<String>) -> Self {
        self.args.push(arg.into());
        self
    }

    pub fn env(mut self, name: &str, value: impl ToString) -> Self {
        self.env.push((name.into(), value.to_string()));
        self
    }

    /// A variable of one rank alone.
    pub fn env_of(mut self, rank: usize, name: &str, value: &str) -> Self {
        self.env_of_rank.push((rank, name.into(), value.into()));
        self
    }

    /// Another object to preload, before the library.
    pub fn tool_before(mut self, tool: &str) -> Self {
        self.preload.insert(0, build(self.mpi, tool));
        self
    }

    /// Another object to preload, after the library.
    pub fn tool_after(mut self, tool: &str) -> Self {
        self.preload.push(build(self.mpi, tool));
        self
    }

    /// On several nodes.
    pub fn on(mut self, bed: &Bed) -> Self {
        self.bed = Some(bed.clone());
        self
    }

    pub fn limit(mut self, seconds: u64) -> Self {
        self.limit = Duration::from_secs(seconds);
        self
    }

    pub fn output(&self) -> Output {
        let mut command = match &self.bed {
            Some(bed) => bed.command(&[self.mpi.launcher()]),
            None => Command::new(self.mpi.launcher()),
        };
        if self.mpi == Mpi::OpenMpi && self.bed.is_none() {
            command.arg("--oversubscribe");
        }
        if self.env_of_rank.is_empty() {
            command.args(["-n", &self.ranks.to_string()]);
            self.program_under_env(&mut command, None);
        } else {
            for rank in 0..self.ranks {
                command.args((rank > 0).then_some(":"));
                command.args(["-n", "1"]);
                self.program_under_env(&mut command, Some(rank));
            }
        }
        launch(command, self.limit)
    }

    /// The preload is set for the program alone: no launcher or shell carries it.
    fn program_under_env(&self, command: &mut Command, rank: Option<usize>) {
        let mut preload = self.preload.clone();
        if self.mpi == Mpi::Mpich {
            preload.push(build(self.mpi, "yield"));
            if self.bed.is_some() {
                preload.push(build(self.mpi, "leave-tool"));
            }
        }
        command.arg("env");
        if !preload.is_empty() {
            let names: Vec<_> = preload
                .iter()
                .map(|path| path.display().to_string())
                .collect();
            command.arg(format!("LD_PRELOAD={}", names.join(":")));
        }
        for (name, value) in &self.env {
            command.arg(format!("{name}={value}"));
        }
        for (of, name, value) in &self.env_of_rank {
            if rank == Some(*of) {
                command.arg(format!("{name}={value}"));
            }
        }
        command.arg(&self.program).args(&self.args);
    }
}

/// Runs a command to its end, or for as long as it may take: what still runs then is killed, and the test
/// fails.
pub fn launch(mut command: Command, limit: Duration) -> Output {
    static LAUNCHES: AtomicUsize = AtomicUsize::new(0);
    static LAUNCHING: Mutex<()> = Mutex::new(());
    let _one = one_at_a_time(&LAUNCHING);

    let number = LAUNCHES.fetch_add(1, Ordering::Relaxed);
    let base = Path::new(SCRATCH).join(format!("launch-{}-{number}", std::process::id()));
    let (stdout, stderr) = (base.with_extension("out"), base.with_extension("err"));
    let create = |path: &Path| File::create(path).expect("scratch file");
    command
        .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
        .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
        .env("OMPI_MCA_btl_vader_single_copy_mechanism", "none")
        .env("HWLOC_HIDE_ERRORS", "2")
        .stdin(Stdio::null())
        .stdout(create(&stdout))
        .stderr(create(&stderr))
        .process_group(0);
    let mut child = command
        .spawn()
        .unwrap_or_else(|e| panic!("{command:?}: {e}"));
    let deadline = Instant::now() + limit;
    let status = loop {
        match child.try_wait().expect("state of the launcher") {
            Some(status) => break Some(status),
            None if Instant::now() > deadline => {
                kill_tree(child.id() as i32);
                child.wait().expect("end of the launcher");
                break None;
            }
            None => std::thread::sleep(Duration::from_millis(5)),
        }
    };
    let lossy =
        |path: &Path| String::from_utf8_lossy(&fs::read(path).expect("output")).into_owned();
    let output = Output {
        command: format!("{command:?}"),
        code: status.and_then(|status| status.code()),
        stdout: lossy(&stdout),
        stderr: lossy(&stderr),
    };
    for path in [stdout, stderr] {
        fs::remove_file(path).expect("scratch file");
    }
    assert!(status.is_some(), "still running after {limit:?}: {output}");
    output
}

/// Kills a process and all that descend from it; launchers put ranks into groups of their own.
fn kill_tree(pid: i32) {
    let mut tree = vec![pid];
    let mut next = 0;
    while next < tree.len() {
        let children = format!("/proc/{0}/task/{0}/children", tree[next]);
        let children = fs::read_to_string(children).unwrap_or_default();
        tree.extend(
            children
                .split_whitespace()
                .filter_map(|pid| pid.parse::<i32>().ok()),
        );
        next += 1;
    }
    for pid in tree {
        // SAFETY: kill takes no pointers, and the process is one that this test started.
        unsafe { libc::kill(pid, libc::SIGKILL) };
    }
}

/// What a launch left behind.
#[derive(Clone)]
pub struct Output {
    pub command: String,
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl std::fmt::Display for Output {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        let Self {
            command,
            code,
            stdout,
            stderr,
        } = self;
        write!(
            f,
            "{command}\nexit code {code:?}\n-- stdout\n{stdout}\n-- stderr\n{stderr}"
        )
    }
}

impl Output {
    /// The program ran to its end, and every check of it passed.
    #[track_caller]
    pub fn passes(self) -> Self {
        let failed = self.stdout.lines().any(|line| line.starts_with("FAIL"));
        let done = self.stdout.lines().any(|line| line == "done");
        let checked = self.stdout.lines().any(|line| line.starts_with("ok "));
        assert!(!failed && done && checked && self.code == Some(0), "{self}");
        self
    }

    /// What the library had to say: its lines that are not of the report.
    pub fn complaints(&self) -> Vec<&str> {
        let lines = self.stderr.lines();
        lines
            .filter(|line| line.starts_with("transpress: "))
            .collect()
    }

    /// Exactly one line by the library, which holds all of these words.
    #[track_caller]
    pub fn complains_once(self, words: &[&str]) -> Self {
        let lines = self.complaints();
        let said = lines.len() == 1 && words.iter().all(|word| lines[0].contains(word));
        assert!(said, "not one line with {words:?}: {self}");
        self
    }

    #[track_caller]
    pub fn complains_of_nothing(self) -> Self {
        assert!(self.complaints().is_empty(), "{self}");
        self
    }

    /// The number in the line "NAME NUMBER".
    #[track_caller]
    pub fn number(&self, name: &str) -> f64 {
        let mut lines = self.stdout.lines();
        let found = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok());
        found.unwrap_or_else(|| panic!("no number {name}: {self}"))
    }
}
