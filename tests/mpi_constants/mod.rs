//! The constants of an MPI, by name: those of our table, and those of its own header.

use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::Path;
use std::process::Command;
use transpress::mpi::{Abi, SUCCESS};

pub type Constants = BTreeMap<String, u64>;

/// As our table has them.
pub fn of_table(abi: &Abi) -> Constants {
    let int = |value: c_int| u64::from(value.cast_unsigned());
    let combiners = &abi.combiners;
    let constants = [
        ("handle bytes", abi.handle_bytes as u64),
        ("MPI_IN_PLACE", abi.in_place as u64),
        ("MPI_STATUS_IGNORE", abi.status_ignore as u64),
        ("MPI_COMM_WORLD", abi.comm_world as u64),
        ("MPI_COMM_NULL", abi.comm_null as u64),
        ("MPI_INFO_NULL", abi.info_null as u64),
        ("MPI_DATATYPE_NULL", abi.datatype_null as u64),
        ("MPI_BYTE", abi.byte as u64),
        ("MPI_INT", abi.int as u64),
        ("MPI_MAX", abi.max as u64),
        ("MPI_BOR", abi.bor as u64),
        ("MPI_ERRORS_RETURN", abi.errors_return as u64),
        ("MPI_SUCCESS", int(SUCCESS)),
        ("MPI_COMM_TYPE_SHARED", int(abi.comm_type_shared)),
        ("MPI_ERR_OTHER", int(abi.err_other)),
        ("MPI_COMBINER_NAMED", int(combiners.named)),
        ("MPI_COMBINER_DUP", int(combiners.dup)),
        ("MPI_COMBINER_CONTIGUOUS", int(combiners.contiguous)),
        ("MPI_COMBINER_VECTOR", int(combiners.vector)),
        ("MPI_COMBINER_HVECTOR", int(combiners.hvector)),
        ("MPI_COMBINER_SUBARRAY", int(combiners.subarray)),
        ("MPI_COMBINER_F90_REAL", int(combiners.f90_real)),
        ("MPI_COMBINER_F90_COMPLEX", int(combiners.f90_complex)),
        ("MPI_COMBINER_F90_INTEGER", int(combiners.f90_integer)),
        ("MPI_COMBINER_RESIZED", int(combiners.resized)),
    ];
    constants.map(|(name, value)| (name.into(), value)).into()
}

/// As the mpi.h of the compiler `mpicc` has them. Brings that MPI into this process, where `Abi::detect`
/// finds it: one MPI per process, then.
pub fn of_header(mpicc: &str) -> Constants {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    // One object per process: tests of different MPIs may run at once.
    let object = folder.join(format!("constants-{}.so", std::process::id()));
    let source = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/mpi_constants/constants.c"
    );
    let flags = ["-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o"];
    let status = Command::new(mpicc)
        .args(flags)
        .args([object.as_os_str(), source.as_ref()])
        // The object has to bring MPI along even where it refers to none of its symbols.
        .arg("-Wl,--no-as-needed")
        .status()
        .unwrap_or_else(|error| panic!("{mpicc}: {error}"));
    assert!(status.success(), "{mpicc}: {status}");
    let constants = load(&object);
    std::fs::remove_file(&object).unwrap();
    constants
}

fn load(object: &Path) -> Constants {
    type Each = extern "C" fn(*mut c_void, *const c_char, u64);
    let path = CString::new(object.to_str().unwrap()).unwrap();
    // SAFETY: `path` is a C string; loading an MPI runs nothing but its constructors.
    let library = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    assert!(!library.is_null(), "{}: {}", object.display(), dl_error());
    // SAFETY: `library` is a live handle.
    let address = unsafe { libc::dlsym(library, c"constants".as_ptr()) };
    assert!(!address.is_null(), "{}", dl_error());
    // SAFETY: constants.c defines the function so.
    let constants: extern "C" fn(Each, *mut c_void) = unsafe { std::mem::transmute(address) };
    let mut found = Constants::new();
    constants(keep, (&raw mut found).cast());
    found
}

extern "C" fn keep(found: *mut c_void, name: *const c_char, value: u64) {
    // SAFETY: `found` is what `load` passed, `name` a C string.
    let (found, name) = unsafe { (&mut *found.cast::<Constants>(), CStr::from_ptr(name)) };
    found.insert(name.to_str().unwrap().into(), value);
}

fn dl_error() -> String {
    // SAFETY: called after a failure, so that there is a message; it is copied at once.
    let message = unsafe { CStr::from_ptr(libc::dlerror()) };
    message.to_string_lossy().into_owned()
}
