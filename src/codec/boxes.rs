//! Axes → the boxes that ZFP codes, and the bits that each block gets.

use super::zfp::{DecodeJob, EncodeJob, Grid, Mode, Segments, Value, stream_words};
use crate::codec::Element;
use crate::layout::{Axes, Kind};

/// Most bits that libzfp gives a block.
const MAX_BLOCK_BITS: u32 = 16_658;

/// The boxes of one message, each with its own stream, one after the other in the payload.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Boxes {
    /// Offset of the first value, and the grid, of each box.
    grids: Vec<(usize, Grid)>,
    block_bits: u32,
}

/// How the streams of a message are coded, their lengths in words, and their parts, of those where they are known.
#[derive(Clone, Debug, PartialEq)]
pub struct Streams {
    pub mode: Mode,
    pub words: Vec<usize>,
    pub segments: Vec<Option<Segments>>,
}

impl Boxes {
    /// As many words as a message may want.
    pub const UNLIMITED: usize = usize::MAX / 64;

    /// `None` where the axes do not make up the count, or a block would get fewer bits than its header.
    pub fn new(element: Element, count: usize, axes: &Axes, words: usize) -> Option<Self> {
        let header_bits = match element {
            Element::F32 => f32::HEADER_BITS,
            Element::F64 => f64::HEADER_BITS,
        };
        let candidates = if axes.is_empty() {
            vec![flat(count), folded(count)]
        } else {
            vec![split(count, axes)?]
        };
        candidates.into_iter().find_map(|grids| {
            let block_bits = block_bits(&grids, words);
            (block_bits >= header_bits).then_some(Self { grids, block_bits })
        })
    }

    /// ZFP blocks of the message.
    pub fn blocks(&self) -> usize {
        self.grids.iter().map(|(_, grid)| grid.blocks()).sum()
    }

    /// Offset of the first value, and the grid, of each box.
    pub fn grids(&self) -> &[(usize, Grid)] {
        &self.grids
    }

    /// Axes of the boxes, most where they differ.
    pub fn dims(&self) -> u8 {
        self.grids
            .iter()
            .map(|(_, grid)| grid.dims)
            .max()
            .unwrap_or(1)
    }

    pub fn len(&self) -> usize {
        self.grids.len()
    }

    /// Streams in which every block has as many bits.
    pub fn even(&self) -> Streams {
        let words = self
            .grids
            .iter()
            .map(|(_, grid)| stream_words(grid, self.block_bits))
            .collect();
        Streams {
            mode: Mode::Rate {
                block_bits: self.block_bits,
            },
            words,
            segments: vec![None; self.len()],
        }
    }

    /// The job of one box, its stream yet to be given.
    ///
    /// # Safety
    /// `source` must point to the values of a whole message, and `index` be that of a box.
    pub unsafe fn encode_job<T: Value>(
        &self,
        index: usize,
        source: *const T,
        mode: Mode,
    ) -> EncodeJob<T> {
        let (offset, grid) = self.grids[index];
        // SAFETY: `offset` is the index of a value of the message.
        let source = unsafe { source.add(offset) };
        EncodeJob {
            source,
            grid,
            stream: std::ptr::null_mut(),
            words: 0,
            mode,
        }
    }

    /// The jobs that fill these streams; none where `room` is too short for them.
    ///
    /// # Safety
    /// `source` must point to the values of a whole message.
    pub unsafe fn encode_jobs<T: Value>(
        &self,
        source: *const T,
        streams: &Streams,
        room: &mut [u64],
    ) -> Vec<EncodeJob<T>> {
        let mut rest = room;
        let places = self
            .grids
            .iter()
            .zip(&streams.words)
            .map(|(&(offset, grid), &words)| {
                let (stream, after) = std::mem::take(&mut rest).split_at_mut_checked(words)?;
                rest = after;
                Some(EncodeJob {
                    // SAFETY: `offset` is the index of a value of the message.
                    source: unsafe { source.add(offset) },
                    grid,
                    stream: stream.as_mut_ptr(),
                    words,
                    mode: streams.mode,
                })
            });
        places.collect::<Option<_>>().unwrap_or_default()
    }

    /// The jobs that read these streams; none where there are fewer words.
    ///
    /// # Safety
    /// `target` must point to room for the values of a whole message.
    pub unsafe fn decode_jobs<T: Value>(
        &self,
        target: *mut T,
        streams: &Streams,
        words: &[u64],
    ) -> Vec<DecodeJob<T>> {
        let mut rest = words;
        let places = self
            .grids
            .iter()
            .zip(&streams.words)
            .zip(&streams.segments)
            .map(|((&(offset, grid), &words), &segments)| {
                let (stream, after) = rest.split_at_checked(words)?;
                rest = after;
                Some(DecodeJob {
                    // SAFETY: `offset` is the index of a value of the message.
                    target: unsafe { target.add(offset) },
                    grid,
                    stream: stream.as_ptr(),
                    words,
                    mode: streams.mode,
                    segments,
                })
            });
        places.collect::<Option<_>>().unwrap_or_default()
    }
}

