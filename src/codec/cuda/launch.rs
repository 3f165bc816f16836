//! What each kernel is told, and the launches.

use super::array::{Array, Fetched, Plain};
use super::jobs::Boxed;
use super::kernels::{BoxJob, FieldsJob, GatherJob, Kernel, SampledError, Span, Survey};
use super::{Entered, Result};
use crate::codec::Float;
use crate::codec::survey::step;
use std::ffi::c_void;

/// The values of messages, given by address and count, cut into chunks.
pub fn spans(values: &[(u64, usize)]) -> Vec<Span> {
    let mut first_chunk = 0;
    let span = |&(address, count): &(u64, usize)| {
        let span = Span {
            values: address,
            count: count as u64,
            first_chunk,
            unused: 0,
        };
        first_chunk += chunks_of(count);
        span
    };
    values.iter().map(span).collect()
}

fn chunks_of(count: usize) -> u32 {
    Span::chunks(count as u64) as u32
}

fn chunks(spans: &[Span]) -> u32 {
    spans
        .iter()
        .map(|span| chunks_of(span.count as usize))
        .sum()
}

/// Goes over all values.
pub fn survey<T: Float>(work: &Entered, spans: &[Span]) -> Result<Array<Survey>> {
    let surveys = Array::of(work, &vec![Survey::NOTHING; spans.len()])?;
    let told = Array::of(work, spans)?;
    let (mut spans_at, mut count, mut to) = (told.address(), spans.len() as u32, surveys.address());
    let args = [arg(&mut spans_at), arg(&mut count), arg(&mut to)];
    launch(work, Kernel::Survey(T::ELEMENT), count, chunks(spans), args)?;
    Ok(surveys)
}

/// How many values of each message have these bits.
pub fn count<T: Float>(
    work: &Entered,
    spans: &[Span],
    patterns: &[[u64; 2]],
) -> Result<Array<[u64; 2]>> {
    let counts = Array::of(work, &vec![[0u64; 2]; spans.len()])?;
    let (told, patterns) = (Array::of(work, spans)?, Array::of(work, patterns)?);
    let (mut spans_at, mut count) = (told.address(), spans.len() as u32);
    let (mut patterns_at, mut to) = (patterns.address(), counts.address());
    let args = [
        arg(&mut spans_at),
        arg(&mut count),
        arg(&mut patterns_at),
        arg(&mut to),
    ];
    launch(work, Kernel::Count(T::ELEMENT), count, chunks(spans), args)?;
    Ok(counts)
}

/// Gives the fields of messages their exponents.
pub fn exponents<T: Float>(work: &Entered, jobs: &[FieldsJob]) -> Result<()> {
    let told = Array::of(work, jobs)?;
    let (mut jobs_at, mut count) = (told.address(), jobs.len() as u32);
    let fields = jobs.iter().map(|job| job.fields).sum();
    let args = [arg(&mut jobs_at), arg(&mut count)];
    launch(work, Kernel::Exponents(T::ELEMENT), count, fields, args)
}

/// The boxes of a launch, as its kernels are told of them.
pub struct Told {
    dims: u8,
    jobs: Array<BoxJob>,
    count: u32,
    blocks: u32,
}

/// Tells the device of boxes: once, however many kernels go over them.
pub fn tell(work: &Entered, boxed: &Boxed) -> Result<Vec<Told>> {
    let told = boxed.launches().map(|(dims, jobs, blocks)| {
        Ok(Told {
            dims,
            jobs: Array::of(work, jobs)?,
            count: jobs.len() as u32,
            blocks,
        })
    });
    told.collect()
}

/// Codes the boxes. What is not 0 in `refused` afterwards is a message that cannot be coded.
pub fn encode<T: Float>(work: &Entered, boxes: &[Told], refused: &Array<u32>) -> Result<()> {
    for told in boxes {
        let (mut jobs_at, mut count, mut blocks) = (told.jobs.address(), told.count, told.blocks);
        let mut refused_at = refused.address();
        let args = [
            arg(&mut jobs_at),
            arg(&mut count),
            arg(&mut blocks),
            arg(&mut refused_at),
        ];
        let kernel = Kernel::Encode(T::ELEMENT, told.dims);
        launch(work, kernel, count, blocks, args)?;
    }
    Ok(())
}

