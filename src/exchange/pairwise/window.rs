//! What MPI is at work on in one direction.

use crate::exchange::buffer::{Buffer, Kind};
use crate::mpi::{Request, Result};
use std::mem::ManuallyDrop;
use std::ops::RangeInclusive;

/// Bytes under way, about: what keeps a link busy, and no more, so that ranks stay in step and no two send to
/// one.
const BYTES: usize = 1 << 20;
/// Messages under way, at least and at most.
const MESSAGES: RangeInclusive<usize> = 4..=64;

/// Counts what is under way.
#[derive(Default)]
pub struct Window {
    messages: usize,
    bytes: usize,
}

impl Window {
    pub fn has_room(&self) -> bool {
        let (least, most) = MESSAGES.into_inner();
        self.messages < least || self.messages < most && self.bytes < BYTES
    }

    pub fn add(&mut self, bytes: usize) {
        self.messages += 1;
        self.bytes += bytes;
    }

    pub fn remove(&mut self, bytes: usize) {
        self.messages -= 1;
        self.bytes -= bytes;
    }
}

/// Buffers that are not in use, to be used again.
#[derive(Default)]
pub struct Pool(Vec<Buffer>);

impl Pool {
    /// A buffer of at least so many bytes, of whatever content.
    pub fn take(&mut self, bytes: usize, kind: Kind) -> Buffer {
        let words = bytes.div_ceil(8);
        match self.0.iter().rposition(|buffer| buffer.len() >= words) {
            Some(index) if matches!(kind, Kind::Plain) => self.0.swap_remove(index),
            _ => Buffer::new(words, kind),
        }
    }

    /// Keeps a buffer, unless it goes back to a GPU; the shortest of them goes when there are more than a window needs.
    pub fn give(&mut self, buffer: Buffer) {
        if buffer.is_empty() || !buffer.is(Kind::Plain) {
            return;
        }
        self.0.push(buffer);
        if self.0.len() > *MESSAGES.end() {
            let shortest = (0..self.0.len()).min_by_key(|&index| self.0[index].len());
            self.0.swap_remove(shortest.unwrap_or(0));
        }
    }
}

/// A message that MPI sends or receives, and the buffer of ours that it works on; an empty one where it works
/// on the program's. When this is dropped early, by an error or a panic, the buffer stays allocated for
/// ever, since MPI may still use it.
pub struct Posted<'a> {
    request: Request<'a>,
    buffer: ManuallyDrop<Buffer>,
    /// What the window counts it as.
    pub bytes: usize,
}

impl<'a> Posted<'a> {
    pub fn new(request: Request<'a>, buffer: Buffer, bytes: usize) -> Self {
        let buffer = ManuallyDrop::new(buffer);
        Self {
            request,
            buffer,
            bytes,
        }
    }

    pub fn is_done(&mut self) -> Result<bool> {
        self.request.test()
    }

    /// The bytes that were received, once they were.
    pub fn received(&mut self) -> Result<Option<usize>> {
        self.request.test_received()
    }

    /// The buffer, which MPI must be done with.
    pub fn into_buffer(self) -> Buffer {
        ManuallyDrop::into_inner(self.buffer)
    }
}
