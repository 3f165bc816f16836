//! Floats ↔ bytes. Nothing below this folder knows of MPI.
//!
//! A collective hands over all its messages at once: they are shared out over threads, or one launch on a GPU codes
//! them all. The payload of a message is, in this order: the mask (where there is one), the
//! scales of the field axis (where there is one), and the ZFP streams, 16-bit floats or lossless chunks.

mod bound;
mod boxes;
mod cast;
pub mod cuda;
mod decode;
mod element;
mod encode;
mod fit;
mod float;
mod helpers;
mod lies;
mod lossless;
mod mask;
mod memory;
mod plan;
mod quality;
mod round_trip;
mod scale;
mod share;
mod speed;
mod survey;
mod trial;
mod words;
pub mod zfp;

pub use decode::{Decode, decode};
pub use element::{Element, Item};
pub use encode::{Bits, Coder, Encode, Encoded, Guard, Refusal, encode};
pub use float::Float;
pub use helpers::cores_of_helpers;
pub use mask::{fill_values, without_fill_values};
pub use memory::{Memory, Place};
pub use quality::ErrorSample;
pub use round_trip::{Returned, Way, round_trip, round_trips};
pub use speed::speed;
pub use trial::{Goal, Window, focus, magnitude_spread, roughness, trial};

/// How the payload of a message was coded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Coding {
    Zfp,
    Fp16,
    Bf16,
    /// Exactly.
    Lossless,
}
