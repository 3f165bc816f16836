//! Messages that could not be coded follow raw, point to point, on the private communicator.

use crate::exchange::Result;
use crate::exchange::side::Side;
use crate::mpi::{self, Mpi, Request};
use crate::registry::Registration;

const TAG: i32 = 0x7470;
/// Most bytes of one MPI message; counts are ints.
const CHUNK: usize = 1 << 30;

/// A message that could not be coded, kept aside until it is sent raw: with `MPI_IN_PLACE` its block is
/// about to be overwritten.
pub struct Escaped {
    pub peer: usize,
    pub bytes: Vec<u8>,
}

/// Sends what escaped here, and receives what escaped on the ranks `incoming` into the blocks of `side`.
///
/// # Safety
/// `side` must describe a live buffer, as MPI asks of the program.
pub unsafe fn exchange(
    mpi: &Mpi,
    registration: &Registration,
    outgoing: &[Escaped],
    incoming: &[usize],
    side: &Side,
) -> Result<()> {
    let comm = registration.private;
    let mut requests = Vec::new();
    let mut arrived: Vec<(usize, Vec<u8>)> = incoming
        .iter()
        .map(|&peer| (peer, vec![0; side.bytes(peer)]))
        .collect();
    for (peer, bytes) in &mut arrived {
        for chunk in bytes.chunks_mut(CHUNK) {
            // SAFETY: `arrived` outlives the requests, which are all waited for below.
            requests.push(unsafe {
                let (start, items) = (chunk.as_mut_ptr().cast(), chunk.len() as i32);
                mpi.irecv(start, items, mpi.abi.byte, *peer, TAG, comm)
            });
        }
    }
    for Escaped { peer, bytes } in outgoing {
        for chunk in bytes.chunks(CHUNK) {
            // SAFETY: `outgoing` outlives the requests, which are all waited for below.
            requests.push(unsafe {
                let (start, items) = (chunk.as_ptr().cast(), chunk.len() as i32);
                mpi.isend(start, items, mpi.abi.byte, *peer, TAG, comm)
            });
        }
    }
    // Every request that was started is waited for, whatever became of the others.
    let results: Vec<_> = requests
        .into_iter()
        .map(|request| request.and_then(Request::wait))
        .collect();
    results.into_iter().collect::<mpi::Result<()>>()?;
    for (peer, bytes) in &arrived {
        // SAFETY: the caller's promise.
        unsafe { side.scatter(mpi, comm, *peer, bytes)? };
    }
    Ok(())
}
