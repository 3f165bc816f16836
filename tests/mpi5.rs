//! The MPIs that Debian does not have: the ABI of the MPI 5 standard, and the newest of either family.
//!
//! MPICC, MPIEXEC and FAMILY (what the library must take it for) name one of them. `.ci/mpi5` installs them and
//! runs these tests with each.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod alltoall_program;
mod mpi_constants;

use transpress::mpi::Abi;

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set: run .ci/mpi5"))
}

#[test]
#[ignore = "needs an MPI from PyPI: .ci/mpi5 runs it"]
fn the_table_is_that_of_the_header() {
    let header = mpi_constants::of_header(&variable("MPICC"));
    let abi = Abi::detect().expect("the MPI that was just loaded");
    assert_eq!(format!("{:?}", abi.family), variable("FAMILY"));
    assert_eq!(mpi_constants::of_table(&abi), header);
}

#[test]
#[ignore = "needs an MPI from PyPI: .ci/mpi5 runs it"]
fn an_alltoall_is_compressed() {
    let mpiexec = variable("MPIEXEC");
    let mpiexec: Vec<_> = mpiexec.split_whitespace().collect();
    alltoall_program::check(&variable("MPICC"), &mpiexec);
}
