//! The devices that the program uses, each with a stream of our own.
//!
//! One [`Device`] per context of the program: it is there that the program's memory is, and that other libraries
//! look for it. Contexts are never made, but for buffers of the host (see [`super::locate`]).

use std::ffi::{CStr, c_char, c_int};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use cudarc::driver::sys::{
    CUcontext, CUdevice, CUdevice_attribute, CUevent, CUevent_flags, CUstream, CUstream_flags,
    cudaError_enum::CUDA_ERROR_CONTEXT_IS_DESTROYED as CONTEXT_IS_DESTROYED,
};

use super::driver::{Driver, Error, Result};
use super::entered::Entered;
use super::memory::{Lent, Memory, Pinned, Shelf};
use super::module::Module;

/// A context of the program, and what we keep there.
pub struct Device {
    pub(super) driver: &'static Driver,
    context: CUcontext,
    identity: u64,
    device: CUdevice,
    pub(super) stream: CUstream,
    /// Stands behind the program's work when our stream is to wait for it.
    pub(super) program: CUevent,
    /// Events that nothing waits for.
    events: Mutex<Vec<CUevent>>,
    /// `None` inside: the kernels cannot be used there.
    kernels: OnceLock<Option<Module>>,
    memory: Shelf<Memory>,
    /// Memory that nothing on our stream works on while it lies here.
    settled: Shelf<Memory>,
    pinned: Shelf<Pinned>,
    is_kept_primary: AtomicBool,
    lost: AtomicBool,
}

// SAFETY: the handles are addresses that only the driver follows, and it may be called with them from any thread.
unsafe impl Send for Device {}
// SAFETY: as above; what changes is behind locks and atomics.
unsafe impl Sync for Device {}

/// The devices in use. They stay in place for good, since buffers refer to them; a lost one leaves the list.
static DEVICES: Mutex<Vec<&'static Device>> = Mutex::new(Vec::new());

/// The device of a context, which must be alive.
pub(super) fn of_context(driver: &'static Driver, context: CUcontext) -> Result<&'static Device> {
    let identity = driver.identity(context)?;
    // Nothing panics under the lock, so what a poisoned one guards is whole.
    let mut devices = DEVICES.lock().unwrap_or_else(PoisonError::into_inner);
    for lost in devices.extract_if(.., |device| device.is_lost()) {
        // The host's memory outlives the context, and nobody will ask for it there.
        lost.clear_memory();
        lost.pinned.clear();
    }
    let known = devices.iter().find(|device| device.identity == identity);
    if let Some(&known) = known {
        return Ok(known);
    }
    let device: &'static Device = Box::leak(Box::new(Device::new(driver, context, identity)?));
    devices.push(device);
    Ok(device)
}

/// The device of a device's primary context. It keeps a reference to that, lest the context vanish under us.
pub(super) fn of_primary_context(
    driver: &'static Driver,
    device: CUdevice,
) -> Result<&'static Device> {
    if let Some(kept) = kept_primary(device) {
        return Ok(kept);
    }
    let mut context = null_mut();
    // SAFETY: `context` outlives the call.
    unsafe { driver.device_primary_ctx_retain(&raw mut context, device) }?;
    let found = of_context(driver, context)?;
    found.is_kept_primary.store(true, Ordering::Relaxed);
    Ok(found)
}

/// The one that has a reference to the device's primary context, which may have been reset all the same.
fn kept_primary(device: CUdevice) -> Option<&'static Device> {
    let devices = DEVICES.lock().unwrap_or_else(PoisonError::into_inner);
    devices.iter().copied().find(|known| {
        known.device == device
            && known.is_kept_primary.load(Ordering::Relaxed)
            && known.is_alive().is_ok()
    })
}

impl Device {
    fn new(driver: &'static Driver, context: CUcontext, identity: u64) -> Result<Self> {
        let _pushed = Pushed::new(driver, context)?;
        let (mut device, mut stream, mut program) = (0, null_mut(), null_mut());
        let on_its_own = CUstream_flags::CU_STREAM_NON_BLOCKING as u32;
        // SAFETY: what is written outlives the calls, and the context is current.
        unsafe {
            driver.ctx_get_device(&raw mut device)?;
            driver.stream_create(&raw mut stream, on_its_own)?;
            if let Err(error) = driver.event_create(&raw mut program, UNTIMED) {
                let _ = driver.stream_destroy(stream);
                return Err(error);
            }
        }
        Ok(Self {
            driver,
            context,
            identity,
            device,
            stream,
            program,
            events: Mutex::new(Vec::new()),
            kernels: OnceLock::new(),
            memory: Shelf::new(),
            settled: Shelf::new(),
            pinned: Shelf::new(),
            is_kept_primary: AtomicBool::new(false),
            lost: AtomicBool::new(false),
        })
    }

    /// Makes the context current for this thread until what is returned is dropped.
    pub fn enter(&'static self) -> Result<Entered> {
        Ok(Entered::new(self, self.push()?))
    }

    pub(super) fn push(&self) -> Result<Pushed> {
        self.is_alive()?;
        self.noted(Pushed::new(self.driver, self.context))
    }

    /// Another context may have come in the place of one that is gone. What has our addresses there is not ours.
    fn is_alive(&self) -> Result<()> {
        let identity = self.noted(self.driver.identity(self.context))?;
        if self.is_lost() || identity != self.identity {
            return self.noted(Err(Error::new("cuCtxPushCurrent", CONTEXT_IS_DESTROYED)));
        }
        Ok(())
    }

