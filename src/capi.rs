//! The public C and Fortran interface; `include/transpress.h` and `include/transpress.f90` describe it.

use crate::codec::{Element, Item};
use crate::layout::Layout;
use crate::mpi::{Handle, Mpi};
use crate::registry::{self, Known, Registration, Verdict};
use crate::session;
use crate::settings::{Codec, RATES, is_tolerance};
use std::ffi::{CStr, c_char, c_double, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// The return codes of `transpress.h`; `TRANSPRESS_ABSENT` (1) is the header's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Code {
    Ok = 0,
    Disabled = 2,
    BadArgument = 3,
    NotRegistered = 4,
    Disagree = 5,
    NotAvailable = 6,
    Failed = 7,
}

/// `transpress_stats_t`.
#[repr(C)]
pub struct StatsOut {
    calls: u64,
    messages_compressed: u64,
    messages_raw: u64,
    messages_escaped: u64,
    bytes_before: u64,
    bytes_after: u64,
    seconds_encode: f64,
    seconds_wire: f64,
    seconds_decode: f64,
    worst_error: f64,
    mean_error: f64,
}

/// Runs the body of an entry point where MPI is there and a communicator can carry a registration. No
/// panic leaves here.
fn enter(comm: Handle, body: impl FnOnce(&'static Mpi, Handle) -> Code) -> c_int {
    let result = catch_unwind(AssertUnwindSafe(|| {
        let Some(mpi) = Mpi::get().filter(|mpi| mpi.is_active() && !session::is_closed()) else {
            return Code::Failed;
        };
        session::open(mpi);
        let comm = mpi.abi.normalise(comm);
        if comm == mpi.abi.comm_null {
            Code::BadArgument
        } else {
            body(mpi, comm)
        }
    }));
    result.unwrap_or(Code::Failed) as c_int
}

/// As [`enter`], for calls on a communicator that is registered.
fn enter_registered(
    comm: Handle,
    body: impl FnOnce(&'static Mpi, Arc<Registration>) -> Code,
) -> c_int {
    enter(comm, |mpi, comm| match registry::lookup(comm) {
        Some(Known::Registered(registration)) => body(mpi, registration),
        _ => Code::NotRegistered,
    })
}

fn register(comm: Handle) -> c_int {
    enter(comm, |mpi, comm| match mpi.is_inter(comm) {
        Ok(true) => Code::BadArgument,
        Err(_) => Code::Failed,
        Ok(false) => match registry::register(mpi, comm) {
            Ok(Verdict::Agreed { wanted: true }) => Code::Ok,
            Ok(Verdict::Agreed { wanted: false }) => Code::Disabled,
            Ok(Verdict::Differ) => Code::Disagree,
            Err(_) => Code::Failed,
        },
    })
}

fn unregister(comm: Handle) -> c_int {
    enter_registered(comm, |mpi, registration| {
        match registry::unregister(mpi, registration.comm) {
            Ok(()) => Code::Ok,
            Err(_) => Code::Failed,
        }
    })
}

/// Compares what the ranks gave, then lets `change` take effect on all of them or on none. `given` is
/// `None` where this rank's argument is not accepted.
fn change_terms<T: std::fmt::Debug>(
    comm: Handle,
    given: Option<T>,
    change: impl FnOnce(&Registration, T),
) -> c_int {
    enter_registered(comm, |mpi, registration| {
        match (
            registry::all_give(mpi, registration.private, &format!("{given:?}")),
            given,
        ) {
            (Err(_), _) => Code::Failed,
            (Ok(false), _) => Code::Disagree,
            (Ok(true), None) => Code::BadArgument,
            (Ok(true), Some(value)) => {
                change(&registration, value);
                Code::Ok
            }
        }
    })
}

fn set_rate(comm: Handle, rate: f64) -> c_int {
    change_terms(
        comm,
        Some(rate).filter(|rate| RATES.contains(rate)),
        |registration, rate| {
            registration.change_terms(|terms| terms.set_rate(rate));
        },
    )
}

fn set_bytes(comm: Handle, element: Option<&str>) -> c_int {
    let given = match element {
        Some("f32") => Some(Some(Item::Float(Element::F32))),
        Some("f64") => Some(Some(Item::Float(Element::F64))),
        Some("any") if session::settings().codec == Codec::Lossless => Some(Some(Item::Word(1))),
        Some("off") => Some(None),
        _ => None,
    };
    change_terms(comm, given, |registration, bytes| {
        registration.change_terms(|terms| terms.bytes = bytes);
    })
}

fn set_tolerance(comm: Handle, absolute: f64) -> c_int {
    if session::settings().codec != Codec::Zfp {
        return enter_registered(comm, |_, _| Code::NotAvailable);
    }
    let given = Some(absolute).filter(|&absolute| is_tolerance(absolute));
    change_terms(comm, given, |registration, absolute| {
        registration.change_terms(|terms| terms.tolerance = Some(absolute));
    })
}

fn add_layout(comm: Handle, layout: Result<Layout, String>) -> c_int {
    enter_registered(comm, |_, registration| match layout {
        Ok(layout) => {
            let mut layouts = registration.layouts();
            layouts.known.push(layout);
            layouts.misfit_said = false;
            Code::Ok
        }
        Err(reason) => {
            tracing::warn!("layout for communicator {}: {reason}", registration.label());
            Code::BadArgument
        }
    })
}

fn stats(comm: Handle, out: Option<&mut StatsOut>) -> c_int {
    enter_registered(comm, |_, registration| {
        let Some(out) = out else {
            return Code::BadArgument;
        };
        let total = registration.stats().total();
        *out = StatsOut {
            calls: total.calls,
            messages_compressed: total.compressed,
            messages_raw: total.raw,
            messages_escaped: total.escaped,
            bytes_before: total.bytes_before,
            bytes_after: total.bytes_after,
            seconds_encode: total.encode,
            seconds_wire: total.wire,
            seconds_decode: total.decode,
            worst_error: total.error.worst,
            mean_error: total.error.mean(),
        };
        Code::Ok
    })
}

/// # Safety
/// `text` must be null or a C string.
unsafe fn text<'a>(text: *const c_char) -> Option<&'a str> {
    if text.is_null() {
        return None;
    }
    // SAFETY: the caller's promise.
    unsafe { CStr::from_ptr(text) }.to_str().ok()
}

/// # Safety
/// `text` must be null or a C string.
unsafe fn layout(layout: *const c_char) -> Result<Layout, String> {
    // SAFETY: the caller's promise.
    unsafe { text(layout) }.map_or_else(|| Err("not a string".into()), Layout::parse)
}

/// # Safety
/// `extents` must be null or have `ndims` elements.
unsafe fn shape(ndims: c_int, extents: *const c_int) -> Result<Layout, String> {
    if !(1..=3).contains(&ndims) || extents.is_null() {
        return Err(format!("a shape of {ndims} axes: accepted are 1 to 3"));
    }
    // SAFETY: the caller's promise.
    Layout::from_extents(unsafe { std::slice::from_raw_parts(extents, ndims as usize) })
}

/// Exports a function for C, taking MPI's own handle, and one for Fortran, taking its integer.
macro_rules! export {
    ($( $name:literal, $fortran_name:literal, $module:ident ( $($arg:ident: $type:ty),* ) $comm:ident => $body:expr; )*) => {$(
        mod $module {
            use super::*;

            #[doc = concat!("`", $name, "` of `transpress.h`.")]
            #[doc = ""]
            #[doc = "# Safety"]
            #[doc = "Pointers must be what the header asks for."]
            #[unsafe(export_name = $name)]
            pub unsafe extern "C" fn c($comm: Handle, $($arg: $type),*) -> c_int {
                $body
            }

            #[doc = concat!("`", $name, "` for Fortran.")]
            #[doc = ""]
            #[doc = "# Safety"]
            #[doc = "Pointers must be what the header asks for."]
            #[unsafe(export_name = $fortran_name)]
            pub unsafe extern "C" fn fortran(comm: c_int, $($arg: $type),*) -> c_int {
                let $comm = Mpi::get().map_or(0, |mpi| mpi.comm_from_fortran(comm));
                $body
            }
        }
    )*};
}

export! {
    "transpress_register", "transpress_register_f", register_() comm => register(comm);
    "transpress_unregister", "transpress_unregister_f", unregister_() comm => unregister(comm);
    "transpress_set_rate", "transpress_set_rate_f", set_rate_(bits_per_value: c_double) comm =>
        set_rate(comm, bits_per_value);
    "transpress_set_tolerance", "transpress_set_tolerance_f", set_tolerance_(absolute: c_double) comm =>
        set_tolerance(comm, absolute);
    "transpress_set_bytes", "transpress_set_bytes_f", set_bytes_(element: *const c_char) comm =>
        // SAFETY: the caller's promise.
        set_bytes(comm, unsafe { text(element) });
    "transpress_add_shape", "transpress_add_shape_f", add_shape_(ndims: c_int, extents: *const c_int) comm =>
        // SAFETY: the caller's promise.
        add_layout(comm, unsafe { shape(ndims, extents) });
    "transpress_add_layout", "transpress_add_layout_f", add_layout_(text: *const c_char) comm =>
        // SAFETY: the caller's promise.
        add_layout(comm, unsafe { layout(text) });
    "transpress_stats", "transpress_stats_f", stats_(out: *mut StatsOut) comm =>
        // SAFETY: the caller's promise.
        stats(comm, unsafe { out.as_mut() });
}
