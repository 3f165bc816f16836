//! One variable, coded in every way that is compared.

use std::collections::BTreeMap;

use super::errors::Tally;
use super::input::{Field, Values};
use super::message::{self, Message};
use super::result::{Axis, Messages, Named, Row, Variable, Verdict};
use crate::codec::{self, Bits, Coding, Float, Goal, Guard, Item, Refusal};
use crate::layout::{Axes, BitsPolicy, Kind, Layout, common_divisor, infer, without_scales};
use crate::wire::{HEADER_BYTES, raw_wire_bytes, wire_bytes};

/// What is to be compared.
pub struct Plan {
    pub goals: Vec<Goal>,
    /// Those of the curves.
    pub curve: Vec<Goal>,
    /// Layouts beside the usual ones.
    pub layouts: Vec<Layout>,
    pub ranks: Option<usize>,
    /// How bits are shared out; `None` to find out.
    pub bits: Option<BitsPolicy>,
    pub guard: Option<f64>,
    pub min_bytes: usize,
    pub threads: usize,
}

/// The 16-bit floats' rate.
const CAST_RATE: f64 = 16.0;

pub fn variable(field: &Field, plan: &Plan) -> Result<Variable, String> {
    match &field.values {
        Values::F32(values) => of_values(field, values, plan),
        Values::F64(values) => of_values(field, values, plan),
    }
}

fn of_values<T: Float>(field: &Field, values: &[T], plan: &Plan) -> Result<Variable, String> {
    let fills = fill_values(values, &field.missing);
    let extremes = extremes(values, &fills);
    let extents = message::three_axes(&field.shape());
    let all = match plan.ranks {
        None => message::whole(extents, values, &fills),
        Some(ranks) => message::transpose(extents, values, &fills, ranks),
    };
    let bench = Bench {
        sent: all
            .iter()
            .filter(|message| message.sender != message.receiver)
            .collect(),
        all: &all,
        plan,
        range: extremes.map(|(smallest, largest)| largest - smallest),
    };
    if bench.sent.is_empty() {
        return Err(format!(
            "its shape leaves nothing to send between {} ranks",
            plan.ranks.unwrap_or(1)
        ));
    }
    let choices = choices(extents, plan);
    let mut results = Vec::new();
    for &goal in &plan.goals {
        results.extend(bench.compare(&choices, goal)?);
    }
    for (codec, coding) in [("fp16", Coding::Fp16), ("bf16", Coding::Bf16)] {
        let ways = vec![Way::default(); bench.sent.len()];
        results.push(bench.row(codec, coding, Goal::Rate(CAST_RATE), &ways));
    }
    let mut curve = Vec::new();
    for &goal in &plan.curve {
        curve.extend(bench.compare(&choices, goal)?);
    }
    let axes = field.axes.iter();
    Ok(Variable {
        name: field.name.clone(),
        units: field.units.clone(),
        element: T::ELEMENT.as_str(),
        axes: axes
            .map(|(name, extent)| Axis {
                name: name.clone(),
                extent: *extent,
            })
            .collect(),
        values: values.len(),
        fill_values: fills.iter().filter(|is_fill| **is_fill).count(),
        smallest: extremes.map(|extremes| extremes.0),
        largest: extremes.map(|extremes| extremes.1),
        messages: bench.messages(),
        results,
        curve,
    })
}

/// Fill values as the codec finds them, and those that the file names.
fn fill_values<T: Float>(values: &[T], missing: &[f64]) -> Vec<bool> {
    let missing: Vec<T> = missing.iter().map(|&value| T::from_f64(value)).collect();
    let mut fills = codec::fill_values(values);
    for (is_fill, value) in fills.iter_mut().zip(values) {
        *is_fill |= !value.is_codable() || missing.contains(value);
    }
    fills
}

fn extremes<T: Float>(values: &[T], fills: &[bool]) -> Option<(f64, f64)> {
    let kept = values.iter().zip(fills).filter(|(_, is_fill)| !**is_fill);
    kept.map(|(&value, _)| value.into())
        .fold(None, |extremes, value: f64| {
            let (low, high) = extremes.unwrap_or((value, value));
            Some((low.min(value), high.max(value)))
        })
}

/// A layout to be compared.
enum Choice {
    Flat,
    /// The first so many axes of the field, the others joined to the last of them.
    True(usize),
    /// What the library finds in the data.
    Auto,
    Given(Layout),
}

impl Choice {
    fn name(&self) -> String {
        match self {
            Self::Flat => "flat".into(),
            Self::True(axes) => format!("{axes}-D"),
            Self::Auto => "auto".into(),
            Self::Given(_) => "given".into(),
        }
    }
}

fn choices(extents: [usize; 3], plan: &Plan) -> Vec<Choice> {
    let axes = extents.iter().filter(|&&extent| extent > 1).count();
    let mut choices = vec![Choice::Flat];
    choices.extend((2..=axes).map(Choice::True));
    choices.push(Choice::Auto);
    choices.extend(plan.layouts.iter().cloned().map(Choice::Given));
    choices
}

