//! One side of the program's call: where its blocks lie and what they hold.

mod blocks;

pub use blocks::copy_self;

use super::Result;
use super::buffer::Kind;
use super::home::Home;
use super::shadow::Shadow;
use crate::codec::{Item, Memory, Place};
use crate::mpi::{Half, Handle, Mpi};
use crate::registry::Registration;
use crate::signature::{self, Content, Datatype};
use std::cell::RefCell;
use std::ffi::c_int;
use std::ops::Range;

/// Most bytes that one call of MPI gets; its arguments are ints.
pub const PIECE_BYTES: usize = 1 << 30;

/// Something that MPI sends or receives at once.
pub struct Piece {
    pub start: *mut u8,
    pub items: c_int,
    pub datatype: Handle,
    pub bytes: usize,
}

impl Piece {
    /// Pieces of some bytes in a row, cut alike at both ends of a message.
    pub fn of_bytes(mpi: &Mpi, start: *mut u8, bytes: usize) -> impl Iterator<Item = Self> {
        let datatype = mpi.abi.byte;
        (0..bytes).step_by(PIECE_BYTES).map(move |at| {
            let bytes = PIECE_BYTES.min(bytes - at);
            Self {
                start: start.wrapping_add(at),
                items: bytes as c_int,
                datatype,
                bytes,
            }
        })
    }
}

/// Items and displacement of each rank's block, in items of the datatype.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Slices(Vec<(usize, isize)>);

impl Slices {
    /// Blocks of equal length, one after the other; `None` where the length is negative.
    pub fn equal(ranks: usize, items: i64) -> Option<Self> {
        Self::new((0..ranks).map(|rank| (items, rank as isize * items as isize)))
    }

    /// `None` where a count is negative.
    pub fn new(blocks: impl Iterator<Item = (i64, isize)>) -> Option<Self> {
        let block = |(items, at): (i64, isize)| Some((usize::try_from(items).ok()?, at));
        Some(Self(blocks.map(block).collect::<Option<_>>()?))
    }

    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|&(items, _)| items == 0)
    }
}

/// What may be compressed beside floats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holds {
    /// What messages of `MPI_BYTE` hold.
    pub bytes: Option<Item>,
    /// Integers may.
    pub integers: bool,
}

/// Values of one block that may be compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Values {
    pub item: Item,
    pub complex: bool,
    /// Reals; a complex number counts twice.
    pub count: usize,
}

/// The send or the receive side of a call. Where every block is empty the datatype is not looked at,
/// because MPI does not look at it either, and there is none.
pub struct Side {
    buffer: *mut u8,
    slices: Slices,
    datatype: Option<Datatype>,
    /// What the program passed, to pass it on.
    handle: Handle,
    home: Home,
    /// What stands for the blocks, where one is needed.
    shadow: RefCell<Option<Shadow>>,
}

impl Side {
    /// The error is MPI's for a datatype that it would refuse.
    pub fn new(
        mpi: &Mpi,
        registration: &Registration,
        buffer: *mut u8,
        slices: Slices,
        handle: Handle,
    ) -> Result<Self> {
        let datatype = if slices.is_empty() {
            None
        } else {
            let datatype = Datatype::of(mpi, mpi.abi.normalise(handle))?;
            if datatype.derived {
                mpi.check_usable(datatype.handle, registration.private)?;
            }
            Some(datatype)
        };
        let mut side = Self {
            buffer,
            slices,
            datatype,
            handle,
            home: Home::HOST,
            shadow: RefCell::default(),
        };
        if let Some(address) = side.some_address(mpi)? {
            side.home = Home::of(registration, address)?;
        }
        Ok(side)
    }

    /// The address of a byte of a block that is not empty.
    fn some_address(&self, mpi: &Mpi) -> Result<Option<*const u8>> {
        let peer = self.slices.0.iter().position(|&(items, _)| items > 0);
        let (Some(datatype), Some(peer)) = (self.datatype, peer) else {
            return Ok(None);
        };
        let start = self.start(peer, datatype).cast_const();
        // An item may begin far from where its first byte is: at 0 under MPI_BOTTOM.
        let first = match datatype.dense {
            true => 0,
            false => mpi.type_extent(datatype.handle)?.true_lower_bound,
        };
        Ok(Some(start.wrapping_offset(first)))
    }

    /// Where the blocks lie, and what codes them.
    pub fn place(&self) -> Place {
        self.home.place
    }

    /// What memory its messages are put together in.
    pub fn buffer_kind(&self) -> Kind {
        match self.home.place.coder {
            None => Kind::Plain,
            Some(device) if self.is_open_to_mpi() && !self.memory().is_host() => Kind::Gpu(device),
            Some(device) => Kind::Pinned(device),
        }
    }

    fn memory(&self) -> Memory {
        self.home.place.memory
    }

    /// Whether MPI can work on the blocks where they lie.
    pub fn is_open_to_mpi(&self) -> bool {
        self.home.is_open_to_mpi
    }

    pub fn ranks(&self) -> usize {
        self.slices.0.len()
    }

    /// Bytes of the block of `peer`.
    pub fn bytes(&self, peer: usize) -> usize {
        self.datatype
            .map_or(0, |datatype| self.slices.0[peer].0 * datatype.size)
    }

