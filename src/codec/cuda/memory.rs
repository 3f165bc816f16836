//! Buffers of our own: on the device, and page-locked on the host. Each device keeps those that are not in use.

use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::ptr::null_mut;
use std::sync::{Mutex, PoisonError};

use cudarc::driver::sys::{CU_MEMHOSTREGISTER_PORTABLE, cudaError_enum};

use super::device::Device;
use super::driver::{Error, Result};
use super::entered::Entered;

/// Memory of a device. Freed in its context, or left alone where that is gone.
pub struct Memory {
    device: &'static Device,
    address: u64,
    bytes: usize,
}

impl Memory {
    pub(super) fn new(entered: &Entered, bytes: usize) -> Result<Self> {
        let device = entered.device();
        let mut address = 0;
        // SAFETY: `address` outlives the call.
        device.noted(unsafe { device.driver.mem_alloc(&raw mut address, bytes) })?;
        Ok(Self {
            device,
            address,
            bytes,
        })
    }

    pub fn address(&self) -> u64 {
        self.address
    }

    /// Whole 64-bit words.
    pub fn words(&self) -> usize {
        self.bytes / 8
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // At the end of the process the driver has freed all of it, and entering says so.
        let Ok(_pushed) = self.device.push() else {
            return;
        };
        // SAFETY: allocated in this context, and nobody has the address any more.
        let _ = unsafe { self.device.driver.mem_free(self.address) };
    }
}

/// Memory of the host that devices copy from and to without a detour.
///
/// It is ours, and the driver only locks its pages: memory that the driver allocates goes with the context, under
/// the eyes of whoever still holds a slice of it. Where the driver does not lock foreign pages, copies take longer
/// and are as right.
pub struct Pinned {
    device: &'static Device,
    words: *mut u64,
    bytes: usize,
    locked: bool,
}

// SAFETY: the memory is this value's alone.
unsafe impl Send for Pinned {}

impl Pinned {
    pub(super) fn new(entered: &Entered, bytes: usize) -> Result<Self> {
        let device = entered.device();
        let words = map(bytes).ok_or(OUT_OF_MEMORY)?;
        // SAFETY: the pages were mapped just now.
        let locked = device.noted(unsafe {
            let portable = CU_MEMHOSTREGISTER_PORTABLE;
            device
                .driver
                .mem_host_register(words.cast(), bytes, portable)
        });
        if let Err(error) = locked {
            tracing::debug!("host memory is not page-locked: {error}");
        }
        Ok(Self {
            device,
            words,
            bytes,
            locked: locked.is_ok(),
        })
    }

    pub fn words(&self) -> &[u64] {
        // SAFETY: as many were mapped, zeroed, and live as long as this value; only `&mut self` writes to them.
        unsafe { std::slice::from_raw_parts(self.words, self.bytes / 8) }
    }

    pub fn words_mut(&mut self) -> &mut [u64] {
        // SAFETY: as above, and this value is borrowed alone.
        unsafe { std::slice::from_raw_parts_mut(self.words, self.bytes / 8) }
    }

    pub fn bytes(&self) -> &[u8] {
        // SAFETY: as above; any bytes are bytes.
        unsafe { std::slice::from_raw_parts(self.words.cast(), self.bytes) }
    }

    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and any bytes make words.
        unsafe { std::slice::from_raw_parts_mut(self.words.cast(), self.bytes) }
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        if self.locked
            && let Ok(_pushed) = self.device.push()
        {
            // SAFETY: the pages were locked in this context, and nothing copies from or to them any more.
            let _ = unsafe { self.device.driver.mem_host_unregister(self.words.cast()) };
        }
        // SAFETY: mapped with this length, and no slice of it is left.
        unsafe { libc::munmap(self.words.cast(), self.bytes) };
    }
}

const OUT_OF_MEMORY: Error = Error::new(
    "cuMemHostRegister",
    cudaError_enum::CUDA_ERROR_OUT_OF_MEMORY,
);

