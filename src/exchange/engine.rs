//! Which engine carries a call: the same on every rank of the communicator.

use super::context::Context;
use super::form::{Coded, Form, form, form_between};
use super::pairwise;
use super::side::Side;
use super::{Call, Collective};
use crate::mpi::Result;
use crate::registry::{Registration, Terms, Working};
use crate::settings::{self, OnNode};

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

/// The engine of a call. Now and then collective over the communicator.
pub fn of(context: Context, call: &Call, working: &mut Working) -> Result<Engine> {
    let Context {
        registration,
        terms,
        ..
    } = context;
    let source = call.source();
    match call.collective {
        // All ranks have the same counts and signatures, so this is the same on each.
        Collective::Alltoall => Ok(match coded_between_some(registration, terms, source) {
            None => Engine::Plain,
            Some(coded) => engine(context, is_worth_a_pipeline(&coded)),
        }),
        Collective::Alltoallv => {
            let pipelines = agreed(context, source, &mut working.choice)?;
            let engine = engine(context, pipelines);
            // In the collective engine a rank whose call has no floats stands in the same function of MPI as
            // the others; it may go there with its own arguments. In place, MPI would use another algorithm.
            let is_ours = call.send.is_none()
                || source.is_floats(terms.bytes)
                || call.receive.is_floats(terms.bytes);
            Ok(match engine {
                Engine::Collective if !is_ours => Engine::Plain,
                engine => engine,
            })
        }
    }
}

fn engine(context: Context, pipelines: bool) -> Engine {
    match context.settings.engine {
        // Only there the receiver need not know the length of a message.
        _ if context.terms.is_variable() => Engine::Pairwise,
        settings::Engine::Pairwise => Engine::Pairwise,
        settings::Engine::Collective => Engine::Collective,
        settings::Engine::Auto if pipelines => Engine::Pairwise,
        settings::Engine::Auto => Engine::Collective,
    }
}

/// Whether a message is so long that coding it takes a while.
fn is_worth_a_pipeline(coded: &Coded) -> bool {
    pairwise::segments(coded) > 1
}

/// The message of an Alltoall, if any pair of ranks compresses it.
fn coded_between_some(registration: &Registration, terms: &Terms, side: &Side) -> Option<Coded> {
    let some_pair_allows = terms.on_node != OnNode::Raw || registration.spans_nodes;
    match form(terms, side.bytes(0), side.values(0, terms.bytes)) {
        Form::Coded(coded) if some_pair_allows => Some(coded),
        _ => None,
    }
}

/// Whether any rank has had a message that is worth a pipeline: asked in the first call on a communicator, the
/// second, the fourth and so on, since counts differ from rank to rank and from call to call.
fn agreed(context: Context, source: &Side, choice: &mut Choice) -> Result<bool> {
    choice.calls += 1;
    let is_asked = choice.calls.is_power_of_two()
        && !choice.pipelines
        && !context.terms.is_variable()
        && context.settings.engine == settings::Engine::Auto;
    if is_asked {
        let Context {
            mpi,
            registration,
            terms,
            ..
        } = context;
        let forms = (0..registration.size)
            .filter(|&peer| peer != registration.rank)
            .map(|peer| form_between(registration, terms, source, peer));
        let here = forms
            .filter_map(|form| match form {
                Form::Coded(coded) => Some(coded),
                Form::Raw(_) => None,
            })
            .any(|coded| is_worth_a_pipeline(&coded));
        choice.pipelines = mpi.max_over(registration.private, here.into())? > 0;
    }
    Ok(choice.pipelines)
}
