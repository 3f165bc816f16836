//! Blocks of a side, copied out and in: from and to whatever memory they lie in, with gaps or without.

use super::{PIECE_BYTES, Side};
use crate::codec::Memory;
use crate::exchange::Result;
use crate::exchange::shadow::Shadow;
use crate::mpi::{Half, Handle, Mpi};
use crate::signature::Datatype;
use std::ffi::c_int;
use std::ops::Range;

impl Side {
    /// Copies the block of `peer` without gaps to a place that has its length.
    ///
    /// # Safety
    /// The side must describe a live buffer, as MPI asks of the program, and the place be ours.
    pub unsafe fn gather_to(
        &self,
        mpi: &Mpi,
        comm: Handle,
        peer: usize,
        to: (Memory, *mut u8),
    ) -> Result<()> {
        let bytes = self.bytes(peer);
        if bytes == 0 {
            return Ok(());
        }
        // SAFETY: the caller's promise.
        unsafe {
            match (self.piece(peer, 1), to) {
                (Some(piece), _) => self.memory().copy(piece, to, bytes)?,
                (None, (Memory::Host, to)) => {
                    let target = std::slice::from_raw_parts_mut(to, bytes);
                    self.gather(mpi, comm, peer, target)?;
                }
                (None, (memory, to)) => {
                    let mut packed = vec![0; bytes];
                    self.gather(mpi, comm, peer, &mut packed)?;
                    memory.write(to, &packed)?;
                }
            }
        }
        Ok(())
    }

    /// Copies what has its length, without gaps, to the block of `peer`.
    ///
    /// # Safety
    /// As [`Self::gather_to`].
    pub unsafe fn scatter_from(
        &self,
        mpi: &Mpi,
        comm: Handle,
        peer: usize,
        (memory, from): (Memory, *const u8),
    ) -> Result<()> {
        let bytes = self.bytes(peer);
        if bytes == 0 {
            return Ok(());
        }
        // SAFETY: the caller's promise.
        unsafe {
            match (self.piece(peer, 1), memory) {
                (Some(piece), _) => memory.copy(from, (self.memory(), piece), bytes)?,
                (None, Memory::Host) => {
                    let source = std::slice::from_raw_parts(from, bytes);
                    self.scatter(mpi, comm, peer, source)?;
                }
                (None, _) => {
                    let mut packed = vec![0; bytes];
                    memory.read(from, &mut packed)?;
                    self.scatter(mpi, comm, peer, &packed)?;
                }
            }
        }
        Ok(())
    }

    /// Copies the block of `peer` to `target`, which has its length, without gaps.
    ///
    /// # Safety
    /// The side must describe a live buffer, as MPI asks of the program.
    pub unsafe fn gather(
        &self,
        mpi: &Mpi,
        comm: Handle,
        peer: usize,
        target: &mut [u8],
    ) -> Result<()> {
        let Some(datatype) = self.datatype.filter(|_| !target.is_empty()) else {
            return Ok(());
        };
        if let Some(piece) = self.piece(peer, 1) {
            // SAFETY: the block is `bytes` long and in one piece; `target` is ours, so they do not overlap.
            unsafe { self.memory().read(piece, target)? };
            return Ok(());
        }
        for (source, items, range) in self.portions(peer, datatype) {
            // SAFETY: the portion lies in the program's buffer.
            unsafe {
                let source = self.with_shadow(mpi, source, Shadow::of_address)?;
                mpi.pack(
                    source.cast(),
                    items,
                    datatype.handle,
                    &mut target[range],
                    comm,
                )?;
            }
        }
        Ok(())
    }

    /// Copies `source`, which has its length, to the block of `peer`, leaving its gaps alone.
    ///
    /// # Safety
    /// As [`Self::gather`].
    pub unsafe fn scatter(
        &self,
        mpi: &Mpi,
        comm: Handle,
        peer: usize,
        source: &[u8],
    ) -> Result<()> {
        let Some(datatype) = self.datatype.filter(|_| !source.is_empty()) else {
            return Ok(());
        };
        if let Some(piece) = self.piece(peer, 1) {
            // SAFETY: the block is `bytes` long and in one piece; `source` is ours, so they do not overlap.
            unsafe { self.memory().write(piece, source)? };
            return Ok(());
        }
        for (target, items, range) in self.portions(peer, datatype) {
            // SAFETY: the portion lies in the program's buffer.
            unsafe {
                let target = self.with_shadow(mpi, target, Shadow::of_target)?;
                mpi.unpack(&source[range], target.cast(), items, datatype.handle, comm)?;
            }
        }
        Ok(())
    }

