//! Random messages for the codec.

use crate::random::Random;
use transpress::codec::{Float, Guard};
use transpress::layout::{Axes, Kind};

pub struct Message<T> {
    pub values: Vec<T>,
    /// Empty for a flat message.
    pub axes: Axes,
    /// 64-bit words of the payload.
    pub words: usize,
}

impl<T: Float> Message<T> {
    pub fn new(random: &mut Random) -> Self {
        let axes = axes(random);
        let count = match axes.is_empty() {
            true => 1 + random.below(5000) as usize,
            false => axes.iter().map(|&(_, extent)| extent as usize).product(),
        };
        let mut value = values(random);
        let values = (0..count).map(|i| T::from_f64(value(i, place(&axes, i))));
        Self {
            values: values.collect(),
            words: words::<T>(count, random),
            axes,
        }
    }
}

/// Up to three axes that are coded along, of which one may be one of fields, and up to two of components.
fn axes(random: &mut Random) -> Axes {
    if random.below(6) == 0 {
        return Axes::new();
    }
    let dims = 1 + random.below(3) as usize;
    let largest = [3000, 60, 18][dims - 1];
    let mut axes: Axes = (0..dims)
        .map(|_| {
            let extent = match random.below(4) {
                0 => 1 + random.below(5),
                1 => 4 * (1 + random.below(largest / 4)),
                _ => 1 + random.below(largest),
            };
            (Kind::Smooth, extent as u32)
        })
        .collect();
    if random.below(3) == 0 {
        let fields = (Kind::Field, 1 + random.below(9) as u32);
        axes[random.below(dims as u64) as usize] = fields;
    }
    for _ in 0..random.below(3) {
        let components = (Kind::Component, 1 + random.below(3) as u32);
        axes.insert(random.below(axes.len() as u64 + 1) as usize, components);
    }
    axes
}

/// Words for a rate of any fraction of bits, from too few to more than the values have.
fn words<T>(count: usize, random: &mut Random) -> usize {
    let most = 8 * size_of::<T>() as u64;
    let bits = match random.below(4) {
        0 => [8.0, 16.0][random.below(2) as usize],
        1 => 0.3 + 3.0 * random.unit().abs(),
        _ => 2.0 + most as f64 * random.unit().abs(),
    };
    (count as f64 * bits / 64.0).ceil() as usize + random.below(3) as usize
}

/// Coordinates of a value, where the axes give it some.
fn place(axes: &Axes, index: usize) -> [usize; 5] {
    let (mut rest, mut place) = (index, [0; 5]);
    for (coordinate, &(_, extent)) in place.iter_mut().zip(axes) {
        *coordinate = rest % extent as usize;
        rest /= extent as usize;
    }
    place
}

/// What values a message has, by index and place.
fn values(random: &mut Random) -> impl FnMut(usize, [usize; 5]) -> f64 + use<> {
    let (look, mut noise) = (random.below(10), Random(random.next()));
    let scale = 10f64.powi(random.below(30) as i32 - 15);
    let waves = [0; 5].map(|_| 0.3 * random.unit());
    move |index, place| {
        let phase: f64 = waves
            .iter()
            .zip(place)
            .map(|(wave, at)| wave * at as f64)
            .sum();
        let smooth = scale * ((phase + 0.01 * index as f64).sin() + 1e-4 * noise.unit());
        match look {
            0 => scale * noise.unit(),
            // Fields, if any, of unlike magnitude.
            1 | 2 => smooth * 10f64.powi(3 * (place[0] % 4) as i32 - 6),
            3 if noise.below(90) == 0 => f64::NAN,
            4 if noise.below(9) == 0 => 1e20,
            5 => noise.below(1000) as f64,
            6 if noise.below(4) > 0 => 0.0,
            7 => 0.0,
            8 => noise.unit() * 2f64.powi(noise.below(240) as i32 - 120),
            _ => smooth,
        }
    }
}

pub fn guard(random: &mut Random) -> Guard {
    match random.below(3) {
        0 => Guard::OFF,
        1 => Guard::of(Some(1e-2)),
        _ => Guard::of(Some(1e9)),
    }
}
