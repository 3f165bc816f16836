//! The kernels, compiled for this machine by its C++ compiler.

use std::ffi::{CString, c_char, c_int, c_uint, c_void};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use transpress::codec::cuda::kernels::Kernel;

type Emulate = unsafe extern "C" fn(*const c_char, c_uint, c_uint, *const *const c_void) -> c_int;
type Order = unsafe extern "C" fn(c_uint);

struct Emulator {
    emulate: Emulate,
    order: Order,
}

/// Where the kernels' source is.
pub fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src/codec/cuda/kernels")
}

/// Compiles the kernels. `EMULATION_CXXFLAGS` may add to the compiler's options.
fn compile() -> PathBuf {
    let library = Path::new(env!("CARGO_TARGET_TMPDIR")).join("libemulation.so");
    let flags = std::env::var("EMULATION_CXXFLAGS").unwrap_or_default();
    let status = Command::new("g++")
        .args(["-std=c++14", "-O2", "-fPIC", "-shared", "-ffp-contract=off"])
        .args(["-Wall", "-Wextra", "-Wno-unknown-pragmas"])
        .args(flags.split_whitespace())
        .arg("-I")
        .arg(sources())
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/gpu/emulation/emulate.cpp"))
        .arg("-o")
        .arg(&library)
        .status()
        .expect("g++ is there");
    assert!(status.success(), "g++ does not compile the kernels");
    library
}

fn emulator() -> &'static Emulator {
    static EMULATOR: OnceLock<Emulator> = OnceLock::new();
    EMULATOR.get_or_init(|| {
        let library = CString::new(compile().into_os_string().into_encoded_bytes()).unwrap();
        // SAFETY: the library runs no code when it is loaded, and its functions have these types.
        unsafe {
            let handle = libc::dlopen(library.as_ptr(), libc::RTLD_NOW);
            assert!(!handle.is_null(), "{library:?} cannot be loaded");
            let symbol = |name: &std::ffi::CStr| {
                let symbol = libc::dlsym(handle, name.as_ptr());
                assert!(!symbol.is_null(), "{name:?}");
                symbol
            };
            Emulator {
                emulate: std::mem::transmute::<*mut c_void, Emulate>(symbol(c"emulate")),
                order: std::mem::transmute::<*mut c_void, Order>(symbol(c"emulate_order")),
            }
        }
    })
}

/// Launches a kernel with its parameters, of 32 and 64 bits, and its threads in some order.
///
/// # Safety
/// The parameters must be those of the kernel, and what they point to valid.
pub unsafe fn launch(kernel: Kernel, jobs: u32, parts: u32, order: u32, parameters: &[u64]) {
    let emulator = emulator();
    let grid = kernel.thread_blocks(jobs, parts);
    // The low half of a little-endian number is where the number is.
    let pointers: Vec<*const c_void> = (parameters.iter())
        .map(|parameter| std::ptr::from_ref(parameter).cast())
        .collect();
    // SAFETY: the caller's promise, handed on.
    let unknown = unsafe {
        (emulator.order)(order);
        (emulator.emulate)(
            kernel.name().as_ptr(),
            grid,
            kernel.threads(),
            pointers.as_ptr(),
        )
    };
    assert_eq!(unknown, 0, "no kernel {:?}", kernel.name());
}
