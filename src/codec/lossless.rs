//! Values exactly: libzfp's reversible mode, along the axes of the message, by the `zfp-rs` crate.
//!
//! The length of each box's stream in words leads the streams.

use super::boxes::Boxes;
use super::float::Float;
use super::zfp::Grid;
use zfp_rs::bitstream::{ZfpBitStreamRef, ZfpBitStreamRefMut};
use zfp_rs::{ZfpConfig, ZfpField, ZfpFieldMut};

/// Codes the values. Returns the words it takes; `None` where there are not as many.
pub fn encode<T: Float>(boxes: &Boxes, values: &[T], room: &mut [u64]) -> Option<usize> {
    let words = room.len();
    let (head, mut rest) = room.split_at_mut_checked(boxes.len())?;
    for ((offset, grid), length) in boxes.grids().iter().zip(head) {
        let (extents, strides) = shape(grid);
        let field = ZfpField::new_strided(values.get(*offset..)?, extents, strides).ok()?;
        let mut stream = ZfpBitStreamRefMut::from_words(rest);
        let bytes = stream.compress(&ZfpConfig::reversible(), &field).ok()?;
        if stream.overflowed() {
            return None;
        }
        let used = bytes.div_ceil(8);
        *length = used as u64;
        rest = std::mem::take(&mut rest).get_mut(used..)?;
    }
    Some(words - rest.len())
}

/// The values that [`encode`] was given; `false` where the words cannot be what it made.
pub fn decode<T: Float>(boxes: &Boxes, words: &[u64], target: &mut [T]) -> bool {
    read(boxes, words, target).is_some()
}

fn read<T: Float>(boxes: &Boxes, words: &[u64], target: &mut [T]) -> Option<()> {
    let (head, mut rest) = words.split_at_checked(boxes.len())?;
    for ((offset, grid), &length) in boxes.grids().iter().zip(head) {
        let (stream, after) = rest.split_at_checked(usize::try_from(length).ok()?)?;
        rest = after;
        let (extents, strides) = shape(grid);
        let target = target.get_mut(*offset..)?;
        let mut field = ZfpFieldMut::new_strided(target, extents, strides).ok()?;
        let mut stream = ZfpBitStreamRef::from_words(stream);
        stream
            .decompress(&ZfpConfig::reversible(), &mut field)
            .ok()?;
    }
    Some(())
}

/// Extents and strides as the crate counts them: axes that are not there have extent 0.
fn shape(grid: &Grid) -> ([usize; 4], [isize; 4]) {
    let axes = 0..usize::from(grid.dims);
    let (mut extents, mut strides) = ([0; 4], [0; 4]);
    extents[axes.clone()].copy_from_slice(&grid.extents[axes.clone()]);
    strides[axes.clone()].copy_from_slice(&grid.strides[axes]);
    (extents, strides)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::Element;
    use crate::layout::Layout;

    fn returns<T: Float + std::fmt::Debug>(layout: &str, values: &[T]) -> usize {
        let axes = Layout::parse(layout)
            .unwrap()
            .resolve(values.len())
            .unwrap();
        let boxes = Boxes::new(T::ELEMENT, values.len(), &axes, Boxes::UNLIMITED).unwrap();
        let mut room = vec![0; 2 * values.len() + 64];
        let words = encode(&boxes, values, &mut room).unwrap();
        let mut back = vec![T::default(); values.len()];
        assert!(decode(&boxes, &room[..words], &mut back));
        let same = |(one, other): (&T, &T)| one.bits() == other.bits();
        assert!(values.iter().zip(&back).all(same), "{layout}");
        assert!(!decode(&boxes, &room[..boxes.len() - 1], &mut back));
        room[0] = u64::MAX;
        assert!(!decode(&boxes, &room[..words], &mut back));
        words
    }

    #[test]
    fn every_bit_comes_back() {
        let smooth: Vec<f64> = (0..6000)
            .map(|i| 300.0 + (f64::from(i) * 0.01).sin())
            .collect();
        let singles: Vec<f32> = smooth.iter().map(|&value| value as f32).collect();
        for layout in ["*", "20,*", "2c,10,*", "20,30,*", "2,*", "1,*"] {
            assert!(returns(layout, &singles) < singles.len() / 2, "{layout}");
            returns(layout, &smooth);
        }
        let odd = [
            f32::NAN,
            -f32::NAN,
            -0.0,
            f32::INFINITY,
            1e-45,
            f32::MAX,
            0.1,
            -1e20,
        ];
        let nan_with_payload = f32::from_bits(0x7fa0_1234);
        let odd: Vec<f32> = odd.into_iter().chain([nan_with_payload; 9]).collect();
        returns("*", &odd);
        let wide: Vec<f64> = odd.iter().map(|&value| f64::from(value)).collect();
        returns("*", &wide);
        returns(
            "*",
            &[
                5e-324,
                f64::MAX,
                -0.0,
                f64::from_bits(0x7ff4_0000_dead_beef),
            ],
        );
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let noise: Vec<f32> = (0..999u32)
            .map(|i| f32::from_bits(i.wrapping_mul(0x9e37_79b9)))
            .collect();
        let boxes = Boxes::new(Element::F32, 999, &vec![], Boxes::UNLIMITED).unwrap();
        assert_eq!(encode(&boxes, &noise, &mut [0; 100]), None);
    }
}
