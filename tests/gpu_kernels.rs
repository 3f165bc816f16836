//! The kernels of `src/codec/cuda/kernels`, run on this machine: the CPU codec's and libzfp's bits and values.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "gpu/boxes.rs"]
mod boxes;
#[path = "gpu/emulation/mod.rs"]
mod emulation;
#[path = "gpu/guarded.rs"]
mod guarded;
#[path = "gpu/random.rs"]
mod random;
mod zfp_judge;

use boxes::{LOOKS, Look, Message, jobs, places, value};
use guarded::Guarded;
use random::Random;
use std::process::Command;
use transpress::codec::cuda::kernels::{
    FieldsJob, GatherJob, Kernel, SampledError, Span, Survey, Tally, ptx,
};
use transpress::codec::zfp::{self, Arch, EncodeJob, Grid, Mode};
use transpress::codec::{Bits, Coding, Encode, Float, Guard, Item, Place, encode};
use transpress::layout::Kind;
use zfp_judge::{Field, Scalar, our_stream, our_values, their_stream, their_values};

/// A value type of both the codec and its judges.
trait Number: Scalar + Float {}
impl<T: Scalar + Float> Number for T {}

fn each_case(cases: u64, mut test: impl FnMut(u64, &mut Random)) {
    for seed in 0..cases {
        test(seed, &mut Random(seed * 0x1234_5678_9abc));
    }
}

/// Up to five messages for one launch.
fn messages<T: Number>(dims: usize, random: &mut Random) -> Vec<Message<T>> {
    (0..1 + random.below(5))
        .map(|_| {
            let look = LOOKS[random.below(LOOKS.len() as u64) as usize];
            Message::new(dims, look, random)
        })
        .collect()
}

/// Which messages had values that are not finite.
fn run_encode<T: Number>(dims: usize, messages: &mut [Message<T>], order: u32) -> Vec<u32> {
    let (jobs, blocks) = jobs(messages);
    let jobs = Guarded::new(&jobs, true);
    let refused = Guarded::new(&vec![0u32; messages.len()], true);
    let parameters = [
        jobs.address(),
        jobs.len() as u64,
        blocks.into(),
        refused.address(),
    ];
    let kernel = Kernel::Encode(T::ELEMENT, dims as u8);
    // SAFETY: the parameters of `Encode`, of boxes within the messages.
    unsafe { emulation::launch(kernel, jobs.len() as u32, blocks, order, &parameters) };
    refused.to_vec()
}

fn run_decode<T: Number>(dims: usize, messages: &mut [Message<T>], order: u32) {
    let (jobs, blocks) = jobs(messages);
    let jobs = Guarded::new(&jobs, true);
    let parameters = [jobs.address(), jobs.len() as u64, blocks.into()];
    let kernel = Kernel::Decode(T::ELEMENT, dims as u8);
    // SAFETY: the parameters of `Decode`, of boxes within the messages.
    unsafe { emulation::launch(kernel, jobs.len() as u32, blocks, order, &parameters) };
}

fn run_sample<T: Number>(
    dims: usize,
    messages: &mut [Message<T>],
    every: &[u32],
    order: u32,
) -> Vec<SampledError> {
    let (jobs, blocks) = jobs(messages);
    let jobs = Guarded::new(&jobs, true);
    let errors = Guarded::new(&vec![SampledError::default(); messages.len()], true);
    let parameters = [
        jobs.address(),
        jobs.len() as u64,
        every.as_ptr() as u64,
        errors.address(),
    ];
    let kernel = Kernel::Sample(T::ELEMENT, dims as u8);
    // SAFETY: the parameters of `Sample`, of boxes within the messages.
    unsafe { emulation::launch(kernel, jobs.len() as u32, blocks, order, &parameters) };
    errors.to_vec()
}

/// One box of a message as the judges take it.
fn field<T: Number>(values: &[T], first: usize, grid: Grid) -> Field<T> {
    Field {
        values: values.to_vec(),
        first,
        grid,
    }
}

