//! Random boxes, with gaps between their values, through the kernels: the same bits as from the CPU's.

use crate::boxes::{LOOKS, Message, jobs, places};
use crate::buffer::Buffer;
use crate::guarded::Guarded;
use crate::kernels::Boxes;
use crate::options::Options;
use crate::random::Random;
use crate::zfp_judge::{Field, Scalar, our_stream, our_values};
use crate::{Result, row};
use std::time::Instant;
use transpress::codec::cuda::Device;
use transpress::codec::cuda::kernels::BoxJob;
use transpress::codec::zfp::{Arch, Grid, Mode};
use transpress::codec::{Element, Float};

pub fn run(device: &'static Device, options: &Options) -> Result<bool> {
    let mut random = Random(options.seed);
    let (mut cases, mut wrong) = (0, Vec::new());
    let started = Instant::now();
    while cases < options.cases && started.elapsed() < options.time {
        let (seed, dims) = (random.next(), 1 + random.below(3) as usize);
        let random = &mut Random(seed);
        let (count, said) = match random.below(2) {
            0 => launch::<f32>(device, dims, random)?,
            _ => launch::<f64>(device, dims, random)?,
        };
        cases += count;
        wrong.extend(said.into_iter().map(|said| format!("seed {seed}: {said}")));
    }
    for said in wrong.iter().take(10) {
        eprintln!("strided: {said}");
    }
    let figures = format!(
        "{cases} messages of boxes with strides, {} differ",
        wrong.len()
    );
    Ok(row("kernels' bits", wrong.is_empty(), figures))
}

/// How many messages were coded and decoded, and what differs.
fn launch<T: Scalar + Float>(
    device: &'static Device,
    dims: usize,
    random: &mut Random,
) -> Result<(usize, Vec<String>)> {
    let mut messages: Vec<Message<T>> = (0..1 + random.below(6))
        .map(|_| {
            Message::new(
                dims,
                LOOKS[random.below(LOOKS.len() as u64) as usize],
                random,
            )
        })
        .collect();
    let (refused, expected) = (encoded(device, dims, &mut messages)?, expected(&messages));
    let mut said = Vec::new();
    for (index, (message, expected)) in messages.iter().zip(&expected).enumerate() {
        if refused[index] != expected.refused {
            said.push(format!("message {index} is refused by one"));
        }
        for (part, stream) in message.streams.iter().enumerate() {
            if stream[..] != expected.streams[part] {
                said.push(format!("the stream of box {index}.{part} differs"));
            }
        }
    }
    // Streams of values, and bytes that are none.
    for (message, expected) in messages.iter_mut().zip(expected) {
        let is_garbage = random.below(4) == 0;
        for (stream, expected) in message.streams.iter_mut().zip(expected.streams) {
            stream.copy_from_slice(&expected);
            if is_garbage {
                stream.fill_with(|| random.next() & random.next());
            }
        }
    }
    said.extend(decoded(device, dims, &mut messages)?);
    Ok((messages.len(), said))
}

struct Expected {
    streams: Vec<Vec<u64>>,
    refused: bool,
}

fn expected<T: Scalar + Float>(messages: &[Message<T>]) -> Vec<Expected> {
    let of = |message: &Message<T>| {
        let scaled = message.scaled();
        let (mut streams, mut refused) = (Vec::new(), false);
        for &(first, grid) in &message.boxes {
            let (stream, encoded) =
                our_stream(Arch::best(), &field(&scaled, first, grid), mode(message), 1);
            refused |= encoded.nonfinite_blocks > 0;
            streams.push(stream);
        }
        Expected { streams, refused }
    };
    messages.iter().map(of).collect()
}

fn field<T: Scalar>(values: &[T], first: usize, grid: Grid) -> Field<T> {
    Field {
        values: values.to_vec(),
        first,
        grid,
    }
}

fn mode<T>(message: &Message<T>) -> Mode {
    Mode::Rate {
        block_bits: message.block_bits,
    }
}

/// Has the messages coded on the device; which of them it refuses.
fn encoded<T: Scalar + Float>(
    device: &'static Device,
    dims: usize,
    messages: &mut [Message<T>],
) -> Result<Vec<bool>> {
    let there = There::new(device, messages)?;
    let boxes = there.boxes(device, T::ELEMENT, dims, messages)?;
    let work = device.enter().map_err(|error| error.to_string())?;
    boxes.encode(&work)?;
    work.finish().map_err(|error| error.to_string())?;
    there.bring_back(messages)?;
    boxes.refused()
}

