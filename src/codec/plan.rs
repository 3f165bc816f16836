//! Everything that the two ends of a message must do alike, from facts that both have.

use super::boxes::Boxes;
use super::scale::Fields;
use super::{Coding, Element};
use crate::layout::{Axes, Kind};

/// How the values of one message fill its payload, the mask aside.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    pub coding: Coding,
    /// The field axis, where there is one.
    pub fields: Option<Fields>,
    pub boxes: Boxes,
    /// Distance of neighbours and extent of each smooth axis.
    pub smooth: Vec<(usize, usize)>,
}

impl Plan {
    /// The plan for `count` values along `axes` (none: flat) in `words` 64-bit words. `None` where the axes
    /// do not make up the count, or leave a ZFP block too few bits to mean anything.
    pub fn new(
        coding: Coding,
        element: Element,
        count: usize,
        axes: &Axes,
        words: usize,
    ) -> Option<Self> {
        if matches!(coding, Coding::Fp16 | Coding::Bf16) {
            return Some(Self {
                coding,
                fields: None,
                boxes: Boxes::default(),
                smooth: Vec::new(),
            });
        }
        let fields = Fields::of(axes);
        let stream_words = words.checked_sub(fields.as_ref().map_or(0, Fields::words))?;
        let boxes = Boxes::new(element, count, axes, stream_words)?;
        Some(Self {
            coding,
            fields,
            boxes,
            smooth: smooth(axes, count),
        })
    }

    /// Words that the scales take, before the streams.
    pub fn scale_words(&self) -> usize {
        self.fields.as_ref().map_or(0, Fields::words)
    }
}

/// The smooth axes, the fastest first; a flat message is one of them.
pub fn smooth(axes: &Axes, count: usize) -> Vec<(usize, usize)> {
    if axes.is_empty() {
        return vec![(1, count)];
    }
    let strides = axes.iter().scan(1, |stride, &(kind, extent)| {
        let axis = (kind, *stride, extent as usize);
        *stride *= extent as usize;
        Some(axis)
    });
    strides
        .filter(|(kind, ..)| *kind == Kind::Smooth)
        .map(|(_, stride, extent)| (stride, extent))
        .collect()
}