fn same_streams<T: Number>(dims: usize, seed: u64, random: &mut Random) {
    let mut messages = messages::<T>(dims, random);
    let refused = run_encode(dims, &mut messages, seed as u32 % 5);
    for (index, message) in messages.iter().enumerate() {
        let mode = Mode::Rate {
            block_bits: message.block_bits,
        };
        let scaled = message.scaled();
        let mut nonfinite = 0;
        for (part, &(first, grid)) in message.boxes.iter().enumerate() {
            let field = field(&scaled, first, grid);
            let (expected, encoded) = our_stream(Arch::best(), &field, mode, 1);
            nonfinite += encoded.nonfinite_blocks;
            let what = || format!("seed {seed}, message {index}.{part}, {mode:?}, {grid:?}");
            assert_eq!(message.streams[part].len(), expected.len(), "{}", what());
            let differs = (message.streams[part].iter().zip(&expected)).position(|(a, b)| a != b);
            assert_eq!(differs, None, "word of the CPU's, {}", what());
            let is_defined = !matches!(message.look, Look::Nonfinite | Look::Subnormal);
            if is_defined && message.exponents.is_none() {
                let theirs = their_stream(&field, mode);
                assert_eq!(message.streams[part][..], theirs, "libzfp's, {}", what());
            }
        }
        assert_eq!(refused[index], u32::from(nonfinite > 0), "seed {seed}");
    }
}

/// Streams of the CPU's, or bytes that are none.
fn put_streams<T: Number>(message: &mut Message<T>, random: &mut Random) {
    let kind = random.below(4);
    for (part, &(first, grid)) in message.boxes.iter().enumerate() {
        let stream = &mut message.streams[part];
        if kind < 2 {
            let mode = Mode::Rate {
                block_bits: message.block_bits,
            };
            let field = field(&message.values, first, grid);
            stream.copy_from_slice(&our_stream(Arch::best(), &field, mode, 1).0);
        }
        for word in stream.iter_mut() {
            match kind {
                1 if random.below(3) == 0 => *word ^= 1 << random.below(64),
                // Few ones make long runs of zeros, and many ones long codes.
                2 => *word = random.next() & random.next() & random.next(),
                3 => *word = random.next() | random.next(),
                _ => {}
            }
        }
    }
}

fn same_values<T: Number>(dims: usize, seed: u64, random: &mut Random) {
    let mut messages = messages::<T>(dims, random);
    for message in &mut messages {
        put_streams(message, random);
        if let Some(exponents) = message.exponents.as_mut().filter(|_| random.below(3) == 0) {
            exponents.fill_with(|| random.next() as i16);
        }
    }
    let before: Vec<Vec<T>> = messages.iter().map(|m| m.values.to_vec()).collect();
    run_decode(dims, &mut messages, seed as u32 % 5);
    for (index, (message, before)) in messages.iter().zip(before).enumerate() {
        let mode = Mode::Rate {
            block_bits: message.block_bits,
        };
        let mut expected = before;
        for (part, &(first, grid)) in message.boxes.iter().enumerate() {
            let blank = field(&expected, first, grid);
            let words = &message.streams[part];
            let (decoded, whole) = our_values(Arch::best(), words, &blank, mode, 1);
            assert!(whole);
            let theirs = their_values(words, &blank, mode);
            assert_eq!(
                decoded.bits(),
                theirs.bits(),
                "seed {seed}: the judges disagree"
            );
            expected = decoded.values;
            if message.exponents.is_some() {
                scale_back(message, first, grid, &mut expected);
            }
        }
        let differs = (message.values.iter().zip(&expected))
            .position(|(a, b)| Float::bits(*a) != Float::bits(*b));
        let what = || {
            format!(
                "seed {seed}, message {index}, {mode:?}, {:?}",
                message.boxes
            )
        };
        assert_eq!(differs, None, "value of the CPU's, {}", what());
    }
}

/// As the CPU does after decoding.
fn scale_back<T: Number>(message: &Message<T>, first: usize, grid: Grid, values: &mut [T]) {
    let limit = if size_of::<T>() == 4 { 160 } else { 1100 };
    for (_, offset) in places(&grid) {
        let index = (first as isize + offset) as usize;
        let exponent = message.exponent(index).clamp(-limit, limit);
        values[index] = values[index].times_power_of_two(exponent);
    }
}

fn add(tally: &mut Tally, value: f64, back: f64) {
    tally.difference += (value - back) * (value - back);
    tally.norm += value * value;
    tally.values += 1;
}

fn assert_close(ours: &Tally, expected: &Tally, what: &str) {
    let close =
        |a: f64, b: f64| a == b || (a - b).abs() <= 1e-12 * b.abs() || a.is_nan() && b.is_nan();
    assert_eq!(ours.values, expected.values, "{what}");
    assert!(
        close(ours.difference, expected.difference),
        "{what}: {ours:?} {expected:?}"
    );
    assert!(
        close(ours.norm, expected.norm),
        "{what}: {ours:?} {expected:?}"
    );
}

