//! `cargo bench --bench zfp [-- WORD...]`: libzfp, zfp-rs and our codec on each kind of machine, side
//! by side on one core, then two threads against one. Rows can be chosen by words that they contain,
//! such as `T f32 3-D rate=8 encode`; words such as `libzfp` or `Avx512` choose codecs, `runs=99` the
//! number of runs.
//!
//! Every figure is the median of several runs; the codecs take turns, so that a slow moment of the
//! machine hits all of them. One thread is timed by the processor time it gets, so that what else runs
//! on the machine counts less; two threads by the clock.

// A benchmark may stop where the library may not.
#![allow(clippy::expect_used)]

mod fields;
#[path = "../../tests/zfp_judge/mod.rs"]
mod zfp_judge;

use fields::Real;
use transpress::codec::zfp::{
    Arch, DecodeJob, EncodeJob, Mode, decode_on, encode_on, stream_words,
};
use zfp_judge::{Field, Libzfp, Scalar, largest_stream};
use zfp_rs::{ZfpBitStreamRef, ZfpBitStreamRefMut, ZfpConfig, ZfpField, ZfpFieldMut, ZfpScalar};

fn main() {
    let mut choice = Choice::default();
    for word in std::env::args().skip(1) {
        choice.add(word);
    }
    let codecs = choice.codecs();
    print!("{:32}", "GB/s (times the first)");
    for codec in &codecs {
        print!(" {:>14}", codec.name());
    }
    println!();
    for real in [fields::temperature(), fields::wind()] {
        println!("{}", real.origin);
        rows::<f32>(&real, &codecs, &choice);
        rows::<f64>(&real, &codecs, &choice);
    }
}

/// What the command line asks for.
#[derive(Default)]
struct Choice {
    runs: Option<usize>,
    codecs: Vec<String>,
    rows: Vec<String>,
}

impl Choice {
    fn add(&mut self, word: String) {
        if let Some(runs) = word.strip_prefix("runs=") {
            self.runs = runs.parse().ok();
        } else if all_codecs().iter().any(|codec| codec.name() == word) {
            self.codecs.push(word);
        } else if !word.starts_with('-') {
            self.rows.push(word);
        }
    }

    fn codecs(&self) -> Vec<Codec> {
        let mut codecs = all_codecs();
        codecs.retain(|codec| self.codecs.is_empty() || self.codecs.contains(&codec.name()));
        codecs
    }

    fn wants(&self, row: &str) -> bool {
        let has = |word: &String| row.split(' ').any(|part| part == word);
        self.rows.iter().all(has)
    }
}

fn all_codecs() -> Vec<Codec> {
    let ours = Arch::all().into_iter().map(|arch| Codec::Ours(arch, 1));
    [Codec::Libzfp, Codec::ZfpRs]
        .into_iter()
        .chain(ours)
        .collect()
}

fn rows<T: Scalar + ZfpScalar>(real: &Real, codecs: &[Codec], choice: &Choice) {
    let values: Vec<T> = real.values.iter().map(|&v| T::of(v.into())).collect();
    let [nx, ny, nz] = real.extents;
    for extents in [&[nx * ny * nz][..], &[nx, ny * nz], &[nx, ny, nz]] {
        for rate in [8, 16] {
            let (bits, dims) = (8 * size_of::<T>(), extents.len());
            let name = format!("{} f{bits} {dims}-D rate={rate}", real.name);
            let wanted = ["encode", "decode", "threads"].map(|what| {
                let row = format!("{name} {what}");
                choice.wants(&row).then_some(row)
            });
            if wanted.iter().all(Option::is_none) {
                continue;
            }
            let mode = Mode::Rate {
                block_bits: rate << (2 * dims),
            };
            let field = Field::contiguous(extents, values.clone());
            let mut bench = Bench::new(field, mode, choice.runs.unwrap_or(7));
            let [encode, decode, threads] = wanted;
            if let Some(row) = encode {
                print_row(
                    &row,
                    &bench.medians(codecs, cpu_seconds, Bench::encode),
                    bench.bytes(),
                );
            }
            if let Some(row) = decode {
                print_row(
                    &row,
                    &bench.medians(codecs, cpu_seconds, Bench::decode),
                    bench.bytes(),
                );
            }
            if let Some(row) = threads {
                bench.threads(&row);
            }
        }
    }
}

fn print_row(name: &str, seconds: &[f64], bytes: usize) {
    print!("{name:32}");
    for time in seconds {
        let speed = format!("{:.3}", bytes as f64 / time / 1e9);
        print!(" {speed:>6} {:>7}", format!("{:.2}x", seconds[0] / time));
    }
    println!();
}

fn cpu_seconds() -> f64 {
    seconds(libc::CLOCK_THREAD_CPUTIME_ID)
}

fn wall_seconds() -> f64 {
    seconds(libc::CLOCK_MONOTONIC)
}

