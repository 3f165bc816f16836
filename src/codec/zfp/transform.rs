//! A block's values ↔ its coefficients: common exponent, lifting transform, in portable Rust.

use super::arch::BATCH;
use super::shape::Shape;
use super::value::{Float, Int};

/// What comes before a block's bit planes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// The header's bits: a 1 and above it the biased exponent of the largest magnitude; 0 for a block
    /// of zeros, which has no bit planes.
    pub bits: u32,
    /// Bit planes to code.
    pub planes: u32,
}

impl Header {
    pub const ZEROS: Header = Header { bits: 0, planes: 0 };

    #[inline(always)]
    pub fn is_coded(self) -> bool {
        self.bits != 0
    }

    #[inline(always)]
    pub fn biased_exponent(self) -> u32 {
        self.bits >> 1
    }
}

/// The headers of the blocks that go through a stage together.
#[derive(Clone, Copy, Default)]
pub struct Headers {
    /// As in [`Header`].
    pub bits: [u32; BATCH],
    pub planes: [u32; BATCH],
}

impl Headers {
    #[inline(always)]
    pub fn get(&self, block: usize) -> Header {
        Header {
            bits: self.bits[block],
            planes: self.planes[block],
        }
    }

    #[inline(always)]
    pub fn set(&mut self, block: usize, header: Header) {
        self.bits[block] = header.bits;
        self.planes[block] = header.planes;
    }

    /// Bit planes of the block that has the most.
    #[inline(always)]
    pub fn most_planes(&self) -> u32 {
        self.planes.iter().fold(0, |most, &count| most.max(count))
    }

    /// Makes blocks of zeros of those up to a biased exponent.
    #[inline(always)]
    pub fn silence(&mut self, biased: i32) {
        for (bits, planes) in self.bits.iter_mut().zip(&mut self.planes) {
            let is_quiet = (*bits >> 1) as i32 <= biased;
            *bits = if is_quiet { 0 } else { *bits };
            *planes = if is_quiet { 0 } else { *planes };
        }
    }
}

/// The accuracy a stream is coded with: no bit plane whose weight is below 2 to this power matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LowestExponent(i32);

impl LowestExponent {
    /// All that the format can hold: fixed rate.
    pub const NONE: LowestExponent = LowestExponent(-1074);

    pub fn of_power(exponent: i32) -> LowestExponent {
        LowestExponent(exponent.max(Self::NONE.0))
    }

    /// The exponent of the largest power of two not above `tolerance`.
    pub fn of_tolerance(tolerance: f64) -> LowestExponent {
        if tolerance.is_nan() || tolerance <= 0.0 {
            return Self::NONE;
        }
        let bits = tolerance.to_bits();
        LowestExponent(if tolerance.is_subnormal() {
            bits.ilog2() as i32 - 1074
        } else {
            (bits >> 52) as i32 - 1023
        })
    }

    /// The header of a block whose largest magnitude is `magnitude`.
    #[inline(always)]
    pub fn header<T: Float, S: Shape>(self, magnitude: T::Int) -> Header {
        let raw = magnitude.bits();
        let biased = (raw >> T::FRACTION_BITS) as u32 + u32::from(raw != 0);
        let planes = self.planes::<T, S>(biased);
        if biased == 0 || planes == 0 {
            return Header::ZEROS;
        }
        Header {
            bits: biased << 1 | 1,
            planes,
        }
    }

    /// Bit planes of a block with this exponent.
    #[inline(always)]
    pub fn planes<T: Float, S: Shape>(self, biased: u32) -> u32 {
        let planes = biased as i32 + self.planes_above::<T, S>();
        planes.clamp(0, T::Int::BITS as i32) as u32
    }

    /// The number of bit planes of a block, before it is clamped, less its biased exponent.
    #[inline(always)]
    pub fn planes_above<T: Float, S: Shape>(self) -> i32 {
        // The transform's rounding and range take two bits an axis and two more.
        2 * S::DIMS as i32 + 2 - T::BIAS - self.0
    }
}

/// The largest magnitude of a block.
#[inline(always)]
pub fn largest<T: Float, S: Shape>(block: &[T; 64]) -> T::Int {
    // Older vector instructions compare 64-bit floats, but not 64-bit integers.
    if T::Int::BITS == 64
        && let Some(largest) = largest_number::<T, S>(block)
    {
        return largest.magnitude();
    }
    let magnitudes = block[..S::SIZE].iter().map(|value| value.magnitude());
    magnitudes.fold(T::Int::default(), Ord::max)
}

/// [`largest`] of numbers, none of which is so large that their sum is none.
#[inline(always)]
fn largest_number<T: Float, S: Shape>(block: &[T; 64]) -> Option<T> {
    let (fours, _) = block[..S::SIZE].as_chunks::<4>();
    let (mut largest, mut sums) = ([T::ZEROS[0]; 4], [T::ZEROS[0]; 4]);
    for four in fours {
        for (i, value) in four.iter().enumerate() {
            largest[i] = largest[i].larger(value.abs());
            // A NaN may be lost above, but not here.
            sums[i] = sums[i].plus(value.abs());
        }
    }
    let [a, b, c, d] = sums;
    let sum = a.plus(b).plus(c.plus(d));
    let [a, b, c, d] = largest;
    is_finite::<T>(sum.magnitude()).then(|| a.larger(b).larger(c.larger(d)))
}

/// Whether the largest magnitude of a block is that of a NaN or an infinity.
#[inline(always)]
pub fn is_finite<T: Float>(largest: T::Int) -> bool {
    largest.bits() >> T::FRACTION_BITS < (1 << T::EXPONENT_BITS) - 1
}

