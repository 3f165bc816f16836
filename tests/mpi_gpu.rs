//! Buffers on a GPU, under MPIs that take their addresses and MPIs that do not. The driver is a stand-in (tests/gpu/fake)
//! whose device memory nobody else can touch, and which runs the real kernels.

mod common;

use common::{BOTH, Mpi, Run, gpu};

/// The program, with kernels; values may be off by so much.
fn buffers(mpi: Mpi) -> Run {
    Run::new(mpi, "buffers")
        .with_fake_cuda()
        .env("FAKE_CUDA_KERNELS", gpu::emulated_kernels().display())
        .env("TRANSPRESS_COMMS", "all")
        .env("TRANSPRESS_LAYOUT", "*")
        .env("CHECK_F32", 1e-3)
        .env("CHECK_F64", 1e-3)
        .ranks(3)
        .limit(120)
}

#[test]
fn an_mpi_that_takes_no_addresses_of_a_gpu() {
    for mpi in BOTH {
        for engine in ["collective", "pairwise"] {
            let run = buffers(mpi).env("TRANSPRESS_ENGINE", engine);
            run.output().passes();
        }
    }
}

#[test]
fn an_mpi_that_takes_addresses_of_a_gpu() {
    for mpi in BOTH {
        for engine in ["collective", "pairwise"] {
            let run = buffers(mpi)
                .tool_after("aware-tool")
                .env("TRANSPRESS_ENGINE", engine);
            run.output().passes();
        }
    }
}
