//! Whether the MPI in this process takes the addresses of buffers on a CUDA device.

use std::ffi::{CStr, c_char, c_int, c_void};

use super::find;

/// What the MPI says of itself. One that says nothing does not, so far as we know: an address of a device in the
/// hands of such an MPI ends the program, a copy too many costs time.
///
/// To be asked after `MPI_Init`.
pub fn takes_cuda_buffers() -> bool {
    of_library(&library_version()).unwrap_or_else(|| says_so().unwrap_or(false))
}

/// For MPIs whose functions say what they were built with, not what they do: those go by variables. The variables
/// alone prove nothing, since job scripts set those of all MPIs.
fn of_library(version: &str) -> Option<bool> {
    let variable = |name| std::env::var(name).is_ok_and(|value| is_switched_on(&value));
    if version.contains("CRAY MPICH") {
        Some(variable("MPICH_GPU_SUPPORT_ENABLED"))
    } else if version.contains("MVAPICH") {
        let asked_for = ["MV2_USE_CUDA", "MVP_USE_CUDA", "MVP_ENABLE_GPU"];
        Some(asked_for.into_iter().any(variable) && says_so() != Some(false))
    } else {
        None
    }
}

fn is_switched_on(value: &str) -> bool {
    value.trim().parse().is_ok_and(|number: i64| number != 0)
}

/// What the MPI answers when asked; `None` where it has no function for that.
fn says_so() -> Option<bool> {
    gpu_query_support().or_else(query_cuda_support)
}

/// MPICH and its family.
fn gpu_query_support() -> Option<bool> {
    /// MPIX_GPU_SUPPORT_CUDA.
    const CUDA: c_int = 0;
    type Query = unsafe extern "C" fn(c_int, *mut c_int) -> c_int;
    let address = find::object(c"MPIX_GPU_query_support")?;
    // SAFETY: this is the function's type in every MPI that has it.
    let query = unsafe { std::mem::transmute::<*mut c_void, Query>(address) };
    let mut supported = 0;
    // SAFETY: `supported` outlives the call.
    let status = unsafe { query(CUDA, &raw mut supported) };
    Some(status == 0 && supported != 0)
}

/// Open MPI; others have it, too.
fn query_cuda_support() -> Option<bool> {
    type Query = unsafe extern "C" fn() -> c_int;
    let address = find::object(c"MPIX_Query_cuda_support")?;
    // SAFETY: this is the function's type in every MPI that has it.
    let query = unsafe { std::mem::transmute::<*mut c_void, Query>(address) };
    // SAFETY: it has no arguments.
    Some(unsafe { query() } == 1)
}

/// What the MPI calls itself; empty for one before MPI 3.
fn library_version() -> String {
    type GetLibraryVersion = unsafe extern "C" fn(*mut c_char, *mut c_int) -> c_int;
    /// The largest MPI_MAX_LIBRARY_VERSION_STRING (MPICH's and the standard ABI's).
    const LONGEST: usize = 8192;
    let Some(address) = find::next(c"PMPI_Get_library_version") else {
        return String::new();
    };
    // SAFETY: this is the function's type in every MPI.
    let get = unsafe { std::mem::transmute::<*mut c_void, GetLibraryVersion>(address) };
    let mut text = vec![0u8; LONGEST + 1];
    let mut length: c_int = 0;
    // SAFETY: the buffer is as long as any MPI asks for, and both pointers outlive the call.
    unsafe { get(text.as_mut_ptr().cast(), &raw mut length) };
    CStr::from_bytes_until_nul(&text)
        .map(|text| text.to_string_lossy().into_owned())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn switches() {
        for on in ["1", " 1", "2", "-1"] {
            assert!(is_switched_on(on), "{on:?}");
        }
        for off in ["", "0", "no", "yes"] {
            assert!(!is_switched_on(off), "{off:?}");
        }
    }

    /// A process without MPI is not asked anything, and an MPI without answer takes none.
    #[test]
    fn without_an_answer() {
        assert!(!takes_cuda_buffers());
        assert_eq!(of_library("Open MPI v4.1.4"), None);
        assert_eq!(of_library("MPICH Version: 4.0.2"), None);
    }
}
