//! For benchmarks.

use super::Entered;
use std::ffi::c_void;

impl Entered {
    /// The driver's handle of our stream.
    #[doc(hidden)]
    pub fn stream_handle(&self) -> *mut c_void {
        self.device().stream.cast()
    }
}
