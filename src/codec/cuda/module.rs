//! The kernels in a context: PTX text that the driver compiles for its device.

use std::ffi::{CStr, CString, c_char, c_void};
use std::ptr::null_mut;
use std::sync::{Mutex, PoisonError};

use cudarc::driver::sys::{CUfunction, CUjit_option, CUmodule};

use super::device::{Capability, Device};
use super::driver::Result;

/// What the kernels are written for: warps whose lanes go their own ways (Volta).
const LEAST: Capability = (7, 0);

pub(super) struct Module {
    module: CUmodule,
    functions: Mutex<Vec<(CString, CUfunction)>>,
}

impl Module {
    /// The error says why the device cannot have them.
    pub(super) fn load(device: &'static Device, image: &CStr) -> std::result::Result<Self, String> {
        let capability = device.capability().map_err(|error| error.to_string())?;
        if let Some(why) = too_old(capability) {
            return Err(why);
        }
        let _pushed = device.push().map_err(|error| error.to_string())?;
        let module = compile(device, image)?;
        Ok(Self {
            module,
            functions: Mutex::new(Vec::new()),
        })
    }

    /// A kernel by its name. The context is current.
    pub(super) fn function(&self, device: &Device, name: &CStr) -> Result<CUfunction> {
        let mut functions = self
            .functions
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some((_, known)) = functions.iter().find(|(of, _)| of.as_c_str() == name) {
            return Ok(*known);
        }
        let mut function = null_mut();
        // SAFETY: the module is of the current context, the name is a C string, and `function` outlives the call.
        device.noted(unsafe {
            device
                .driver
                .module_get_function(&raw mut function, self.module, name.as_ptr())
        })?;
        functions.push((name.into(), function));
        Ok(function)
    }
}

/// Why a device of this capability gets no kernels.
fn too_old(capability: Capability) -> Option<String> {
    (capability < LEAST).then(|| {
        let ((major, minor), (least, least_minor)) = (capability, LEAST);
        format!("compute capability {major}.{minor} is below {least}.{least_minor}")
    })
}

/// Has the driver compile the image for the device of the current context.
fn compile(device: &Device, image: &CStr) -> std::result::Result<CUmodule, String> {
    use CUjit_option as option;
    let mut log: [c_char; 1024] = [0; 1024];
    let mut names = [
        option::CU_JIT_ERROR_LOG_BUFFER as u32,
        option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES as u32,
    ];
    // Numbers travel in the place of pointers. The last byte of the log stays zero.
    let size = std::ptr::without_provenance_mut::<c_void>(log.len() - 1);
    let mut values = [log.as_mut_ptr().cast::<c_void>(), size];
    let mut module = null_mut();
    // SAFETY: the image is a C string, the arrays have as many entries as is said, the log as many bytes, and all
    // outlive the call.
    let loaded = device.noted(unsafe {
        device.driver.module_load_data_ex(
            &raw mut module,
            image.as_ptr().cast(),
            names.len() as u32,
            names.as_mut_ptr(),
            values.as_mut_ptr(),
        )
    });
    loaded.map(|()| module).map_err(|error| {
        // SAFETY: the last byte is zero, whatever the driver wrote before it.
        let log = unsafe { CStr::from_ptr(log.as_ptr()) }.to_string_lossy();
        match log.trim() {
            "" => error.to_string(),
            log => format!("{error}: {log}"),
        }
    })
}
