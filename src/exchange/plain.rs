//! The program's own call, its data brought to where MPI can go.

use super::context::Context;
use super::{Call, Collective, Failure, Result};

/// Performs an all-to-all as the program made it.
///
/// # Safety
/// The call must describe live buffers, as MPI asks of the program.
pub unsafe fn exchange(context: Context, call: &Call) -> Result<()> {
    let Context {
        mpi, registration, ..
    } = context;
    // SAFETY: the caller's promise.
    let receive = unsafe { call.receive.in_reach(mpi, true)? };
    let send = match &call.send {
        // SAFETY: the caller's promise.
        Some(send) => unsafe { send.in_reach(mpi, false)? },
        None => mpi.in_place(&receive),
    };
    // SAFETY: the halves describe the program's buffers, or what stands for them.
    let result = unsafe {
        match context.collective {
            Collective::Alltoall => mpi.alltoall(&send, &receive, registration.comm),
            Collective::Alltoallv => mpi.alltoallv(&send, &receive, registration.comm),
        }
    };
    match result {
        Some(result) => result.map_err(Failure::Raised),
        None => Err(Failure::Told(super::too_large())),
    }
}