fn same_sample<T: Number>(dims: usize, seed: u64, random: &mut Random) {
    let mut messages = messages::<T>(dims, random);
    run_encode(dims, &mut messages, 0);
    let every: Vec<u32> = messages
        .iter()
        .map(|_| 1 + 2 * random.below(6) as u32)
        .collect();
    let errors = run_sample(dims, &mut messages, &every, seed as u32 % 5);
    for (index, message) in messages.iter().enumerate() {
        let scaled = message.scaled();
        let mut expected = SampledError::default();
        for (part, &(first, grid)) in message.boxes.iter().enumerate() {
            let job = EncodeJob {
                source: &scaled[first],
                grid,
                stream: message.streams[part].as_ptr().cast_mut(),
                words: message.streams[part].len(),
                mode: Mode::Rate {
                    block_bits: message.block_bits,
                },
            };
            let visit = |row: zfp::Row<T>| {
                for (offset, value, back) in row.values() {
                    let (value, back) = (value.to_f64(), back.to_f64());
                    add(&mut expected.as_coded, value, back);
                    if message.exponents.is_some() {
                        let scale = 2f64.powi(message.exponent((first as isize + offset) as usize));
                        add(&mut expected.as_given, value * scale, back * scale);
                    }
                }
            };
            // SAFETY: the box lies inside of the scaled values.
            unsafe { zfp::sample_rows(&job, every[index] as usize, visit) };
        }
        let what = format!("seed {seed}, message {index}, {:?}", message.look);
        assert_close(&errors[index].as_coded, &expected.as_coded, &what);
        assert_close(&errors[index].as_given, &expected.as_given, &what);
    }
}

fn of_all_shapes(cases: u64, test: [fn(usize, u64, &mut Random); 2]) {
    for (dims, test) in [1, 2, 3]
        .into_iter()
        .flat_map(|dims| test.map(|test| (dims, test)))
    {
        each_case(cases, |seed, random| test(dims, seed, random));
    }
}

#[test]
fn streams_are_those_of_the_cpu_and_of_libzfp() {
    of_all_shapes(150, [same_streams::<f32>, same_streams::<f64>]);
}

#[test]
fn values_are_those_of_the_cpu_whatever_the_stream() {
    of_all_shapes(150, [same_values::<f32>, same_values::<f64>]);
}

#[test]
fn sampled_errors_are_those_of_the_cpu() {
    of_all_shapes(40, [same_sample::<f32>, same_sample::<f64>]);
}

/// Messages of values next to each other, some of them empty, and their spans.
fn spans<T: Number>(random: &mut Random) -> (Vec<Guarded<T>>, Vec<Span>, u32) {
    let mut chunks = 0;
    let messages: Vec<Guarded<T>> = (0..1 + random.below(6))
        .map(|_| {
            let count = match random.below(4) {
                0 => random.below(9),
                1 => random.below(100),
                _ => random.below(40_000),
            };
            let look = LOOKS[random.below(LOOKS.len() as u64) as usize];
            let is_whole = random.below(2) == 0;
            let values: Vec<T> = (0..count)
                .map(|i| {
                    let value: T = value(look, [i as usize, 0, 0], random);
                    let whole: f64 = value.into();
                    if is_whole {
                        T::of(whole.trunc())
                    } else {
                        value
                    }
                })
                .collect();
            Guarded::new(&values, random.below(2) == 0)
        })
        .collect();
    let spans = messages
        .iter()
        .map(|values| {
            let span = Span {
                values: values.address(),
                count: values.len() as u64,
                first_chunk: chunks,
                unused: 0,
            };
            chunks += Span::chunks(span.count) as u32;
            span
        })
        .collect();
    (messages, spans, chunks)
}

fn same_survey<T: Number>(seed: u64, random: &mut Random)
where
    i64: From<T::Order>,
{
    let (messages, spans, chunks) = spans::<T>(random);
    let spans = Guarded::new(&spans, true);
    let surveys = Guarded::new(&vec![Survey::NOTHING; spans.len()], true);
    let count = spans.len() as u32;
    let parameters = [spans.address(), count.into(), surveys.address()];
    // SAFETY: the parameters of `Survey`.
    unsafe {
        emulation::launch(
            Kernel::Survey(T::ELEMENT),
            count,
            chunks,
            seed as u32 % 5,
            &parameters,
        )
    };
    for (survey, values) in surveys.iter().zip(&messages) {
        let order = |value: &T| i64::from(value.order());
        let wide = |value: &T| -> f64 { (*value).into() };
        let expected = Survey {
            lowest: values.iter().map(order).min().unwrap_or(i64::MAX),
            highest: values.iter().map(order).max().unwrap_or(i64::MIN),
            nonzero: values.iter().filter(|value| wide(value) != 0.0).count() as u64,
            whole: values
                .iter()
                .all(|value| wide(value).trunc() == wide(value))
                .into(),
            unused: 0,
        };
        assert_eq!(*survey, expected, "seed {seed}");
    }
}

