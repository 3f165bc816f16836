//! `libtranspress.so`: compresses the all-to-alls of an MPI program it is preloaded under.
//!
//! Data walks down this list and back up it: an intercepted call ([`intercept`]) finds the
//! registration of its communicator ([`registry`]) and the element its datatype stands for
//! ([`signature`]), decides how many bytes each rank gets ([`exchange`], [`wire`]), turns floats
//! into bytes along their axes ([`layout`], [`codec`]) and hands them to the real MPI ([`mpi`]).

mod capi;
pub mod cli;
pub mod codec;
mod exchange;
mod intercept;
pub mod layout;
pub mod log;
pub mod mpi;
mod registry;
mod report;
mod session;
pub mod settings;
pub mod signature;
pub mod wire;
