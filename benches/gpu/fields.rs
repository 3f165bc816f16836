//! The field that speeds are measured on: smooth, with some noise.

use crate::Result;
use crate::buffer::Buffer;
use crate::random::Random;
use transpress::codec::Float;
use transpress::codec::cuda::Device;
use transpress::codec::zfp::Grid;

/// Values on the device that repeat every [`Field::PLANES`] planes. Along one or two axes they are the same values,
/// rows one after the other; no block reaches from one repetition into the next.
pub struct Field<T> {
    pub buffer: Buffer,
    pub count: usize,
    /// What repeats.
    pub slab: Vec<T>,
    side: usize,
}

impl<T: Float> Field<T> {
    const PLANES: usize = 16;

    pub fn new(device: &'static Device, mib: usize) -> Result<Self> {
        // Planes must be few enough that one repetition fits.
        let side = if mib >= 128 { 1024 } else { 64 };
        let slab = slab::<T>(side, Self::PLANES);
        let bytes = size_of_val(&slab[..]);
        let repetitions = ((mib << 20) / bytes).max(1);
        let mut buffer = Buffer::new(device, bytes * repetitions)?;
        buffer.write(0, &slab)?;
        let work = device.enter().map_err(|error| error.to_string())?;
        for repetition in 1..repetitions {
            let to = buffer.address() + (repetition * bytes) as u64;
            // SAFETY: both are parts of the buffer.
            let copied = unsafe { work.copy(to, buffer.address(), bytes) };
            copied.map_err(|error| error.to_string())?;
        }
        work.finish().map_err(|error| error.to_string())?;
        Ok(Self {
            buffer,
            count: slab.len() * repetitions,
            slab,
            side,
        })
    }

    pub fn bytes(&self) -> usize {
        self.count * size_of::<T>()
    }

    pub fn repetitions(&self) -> usize {
        self.count / self.slab.len()
    }

    /// The first values, as many as a whole number of repetitions has, along so many axes.
    pub fn grid(&self, dims: u8, count: usize) -> Grid {
        let plane = self.side * self.side;
        let (extents, strides) = match dims {
            1 => ([count, 1, 1], [1, 0, 0]),
            2 => ([self.side, count / self.side, 1], [1, self.side, 0]),
            _ => ([self.side, self.side, count / plane], [1, self.side, plane]),
        };
        Grid {
            dims,
            extents,
            strides: strides.map(|stride| stride as isize),
        }
    }
}

fn slab<T: Float>(side: usize, planes: usize) -> Vec<T> {
    let wave = |length: usize, factor: f64| -> Vec<f64> {
        (0..length).map(|i| (factor * i as f64).sin()).collect()
    };
    let (x_waves, y_waves, z_waves) = (wave(side, 0.031), wave(side, 0.017), wave(planes, 0.11));
    let (x_ripples, y_ripples) = (wave(side, 0.47), wave(side, 0.39));
    let mut noise = Random(1);
    let mut values = Vec::with_capacity(side * side * planes);
    for z_wave in z_waves {
        for (y_wave, y_ripple) in y_waves.iter().zip(&y_ripples) {
            for (x_wave, x_ripple) in x_waves.iter().zip(&x_ripples) {
                let smooth = 30.0 * x_wave * y_wave + 8.0 * z_wave * x_wave + x_ripple * y_ripple;
                values.push(T::from_f64(250.0 + smooth + 0.01 * noise.unit()));
            }
        }
    }
    values
}
