//! Functions of the CUDA driver that the library has no use for, or has for itself.

use crate::Result;
use std::ffi::{CStr, c_int, c_uint, c_void};
use std::sync::OnceLock;

pub type Handle = *mut c_void;

macro_rules! functions {
    ($($name:ident = $symbol:literal ($($argument:ident: $type:ty),*);)*) => {
        pub struct Driver {
            $($name: unsafe extern "C" fn($($type),*) -> c_int,)*
        }

        impl Driver {
            fn find() -> Result<Self> {
                Ok(Self {
                    // SAFETY: cuda.h gives the functions these types, the enums aside.
                    $($name: unsafe {
                        std::mem::transmute::<Handle, unsafe extern "C" fn($($type),*) -> c_int>(find($symbol)?)
                    },)*
                })
            }

            $(
                /// # Safety
                /// What cuda.h asks of the arguments.
                pub unsafe fn $name(&self, $($argument: $type),*) -> Result<()> {
                    // SAFETY: the caller's promise.
                    match unsafe { (self.$name)($($argument),*) } {
                        0 => Ok(()),
                        code => Err(format!("{}: error {code}", $symbol.to_string_lossy())),
                    }
                }
            )*
        }
    };
}

functions! {
    mem_alloc = c"cuMemAlloc_v2"(address: *mut u64, bytes: usize);
    mem_free = c"cuMemFree_v2"(address: u64);
    event_create = c"cuEventCreate"(event: *mut Handle, flags: c_uint);
    event_destroy = c"cuEventDestroy_v2"(event: Handle);
    event_record = c"cuEventRecord"(event: Handle, stream: Handle);
    event_synchronize = c"cuEventSynchronize"(event: Handle);
    event_elapsed_time = c"cuEventElapsedTime"(milliseconds: *mut f32, from: Handle, to: Handle);
}

/// The driver, which the library has loaded.
pub fn driver() -> Result<&'static Driver> {
    static DRIVER: OnceLock<Result<Driver>> = OnceLock::new();
    DRIVER
        .get_or_init(Driver::find)
        .as_ref()
        .map_err(String::clone)
}

fn find(name: &CStr) -> Result<Handle> {
    let missing = || format!("the CUDA driver has no {}", name.to_string_lossy());
    // SAFETY: a C string; nothing is loaded that is not there already.
    let driver = unsafe {
        libc::dlopen(
            c"libcuda.so.1".as_ptr(),
            libc::RTLD_LAZY | libc::RTLD_NOLOAD,
        )
    };
    if driver.is_null() {
        return Err(missing());
    }
    // SAFETY: the handle is open, and the name a C string.
    let address = unsafe { libc::dlsym(driver, name.as_ptr()) };
    match address.is_null() {
        true => Err(missing()),
        false => Ok(address),
    }
}
