//! The variables, once: the reader, the error messages, `transpress --help` and the test of
//! docs/environment.md all draw on this table.

use std::ffi::OsStr;

use super::read::{self, Read};

/// What every variable begins with.
pub const PREFIX: &str = "TRANSPRESS_";

pub struct Variable {
    pub name: &'static str,
    /// The text that stands for an unset or empty variable; "" where unset has a meaning of its own.
    pub default: &'static str,
    /// Reads on after "accepted is".
    pub accepted: &'static str,
    /// Reads as a line of help.
    pub meaning: &'static str,
    /// Ranks of one communicator must not differ in it.
    pub same_on_every_rank: bool,
    pub(super) reader: Reader,
}

/// Who heeds a variable.
#[derive(Clone, Copy)]
pub(super) enum Reader {
    /// The library; `transpress run` has an option for it.
    Library(Read),
    /// `transpress run` alone.
    Command,
}

impl Variable {
    pub fn is_for_the_library(&self) -> bool {
        matches!(self.reader, Reader::Library(_))
    }

    /// The option of `transpress run`: `TRANSPRESS_MIN_BYTES` → `min-bytes`.
    pub fn option(&self) -> String {
        self.name[PREFIX.len()..]
            .to_ascii_lowercase()
            .replace('_', "-")
    }

    /// The default, or what to call the lack of one.
    pub fn default_text(&self) -> &'static str {
        match self.default {
            "" => "unset",
            text => text,
        }
    }
}

pub static VARIABLES: &[Variable] = &[
    Variable {
        name: "TRANSPRESS_COMMS",
        default: "registered",
        accepted: "registered, all, or a list of names and numbers (rows,#2)",
        meaning: "Communicators to compress",
        same_on_every_rank: true,
        reader: Reader::Library(read::comms),
    },
    Variable {
        name: "TRANSPRESS_CODEC",
        default: "zfp",
        accepted: "zfp, fp16, bf16, lossless or off",
        meaning: "How floating-point values are coded",
        same_on_every_rank: true,
        reader: Reader::Library(read::codec),
    },
    Variable {
        name: "TRANSPRESS_RATE",
        default: "16",
        accepted: "1 to 64 bits per value, or by communicator (16;rows=8;#2=12)",
        meaning: "Bits per value of the zfp codec",
        same_on_every_rank: true,
        reader: Reader::Library(read::rate),
    },
    Variable {
        name: "TRANSPRESS_TOLERANCE",
        default: "",
        accepted: "a number above 0",
        meaning: "Largest absolute error of a value, instead of a rate",
        same_on_every_rank: true,
        reader: Reader::Library(read::tolerance),
    },
    Variable {
        name: "TRANSPRESS_LAYOUT",
        default: "auto",
        accepted: "auto, or layouts with ; between them (2c,100f,*;256,128)",
        meaning: "Axes of the messages, fastest first",
        same_on_every_rank: false,
        reader: Reader::Library(read::layout),
    },
    Variable {
        name: "TRANSPRESS_BITS",
        default: "auto",
        accepted: "auto, even or fitted",
        meaning: "How the bits of a message are shared out over its blocks",
        same_on_every_rank: false,
        reader: Reader::Library(read::bits),
    },
    Variable {
        name: "TRANSPRESS_BYTES",
        default: "off",
        accepted: "off, f32, f64 or any, or by communicator (off;rows=f32)",
        meaning: "What messages of MPI_BYTE hold",
        same_on_every_rank: true,
        reader: Reader::Library(read::bytes),
    },
    Variable {
        name: "TRANSPRESS_MIN_BYTES",
        default: "4096",
        accepted: "a whole number of bytes, 0 or more",
        meaning: "Smaller messages go uncompressed",
        same_on_every_rank: true,
        reader: Reader::Library(read::min_bytes),
    },
    Variable {
        name: "TRANSPRESS_ON_NODE",
        default: "auto",
        accepted: "auto, raw or compress",
        meaning: "Messages between ranks of one node",
        same_on_every_rank: true,
        reader: Reader::Library(read::on_node),
    },
    Variable {
        name: "TRANSPRESS_MODE",
        default: "on",
        accepted: "on, auto or off",
        meaning: "Whether anything is compressed",
        same_on_every_rank: true,
        reader: Reader::Library(read::mode),
    },
    Variable {
        name: "TRANSPRESS_ENGINE",
        default: "auto",
        accepted: "auto, collective or pairwise",
        meaning: "How compressed messages travel",
        same_on_every_rank: true,
        reader: Reader::Library(read::engine),
    },
    Variable {
        name: "TRANSPRESS_GUARD",
        default: "1e-2",
        accepted: "a number above 0 and below 1, or off",
        meaning: "Largest relative error of a message before it goes as it is",
        same_on_every_rank: false,
        reader: Reader::Library(read::guard),
    },
    Variable {
        name: "TRANSPRESS_DEVICE",
        default: "auto",
        accepted: "auto, cpu or cuda",
        meaning: "Where the codec runs",
        same_on_every_rank: false,
        reader: Reader::Library(read::device),
    },
    Variable {
        name: "TRANSPRESS_GPU_AWARE",
        default: "auto",
        accepted: "auto, yes or no",
        meaning: "Whether the MPI takes buffers that live on a GPU",
        same_on_every_rank: false,
        reader: Reader::Library(read::gpu_aware),
    },
    Variable {
        name: "TRANSPRESS_THREADS",
        default: "1",
        accepted: "1 to 1024",
        meaning: "Codec threads per rank",
        same_on_every_rank: false,
        reader: Reader::Library(read::threads),
    },
    Variable {
        name: "TRANSPRESS_REPORT",
        default: "stderr",
        accepted: "off, stderr, or a file with . or / in its name (.json is written as JSON)",
        meaning: "Where the report at MPI_Finalize goes",
        same_on_every_rank: false,
        reader: Reader::Library(read::report),
    },
    Variable {
        name: "TRANSPRESS_LOG",
        default: "warn",
        accepted: "off, error, warn, info, debug or trace",
        meaning: "What is said on stderr",
        same_on_every_rank: false,
        reader: Reader::Library(read::log),
    },
    Variable {
        name: "TRANSPRESS_LIBRARY",
        default: "",
        accepted: "the path of a libtranspress.so",
        meaning: "The library that transpress run preloads; the library itself ignores it",
        same_on_every_rank: false,
        reader: Reader::Command,
    },
];

