//! Each engine carries some of the program's calls, by turns, and the fastest is kept.

use super::{Order, WORTH};
use crate::exchange::engine::Engine;
use std::collections::VecDeque;
use std::ffi::c_int;

/// Times that each engine is measured.
const ROUNDS: usize = 2;
/// An engine is given up that takes so many times as long as plain calls, after its first call …
const HOPELESS_AT_FIRST: f64 = 2.0;
/// … for which it has so many seconds more, and after another one.
const ALLOWANCE: f64 = 0.02;
const HOPELESS: f64 = 1.5;

pub struct Trial {
    steps: VecDeque<Step>,
    /// The one whose call is under way, and the size of that call.
    under_way: Option<(Step, c_int)>,
    contestants: Vec<Contestant>,
    /// The size of the largest calls. Smaller ones are not measured: what they take tells little.
    largest: c_int,
    /// Seconds of a plain call per size, as known beforehand.
    plain: f64,
}

#[derive(Clone, Copy)]
struct Step {
    engine: Engine,
    /// The first call of an engine makes buffers and looks for layouts.
    is_warm_up: bool,
}

/// Sums over the measured calls of an engine, of the slowest rank and of the largest one.
struct Contestant {
    engine: Engine,
    calls: u32,
    seconds: f64,
    size: f64,
}

impl Contestant {
    fn cost(&self) -> f64 {
        if self.calls == 0 {
            f64::INFINITY
        } else {
            self.seconds / self.size.max(1.0)
        }
    }
}

impl Trial {
    /// `largest`: the size of the largest calls that there were; `plain`: seconds of a plain one per size.
    pub fn new(candidates: &[Engine], largest: c_int, plain: f64) -> Self {
        let compressing = candidates.iter().filter(|&&engine| engine != Engine::Plain);
        let warm_up = compressing.map(|&engine| Step {
            engine,
            is_warm_up: true,
        });
        // Each round begins with another engine, lest calls that come by turns meet the same one every time.
        let rounds = (0..ROUNDS).flat_map(|round| {
            let from = round % candidates.len();
            let (last, first) = candidates.split_at(from);
            first.iter().chain(last).map(|&engine| Step {
                engine,
                is_warm_up: false,
            })
        });
        Self {
            steps: warm_up.chain(rounds).collect(),
            under_way: None,
            contestants: candidates
                .iter()
                .map(|&engine| Contestant {
                    engine,
                    calls: 0,
                    seconds: 0.0,
                    size: 0.0,
                })
                .collect(),
            largest,
            plain,
        }
    }

    /// How the next call, of this size, goes; `None` where the trial is over. `seconds` is what the slowest rank
    /// took for the one before.
    pub fn next(&mut self, seconds: f64, size: c_int) -> Option<Order> {
        if let Some((step, size)) = self.under_way.take() {
            self.note(step, seconds, f64::from(size));
        }
        if self.steps.is_empty() {
            return None;
        }
        if size < self.largest / 2 {
            return Some(Order {
                engine: Engine::Plain,
                is_timed: false,
            });
        }
        let step = self.steps.pop_front()?;
        self.under_way = Some((step, size));
        Some(Order {
            engine: step.engine,
            is_timed: true,
        })
    }

    fn note(&mut self, step: Step, seconds: f64, size: f64) {
        let plain = self.plain * size.max(1.0);
        let most = match step.is_warm_up {
            true => HOPELESS_AT_FIRST * plain + ALLOWANCE,
            false => HOPELESS * plain,
        };
        if step.engine != Engine::Plain && seconds > most {
            self.steps.retain(|other| other.engine != step.engine);
        }
        if step.is_warm_up {
            return;
        }
        for contestant in &mut self.contestants {
            if contestant.engine == step.engine {
                contestant.calls += 1;
                contestant.seconds += seconds;
                contestant.size += size;
            }
        }
    }

    fn cost_of(&self, engine: Engine) -> f64 {
        let contestant = self.contestants.iter().find(|one| one.engine == engine);
        contestant.map_or(f64::INFINITY, Contestant::cost)
    }

    /// The fastest engine, and what was measured, in words.
    pub fn outcome(&self) -> (Engine, String) {
        let plain = self.cost_of(Engine::Plain);
        let best = self
            .contestants
            .iter()
            .filter(|one| one.engine != Engine::Plain && one.cost() < WORTH * plain)
            .min_by(|one, other| one.cost().total_cmp(&other.cost()));
        let engine = best.map_or(Engine::Plain, |one| one.engine);
        let measured: Vec<String> = self
            .contestants
            .iter()
            .map(|one| match one.calls {
                0 => format!("{} given up", one.engine),
                calls => {
                    let milliseconds = 1e3 * one.seconds / f64::from(calls);
                    format!("{} {milliseconds:.2} ms", one.engine)
                }
            })
            .collect();
        (
            engine,
            format!("{engine}, as a call took {}", measured.join(", ")),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Engine; 3] = [Engine::Plain, Engine::Collective, Engine::Pairwise];

    /// Runs a trial in which each engine takes so many seconds for a call of size 100. Returns the engine that
    /// is kept, and how many calls each has carried.
    fn outcome(seconds: [f64; 3]) -> (Engine, [usize; 3]) {
        let mut trial = Trial::new(&ALL, 100, 0.01);
        let mut carried = [0; 3];
        let mut last = 0.0;
        while let Some(order) = trial.next(last, 100) {
            carried[order.engine as usize] += 1;
            last = seconds[order.engine as usize];
        }
        (trial.outcome().0, carried)
    }

    #[test]
    fn the_fastest_is_kept() {
        assert_eq!(outcome([1.0, 0.9, 0.5]), (Engine::Pairwise, [2, 3, 3]));
        assert_eq!(outcome([1.0, 0.5, 0.6]).0, Engine::Collective);
        assert_eq!(outcome([1.0, 1.2, 1.2]).0, Engine::Plain);
        assert_eq!(outcome([1.0, 1.2, 0.99]).0, Engine::Plain);
    }

    #[test]
    fn what_is_hopeless_is_given_up() {
        let (engine, carried) = outcome([1.0, 9.0, 0.5]);
        assert_eq!(engine, Engine::Pairwise);
        assert_eq!(carried, [2, 1, 3]);
        assert_eq!(outcome([1.0, 1.9, 0.5]).1, [2, 2, 3]);
    }

    #[test]
    fn small_calls_go_plain_and_count_for_nothing() {
        let mut trial = Trial::new(&ALL, 100, 0.01);
        for _ in 0..5 {
            let order = trial.next(7.0, 10).unwrap();
            assert_eq!((order.engine, order.is_timed), (Engine::Plain, false));
        }
        let order = trial.next(7.0, 80).unwrap();
        assert_eq!((order.engine, order.is_timed), (Engine::Collective, true));
    }
}
