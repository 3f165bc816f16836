//! Random launches: messages, their boxes, and the streams of those.

use crate::guarded::Guarded;
use crate::random::Random;
use crate::zfp_judge::Scalar;
use transpress::codec::cuda::kernels::BoxJob;
use transpress::codec::zfp::{Grid, stream_words};
use transpress::codec::{Element, Float};

/// What the values of a box look like.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Look {
    Smooth,
    Noise,
    Constant,
    Zero,
    /// Any exponent from well above libzfp's limit for tiny blocks up to the largest.
    AnyExponent,
    /// Zeros and single values.
    Sparse,
    /// Blocks of nothing but subnormal numbers too; libzfp cannot code them.
    Subnormal,
    /// Some values are no finite numbers.
    Nonfinite,
}

pub const LOOKS: [Look; 8] = [
    Look::Smooth,
    Look::Noise,
    Look::Constant,
    Look::Zero,
    Look::AnyExponent,
    Look::Sparse,
    Look::Subnormal,
    Look::Nonfinite,
];

pub fn value<T: Scalar + Float>(look: Look, at: [usize; 3], random: &mut Random) -> T {
    let [x, y, z] = at.map(|i| i as f64);
    let is_float = T::ELEMENT == Element::F32;
    match look {
        Look::Smooth => {
            T::of(250.0 * (0.1 * x + 0.2 * y).sin() + 30.0 * (0.3 * z - 0.05 * x * y).cos())
        }
        Look::Noise => T::of(random.unit() * 1e5),
        Look::Constant => T::of(-7.25),
        Look::Zero => T::of(if random.below(2) == 0 { 0.0 } else { -0.0 }),
        Look::AnyExponent => {
            let span = if is_float { (-95, 127) } else { (-960, 1023) };
            let exponent = span.0 + random.below((span.1 - span.0 + 1) as u64) as i32;
            T::of((1.0 + random.unit().abs()) * random.unit().signum() * 2f64.powi(exponent))
        }
        Look::Sparse => T::of(match random.below(9) {
            0 => random.unit(),
            1 => random.unit() * 1e-9,
            _ => 0.0,
        }),
        Look::Subnormal => {
            <T as Scalar>::from_bits(random.next() >> if is_float { 44 } else { 12 })
        }
        Look::Nonfinite => match random.below(40) {
            0 => T::of(f64::NAN),
            1 => T::of(f64::INFINITY),
            2 => T::of(f64::NEG_INFINITY),
            _ => T::of(random.unit()),
        },
    }
}

/// One message of a launch, in memory with guards around it.
pub struct Message<T> {
    pub values: Guarded<T>,
    /// Index of the first value, and the grid, of each box.
    pub boxes: Vec<(usize, Grid)>,
    pub streams: Vec<Guarded<u64>>,
    pub exponents: Option<Guarded<i16>>,
    /// Values of the message before these: far more than there is memory for, in some.
    before: u64,
    pub run: u32,
    pub block_bits: u32,
    pub look: Look,
}

/// Strides that keep the values of a grid apart: axes in any order of memory, in either direction, with gaps.
/// Also the index of the first value, and how many values that takes.
fn strides(extents: &[usize], random: &mut Random) -> ([isize; 3], usize, usize) {
    let mut order: Vec<usize> = (0..extents.len()).collect();
    if random.below(3) == 0 {
        order.sort_by_key(|_| random.next());
    }
    let is_plain = random.below(2) == 0;
    let mut next = if is_plain { 1 } else { 1 + random.below(3) };
    let (mut strides, mut first) = ([0; 3], 0);
    for axis in order {
        let reach = (extents[axis] as u64 - 1) * next;
        strides[axis] = next as isize;
        if !is_plain && random.below(4) == 0 {
            strides[axis] = -strides[axis];
            first += reach as usize;
        }
        next += reach
            + if is_plain {
                0
            } else {
                random.below(3) * random.below(3)
            };
    }
    (strides, first, next as usize)
}

fn extents(dims: usize, random: &mut Random) -> Vec<usize> {
    let largest = [600, 40, 18][dims - 1];
    (0..dims)
        .map(|_| match random.below(5) {
            0 => 1 + random.below(5) as usize,
            1 => 4 * (1 + random.below(largest / 4) as usize),
            _ => 1 + random.below(largest) as usize,
        })
        .collect()
}

fn block_bits<T: Scalar>(dims: usize, random: &mut Random) -> u32 {
    let size = 1u64 << (2 * dims);
    let most = size * 8 * size_of::<T>() as u64;
    let least = u64::from(T::HEADER_BITS);
    (match random.below(8) {
        0 => least + random.below(70),
        1 => 64 * (1 + random.below(most / 64 + 1)),
        2 => 32 * (1 + random.below(most / 32 + 1)),
        3 => most + random.below(300),
        4 if random.below(10) == 0 => 16_658,
        _ => least + random.below(most),
    }) as u32
}

