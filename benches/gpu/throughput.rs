//! GB/s of uncompressed values: of the kernels alone by the driver's events, and of whole calls of the codec; beside the
//! device's own copies, and cuZFP on the same values.

use crate::buffer::Buffer;
use crate::case::Case;
use crate::clock::{self, LEGACY_STREAM};
use crate::cuzfp::CuZfp;
use crate::fields::Field;
use crate::kernels::Look;
use crate::options::Options;
use crate::rates::{Rate, by_the_host, median};
use crate::{Result, row};
use transpress::codec::cuda::{Device, Entered};
use transpress::codec::zfp::stream_words;
use transpress::codec::{
    Bits, Coding, Decode, Encode, Float, Guard, Item, Memory, Place, decode, encode,
};

/// Wanted of 3-D single precision: bytes per second of an encoder at rate 8, and times cuZFP's speed.
const WANTED: (Rate, f64) = (Rate(1e12), 3.0);

struct Bench {
    device: &'static Device,
    cuzfp: Option<CuZfp>,
    cuzfp_failed: bool,
    runs: usize,
    /// Bytes that a copy on the device reads and writes.
    copies: Rate,
    /// Of 3-D single precision: the encoder's rate at 8 bits, and the least ratio to cuZFP.
    encoder: Option<Rate>,
    least_ratio: Option<f64>,
}

pub fn run(device: &'static Device, options: &Options) -> Result<bool> {
    let singles = Field::<f32>::new(device, options.mib)?;
    let copies = copies(device, &singles, options.runs)?;
    let mut bench = Bench {
        device,
        cuzfp: None,
        cuzfp_failed: false,
        runs: options.runs,
        copies,
        encoder: None,
        least_ratio: None,
    };
    row(
        "copy on the device",
        true,
        format_args!("{copies} read and written, {} MiB", singles.bytes() >> 20),
    );
    if let Some(path) = &options.cuzfp {
        bench.cuzfp = bench.unless_failed(CuZfp::load(path));
    }
    bench.look(&singles)?;
    let mut good = bench.all(&singles)?;
    drop(singles);
    good &= bench.all(&Field::<f64>::new(device, options.mib)?)?;
    bench.goals();
    Ok(good && !bench.cuzfp_failed)
}

fn copies(device: &'static Device, field: &Field<f32>, runs: usize) -> Result<Rate> {
    let to = Buffer::new(device, field.bytes())?;
    let seconds = median(runs, || {
        timed(device, |work| {
            // SAFETY: the buffers have so many bytes.
            let copied = unsafe { work.copy(to.address(), field.buffer.address(), field.bytes()) };
            copied.map_err(|error| error.to_string())
        })
    })?;
    Ok(Rate::of(2 * field.bytes(), seconds))
}

/// Seconds of work on our stream.
fn timed(device: &'static Device, work: impl FnOnce(&Entered) -> Result<()>) -> Result<f64> {
    let entered = device.enter().map_err(|error| error.to_string())?;
    let seconds = clock::seconds(entered.stream_handle(), || work(&entered))?;
    entered.finish().map_err(|error| error.to_string())?;
    Ok(seconds)
}

/// Seconds that something took, of kernels and of a whole call; and whether it came out as on the CPU.
struct Measured {
    kernel: f64,
    call: f64,
    is_right: bool,
}

impl Bench {
    fn all<T: Float>(&mut self, field: &Field<T>) -> Result<bool> {
        let mut good = true;
        for dims in [3, 2, 1] {
            for rate in [8, 16] {
                let words = stream_words(&field.grid(dims, field.count), rate << (2 * dims));
                good &= self.case(&Case {
                    field,
                    dims,
                    rate,
                    stream: Buffer::new(self.device, 8 * words)?,
                    back: Buffer::new(self.device, field.bytes())?,
                })?;
            }
        }
        Ok(good)
    }

