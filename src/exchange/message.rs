//! A message to be compressed, and where its values are.

use super::Result;
use super::context::Context;
use super::form::{Coded, Form};
use super::side::Side;
use crate::codec::{Memory, Place};
use crate::layout::Axes;

/// A message to be compressed.
pub struct Message {
    pub peer: usize,
    pub coded: Coded,
    /// Empty for a flat message.
    pub axes: Axes,
}

/// Those of `forms` that are to be compressed, their axes not known yet.
pub fn coded(forms: &[Form]) -> Vec<Message> {
    let coded = |(peer, form): (usize, &Form)| match *form {
        Form::Raw(_) => None,
        Form::Coded(coded) => Some(Message {
            peer,
            coded,
            axes: Axes::new(),
        }),
    };
    forms.iter().enumerate().filter_map(coded).collect()
}

/// The index of the longest message.
pub fn longest(messages: &[Message]) -> Option<usize> {
    (0..messages.len()).max_by_key(|&index| messages[index].coded.count)
}

/// The values of one block, in place or gathered.
pub struct Values {
    pub pointer: *const u8,
    pub place: Place,
    /// Where `pointer` points when the block is not in one piece.
    _gathered: Vec<u64>,
}

impl Values {
    /// # Safety
    /// `side` must describe a live buffer, as MPI asks of the program.
    pub unsafe fn of(context: Context, side: &Side, message: &Message) -> Result<Self> {
        let Message { peer, coded, .. } = *message;
        let mut gathered = Vec::new();
        let mut place = side.place();
        let pointer = match side.piece(peer, coded.item.bytes()) {
            Some(piece) => piece.cast_const(),
            None => {
                let room = coded.room(&mut gathered);
                // SAFETY: there is room for that many bytes; the block is the caller's promise.
                unsafe {
                    let bytes = std::slice::from_raw_parts_mut(room, coded.raw_bytes());
                    side.gather(context.mpi, context.registration.private, peer, bytes)?;
                }
                place.memory = Memory::Host;
                room.cast_const()
            }
        };
        Ok(Self {
            pointer,
            place,
            _gathered: gathered,
        })
    }
}
