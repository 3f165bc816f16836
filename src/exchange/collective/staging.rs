//! The buffers that the collective itself works on.

use crate::codec::Memory;
use crate::exchange::Result;
use crate::exchange::buffer::{Buffer, Kind};
use crate::mpi::{Half, Handle, Mpi};
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// Slots start at cache lines, which is more than any value needs.
const ALIGN: usize = 64;

/// A reusable buffer of 64-bit words for either direction.
#[derive(Default)]
pub struct Staging {
    pub send: Slots,
    pub receive: Slots,
}

/// One slot per rank, each as long as that rank's message on the wire.
#[derive(Default)]
pub struct Slots {
    words: Buffer,
    /// Start and length of each slot in bytes.
    places: Vec<(usize, usize)>,
}

impl Slots {
    /// Makes slots of these lengths. What they hold afterwards is left over from other calls.
    pub fn arrange(&mut self, lengths: impl Iterator<Item = usize>, kind: Kind) {
        let mut end = 0usize;
        self.places.clear();
        self.places.extend(lengths.map(|length| {
            let start = end;
            end = (start + length).next_multiple_of(ALIGN);
            (start, length)
        }));
        if self.words.len() < end / 8 || !self.words.is(kind) {
            // Not resized: the old contents are of no use.
            self.words = Buffer::new(end / 8, kind);
        }
    }

    /// The slot of `peer`, in bytes.
    pub fn bytes(&self, peer: usize) -> &[u8] {
        let (start, length) = self.places[peer];
        // SAFETY: `arrange` made `words` at least as long as the last slot's end.
        unsafe { std::slice::from_raw_parts(self.words.as_ptr().cast::<u8>().add(start), length) }
    }

    pub fn bytes_mut(&mut self, peer: usize) -> &mut [u8] {
        let (start, length) = self.places[peer];
        // SAFETY: as above; the words are borrowed mutably as long as the slot.
        unsafe {
            std::slice::from_raw_parts_mut(self.words.as_mut_ptr().cast::<u8>().add(start), length)
        }
    }

    /// The whole words of the slot of `peer`.
    pub fn words(&self, peer: usize) -> &[u64] {
        let (start, length) = self.places[peer];
        &self.words[start / 8..start / 8 + length / 8]
    }

    /// The whole words of every slot, in the order of ranks, to be worked on at once.
    pub fn all_words_mut(&mut self) -> Vec<&mut [u64]> {
        let mut rest = &mut *self.words;
        let mut taken = 0;
        self.places
            .iter()
            .map(|&(start, length)| {
                let (_, from_start) = std::mem::take(&mut rest).split_at_mut(start / 8 - taken);
                let (slot, after) = from_start.split_at_mut(length / 8);
                rest = after;
                taken = start / 8 + length / 8;
                slot
            })
            .collect()
    }

    /// Where the slot of `peer` is for MPI.
    pub fn place(&mut self, peer: usize) -> (Memory, *mut u8) {
        self.words.place(self.places[peer].0)
    }

    /// Address of each slot on a GPU, where they are there.
    pub fn on_device(&self) -> Vec<Option<u64>> {
        let starts = self.places.iter().map(|&(start, _)| start);
        starts.map(|start| self.words.on_device(start)).collect()
    }

    /// Takes the first bytes of slots, given by peer and number, to where MPI sends them from.
    pub fn publish(&mut self, firsts: impl IntoIterator<Item = (usize, usize)>) -> Result<()> {
        let places = &self.places;
        let ranges = firsts.into_iter().map(|first| range(places, first));
        self.words.publish(ranges)
    }

    /// Brings the first bytes of slots, given likewise, from where MPI received them.
    pub fn fetch(&mut self, firsts: impl IntoIterator<Item = (usize, usize)>) -> Result<()> {
        let places = &self.places;
        let ranges = firsts.into_iter().map(|first| range(places, first));
        self.words.fetch(ranges)
    }

    /// The slots as one half of an Alltoallv. Its unit is as large as the lengths allow, so that MPI's
    /// ints reach far: 16 GiB when all messages are compressed.
    pub fn half(&mut self, mpi: &Mpi) -> Result<Half> {
        let joined = self
            .places
            .iter()
            .fold(ALIGN, |bits, &(_, length)| bits | length);
        let unit = 1 << joined.trailing_zeros();
        Ok(Half {
            buffer: self.words.place(0).1.cast(),
            datatype: unit_type(mpi, unit)?,
            counts: self
                .places
                .iter()
                .map(|&(_, length)| (length / unit) as i64)
                .collect(),
            displacements: self
                .places
                .iter()
                .map(|&(start, _)| (start / unit) as isize)
                .collect(),
        })
    }
}

/// Where the first bytes of a peer's slot are.
fn range(places: &[(usize, usize)], (peer, bytes): (usize, usize)) -> Range<usize> {
    let (start, _) = places[peer];
    start..start + bytes
}

/// The datatypes of 1, 2, 4, … [`ALIGN`] bytes, as far as they were needed.
static UNIT_TYPES: Mutex<[Option<Handle>; ALIGN.trailing_zeros() as usize + 1]> =
    Mutex::new([None; ALIGN.trailing_zeros() as usize + 1]);

/// The datatype of `unit` bytes, a power of two up to [`ALIGN`]; made once per process.
fn unit_type(mpi: &Mpi, unit: usize) -> Result<Handle> {
    if unit == 1 {
        return Ok(mpi.abi.byte);
    }
    let mut types = UNIT_TYPES.lock().unwrap_or_else(PoisonError::into_inner);
    let known = &mut types[unit.trailing_zeros() as usize];
    match *known {
        Some(datatype) => Ok(datatype),
        None => Ok(*known.insert(mpi.type_of_bytes(unit)?)),
    }
}

/// Gives the datatypes back before MPI is finalised, so that it finds nothing leaked.
pub fn free_unit_types(mpi: &Mpi) {
    let mut types = UNIT_TYPES.lock().unwrap_or_else(PoisonError::into_inner);
    for datatype in types.iter_mut().filter_map(Option::take) {
        mpi.type_free(datatype);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_aligned_and_apart() {
        let mut slots = Slots::default();
        let lengths = [0, 8, 100, 64, 4];
        slots.arrange(lengths.into_iter(), Kind::Plain);
        for (peer, length) in lengths.into_iter().enumerate() {
            slots.bytes_mut(peer).fill(peer as u8);
            assert_eq!(slots.bytes(peer).len(), length);
            assert_eq!(slots.words(peer).len(), length / 8);
            assert!(slots.bytes(peer).as_ptr().addr().is_multiple_of(ALIGN / 8));
        }
        for peer in 0..lengths.len() {
            assert!(slots.bytes(peer).iter().all(|&byte| byte == peer as u8));
        }
        let lengths_in_words: Vec<_> = slots
            .all_words_mut()
            .iter()
            .map(|slot| slot.len())
            .collect();
        assert_eq!(lengths_in_words, [0, 1, 12, 8, 0]);
    }
}