    fn case<T: Float>(&mut self, case: &Case<T>) -> Result<bool> {
        let stream = case.expected_stream();
        let values = case.expected_values(&stream);
        let ours = self.encode(case, &stream)?;
        self.clear(&case.stream, 8 * case.words())?;
        let theirs = match self.cuzfp(|cuzfp| cuzfp.encode(&case.cuzfp_job(&case.field.buffer))) {
            Some(seconds) => Some((seconds, case.repeats(&case.stream, &stream)?)),
            None => None,
        };
        let mut good = self.report(case, "encode", &ours, theirs);
        if case.dims == 3 && case.rate == 8 && size_of::<T>() == 4 {
            self.encoder = Some(Rate::of(case.field.bytes(), ours.kernel));
        }
        // cuZFP may have left another stream, or none.
        self.encode_kernel(case)?;
        let ours = self.decode(case, &values)?;
        self.clear(&case.back, case.field.bytes())?;
        let theirs = match self.cuzfp(|cuzfp| cuzfp.decode(&case.cuzfp_job(&case.back))) {
            Some(seconds) => Some((seconds, case.repeats(&case.back, &values)?)),
            None => None,
        };
        good &= self.report(case, "decode", &ours, theirs);
        Ok(good)
    }

    fn encode_kernel<T: Float>(&self, case: &Case<T>) -> Result<f64> {
        let boxes = case.boxes(self.device, &case.field.buffer)?;
        timed(self.device, |work| boxes.encode(work))
    }

    fn encode<T: Float>(&self, case: &Case<T>, expected: &[u64]) -> Result<Measured> {
        self.clear(&case.stream, 8 * case.words())?;
        let kernel = median(self.runs, || self.encode_kernel(case))?;
        let kernels_are_right = case.repeats(&case.stream, expected)?;
        self.clear(&case.stream, 8 * case.words())?;
        let axes = case.axes();
        // Only its length matters.
        let mut payload = vec![0u64; case.words()];
        let mut coded = true;
        let call = median(self.runs, || {
            let mut messages = [Encode {
                coding: Coding::Zfp,
                item: Item::Float(T::ELEMENT),
                values: case.field.buffer.pointer(0),
                place: self.place(),
                count: case.field.count,
                axes: &axes,
                bits: Bits::Even,
                payload: &mut payload,
                on_device: Some(case.stream.address()),
            }];
            by_the_host(|| {
                // SAFETY: the field has the values, and the stream's buffer room for the payload.
                let outcomes = unsafe { encode(&mut messages, Guard::of(Some(0.1)), |_| true, 1) };
                coded &= outcomes.iter().all(|outcome| outcome.is_ok());
                Ok(())
            })
        })?;
        Ok(Measured {
            kernel,
            call,
            is_right: kernels_are_right && coded && case.repeats(&case.stream, expected)?,
        })
    }

    fn decode<T: Float>(&self, case: &Case<T>, expected: &[T]) -> Result<Measured> {
        let boxes = case.boxes(self.device, &case.back)?;
        self.clear(&case.back, case.field.bytes())?;
        let kernel = median(self.runs, || timed(self.device, |work| boxes.decode(work)))?;
        let kernels_are_right = case.repeats(&case.back, expected)?;
        self.clear(&case.back, case.field.bytes())?;
        let (axes, payload) = (case.axes(), vec![0u64; case.words()]);
        let mut decoded = true;
        let call = median(self.runs, || {
            let messages = [Decode {
                coding: Coding::Zfp,
                item: Item::Float(T::ELEMENT),
                values: case.back.pointer(0),
                place: self.place(),
                count: case.field.count,
                axes: &axes,
                masked: false,
                fitted: false,
                payload: &payload,
                on_device: Some(case.stream.address()),
            }];
            by_the_host(|| {
                // SAFETY: the buffer has room for the values, and the stream's has the payload.
                decoded &= unsafe { decode(&messages, 1) } == [true];
                Ok(())
            })
        })?;
        Ok(Measured {
            kernel,
            call,
            is_right: kernels_are_right && decoded && case.repeats(&case.back, expected)?,
        })
    }

