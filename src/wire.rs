//! The compressed message: its size, which the element count alone decides, and its header.
//!
//! docs/wire-format.md is the description for readers; this file and that page change together.

use crate::codec::{Coding, Element, Item};
use crate::layout::{Kind, MAX_AXES};
use std::ops::RangeInclusive;

/// Bytes of the header, a multiple of 8 so that the payload is aligned.
pub const HEADER_BYTES: usize = 48;
const MAGIC: u32 = u32::from_le_bytes(*b"TPRS");
pub const VERSION: u8 = 2;

/// Bytes on the wire of a compressed message of `count` values at `rate` bits each. Both ends know both
/// numbers, so no size has to be exchanged.
pub fn wire_bytes(count: usize, rate: f64) -> usize {
    (HEADER_BYTES + (count as f64 * rate / 8.0).ceil() as usize).next_multiple_of(8)
}

/// Bytes of a message whose values are in it as they are: more than any compressed one has.
pub fn raw_wire_bytes(count: usize, item: Item) -> usize {
    (HEADER_BYTES + count * item.bytes()).next_multiple_of(8)
}

/// Floats by their bytes; other items by theirs and the highest bit.
fn item_code(item: Item) -> u8 {
    match item {
        Item::Float(Element::F32) => 4,
        Item::Float(Element::F64) => 8,
        Item::Word(bytes) => 0x80 | bytes,
    }
}

/// What only the sender knows, and what lets the receiver check the rest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    pub coding: Coding,
    pub item: Item,
    /// The values are not coded: they come as they are, in this message or point to point.
    pub escaped: bool,
    /// The payload begins with a mask of fill values.
    pub masked: bool,
    /// Blocks have an error bound in common, not a number of bits.
    pub fitted: bool,
    /// Values in the message.
    pub count: usize,
    /// Bytes of the whole message, this header included.
    pub wire_bytes: usize,
    /// Axes, fastest first; none for a flat message.
    pub axes: Vec<(Kind, u32)>,
}

/// Why a message cannot be decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Not our header, or damaged.
    Header,
    /// From another version of transpress.
    Version(u8),
    /// The sender's count or size is not what this rank expects: counts, datatypes or settings differ.
    Mismatch {
        what: &'static str,
        sent: usize,
        expected: usize,
    },
    /// Too many axes, or of no known kind.
    Axes,
    /// Axes that do not make up the count, or a mask that is none.
    Payload,
    /// The values could not be written to the GPU.
    Gpu(String),
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Header => write!(
                f,
                "the message has no valid header (did the sender's datatype match?)"
            ),
            Self::Version(version) => {
                write!(
                    f,
                    "the sender runs wire format {version}, this rank {VERSION}"
                )
            }
            Self::Mismatch {
                what,
                sent,
                expected,
            } => {
                write!(
                    f,
                    "the sender's {what} is {sent}, this rank expects {expected}"
                )
            }
            Self::Axes => write!(f, "the sender's layout cannot be read"),
            Self::Gpu(error) => write!(f, "its values could not be written to the GPU: {error}"),
            Self::Payload => write!(f, "the payload cannot be what its header says"),
        }
    }
}

impl Header {
    /// As words of little-endian bytes.
    pub fn to_words(&self) -> [u64; HEADER_BYTES / 8] {
        let bytes = self.to_bytes();
        let mut words = [0; HEADER_BYTES / 8];
        for (word, bytes) in words.iter_mut().zip(bytes.as_chunks().0) {
            *word = u64::from_ne_bytes(*bytes);
        }
        words
    }

    pub fn to_bytes(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[0..4].copy_from_slice(&MAGIC.to_le_bytes());
        bytes[4] = VERSION;
        bytes[5] = self.coding as u8;
        bytes[6] = item_code(self.item);
        bytes[7] = u8::from(self.escaped) | u8::from(self.masked) << 1 | u8::from(self.fitted) << 2;
        bytes[8..16].copy_from_slice(&(self.count as u64).to_le_bytes());
        bytes[16..20].copy_from_slice(&((self.wire_bytes / 8) as u32).to_le_bytes());
        bytes[20] = self.axes.len().min(MAX_AXES) as u8;
        let mut kinds = 0u16;
        for (index, (kind, extent)) in self.axes.iter().take(MAX_AXES).enumerate() {
            kinds |= (*kind as u16) << (2 * index);
            let at = 24 + 4 * index;
            bytes[at..at + 4].copy_from_slice(&extent.to_le_bytes());
        }
        bytes[22..24].copy_from_slice(&kinds.to_le_bytes());
        let check = fnv1a(&bytes[..44]) as u32;
        bytes[44..].copy_from_slice(&check.to_le_bytes());
        bytes
    }

