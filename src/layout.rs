//! The axes of a message, fastest first.
//!
//! `2c,100f,*` reads: two interleaved components, 100 fields side by side, and as many points as the
//! count leaves. See docs/environment.md for what the letters promise.

mod candidates;
mod infer;

pub use infer::{BitsPolicy, Inference, Pattern, Specimen, infer};

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
        if axes.iter().filter(|axis| axis.kind == Kind::Field).count() > 1 {
            return Err(
                "more than one field axis: accepted is at most one f; give the product".into(),
            );
        }
        Ok(Self { axes })
    }

    fn coded_axes(&self) -> usize {
        self.axes
            .iter()
            .filter(|axis| axis.kind != Kind::Component)
            .count()
    }

    /// Orders layouts by how much they claim: axes first, then scales.
    fn complexity(&self) -> (usize, usize) {
        let fields = self
            .axes
            .iter()
            .filter(|axis| axis.kind == Kind::Field)
            .count();
        (self.axes.len(), fields)
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

/// Makes axes ones for errors that are bounded one and all, or none: a scale would change what is allowed, and small
/// fields are safe beside large ones. Without axes, all values are one.
pub fn without_scales(axes: &mut Axes, count: usize) {
    if axes.is_empty() {
        axes.extend(u32::try_from(count).map(|count| (Kind::Smooth, count)));
    }
    for (kind, _) in axes {
        if *kind == Kind::Field {
            *kind = Kind::Smooth;
        }
    }
}

/// The greatest common divisor of the counts of some messages; 0 where there are none.
pub fn common_divisor(counts: impl IntoIterator<Item = usize>) -> usize {
    fn gcd(one: usize, other: usize) -> usize {
        if other == 0 {
            one
        } else {
            gcd(other, one % other)
        }
    }
    counts.into_iter().fold(0, gcd)
}

/// A layout with every extent known: the axes of one message.
pub type Axes = Vec<(Kind, u32)>;

impl Layout {
    /// The axes of a message of `count` values; `None` where the extents do not make up the count.
    pub fn resolve(&self, count: usize) -> Option<Axes> {
        let known = self
            .axes
            .iter()
            .filter_map(|axis| axis.extent)
            .try_fold(1usize, |product, extent| {
                product.checked_mul(extent as usize)
            })?;
        let open = count
            .checked_div(known)
            .filter(|open| open * known == count && *open > 0)?;
        let has_open = self.axes.iter().any(|axis| axis.extent.is_none());
        if !has_open && open != 1 {
            return None;
        }
        let open = u32::try_from(open).ok()?;
        Some(
            self.axes
                .iter()
                .map(|axis| (axis.kind, axis.extent.unwrap_or(open)))
                .collect(),
        )
    }

    /// The same layout for a message of complex values, whose parts are the fastest axis. A layout that
    /// begins with `2c` already names them.
    pub fn with_complex_parts(&self) -> Self {
        let parts = Axis {
            kind: Kind::Component,
            extent: Some(2),
        };
        if self.axes.first() == Some(&parts) {
            return self.clone();
        }
        Self {
            axes: std::iter::once(parts)
                .chain(self.axes.iter().copied())
                .collect(),
        }
    }
}

impl From<&Axes> for Layout {
    fn from(axes: &Axes) -> Self {
        let axes = axes.iter().map(|&(kind, extent)| Axis {
            kind,
            extent: Some(extent),
        });
        Self {
            axes: axes.collect(),
        }
    }
}

impl std::fmt::Display for Layout {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (index, axis) in self.axes.iter().enumerate() {
            let comma = if index > 0 { "," } else { "" };
            let kind = match axis.kind {
                Kind::Smooth => "",
                Kind::Component => "c",
                Kind::Field => "f",
            };
            match axis.extent {
                Some(extent) => write!(f, "{comma}{extent}{kind}")?,
                None => write!(f, "{comma}*{kind}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts_are_read_and_written_alike() {
        for text in ["*", "256,128,*", "2c,100f,*", "3c,2c,4,5,6", "7", "*f,2"] {
            assert_eq!(Layout::parse(text).unwrap().to_string(), text);
        }
    }

    #[test]
    fn layouts_that_mean_nothing_are_refused() {
        for text in [
            "", ",", "0", "-1", "2c", "*c,5", "*,*", "2f,3f", "1,2,3,4", "x", "4 4", "+4", "5g",
            "2c,",
        ] {
            assert!(Layout::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn extents_resolve_against_the_count() {
        let resolve = |text: &str, count| Layout::parse(text).unwrap().resolve(count);
        assert_eq!(
            resolve("4,*", 12),
            Some(vec![(Kind::Smooth, 4), (Kind::Smooth, 3)])
        );
        assert_eq!(resolve("4,*", 13), None);
        assert_eq!(
            resolve("4,3", 12),
            Some(vec![(Kind::Smooth, 4), (Kind::Smooth, 3)])
        );
        assert_eq!(resolve("4,3", 24), None);
        assert_eq!(resolve("4,*", 0), None);
        assert_eq!(resolve("65535,65535,65535", 1), None);
    }

    #[test]
    fn shapes_become_smooth_axes() {
        assert_eq!(
            Layout::from_extents(&[8, -1, 3]).unwrap().to_string(),
            "8,*,3"
        );
        for bad in [&[][..], &[0], &[-2], &[-1, -1], &[1, 2, 3, 4]] {
            assert!(Layout::from_extents(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn complex_values_bring_their_parts() {
        let complex = |text: &str| {
            Layout::parse(text)
                .unwrap()
                .with_complex_parts()
                .to_string()
        };
        assert_eq!(complex("8,*"), "2c,8,*");
        assert_eq!(complex("2c,8,*"), "2c,8,*");
        assert_eq!(complex("3c,8,*"), "2c,3c,8,*");
    }
}
