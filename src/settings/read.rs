//! The text of a variable → its value. One function per variable, named like it.
//!
//! The texts come trimmed. Words are lower case, as the table gives them.

use std::path::Path;
use std::str::FromStr;

use tracing::level_filters::LevelFilter;

use super::{
    Codec, Comms, Device, Element, Engine, GpuAware, Item, Mode, OnNode, Report, Selector, Settings,
};
use crate::layout::{BitsPolicy, Layout};

/// Sets what one variable stands for.
pub(super) type Read = fn(&mut Settings, &str) -> Result<(), Refusal>;

/// Why a text is not taken.
#[derive(Debug)]
pub(super) enum Refusal {
    /// It is not among what the table says is accepted.
    Value,
    /// The same, and this part of it is to blame.
    Part(String),
    /// A later version will take it.
    NotYet,
    /// A sentence of its own, which also says what is accepted.
    Because(String),
}

pub(super) fn comms(settings: &mut Settings, text: &str) -> Result<(), Refusal> {
    settings.comms = match text {
        "registered" => Comms::Registered,
        "all" => Comms::All,
        _ => Comms::Listed(list(text)?),
    };
    Ok(())
}

fn list(text: &str) -> Result<Vec<Selector>, Refusal> {
    let entries = text.split([',', ';']).map(str::trim);
    let list: Vec<_> = entries
        .filter(|entry| !entry.is_empty())
        .map(list_entry)
        .collect::<Result<_, _>>()?;
    if list.is_empty() {
        return Err(Refusal::Value);
    }
    Ok(list)
}

/// The words for every communicator are no names: in a list they are a misunderstanding.
fn list_entry(text: &str) -> Result<Selector, Refusal> {
    Selector::parse(text)
        .filter(|_| !matches!(text, "registered" | "all"))
        .ok_or_else(|| Refusal::Part(text.into()))
}

pub(super) fn codec(settings: &mut Settings, text: &str) -> Result<(), Refusal> {
    settings.codec = match text {
        "zfp" => Codec::Zfp,
        "fp16" => Codec::Fp16,
        "bf16" => Codec::Bf16,
        "off" => Codec::Off,
        "lossless" => Codec::Lossless,
        _ => return Err(Refusal::Value),
    };
    Ok(())
}

/// Bits per value, least and most.
pub const RATES: std::ops::RangeInclusive<f64> = 1.0..=64.0;

pub(super) fn rate(settings: &mut Settings, text: &str) -> Result<(), Refusal> {
    let bits = |text: &str| text.parse().ok().filter(|bits| RATES.contains(bits));
    settings.rate = settings.rate.read(text, bits).map_err(Refusal::Part)?;
    Ok(())
}

pub(super) fn bytes(settings: &mut Settings, text: &str) -> Result<(), Refusal> {
    let element = |text: &str| match text {
        "off" => Some(None),
        "f32" => Some(Some(Item::Float(Element::F32))),
        "f64" => Some(Some(Item::Float(Element::F64))),
        "any" => Some(Some(Item::Word(1))),
        _ => None,
    };
    let bytes = settings.bytes.read(text, element).map_err(Refusal::Part)?;
    let has_any = bytes
        .values()
        .any(|item| matches!(item, Some(Item::Word(_))));
    // The table has the codec before.
    if has_any && settings.codec != Codec::Lossless {
        return Err(Refusal::Because(
            "accepted is any with TRANSPRESS_CODEC=lossless alone; else off, f32 or f64, or by communicator \
             (off;rows=f32)"
                .into(),
        ));
    }
    settings.bytes = bytes;
    Ok(())
}

pub(super) fn layout(settings: &mut Settings, text: &str) -> Result<(), Refusal> {
    let listed = if text == "auto" { "" } else { text };
    settings.layouts = listed
        .split(';')
        .map(str::trim)
        .filter(|layout| !layout.is_empty())
        .map(Layout::parse)
        .collect::<Result<_, _>>()
        .map_err(Refusal::Because)?;
    Ok(())
}

pub(super) fn bits(settings: &mut Settings, text: &str) -> Result<(), Refusal> {
    settings.bits = match text {
        "auto" => None,
        "even" => Some(BitsPolicy::Even),
        "fitted" => Some(BitsPolicy::Fitted),
        _ => return Err(Refusal::Value),
    };
    Ok(())
}