    /// Reads and checks a header against the facts this rank holds: how many values the message may have,
    /// and how many bytes it has.
    pub fn read(
        bytes: &[u8],
        coding: Coding,
        item: Item,
        counts: RangeInclusive<usize>,
        wire_bytes: usize,
    ) -> Result<Self, Fault> {
        let bytes: &[u8; HEADER_BYTES] = bytes
            .get(..HEADER_BYTES)
            .and_then(|head| head.try_into().ok())
            .ok_or(Fault::Header)?;
        let u32_at = |at: usize| {
            u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        if u32_at(0) != MAGIC || u32_at(44) != fnv1a(&bytes[..44]) as u32 {
            return Err(Fault::Header);
        }
        if bytes[4] != VERSION {
            return Err(Fault::Version(bytes[4]));
        }
        let expect = |what, sent: usize, expected: usize| {
            if sent == expected {
                Ok(())
            } else {
                Err(Fault::Mismatch {
                    what,
                    sent,
                    expected,
                })
            }
        };
        expect("codec", bytes[5].into(), coding as usize)?;
        expect("element", bytes[6].into(), item_code(item).into())?;
        let count = (u64::from(u32_at(8)) | u64::from(u32_at(12)) << 32) as usize;
        if !counts.contains(&count) {
            expect("count", count, *counts.end())?;
        }
        expect("message length", u32_at(16) as usize * 8, wire_bytes)?;

        let kinds = u16::from_le_bytes([bytes[22], bytes[23]]);
        let axes = (0..usize::from(bytes[20]))
            .map(
                |index| match kinds.checked_shr(2 * index as u32).unwrap_or(3) & 3 {
                    0 if index < MAX_AXES => Ok((Kind::Smooth, u32_at(24 + 4 * index))),
                    1 if index < MAX_AXES => Ok((Kind::Component, u32_at(24 + 4 * index))),
                    2 if index < MAX_AXES => Ok((Kind::Field, u32_at(24 + 4 * index))),
                    _ => Err(Fault::Axes),
                },
            )
            .collect::<Result<_, _>>()?;
        let [escaped, masked, fitted] = [1, 2, 4].map(|flag| bytes[7] & flag != 0);
        Ok(Self {
            coding,
            item,
            escaped,
            masked,
            fitted,
            count,
            wire_bytes,
            axes,
        })
    }
}

/// The 64-bit FNV-1a hash: the same on every rank, whatever built the library.
/// Source: Fowler, Noll, Vo; constants from <http://www.isthe.com/chongo/tech/comp/fnv/>.
pub fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> Header {
        Header {
            coding: Coding::Zfp,
            item: Item::Float(Element::F64),
            escaped: false,
            masked: true,
            fitted: true,
            count: 1 << 40,
            wire_bytes: 1 << 30,
            axes: vec![
                (Kind::Component, 2),
                (Kind::Field, 100),
                (Kind::Smooth, u32::MAX),
            ],
        }
    }

    fn read(bytes: &[u8], of: &Header) -> Result<Header, Fault> {
        let counts = of.count..=of.count;
        Header::read(bytes, of.coding, of.item, counts, of.wire_bytes)
    }

    #[test]
    fn a_header_comes_back() {
        for escaped in [false, true] {
            let sent = Header {
                escaped,
                ..header()
            };
            assert_eq!(read(&sent.to_bytes(), &sent), Ok(sent));
        }
    }

    #[test]
    fn every_damaged_bit_is_found() {
        let sent = header();
        for bit in 0..HEADER_BYTES * 8 {
            let mut bytes = sent.to_bytes();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(read(&bytes, &sent).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn silence_is_not_a_header() {
        assert_eq!(read(&[0; HEADER_BYTES], &header()), Err(Fault::Header));
        assert_eq!(read(&[], &header()), Err(Fault::Header));
    }

    #[test]
    fn differing_expectations_are_named() {
        let sent = header();
        let bytes = sent.to_bytes();
        let mismatch = |what, sent, expected| {
            Err(Fault::Mismatch {
                what,
                sent,
                expected,
            })
        };
        assert_eq!(
            read(
                &bytes,
                &Header {
                    count: 7,
                    ..header()
                }
            ),
            mismatch("count", 1 << 40, 7)
        );
        assert_eq!(
            read(
                &bytes,
                &Header {
                    wire_bytes: 64,
                    ..header()
                }
            ),
            mismatch("message length", 1 << 30, 64)
        );
        assert_eq!(
            read(
                &bytes,
                &Header {
                    item: Item::Float(Element::F32),
                    ..header()
                }
            ),
            mismatch("element", 8, 4)
        );
    }

    #[test]
    fn the_size_depends_on_count_and_rate_alone() {
        assert_eq!(wire_bytes(0, 16.0), HEADER_BYTES);
        assert_eq!(wire_bytes(1, 16.0), HEADER_BYTES + 8);
        assert_eq!(wire_bytes(1000, 12.5), HEADER_BYTES + 1568);
        assert_eq!(wire_bytes(1 << 33, 8.0), HEADER_BYTES + (1 << 33));
    }
}