fn seconds(clock: libc::clockid_t) -> f64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is writable.
    unsafe { libc::clock_gettime(clock, &mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

#[derive(Clone, Copy)]
enum Codec {
    Libzfp,
    ZfpRs,
    Ours(Arch, usize),
}

impl Codec {
    fn name(self) -> String {
        match self {
            Codec::Libzfp => "libzfp".into(),
            Codec::ZfpRs => "zfp-rs".into(),
            Codec::Ours(arch, _) => format!("{arch:?}"),
        }
    }
}

struct Bench<T> {
    runs: usize,
    field: Field<T>,
    back: Field<T>,
    mode: Mode,
    words: Vec<u64>,
}

impl<T: Scalar + ZfpScalar> Bench<T> {
    fn new(field: Field<T>, mode: Mode, runs: usize) -> Self {
        let words = vec![0; largest_stream(&field.grid, mode)];
        let back = field.filled(T::of(0.0));
        let mut bench = Bench {
            runs,
            field,
            back,
            mode,
            words,
        };
        bench.encode(Codec::Libzfp);
        bench
    }

    fn bytes(&self) -> usize {
        size_of::<T>() * self.field.values.len()
    }

    /// Median seconds of each codec.
    fn medians(
        &mut self,
        codecs: &[Codec],
        clock: fn() -> f64,
        run: fn(&mut Self, Codec),
    ) -> Vec<f64> {
        let mut times = vec![Vec::new(); codecs.len()];
        for _ in 0..self.runs {
            for (codec, times) in codecs.iter().zip(&mut times) {
                let start = clock();
                run(self, *codec);
                times.push(clock() - start);
            }
        }
        let median = |mut times: Vec<f64>| {
            times.sort_by(f64::total_cmp);
            times[times.len() / 2]
        };
        times.into_iter().map(median).collect()
    }

    fn threads(&mut self, name: &str) {
        let codecs = [1, 2].map(|threads| Codec::Ours(Arch::best(), threads));
        let encode = self.medians(&codecs, wall_seconds, Self::encode);
        let decode = self.medians(&codecs, wall_seconds, Self::decode);
        println!(
            "{name:32} two threads against one: encode {:.2}x, decode {:.2}x",
            encode[0] / encode[1],
            decode[0] / decode[1]
        );
    }

    fn config(&self) -> ZfpConfig {
        let Mode::Rate { block_bits } = self.mode else {
            unreachable!("the benchmark runs at fixed rate");
        };
        ZfpConfig::expert(block_bits, block_bits, 64, -1074).expect("a valid rate")
    }

    fn encode(&mut self, codec: Codec) {
        let (mode, grid) = (self.mode, self.field.grid);
        match codec {
            Codec::Libzfp => {
                Libzfp::new(self.field.pointer(), &grid, mode, &self.words).compress();
            }
            Codec::ZfpRs => {
                let config = self.config();
                let field =
                    ZfpField::new_strided(&self.field.values, extents(&grid), strides(&grid));
                let field = field.expect("a valid field");
                ZfpBitStreamRefMut::from_words(&mut self.words)
                    .compress(&config, &field)
                    .expect("room");
            }
            Codec::Ours(arch, threads) => {
                let job = EncodeJob {
                    source: self.field.pointer(),
                    grid,
                    stream: self.words.as_mut_ptr(),
                    words: self.words.len(),
                    mode,
                };
                // SAFETY: the grid is the whole of `field`, the stream the whole of `words`.
                unsafe { encode_on(arch, &[job], threads) };
            }
        }
    }

    fn decode(&mut self, codec: Codec) {
        let (mode, grid) = (self.mode, self.field.grid);
        match codec {
            Codec::Libzfp => {
                Libzfp::new(self.back.pointer(), &grid, mode, &self.words).decompress();
            }
            Codec::ZfpRs => {
                let config = self.config();
                let (extents, strides) = (extents(&grid), strides(&grid));
                let field = ZfpFieldMut::new_strided(&mut self.back.values, extents, strides);
                ZfpBitStreamRef::from_words(&self.words)
                    .decompress(&config, &mut field.expect("a valid field"))
                    .expect("a whole stream");
            }
            Codec::Ours(arch, threads) => {
                let Mode::Rate { block_bits } = mode else {
                    unreachable!("the benchmark runs at fixed rate");
                };
                let job = DecodeJob {
                    target: self.back.values.as_mut_ptr(),
                    grid,
                    stream: self.words.as_ptr(),
                    words: stream_words(&grid, block_bits),
                    mode,
                    segments: None,
                };
                // SAFETY: the grid is the whole of `back`, the stream lies in `words`.
                unsafe { decode_on(arch, &[job], threads) };
            }
        }
    }
}

/// As zfp-rs takes them: unused axes have extent 0.
fn extents(grid: &transpress::codec::zfp::Grid) -> [usize; 4] {
    std::array::from_fn(|axis| {
        if axis < grid.dims.into() {
            grid.extents[axis]
        } else {
            0
        }
    })
}

fn strides(grid: &transpress::codec::zfp::Grid) -> [isize; 4] {
    std::array::from_fn(|axis| {
        if axis < grid.dims.into() {
            grid.strides[axis]
        } else {
            0
        }
    })
}
