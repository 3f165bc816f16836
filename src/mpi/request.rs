//! A pending send or receive.

use super::{Error, Handle, Mpi, Result, check};
use std::ffi::c_int;

/// Must be waited for, or cancelled: MPI still uses the buffer when this is dropped.
#[must_use = "MPI uses the buffer until the request is complete"]
pub struct Request<'a> {
    mpi: &'a Mpi,
    handle: Handle,
}

impl<'a> Request<'a> {
    pub(super) fn start(mpi: &'a Mpi, call: impl FnOnce(*mut Handle) -> c_int) -> Result<Self> {
        let mut handle = 0;
        check(call(&raw mut handle))?;
        Ok(Self { mpi, handle })
    }

    /// Blocks until MPI is done with the buffer.
    pub fn wait(mut self) -> Result<()> {
        // SAFETY: the handle is live: only `wait`, `test` to completion and `cancel` end it, and each
        // leaves MPI's null request behind, on which waiting is allowed.
        check(unsafe { (self.mpi.functions.wait)(&raw mut self.handle, self.mpi.status_ignore()) })
    }

    /// Whether MPI is done with the buffer.
    pub fn test(&mut self) -> Result<bool> {
        let mut done = 0;
        // SAFETY: as in `wait`.
        check(unsafe {
            (self.mpi.functions.test)(
                &raw mut self.handle,
                &raw mut done,
                self.mpi.status_ignore(),
            )
        })?;
        Ok(done != 0)
    }

    /// How many bytes arrived, once MPI is done with the buffer of a receive of bytes.
    pub fn test_received(&mut self) -> Result<Option<usize>> {
        // Longer than any MPI's status.
        let mut status = [0u64; 8];
        let status = status.as_mut_ptr().cast();
        let (mut done, mut bytes) = (0, 0);
        // SAFETY: as in `wait`; the status is read where MPI has filled it.
        unsafe {
            check((self.mpi.functions.test)(
                &raw mut self.handle,
                &raw mut done,
                status,
            ))?;
            if done == 0 {
                return Ok(None);
            }
            let byte = self.mpi.abi.byte;
            check((self.mpi.functions.get_count)(status, byte, &raw mut bytes))?;
        }
        usize::try_from(bytes)
            .map(Some)
            .map_err(|_| Error(self.mpi.abi.err_other))
    }

    /// Gives a receive up, and waits until MPI has let go of the buffer.
    pub fn cancel(mut self) -> std::result::Result<(), Error> {
        // SAFETY: as in `wait`; a request that was already complete is cancelled without effect.
        check(unsafe { (self.mpi.functions.cancel)(&raw mut self.handle) })?;
        self.wait()
    }
}
