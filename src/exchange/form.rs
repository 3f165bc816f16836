//! How each message of a call travels: decided from facts that both of its ends hold.

use super::context::Context;
use super::side::{Side, Values};
use crate::codec::Item;
use crate::registry::{Registration, Terms};
use crate::settings::OnNode;
use crate::wire::HEADER_BYTES;

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
    pub item: Item,
    /// Values are pairs of real and imaginary part.
    pub complex: bool,
    pub count: usize,
}

impl Coded {
    /// Bytes of the values.
    pub fn raw_bytes(&self) -> usize {
        self.count * self.item.bytes()
    }

    /// Room for the values, aligned for any of them.
    pub fn room(&self, words: &mut Vec<u64>) -> *mut u8 {
        words.resize(self.raw_bytes().div_ceil(8), 0);
        words.as_mut_ptr().cast()
    }
}

impl Form {
    /// Bytes on the wire where the count decides them.
    pub fn wire_bytes(&self, terms: &Terms) -> usize {
        match self {
            Self::Raw(bytes) => *bytes,
            Self::Coded(coded) => terms.wire_bytes(coded.count, coded.item),
        }
    }
}

/// The form of each message of a side. `holds_back` is asked for those that would be compressed, and counts
/// them.
pub fn forms(
    context: Context,
    side: &Side,
    mut holds_back: impl FnMut(usize) -> bool,
) -> Vec<Form> {
    let Context {
        registration,
        terms,
        ..
    } = context;
    (0..registration.size)
        .map(|peer| {
            if peer == registration.rank {
                return Form::Raw(0);
            }
            match form_between(registration, terms, side, peer) {
                Form::Coded(_) if holds_back(peer) => Form::Raw(side.bytes(peer)),
                form => form,
            }
        })
        .collect()
}

/// The peers whose messages are compressed, and the bytes of a header.
pub fn headers(forms: &[Form]) -> impl Iterator<Item = (usize, usize)> {
    let peers = (0..forms.len()).filter(|&peer| matches!(forms[peer], Form::Coded(_)));
    peers.map(|peer| (peer, HEADER_BYTES))
}

/// The form of a message between this rank and `peer` when none is held back.
pub fn form_between(registration: &Registration, terms: &Terms, side: &Side, peer: usize) -> Form {
    let bytes = side.bytes(peer);
    if peer_allows(registration, terms, peer) {
        form(terms, bytes, side.values(peer, terms.holds()))
    } else {
        Form::Raw(bytes)
    }
}

/// Whether messages between this rank and `peer` may be compressed, as far as nodes decide it.
fn peer_allows(registration: &Registration, terms: &Terms, peer: usize) -> bool {
    match terms.on_node {
        OnNode::Compress => true,
        OnNode::Raw => !registration.on_node[peer],
        OnNode::Auto => !(registration.spans_nodes && registration.on_node[peer]),
    }
}

/// The form of a message of `values` (none: not floats) that is `bytes` long, between ranks whose nodes
/// allow compression.
pub fn form(terms: &Terms, bytes: usize, values: Option<Values>) -> Form {
    let Some(Values {
        item,
        complex,
        count,
    }) = values
    else {
        return Form::Raw(bytes);
    };
    let shrinks = terms.is_variable() || terms.wire_bytes(count, item) < bytes;
    if bytes == 0 || bytes < terms.min_bytes || !shrinks {
        return Form::Raw(bytes);
    }
    Form::Coded(Coded {
        item,
        complex,
        count,
    })
}