fn same_counts<T: Number>(seed: u64, random: &mut Random) {
    let (messages, spans, chunks) = spans::<T>(random);
    let spans = Guarded::new(&spans, true);
    let patterns: Vec<[u64; 2]> = messages
        .iter()
        .map(|values| {
            [0, 1].map(|_| match values.len() as u64 {
                0 => random.next(),
                length => Float::bits(values[random.below(length) as usize]),
            })
        })
        .collect();
    let patterns = Guarded::new(&patterns, true);
    let counts = Guarded::new(&vec![[0u64; 2]; spans.len()], true);
    let count = spans.len() as u32;
    let parameters = [
        spans.address(),
        count.into(),
        patterns.address(),
        counts.address(),
    ];
    // SAFETY: the parameters of `Count`.
    unsafe {
        emulation::launch(
            Kernel::Count(T::ELEMENT),
            count,
            chunks,
            seed as u32 % 5,
            &parameters,
        )
    };
    for ((found, patterns), values) in counts.iter().zip(patterns.iter()).zip(&messages) {
        let times = |pattern: u64| {
            values
                .iter()
                .filter(|v| Float::bits(**v) == pattern)
                .count()
        };
        assert_eq!(
            *found,
            patterns.map(|pattern| times(pattern) as u64),
            "seed {seed}"
        );
    }
}

fn same_gathered<T: Number>(seed: u64, random: &mut Random) {
    let (messages, ..) = spans::<T>(random);
    let samples: Vec<(GatherJob, Guarded<T>)> = messages
        .iter()
        .map(|values| {
            let width = 1 + random.below(2) as u32;
            let step = 1 + random.below(40);
            let items = (values.len() as u64 / u64::from(width)).div_ceil(step) as u32;
            let out = Guarded::new(&vec![T::of(0.5); (items * width) as usize], true);
            let job = GatherJob {
                values: values.address(),
                out: out.address(),
                step,
                items,
                width,
            };
            (job, out)
        })
        .collect();
    let jobs: Vec<GatherJob> = samples.iter().map(|(job, _)| *job).collect();
    let jobs = Guarded::new(&jobs, true);
    let count = jobs.len() as u32;
    let parameters = [jobs.address(), count.into()];
    // SAFETY: the parameters of `Gather`.
    unsafe {
        emulation::launch(
            Kernel::Gather(T::ELEMENT),
            count,
            0,
            seed as u32 % 5,
            &parameters,
        )
    };
    for ((job, out), values) in samples.iter().zip(&messages) {
        let expected = values
            .chunks_exact(job.width as usize)
            .step_by(job.step as usize)
            .flatten();
        let bits = |values: &[T]| -> Vec<u64> { values.iter().map(|v| Float::bits(*v)).collect() };
        let expected: Vec<T> = expected.copied().collect();
        assert_eq!(bits(out), bits(&expected), "seed {seed}");
    }
}

/// The exponents that the CPU's codec writes in front of a message with a field axis.
fn exponents_of<T: Number>(values: &[T], run: u32, fields: u32) -> Vec<i16> {
    let rest = values.len() as u32 / run / fields;
    let axes = vec![
        (Kind::Smooth, run),
        (Kind::Field, fields),
        (Kind::Smooth, rest),
    ];
    let mut payload = vec![0; 2 * values.len() + 64];
    let mut messages = [Encode {
        place: Place::HOST,
        on_device: None,
        coding: Coding::Zfp,
        item: Item::Float(T::ELEMENT),
        values: values.as_ptr().cast(),
        count: values.len(),
        axes: &axes,
        bits: Bits::Even,
        payload: &mut payload,
    }];
    // SAFETY: the message's values are borrowed.
    let encoded = unsafe { encode(&mut messages, Guard::OFF, |_| false, 1) };
    assert!(!encoded[0].unwrap().masked);
    let halves = payload
        .iter()
        .flat_map(|word| (0..4).map(move |i| (word >> (16 * i)) as i16));
    halves.take(fields as usize).collect()
}

/// A message of several fields, each of its own magnitude.
fn fields<T: Number>(run: u32, fields: u32, rest: u32, random: &mut Random) -> Vec<T> {
    let span = if size_of::<T>() == 4 { 30 } else { 250 };
    let scales: Vec<f64> = (0..fields)
        .map(|_| match random.below(6) {
            0 => 0.0,
            _ => 10f64.powi(random.below(2 * span) as i32 - span as i32),
        })
        .collect();
    (0..run * fields * rest)
        .map(|index| {
            let outlier = if random.below(300) == 0 { 1e6 } else { 1.0 };
            T::of(scales[(index / run % fields) as usize] * random.unit() * outlier)
        })
        .collect()
}

