//! The same bits and the same values as libzfp, on every kind of machine that this one is.

mod zfp_judge;

use proptest::prelude::*;
use transpress::codec::zfp::{
    Arch, DecodeJob, EncodeJob, Encoded, Grid, Mode, SEGMENTS, Segments, decode, decode_on, encode,
    encode_in_segments,
};
use zfp_judge::*;

/// What the values look like.
#[derive(Clone, Copy, Debug)]
enum Look {
    Smooth,
    Noise,
    Constant,
    /// Blocks of one value, and of zeros, among others.
    Plateaus,
    Zero,
    /// Any exponent from well above libzfp's limit for tiny blocks up to the largest.
    AnyExponent,
    /// Zeros and single values.
    Sparse,
    /// One ordinary value in each row of a block, the others subnormal.
    Subnormal,
}

const LOOKS: [Look; 8] = [
    Look::Smooth,
    Look::Noise,
    Look::Constant,
    Look::Plateaus,
    Look::Zero,
    Look::AnyExponent,
    Look::Sparse,
    Look::Subnormal,
];

/// A small generator, so that a failing case is a seed and not a page of numbers.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ x >> 31
    }
    /// In -1..1.
    fn unit(&mut self) -> f64 {
        (self.next() as i64) as f64 / (1u64 << 63) as f64
    }
    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }
}

fn value<T: Scalar>(look: Look, at: [usize; 3], seed: u64, random: &mut Random) -> T {
    let [x, y, z] = at.map(|i| i as f64);
    let is_float = size_of::<T>() == 4;
    match look {
        Look::Smooth => {
            T::of(250.0 * (0.1 * x + 0.2 * y).sin() + 30.0 * (0.3 * z - 0.05 * x * y).cos())
        }
        Look::Noise => T::of(random.unit() * 1e5),
        Look::Constant => T::of(-7.25 - (seed % 5) as f64),
        Look::Plateaus => {
            let block = at
                .iter()
                .fold(seed, |all, i| (all << 20).wrapping_add((i / 4) as u64));
            let mut level = Random(block);
            match level.below(4) {
                0 => value(Look::Smooth, at, seed, random),
                1 => T::of(0.0),
                _ => T::of(1e3 * level.unit()),
            }
        }
        Look::Zero => T::of(if seed & 1 == 0 { 0.0 } else { -0.0 }),
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
        Look::Subnormal if at[0] & 3 == 0 => T::of(1e-20 * random.unit()),
        Look::Subnormal => T::from_bits(random.below(1 << if is_float { 20 } else { 50 })),
    }
}

/// Strides that keep the values of a grid apart: axes in any order of memory, in either direction,
/// with gaps.
fn strides(extents: &[usize], random: &mut Random) -> ([isize; 3], usize, usize) {
    let mut order: Vec<usize> = (0..extents.len()).collect();
    if random.below(3) == 0 {
        order.sort_by_key(|_| random.next());
    }
    let (mut strides, mut first, mut next) = ([0; 3], 0, 1 + random.below(2) * random.below(3));
    for axis in order {
        let stride = next as isize;
        let reach = (extents[axis] as u64 - 1) * next;
        if random.below(4) == 0 {
            strides[axis] = -stride;
            first += reach as usize;
        } else {
            strides[axis] = stride;
        }
        next = reach + next + random.below(3) * random.below(3);
    }
    (strides, first, next as usize + 3)
}

