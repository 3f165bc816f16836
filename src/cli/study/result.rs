//! What a study found. The fields are those of the JSON; docs/study.md describes them.

use serde::Serialize;

#[derive(Debug, Serialize)]
pub struct Results {
    pub transpress: &'static str,
    pub file: String,
    pub format: String,
    pub ranks: Option<usize>,
    pub guard: Option<f64>,
    pub variables: Vec<Variable>,
}

#[derive(Debug, Serialize)]
pub struct Variable {
    pub name: String,
    pub units: Option<String>,
    pub element: &'static str,
    /// Fastest first.
    pub axes: Vec<Axis>,
    pub values: usize,
    pub fill_values: usize,
    /// Of the values that are not fill values.
    pub smallest: Option<f64>,
    pub largest: Option<f64>,
    pub messages: Messages,
    pub results: Vec<Row>,
    /// Further rates, for the curves of the page.
    #[serde(skip)]
    pub curve: Vec<Row>,
}

#[derive(Debug, Serialize)]
pub struct Axis {
    pub name: String,
    pub extent: usize,
}

/// The messages that were coded, and how many values they have.
#[derive(Debug, Serialize)]
pub struct Messages {
    pub count: usize,
    pub smallest: usize,
    pub largest: usize,
    /// Messages under TRANSPRESS_MIN_BYTES, which the library leaves alone unless told otherwise.
    pub under_min_bytes: usize,
}

/// One coding of all messages of a variable.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    pub codec: &'static str,
    /// What was asked for: bits per value, or a largest error, or neither: no error.
    pub rate: Option<f64>,
    pub tolerance: Option<f64>,
    /// `None` for codecs that take each value by itself.
    pub layout: Option<Named>,
    /// How bits are shared out over the blocks of a message: even, fitted, or mixed where messages differ.
    pub bits: Option<&'static str>,
    pub bytes_before: u64,
    pub bytes_wire: u64,
    pub ratio: f64,
    pub bits_per_value: f64,
    /// `None` where no message could be coded.
    pub errors: Option<Errors>,
    pub guard: Verdict,
}

/// A layout, and how the comparison calls it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Named {
    pub name: String,
    /// That of most messages.
    pub axes: String,
    /// How many other layouts some messages have.
    pub others: usize,
}

#[derive(Clone, Debug, Serialize)]
pub struct Errors {
    pub mean_relative: Option<f64>,
    pub max_absolute: f64,
    pub relative_l2: f64,
    pub max_over_range: Option<f64>,
    pub worst_block: Option<WorstBlock>,
    pub blocks: Blocks,
    pub fill_values_exact: Option<f64>,
}

#[derive(Clone, Copy, Debug, Serialize)]
pub struct WorstBlock {
    pub relative_l2: f64,
    /// Its first value, x first.
    pub at: [usize; 3],
}

/// Blocks of 4×4×4 values by their relative L2 error.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Blocks {
    pub count: u64,
    pub exact: u64,
    /// Blocks of zeros that came back as something else, which have no relative error.
    pub zeros_changed: u64,
    pub decades: Vec<Decade>,
}

/// Errors from 10^`exponent` up to ten times that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Decade {
    pub exponent: i32,
    pub blocks: u64,
}

/// What the guard makes of it.
#[derive(Clone, Debug, Serialize)]
pub struct Verdict {
    pub messages: usize,
    /// Messages that go as they are, after a coded message that says so.
    pub raw_messages: usize,
    /// Of the first of them.
    pub reason: Option<String>,
    /// Bytes on the wire with those messages.
    pub bytes_sent: u64,
}
