//! `TRANSPRESS_MODE=auto`: measures the engines on the program's own calls and keeps the fastest.
//!
//! All ranks of a communicator go through the same steps, since these follow from the number of calls and from
//! small reductions, never from one rank's clock. First calls go plain. Once they have taken a while, a model
//! says whether compression can pay: messages cost the longer of the time that fewer bytes take on the link
//! and the time to code them. If it can, each engine carries some calls. The outcome holds for many calls.

mod trial;

use super::Collective;
use super::context::Context;
use super::engine::Engine;
use super::form::{Form, form_between};
use super::side::Side;
use crate::codec::{self, Item};
use crate::mpi::Result;
use std::ffi::c_int;
use trial::Trial;

/// Seconds of plain calls before anything else is tried: a trial may cost some calls, and looking for a layout
/// some milliseconds.
const PLAIN_SECONDS: f64 = 0.5;
/// Compression must promise, and bring, so much less than the time of plain calls.
const WORTH: f64 = 0.97;
/// Calls before what was found is looked at again, times those made until then.
const AGAIN: u64 = 16;
/// What times are reduced in: 100 ns, so that an int holds minutes.
const TICKS: f64 = 1e7;
/// The same for bytes.
const UNIT_BYTES: usize = 1 << 10;

/// What the ranks of a communicator know of the calls of one function.
#[derive(Default)]
pub struct Tuner {
    calls: u64,
    phase: Phase,
    /// Seconds that a call took which is being measured.
    measured: Option<f64>,
    plain: Plain,
    /// Why the calls go as they do, for the report.
    reason: String,
}

enum Phase {
    /// Calls go plain; at this one the model is asked.
    Waiting(u64),
    Trying(Trial),
    /// Until this call.
    Settled(Engine, u64),
}

impl Default for Phase {
    fn default() -> Self {
        Self::Waiting(2)
    }
}

/// Sums over this rank's plain calls.
#[derive(Default)]
struct Plain {
    seconds: f64,
    /// Bytes to other ranks, what they would be if compressed, and how many of them are values to be coded.
    bytes: f64,
    bytes_compressed: f64,
    bytes_coded: f64,
    /// What these values are, in the last call that had any.
    item: Option<Item>,
    /// The most bytes of any call, of any rank as far as reduced.
    largest: usize,
}

/// What a call is to be carried by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order {
    pub engine: Engine,
    /// Its time is to be recorded.
    pub is_timed: bool,
}

impl Order {
    pub fn untimed(engine: Engine) -> Self {
        Self {
            engine,
            is_timed: false,
        }
    }
}

impl Tuner {
    /// How the next call goes, of which this rank sends `source`. Now and then collective over the communicator.
    pub fn order(
        &mut self,
        context: Context,
        source: &Side,
        candidates: &[Engine],
    ) -> Result<Order> {
        self.calls += 1;
        let measured = self.measured.take();
        match &mut self.phase {
            Phase::Waiting(look) if self.calls < *look => Ok(self.plain(context, source)),
            Phase::Waiting(_) => self.ask_the_model(context, source, candidates),
            Phase::Trying(_) => self.go_on_trying(context, source, measured),
            Phase::Settled(engine, until) if self.calls < *until => Ok(Order::untimed(*engine)),
            Phase::Settled(..) => {
                self.plain = Plain::default();
                self.phase = Phase::Waiting(self.calls + 2);
                Ok(self.plain(context, source))
            }
        }
    }

    /// Seconds that a timed call has taken on this rank.
    pub fn record(&mut self, seconds: f64) {
        match self.phase {
            Phase::Waiting(_) => self.plain.seconds += seconds,
            _ => self.measured = Some(seconds),
        }
    }

    /// A plain call, and what it would be if it were compressed. The first one, which makes connections, does
    /// not count.
    fn plain(&mut self, context: Context, source: &Side) -> Order {
        if self.calls > 1 {
            self.plain.add(context, source);
        }
        Order {
            engine: Engine::Plain,
            is_timed: self.calls > 1,
        }
    }

