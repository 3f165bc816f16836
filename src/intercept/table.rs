//! The one table of intercepted functions.
//!
//! Each row exports `MPI_X` and `PMPI_X`. Both run the same body; what it passes on goes to the next
//! function of the same name, so that other tools that are preloaded see what they would see without us.
//! Fortran needs no rows of its own: Open MPI's bindings end in `PMPI_X`, MPICH's in `MPI_X`.

use super::next::Next;
use super::{Argument, Blocks, all_to_all, finalising, initialised};
use crate::exchange::Collective::{Alltoall, Alltoallv};
use crate::mpi::Handle;
use std::ffi::{c_char, c_int, c_void};

/// What a call returns where there is no MPI to pass it on to; no MPI has this code.
const NO_MPI: c_int = c_int::MAX;

macro_rules! intercept {
    ($( $name:literal, $pname:literal, $module:ident ( $($arg:ident: $type:ty),* ) $next:ident => $body:block )*) => {$(
        #[allow(clippy::too_many_arguments, reason = "they are MPI's")]
        mod $module {
            use super::*;

            type Function = unsafe extern "C" fn($($type),*) -> c_int;

            /// # Safety
            /// As MPI asks of the program.
            unsafe fn run(next: &Next, $($arg: $type),*) -> c_int {
                let $next = || match next.address() {
                    // SAFETY: MPI defines the symbol with this signature, and the arguments are the
                    // program's.
                    Some(address) => unsafe {
                        std::mem::transmute::<*mut c_void, Function>(address)($($arg),*)
                    },
                    None => NO_MPI,
                };
                $body
            }

            #[doc = concat!("MPI's `", $name, "`.")]
            #[doc = ""]
            #[doc = "# Safety"]
            #[doc = "As MPI asks of the program."]
            #[unsafe(export_name = $name)]
            pub unsafe extern "C" fn mpi($($arg: $type),*) -> c_int {
                const NAME: &std::ffi::CStr = c_name(concat!($name, "\0"));
                static NEXT: Next = Next::new(NAME);
                // SAFETY: the caller's promise.
                unsafe { run(&NEXT, $($arg),*) }
            }

            #[doc = concat!("MPI's `", $pname, "`.")]
            #[doc = ""]
            #[doc = "# Safety"]
            #[doc = "As MPI asks of the program."]
            #[unsafe(export_name = $pname)]
            pub unsafe extern "C" fn pmpi($($arg: $type),*) -> c_int {
                const NAME: &std::ffi::CStr = c_name(concat!($pname, "\0"));
                static NEXT: Next = Next::new(NAME);
                // SAFETY: the caller's promise.
                unsafe { run(&NEXT, $($arg),*) }
            }
        }
    )*};
}

const fn c_name(name_with_nul: &'static str) -> &'static std::ffi::CStr {
    match std::ffi::CStr::from_bytes_with_nul(name_with_nul.as_bytes()) {
        Ok(name) => name,
        Err(_) => c"",
    }
}

intercept! {
    "MPI_Init", "PMPI_Init", init(argc: *mut c_int, argv: *mut *mut *mut c_char) next => {
        initialised(next())
    }

    "MPI_Init_thread", "PMPI_Init_thread", init_thread(
        argc: *mut c_int, argv: *mut *mut *mut c_char, required: c_int, provided: *mut c_int
    ) next => {
        initialised(next())
    }

    "MPI_Finalize", "PMPI_Finalize", finalize() next => {
        finalising();
        next()
    }

    "MPI_Alltoall", "PMPI_Alltoall", alltoall(
        sendbuf: *const c_void, sendcount: c_int, sendtype: Handle,
        recvbuf: *mut c_void, recvcount: c_int, recvtype: Handle, comm: Handle
    ) next => {
        let send = Argument { buffer: sendbuf.cast_mut(), blocks: Blocks::Equal(sendcount.into()), datatype: sendtype };
        let receive = Argument { buffer: recvbuf, blocks: Blocks::Equal(recvcount.into()), datatype: recvtype };
        // SAFETY: the arguments are the program's.
        unsafe { all_to_all(Alltoall, send, receive, comm, next) }
    }

    "MPI_Alltoallv", "PMPI_Alltoallv", alltoallv(
        sendbuf: *const c_void, sendcounts: *const c_int, sdispls: *const c_int, sendtype: Handle,
        recvbuf: *mut c_void, recvcounts: *const c_int, rdispls: *const c_int, recvtype: Handle,
        comm: Handle
    ) next => {
        let send = Argument { buffer: sendbuf.cast_mut(), blocks: Blocks::Ints(sendcounts, sdispls), datatype: sendtype };
        let receive = Argument { buffer: recvbuf, blocks: Blocks::Ints(recvcounts, rdispls), datatype: recvtype };
        // SAFETY: the arguments are the program's.
        unsafe { all_to_all(Alltoallv, send, receive, comm, next) }
    }

    "MPI_Alltoall_c", "PMPI_Alltoall_c", alltoall_c(
        sendbuf: *const c_void, sendcount: i64, sendtype: Handle,
        recvbuf: *mut c_void, recvcount: i64, recvtype: Handle, comm: Handle
    ) next => {
        let send = Argument { buffer: sendbuf.cast_mut(), blocks: Blocks::Equal(sendcount), datatype: sendtype };
        let receive = Argument { buffer: recvbuf, blocks: Blocks::Equal(recvcount), datatype: recvtype };
        // SAFETY: the arguments are the program's.
        unsafe { all_to_all(Alltoall, send, receive, comm, next) }
    }

    "MPI_Alltoallv_c", "PMPI_Alltoallv_c", alltoallv_c(
        sendbuf: *const c_void, sendcounts: *const i64, sdispls: *const isize, sendtype: Handle,
        recvbuf: *mut c_void, recvcounts: *const i64, rdispls: *const isize, recvtype: Handle,
        comm: Handle
    ) next => {
        let send = Argument { buffer: sendbuf.cast_mut(), blocks: Blocks::Large(sendcounts, sdispls), datatype: sendtype };
        let receive = Argument { buffer: recvbuf, blocks: Blocks::Large(recvcounts, rdispls), datatype: recvtype };
        // SAFETY: the arguments are the program's.
        unsafe { all_to_all(Alltoallv, send, receive, comm, next) }
    }
}
