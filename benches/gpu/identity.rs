//! Random messages through the codec: what a GPU sends and receives is what the CPU does.

use crate::buffer::Buffer;
use crate::messages::{Message, guard};
use crate::options::Options;
use crate::random::Random;
use crate::{Result, row};
use std::time::Instant;
use transpress::codec::cuda::Device;
use transpress::codec::{
    Bits, Coder, Coding, Decode, Encode, Encoded, Float, Guard, Item, Memory, Place, Refusal,
    decode, encode,
};
use transpress::layout::Axes;

/// Values before and behind a buffer, whose bytes nobody may change.
const MARGIN: usize = 64;
const UNTOUCHED: u8 = 0xa5;
const UNTOUCHED_WORD: u64 = u64::from_ne_bytes([UNTOUCHED; 8]);

#[derive(Default)]
struct Tally {
    cases: usize,
    encoded: usize,
    received: usize,
    to_decode: usize,
    wrong: Vec<String>,
}

pub fn run(device: &'static Device, options: &Options) -> Result<bool> {
    let mut random = Random(options.seed);
    let mut tally = Tally::default();
    let started = Instant::now();
    while tally.cases < options.cases && started.elapsed() < options.time {
        let seed = random.next();
        let before = tally.wrong.len();
        match random.below(2) {
            0 => call::<f32>(device, &mut Random(seed), &mut tally)?,
            _ => call::<f64>(device, &mut Random(seed), &mut tally)?,
        }
        for said in &mut tally.wrong[before..] {
            *said = format!("seed {seed}: {said}");
        }
    }
    for said in tally.wrong.iter().take(10) {
        eprintln!("identity: {said}");
    }
    let figures = format!(
        "{} messages, {} coded on the GPU; {} received, {} for it to decode; {} differ",
        tally.cases,
        tally.encoded,
        tally.received,
        tally.to_decode,
        tally.wrong.len()
    );
    // Where most are left to the CPU, this says nothing of the GPU.
    let is_telling = 3 * tally.encoded >= tally.cases && 3 * tally.to_decode >= tally.cases;
    Ok(row(
        "codec's bits",
        tally.wrong.is_empty() && is_telling,
        figures,
    ))
}

/// All messages of a call, as a collective has them.
fn call<T: Float>(device: &'static Device, random: &mut Random, tally: &mut Tally) -> Result<()> {
    let messages: Vec<Message<T>> = (0..1 + random.below(6))
        .map(|_| Message::new(random))
        .collect();
    let guard = guard(random);
    let here = coded_here(&messages, guard);
    let there = coded_there(device, &messages, guard, random)?;
    for (index, (here, there)) in here.iter().zip(&there).enumerate() {
        tally.cases += 1;
        tally.encoded += usize::from(matches!(
            there.outcome,
            Ok(Encoded {
                coder: Coder::Gpu { .. },
                ..
            })
        ));
        if let Some(difference) = difference(here, there) {
            tally.wrong.push(format!("message {index}: {difference}"));
        }
    }
    let received: Vec<_> = (messages.iter().zip(&here))
        .filter_map(|(message, coded)| Received::of(message, coded, random))
        .collect();
    let expected = decoded_here::<T>(&received);
    let same = decoded_there(device, &received, &expected, random)?;
    for (index, (message, same)) in received.iter().zip(same).enumerate() {
        tally.received += 1;
        // The rest is the CPU's.
        tally.to_decode += usize::from(!message.masked);
        if !same {
            tally
                .wrong
                .push(format!("received message {index} differs"));
        }
    }
    Ok(())
}

/// What came of a message, and its payload.
struct Coded {
    outcome: std::result::Result<Encoded, Refusal>,
    payload: Vec<u64>,
}

fn coded_here<T: Float>(messages: &[Message<T>], guard: Guard) -> Vec<Coded> {
    let mut payloads: Vec<_> = messages
        .iter()
        .map(|message| vec![UNTOUCHED_WORD; message.words])
        .collect();
    let mut all: Vec<_> = (messages.iter().zip(&mut payloads))
        .map(|(message, payload)| {
            of(
                message,
                message.values.as_ptr().cast(),
                Place::HOST,
                payload,
            )
        })
        .collect();
    // SAFETY: the messages' values are borrowed.
    let outcomes = unsafe { encode(&mut all, guard, |_| true, 1) };
    drop(all);
    (outcomes.into_iter().zip(payloads))
        .map(|(outcome, payload)| Coded { outcome, payload })
        .collect()
}

