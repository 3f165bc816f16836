//! Single kernels, launched without the codec around them.

use crate::Result;
use crate::buffer::Buffer;
use std::ffi::c_void;
use transpress::codec::Element;
use transpress::codec::cuda::kernels::{BoxJob, Kernel, Span, Survey};
use transpress::codec::cuda::{Device, Entered};

/// Boxes of as many axes, in memory of the device.
pub struct Boxes {
    element: Element,
    dims: u8,
    jobs: Buffer,
    count: u32,
    blocks: u32,
    refused: Buffer,
    messages: usize,
}

impl Boxes {
    /// Jobs that together have so many ZFP blocks, of so many messages.
    pub fn new(
        device: &'static Device,
        element: Element,
        dims: u8,
        (jobs, blocks): (&[BoxJob], u32),
        messages: usize,
    ) -> Result<Self> {
        Ok(Self {
            element,
            dims,
            jobs: Buffer::of(device, jobs)?,
            count: jobs.len() as u32,
            blocks,
            refused: Buffer::of(device, &vec![0u32; messages])?,
            messages,
        })
    }

    /// Puts the work on our stream.
    pub fn encode(&self, work: &Entered) -> Result<()> {
        let kernel = Kernel::Encode(self.element, self.dims);
        let (jobs, refused) = (self.jobs.address(), self.refused.address());
        let args = [
            Arg::U64(jobs),
            self.count.into(),
            self.blocks.into(),
            Arg::U64(refused),
        ];
        launch(work, kernel, self.count, self.blocks, args)
    }

    /// As [`Self::encode`].
    pub fn decode(&self, work: &Entered) -> Result<()> {
        let kernel = Kernel::Decode(self.element, self.dims);
        let args = [
            Arg::U64(self.jobs.address()),
            self.count.into(),
            self.blocks.into(),
        ];
        launch(work, kernel, self.count, self.blocks, args)
    }

    /// For each message, whether it has values that are not finite.
    pub fn refused(&self) -> Result<Vec<bool>> {
        let mut refused = vec![0u32; self.messages];
        self.refused.read(0, &mut refused)?;
        Ok(refused.into_iter().map(|word| word != 0).collect())
    }
}

/// The look that the codec takes at all values before it codes them.
pub struct Look {
    element: Element,
    spans: Buffer,
    surveys: Buffer,
    chunks: u32,
}

impl Look {
    pub fn new(
        device: &'static Device,
        element: Element,
        values: u64,
        count: usize,
    ) -> Result<Self> {
        let span = Span {
            values,
            count: count as u64,
            first_chunk: 0,
            unused: 0,
        };
        Ok(Self {
            element,
            spans: Buffer::of(device, &[span])?,
            surveys: Buffer::of(device, &[Survey::NOTHING])?,
            chunks: Span::chunks(count as u64) as u32,
        })
    }

    /// Puts the work on our stream.
    pub fn run(&self, work: &Entered) -> Result<()> {
        let kernel = Kernel::Survey(self.element);
        let args = [
            Arg::U64(self.spans.address()),
            Arg::U32(1),
            Arg::U64(self.surveys.address()),
        ];
        launch(work, kernel, 1, self.chunks, args)
    }
}

/// An argument of a kernel.
enum Arg {
    U32(u32),
    U64(u64),
}

impl From<u32> for Arg {
    fn from(value: u32) -> Self {
        Self::U32(value)
    }
}

fn launch<const N: usize>(
    work: &Entered,
    kernel: Kernel,
    jobs: u32,
    parts: u32,
    mut args: [Arg; N],
) -> Result<()> {
    let mut pointers = args.each_mut().map(|arg| -> *mut c_void {
        match arg {
            Arg::U32(value) => std::ptr::from_mut(value).cast(),
            Arg::U64(value) => std::ptr::from_mut(value).cast(),
        }
    });
    let grid = kernel.thread_blocks(jobs, parts);
    // SAFETY: the arguments are those of the kernel, and the addresses among them are of buffers that live until the
    // work is waited for, which nothing here outruns.
    let launched = unsafe { work.launch(kernel.name(), grid, kernel.threads(), &mut pointers) };
    launched.map_err(|error| error.to_string())
}