/// How a message is coded.
#[derive(Clone, PartialEq)]
struct Way {
    /// None for a flat message.
    axes: Axes,
    bits: BitsPolicy,
}

impl Default for Way {
    fn default() -> Self {
        Self {
            axes: Axes::new(),
            bits: BitsPolicy::Even,
        }
    }
}

/// One variable's messages.
struct Bench<'a, T> {
    /// Those between two ranks.
    sent: Vec<&'a Message<T>>,
    /// Those that a rank keeps too.
    all: &'a [Message<T>],
    plan: &'a Plan,
    /// Largest minus smallest value of the field.
    range: Option<f64>,
}

impl<T: Float> Bench<'_, T> {
    fn messages(&self) -> Messages {
        let counts = || self.sent.iter().map(|message| message.values.len());
        let is_small = |count: &usize| count * T::ELEMENT.bytes() < self.plan.min_bytes;
        Messages {
            count: self.sent.len(),
            smallest: counts().min().unwrap_or(0),
            largest: counts().max().unwrap_or(0),
            under_min_bytes: counts().filter(is_small).count(),
        }
    }

    /// A row per layout. Layouts that come to the same are coded once.
    fn compare(&self, choices: &[Choice], goal: Goal) -> Result<Vec<Row>, String> {
        let (codec, coding) = match goal {
            Goal::Exact => ("lossless", Coding::Lossless),
            Goal::Rate(_) | Goal::Tolerance(_) => ("zfp", Coding::Zfp),
        };
        let mut done: Vec<(Vec<Way>, Row)> = Vec::new();
        for choice in choices {
            let ways = self.ways(choice, goal)?;
            let known = done.iter().find(|(known, _)| *known == ways);
            let mut row = match known {
                Some((_, row)) => row.clone(),
                None => self.row(codec, coding, goal, &ways),
            };
            row.layout = Some(named(choice, &ways));
            done.push((ways, row));
        }
        Ok(done.into_iter().map(|(_, row)| row).collect())
    }

    /// How each message that is sent is coded. As in a call, every sender decides by its largest message to
    /// another rank, and the counts of all its messages, the one to itself included.
    fn ways(&self, choice: &Choice, goal: Goal) -> Result<Vec<Way>, String> {
        let mut found: BTreeMap<usize, (Layout, BitsPolicy)> = BTreeMap::new();
        let mut ways = Vec::new();
        for message in &self.sent {
            let axes = self.told_axes(choice, message)?;
            let (layout, bits) = match found.get(&message.sender) {
                Some(known) => known,
                None => {
                    let decided = self.decide(choice, message, goal)?;
                    found.entry(message.sender).or_insert(decided)
                }
            };
            let found_axes = || layout.resolve(message.values.len()).unwrap_or_default();
            let mut axes = axes.unwrap_or_else(found_axes);
            if !matches!(goal, Goal::Rate(_)) {
                without_scales(&mut axes, message.values.len());
            } else if matches!(axes[..], [(Kind::Smooth, _)]) {
                axes.clear();
            }
            ways.push(Way { axes, bits: *bits });
        }
        Ok(ways)
    }

    /// What the library finds for the sender of a message, given the layout that is to be compared.
    fn decide(
        &self,
        choice: &Choice,
        message: &Message<T>,
        goal: Goal,
    ) -> Result<(Layout, BitsPolicy), String> {
        let by_sender = |other: &&Message<T>| other.sender == message.sender;
        let all = self.all.iter().filter(by_sender);
        let divisor = common_divisor(all.map(|other| other.values.len()));
        let sent = self.sent.iter().copied().filter(by_sender);
        let largest = sent
            .max_by_key(|other| other.values.len())
            .unwrap_or(message);
        let given: Vec<_> = self
            .told_axes(choice, largest)?
            .iter()
            .map(Layout::from)
            .collect();
        Ok(infer(
            &largest.values,
            divisor,
            goal,
            &given,
            self.plan.bits,
        ))
    }

    /// The axes of a message where they are not to be found in the data.
    fn told_axes(&self, choice: &Choice, message: &Message<T>) -> Result<Option<Axes>, String> {
        let count = message.values.len();
        match choice {
            Choice::Flat => Ok(Some(true_axes(message.extents, 1))),
            Choice::True(axes) => Ok(Some(true_axes(message.extents, *axes))),
            Choice::Auto => Ok(None),
            Choice::Given(layout) => layout.resolve(count).map(Some).ok_or_else(|| {
                format!("--layout {layout} does not make up a message of {count} values")
            }),
        }
    }

    fn row(&self, codec: &'static str, coding: Coding, goal: Goal, ways: &[Way]) -> Row {
        let mut tally = Tally::default();
        let (mut before, mut wire, mut sent) = (0, 0, 0);
        let (mut refusals, mut fitted, mut even) = (Vec::new(), false, false);
        for (message, way) in self.sent.iter().zip(ways) {
            let count = message.values.len();
            let raw = count * T::ELEMENT.bytes();
            // The coded message, at most, and what goes where it is refused.
            let (room, refused) = match goal {
                Goal::Rate(rate) => (wire_bytes(count, rate), wire_bytes(count, rate) + raw),
                Goal::Tolerance(_) | Goal::Exact => {
                    let longest = raw_wire_bytes(count, Item::Float(T::ELEMENT));
                    (longest, longest)
                }
            };
            let through = |guard: Guard| {
                let words = (room - HEADER_BYTES) / 8;
                let bits = match (goal, way.bits) {
                    (Goal::Tolerance(tolerance), _) => Bits::Bounded(tolerance),
                    (_, BitsPolicy::Even) => Bits::Even,
                    (_, BitsPolicy::Fitted) => Bits::Fitted(None),
                };
                let (values, threads) = (&message.values, self.plan.threads);
                let way = codec::Way {
                    coding,
                    axes: &way.axes,
                    bits,
                    payload_words: words,
                    guard,
                };
                codec::round_trip(values, way, threads)
            };
            let mut guard = Guard::of(self.plan.guard);
            if !matches!(goal, Goal::Rate(_)) {
                guard.error = None;
            }
            let guarded = through(guard);
            refusals.extend(guarded.as_ref().err().copied());
            let is_refused = guarded.is_err();
            // What the guard holds back is of interest too.
            let returned = guarded.or_else(|_| through(Guard::OFF));
            let coded = returned
                .as_ref()
                .map_or(room, |returned| HEADER_BYTES + 8 * returned.encoded.words);
            before += raw as u64;
            wire += coded as u64;
            sent += if is_refused { refused } else { coded } as u64;
            match returned {
                Ok(returned) => {
                    fitted |= returned.encoded.exponent.is_some();
                    even |= returned.encoded.exponent.is_none();
                    tally.add(message, &returned.values);
                }
                Err(_) if matches!(goal, Goal::Rate(_)) => {}
                Err(_) => tally.add(message, &message.values),
            }
        }
        let values: usize = self.sent.iter().map(|message| message.values.len()).sum();
        Row {
            codec,
            rate: match goal {
                Goal::Rate(rate) => Some(rate),
                Goal::Tolerance(_) | Goal::Exact => None,
            },
            tolerance: match goal {
                Goal::Tolerance(tolerance) => Some(tolerance),
                Goal::Rate(_) | Goal::Exact => None,
            },
            layout: None,
            bits: match (even, fitted) {
                _ if coding != Coding::Zfp => None,
                (true, true) => Some("mixed"),
                (true, false) => Some("even"),
                (false, true) => Some("fitted"),
                (false, false) => None,
            },
            bytes_before: before,
            bytes_wire: wire,
            ratio: before as f64 / wire as f64,
            bits_per_value: wire as f64 * 8.0 / values as f64,
            errors: tally.finish(self.range),
            guard: Verdict {
                messages: self.sent.len(),
                raw_messages: refusals.len(),
                reason: refusals.first().map(reason),
                bytes_sent: sent,
            },
        }
    }
}