/// The factors that take values to integers, two bits short of full. The factor of a block of tiny
/// values is too large for the type, so it comes in two steps.
#[inline(always)]
pub fn factors<T: Float>(biased: u32) -> [T; 2] {
    let exponent = T::Int::BITS as i32 - 2 - (biased as i32 - T::BIAS);
    let first = exponent.min(T::BIAS);
    [first, exponent - first].map(T::power_of_two)
}

/// Values → integers relative to the common exponent.
///
/// # Safety
/// It must be that of the largest magnitude of the block, which must be finite.
#[inline(always)]
pub unsafe fn quantize<T: Float, S: Shape>(block: &[T; 64], biased: u32, ints: &mut [T::Int; 64]) {
    let [first, second] = factors::<T>(biased);
    let values = ints[..S::SIZE].iter_mut().zip(&block[..S::SIZE]);
    // SAFETY: the factors take the largest magnitude two bits below what does not fit.
    unsafe {
        if second == T::power_of_two(0) {
            values.for_each(|(int, value)| *int = value.times(first).truncate());
        } else {
            values.for_each(|(int, value)| *int = value.times(first).times(second).truncate());
        }
    }
}

/// Integers → values. As in libzfp the factor is one number of the type, which is 0 for a block whose
/// exponent is very small.
#[inline(always)]
pub fn dequantize<T: Float, S: Shape>(ints: &[T::Int; 64], biased: u32, block: &mut [T; 64]) {
    let factor = T::power_of_two(biased as i32 - T::BIAS - (T::Int::BITS as i32 - 2));
    for (value, &int) in block[..S::SIZE].iter_mut().zip(&ints[..S::SIZE]) {
        *value = T::from_int(int).times(factor);
    }
}

/// Decorrelates a block along x, then y, then z, and takes it to negabinary.
#[inline(always)]
pub fn forward<I: Int, S: Shape>(block: &mut [I; 64]) {
    for axis in 0..S::DIMS {
        along_axis::<I, S>(block, axis, lift);
    }
    for int in &mut block[..S::SIZE] {
        *int = int.to_negabinary();
    }
}

/// The inverse of [`forward`], but for the bits its halvings dropped.
#[inline(always)]
pub fn inverse<I: Int, S: Shape>(block: &mut [I; 64]) {
    for int in &mut block[..S::SIZE] {
        *int = I::of_negabinary(*int);
    }
    for axis in (0..S::DIMS).rev() {
        along_axis::<I, S>(block, axis, unlift);
    }
}

/// `f` of every line of four values along `axis`. Lines go side by side, so that they are lanes of vector registers.
#[inline(always)]
fn along_axis<I: Int, S: Shape>(block: &mut [I; 64], axis: usize, f: impl Fn([I; 4]) -> [I; 4]) {
    let (rows, _) = block.as_chunks_mut::<4>();
    match (axis, S::DIMS) {
        (0, 1) => rows[0] = f(rows[0]),
        (0, 2) => along_rows::<I, 4>(rows, f),
        (0, _) => along_rows::<I, 16>(rows, f),
        (1, _) => {
            let (squares, _) = rows.as_chunks_mut::<4>();
            for square in &mut squares[..S::SIZE / 16] {
                side_by_side(square, &f);
            }
        }
        _ => {
            let (slices, _) = block.as_chunks_mut::<16>();
            if let [slices] = slices.as_chunks_mut::<4>().0 {
                side_by_side(slices, f);
            }
        }
    }
}

/// `f` of the first `N` rows.
#[inline(always)]
fn along_rows<I: Int, const N: usize>(rows: &mut [[I; 4]], f: impl Fn([I; 4]) -> [I; 4]) {
    let mut columns = [[I::default(); N]; 4];
    for (i, row) in rows[..N].iter().enumerate() {
        for (column, &value) in columns.iter_mut().zip(row) {
            column[i] = value;
        }
    }
    side_by_side(&mut columns, f);
    for (i, row) in rows[..N].iter_mut().enumerate() {
        for (value, column) in row.iter_mut().zip(&columns) {
            *value = column[i];
        }
    }
}

/// `f` of the first value of each, and so on.
#[inline(always)]
fn side_by_side<I: Int, const N: usize>(
    [x, y, z, w]: &mut [[I; N]; 4],
    f: impl Fn([I; 4]) -> [I; 4],
) {
    for i in 0..N {
        [x[i], y[i], z[i], w[i]] = f([x[i], y[i], z[i], w[i]]);
    }
}

#[inline(always)]
fn lift<I: Int>([x, y, z, w]: [I; 4]) -> [I; 4] {
    let (x, w) = average(x, w);
    let (z, y) = average(z, y);
    let (x, z) = average(x, z);
    let (w, y) = average(w, y);
    let w = w.plus(y.half());
    let y = y.minus(w.half());
    [x, y, z, w]
}

#[inline(always)]
fn unlift<I: Int>([x, y, z, w]: [I; 4]) -> [I; 4] {
    let y = y.plus(w.half());
    let w = w.minus(y.half());
    let (y, w) = unaverage(y, w);
    let (z, x) = unaverage(z, x);
    let (y, z) = unaverage(y, z);
    let (w, x) = unaverage(w, x);
    [x, y, z, w]
}

/// (mean of both, half the second's excess over the first).
#[inline(always)]
fn average<I: Int>(a: I, b: I) -> (I, I) {
    let mean = a.plus(b).half();
    (mean, b.minus(mean))
}

/// From half the excess and the mean: (sum, difference).
#[inline(always)]
fn unaverage<I: Int>(excess: I, mean: I) -> (I, I) {
    let sum = excess.plus(mean);
    (sum, mean.minus(sum.minus(mean)))
}
