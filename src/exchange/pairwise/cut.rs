//! Long messages are cut into segments, each coded and sent by itself, so that some travel while others are
//! being coded.
//!
//! Both ends know how many segments a message has; the sender alone where it is cut, since it alone knows the
//! axes: along the slowest one, at whole ZFP blocks.

use crate::exchange::form::Coded;
use crate::exchange::message::Message;
use crate::layout::{Axes, Kind};
use std::ops::Range;

/// Bytes of the values of a segment, about: long enough to outweigh its header and the latency of a message,
/// short enough to be coded while another travels.
const SEGMENT_BYTES: usize = 1 << 19;
/// The same, at most. A message whose slowest axis allows no such cut is cut along a faster one.
pub const MOST_SEGMENT_BYTES: usize = 16 << 20;
/// Bytes of a message whose bits are fitted and that is not cut, at most: longer ones would leave the link idle.
const WHOLE_BYTES: usize = 4 << 20;
/// Values along one side of a ZFP block.
const BLOCK: usize = 4;

/// Segments of a message; some of them may be empty.
pub fn segments(coded: &Coded) -> usize {
    coded.raw_bytes().div_ceil(SEGMENT_BYTES).max(1)
}

/// A part of a message that is coded by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    pub values: Range<usize>,
    /// Empty where the message is flat.
    pub axes: Axes,
}

/// The segments of a message, as many as [`segments`] says.
pub fn cut(message: &Message) -> Vec<Segment> {
    let Message { coded, axes, .. } = message;
    let (count, pieces) = (coded.count, segments(coded));
    if pieces == 1 {
        let (values, axes) = (0..count, axes.clone());
        return vec![Segment { values, axes }];
    }
    let step = step(coded, axes);
    let bound = |piece: usize| match piece {
        _ if piece == pieces => count,
        _ => ((count * piece / pieces + step.values / 2) / step.values * step.values).min(count),
    };
    (0..pieces)
        .map(|piece| {
            let values = bound(piece)..bound(piece + 1);
            let axes = step.axes_of(values.len());
            Segment { values, axes }
        })
        .collect()
}

/// The same for a message whose bits are fitted, which share one error bound: all of it is the first segment, unless
/// it is too long for one.
pub fn keep_whole(message: &Message) -> Vec<Segment> {
    let coded = &message.coded;
    if coded.raw_bytes() > WHOLE_BYTES {
        return cut(message);
    }
    let whole = Segment {
        values: 0..coded.count,
        axes: message.axes.clone(),
    };
    let empty = Segment {
        values: coded.count..coded.count,
        axes: Axes::new(),
    };
    let rest = std::iter::repeat_n(empty, segments(coded) - 1);
    std::iter::once(whole).chain(rest).collect()
}

/// Where a message may be cut.
struct Step {
    /// At multiples of so many values.
    values: usize,
    /// The axes within a slab, and the kind of the axis that slabs lie along; none for a flat message.
    slab: Option<(Axes, Kind)>,
}

/// The coarsest one that keeps segments short enough.
fn step(coded: &Coded, axes: &Axes) -> Step {
    let most_values = MOST_SEGMENT_BYTES / 2 / coded.item.bytes();
    let slowest = axes.len().saturating_sub(1);
    let candidates = (0..axes.len()).rev().map(|axis| {
        let slab: usize = axes[..axis]
            .iter()
            .map(|&(_, extent)| extent as usize)
            .product();
        // Slabs that reach over the end of an axis are neighbours all the same, but for one in many.
        let kind = if axis == slowest {
            axes[axis].0
        } else {
            Kind::Smooth
        };
        let blocks = if kind == Kind::Component { 1 } else { BLOCK };
        Step {
            values: slab * blocks,
            slab: Some((axes[..axis].to_vec(), kind)),
        }
    });
    candidates
        .into_iter()
        .find(|step| step.values <= most_values)
        .unwrap_or(Step {
            values: BLOCK.pow(6),
            slab: None,
        })
}

impl Step {
    fn axes_of(&self, values: usize) -> Axes {
        let Some((slab, kind)) = &self.slab else {
            return Axes::new();
        };
        let in_slab: usize = slab.iter().map(|&(_, extent)| extent as usize).product();
        let mut axes = slab.clone();
        axes.push((*kind, (values / in_slab) as u32));
        axes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::{Element, Item};
    use crate::layout::Layout;

    fn message(layout: &str, count: usize) -> Message {
        let coded = Coded {
            item: Item::Float(Element::F32),
            complex: false,
            count,
        };
        let axes = match layout {
            "" => Axes::new(),
            _ => Layout::parse(layout).unwrap().resolve(count).unwrap(),
        };
        let peer = 1;
        Message { peer, coded, axes }
    }

    #[test]
    fn segments_make_up_the_message_and_fit_their_axes() {
        for (layout, count) in [
            ("", 1),
            ("", 1 << 18),
            ("", (1 << 18) + 1),
            ("", 12_345_677),
            ("64,128,*", 64 * 128 * 512),
            ("2c,100f,*", 2 * 100 * 40_000),
            ("640,320,*", 640 * 320 * 34),
            ("1024,2048,*", 1024 * 2048 * 9),
            ("*,4,2c", 8 * 1_000_000),
            ("*,3", 3 * 1_000_003),
            ("4096,*f", 4096 * 1001),
        ] {
            let message = message(layout, count);
            let pieces = cut(&message);
            assert_eq!(pieces.len(), segments(&message.coded), "{layout}");
            let mut end = 0;
            for Segment { values, axes } in pieces {
                assert_eq!(values.start, end, "{layout}");
                end = values.end;
                let made_up: usize = axes.iter().map(|&(_, extent)| extent as usize).product();
                assert!(
                    axes.is_empty() || made_up == values.len(),
                    "{layout} {axes:?}"
                );
                assert!(
                    4 * values.len() <= MOST_SEGMENT_BYTES,
                    "{layout} {values:?}"
                );
            }
            assert_eq!(end, count, "{layout}");
        }
    }

    #[test]
    fn a_whole_message_has_as_many_segments() {
        let message = message("64,128,*", 64 * 128 * 72);
        let pieces = keep_whole(&message);
        assert_eq!(pieces.len(), segments(&message.coded));
        assert_eq!(pieces[0].values, 0..message.coded.count);
        assert!(pieces[1..].iter().all(|piece| piece.values.is_empty()));
    }

    #[test]
    fn a_box_is_cut_between_blocks_of_its_slowest_axis() {
        let pieces = cut(&message("64,128,*", 64 * 128 * 72));
        let depths: Vec<_> = pieces.iter().map(|piece| piece.axes[2].1).collect();
        assert_eq!(depths, [16, 12, 16, 12, 16]);
        assert!(
            pieces
                .iter()
                .all(|piece| piece.axes[..2] == [(Kind::Smooth, 64), (Kind::Smooth, 128)])
        );
    }
}
