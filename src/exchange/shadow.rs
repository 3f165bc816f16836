//! A copy in this process's memory of what lies on a GPU, from the first byte of a side to the last.
//!
//! For blocks with gaps, which MPI_Pack puts together, and for calls that go to an MPI that takes no pointers
//! into a GPU. Gaps are written back as they were read.

use super::Result;
use crate::codec::Memory;
use std::ops::Range;

pub struct Shadow {
    memory: Memory,
    /// The addresses that it stands for.
    reach: Range<usize>,
    words: Vec<u64>,
    is_changed: bool,
}

impl Shadow {
    /// # Safety
    /// These addresses must be readable.
    pub unsafe fn of(memory: Memory, reach: Range<usize>) -> Result<Self> {
        let mut shadow = Self {
            memory,
            words: vec![0; reach.len().div_ceil(8) + 1],
            reach,
            is_changed: false,
        };
        let from = std::ptr::without_provenance(shadow.reach.start);
        // SAFETY: the caller's promise.
        unsafe { memory.read(from, shadow.bytes_mut())? };
        Ok(shadow)
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        // Values keep the alignment that they have on the device.
        let offset = self.reach.start % 8;
        // SAFETY: the words were made for so many bytes, and one word more.
        unsafe {
            let start = self.words.as_mut_ptr().cast::<u8>().add(offset);
            std::slice::from_raw_parts_mut(start, self.reach.len())
        }
    }

    /// What stands for an address, to be read.
    pub fn of_address(&mut self, address: *mut u8) -> *mut u8 {
        let distance = address.addr().wrapping_sub(self.reach.start);
        self.bytes_mut().as_mut_ptr().wrapping_add(distance)
    }

    /// The same, to be written.
    pub fn of_target(&mut self, address: *mut u8) -> *mut u8 {
        self.is_changed = true;
        self.of_address(address)
    }

    /// Takes what was written to the GPU.
    ///
    /// # Safety
    /// The addresses must be writable, and hold what they did.
    pub unsafe fn settle(mut self) -> Result<()> {
        if self.is_changed {
            let (memory, to) = (
                self.memory,
                std::ptr::without_provenance_mut(self.reach.start),
            );
            // SAFETY: the caller's promise.
            unsafe { memory.write(to, self.bytes_mut())? };
        }
        Ok(())
    }
}
