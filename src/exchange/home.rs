//! Where the blocks of a side lie, what codes them, and whether MPI can go there.

use crate::codec::cuda::{self, Location};
use crate::codec::{Memory, Place};
use crate::mpi::Mpi;
use crate::session;
use crate::settings::Device;

/// What is known of the memory of a side.
#[derive(Clone, Copy)]
pub struct Home {
    pub place: Place,
    pub is_open_to_mpi: bool,
}

impl Home {
    pub const HOST: Self = Self {
        place: Place::HOST,
        is_open_to_mpi: true,
    };

    /// That of a side with a block at `address`.
    pub fn of(mpi: &Mpi, address: *const u8) -> Self {
        let settings = session::settings();
        let (memory, own) = match cuda::locate(address) {
            Location::Host => (Memory::Host, None),
            Location::Device(device) => (Memory::Gpu(device), Some(device)),
        };
        let coder = match settings.device {
            Device::Cpu => None,
            Device::Auto => own,
            Device::Cuda => own.or_else(cuda::for_host_buffers),
        };
        Self {
            place: Place { memory, coder },
            is_open_to_mpi: memory.is_host() || mpi.takes_gpu_pointers(settings.gpu_aware),
        }
    }
}
