//! The table of src/mpi/abi.rs against the MPI that MPICC names: against mpi-sys, which is built for that
//! MPI and linked with it, and against its mpi.h for the constants that mpi-sys does not carry.
//!
//! mpi-sys is not built anew when MPICC changes, so each MPI needs a target directory of its own:
//! `MPICC=mpicc.mpich cargo test --features mpi-sys --test abi --target-dir target/judge-mpich`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod mpi_constants;

use mpi_constants::{of_header, of_table};
use std::ffi::c_int;
use transpress::mpi::Abi;
use transpress::mpi::abi::Family;

/// A handle or a pointer as it is passed.
fn passed<T: Copy>(value: T) -> u64 {
    match size_of::<T>() {
        // SAFETY: T has as many bytes, and is an int or a pointer, or a struct of one.
        4 => u64::from(unsafe { std::mem::transmute_copy::<T, u32>(&value) }),
        // SAFETY: as above.
        8 => unsafe { std::mem::transmute_copy::<T, u64>(&value) },
        bytes => panic!("a handle of {bytes} bytes"),
    }
}

#[test]
fn the_table_is_that_of_the_mpi_which_mpicc_names() {
    let mpicc = std::env::var("MPICC").expect("MPICC names an MPI compiler");
    let version = library_version();
    let header = of_header(&mpicc);
    let abi = Abi::detect().expect("this process is linked with MPI");
    println!("{mpicc}: {:?}, {version}", abi.family);

    let family = match version.starts_with("Open MPI") {
        true => Family::OpenMpi,
        false => Family::Mpich,
    };
    assert_eq!(abi.family, family, "{version}");

    let table = of_table(&abi);
    // SAFETY: these are constants, defined by mpi-sys's C part.
    let judge = unsafe {
        [
            ("handle bytes", size_of::<mpi_sys::MPI_Comm>() as u64),
            ("MPI_STATUS_IGNORE", passed(mpi_sys::RSMPI_STATUS_IGNORE)),
            ("MPI_COMM_WORLD", passed(mpi_sys::RSMPI_COMM_WORLD)),
            ("MPI_COMM_NULL", passed(mpi_sys::RSMPI_COMM_NULL)),
            ("MPI_INFO_NULL", passed(mpi_sys::RSMPI_INFO_NULL)),
            ("MPI_DATATYPE_NULL", passed(mpi_sys::RSMPI_DATATYPE_NULL)),
            ("MPI_MAX", passed(mpi_sys::RSMPI_MAX)),
            ("MPI_BOR", passed(mpi_sys::RSMPI_BOR)),
            ("MPI_ERRORS_RETURN", passed(mpi_sys::RSMPI_ERRORS_RETURN)),
            (
                "MPI_COMM_TYPE_SHARED",
                passed(mpi_sys::RSMPI_COMM_TYPE_SHARED),
            ),
            ("MPI_SUCCESS", mpi_sys::MPI_SUCCESS.into()),
            ("MPI_ERR_OTHER", mpi_sys::MPI_ERR_OTHER.into()),
        ]
    };
    for (name, value) in judge {
        assert_eq!(table[name], value, "{name} of {version}");
    }
    assert_eq!(table, header, "{version}");
}

/// What the MPI that is linked says it is.
fn library_version() -> String {
    let mut text = vec![0_u8; 8192];
    let mut length: c_int = 0;
    // SAFETY: allowed before MPI_Init; no MPI writes as much (MPI_MAX_LIBRARY_VERSION_STRING).
    unsafe { mpi_sys::MPI_Get_library_version(text.as_mut_ptr().cast(), &raw mut length) };
    let text = String::from_utf8_lossy(&text[..length as usize]);
    text.lines().next().unwrap_or_default().trim().into()
}