pub(super) fn min_bytes(settings: &mut Settings, text: &str) -> Result<(), Refusal> {
    settings.min_bytes = text.parse().map_err(|_| Refusal::Value)?;
    Ok(())
}

pub(super) fn on_node(settings: &mut Settings, text: &str) -> Result<(), Refusal> {
    settings.on_node = match text {
        "auto" => OnNode::Auto,
        "raw" => OnNode::Raw,
        "compress" => OnNode::Compress,
        _ => return Err(Refusal::Value),
    };
    Ok(())
}

pub(super) fn mode(settings: &mut Settings, text: &str) -> Result<(), Refusal> {
    settings.mode = match text {
        "on" => Mode::On,
        "off" => Mode::Off,
        "auto" => Mode::Auto,
        _ => return Err(Refusal::Value),
    };
    Ok(())
}

/// Codec threads per rank, at most: more than any node has cores is a slip of the keyboard.
const MAX_THREADS: usize = 1024;

pub(super) fn threads(settings: &mut Settings, text: &str) -> Result<(), Refusal> {
    settings.threads = text
        .parse()
        .ok()
        .filter(|n| (1..=MAX_THREADS).contains(n))
        .ok_or(Refusal::Value)?;
    Ok(())
}

pub(super) fn report(settings: &mut Settings, text: &str) -> Result<(), Refusal> {
    let extension = Path::new(text).extension().unwrap_or_default();
    settings.report = match text {
        "off" => Report::Off,
        "stderr" => Report::Stderr,
        _ if extension.eq_ignore_ascii_case("json") => Report::Json(text.into()),
        _ if extension.eq_ignore_ascii_case("html") => return Err(Refusal::NotYet),
        // A word alone is taken for a slip ("of", "stdout", "no"), not for a file.
        _ if text.contains(['.', '/']) && !text.ends_with('/') => Report::File(text.into()),
        _ => return Err(Refusal::Value),
    };
    Ok(())
}

pub(super) fn log(settings: &mut Settings, text: &str) -> Result<(), Refusal> {
    // LevelFilter also reads numbers and capitals; one spelling is enough.
    settings.log = match text {
        "off" | "error" | "warn" | "info" | "debug" | "trace" => {
            LevelFilter::from_str(text).map_err(|_| Refusal::Value)?
        }
        _ => return Err(Refusal::Value),
    };
    Ok(())
}

pub(super) fn tolerance(settings: &mut Settings, text: &str) -> Result<(), Refusal> {
    settings.tolerance = match text {
        "" => None,
        _ => Some(absolute_error(text).ok_or(Refusal::Value)?),
    };
    Ok(())
}

fn absolute_error(text: &str) -> Option<f64> {
    let bound = text.parse().ok()?;
    is_tolerance(bound).then_some(bound)
}

/// Whether a number can be the largest absolute error.
pub fn is_tolerance(bound: f64) -> bool {
    bound.is_finite() && bound > 0.0
}

pub(super) fn engine(settings: &mut Settings, text: &str) -> Result<(), Refusal> {
    settings.engine = match text {
        "auto" => Engine::Auto,
        "collective" => Engine::Collective,
        "pairwise" => Engine::Pairwise,
        _ => return Err(Refusal::Value),
    };
    Ok(())
}

pub(super) fn guard(settings: &mut Settings, text: &str) -> Result<(), Refusal> {
    settings.guard = match text {
        "off" => None,
        _ => {
            let bound = text
                .parse()
                .ok()
                .filter(|bound| *bound > 0.0 && *bound < 1.0);
            Some(bound.ok_or(Refusal::Value)?)
        }
    };
    Ok(())
}

pub(super) fn device(settings: &mut Settings, text: &str) -> Result<(), Refusal> {
    settings.device = match text {
        "auto" => Device::Auto,
        "cpu" => Device::Cpu,
        "cuda" => Device::Cuda,
        _ => return Err(Refusal::Value),
    };
    Ok(())
}

pub(super) fn gpu_aware(settings: &mut Settings, text: &str) -> Result<(), Refusal> {
    settings.gpu_aware = match text {
        "auto" => GpuAware::Auto,
        "yes" => GpuAware::Yes,
        "no" => GpuAware::No,
        _ => return Err(Refusal::Value),
    };
    Ok(())
}
