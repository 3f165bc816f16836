//! How far values are from what was sent, by several measures at once.

use std::collections::BTreeMap;

use super::message::Message;
use super::result::{Blocks, Decade, Errors, WorstBlock};
use crate::codec::Float;

/// Extent of a block along each axis.
const BLOCK: usize = 4;
/// The lowest decade of the histogram; smaller errors count there.
const LOWEST: i32 = -17;

/// Sums over the messages that were added. Fill values count only towards their own share.
#[derive(Default)]
pub struct Tally {
    relative: f64,
    /// Values other than zero.
    nonzero: u64,
    largest_error: f64,
    sums: Sums,
    worst: Option<WorstBlock>,
    blocks: Blocks,
    decades: BTreeMap<i32, u64>,
    fills: u64,
    fills_exact: u64,
}

/// Squares of differences and values.
#[derive(Clone, Copy, Default)]
struct Sums {
    values: u64,
    difference: f64,
    norm: f64,
}

impl Sums {
    /// `None` where zeros became something else.
    fn relative(self) -> Option<f64> {
        match (self.difference == 0.0, self.norm == 0.0) {
            (true, _) => Some(0.0),
            (false, true) => None,
            (false, false) => Some((self.difference / self.norm).sqrt()),
        }
    }
}

impl Tally {
    pub fn add<T: Float>(&mut self, message: &Message<T>, back: &[T]) {
        let corners = |axis: usize| (0..message.extents[axis]).step_by(BLOCK);
        for z in corners(2) {
            for y in corners(1) {
                for x in corners(0) {
                    self.add_block(message, back, [x, y, z]);
                }
            }
        }
    }

    fn add_block<T: Float>(&mut self, message: &Message<T>, back: &[T], corner: [usize; 3]) {
        let mut block = Sums::default();
        let reach = |axis: usize| {
            let first = corner[axis];
            first..message.extents[axis].min(first + BLOCK)
        };
        for z in reach(2) {
            for y in reach(1) {
                for x in reach(0) {
                    let at = (z * message.extents[1] + y) * message.extents[0] + x;
                    let (value, back) = (message.values[at], back[at]);
                    if message.fills[at] {
                        self.fills += 1;
                        self.fills_exact += u64::from(value.bits() == back.bits());
                    } else {
                        self.add_value(value.into(), back.into(), &mut block);
                    }
                }
            }
        }
        if block.values > 0 {
            self.close_block(
                block,
                [0, 1, 2].map(|axis| message.start[axis] + corner[axis]),
            );
        }
    }

    fn add_value(&mut self, value: f64, back: f64, block: &mut Sums) {
        let error = (value - back).abs();
        block.values += 1;
        block.difference += error * error;
        block.norm += value * value;
        self.largest_error = self.largest_error.max(error);
        if value != 0.0 {
            self.relative += error / value.abs();
            self.nonzero += 1;
        }
    }

    fn close_block(&mut self, block: Sums, at: [usize; 3]) {
        self.sums.values += block.values;
        self.sums.difference += block.difference;
        self.sums.norm += block.norm;
        self.blocks.count += 1;
        match block.relative() {
            None => self.blocks.zeros_changed += 1,
            Some(0.0) => self.blocks.exact += 1,
            Some(error) => {
                let decade = (error.log10().floor() as i32).max(LOWEST);
                *self.decades.entry(decade).or_default() += 1;
                if self.worst.is_none_or(|worst| worst.relative_l2 < error) {
                    self.worst = Some(WorstBlock {
                        relative_l2: error,
                        at,
                    });
                }
            }
        }
    }

    /// The errors, given the range of the whole field. `None` where no message was added.
    pub fn finish(self, range: Option<f64>) -> Option<Errors> {
        if self.sums.values == 0 && self.fills == 0 {
            return None;
        }
        let decades = self.decades.into_iter();
        Some(Errors {
            mean_relative: (self.nonzero > 0).then(|| self.relative / self.nonzero as f64),
            max_absolute: self.largest_error,
            relative_l2: self.sums.relative().unwrap_or(f64::INFINITY),
            max_over_range: range
                .filter(|&range| range > 0.0)
                .map(|range| self.largest_error / range),
            worst_block: self.worst,
            blocks: Blocks {
                decades: decades
                    .map(|(exponent, blocks)| Decade { exponent, blocks })
                    .collect(),
                ..self.blocks
            },
            fill_values_exact: (self.fills > 0)
                .then(|| self.fills_exact as f64 / self.fills as f64),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::study::message::whole;

    #[test]
    fn the_measures_are_their_formulas() {
        let values: Vec<f32> = vec![2.0, 0.0, -4.0, 1e20, 4.0, 0.0, 0.0, 0.0, 0.0];
        let back = [2.5, 0.0, -4.0, 1e20, 3.0, 0.0, 0.0, 0.0, 1.0];
        let fills: Vec<bool> = values.iter().map(|&value| value == 1e20).collect();
        let mut tally = Tally::default();
        tally.add(&whole([9, 1, 1], &values, &fills)[0], &back);
        let errors = tally.finish(Some(8.0)).unwrap();
        assert_eq!(errors.mean_relative, Some((0.25 + 0.0 + 0.25) / 3.0));
        assert_eq!(errors.max_absolute, 1.0);
        assert_eq!(errors.max_over_range, Some(0.125));
        assert_eq!(errors.relative_l2, (2.25f64 / 36.0).sqrt());
        let worst = errors.worst_block.unwrap();
        assert_eq!((worst.relative_l2, worst.at), (0.25, [4, 0, 0]));
        assert_eq!((errors.blocks.count, errors.blocks.zeros_changed), (3, 1));
        let in_tenths = Decade {
            exponent: -1,
            blocks: 2,
        };
        assert_eq!(errors.blocks.decades, [in_tenths]);
        assert_eq!(errors.fill_values_exact, Some(1.0));
    }
}
