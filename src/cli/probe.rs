//! Questions to libraries of others, asked in a process of their own: a broken MPI or a stuck driver
//! then costs an answer and nothing else.
//!
//! `info` starts this very command as `transpress probe ...` and reads what it prints.

use std::ffi::{CStr, CString, OsStr, OsString, c_char, c_int, c_void};
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use super::gpu;

#[derive(clap::Subcommand)]
pub enum Probe {
    /// What MPI_Get_library_version says
    Mpi { library: OsString },
    /// The CUDA devices, one a line
    Cuda,
}

impl Probe {
    /// The side of the process that was started.
    pub fn answer(self) -> ExitCode {
        let answer = match self {
            Self::Mpi { library } => mpi_version(&library),
            Self::Cuda => Some(gpu::lines()),
        };
        match answer {
            Some(text) if std::io::stdout().write_all(text.as_bytes()).is_ok() => ExitCode::SUCCESS,
            _ => ExitCode::FAILURE,
        }
    }
}

/// Asks, and waits a while; `None` where no answer came.
pub fn ask(question: &[&OsStr]) -> Option<String> {
    /// A driver wakes up within seconds, and compiles kernels that it has not seen before in some more.
    const PATIENCE: Duration = Duration::from_secs(60);
    let mut child = Command::new(std::env::current_exe().ok()?)
        .arg("probe")
        .args(question)
        .env_remove("LD_PRELOAD")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    // Answers are far shorter than a pipe holds, so nobody has to read while waiting.
    let begin = Instant::now();
    let status = loop {
        match child.try_wait().ok()? {
            Some(status) => break status,
            None if begin.elapsed() > PATIENCE => {
                let _ = child.kill();
                let _ = child.wait();
                return None;
            }
            None => std::thread::sleep(Duration::from_millis(5)),
        }
    };
    let mut answer = String::new();
    child.stdout?.read_to_string(&mut answer).ok()?;
    status.success().then_some(answer)
}

/// MPI_Get_library_version, one of the few calls that MPI allows before MPI_Init.
fn mpi_version(library: &OsStr) -> Option<String> {
    type GetLibraryVersion = unsafe extern "C" fn(*mut c_char, *mut c_int) -> c_int;
    /// The largest MPI_MAX_LIBRARY_VERSION_STRING (MPICH's and the standard ABI's).
    const LONGEST: usize = 8192;

    let library = CString::new(library.as_bytes()).ok()?;
    // Open MPI's plugins look for its symbols among the global ones.
    let address = symbol(&library, libc::RTLD_GLOBAL, c"MPI_Get_library_version")?;
    // SAFETY: this is the function's type in every MPI.
    let get = unsafe { std::mem::transmute::<*mut c_void, GetLibraryVersion>(address) };
    let mut text = vec![0u8; LONGEST + 1];
    let mut length: c_int = 0;
    // SAFETY: the buffer is as long as any MPI asks for, and both pointers outlive the call.
    let status = unsafe { get(text.as_mut_ptr().cast(), &raw mut length) };
    let text = CStr::from_bytes_until_nul(&text).ok()?;
    (status == 0).then(|| text.to_string_lossy().into_owned())
}

/// A symbol of a library that stays loaded.
pub(super) fn symbol(library: &CStr, scope: c_int, name: &CStr) -> Option<*mut c_void> {
    // SAFETY: both are C strings. The library's initialisers run, which is what loading it means.
    let address = unsafe {
        let handle = libc::dlopen(library.as_ptr(), libc::RTLD_LAZY | scope);
        if handle.is_null() {
            return None;
        }
        libc::dlsym(handle, name.as_ptr())
    };
    (!address.is_null()).then_some(address)
}
