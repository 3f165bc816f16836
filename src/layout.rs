//! The axes of a message, fastest first.
//!
//! `2c,100f,*` reads: two interleaved components, 100 fields side by side, and as many points as the
//! count leaves. See docs/environment.md for what the letters promise.

/// What lies along an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Neighbours resemble each other: compress along it.
    Smooth,
    /// Real and imaginary part, or vector components: coded apart.
    Component,
    /// Quantities of unlike magnitude side by side: every index gets its own power-of-two scale.
    Field,
}

/// One axis. `extent` is `None` where the count of the message decides (`*`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Axis {
    pub kind: Kind,
    pub extent: Option<u32>,
}

/// Axes as a user gives them, fastest first.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Layout {
    axes: Vec<Axis>,
}

/// Axes that the codec compresses along, at most.
pub const MAX_CODED_AXES: usize = 3;
/// Axes altogether, at most; what a message header has room for.
pub const MAX_AXES: usize = 5;

impl Layout {
    /// Reads `2c,100f,*`. The error says what is accepted.
    pub fn parse(text: &str) -> Result<Self, String> {
        let axes = text
            .split(',')
            .map(|axis| parse_axis(axis.trim()))
            .collect::<Result<_, _>>()?;
        Self::new(axes)
    }

    /// A layout of smooth axes; an extent of -1 is left to the count.
    pub fn from_extents(extents: &[i32]) -> Result<Self, String> {
        let axis = |&extent: &i32| match extent {
            -1 => Ok(Axis {
                kind: Kind::Smooth,
                extent: None,
            }),
            n if n > 0 => Ok(Axis {
                kind: Kind::Smooth,
                extent: Some(n as u32),
            }),
            n => Err(format!(
                "extent {n}: accepted are positive extents, and -1 once"
            )),
        };
        Self::new(extents.iter().map(axis).collect::<Result<_, _>>()?)
    }

    fn new(axes: Vec<Axis>) -> Result<Self, String> {
        let coded = axes
            .iter()
            .filter(|axis| axis.kind != Kind::Component)
            .count();
        let open = axes.iter().filter(|axis| axis.extent.is_none()).count();
        if axes.len() > MAX_AXES || !(1..=MAX_CODED_AXES).contains(&coded) {
            return Err(format!(
                "{} axes: accepted are 1 to {MAX_CODED_AXES} smooth or field axes, and component axes, \
                 {MAX_AXES} altogether",
                axes.len()
            ));
        }
        if open > 1 {
            return Err("more than one open extent: accepted is at most one *".into());
        }
        Ok(Self { axes })
    }

    pub fn axes(&self) -> &[Axis] {
        &self.axes
    }
}

fn parse_axis(text: &str) -> Result<Axis, String> {
    let (number, kind) = match text.as_bytes().last() {
        Some(b'c') => (&text[..text.len() - 1], Kind::Component),
        Some(b'f') => (&text[..text.len() - 1], Kind::Field),
        _ => (text, Kind::Smooth),
    };
    let extent = match number {
        "*" => None,
        _ => match number.parse::<u32>() {
            Ok(n) if n > 0 && number.bytes().all(|b| b.is_ascii_digit()) => Some(n),
            _ => {
                return Err(format!(
                    "axis \"{text}\": accepted is a positive extent or *, then c (component), f (field) \
                     or nothing (smooth)"
                ));
            }
        },
    };
    if kind == Kind::Component && extent.is_none() {
        return Err(format!(
            "axis \"{text}\": a component axis needs its extent"
        ));
    }
    Ok(Axis { kind, extent })
}