fn same_exponents<T: Number>(seed: u64, random: &mut Random) {
    let shapes: Vec<[u32; 3]> = (0..1 + random.below(4))
        .map(|_| {
            [
                1 + random.below(300),
                1 + random.below(9),
                1 + random.below(20),
            ]
            .map(|n| n as u32)
        })
        .collect();
    let messages: Vec<Vec<T>> = (shapes.iter())
        .map(|&[run, count, rest]| fields(run, count, rest, random))
        .collect();
    let mut first_field = 0;
    let outs: Vec<Guarded<i16>> = shapes
        .iter()
        .map(|shape| Guarded::new(&vec![-1; shape[1] as usize], true))
        .collect();
    let jobs: Vec<FieldsJob> = (messages.iter().zip(&shapes).zip(&outs))
        .map(|((values, &[run, fields, _]), out)| {
            first_field += fields;
            FieldsJob {
                values: values.as_ptr() as u64,
                count: values.len() as u64,
                exponents: out.address(),
                run,
                fields,
                first_field: first_field - fields,
                unused: 0,
            }
        })
        .collect();
    let jobs = Guarded::new(&jobs, true);
    let count = jobs.len() as u32;
    let parameters = [jobs.address(), count.into()];
    let kernel = Kernel::Exponents(T::ELEMENT);
    // SAFETY: the parameters of `Exponents`.
    unsafe { emulation::launch(kernel, count, first_field, seed as u32 % 5, &parameters) };
    for ((values, &[run, fields, _]), out) in messages.iter().zip(&shapes).zip(&outs) {
        assert_eq!(
            out.to_vec(),
            exponents_of(values, run, fields),
            "seed {seed}"
        );
    }
}

#[test]
fn surveys_counts_samples_and_exponents_are_the_cpus() {
    each_case(30, same_survey::<f32>);
    each_case(30, same_survey::<f64>);
    each_case(30, same_counts::<f32>);
    each_case(30, same_counts::<f64>);
    each_case(30, same_gathered::<f32>);
    each_case(30, same_gathered::<f64>);
    each_case(30, same_exponents::<f32>);
    each_case(30, same_exponents::<f64>);
}

/// All sources of the kernels, in the order of their names.
fn source_files() -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(emulation::sources()).unwrap();
    let mut files: Vec<_> = entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            path.extension()
                .is_some_and(|end| end == "cu" || end == "cuh")
        })
        .collect();
    files.sort();
    files
}

#[test]
fn the_ptx_is_that_of_the_sources() {
    let digest = source_files()
        .iter()
        .flat_map(|path| std::fs::read(path).unwrap())
        .fold(0xcbf2_9ce4_8422_2325u64, |value, byte| {
            (value ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
    let ptx = ptx().to_str().unwrap();
    let first = ptx.lines().next().unwrap();
    assert_eq!(
        first,
        format!("// FNV-1a of the sources: {digest:016x}"),
        "run src/codec/cuda/kernels/build-ptx"
    );
}

#[test]
fn the_ptx_has_every_kernel() {
    let ptx = ptx().to_str().unwrap();
    for element in [
        transpress::codec::Element::F32,
        transpress::codec::Element::F64,
    ] {
        let of_boxes = (1..=3).flat_map(|dims| {
            [
                Kernel::Encode(element, dims),
                Kernel::Decode(element, dims),
                Kernel::Sample(element, dims),
            ]
        });
        let others = [
            Kernel::Survey(element),
            Kernel::Count(element),
            Kernel::Gather(element),
            Kernel::Exponents(element),
        ];
        for kernel in of_boxes.chain(others) {
            let entry = format!(".visible .entry {}(", kernel.name().to_str().unwrap());
            let (_, body) = ptx.split_once(&entry).expect(&entry);
            let bounds = format!(".maxntid {}, 1, 1\n", kernel.threads());
            assert!(
                body[..body.find('{').unwrap()].contains(&bounds),
                "{entry} {bounds}"
            );
        }
    }
}

/// Needs the compiler, which PyPI has.
#[test]
fn the_ptx_can_be_built_again() {
    let script = emulation::sources().join("build-ptx");
    let target = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    let output = Command::new(script)
        .arg("--check")
        .env("CARGO_TARGET_DIR", target)
        .output()
        .expect("python3 is there");
    let said = String::from_utf8_lossy(&output.stderr);
    if output.status.code() == Some(3) {
        eprintln!("not built again: {said}");
        return;
    }
    assert!(output.status.success(), "{said}");
}
