//! Where a buffer lives, and with which context to work on it.

use std::ffi::{c_int, c_uint, c_void};
use std::ptr::null_mut;

use cudarc::driver::sys::{CUcontext, CUdevice, CUmemorytype, CUpointer_attribute, cudaError_enum};

use super::device::{self, Device};
use super::driver::{Driver, Error, Result};

/// Where the memory at an address is.
#[derive(Clone, Copy)]
pub enum Location {
    /// For the processor to read and write; page-locked or not.
    Host,
    /// On a device, or managed: best worked on there.
    Device(&'static Device),
}

/// Where the memory at `address` is: inside an allocation, too, and whoever made it.
///
/// Without CUDA in the process, or before the program has initialised it, all memory is the host's, and nothing is
/// called that could change that. An error says that the memory is on a device that cannot be worked on, because
/// its context is gone or CUDA is shutting down: then nobody may touch it.
pub fn locate(address: *const u8) -> Result<Location> {
    let Some(driver) = Driver::in_process() else {
        return Ok(Location::Host);
    };
    match Pointer::ask(driver, address) {
        Some(pointer) => Ok(Location::Device(pointer.device(driver)?)),
        None => Ok(Location::Host),
    }
}

/// The device for buffers of the host that are to be coded on one: that of the thread's current context, else
/// one for each rank of the node by turns. Loads and initialises CUDA if need be, and makes the device's primary
/// context active, as a program's first CUDA call does; `None` where there is no driver or no device.
pub fn for_host_buffers(local_rank: usize) -> Result<Option<&'static Device>> {
    let Some(driver) = Driver::load() else {
        return Ok(None);
    };
    // SAFETY: cuInit takes no pointer; its flags must be 0. It may be called any number of times.
    match unsafe { driver.init(0) } {
        Err(error) if error.is(cudaError_enum::CUDA_ERROR_NO_DEVICE) => return Ok(None),
        other => other?,
    }
    if let Some(context) = driver.current()? {
        return device::of_context(driver, context).map(Some);
    }
    let count = usize::try_from(driver.devices()?).unwrap_or(0);
    let Some(ordinal) = local_rank.checked_rem(count) else {
        return Ok(None);
    };
    let ordinal = c_int::try_from(ordinal).unwrap_or(0);
    device::of_primary_context(driver, driver.device(ordinal)?).map(Some)
}

/// What the driver says of an address on a device.
struct Pointer {
    ordinal: c_int,
    /// The one it was allocated in. Null for memory of pools (cudaMallocAsync) and mapped memory (cuMemMap), which
    /// belong to a device and to no context.
    context: CUcontext,
}

impl Pointer {
    /// `None` where the address is the host's. So it is where the driver cannot tell: before it is initialised it
    /// has allocated nothing, and an address that it does not know is an error for some versions and memory
    /// without type for others.
    fn ask(driver: &Driver, address: *const u8) -> Option<Self> {
        use CUpointer_attribute as attribute;
        let mut names = [
            attribute::CU_POINTER_ATTRIBUTE_MEMORY_TYPE as c_uint,
            attribute::CU_POINTER_ATTRIBUTE_IS_MANAGED as c_uint,
            attribute::CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL as c_uint,
            attribute::CU_POINTER_ATTRIBUTE_CONTEXT as c_uint,
        ];
        // The driver writes as many bytes as each attribute has: 4, 1 or 4, 4, and 8.
        let (mut kind, mut managed, mut ordinal): (c_uint, c_uint, c_int) = (0, 0, 0);
        let mut context: CUcontext = null_mut();
        let mut values: [*mut c_void; 4] = [
            (&raw mut kind).cast(),
            (&raw mut managed).cast(),
            (&raw mut ordinal).cast(),
            (&raw mut context).cast(),
        ];
        // SAFETY: both arrays have as many entries as is said, the values point to what the attributes need, and
        // all outlive the call. The driver reads nothing at `address`.
        unsafe {
            driver.pointer_get_attributes(
                names.len() as c_uint,
                names.as_mut_ptr(),
                values.as_mut_ptr(),
                address.addr() as u64,
            )
        }
        .ok()?;
        let on_device = kind == CUmemorytype::CU_MEMORYTYPE_DEVICE as c_uint;
        (on_device || managed != 0).then_some(Self { ordinal, context })
    }

    fn device(&self, driver: &'static Driver) -> Result<&'static Device> {
        if !self.context.is_null() {
            return device::of_context(driver, self.context);
        }
        let device = driver.device(self.ordinal)?;
        if let Some(current) = current_on(driver, device)? {
            return device::of_context(driver, current);
        }
        if !is_primary_active(driver, device)? {
            // Making a context would take the program some hundred megabytes of a device that it does not use.
            return Err(Error::new(
                "cuDevicePrimaryCtxGetState",
                cudaError_enum::CUDA_ERROR_INVALID_CONTEXT,
            ));
        }
        device::of_primary_context(driver, device)
    }
}

/// The thread's current context, if it is one of this device.
fn current_on(driver: &Driver, device: CUdevice) -> Result<Option<CUcontext>> {
    let Some(context) = driver.current()? else {
        return Ok(None);
    };
    let mut of_context = 0;
    // SAFETY: `of_context` outlives the call.
    unsafe { driver.ctx_get_device(&raw mut of_context) }?;
    Ok((of_context == device).then_some(context))
}

fn is_primary_active(driver: &Driver, device: CUdevice) -> Result<bool> {
    let (mut flags, mut active) = (0, 0);
    // SAFETY: both outlive the call.
    unsafe { driver.device_primary_ctx_get_state(device, &raw mut flags, &raw mut active) }?;
    Ok(active != 0)
}
