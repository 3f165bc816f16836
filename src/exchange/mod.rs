//! Who sends how many bytes to whom.
//!
//! Every decision about a pair of ranks in this folder rests on facts that both hold: the type
//! signature, the count, the agreed terms, the node, and the escapes that went between them before.

mod axes;
mod backoff;
mod collective;
mod context;
mod escape;
mod incoming;
mod outgoing;
mod side;
mod staging;

pub use backoff::Backoff;
pub use collective::{Failure, Outcome, run};
pub use outgoing::Outgoing;
pub use side::{Side, Slices};
pub use staging::{Staging, free_unit_types};

use crate::codec::Element;
use crate::registry::{Registration, Terms};
use crate::wire;

/// The program's call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Collective {
    Alltoall,
    Alltoallv,
}

impl Collective {
    pub fn name(self) -> &'static str {
        match self {
            Self::Alltoall => "MPI_Alltoall",
            Self::Alltoallv => "MPI_Alltoallv",
        }
    }
}

/// An intercepted all-to-all on a registered communicator.
pub struct Call {
    pub collective: Collective,
    /// `None` for `MPI_IN_PLACE`: what is received lies where it was sent from.
    pub send: Option<Side>,
    pub receive: Side,
}

/// How one message travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// As it is, this many bytes.
    Raw(usize),
    /// Compressed.
    Coded(Coded),
}

/// A compressed message, as far as both ends know it beforehand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Coded {
    pub element: Element,
    /// Values are pairs of real and imaginary part.
    pub complex: bool,
    pub count: usize,
    pub wire_bytes: usize,
}

impl Form {
    pub fn wire_bytes(&self) -> usize {
        match self {
            Self::Raw(bytes) => *bytes,
            Self::Coded(coded) => coded.wire_bytes,
        }
    }
}

/// Whether messages between this rank and `peer` may be compressed, as far as nodes decide it.
fn peer_allows(registration: &Registration, terms: &Terms, peer: usize) -> bool {
    use crate::settings::OnNode;
    match terms.on_node {
        OnNode::Compress => true,
        OnNode::Raw => !registration.on_node[peer],
        OnNode::Auto => !(registration.spans_nodes && registration.on_node[peer]),
    }
}

/// The form of a message of `values` (none: not floats) that is `bytes` long, between ranks whose nodes
/// allow compression.
fn form(terms: &Terms, bytes: usize, values: Option<side::Values>) -> Form {
    let Some(side::Values {
        element,
        complex,
        count,
    }) = values
    else {
        return Form::Raw(bytes);
    };
    let wire_bytes = wire::wire_bytes(count, terms.rate);
    if bytes < terms.min_bytes || wire_bytes >= bytes {
        return Form::Raw(bytes);
    }
    Form::Coded(Coded {
        element,
        complex,
        count,
        wire_bytes,
    })
}
