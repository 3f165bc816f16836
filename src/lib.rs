//! `libtranspress.so`: compresses the all-to-alls of an MPI program it is preloaded under.
//!
//! Data walks down this list and back up it: an intercepted call ([`intercept`]) finds the
//! registration of its communicator ([`registry`]) and the element its datatype stands for
//! ([`signature`]), decides how many bytes each rank gets ([`exchange`], [`wire`]), turns floats
//! into bytes along their axes ([`layout`], [`codec`]) and hands them to the real MPI ([`mpi`]).

pub mod cli;
pub mod codec;
pub mod layout;
pub mod log;
pub mod settings;
