//! Which engine carries a call: the same on every rank of the communicator.

use super::context::Context;
use super::form::{Coded, Form, form, form_between};
use super::pairwise;
use super::side::Side;
use super::tuner::Order;
use super::{Call, Collective};
use crate::mpi::Result;
use crate::registry::{Registration, Terms, Working};
use crate::settings::{self, Mode, OnNode};

/// What carries a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// MPI, with the program's own arguments.
    Plain,
    /// One Alltoallv of compressed messages.
    Collective,
    /// Messages point to point, while others are being coded.
    Pairwise,
}

/// What the ranks of a communicator have agreed on so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct Choice {
    /// Calls of `MPI_Alltoallv`.
    calls: u64,
    /// Some rank had a message that is worth a pipeline.
    pipelines: bool,
}

impl std::fmt::Display for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Plain => "plain",
            Self::Collective => "collective",
            Self::Pairwise => "pairwise",
        })
    }
}

/// The engine of a call. Now and then collective over the communicator.
pub fn of(context: Context, call: &Call, working: &mut Working) -> Result<Order> {
    let Context {
        registration,
        terms,
        ..
    } = context;
    let source = call.source();
    match call.collective {
        // All ranks have the same counts and signatures, so this is the same on each.
        Collective::Alltoall => match coded_between_some(registration, terms, source) {
            None => Ok(Order::untimed(Engine::Plain)),
            Some(coded) => choose(context, source, working, |_| {
                Ok(is_worth_a_pipeline(&coded))
            }),
        },
        Collective::Alltoallv => {
            let mut order = choose(context, source, working, |choice| {
                some_rank_pipelines(context, source, choice)
            })?;
            // In the collective engine a rank whose call has no floats stands in the same function of MPI as
            // the others; it may go there with its own arguments. In place, MPI would use another algorithm.
            let is_ours = call.send.is_none()
                || source.is_ours(terms.holds())
                || call.receive.is_ours(terms.holds());
            if order.engine == Engine::Collective && !is_ours {
                order.engine = Engine::Plain;
            }
            Ok(order)
        }
    }
}

fn choose(
    context: Context,
    source: &Side,
    working: &mut Working,
    pipelines: impl FnOnce(&mut Choice) -> Result<bool>,
) -> Result<Order> {
    let Working { tuners, choice, .. } = working;
    // Only pairwise need the receiver not know the length of a message.
    let allowed = match context.settings.engine {
        _ if context.terms.is_variable() => settings::Engine::Pairwise,
        allowed => allowed,
    };
    if context.settings.mode == Mode::Auto {
        let candidates: &[Engine] = match allowed {
            settings::Engine::Auto => &[Engine::Plain, Engine::Collective, Engine::Pairwise],
            settings::Engine::Collective => &[Engine::Plain, Engine::Collective],
            settings::Engine::Pairwise => &[Engine::Plain, Engine::Pairwise],
        };
        let tuner = tuners.of(context.collective);
        return tuner.order(context, source, candidates);
    }
    Ok(Order::untimed(match allowed {
        settings::Engine::Pairwise => Engine::Pairwise,
        settings::Engine::Auto if pipelines(choice)? => Engine::Pairwise,
        settings::Engine::Auto | settings::Engine::Collective => Engine::Collective,
    }))
}

/// Whether a message is so long that coding it takes a while.
fn is_worth_a_pipeline(coded: &Coded) -> bool {
    pairwise::segments(coded) > 1
}

/// The message of an Alltoall, if any pair of ranks compresses it.
fn coded_between_some(registration: &Registration, terms: &Terms, side: &Side) -> Option<Coded> {
    let some_pair_allows = terms.on_node != OnNode::Raw || registration.spans_nodes;
    match form(terms, side.bytes(0), side.values(0, terms.holds())) {
        Form::Coded(coded) if some_pair_allows => Some(coded),
        _ => None,
    }
}

/// Whether any rank has had a message that is worth a pipeline: asked in the first call on a communicator, the
/// second, the fourth and so on, since counts differ from rank to rank and from call to call.
fn some_rank_pipelines(context: Context, source: &Side, choice: &mut Choice) -> Result<bool> {
    choice.calls += 1;
    if choice.pipelines || !choice.calls.is_power_of_two() {
        return Ok(choice.pipelines);
    }
    let Context {
        mpi,
        registration,
        terms,
        ..
    } = context;
    let here = registration
        .others()
        .map(|peer| form_between(registration, terms, source, peer))
        .any(|form| match form {
            Form::Coded(coded) => is_worth_a_pipeline(&coded),
            Form::Raw(_) => false,
        });
    choice.pipelines = mpi.max_over(registration.private, here.into())? > 0;
    Ok(choice.pipelines)
}