    /// Whether the datatype is one whose messages may be compressed. Both ends of a message that is not
    /// empty say the same, because this depends on the type signature alone.
    pub fn is_ours(&self, holds: Holds) -> bool {
        self.datatype
            .is_some_and(|datatype| match datatype.content {
                Content::Real(_) | Content::Complex(_) => true,
                Content::Bytes => holds.bytes.is_some(),
                Content::Integer(_) => holds.integers,
                Content::Other => false,
            })
    }

    /// Whether its messages are of integers or bytes that may be compressed.
    pub fn is_words(&self, holds: Holds) -> bool {
        let values = self.datatype.and_then(|_| self.values(0, holds));
        values.is_some_and(|values| matches!(values.item, Item::Word(_)))
    }

    /// The values of the block of `peer`; `None` where they may not be compressed.
    pub fn values(&self, peer: usize, holds: Holds) -> Option<Values> {
        let (item, complex) = match self.datatype?.content {
            Content::Real(element) => (Item::Float(element), false),
            Content::Complex(element) => (Item::Float(element), true),
            Content::Bytes => (holds.bytes?, false),
            Content::Integer(bytes) if holds.integers => (Item::Word(bytes), false),
            Content::Integer(_) => return None,
            Content::Other => return None,
        };
        let bytes = self.bytes(peer);
        (bytes.is_multiple_of(item.bytes())).then(|| Values {
            item,
            complex,
            count: bytes / item.bytes(),
        })
    }

    /// The extents of the datatype's own axes, fastest first; empty where it has none.
    pub fn datatype_extents(&self, mpi: &Mpi) -> Vec<usize> {
        self.datatype
            .filter(|datatype| !datatype.dense)
            .and_then(|datatype| signature::extents(mpi, datatype.handle).ok())
            .unwrap_or_default()
    }

    /// The block of `peer` in memory, where it is one piece, and aligned to `align` bytes.
    pub fn piece(&self, peer: usize, align: usize) -> Option<*mut u8> {
        let datatype = self.datatype.filter(|datatype| datatype.dense)?;
        let start = self.start(peer, datatype);
        start.addr().is_multiple_of(align).then_some(start)
    }

    /// The block of `peer` as MPI can send it or receive it where it lies; `None` where it has gaps and is too
    /// long for one piece, or MPI cannot go there. Empty where it is.
    pub fn pieces(&self, mpi: &Mpi, peer: usize) -> Option<Vec<Piece>> {
        let bytes = self.bytes(peer);
        let Some(datatype) = self.datatype.filter(|_| bytes > 0) else {
            return Some(Vec::new());
        };
        if !self.is_open_to_mpi() {
            return None;
        }
        let start = self.start(peer, datatype);
        if datatype.dense {
            return Some(Piece::of_bytes(mpi, start, bytes).collect());
        }
        // On a GPU, blocks between each other's gaps are written by way of a shadow, all of them.
        (bytes <= PIECE_BYTES && self.memory().is_host()).then(|| {
            vec![Piece {
                start,
                items: self.slices.0[peer].0 as c_int,
                datatype: datatype.handle,
                bytes,
            }]
        })
    }

    /// Whether some byte between the first and the last of one side is between those of the other.
    pub fn overlaps(&self, other: &Self, mpi: &Mpi) -> Result<bool> {
        let (one, other) = (self.reach(mpi)?, other.reach(mpi)?);
        Ok(one.start < other.end && other.start < one.end)
    }

    /// The addresses from the first byte of any block to the last.
    fn reach(&self, mpi: &Mpi) -> Result<Range<usize>> {
        let Some(datatype) = self.datatype else {
            return Ok(0..0);
        };
        let item = mpi.type_extent(datatype.handle)?;
        let blocks = self.slices.0.iter().filter(|(items, _)| *items > 0);
        let ends = blocks.flat_map(|&(items, at)| {
            let last = at + items as isize - 1;
            [at, last].map(|index| {
                let start = index * item.extent + item.true_lower_bound;
                (start, start + item.true_extent)
            })
        });
        let reach = ends.reduce(|one, other| (one.0.min(other.0), one.1.max(other.1)));
        let address = |offset: isize| self.buffer.addr().wrapping_add_signed(offset);
        Ok(reach.map_or(0..0, |(start, end)| address(start)..address(end)))
    }

    fn start(&self, peer: usize, datatype: Datatype) -> *mut u8 {
        self.buffer
            .wrapping_offset(self.slices.0[peer].1 * datatype.extent)
    }

    /// The side as the program passed it.
    pub fn as_passed(&self) -> Half {
        Half {
            buffer: self.buffer.cast(),
            datatype: self.handle,
            counts: self
                .slices
                .0
                .iter()
                .map(|&(items, _)| items as i64)
                .collect(),
            displacements: self.slices.0.iter().map(|&(_, at)| at).collect(),
        }
    }

    /// The side in bytes, the block of `skip` left out; `None` where it has gaps, or the numbers are too
    /// large for MPI's ints, or MPI cannot go there.
    pub fn as_bytes(&self, mpi: &Mpi, skip: usize) -> Option<Half> {
        let datatype = self
            .datatype
            .filter(|datatype| datatype.dense && self.is_open_to_mpi())?;
        let mut half = self.as_passed();
        half.datatype = mpi.abi.byte;
        for count in &mut half.counts {
            *count *= datatype.size as i64;
        }
        for at in &mut half.displacements {
            *at *= datatype.extent;
        }
        half.counts[skip] = 0;
        half.displacements[skip] = 0;
        half.fits_ints().then_some(half)
    }
}