/// Decodes the boxes.
pub fn decode<T: Float>(work: &Entered, boxes: &[Told]) -> Result<()> {
    for told in boxes {
        let (mut jobs_at, mut count, mut blocks) = (told.jobs.address(), told.count, told.blocks);
        let args = [arg(&mut jobs_at), arg(&mut count), arg(&mut blocks)];
        let kernel = Kernel::Decode(T::ELEMENT, told.dims);
        launch(work, kernel, count, blocks, args)?;
    }
    Ok(())
}

/// The error of every so many blocks of each message.
pub fn sample<T: Float>(
    work: &Entered,
    boxes: &[Told],
    every: &[u32],
) -> Result<Array<SampledError>> {
    let errors = Array::of(work, &vec![SampledError::default(); every.len()])?;
    let every = Array::of(work, every)?;
    for told in boxes {
        let (mut jobs_at, mut count) = (told.jobs.address(), told.count);
        let (mut every_at, mut to) = (every.address(), errors.address());
        let args = [
            arg(&mut jobs_at),
            arg(&mut count),
            arg(&mut every_at),
            arg(&mut to),
        ];
        launch(work, Kernel::Sample(T::ELEMENT, told.dims), count, 0, args)?;
    }
    Ok(errors)
}

/// Some items of each message, evenly spread, one message after the other.
#[derive(Default)]
pub struct Samples {
    jobs: Vec<GatherJob>,
    values: usize,
}

impl Samples {
    /// Takes at most `most` of `count` items of `width` values each.
    pub fn add(&mut self, address: u64, count: usize, width: usize, most: usize) {
        let step = step(count, most);
        let items = count.div_ceil(step);
        self.jobs.push(GatherJob {
            values: address,
            out: 0,
            step: step as u64,
            items: items as u32,
            width: width as u32,
        });
        self.values += items * width;
    }

    pub fn take<T: Float + Plain>(mut self, work: &Entered) -> Result<Taken<'_, T>> {
        let samples = Array::<T>::room(work, self.values)?;
        let mut lengths = Vec::with_capacity(self.jobs.len());
        let mut first = 0;
        for job in &mut self.jobs {
            job.out = samples.address_of(first);
            let length = (job.items * job.width) as usize;
            lengths.push(length);
            first += length;
        }
        let told = Array::of(work, &self.jobs)?;
        let (mut jobs_at, mut count) = (told.address(), self.jobs.len() as u32);
        let args = [arg(&mut jobs_at), arg(&mut count)];
        launch(work, Kernel::Gather(T::ELEMENT), count, 0, args)?;
        let samples = samples.fetch(work)?;
        Ok(Taken { samples, lengths })
    }
}

/// Samples on their way from the device.
pub struct Taken<'a, T> {
    samples: Fetched<'a, T>,
    lengths: Vec<usize>,
}

impl<T: Plain> Taken<'_, T> {
    /// Those of each message, in the order they were added.
    pub fn each(&self) -> Result<Vec<&[T]>> {
        let mut rest = self.samples.items()?;
        let own = |&length: &usize| {
            let (own, after) = rest.split_at(length);
            rest = after;
            own
        };
        Ok(self.lengths.iter().map(own).collect())
    }
}

/// One argument of a kernel.
type Argument = *mut c_void;

fn arg<T>(value: &mut T) -> Argument {
    std::ptr::from_mut(value).cast()
}

/// Launches a kernel for so many jobs and parts of them.
///
/// The callers above answer for what the driver cannot check: the arguments are of the kernel's types and live until
/// the launch, and the addresses among them and in the jobs are of memory that was lent for what the kernel does
/// there, or of the program's values.
fn launch<const N: usize>(
    work: &Entered,
    kernel: Kernel,
    jobs: u32,
    parts: u32,
    mut args: [Argument; N],
) -> Result<()> {
    let grid = kernel.thread_blocks(jobs, parts);
    // SAFETY: see above; work that comes later on this device waits for this, so what was lent may go back before.
    unsafe { work.launch(kernel.name(), grid, kernel.threads(), &mut args) }
}