fn field<T: Scalar>(extents: &[usize], look: Look, strided: bool, seed: u64) -> Field<T> {
    let mut random = Random(seed);
    let mut grid = Grid {
        dims: extents.len() as u8,
        extents: [1; 3],
        strides: [1; 3],
    };
    grid.extents[..extents.len()].copy_from_slice(extents);
    let (first, length) = if strided {
        let (strides, first, length) = strides(extents, &mut random);
        grid.strides = strides;
        (first, length)
    } else {
        let values = Field::contiguous(extents, vec![T::of(0.0); extents.iter().product()]);
        grid = values.grid;
        (0, values.values.len())
    };
    let mut values = vec![T::of(f64::NAN); length];
    let [nx, ny, nz] = grid.extents;
    for z in 0..nz {
        for y in 0..ny {
            for x in 0..nx {
                let [sx, sy, sz] = grid.strides;
                let offset = x as isize * sx + y as isize * sy + z as isize * sz;
                values[(first as isize + offset) as usize] =
                    value(look, [x, y, z], seed, &mut random);
            }
        }
    }
    Field {
        values,
        first,
        grid,
    }
}

fn mode<T: Scalar>(dims: usize) -> impl Strategy<Value = Mode> {
    let size = 1u32 << (2 * dims);
    let most = size * 8 * size_of::<T>() as u32;
    prop_oneof![
        3 => (T::HEADER_BITS..=most).prop_map(|block_bits| Mode::Rate { block_bits }),
        1 => (T::HEADER_BITS..=T::HEADER_BITS + 70).prop_map(|block_bits| Mode::Rate { block_bits }),
        1 => (1..=most / 64 + 1).prop_map(|words| Mode::Rate { block_bits: 64 * words }),
        2 => (-40.0..10.0).prop_map(|e| Mode::Accuracy { tolerance: f64::powf(10.0, e) }),
        1 => Just(Mode::Accuracy { tolerance: 0.0 }),
        1 => (-1074i32..1000).prop_map(|exponent| Mode::Bound { exponent, quiet: i16::MIN.into() }),
    ]
}

fn same_as_libzfp<T: Scalar>(field: &Field<T>, mode: Mode) -> Result<(), TestCaseError> {
    let theirs = their_stream(field, mode);
    let blank = field.filled(T::of(-123.0));
    let their_values = their_values(&theirs, &blank, mode).bits();
    for arch in Arch::all() {
        let (ours, encoded) = our_stream(arch, field, mode, 1);
        prop_assert!(!encoded.overflow && encoded.nonfinite_blocks == 0);
        prop_assert_eq!(ours.len(), theirs.len(), "{:?}: length of the stream", arch);
        let differs = ours.iter().zip(&theirs).position(|(a, b)| a != b);
        prop_assert_eq!(differs, None, "{:?}: first word that differs", arch);
        let (values, whole) = our_values(arch, &theirs, &blank, mode, 1);
        prop_assert!(whole);
        let differs = values
            .bits()
            .iter()
            .zip(&their_values)
            .position(|(a, b)| a != b);
        prop_assert_eq!(differs, None, "{:?}: first value that differs", arch);
    }
    Ok(())
}

/// Whatever the bytes: libzfp's values, if it may read zeros after the end.
fn hostile_as_libzfp<T: Scalar>(
    words: &[u64],
    blank: &Field<T>,
    mode: Mode,
) -> Result<(), TestCaseError> {
    let their_values = their_values(words, blank, mode).bits();
    for arch in Arch::all() {
        let (values, whole) = our_values(arch, words, blank, mode, 1);
        let Mode::Rate { .. } = mode else {
            let differs = values
                .bits()
                .iter()
                .zip(&their_values)
                .position(|(a, b)| a != b);
            prop_assert_eq!(differs, None, "{:?}: first value that differs", arch);
            continue;
        };
        if whole {
            let differs = values
                .bits()
                .iter()
                .zip(&their_values)
                .position(|(a, b)| a != b);
            prop_assert_eq!(differs, None, "{:?}: first value that differs", arch);
        }
    }
    Ok(())
}