impl<T: Scalar + Float> Message<T> {
    /// With one box, or, as the parts of complex numbers, two.
    pub fn new(dims: usize, look: Look, random: &mut Random) -> Self {
        let extents = extents(dims, random);
        let parts = 1 + random.below(2) as isize;
        let (strides, first, length) = strides(&extents, random);
        // In one case of two, all begins on a boundary of 16 bytes.
        let start = random.below(2) as usize * (1 + random.below(5) as usize);
        let mut grid = Grid {
            dims: dims as u8,
            extents: [1; 3],
            strides: [0; 3],
        };
        grid.extents[..dims].copy_from_slice(&extents);
        grid.strides = strides.map(|stride| stride * parts);
        let garbage: Vec<T> = (0..start + length * parts as usize)
            .map(|_| <T as Scalar>::from_bits(random.next() >> random.below(2)))
            .collect();
        let boxes: Vec<(usize, Grid)> = (0..parts as usize)
            .map(|part| (start + first * parts as usize + part, grid))
            .collect();
        let block_bits = block_bits::<T>(dims, random);
        let streams = boxes
            .iter()
            .map(|(_, grid)| {
                let words = stream_words(grid, block_bits);
                let garbage: Vec<u64> = (0..words).map(|_| random.next()).collect();
                Guarded::new(&garbage, random.below(2) == 0)
            })
            .collect();
        let exponents = (random.below(3) == 0).then(|| {
            let fields = 1 + random.below(9);
            let exponents: Vec<i16> = (0..fields).map(|_| random.below(41) as i16 - 20).collect();
            Guarded::new(&exponents, true)
        });
        let mut message = Self {
            values: Guarded::new(&garbage, random.below(2) == 0),
            boxes,
            streams,
            exponents,
            before: (random.next() >> 12) * random.below(2),
            run: 1 + random.below(30) as u32,
            block_bits,
            look,
        };
        message.fill(random);
        message
    }

    fn fill(&mut self, random: &mut Random) {
        for &(first, grid) in &self.boxes {
            for (at, offset) in places(&grid) {
                self.values[(first as isize + offset) as usize] = value(self.look, at, random);
            }
        }
    }

    /// The exponent of the value at this index.
    pub fn exponent(&self, index: usize) -> i32 {
        self.exponents.as_ref().map_or(0, |exponents| {
            let field = (self.before + index as u64) / u64::from(self.run) % exponents.len() as u64;
            exponents[field as usize].into()
        })
    }

    /// What the codec is to see of the values, scaled as with a field axis.
    pub fn scaled(&self) -> Vec<T> {
        let mut scaled = self.values.to_vec();
        if self.exponents.is_some() {
            for (index, value) in scaled.iter_mut().enumerate() {
                *value = value.times_power_of_two(-self.exponent(index));
            }
        }
        scaled
    }

    fn job(&self, part: usize, message: u32, first_block: u32) -> BoxJob {
        let (first, grid) = self.boxes[part];
        BoxJob {
            values: self.values.address() + (first * size_of::<T>()) as u64,
            stream: self.streams[part].address(),
            exponents: self.exponents.as_ref().map_or(0, Guarded::address),
            origin: self.before + first as u64,
            strides: grid.strides.map(|stride| stride as i64),
            extents: grid.extents.map(|extent| extent as u32),
            run: self.run,
            fields: self.exponents.as_ref().map_or(0, |e| e.len() as u32),
            block_bits: self.block_bits,
            first_block,
            message,
        }
    }
}

/// The jobs of all boxes, and their ZFP blocks.
pub fn jobs<T: Scalar + Float>(messages: &[Message<T>]) -> (Vec<BoxJob>, u32) {
    let (mut jobs, mut blocks) = (Vec::new(), 0);
    for (index, message) in messages.iter().enumerate() {
        for (part, (_, grid)) in message.boxes.iter().enumerate() {
            jobs.push(message.job(part, index as u32, blocks));
            blocks += grid.blocks() as u32;
        }
    }
    (jobs, blocks)
}

/// All places of a grid, and their distances from the first.
pub fn places(grid: &Grid) -> impl Iterator<Item = ([usize; 3], isize)> + use<> {
    let Grid {
        extents: [nx, ny, nz],
        strides: [sx, sy, sz],
        ..
    } = *grid;
    (0..nz).flat_map(move |z| {
        (0..ny).flat_map(move |y| {
            (0..nx).map(move |x| {
                (
                    [x, y, z],
                    x as isize * sx + y as isize * sy + z as isize * sz,
                )
            })
        })
    })
}
