//! The GPUs that the CUDA driver sees. The driver is loaded at run time; nothing is linked.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};

use super::probe;

const DRIVER: &CStr = c"libcuda.so.1";
const SUCCESS: c_int = 0;

/// One line about the GPUs of this machine. Whether a driver is there can be seen at once; what it
/// says is asked in another process.
pub fn describe() -> String {
    if probe::symbol(DRIVER, libc::RTLD_LOCAL, c"cuInit").is_none() {
        return "none (no CUDA driver)".into();
    }
    match probe::ask(&["cuda".as_ref()]) {
        Some(names) if names.is_empty() => "none (the CUDA driver sees no device)".into(),
        Some(names) => names.trim().replace('\n', ", "),
        None => "none (the CUDA driver cannot be used)".into(),
    }
}

/// The names of the CUDA devices, each with a line break; `None` where the driver is out of order.
pub(super) fn names() -> Option<String> {
    /// cuInit's answer where a driver but no device is there.
    const NO_DEVICE: c_int = 100;

    // SAFETY: these are the types that cuda.h gives the five functions.
    let (init, count_devices, device, name_of) = unsafe {
        (
            std::mem::transmute::<*mut c_void, unsafe extern "C" fn(c_uint) -> c_int>(cuda(
                c"cuInit",
            )?),
            std::mem::transmute::<*mut c_void, unsafe extern "C" fn(*mut c_int) -> c_int>(cuda(
                c"cuDeviceGetCount",
            )?),
            std::mem::transmute::<*mut c_void, unsafe extern "C" fn(*mut c_int, c_int) -> c_int>(
                cuda(c"cuDeviceGet")?,
            ),
            std::mem::transmute::<
                *mut c_void,
                unsafe extern "C" fn(*mut c_char, c_int, c_int) -> c_int,
            >(cuda(c"cuDeviceGetName")?),
        )
    };

    // SAFETY: cuInit takes no pointer; its flags must be 0.
    match unsafe { init(0) } {
        SUCCESS => {}
        NO_DEVICE => return Some(String::new()),
        _ => return None,
    }
    let mut count: c_int = 0;
    // SAFETY: `count` outlives the call.
    if unsafe { count_devices(&raw mut count) } != SUCCESS {
        return None;
    }
    let mut names = String::new();
    for ordinal in 0..count {
        let mut handle: c_int = 0;
        let mut name = [0u8; 256];
        // SAFETY: the pointers outlive the calls, and the name's length is the buffer's.
        let read = unsafe {
            device(&raw mut handle, ordinal) == SUCCESS
                && name_of(name.as_mut_ptr().cast(), 255, handle) == SUCCESS
        };
        let name = CStr::from_bytes_until_nul(&name).ok().filter(|_| read)?;
        names += &name.to_string_lossy();
        names.push('\n');
    }
    Some(names)
}

fn cuda(name: &CStr) -> Option<*mut c_void> {
    probe::symbol(DRIVER, libc::RTLD_LOCAL, name)
}