/// Whether a variable is ours to read or to complain about.
pub fn is_ours(name: &OsStr) -> bool {
    name.as_encoded_bytes().starts_with(PREFIX.as_bytes())
}

/// The known variables that `name` is likely a slip of: the nearest ones, at most two, none where
/// nothing is near.
pub(super) fn nearest(name: &str) -> Vec<&'static str> {
    /// More slips than this make another word.
    const NEAR: usize = 2;
    let distance = |known: &Variable| edit_distance(&known.name[PREFIX.len()..], tail(name));
    let least = VARIABLES.iter().map(distance).min().unwrap_or(usize::MAX);
    if least > NEAR {
        return Vec::new();
    }
    VARIABLES
        .iter()
        .filter(|known| distance(known) == least)
        .map(|known| known.name)
        .take(2)
        .collect()
}

fn tail(name: &str) -> &str {
    name.strip_prefix(PREFIX).unwrap_or(name)
}

/// How many characters must be put in, taken out or replaced to make `a` into `b` (Levenshtein).
fn edit_distance(a: &str, b: &str) -> usize {
    // distances[j]: from the part of `a` read so far to the first j characters of `b`.
    let mut distances: Vec<usize> = (0..=b.chars().count()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = i;
        distances[0] = i + 1;
        for (j, y) in b.chars().enumerate() {
            let replaced = diagonal + usize::from(x != y);
            diagonal = distances[j + 1];
            distances[j + 1] = replaced.min(diagonal + 1).min(distances[j] + 1);
        }
    }
    distances.last().copied().unwrap_or_default()
}