    fn place(&self) -> Place {
        Place {
            memory: Memory::Gpu(self.device),
            coder: Some(self.device),
        }
    }

    /// So that what a run left undone shows.
    fn clear(&self, buffer: &Buffer, bytes: usize) -> Result<()> {
        timed(self.device, |work| {
            // SAFETY: the buffer has so many bytes.
            let cleared = unsafe { work.fill_zero(buffer.address(), bytes) };
            cleared.map_err(|error| error.to_string())
        })
        .map(drop)
    }

    /// Seconds that cuZFP takes, its zeroing of the stream included. Where it fails, that is said, and it is not
    /// asked again.
    fn cuzfp(&mut self, work: impl Fn(&CuZfp) -> Result<()>) -> Option<f64> {
        let cuzfp = self.cuzfp.as_ref()?;
        let seconds = self.device.enter().map_err(|error| error.to_string());
        let seconds = seconds.and_then(|_entered| {
            median(self.runs, || clock::seconds(LEGACY_STREAM, || work(cuzfp)))
        });
        let seconds = self.unless_failed(seconds);
        if seconds.is_none() {
            self.cuzfp = None;
        }
        seconds
    }

    /// What cuZFP gives, where it works.
    fn unless_failed<R>(&mut self, result: Result<R>) -> Option<R> {
        let failed = |error| {
            row("cuZFP", false, error);
            self.cuzfp_failed = true;
        };
        result.map_err(failed).ok()
    }

    /// A row of the table. Of cuZFP: its seconds, and whether it makes the same of the same.
    fn report<T: Float>(
        &mut self,
        case: &Case<T>,
        what: &str,
        ours: &Measured,
        theirs: Option<(f64, bool)>,
    ) -> bool {
        let bytes = case.field.bytes();
        let moved = Rate::of(bytes + 8 * case.words(), ours.kernel);
        let kernel = Rate::of(bytes, ours.kernel);
        let beside = match theirs {
            None => "cuZFP not here".into(),
            Some((seconds, agrees)) => {
                let ratio = seconds / ours.kernel;
                if case.dims == 3 && size_of::<T>() == 4 {
                    self.least_ratio =
                        Some(self.least_ratio.map_or(ratio, |least| least.min(ratio)));
                }
                let agrees = if agrees { "same bits" } else { "other bits" };
                format!(
                    "{ratio:.1} x cuZFP ({}, {agrees})",
                    Rate::of(bytes, seconds)
                )
            }
        };
        let figures = format!(
            "{kernel} ({:.0} % of a copy), call {}, {beside}",
            100.0 * moved.0 / self.copies.0,
            Rate::of(bytes, ours.call),
        );
        row(&case.name(what), ours.is_right, figures)
    }

    /// What a call adds to the encoder's kernel.
    fn look(&self, field: &Field<f32>) -> Result<()> {
        let look = Look::new(
            self.device,
            f32::ELEMENT,
            field.buffer.address(),
            field.count,
        )?;
        let seconds = median(self.runs, || timed(self.device, |work| look.run(work)))?;
        let rate = Rate::of(field.bytes(), seconds);
        row("survey f32", true, rate);
        Ok(())
    }

    fn goals(&self) {
        let ((wanted, wanted_ratio), Some(encoder)) = (WANTED, self.encoder) else {
            return;
        };
        let encoder_row = format!("3-D f32: encode at rate 8 {encoder} ({wanted} wanted)");
        match self.least_ratio {
            None => println!("goals\tnot here\t{encoder_row}, cuZFP not here"),
            Some(ratio) => {
                let is_met = encoder >= wanted && ratio >= wanted_ratio;
                let result = if is_met { "met" } else { "missed" };
                println!(
                    "goals\t{result}\t{encoder_row}, at least {ratio:.1} x cuZFP ({wanted_ratio} wanted)"
                );
            }
        }
    }
}