/// Blocks that are left out are read by libzfp as zeros, and all others as if none had been.
fn quiet_blocks_are_zeros<T: Scalar>(
    field: &Field<T>,
    exponent: i32,
    quiet: i32,
) -> Result<(), TestCaseError> {
    let mode = Mode::Bound { exponent, quiet };
    let blank = field.filled(T::of(-123.0));
    let whole = their_values(&their_stream(field, mode), &blank, mode);
    let [nx, ny, nz] = field.grid.extents;
    let all =
        || (0..nz).flat_map(move |z| (0..ny).flat_map(move |y| (0..nx).map(move |x| [x, y, z])));
    let at = |[x, y, z]: [usize; 3]| x + nx * (y + ny * z);
    let block = |at: [usize; 3]| at.map(|i| i / 4);
    let mut loud = std::collections::HashSet::new();
    for place in all() {
        if field.values[at(place)].to_f64().abs() >= 2f64.powi(quiet) {
            loud.insert(block(place));
        }
    }
    for arch in Arch::all() {
        let (stream, _) = our_stream(arch, field, mode, 1);
        let values = their_values(&stream, &blank, mode).values;
        for place in all() {
            let expected = if loud.contains(&block(place)) {
                whole.values[at(place)]
            } else {
                T::of(0.0)
            };
            prop_assert_eq!(values[at(place)], expected, "{:?} at {:?}", arch, place);
        }
    }
    Ok(())
}

/// What is decoded of a stream whose parts are said to be these, and whether they are.
fn values_by_segments<T: Scalar>(
    arch: Arch,
    words: &[u64],
    blank: &Field<T>,
    mode: Mode,
    segments: Segments,
    threads: usize,
) -> (Vec<u64>, bool) {
    let mut values = blank.clone();
    let job = DecodeJob {
        target: &mut values.values[values.first],
        grid: values.grid,
        stream: words.as_ptr(),
        words: words.len(),
        mode,
        segments: Some(segments),
    };
    // SAFETY: the grid lies inside the field, and the stream in `words`.
    let whole = unsafe { decode_on(arch, &[job], threads) }[0];
    (values.bits(), whole)
}

/// A stream and its parts in so much room; nothing if that is too little.
fn in_segments<T: Scalar>(
    field: &Field<T>,
    mode: Mode,
    room: usize,
    threads: usize,
) -> Option<(Encoded, Segments, Vec<u64>)> {
    let mut words = vec![0; room];
    let job = EncodeJob {
        source: field.pointer(),
        grid: field.grid,
        stream: words.as_mut_ptr(),
        words: words.len(),
        mode,
    };
    // SAFETY: the grid lies inside the field, the stream in its words.
    let (encoded, segments) = unsafe { encode_in_segments(&job, threads) };
    words.truncate(encoded.words);
    (!encoded.overflow).then_some((encoded, segments, words))
}

/// A stream's parts, side by side: the stream as ever, and its values; and `lies` about them do no harm.
fn same_in_segments<T: Scalar>(
    field: &Field<T>,
    mode: Mode,
    lies: Segments,
) -> Result<(), TestCaseError> {
    let (expected, _) = our_stream(Arch::best(), field, mode, 1);
    let room = largest_stream(&field.grid, mode);
    let Some((encoded, segments, words)) = in_segments(field, mode, room, 1) else {
        return Err(TestCaseError::fail("it does not fit"));
    };
    prop_assert!(words == expected);
    let blank = field.filled(T::of(-123.0));
    let (plain, whole) = our_values(Arch::best(), &words, &blank, mode, 1);
    prop_assert!(whole);
    let mut wrong = None;
    for arch in Arch::all() {
        for threads in [1, 2, 3] {
            let by = |segments| values_by_segments(arch, &words, &blank, mode, segments, threads);
            let (values, whole) = by(segments);
            prop_assert!(
                whole,
                "{:?}, {} threads: {:?} {:?}",
                arch,
                threads,
                segments,
                encoded
            );
            prop_assert!(values == plain.bits(), "{:?}, {} threads", arch, threads);
            let lied = by(lies);
            prop_assert_eq!(lied.1, lies == segments);
            prop_assert!(*wrong.get_or_insert(lied.clone()) == lied, "{:?}", arch);
        }
    }
    Ok(())
}