fn of<'a, T: Float>(
    message: &'a Message<T>,
    values: *const u8,
    place: Place,
    payload: &'a mut [u64],
) -> Encode<'a> {
    Encode {
        coding: Coding::Zfp,
        item: Item::Float(T::ELEMENT),
        values,
        place,
        count: message.values.len(),
        axes: &message.axes,
        bits: Bits::Even,
        payload,
        on_device: None,
    }
}

/// With values on the device or here, and payloads that stay there or come back, as it comes.
fn coded_there<T: Float>(
    device: &'static Device,
    messages: &[Message<T>],
    guard: Guard,
    random: &mut Random,
) -> Result<Vec<Coded>> {
    let mut payloads: Vec<_> = messages
        .iter()
        .map(|message| vec![UNTOUCHED_WORD; message.words])
        .collect();
    let (mut all, mut sources, mut stays) = (Vec::new(), Vec::new(), Vec::new());
    for (message, payload) in messages.iter().zip(&mut payloads) {
        let mut place = Place {
            memory: Memory::Host,
            coder: Some(device),
        };
        let mut values = message.values.as_ptr().cast();
        if random.below(4) > 0 {
            place.memory = Memory::Gpu(device);
            let source = Framed::new(device, &message.values, random)?;
            values = source.pointer();
            sources.push(source);
        }
        let stay = match random.below(2) {
            0 => None,
            _ => Some(Framed::new(device, payload, random)?),
        };
        let mut encode = of(message, values, place, payload);
        encode.on_device = stay.as_ref().map(Framed::address);
        all.push(encode);
        stays.push(stay);
    }
    // SAFETY: values and payloads are in buffers that live until this returns.
    let outcomes = unsafe { encode(&mut all, guard, |_| true, 1) };
    drop(all);
    for ((outcome, payload), stay) in outcomes.iter().zip(&mut payloads).zip(&stays) {
        let coder = outcome.map(|encoded| encoded.coder);
        if let (Some(stay), Ok(Coder::Gpu { stays: true })) = (stay, coder) {
            *payload = stay.items(payload.len())?;
        }
    }
    let all_framed = stays
        .iter()
        .flatten()
        .all(|stay| stay.is_framed().unwrap_or(false));
    if !all_framed
        || !sources
            .iter()
            .all(|source| source.is_framed().unwrap_or(false))
    {
        return Err("bytes beside a buffer were written".into());
    }
    Ok((outcomes.into_iter().zip(payloads))
        .map(|(outcome, payload)| Coded { outcome, payload })
        .collect())
}

fn difference(here: &Coded, there: &Coded) -> Option<String> {
    let (one, other) = match (here.outcome, there.outcome) {
        (Ok(one), Ok(other)) => (one, other),
        (Err(Refusal::Guard(one)), Err(Refusal::Guard(other))) if are_close(one, other) => {
            return None;
        }
        (Err(one), Err(other)) if one == other => return None,
        (one, other) => return Some(format!("{one:?} and {other:?}")),
    };
    let error = |encoded: Encoded| encoded.error.unwrap_or(-1.0);
    let without = |encoded: Encoded| Encoded {
        error: None,
        coder: Coder::Cpu,
        ..encoded
    };
    if without(one) != without(other) || !are_close(error(one), error(other)) {
        return Some(format!("{one:?} and {other:?}"));
    }
    let word = (0..one.words).find(|&word| here.payload[word] != there.payload[word])?;
    Some(format!("word {word} of {} differs", one.words))
}

/// Sums are made in another order.
fn are_close(one: f64, other: f64) -> bool {
    one == other || (one - other).abs() <= 1e-9 * one.abs() || one.is_nan() && other.is_nan()
}

/// A message to be decoded.
struct Received<'a> {
    count: usize,
    axes: &'a Axes,
    masked: bool,
    payload: Vec<u64>,
}

static FLAT: Axes = Axes::new();

impl<'a> Received<'a> {
    /// As it was coded, or with a payload of noise.
    fn of<T>(message: &'a Message<T>, coded: &Coded, random: &mut Random) -> Option<Self> {
        let encoded = coded.outcome.ok()?;
        let mut payload = coded.payload[..encoded.words].to_vec();
        if !encoded.masked && random.below(6) == 0 {
            payload.fill_with(|| random.next() & random.next());
        }
        Some(Self {
            count: message.values.len(),
            axes: if encoded.flat { &FLAT } else { &message.axes },
            masked: encoded.masked,
            payload,
        })
    }

