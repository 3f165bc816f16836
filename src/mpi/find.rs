//! Finds the real MPI in this process.
//!
//! Nothing here is linked against MPI: a program without it must not notice us.

use std::ffi::{CStr, c_char, c_int, c_void};

/// The address behind the next definition of `name` after ours.
///
/// In a program that links MPI, that is the next library in search order: another preloaded tool, or
/// MPI itself. Where MPI came in under `dlopen(RTLD_LOCAL)`, as Python loads it, search order does not
/// reach it, and it is looked up among the libraries that are loaded.
pub fn next(name: &CStr) -> Option<*mut c_void> {
    symbol(libc::RTLD_NEXT, name).or_else(|| in_loaded_mpis(name))
}

/// The address of MPI's data object `name`, as the whole process uses it: the first definition of all.
///
/// Where a program refers to such an object, the linker may have moved it into the program itself (a copy
/// relocation), and MPI uses it there: what its library still holds under that name is dead.
pub fn object(name: &CStr) -> Option<*mut c_void> {
    symbol(libc::RTLD_DEFAULT, name).or_else(|| in_loaded_mpis(name))
}

fn in_loaded_mpis(name: &CStr) -> Option<*mut c_void> {
    loaded_mpis()
        .into_iter()
        .find_map(|library| symbol(library, name))
}

/// The file that defines `address`, as the dynamic loader names it.
pub fn file_of(address: usize) -> Option<String> {
    // SAFETY: Dl_info is plain data for which all zeros is a value.
    let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: dladdr accepts any address and writes only `info`.
    let found = unsafe { libc::dladdr(std::ptr::without_provenance(address), &raw mut info) };
    if found == 0 || info.dli_fname.is_null() {
        return None;
    }
    // SAFETY: dladdr gave a C string that lives as long as the library is loaded.
    Some(
        unsafe { CStr::from_ptr(info.dli_fname) }
            .to_string_lossy()
            .into_owned(),
    )
}

fn symbol(library: *mut c_void, name: &CStr) -> Option<*mut c_void> {
    // SAFETY: `library` is a live handle from dlopen, or RTLD_NEXT or RTLD_DEFAULT, which are valid in a shared
    // object; `name` is a C string.
    let found = unsafe { libc::dlsym(library, name.as_ptr()) };
    (!found.is_null()).then_some(found)
}

/// Handles of the loaded libraries whose file name is that of an MPI, in load order. The handles stay
/// open: MPI is never unloaded under us.
fn loaded_mpis() -> Vec<*mut c_void> {
    let mut names: Vec<*const c_char> = Vec::new();
    // SAFETY: `collect` matches dl_iterate_phdr's callback type and uses `names` only during the call.
    unsafe { libc::dl_iterate_phdr(Some(collect), (&raw mut names).cast()) };
    names
        .into_iter()
        .map(|name| {
            // SAFETY: `name` is a C string owned by a loaded library; NOLOAD never loads anything.
            unsafe { libc::dlopen(name, libc::RTLD_LAZY | libc::RTLD_NOLOAD) }
        })
        .filter(|library| !library.is_null())
        .collect()
}

/// Keeps the name of each loaded library that may be an MPI.
unsafe extern "C" fn collect(
    info: *mut libc::dl_phdr_info,
    _size: libc::size_t,
    names: *mut c_void,
) -> c_int {
    // SAFETY: the loader passes a valid `info`, and `names` is the vector handed to dl_iterate_phdr.
    let (info, names) = unsafe { (&*info, &mut *names.cast::<Vec<*const c_char>>()) };
    if !info.dlpi_name.is_null() {
        // SAFETY: the loader's name is a C string.
        let path = unsafe { CStr::from_ptr(info.dlpi_name) }.to_bytes();
        let file = path.rsplit(|&byte| byte == b'/').next().unwrap_or(path);
        if file.starts_with(b"libmpi") || file.starts_with(b"libpmpi") {
            names.push(info.dlpi_name);
        }
    }
    0
}
