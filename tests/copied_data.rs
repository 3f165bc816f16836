//! Programs into which the linker copied data of MPI's.
//!
//! Open MPI's predefined handles are addresses of objects in its library. A program that refers to such an object
//! usually gets it moved into itself (a copy relocation), and with it the handle. What is left in Open MPI's
//! library under that name was never initialised: calls with it crash. The program here refers to
//! MPI_COMM_WORLD and MPI_MAX, which transpress uses itself.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod alltoall_program;

#[test]
fn open_mpi() {
    alltoall_program::check("mpicc.openmpi", &["mpirun.openmpi", "--oversubscribe"]);
}

#[test]
fn mpich() {
    alltoall_program::check("mpicc.mpich", &["mpiexec.mpich"]);
}
