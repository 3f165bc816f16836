//! Messages that could not be coded follow raw, point to point, on the private communicator.

use super::outgoing::Escaped;
use super::side::Side;
use crate::mpi::{Mpi, Request, Result};
use crate::registry::Registration;

const TAG: i32 = 0x7470;
/// Most bytes of one MPI message; counts are ints.
const CHUNK: usize = 1 << 30;

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
                mpi.irecv(chunk.as_mut_ptr().cast(), chunk.len(), *peer, TAG, comm)
            });
        }
    }
    for Escaped { peer, bytes } in outgoing {
        for chunk in bytes.chunks(CHUNK) {
            // SAFETY: `outgoing` outlives the requests, which are all waited for below.
            requests
                .push(unsafe { mpi.isend(chunk.as_ptr().cast(), chunk.len(), *peer, TAG, comm) });
        }
    }
    // Every request that was started is waited for, whatever became of the others.
    let results: Vec<_> = requests
        .into_iter()
        .map(|request| request.and_then(Request::wait))
        .collect();
    results.into_iter().collect::<Result<()>>()?;
    for (peer, bytes) in &arrived {
        // SAFETY: the caller's promise.
        unsafe { side.scatter(mpi, comm, *peer, bytes)? };
    }
    Ok(())
}
