fn main() {
    // MPI and the program keep addresses of ours (attribute callbacks, symbols they bound): the library
    // must never be unloaded.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    // Without this a change to any file, a test or a page, would build the library again.
    println!("cargo:rerun-if-changed=build.rs");
}
