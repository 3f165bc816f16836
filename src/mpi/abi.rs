//! What differs between the binary interfaces of MPI: handle width and a few constants.
//!
//! One table per family. `tests/abi.rs` compares each with the constants of the MPI it is built with.

use super::find;
use super::functions::Handle;
use std::ffi::{CStr, c_int};

/// A binary interface of MPI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Handles are addresses of library objects.
    OpenMpi,
    /// MPICH, Intel MPI, Cray MPICH, MVAPICH: handles are ints.
    Mpich,
    /// The ABI of the MPI 5 standard: handles are pointers with fixed small values.
    Standard,
}

/// The constants of one family.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Abi {
    pub family: Family,
    /// Bytes of a handle in memory, 4 or 8.
    pub handle_bytes: usize,
    pub in_place: usize,
    pub comm_world: Handle,
    pub comm_null: Handle,
    pub info_null: Handle,
    pub datatype_null: Handle,
    pub byte: Handle,
    pub int: Handle,
    pub max: Handle,
    pub bor: Handle,
    pub errors_return: Handle,
    pub status_ignore: usize,
    pub comm_type_shared: c_int,
    pub err_other: c_int,
    pub order_c: c_int,
    pub combiners: Combiners,
}

/// The values of the `MPI_COMBINER_*` that mean something to us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Combiners {
    pub named: c_int,
    pub dup: c_int,
    pub contiguous: c_int,
    pub vector: c_int,
    pub hvector: c_int,
    pub subarray: c_int,
    pub f90_real: c_int,
    pub f90_complex: c_int,
    pub f90_integer: c_int,
    pub resized: c_int,
}

impl Abi {
    /// The interface of the MPI in this process; `None` where there is no MPI.
    pub fn detect() -> Option<Self> {
        let init = find::next(c"PMPI_Init")?;
        let file = find::file_of(init as usize).unwrap_or_default();
        if file
            .rsplit('/')
            .next()
            .is_some_and(|name| name.starts_with("libmpi_abi"))
        {
            Some(STANDARD)
        } else if find::object(c"ompi_mpi_comm_world").is_some() {
            open_mpi()
        } else {
            Some(MPICH)
        }
    }

    /// The part of a passed handle that means something: ints leave the upper half of a register
    /// undefined.
    pub fn normalise(&self, handle: Handle) -> Handle {
        if self.handle_bytes == 4 {
            handle & 0xffff_ffff
        } else {
            handle
        }
    }
}

/// Open MPI's predefined handles are addresses of its data symbols.
fn open_mpi() -> Option<Abi> {
    let address = |name: &CStr| find::object(name).map(|address| address as Handle);
    Some(Abi {
        family: Family::OpenMpi,
        handle_bytes: 8,
        in_place: 1,
        comm_world: address(c"ompi_mpi_comm_world")?,
        comm_null: address(c"ompi_mpi_comm_null")?,
        info_null: address(c"ompi_mpi_info_null")?,
        datatype_null: address(c"ompi_mpi_datatype_null")?,
        byte: address(c"ompi_mpi_byte")?,
        int: address(c"ompi_mpi_int")?,
        max: address(c"ompi_mpi_op_max")?,
        bor: address(c"ompi_mpi_op_bor")?,
        errors_return: address(c"ompi_mpi_errors_return")?,
        status_ignore: 0,
        comm_type_shared: 0,
        err_other: 16,
        order_c: 0,
        combiners: Combiners {
            named: 0,
            dup: 1,
            contiguous: 2,
            vector: 3,
            hvector: 5,
            subarray: 12,
            f90_real: 14,
            f90_complex: 15,
            f90_integer: 16,
            resized: 17,
        },
    })
}

const MPICH: Abi = Abi {
    family: Family::Mpich,
    handle_bytes: 4,
    in_place: usize::MAX,
    comm_world: 0x4400_0000,
    comm_null: 0x0400_0000,
    info_null: 0x1c00_0000,
    datatype_null: 0x0c00_0000,
    byte: 0x4c00_010d,
    int: 0x4c00_0405,
    max: 0x5800_0001,
    bor: 0x5800_0008,
    errors_return: 0x5400_0001,
    status_ignore: 1,
    comm_type_shared: 1,
    err_other: 15,
    order_c: 56,
    combiners: Combiners {
        named: 1,
        dup: 2,
        contiguous: 3,
        vector: 4,
        hvector: 6,
        subarray: 13,
        f90_real: 15,
        f90_complex: 16,
        f90_integer: 17,
        resized: 18,
    },
};

/// MPI 5.0, Annex A.
const STANDARD: Abi = Abi {
    family: Family::Standard,
    handle_bytes: 8,
    in_place: 1,
    comm_world: 0x101,
    comm_null: 0x100,
    info_null: 0x130,
    datatype_null: 0x200,
    byte: 0x247,
    int: 0x209,
    max: 0x23,
    bor: 0x29,
    errors_return: 0x143,
    status_ignore: 0,
    comm_type_shared: 221,
    err_other: 16,
    order_c: 12,
    combiners: Combiners {
        named: 101,
        dup: 102,
        contiguous: 103,
        vector: 104,
        hvector: 105,
        subarray: 111,
        f90_real: 113,
        f90_complex: 114,
        f90_integer: 115,
        resized: 116,
    },
};
