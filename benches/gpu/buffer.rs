//! Memory of a device, which the host reads and writes by copies.

use crate::Result;
use crate::driver::driver;
use transpress::codec::Memory;
use transpress::codec::cuda::Device;

/// An allocation of its own, of just so many bytes: compute-sanitizer sees what goes beyond.
pub struct Buffer {
    device: &'static Device,
    address: u64,
    bytes: usize,
}

impl Buffer {
    pub fn new(device: &'static Device, bytes: usize) -> Result<Self> {
        let _entered = device.enter().map_err(|error| error.to_string())?;
        let mut address = 0;
        // SAFETY: `address` outlives the call.
        unsafe { driver()?.mem_alloc(&raw mut address, bytes.max(1))? };
        Ok(Self {
            device,
            address,
            bytes,
        })
    }

    pub fn of<T: Copy>(device: &'static Device, items: &[T]) -> Result<Self> {
        let mut buffer = Self::new(device, size_of_val(items))?;
        buffer.write(0, items)?;
        Ok(buffer)
    }

    pub fn address(&self) -> u64 {
        self.address
    }

    /// As the codec takes it.
    pub fn pointer(&self, offset: usize) -> *mut u8 {
        std::ptr::without_provenance_mut(self.address() as usize + offset)
    }

    /// Copies items to a place that is so many bytes behind the first.
    pub fn write<T: Copy>(&mut self, offset: usize, items: &[T]) -> Result<()> {
        assert!(offset + size_of_val(items) <= self.bytes);
        // SAFETY: the items are numbers or made of such, without gaps; the buffer has room for them.
        let written = unsafe {
            let bytes = std::slice::from_raw_parts(items.as_ptr().cast(), size_of_val(items));
            Memory::Gpu(self.device).write(self.pointer(offset), bytes)
        };
        written.map_err(|error| error.to_string())
    }

    /// Copies items from a place that is so many bytes behind the first.
    pub fn read<T: Copy>(&self, offset: usize, items: &mut [T]) -> Result<()> {
        assert!(offset + size_of_val(items) <= self.bytes);
        // SAFETY: as above; any bytes make such items.
        let read = unsafe {
            let bytes =
                std::slice::from_raw_parts_mut(items.as_mut_ptr().cast(), size_of_val(items));
            Memory::Gpu(self.device).read(self.pointer(offset), bytes)
        };
        read.map_err(|error| error.to_string())
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if let (Ok(_entered), Ok(driver)) = (self.device.enter(), driver()) {
            // SAFETY: allocated in this context; all work on it has been waited for.
            let _ = unsafe { driver.mem_free(self.address) };
        }
    }
}