/// Whole pages, zeroed.
fn map(bytes: usize) -> Option<*mut u64> {
    // SAFETY: a new mapping of its own. After a fork, writing to a page makes a copy of it for the writer, while the
    // device keeps to the first: so a child gets none of these pages.
    unsafe {
        let pages = libc::mmap(
            null_mut(),
            bytes,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
            0,
        );
        if pages == libc::MAP_FAILED {
            return None;
        }
        libc::madvise(pages, bytes, libc::MADV_DONTFORK);
        Some(pages.cast())
    }
}

/// What devices lend.
pub trait Buffer {
    fn size(&self) -> usize;
}

impl Buffer for Memory {
    fn size(&self) -> usize {
        self.bytes
    }
}

impl Buffer for Pinned {
    fn size(&self) -> usize {
        self.bytes
    }
}

/// The buffers of one kind that a device keeps for those who need one: calls come again with the same sizes,
/// and allocating takes longer than coding.
pub struct Shelf<T> {
    idle: Mutex<Vec<T>>,
}

impl<T: Buffer> Shelf<T> {
    /// More than one call has in use at a time; beyond, the smallest go.
    const CAPACITY: usize = 32;

    pub(super) fn new() -> Self {
        Self {
            idle: Mutex::new(Vec::new()),
        }
    }

    /// The smallest buffer that is large enough, or a new one; where there is no memory for that, after what lies idle
    /// was freed.
    pub(super) fn lend(
        &'static self,
        bytes: usize,
        make: impl Fn(usize) -> Result<T>,
        free_idle: impl Fn(),
    ) -> Result<Lent<T>> {
        let buffer = match self.take(bytes) {
            Some(buffer) => buffer,
            None => {
                let bytes = rounded(bytes).ok_or(OUT_OF_MEMORY)?;
                make(bytes).or_else(|error| {
                    if !error.is(cudaError_enum::CUDA_ERROR_OUT_OF_MEMORY) {
                        return Err(error);
                    }
                    free_idle();
                    make(bytes)
                })?
            }
        };
        Ok(Lent {
            buffer: ManuallyDrop::new(buffer),
            shelf: self,
        })
    }

    fn take(&self, bytes: usize) -> Option<T> {
        /// A large buffer is worth more to whoever needs one.
        const TOO_LARGE: usize = 8;
        let sizes = bytes..=bytes.max(LEAST).saturating_mul(TOO_LARGE);
        let mut idle = self.lock();
        let fitting = (0..idle.len()).filter(|&at| sizes.contains(&idle[at].size()));
        let best = fitting.min_by_key(|&at| idle[at].size())?;
        Some(idle.swap_remove(best))
    }

    fn put(&self, buffer: T) {
        let mut idle = self.lock();
        idle.push(buffer);
        if idle.len() > Self::CAPACITY {
            let smallest = (0..idle.len()).min_by_key(|&at| idle[at].size());
            let smallest = smallest.map(|at| idle.swap_remove(at));
            // Freeing calls the driver, which may take its time.
            drop(idle);
            drop(smallest);
        }
    }

    /// Frees what is not lent.
    pub(super) fn clear(&self) {
        let idle = std::mem::take(&mut *self.lock());
        drop(idle);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<T>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

const LEAST: usize = 64 << 10;

/// A size for which a buffer also serves calls that need a little more: at least 64 KiB, and few different ones.
fn rounded(bytes: usize) -> Option<usize> {
    const LARGE: usize = 2 << 20;
    if bytes <= LARGE {
        Some(bytes.max(LEAST).next_power_of_two())
    } else {
        bytes.checked_next_multiple_of(LARGE)
    }
}

/// A buffer that goes back to its device when this is dropped. Until then nobody else has it, but nobody waits for
/// work that uses it either: see the promise of [`Entered`]. (For memory of the device, work that comes later
/// on the same device waits for that before it. MPI does not: see [`Device::lend_settled_memory`].)
pub struct Lent<T: Buffer + 'static> {
    buffer: ManuallyDrop<T>,
    shelf: &'static Shelf<T>,
}

impl<T: Buffer> Deref for Lent<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.buffer
    }
}

impl<T: Buffer> DerefMut for Lent<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.buffer
    }
}

impl<T: Buffer> Drop for Lent<T> {
    fn drop(&mut self) {
        // SAFETY: nothing uses it after this.
        self.shelf
            .put(unsafe { ManuallyDrop::take(&mut self.buffer) });
    }
}
