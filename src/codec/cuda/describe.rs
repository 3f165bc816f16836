//! What the driver says of the machine's devices, for people.

use std::ffi::{CStr, c_int};

use cudarc::driver::sys::cudaError_enum;

use super::device::{self, Capability};
use super::driver::{Driver, Result};
use super::module::Module;

pub struct Description {
    /// The CUDA version that the driver is of: 12040 for 12.4.
    pub driver_version: c_int,
    pub devices: Vec<Described>,
}

pub struct Described {
    pub name: String,
    pub capability: Capability,
    pub bytes: usize,
    /// Whether the kernels can be launched there; else a sentence.
    pub kernels: std::result::Result<(), String>,
}

/// Looks at every device, and loads the kernels there: that makes contexts, which take time and memory. `None` where
/// there is no driver that can be used.
pub fn describe(image: &'static CStr) -> Result<Option<Description>> {
    let Some(driver) = Driver::load() else {
        return Ok(None);
    };
    let mut driver_version = 0;
    // SAFETY: `driver_version` outlives the call; cuInit takes no pointer, and its flags must be 0.
    let begun = unsafe {
        driver.driver_get_version(&raw mut driver_version)?;
        driver.init(0)
    };
    let count = match begun {
        Err(error) if error.is(cudaError_enum::CUDA_ERROR_NO_DEVICE) => 0,
        other => other.and_then(|()| driver.devices())?,
    };
    let devices = (0..count).map(|ordinal| described(driver, ordinal, image));
    Ok(Some(Description {
        driver_version,
        devices: devices.collect::<Result<_>>()?,
    }))
}

fn described(driver: &'static Driver, ordinal: c_int, image: &'static CStr) -> Result<Described> {
    let handle = driver.device(ordinal)?;
    let mut bytes = 0;
    // SAFETY: `bytes` outlives the call.
    unsafe { driver.device_total_mem(&raw mut bytes, handle) }?;
    let kernels = device::of_primary_context(driver, handle)
        .map_err(|error| error.to_string())
        .and_then(|device| Module::load(device, image).map(drop));
    Ok(Described {
        name: device::name(driver, handle)?,
        capability: device::capability(driver, handle)?,
        bytes,
        kernels,
    })
}
