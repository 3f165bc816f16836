//! Work on a device: copies, launches, and waiting for them.

use std::cell::{Cell, RefCell};
use std::ffi::{CStr, c_void};

use cudarc::driver::sys::{CUevent, CUstream, cudaError_enum};

use super::device::{Device, Pushed};
use super::driver::{Error, Result};
use super::memory::{Lent, Pinned};

/// A device whose context is current for this thread. Work is put on our stream, piece after piece, and is done when
/// [`Self::finish`] or [`Self::synchronize`] returns, when this is dropped, or when what [`Self::defer`] made
/// says so. Where several devices are entered, the one entered last must be left first.
///
/// All addresses of the functions below are numbers, so it is the caller who answers for them:
///
/// # Safety
/// An address of the device, with as many bytes behind it as are said, lies in memory that the device can reach and
/// that nobody else uses before the work is done. The same holds for an address of the host.
pub struct Entered {
    device: &'static Device,
    /// What the device may still be reading.
    uploads: RefCell<Uploads>,
    /// Work was put on the stream and not waited for.
    queued: Cell<bool>,
    _pushed: Pushed,
}

/// The handle of the legacy default stream (cuda.h: CU_STREAM_LEGACY).
const LEGACY_STREAM: CUstream = std::ptr::without_provenance_mut(1);

impl Entered {
    pub(super) fn new(device: &'static Device, pushed: Pushed) -> Self {
        Self {
            device,
            uploads: RefCell::default(),
            queued: Cell::new(false),
            _pushed: pushed,
        }
    }

    pub fn device(&self) -> &'static Device {
        self.device
    }

    /// Has our stream wait for the program's work so far; to be called once in each MPI call, before anything else.
    ///
    /// MPI knows no streams: a program has to have waited for whatever writes its send buffer or reads its receive
    /// buffer. But many programs rely on a little more without noticing. An MPI that copies with cuMemcpy does so
    /// on the legacy default stream, and that waits for all work before it on the default stream and on every
    /// blocking stream of the context, per-thread default streams included. Our stream is not a blocking one, or the
    /// program's kernels would wait for ours, so it waits for an event that stands in the legacy stream: as
    /// long as such a copy would have, no less. What a program leaves on non-blocking streams, no MPI waits for.
    pub fn begin(&self) -> Result<()> {
        let device = self.device;
        // Another thread may record the event again before our stream waits: then it waits for yet more.
        // SAFETY: the event and our stream are of the current context, the legacy stream is of any.
        device.noted(unsafe {
            device
                .driver
                .event_record(device.program, LEGACY_STREAM)
                .and_then(|()| {
                    device
                        .driver
                        .stream_wait_event(device.stream, device.program, 0)
                })
        })
    }

    /// Copies bytes of the host to the device. They are copied to page-locked memory first, so they may go
    /// as soon as this returns; made for what is short.
    ///
    /// # Safety
    /// See [`Entered`].
    pub unsafe fn upload(&self, to: u64, bytes: &[u8]) -> Result<()> {
        let from = self.uploads.borrow_mut().stage(self.device, bytes)?;
        // SAFETY: what is staged is kept until the work is done; the caller answers for `to`.
        unsafe { self.upload_from(to, from, bytes.len()) }
    }

    /// Copies from the host to the device. From page-locked memory this returns at once.
    ///
    /// # Safety
    /// See [`Entered`].
    pub unsafe fn upload_from(&self, to: u64, from: *const u8, bytes: usize) -> Result<()> {
        // SAFETY: the caller's promise.
        self.put(bytes, |stream| unsafe {
            self.device
                .driver
                .memcpy_htod_async(to, from.cast(), bytes, stream)
        })
    }

    /// Copies from the device to the host. To page-locked memory this returns at once.
    ///
    /// # Safety
    /// See [`Entered`].
    pub unsafe fn download(&self, to: *mut u8, from: u64, bytes: usize) -> Result<()> {
        // SAFETY: the caller's promise.
        self.put(bytes, |stream| unsafe {
            self.device
                .driver
                .memcpy_dtoh_async(to.cast(), from, bytes, stream)
        })
    }

    /// Copies between addresses that the device can reach: its own memory, that of other devices, managed memory and
    /// page-locked memory of the host.
    ///
    /// # Safety
    /// See [`Entered`].
    pub unsafe fn copy(&self, to: u64, from: u64, bytes: usize) -> Result<()> {
        // SAFETY: the caller's promise.
        self.put(bytes, |stream| unsafe {
            self.device.driver.memcpy_async(to, from, bytes, stream)
        })
    }

    /// # Safety
    /// See [`Entered`].
    pub unsafe fn fill_zero(&self, to: u64, bytes: usize) -> Result<()> {
        // SAFETY: the caller's promise.
        self.put(bytes, |stream| unsafe {
            self.device.driver.memset_d8_async(to, 0, bytes, stream)
        })
    }

    /// Launches a kernel of the image given to [`Device::load`], with `grid` blocks of `threads` threads. The
    /// arguments are read before this returns; no blocks are no launch.
    ///
    /// # Safety
    /// See [`Entered`] for the addresses that the kernel is told; `args` points to as many arguments as the kernel
    /// has, each of the type it has there.
    pub unsafe fn launch(
        &self,
        kernel: &CStr,
        grid: u32,
        threads: u32,
        args: &mut [*mut c_void],
    ) -> Result<()> {
        if grid == 0 {
            return Ok(());
        }
        let not_loaded = || Error::new("cuLaunchKernel", cudaError_enum::CUDA_ERROR_NOT_FOUND);
        let function = self
            .device
            .kernels()
            .ok_or_else(not_loaded)?
            .function(self.device, kernel)?;
        self.put(1, |stream| {
            let none = std::ptr::null_mut();
            // SAFETY: the function is of the current context; for the rest, the caller's promise.
            unsafe {
                self.device.driver.launch_kernel(
                    function,
                    grid,
                    1,
                    1,
                    threads,
                    1,
                    1,
                    0,
                    stream,
                    args.as_mut_ptr(),
                    none,
                )
            }
        })
    }

    /// Waits for all work on our stream, that of other threads included.
    pub fn synchronize(&self) -> Result<()> {
        let device = self.device;
        // Also where it fails, waiting again is of no use.
        self.queued.set(false);
        let uploads = self.uploads.take();
        // SAFETY: the stream is of the current context.
        let done = device.noted(unsafe { device.driver.stream_synchronize(device.stream) });
        if done.is_err() {
            // Nobody knows who still reads them.
            std::mem::forget(uploads);
        }
        done
    }

    /// Waits for the work that was put there since it was last waited for.
    pub fn settle(&self) -> Result<()> {
        if self.queued.get() {
            self.synchronize()
        } else {
            Ok(())
        }
    }

    /// Waits for the work and leaves the context.
    pub fn finish(self) -> Result<()> {
        self.settle()
    }

    /// Leaves the context without waiting: whoever has the work deferred asks for it later.
    pub fn defer(self) -> Result<Pending> {
        let device = self.device;
        let event = device.take_event()?;
        // SAFETY: event and stream are of the current context.
        device.noted(unsafe { device.driver.event_record(event, device.stream) })?;
        self.queued.set(false);
        Ok(Pending {
            device,
            event: Some(event),
            uploads: self.uploads.take(),
        })
    }

    /// Puts work of so many bytes on our stream.
    fn put(&self, bytes: usize, work: impl FnOnce(CUstream) -> Result<()>) -> Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        // Before it is known to have failed: an error may be one of work before.
        self.queued.set(true);
        self.device.noted(work(self.device.stream))
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        if self.queued.get() {
            // What failed here was reported by the call that put the work there, or nobody waits for it.
            let _ = self.synchronize();
        }
    }
}