    fn ask_the_model(
        &mut self,
        context: Context,
        source: &Side,
        candidates: &[Engine],
    ) -> Result<Order> {
        let Plain {
            seconds,
            bytes,
            largest,
            ..
        } = self.plain;
        let sums = [ticks(seconds), units(bytes as usize), units(largest)];
        let [plain, size, largest] = most(context, sums)?;
        let plain = f64::from(plain) / TICKS;
        if plain < PLAIN_SECONDS {
            self.phase = Phase::Waiting(2 * self.calls);
            return Ok(self.plain(context, source));
        }
        let [promised] = most(context, [ticks(self.plain.promised_seconds(context))])?;
        let promised = f64::from(promised) / TICKS;
        if promised < WORTH * plain {
            let cost = plain / f64::from(size.max(1));
            self.phase = Phase::Trying(Trial::new(candidates, largest, cost));
            return self.go_on_trying(context, source, None);
        }
        self.reason = format!(
            "plain, because coding would make {plain:.3} s of calls take {promised:.3} s (by the model)"
        );
        self.settle(Engine::Plain);
        Ok(self.plain(context, source))
    }

    fn settle(&mut self, engine: Engine) {
        self.phase = Phase::Settled(engine, AGAIN * self.calls);
    }

    fn go_on_trying(
        &mut self,
        context: Context,
        source: &Side,
        measured: Option<f64>,
    ) -> Result<Order> {
        let Phase::Trying(trial) = &mut self.phase else {
            return Ok(self.plain(context, source));
        };
        let here = units(bytes_to_others(context, source));
        let [seconds, size] = most(context, [measured.map_or(0, ticks), here])?;
        match trial.next(f64::from(seconds) / TICKS, size) {
            Some(order) => Ok(order),
            None => {
                let (engine, reason) = trial.outcome();
                tracing::info!(
                    "{} on communicator {}: {reason}",
                    context.collective.name(),
                    context.registration.label()
                );
                self.reason = reason;
                self.settle(engine);
                Ok(Order::untimed(engine))
            }
        }
    }
}

impl Plain {
    fn add(&mut self, context: Context, source: &Side) {
        let (registration, terms) = (context.registration, context.terms);
        for peer in registration.others() {
            let bytes = source.bytes(peer);
            self.bytes += bytes as f64;
            match form_between(registration, terms, source, peer) {
                Form::Raw(bytes) => self.bytes_compressed += bytes as f64,
                Form::Coded(coded) => {
                    let share = terms.expected_share(coded.item);
                    self.bytes_compressed += bytes as f64 * share;
                    // How fast a GPU codes is for the trial to find out: no link outruns it.
                    if source.place().coder.is_none() {
                        self.bytes_coded += bytes as f64;
                        self.item = Some(coded.item);
                    }
                }
            }
        }
        self.largest = self.largest.max(bytes_to_others(context, source));
    }

    /// What the same calls would take if they were compressed, by the model.
    fn promised_seconds(&self, context: Context) -> f64 {
        let on_the_link = self.seconds * self.bytes_compressed / self.bytes.max(1.0);
        let (terms, threads) = (context.terms, context.settings.threads);
        let in_the_codec = self.item.map_or(0.0, |item| {
            self.bytes_coded / codec::speed(terms.coding, item, terms.rate, threads)
        });
        on_the_link.max(in_the_codec)
    }
}

fn bytes_to_others(context: Context, source: &Side) -> usize {
    let others = context.registration.others();
    others.map(|peer| source.bytes(peer)).sum()
}

fn ticks(seconds: f64) -> c_int {
    // Saturates.
    (seconds * TICKS) as c_int
}

fn units(bytes: usize) -> c_int {
    c_int::try_from(bytes / UNIT_BYTES).unwrap_or(c_int::MAX)
}

/// The largest of every rank's numbers. Collective over the communicator.
fn most<const N: usize>(context: Context, mut numbers: [c_int; N]) -> Result<[c_int; N]> {
    let comm = context.registration.private;
    context.mpi.max_over_all(comm, &mut numbers)?;
    Ok(numbers)
}

/// One tuner for each function.
#[derive(Default)]
pub struct Tuners([Tuner; 2]);

impl Tuners {
    pub fn of(&mut self, collective: Collective) -> &mut Tuner {
        &mut self.0[collective as usize]
    }

    /// Why calls go as they do, as lines for the report.
    pub fn reasons(&self) -> Vec<String> {
        let tuners = [Collective::Alltoall, Collective::Alltoallv]
            .map(|collective| (collective.name(), &self.0[collective as usize].reason));
        tuners
            .into_iter()
            .filter(|(_, reason)| !reason.is_empty())
            .map(|(name, reason)| format!("{name}: {reason}"))
            .collect()
    }
}
