//! Layouts that a message may have, as far as its count, its datatype and its smoothness tell.
//!
//! Extents that all messages of a call share divide the greatest common divisor of their counts. So the
//! inner axes are sought among its divisors, and the outermost axis is what is left.

use super::{Axis, Kind, Layout};

/// Strides that are tried as the step of an axis, at most.
const MOST_STRIDES: usize = 24;
/// Thinner smooth axes waste a block of four.
const THINNEST: usize = 4;
/// More components than this side by side are rather fields.
const MOST_COMPONENTS: usize = 8;

fn axis(kind: Kind, extent: usize) -> Option<Axis> {
    Some(Axis {
        kind,
        extent: Some(u32::try_from(extent).ok()?),
    })
}

const REST: Axis = Axis {
    kind: Kind::Smooth,
    extent: None,
};

/// Distances at which values are most alike: those of neighbours along some axis, if there is one.
/// `roughness` tells how unlike the values of a message are at a distance.
pub fn strides(divisor: usize, roughness: impl Fn(usize) -> f64) -> Vec<usize> {
    let mut strides: Vec<_> = divisors(divisor)
        .into_iter()
        .map(|stride| (roughness(stride), stride))
        .collect();
    strides.sort_by(|one, other| one.0.total_cmp(&other.0));
    strides
        .into_iter()
        .map(|(_, stride)| stride)
        .take(MOST_STRIDES)
        .collect()
}

/// Layouts with at most one axis besides the outermost and the components. `complex` values have their
/// parts as the fastest axis. The one axis is taken for fields at first, which is right or costs little;
/// [`smoothed`] gives the alternative.
pub fn first(divisor: usize, strides: &[usize], complex: bool) -> Vec<Layout> {
    let mut layouts = Vec::new();
    for parts in [1, 2, 3] {
        let is_possible = divisor.is_multiple_of(parts) && (!complex || parts == 2);
        if !is_possible {
            continue;
        }
        let parts_axis = (parts > 1).then(|| axis(Kind::Component, parts)).flatten();
        let mut push = |inner: Option<Axis>| {
            let axes = parts_axis.into_iter().chain(inner).chain([REST]).collect();
            layouts.extend(Layout::new(axes));
        };
        push(None);
        for extent in extents(strides, parts) {
            push(axis(Kind::Field, extent));
            // Two or three at the front are the parts above.
            if extent <= MOST_COMPONENTS && (parts > 1 || extent > 3) {
                push(axis(Kind::Component, extent));
            }
        }
    }
    layouts
}

/// The extents from 2 up of an axis whose values are `step` apart and that is followed by one of these
/// strides.
fn extents(strides: &[usize], step: usize) -> impl Iterator<Item = usize> {
    let followed = strides
        .iter()
        .filter(move |stride| stride.is_multiple_of(step));
    followed
        .map(move |stride| stride / step)
        .filter(|&extent| extent > 1)
}

/// The layout without scales. Where the fields are a plain axis, that is as good and saves their bits.
pub fn smoothed(layout: &Layout, _strides: &[usize]) -> Vec<Layout> {
    let plain = |axis: &Axis| match axis.kind {
        Kind::Field => Axis {
            kind: Kind::Smooth,
            extent: axis.extent,
        },
        _ => *axis,
    };
    let is_thin = |axis: &Axis| {
        axis.extent
            .is_some_and(|extent| (extent as usize) < THINNEST)
    };
    let fields = layout.axes.iter().find(|axis| axis.kind == Kind::Field);
    match fields {
        Some(fields) if !is_thin(fields) => {
            vec![Layout {
                axes: layout.axes.iter().map(plain).collect(),
            }]
        }
        _ => Vec::new(),
    }
}

/// A layout with its inner axis cut in two, and with a further axis cut off the outermost. Only where
/// there is an axis to spare.
pub fn refined(layout: &Layout, strides: &[usize]) -> Vec<Layout> {
    let (Some((rest, inner)), true) = (layout.axes.split_last(), layout.coded_axes() == 2) else {
        return Vec::new();
    };
    let extent_of = |axis: &Axis| axis.extent.map_or(1, |extent| extent as usize);
    let step = |axes: &[Axis]| axes.iter().map(extent_of).product::<usize>();
    let mut layouts = Vec::new();
    let mut push = |before: &[Axis], new: &[usize], after: &[Axis]| {
        let new: Option<Vec<_>> = new
            .iter()
            .map(|&extent| axis(Kind::Smooth, extent))
            .collect();
        let axes = new.map(|new| before.iter().chain(&new).chain(after).copied().collect());
        layouts.extend(axes.and_then(|axes| Layout::new(axes).ok()));
    };
    for extent in extents(strides, step(inner)).filter(|&extent| extent >= THINNEST) {
        push(inner, &[extent], &[*rest]);
    }
    if let Some((last, before)) = inner.split_last()
        && last.kind == Kind::Smooth
    {
        let whole = extent_of(last);
        let cuts = extents(strides, step(before)).filter(|&extent| {
            whole.is_multiple_of(extent) && extent >= THINNEST && whole / extent >= THINNEST
        });
        for extent in cuts {
            push(before, &[extent, whole / extent], &[*rest]);
        }
    }
    layouts
}

