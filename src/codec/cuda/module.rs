//! The kernels in a context: PTX text that the driver compiles for its device.

use std::ffi::{CStr, CString, c_char, c_void};
use std::ptr::null_mut;
use std::sync::{Mutex, PoisonError};

use cudarc::driver::sys::{CUfunction, CUjit_option, CUmodule, cudaError_enum};

use super::device::{Capability, Device};
use super::driver::{Error, Result};

/// What the kernels are written for: warps whose lanes go their own ways (Volta).
const LEAST: Capability = (7, 0);

/// What a kernel begins with.
const ENTRY: &str = ".visible .entry ";

/// PTX text of kernels that need nothing of each other. Each is compiled when it is launched for the first time: all of
/// them take seconds, and a program needs few.
pub(super) struct Module {
    image: &'static str,
    functions: Mutex<Vec<(CString, CUfunction)>>,
}

impl Module {
    /// The error says why the device cannot have them.
    pub(super) fn load(
        device: &'static Device,
        image: &'static CStr,
    ) -> std::result::Result<Self, String> {
        let capability = device.capability().map_err(|error| error.to_string())?;
        if let Some(why) = too_old(capability) {
            return Err(why);
        }
        let image = image.to_str().map_err(|error| error.to_string())?;
        let _pushed = device.push().map_err(|error| error.to_string())?;
        // A driver that takes the shortest one takes all.
        let shortest = kernels(image).min_by_key(|kernel| kernel.len());
        let module = compile(device, &alone(image, shortest.unwrap_or_default())?)?;
        // SAFETY: the module is of the current context, and nothing of it is used.
        let _ = unsafe { device.driver.module_unload(module) };
        Ok(Self {
            image,
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
        let module = self.module_of(device, name).map_err(|why| {
            tracing::warn!("kernel {name:?}: {why}");
            Error::new("cuModuleLoadDataEx", cudaError_enum::CUDA_ERROR_NOT_FOUND)
        })?;
        let mut function = null_mut();
        // SAFETY: the module is of the current context, the name is a C string, and `function` outlives the call.
        device.noted(unsafe {
            device
                .driver
                .module_get_function(&raw mut function, module, name.as_ptr())
        })?;
        functions.push((name.into(), function));
        Ok(function)
    }

    fn module_of(&self, device: &Device, name: &CStr) -> std::result::Result<CUmodule, String> {
        let is_wanted = |kernel: &&str| {
            let named = kernel
                .strip_prefix(ENTRY)
                .and_then(|rest| rest.split_once('('));
            named.is_some_and(|(own, _)| own.as_bytes() == name.to_bytes())
        };
        let kernel = kernels(self.image).find(is_wanted).ok_or("there is none")?;
        compile(device, &alone(self.image, kernel)?)
    }
}

/// The kernels of a text, each from its beginning to that of the next.
fn kernels(image: &str) -> impl Iterator<Item = &str> {
    let starts: Vec<_> = image.match_indices(ENTRY).map(|(at, _)| at).collect();
    let ends: Vec<_> = starts
        .iter()
        .copied()
        .skip(1)
        .chain([image.len()])
        .collect();
    starts
        .into_iter()
        .zip(ends)
        .map(|(start, end)| &image[start..end])
}

/// The text with this kernel alone.
fn alone(image: &str, kernel: &str) -> std::result::Result<CString, String> {
    let head = image.split(ENTRY).next().unwrap_or_default();
    CString::new(format!("{head}{kernel}")).map_err(|error| error.to_string())
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