    /// Whether the kernels of this PTX text, always the same, can be launched; tries at the first call. Where they
    /// cannot, it says why if it is to.
    pub fn load(&'static self, image: &'static CStr, aloud: bool) -> bool {
        let loaded = self.kernels.get_or_init(|| {
            let module = Module::load(self, image);
            let said = module.inspect_err(|why| {
                if aloud {
                    tracing::warn!("{}: {why}; compressing on the CPU instead", self.name());
                }
            });
            said.ok()
        });
        loaded.is_some()
    }

    /// The kernels that [`Self::load`] has loaded.
    pub(super) fn kernels(&self) -> Option<&Module> {
        self.kernels.get()?.as_ref()
    }

    /// Lends memory of the device, of at least `bytes` bytes, for work on our stream. What a lender before left in it
    /// is still there, and work of theirs may not be done yet.
    pub fn lend_memory(&'static self, bytes: usize) -> Result<Lent<Memory>> {
        let make = |bytes| Memory::new(&self.enter()?, bytes);
        self.memory.lend(bytes, make, || self.clear_memory())
    }

    /// The same for those who do not wait for our stream, as MPI: no work of others is left there. Whoever gives it
    /// back has waited for their own.
    pub fn lend_settled_memory(&'static self, bytes: usize) -> Result<Lent<Memory>> {
        let make = |bytes| Memory::new(&self.enter()?, bytes);
        self.settled.lend(bytes, make, || self.clear_memory())
    }

    /// Frees the memory of the device that is not lent.
    fn clear_memory(&self) {
        self.memory.clear();
        self.settled.clear();
    }

    /// Lends page-locked memory of the host, of at least `bytes` bytes.
    pub fn lend_pinned(&'static self, bytes: usize) -> Result<Lent<Pinned>> {
        let make = |bytes| Pinned::new(&self.enter()?, bytes);
        self.pinned.lend(bytes, make, || self.pinned.clear())
    }

    /// An event that nothing waits for. The context is current.
    pub(super) fn take_event(&self) -> Result<CUevent> {
        if let Some(idle) = self.idle_events().pop() {
            return Ok(idle);
        }
        let mut event = null_mut();
        // SAFETY: `event` outlives the call.
        self.noted(unsafe { self.driver.event_create(&raw mut event, UNTIMED) })?;
        Ok(event)
    }

    pub(super) fn give_event(&self, event: CUevent) {
        self.idle_events().push(event);
    }

    fn idle_events(&self) -> std::sync::MutexGuard<'_, Vec<CUevent>> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the context is gone; buffers in it are gone with it.
    pub fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Relaxed)
    }

    /// Remembers an error after which nothing here can be used any more.
    pub(super) fn noted<T>(&self, result: Result<T>) -> Result<T> {
        if let Err(error) = &result
            && error.is_of_lost_context()
        {
            self.lost.store(true, Ordering::Relaxed);
        }
        result
    }

    pub(super) fn name(&self) -> String {
        name(self.driver, self.device).unwrap_or_else(|_| "a CUDA device".into())
    }

    pub(super) fn capability(&self) -> Result<Capability> {
        capability(self.driver, self.device)
    }
}

/// Events that only order work are faster without the time.
const UNTIMED: u32 = CUevent_flags::CU_EVENT_DISABLE_TIMING as u32;

/// A context made current until this is dropped; then the thread's current context is what it was before.
pub(super) struct Pushed {
    driver: &'static Driver,
    /// Each thread has its own stack of contexts.
    _of_this_thread: std::marker::PhantomData<*mut ()>,
}

impl Pushed {
    fn new(driver: &'static Driver, context: CUcontext) -> Result<Self> {
        // SAFETY: the driver checks the context: one that is gone is an error.
        unsafe { driver.ctx_push_current(context) }?;
        Ok(Self {
            driver,
            _of_this_thread: std::marker::PhantomData,
        })
    }
}

impl Drop for Pushed {
    fn drop(&mut self) {
        let mut ours = null_mut();
        // SAFETY: `ours` outlives the call. It fails only where CUDA has gone, and the stack with it.
        let _ = unsafe { self.driver.ctx_pop_current(&raw mut ours) };
    }
}

/// Major and minor compute capability.
pub(super) type Capability = (c_int, c_int);

pub(super) fn capability(driver: &Driver, device: CUdevice) -> Result<Capability> {
    use CUdevice_attribute as attribute;
    let (mut major, mut minor) = (0, 0);
    // SAFETY: both outlive the calls.
    unsafe {
        driver.device_get_attribute(
            &raw mut major,
            attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR as u32,
            device,
        )?;
        driver.device_get_attribute(
            &raw mut minor,
            attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR as u32,
            device,
        )?;
    }
    Ok((major, minor))
}

pub(super) fn name(driver: &Driver, device: CUdevice) -> Result<String> {
    let mut name: [c_char; 256] = [0; 256];
    // SAFETY: the buffer is as long as is said and outlives the call; the driver ends the name with a zero.
    unsafe { driver.device_get_name(name.as_mut_ptr(), 255, device) }?;
    // SAFETY: the last byte is zero, whatever was written before it.
    Ok(unsafe { CStr::from_ptr(name.as_ptr()) }
        .to_string_lossy()
        .into_owned())
}