    fn decode<T: Float>(
        &self,
        values: *mut u8,
        place: Place,
        on_device: Option<u64>,
    ) -> Decode<'_> {
        Decode {
            coding: Coding::Zfp,
            item: Item::Float(T::ELEMENT),
            values,
            place,
            count: self.count,
            axes: self.axes,
            masked: self.masked,
            fitted: false,
            payload: &self.payload,
            on_device,
        }
    }
}

/// The bits of the values, or `None` where the payload cannot be decoded.
type Decoded<T> = Option<Vec<T>>;

fn decoded_here<T: Float>(messages: &[Received]) -> Vec<Decoded<T>> {
    let mut all: Vec<Vec<T>> = messages
        .iter()
        .map(|message| vec![T::default(); message.count])
        .collect();
    let decodes: Vec<_> = (messages.iter().zip(&mut all))
        .map(|(message, values)| message.decode::<T>(values.as_mut_ptr().cast(), Place::HOST, None))
        .collect();
    // SAFETY: the vectors have room for the values.
    let done = unsafe { decode(&decodes, 1) };
    drop(decodes);
    (done.into_iter().zip(all))
        .map(|(done, values)| done.then_some(values))
        .collect()
}

/// For each message, whether it becomes what it is to.
fn decoded_there<T: Float>(
    device: &'static Device,
    messages: &[Received],
    expected: &[Decoded<T>],
    random: &mut Random,
) -> Result<Vec<bool>> {
    let place = Place {
        memory: Memory::Gpu(device),
        coder: Some(device),
    };
    let (mut targets, mut payloads) = (Vec::new(), Vec::new());
    for message in messages {
        let blank = vec![T::from_bits(UNTOUCHED_WORD); message.count];
        targets.push(Framed::new(device, &blank, random)?);
        payloads.push(match random.below(2) {
            0 => None,
            _ => Some(Framed::new(device, &message.payload, random)?),
        });
    }
    let decodes: Vec<_> = (messages.iter().zip(&targets).zip(&payloads))
        .map(|((message, target), payload)| {
            let on_device = payload.as_ref().map(Framed::address);
            message.decode::<T>(target.pointer(), place, on_device)
        })
        .collect();
    // SAFETY: the targets have room for the values.
    let done = unsafe { decode(&decodes, 1) };
    (done.iter().zip(&targets).zip(expected))
        .map(|((&done, target), expected)| {
            let Some(expected) = expected else {
                return Ok(!done);
            };
            let values: Vec<T> = target.items(expected.len())?;
            let same = |(a, b): (&T, &T)| a.bits() == b.bits();
            Ok(done && values.iter().zip(expected).all(same) && target.is_framed()?)
        })
        .collect()
}

/// Items on the device at any place that their type allows, between bytes that are not to change.
struct Framed {
    buffer: Buffer,
    offset: usize,
    bytes: usize,
}

impl Framed {
    fn new<T: Copy>(device: &'static Device, items: &[T], random: &mut Random) -> Result<Self> {
        let bytes = size_of_val(items);
        let offset = MARGIN + size_of::<T>() * random.below(8) as usize;
        let mut buffer = Buffer::of(device, &vec![UNTOUCHED; offset + bytes + MARGIN])?;
        buffer.write(offset, items)?;
        Ok(Self {
            buffer,
            offset,
            bytes,
        })
    }

    fn address(&self) -> u64 {
        self.buffer.address() + self.offset as u64
    }

    fn pointer(&self) -> *mut u8 {
        self.buffer.pointer(self.offset)
    }

    fn items<T: Copy + Default>(&self, count: usize) -> Result<Vec<T>> {
        let mut items = vec![T::default(); count];
        self.buffer.read(self.offset, &mut items)?;
        Ok(items)
    }

    fn is_framed(&self) -> Result<bool> {
        let (mut before, mut behind) = (vec![0u8; self.offset], vec![0u8; MARGIN]);
        self.buffer.read(0, &mut before)?;
        self.buffer.read(self.offset + self.bytes, &mut behind)?;
        Ok(before.iter().chain(&behind).all(|&byte| byte == UNTOUCHED))
    }
}