/// Has the messages decoded on the device; what differs.
fn decoded<T: Scalar + Float>(
    device: &'static Device,
    dims: usize,
    messages: &mut [Message<T>],
) -> Result<Vec<String>> {
    let mut said = Vec::new();
    let expected: Vec<Vec<T>> = messages.iter().map(decoded_here).collect();
    let there = There::new(device, messages)?;
    let boxes = there.boxes(device, T::ELEMENT, dims, messages)?;
    let work = device.enter().map_err(|error| error.to_string())?;
    boxes.decode(&work)?;
    work.finish().map_err(|error| error.to_string())?;
    there.bring_back(messages)?;
    for (index, (message, expected)) in messages.iter().zip(expected).enumerate() {
        let same = |(a, b): (&T, &T)| Float::bits(*a) == Float::bits(*b);
        if !message.values.iter().zip(&expected).all(same) {
            said.push(format!("the values of message {index} differ"));
        }
    }
    Ok(said)
}

fn decoded_here<T: Scalar + Float>(message: &Message<T>) -> Vec<T> {
    let mut values = message.values.to_vec();
    for (&(first, grid), stream) in message.boxes.iter().zip(&message.streams) {
        let blank = field(&values, first, grid);
        values = our_values(Arch::best(), stream, &blank, mode(message), 1)
            .0
            .values;
        for (_, offset) in places(&grid) {
            let index = (first as isize + offset) as usize;
            if message.exponents.is_some() {
                values[index] = values[index].times_power_of_two(message.exponent(index));
            }
        }
    }
    values
}

/// What messages are made of, on the device; at addresses aligned as here.
struct There {
    pieces: Vec<Piece>,
}

struct Piece {
    here: u64,
    bytes: usize,
    buffer: Buffer,
    offset: usize,
}

impl There {
    /// Places as far apart on the device as here, modulo this.
    const ALIGNMENT: usize = 256;

    fn new<T: Copy>(device: &'static Device, messages: &[Message<T>]) -> Result<Self> {
        let mut there = Self { pieces: Vec::new() };
        for message in messages {
            there.take(device, &message.values)?;
            for stream in &message.streams {
                there.take(device, stream)?;
            }
            if let Some(exponents) = &message.exponents {
                there.take(device, exponents)?;
            }
        }
        Ok(there)
    }

    fn take<I: Copy>(&mut self, device: &'static Device, items: &Guarded<I>) -> Result<()> {
        let bytes = size_of_val(&items[..]);
        let offset = items.address() as usize % Self::ALIGNMENT;
        let mut buffer = Buffer::new(device, offset + bytes)?;
        buffer.write(offset, items)?;
        self.pieces.push(Piece {
            here: items.address(),
            bytes,
            buffer,
            offset,
        });
        Ok(())
    }

    /// Where on the device is what lies at an address here.
    fn address(&self, here: u64) -> Result<u64> {
        if here == 0 {
            return Ok(0);
        }
        let piece = self.pieces.iter().find(|piece| {
            let end = piece.here + piece.bytes as u64;
            (piece.here..=end).contains(&here)
        });
        let piece = piece.ok_or("a job outside of its message")?;
        Ok(piece.buffer.address() + piece.offset as u64 + here - piece.here)
    }

    fn boxes<T: Scalar + Float>(
        &self,
        device: &'static Device,
        element: Element,
        dims: usize,
        messages: &[Message<T>],
    ) -> Result<Boxes> {
        let (mut jobs, blocks) = jobs(messages);
        for job in &mut jobs {
            *job = BoxJob {
                values: self.address(job.values)?,
                stream: self.address(job.stream)?,
                exponents: self.address(job.exponents)?,
                ..*job
            };
        }
        Boxes::new(device, element, dims as u8, (&jobs, blocks), messages.len())
    }

    fn bring_back<T: Copy>(&self, messages: &mut [Message<T>]) -> Result<()> {
        let mut pieces = self.pieces.iter();
        let mut next = || pieces.next().ok_or("a piece is missing");
        for message in messages {
            let piece = next()?;
            piece.buffer.read(piece.offset, &mut message.values)?;
            for stream in &mut message.streams {
                let piece = next()?;
                piece.buffer.read(piece.offset, stream)?;
            }
            if message.exponents.is_some() {
                next()?;
            }
        }
        Ok(())
    }
}
