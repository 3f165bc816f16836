//! cuZFP, as `tests/gpu/check.sh build` makes it from `cuzfp.cu`; to compare with.

use crate::Result;
use std::ffi::{CStr, CString, c_int, c_void};
use std::path::Path;

type Code =
    unsafe extern "C" fn(c_int, c_int, *const c_int, c_int, *mut c_void, *mut c_void) -> c_int;

pub struct CuZfp {
    encode: Code,
    decode: Code,
}

/// Contiguous values on the device, and their stream.
#[derive(Clone, Copy)]
pub struct Job {
    /// Of a value.
    pub bytes: usize,
    pub dims: u8,
    pub extents: [usize; 3],
    pub block_bits: u32,
    pub values: u64,
    pub stream: u64,
}

impl CuZfp {
    pub fn load(path: &Path) -> Result<Self> {
        let name =
            CString::new(path.as_os_str().as_encoded_bytes()).map_err(|_| "a zero in a path")?;
        // SAFETY: a C string; the library's initialisers register its kernels with its own CUDA runtime.
        let library = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        let unusable = || format!("{} cannot be used", path.display());
        if library.is_null() {
            return Err(unusable());
        }
        let find = |name: &CStr| {
            // SAFETY: the handle is open, and the name a C string.
            let address = unsafe { libc::dlsym(library, name.as_ptr()) };
            match address.is_null() {
                true => Err(unusable()),
                // SAFETY: cuzfp.cu gives both functions this type.
                false => Ok(unsafe { std::mem::transmute::<*mut c_void, Code>(address) }),
            }
        };
        Ok(Self {
            encode: find(c"cuzfp_encode")?,
            decode: find(c"cuzfp_decode")?,
        })
    }

    /// Puts the work on the legacy default stream of the current context.
    pub fn encode(&self, job: &Job) -> Result<()> {
        call(self.encode, job)
    }

    /// As [`Self::encode`].
    pub fn decode(&self, job: &Job) -> Result<()> {
        call(self.decode, job)
    }
}

fn call(code: Code, job: &Job) -> Result<()> {
    let extents = job.extents.map(|extent| extent as c_int);
    let pointer = |address: u64| std::ptr::without_provenance_mut(address as usize);
    // SAFETY: the extents outlive the call; the addresses are of buffers of the device, large enough for the job.
    let error = unsafe {
        code(
            job.bytes as c_int,
            job.dims.into(),
            extents.as_ptr(),
            job.block_bits as c_int,
            pointer(job.values),
            pointer(job.stream),
        )
    };
    match error {
        0 => Ok(()),
        error => Err(format!("cuZFP: error {error}")),
    }
}
