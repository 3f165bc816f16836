//! Floats ↔ bytes. Nothing below this folder knows of MPI.

pub mod zfp;