/// Several jobs of either mode on several threads: what one thread makes of each alone.
fn same_on_threads<T: Scalar>(
    fields: &[Field<T>],
    modes: &[Mode],
    threads: usize,
) -> Result<(), TestCaseError> {
    let mut streams: Vec<Vec<u64>> = (fields.iter().zip(modes))
        .map(|(field, &mode)| vec![0; largest_stream(&field.grid, mode)])
        .collect();
    let jobs: Vec<EncodeJob<T>> = (fields.iter().zip(modes).zip(&mut streams))
        .map(|((field, &mode), stream)| EncodeJob {
            source: field.pointer(),
            grid: field.grid,
            stream: stream.as_mut_ptr(),
            words: stream.len(),
            mode,
        })
        .collect();
    // SAFETY: each grid lies inside its field, each stream in its words.
    let encoded = unsafe { encode(&jobs, threads) };
    let mut blanks: Vec<Field<T>> = fields
        .iter()
        .map(|field| field.filled(T::of(7.0)))
        .collect();
    let jobs: Vec<DecodeJob<T>> = (blanks.iter_mut().zip(modes).zip(&streams).zip(&encoded))
        .map(|(((blank, &mode), stream), encoded)| DecodeJob {
            target: &mut blank.values[blank.first],
            grid: blank.grid,
            stream: stream.as_ptr(),
            words: encoded.words,
            mode,
            segments: None,
        })
        .collect();
    // SAFETY: as above.
    let whole = unsafe { decode(&jobs, threads) };
    for (i, (field, &mode)) in fields.iter().zip(modes).enumerate() {
        let (alone, result) = our_stream(Arch::best(), field, mode, 1);
        prop_assert_eq!(encoded[i], result);
        prop_assert!(alone == streams[i][..result.words]);
        prop_assert!(whole[i]);
        let (values, _) = our_values(Arch::best(), &alone, &field.filled(T::of(7.0)), mode, 1);
        prop_assert!(values.bits() == blanks[i].bits());
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn streams_are_decoded_in_segments(
        extents in prop::collection::vec(1usize..30, 1..4),
        long in 1usize..60,
        look in prop::sample::select(&LOOKS[..]),
        strided in any::<bool>(),
        exponent in -30i32..10,
        bits in prop::array::uniform16(0u32..3000),
        huge in 0usize..2 * SEGMENTS,
        seed in any::<u64>(),
    ) {
        let mut extents = extents;
        extents[0] *= if extents.len() == 1 { 40 * long } else { long.div_ceil(8) };
        let mut lies = Segments(bits);
        if let Some(bits) = lies.0.get_mut(huge) {
            *bits = u32::MAX;
        }
        let mode = Mode::Bound { exponent, quiet: i16::MIN.into() };
        same_in_segments(&field::<f32>(&extents, look, strided, seed), mode, lies)?;
        same_in_segments(&field::<f64>(&extents, look, strided, seed), mode, lies)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn results_do_not_depend_on_threads(
        sizes in prop::collection::vec((100usize..400, 1usize..400, 1usize..4), 1..4),
        threads in 2usize..5,
        bits in 12u32..300,
        seed in any::<u64>(),
    ) {
        let fields: Vec<Field<f64>> = sizes
            .iter()
            .map(|&(nx, ny, nz)| field(&[nx, ny, nz], Look::Smooth, seed & 1 == 0, seed))
            .collect();
        let modes: Vec<Mode> = (0..fields.len())
            .map(|i| match (i as u64 + seed) % 2 {
                0 => Mode::Rate { block_bits: bits + i as u32 },
                _ => Mode::Accuracy { tolerance: 1e-3 },
            })
            .collect();
        same_on_threads(&fields, &modes, threads)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn segments_do_not_depend_on_threads(
        extents in (100usize..300, 200usize..400, 1usize..5),
        threads in 2usize..5,
        tolerance in prop::sample::select(&[1e-6, 1e-3, 1.0][..]),
        missing in prop::sample::select(&[0, 1, 1000][..]),
        seed in any::<u64>(),
    ) {
        let (nx, ny, nz) = extents;
        let field = field::<f32>(&[nx, ny, nz], Look::Smooth, seed & 1 == 0, seed);
        let mode = Mode::Accuracy { tolerance };
        let (encoded, ..) = in_segments(&field, mode, largest_stream(&field.grid, mode), 1).unwrap();
        let room = encoded.words.saturating_sub(missing);
        let expected = in_segments(&field, mode, room, 1);
        prop_assert_eq!(expected.is_some(), missing == 0);
        prop_assert!(in_segments(&field, mode, room, threads) == expected);
    }
}

/// The largest extents for each number of axes: rows of more blocks than are coded together.
const LONGEST: [usize; 3] = [200, 80, 40];

macro_rules! properties {
    ($name:ident, $type:ty, $dims:expr, $cases:expr) => {
        mod $name {
            use super::*;

            proptest! {
                #![proptest_config(ProptestConfig::with_cases($cases))]

                /// Blocks in a row are coded together, and whole words are written where they belong.
                #[test]
                fn long_rows_are_libzfps(
                    x in 60usize..=200,
                    rest in prop::array::uniform::<_, $dims>(1usize..=9),
                    look in prop::sample::select(&LOOKS[..]),
                    half_words in any::<bool>(),
                    seed in any::<u64>(),
                    mode in mode::<$type>($dims),
                ) {
                    let mut extents = rest;
                    extents[0] = x;
                    let mode = match mode {
                        Mode::Rate { block_bits } if half_words => Mode::Rate {
                            block_bits: block_bits.next_multiple_of(32),
                        },
                        mode => mode,
                    };
                    same_as_libzfp(&field::<$type>(&extents, look, false, seed), mode)?;
                }

                #[test]
                fn streams_and_values_are_libzfps(
                    extents in prop::array::uniform::<_, $dims>(1..=LONGEST[$dims - 1]),
                    look in prop::sample::select(&LOOKS[..]),
                    strided in any::<bool>(),
                    seed in any::<u64>(),
                    mode in mode::<$type>($dims),
                ) {
                    same_as_libzfp(&field::<$type>(&extents, look, strided, seed), mode)?;
                }

                #[test]
                fn blocks_can_be_left_out(
                    extents in prop::array::uniform::<_, $dims>(1usize..=20),
                    look in prop::sample::select(&LOOKS[..]),
                    seed in any::<u64>(),
                    quiet in -30i32..20,
                    finer in -2i32..30,
                ) {
                    let field = field::<$type>(&extents, look, false, seed);
                    quiet_blocks_are_zeros(&field, quiet - finer, quiet)?;
                }

                #[test]
                fn hostile_streams_decode_as_in_libzfp(
                    extents in prop::array::uniform::<_, $dims>(1usize..=13),
                    words in prop::collection::vec(any::<u64>(), 0..200),
                    sparse in any::<bool>(),
                    seed in any::<u64>(),
                    mode in mode::<$type>($dims),
                ) {
                    let mut words = words;
                    if sparse {
                        let mut random = Random(seed);
                        for word in &mut words {
                            *word &= random.next() & random.next() & random.next();
                        }
                    }
                    let blank = field::<$type>(&extents, Look::Zero, true, seed);
                    hostile_as_libzfp(&words, &blank, mode)?;
                }
            }
        }
    };
}

properties!(f32_1d, f32, 1, 3000);
properties!(f32_2d, f32, 2, 2000);
properties!(f32_3d, f32, 3, 800);
properties!(f64_1d, f64, 1, 3000);
properties!(f64_2d, f64, 2, 2000);
properties!(f64_3d, f64, 3, 800);
