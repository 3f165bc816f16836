//! Where the blocks of a side lie, what codes them, and whether MPI can go there.

use super::Result;
use crate::codec::cuda::{self, Location};
use crate::codec::{Memory, Place};
use crate::mpi::gpu_aware;
use crate::registry::Registration;
use crate::session;
use crate::settings::{Device, GpuAware};
use once_cell::sync::OnceCell;
use std::sync::Once;

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
    pub fn of(registration: &Registration, address: *const u8) -> Result<Self> {
        let settings = session::settings();
        let memory = match cuda::locate(address)? {
            Location::Host => Memory::Host,
            Location::Device(device) => Memory::Gpu(device),
        };
        let coder = match (settings.device, memory) {
            (Device::Cpu, _) | (Device::Auto, Memory::Host) => None,
            (Device::Auto | Device::Cuda, Memory::Gpu(device)) => Some(device),
            (Device::Cuda, Memory::Host) => coder_for_the_host(registration),
        };
        // One rank of a node says what all of them find.
        let loads = |device: &&'static cuda::Device| {
            device.load(cuda::kernels::ptx(), registration.rank_on_node() == 0)
        };
        Ok(Self {
            place: Place {
                memory,
                coder: coder.filter(loads),
            },
            is_open_to_mpi: memory.is_host() || is_gpu_aware(settings.gpu_aware),
        })
    }
}

/// The GPU for buffers of the host; where there is none, the CPU, and the user is told once.
fn coder_for_the_host(registration: &Registration) -> Option<&'static cuda::Device> {
    static SAID: Once = Once::new();
    let found = cuda::for_host_buffers(registration.rank_on_node());
    let missing = match found {
        Ok(Some(device)) => return Some(device),
        Ok(None) => "no CUDA driver or no GPU was found".into(),
        Err(error) => error.to_string(),
    };
    if registration.rank_on_node() > 0 {
        return None;
    }
    SAID.call_once(|| {
        tracing::warn!("TRANSPRESS_DEVICE=cuda: {missing}; compressing on the CPU instead");
    });
    None
}

/// Whether MPI takes addresses on a GPU.
fn is_gpu_aware(setting: GpuAware) -> bool {
    static ITSELF: OnceCell<bool> = OnceCell::new();
    match setting {
        GpuAware::Auto => *ITSELF.get_or_init(gpu_aware::takes_cuda_buffers),
        GpuAware::Yes => true,
        GpuAware::No => false,
    }
}
