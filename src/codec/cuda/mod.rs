//! ZFP on a GPU, for values that live there: the same streams as on the CPU.

mod describe;
mod device;
mod driver;
mod entered;
pub mod kernels;
mod locate;
mod memory;
mod module;

pub use describe::{Described, Description, describe};
pub use device::Device;
pub use driver::{Error, Result};
pub use entered::{Entered, Pending};
pub use locate::{Location, for_host_buffers, locate};
pub use memory::{Lent, Memory, Pinned};
