//! ZFP on a GPU, for values that live there: the same streams as on the CPU.

mod array;
mod decode;
mod describe;
mod device;
mod driver;
mod encode;
mod entered;
mod jobs;
pub mod kernels;
mod launch;
mod locate;
mod look;
mod measure;
mod memory;
mod module;

pub use decode::decode;
pub use describe::{Described, Description, describe};
pub use device::Device;
pub use driver::{Error, Result};
pub use encode::encode;
pub use entered::{Entered, Pending};
pub use locate::{Location, for_host_buffers, locate};
pub use memory::{Lent, Memory, Pinned};

/// Says once that the CPU does what a GPU could not.
fn say_failure(error: &Error) {
    static SAID: std::sync::Once = std::sync::Once::new();
    SAID.call_once(|| tracing::warn!("a GPU failed: {error}; compressing on the CPU instead"));
}