/// The first axes of a box, the others joined to the last of them; those of one value left out.
fn true_axes(extents: [usize; 3], axes: usize) -> Axes {
    let (kept, joined) = extents.split_at(axes.clamp(1, 3) - 1);
    let joined = joined.iter().product();
    let extents = kept.iter().copied().chain([joined]);
    extents
        .filter(|&extent| extent > 1)
        .filter_map(|extent| Some((Kind::Smooth, u32::try_from(extent).ok()?)))
        .collect()
}

/// The text of the layout that most messages have.
fn named(choice: &Choice, ways: &[Way]) -> Named {
    let mut texts: BTreeMap<String, usize> = BTreeMap::new();
    for way in ways {
        *texts.entry(text(&way.axes)).or_default() += 1;
    }
    let most = texts.iter().max_by_key(|(_, messages)| **messages);
    Named {
        name: choice.name(),
        axes: most.map_or_else(String::new, |(text, _)| text.clone()),
        others: texts.len().saturating_sub(1),
    }
}

fn text(axes: &Axes) -> String {
    match axes.is_empty() {
        true => "*".into(),
        false => Layout::from(axes).to_string(),
    }
}

fn reason(refusal: &Refusal) -> String {
    match refusal {
        Refusal::Uncodable => "not codable".into(),
        Refusal::Integers => "whole numbers".into(),
        Refusal::Sparse => "hardly any values but zeros".into(),
        Refusal::Doubles => "doubles in pairs".into(),
        Refusal::Guard(error) => format!("error {error:.1e}"),
        Refusal::NoRoom => "no room".into(),
        Refusal::NoGain => "no gain".into(),
        Refusal::OutOfReach => "out of reach".into(),
    }
}