/// The most bits a block can get when all boxes together have `words` words.
fn block_bits(grids: &[(usize, Grid)], words: usize) -> u32 {
    let blocks: usize = grids.iter().map(|(_, grid)| grid.blocks()).sum();
    let fits = |bits: u32| {
        grids
            .iter()
            .map(|(_, grid)| stream_words(grid, bits))
            .sum::<usize>()
            <= words
    };
    let upper = (words * 64 / blocks.max(1)).min(MAX_BLOCK_BITS as usize) as u32;
    // Each stream is rounded up to whole words, so the answer is a little below the even share.
    (0..=upper).rev().find(|&bits| fits(bits)).unwrap_or(0)
}

fn line(count: usize) -> Grid {
    Grid {
        dims: 1,
        extents: [count, 1, 1],
        strides: [1, 0, 0],
    }
}

/// A message whose axes nobody knows: one line.
fn flat(count: usize) -> Vec<(usize, Grid)> {
    vec![(0, line(count))]
}

/// A line at rates too low for blocks of four values: 64 neighbours to a block, and the rest as a line.
fn folded(count: usize) -> Vec<(usize, Grid)> {
    let rows = count / 16;
    let mut grids = Vec::new();
    if rows > 0 {
        grids.push((
            0,
            Grid {
                dims: 3,
                extents: [4, 4, rows],
                strides: [1, 4, 16],
            },
        ));
    }
    if !count.is_multiple_of(16) {
        grids.push((rows * 16, line(count % 16)));
    }
    grids
}

/// One box per combination of components; the other axes are coded along. Axes of extent 1 are left out.
fn split(count: usize, axes: &Axes) -> Option<Vec<(usize, Grid)>> {
    let mut offsets = vec![0];
    let mut grid = Grid {
        dims: 0,
        extents: [1; 3],
        strides: [0; 3],
    };
    let mut stride = 1usize;
    for &(kind, extent) in axes {
        let extent = extent as usize;
        let next = stride
            .checked_mul(extent)
            .filter(|&next| next > 0 && next <= count)?;
        if kind == Kind::Component {
            offsets = (0..extent)
                .flat_map(|part| offsets.iter().map(move |offset| offset + part * stride))
                .collect();
        } else if extent > 1 {
            let axis = usize::from(grid.dims);
            *grid.extents.get_mut(axis)? = extent;
            grid.strides[axis] = isize::try_from(stride).ok()?;
            grid.dims += 1;
        }
        stride = next;
    }
    if grid.dims == 0 {
        grid = Grid {
            dims: 1,
            extents: [1; 3],
            strides: [1, 0, 0],
        };
    }
    (stride == count).then(|| offsets.into_iter().map(|offset| (offset, grid)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Layout;

    fn boxes(text: &str, count: usize, words: usize) -> Option<Boxes> {
        let axes = Layout::parse(text).unwrap().resolve(count)?;
        Boxes::new(Element::F32, count, &axes, words)
    }

    #[test]
    fn components_become_boxes_of_their_own() {
        let boxes = boxes("2c,5,*", 2 * 5 * 8, 64).unwrap();
        let grid = Grid {
            dims: 2,
            extents: [5, 8, 1],
            strides: [2, 10, 0],
        };
        assert_eq!(boxes.grids, [(0, grid), (1, grid)]);
    }

    #[test]
    fn components_may_be_the_slow_axis() {
        let boxes = boxes("8,5,3c", 8 * 5 * 3, 64).unwrap();
        let grid = Grid {
            dims: 2,
            extents: [8, 5, 1],
            strides: [1, 8, 0],
        };
        assert_eq!(boxes.grids, [(0, grid), (40, grid), (80, grid)]);
    }

    #[test]
    fn streams_fit_the_words_and_one_more_bit_would_not() {
        for (text, count) in [
            ("*", 1000),
            ("2c,7,*", 2 * 7 * 11),
            ("5,6,*", 5 * 6 * 7),
            ("10f,*", 90),
        ] {
            for words in [40, 77, 200] {
                let Some(boxes) = boxes(text, count, words) else {
                    continue;
                };
                let total = |bits| {
                    boxes
                        .grids
                        .iter()
                        .map(|(_, grid)| stream_words(grid, bits))
                        .sum::<usize>()
                };
                assert!(total(boxes.block_bits) <= words && total(boxes.block_bits + 1) > words);
            }
        }
    }

    #[test]
    fn a_flat_message_folds_where_the_rate_is_low() {
        let high = Boxes::new(Element::F32, 1003, &vec![], 1003 * 8 / 64).unwrap();
        assert_eq!(high.grids.len(), 1);
        let low = Boxes::new(Element::F32, 1003, &vec![], 1003 / 64 + 2).unwrap();
        assert_eq!(low.grids[0].1.extents, [4, 4, 62]);
        assert_eq!(low.grids[1].1.extents, [11, 1, 1]);
    }

    #[test]
    fn axes_that_leave_blocks_too_few_bits_are_refused() {
        assert!(boxes("5,5,5", 125, 1).is_none());
        assert!(boxes("5,5,5", 125, 2).is_some());
    }

    #[test]
    fn axes_that_do_not_make_up_the_count_are_refused() {
        assert!(Boxes::new(Element::F32, 10, &vec![(Kind::Smooth, 4)], 64).is_none());
        let huge = vec![(Kind::Smooth, u32::MAX); 3];
        assert!(Boxes::new(Element::F32, 10, &huge, 64).is_none());
        assert!(Boxes::new(Element::F32, 0, &vec![(Kind::Smooth, 0)], 64).is_none());
    }
}
