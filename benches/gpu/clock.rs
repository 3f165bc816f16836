//! The time that work takes on a device, by the driver's events.

use crate::Result;
use crate::driver::{Handle, driver};

/// The handle of the legacy default stream (cuda.h: CU_STREAM_LEGACY).
pub const LEGACY_STREAM: Handle = std::ptr::without_provenance_mut(1);

/// Seconds that a stream of the current context takes for the work that is put on it.
pub fn seconds(stream: Handle, work: impl FnOnce() -> Result<()>) -> Result<f64> {
    let driver = driver()?;
    let (before, after) = (Event::new()?, Event::new()?);
    before.record(stream)?;
    work()?;
    after.record(stream)?;
    let mut milliseconds = 0.0;
    // SAFETY: both events are of the current context, and `milliseconds` outlives the call.
    unsafe {
        driver.event_synchronize(after.0)?;
        driver.event_elapsed_time(&raw mut milliseconds, before.0, after.0)?;
    }
    Ok(f64::from(milliseconds) * 1e-3)
}

/// An event of the current context, which stays current while this lives.
struct Event(Handle);

impl Event {
    fn new() -> Result<Self> {
        let mut event = std::ptr::null_mut();
        // SAFETY: `event` outlives the call.
        unsafe { driver()?.event_create(&raw mut event, 0)? };
        Ok(Self(event))
    }

    /// Puts it behind the work that a stream of the current context has.
    fn record(&self, stream: Handle) -> Result<()> {
        // SAFETY: event and stream are of the current context.
        unsafe { driver()?.event_record(self.0, stream) }
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        if let Ok(driver) = driver() {
            // SAFETY: made by `new`; nothing uses it any more.
            let _ = unsafe { driver.event_destroy(self.0) };
        }
    }
}