/// The layout of a datatype's own extents, fastest first, with the items as the outermost axis.
pub fn of_datatype(extents: &[usize], complex: bool) -> Option<Layout> {
    let parts = complex.then(|| axis(Kind::Component, 2)).flatten();
    // Axes beyond three are joined to the third, which leaves neighbours along it neighbours.
    let (kept, joined) = extents.split_at(extents.len().min(2));
    let joined: usize = joined.iter().product();
    let inner = kept
        .iter()
        .copied()
        .filter(|&n| n > 1)
        .map(|n| axis(Kind::Smooth, n));
    let outer = if joined > 1 { Vec::new() } else { vec![REST] };
    let third = (joined > 1).then_some(REST);
    let axes: Option<Vec<_>> = inner.collect();
    Layout::new(
        parts
            .into_iter()
            .chain(axes?)
            .chain(third)
            .chain(outer)
            .collect(),
    )
    .ok()
}

/// The divisors of `n` from 2 up, itself included; large ones of huge numbers left out.
fn divisors(n: usize) -> Vec<usize> {
    let small: Vec<usize> = (1..1 << 20)
        .take_while(|&d| d <= n / d)
        .filter(|&d| n.is_multiple_of(d))
        .collect();
    let large = small.iter().rev().map(|d| n / d).filter(|&d| d > n / d);
    small
        .iter()
        .copied()
        .chain(large)
        .filter(|&d| d > 1)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(layouts: &[Layout]) -> Vec<String> {
        layouts.iter().map(Layout::to_string).collect()
    }

    #[test]
    fn the_layout_of_spectral_fields_is_among_the_first() {
        let layouts = texts(&first(900, &[100, 900, 5], false));
        for expected in ["*", "2c,*", "2c,50f,*", "100f,*", "2c,450f,*", "5c,*"] {
            assert!(
                layouts.iter().any(|text| text == expected),
                "{expected} in {layouts:?}"
            );
        }
    }

    #[test]
    fn complex_values_keep_their_parts() {
        assert!(
            texts(&first(900, &[100], true))
                .iter()
                .all(|text| text.starts_with("2c,"))
        );
    }

    #[test]
    fn counts_without_a_common_divisor_leave_flat() {
        assert_eq!(texts(&first(1, &strides(1, |_| 0.0), false)), ["*"]);
    }

    #[test]
    fn three_dimensions_come_by_refining() {
        let refine =
            |text: &str, strides: &[usize]| texts(&refined(&Layout::parse(text).unwrap(), strides));
        assert_eq!(refine("64,*", &[64, 2048]), ["64,32,*"]);
        assert_eq!(refine("2048,*", &[64, 2048]), ["64,32,*"]);
        assert_eq!(refine("2c,50f,*", &[100, 8000]), ["2c,50f,80,*"]);
        assert!(refine("*", &[64]).is_empty());
        assert!(refine("4,4,*", &[64]).is_empty());
    }

    #[test]
    fn scales_can_be_dropped() {
        let smooth = |text: &str| texts(&smoothed(&Layout::parse(text).unwrap(), &[]));
        assert_eq!(smooth("2c,50f,*"), ["2c,50,*"]);
        assert!(smooth("50,*").is_empty() && smooth("3f,*").is_empty());
    }

    #[test]
    fn datatypes_give_their_extents() {
        let of = |extents: &[usize], complex| of_datatype(extents, complex).unwrap().to_string();
        assert_eq!(of(&[16, 8], false), "16,8,*");
        assert_eq!(of(&[16], true), "2c,16,*");
        assert_eq!(of(&[16, 8, 4], false), "16,8,*");
        assert_eq!(of(&[], false), "*");
    }

    #[test]
    fn divisors_come_in_order() {
        assert_eq!(divisors(12), [2, 3, 4, 6, 12]);
        assert_eq!(divisors(1 << 30).len(), 30);
        assert!(divisors(0).is_empty() && divisors(1).is_empty());
    }
}
