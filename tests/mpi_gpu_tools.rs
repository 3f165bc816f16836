//! The tools with which tests let an MPI take buffers of a GPU that is not there (tests/gpu/fake).

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::{BOTH, Run};

/// The library leaves alone what it does not compress: the addresses reach the MPI as they are.
#[test]
fn an_mpi_that_takes_buffers_of_a_gpu() {
    for mpi in BOTH {
        let log = common::gpu::log_file(&format!("tools-{mpi:?}"));
        Run::new(mpi, "buffers")
            .with_fake_cuda()
            .tool_after("log-tool")
            .tool_after("aware-tool")
            .env("FAKE_CUDA_LOG", log.display())
            .output()
            .passes()
            .complains_of_nothing();
        let lines = common::gpu::read_log(&log);
        let called = |line: &str| lines.iter().any(|entry| entry.ends_with(line));
        assert!(called("MPI_Alltoallv send=device receive=device"));
        assert!(called("MPI_Alltoallv send=pageable receive=device"));
    }
}