    /// What `of` makes of an address: itself in this process's memory, else what stands for it.
    ///
    /// # Safety
    /// As [`Self::gather`].
    unsafe fn with_shadow(
        &self,
        mpi: &Mpi,
        address: *mut u8,
        of: impl FnOnce(&mut Shadow, *mut u8) -> *mut u8,
    ) -> Result<*mut u8> {
        if self.memory().is_host() {
            return Ok(address);
        }
        let mut shadow = self.shadow.borrow_mut();
        if shadow.is_none() {
            // SAFETY: the caller's promise; the reach is within one allocation.
            *shadow = Some(unsafe { Shadow::of(self.memory(), self.reach(mpi)?)? });
        }
        Ok(shadow
            .as_mut()
            .map_or(address, |shadow| of(shadow, address)))
    }

    /// After the call: what was written to a shadow goes to its place.
    ///
    /// # Safety
    /// As [`Self::gather`].
    pub unsafe fn settle(&self) -> Result<()> {
        match self.shadow.take() {
            // SAFETY: the caller's promise; nothing else writes there during the call.
            Some(shadow) => unsafe { shadow.settle() },
            None => Ok(()),
        }
    }

    /// The side as the program passed it, but where MPI can go; for what it receives if `written`.
    ///
    /// # Safety
    /// As [`Self::gather`].
    pub unsafe fn in_reach(&self, mpi: &Mpi, written: bool) -> Result<Half> {
        let of = if written {
            Shadow::of_target
        } else {
            Shadow::of_address
        };
        let mut half = self.as_passed();
        if self.datatype.is_some() && !self.is_open_to_mpi() {
            // SAFETY: the caller's promise.
            half.buffer = unsafe { self.with_shadow(mpi, self.buffer, of)?.cast() };
        }
        Ok(half)
    }

    /// The block of `peer` cut so that MPI_Pack's ints hold each portion: start, items, and bytes of the
    /// packed block.
    fn portions(
        &self,
        peer: usize,
        datatype: Datatype,
    ) -> impl Iterator<Item = (*mut u8, c_int, Range<usize>)> {
        let items = self.slices.0[peer].0;
        let step = (PIECE_BYTES / datatype.size.max(1)).max(1);
        let start = self.start(peer, datatype);
        (0..items).step_by(step).map(move |first| {
            let some = step.min(items - first);
            let from = start.wrapping_offset(first as isize * datatype.extent);
            (
                from,
                some as c_int,
                first * datatype.size..(first + some) * datatype.size,
            )
        })
    }
}

/// Copies the block that a rank sends to itself; `false` where the two sides differ in length.
///
/// # Safety
/// As [`Side::gather`], for both sides.
pub unsafe fn copy_self(
    mpi: &Mpi,
    comm: Handle,
    rank: usize,
    send: &Side,
    receive: &Side,
) -> Result<bool> {
    let bytes = send.bytes(rank);
    if bytes != receive.bytes(rank) {
        return Ok(false);
    }
    if bytes == 0 {
        return Ok(true);
    }
    // SAFETY: both blocks are `bytes` long, and the program's to read and to write.
    unsafe {
        match (send.piece(rank, 1), receive.piece(rank, 1)) {
            // May be the same place, in programs that alias although MPI forbids it.
            (Some(from), Some(to)) => {
                let to = (receive.memory(), to);
                send.memory().copy(from, to, bytes)?;
            }
            _ => {
                let mut packed = vec![0; bytes];
                send.gather(mpi, comm, rank, &mut packed)?;
                receive.scatter(mpi, comm, rank, &packed)?;
            }
        }
    }
    Ok(true)
}
