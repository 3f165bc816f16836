//! Where values lie, and what codes them.

use super::cuda::{Device, Error};

/// What an address points into.
#[derive(Clone, Copy)]
pub enum Memory {
    /// What this process can read and write.
    Host,
    /// What a GPU can, and this process perhaps not.
    Gpu(&'static Device),
}

impl Memory {
    pub fn is_host(self) -> bool {
        matches!(self, Self::Host)
    }

    /// Copies bytes from there.
    ///
    /// # Safety
    /// That many bytes must be readable, and not be those of `to`.
    pub unsafe fn read(self, from: *const u8, to: &mut [u8]) -> Result<(), Error> {
        match self {
            // SAFETY: the caller's promise.
            Self::Host => unsafe {
                std::ptr::copy_nonoverlapping(from, to.as_mut_ptr(), to.len());
                Ok(())
            },
            Self::Gpu(device) => {
                let work = device.enter()?;
                // SAFETY: the caller's promise; the copy is over when this returns.
                unsafe { work.download(to.as_mut_ptr(), from.addr() as u64, to.len())? };
                work.finish()
            }
        }
    }

    /// A copy of that many bytes, in words.
    ///
    /// # Safety
    /// They must be readable.
    pub unsafe fn read_words(self, from: *const u8, bytes: usize) -> Result<Vec<u64>, Error> {
        let mut words = vec![0u64; bytes.div_ceil(8)];
        // SAFETY: the words were made for so many bytes; for the source, the caller's promise.
        unsafe {
            let room = std::slice::from_raw_parts_mut(words.as_mut_ptr().cast(), bytes);
            self.read(from, room)?;
        }
        Ok(words)
    }

    /// Copies bytes to there.
    ///
    /// # Safety
    /// That many bytes must be writable, and not be those of `from`.
    pub unsafe fn write(self, to: *mut u8, from: &[u8]) -> Result<(), Error> {
        match self {
            // SAFETY: the caller's promise.
            Self::Host => unsafe {
                std::ptr::copy_nonoverlapping(from.as_ptr(), to, from.len());
                Ok(())
            },
            Self::Gpu(device) => {
                let work = device.enter()?;
                // SAFETY: the caller's promise; the copy is over when this returns.
                unsafe { work.upload_from(to.addr() as u64, from.as_ptr(), from.len())? };
                work.finish()
            }
        }
    }

    /// Copies bytes from here to another memory, or within one, where they may overlap as in `memmove`.
    ///
    /// # Safety
    /// That many bytes must be readable and writable.
    pub unsafe fn copy(
        self,
        from: *const u8,
        to: (Self, *mut u8),
        bytes: usize,
    ) -> Result<(), Error> {
        let (memory, to) = to;
        // SAFETY: the caller's promise; where one side is not the host's they are different memories.
        unsafe {
            match (self, memory) {
                (Self::Host, Self::Host) => {
                    std::ptr::copy(from, to, bytes);
                    Ok(())
                }
                (Self::Host, gpu) => gpu.write(to, std::slice::from_raw_parts(from, bytes)),
                (gpu, Self::Host) => gpu.read(from, std::slice::from_raw_parts_mut(to, bytes)),
                (Self::Gpu(device), Self::Gpu(_)) => {
                    let work = device.enter()?;
                    work.copy(to.addr() as u64, from.addr() as u64, bytes)?;
                    work.finish()
                }
            }
        }
    }
}

/// Where the values of a message lie, and what is to code them.
#[derive(Clone, Copy)]
pub struct Place {
    pub memory: Memory,
    /// The GPU for what it can; else the CPU.
    pub coder: Option<&'static Device>,
}

impl Place {
    /// In this process's memory, coded by the CPU.
    pub const HOST: Self = Self {
        memory: Memory::Host,
        coder: None,
    };

    pub fn is_coded_on(&self, device: &Device) -> bool {
        self.coder.is_some_and(|coder| std::ptr::eq(coder, device))
    }
}