/// Copies of what goes to a device, in page-locked memory.
#[derive(Default)]
struct Uploads {
    buffers: Vec<Lent<Pinned>>,
    /// Bytes in use of the last buffer.
    used: usize,
}

impl Uploads {
    /// Where the copy is.
    fn stage(&mut self, device: &'static Device, bytes: &[u8]) -> Result<*const u8> {
        let fits = |last: &mut Lent<Pinned>| bytes.len() <= last.bytes().len() - self.used;
        let mut buffer = match self.buffers.pop_if(fits) {
            Some(buffer) => buffer,
            None => {
                let buffer = device.lend_pinned(bytes.len())?;
                self.used = 0;
                buffer
            }
        };
        let copy = &mut buffer.bytes_mut()[self.used..][..bytes.len()];
        copy.copy_from_slice(bytes);
        let copy = copy.as_ptr();
        self.used += bytes.len();
        self.buffers.push(buffer);
        Ok(copy)
    }
}

/// Work that goes on while its device is left. The promise of [`Entered`] holds until it is done. Waits for it
/// when dropped.
pub struct Pending {
    device: &'static Device,
    /// Behind the work; `None` once that is done.
    event: Option<CUevent>,
    uploads: Uploads,
}

// SAFETY: the event is an address that only the driver follows, which may be called with it from any thread.
unsafe impl Send for Pending {}

impl Pending {
    /// Whether the work is done.
    pub fn is_done(&mut self) -> Result<bool> {
        let Some(event) = self.event else {
            return Ok(true);
        };
        let device = self.device;
        let _pushed = device.push()?;
        // SAFETY: the event is of the current context.
        match unsafe { device.driver.event_query(event) } {
            Err(error) if error.is(cudaError_enum::CUDA_ERROR_NOT_READY) => Ok(false),
            other => self.end(event, other).map(|()| true),
        }
    }

    /// Waits until the work is done.
    pub fn wait(&mut self) -> Result<()> {
        let Some(event) = self.event else {
            return Ok(());
        };
        let device = self.device;
        let _pushed = device.push()?;
        // SAFETY: the event is of the current context.
        let done = unsafe { device.driver.event_synchronize(event) };
        self.end(event, done)
    }

    /// What the driver said when it was not asked to wait any longer.
    fn end(&mut self, event: CUevent, done: Result<()>) -> Result<()> {
        self.event = None;
        let uploads = std::mem::take(&mut self.uploads);
        match self.device.noted(done) {
            Ok(()) => {
                self.device.give_event(event);
                Ok(())
            }
            Err(error) => {
                // Nobody knows who still reads them.
                std::mem::forget(uploads);
                Err(error)
            }
        }
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        let _ = self.wait();
        // Still there where the context could not be entered.
        std::mem::forget(std::mem::take(&mut self.uploads));
    }
}
