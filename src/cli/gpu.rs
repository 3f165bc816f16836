//! The GPUs that the CUDA driver sees, and whether the kernels can be used there.

use std::ffi::CStr;

use super::probe;
use crate::codec::cuda::{self, Described, kernels};

const DRIVER: &CStr = c"libcuda.so.1";

/// A line for each GPU of this machine. Whether a driver is there can be seen at once; what it says is asked in
/// another process.
pub fn describe() -> Vec<String> {
    if probe::symbol(DRIVER, libc::RTLD_LOCAL, c"cuInit").is_none() {
        return vec!["none (no CUDA driver)".into()];
    }
    match probe::ask(&["cuda".as_ref()]) {
        Some(lines) => lines.lines().map(str::to_owned).collect(),
        None => vec!["none (the CUDA driver does not answer)".into()],
    }
}

/// The same lines, by the process that asks the driver. Loading the kernels makes contexts there.
pub(super) fn lines() -> String {
    let found = match cuda::describe(kernels::ptx()) {
        Ok(Some(found)) => found,
        Ok(None) => return "none (the CUDA driver is too old)\n".into(),
        Err(error) => return format!("none (the CUDA driver cannot be used: {error})\n"),
    };
    let version = found.driver_version;
    let driver = format!("driver of CUDA {}.{}", version / 1000, version % 1000 / 10);
    if found.devices.is_empty() {
        return format!("none ({driver} sees no device)\n");
    }
    found
        .devices
        .iter()
        .map(|device| line(device, &driver))
        .collect()
}

fn line(device: &Described, driver: &str) -> String {
    let (name, (major, minor)) = (&device.name, device.capability);
    let gib = device.bytes >> 30;
    let kernels = match &device.kernels {
        Ok(()) => "kernels can be used".into(),
        Err(why) => format!("kernels cannot be used: {}", why.replace('\n', " ")),
    };
    format!("{name}, {gib} GiB, compute capability {major}.{minor}, {driver}; {kernels}\n")
}
