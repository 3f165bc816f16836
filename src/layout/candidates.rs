//! Layouts that a message may have, as far as its count and its datatype tell.
//!
//! Extents that all messages of a call share divide the greatest common divisor of their counts. So the
//! inner axes are sought among its divisors, and the outermost axis is what is left.

use super::{Axis, Kind, Layout};

/// Divisors that are tried as the extent of an axis, at most.
const MOST_DIVISORS: usize = 32;
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

/// Layouts with at most one axis besides the outermost and the components. `divisor` is common to the
/// counts of all messages, in values; `complex` values have their parts as the fastest axis. The one axis
/// is taken for fields at first, which is right or costs little; [`smoothed`] gives the alternative.
pub fn first(divisor: usize, complex: bool) -> Vec<Layout> {
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
        for extent in some_divisors(divisor / parts) {
            push(axis(Kind::Field, extent));
            // Two or three at the front are the parts above.
            if extent <= MOST_COMPONENTS && (parts > 1 || extent > 3) {
                push(axis(Kind::Component, extent));
            }
        }
    }
    layouts
}

/// The layout without scales. Where the fields are a plain axis, that is as good and saves their bits.
pub fn smoothed(layout: &Layout, _divisor: usize) -> Vec<Layout> {
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
pub fn refined(layout: &Layout, divisor: usize) -> Vec<Layout> {
    let (Some((rest, inner)), true) = (layout.axes.split_last(), layout.coded_axes() == 2) else {
        return Vec::new();
    };
    let product: usize = inner
        .iter()
        .filter_map(|axis| axis.extent)
        .map(|n| n as usize)
        .product();
    if product == 0 || !divisor.is_multiple_of(product) {
        return Vec::new();
    }
    let mut layouts = Vec::new();
    for extent in some_divisors(divisor / product).filter(|&extent| extent >= THINNEST) {
        let axes = inner
            .iter()
            .copied()
            .chain(axis(Kind::Smooth, extent))
            .chain([*rest]);
        layouts.extend(Layout::new(axes.collect()));
    }
    if let Some((last, before)) = inner.split_last()
        && last.kind == Kind::Smooth
        && let Some(whole) = last.extent
    {
        let whole = whole as usize;
        for extent in some_divisors(whole).filter(|n| *n >= THINNEST && whole / n >= THINNEST) {
            let pair = axis(Kind::Smooth, extent)
                .into_iter()
                .chain(axis(Kind::Smooth, whole / extent));
            layouts.extend(Layout::new(
                before.iter().copied().chain(pair).chain([*rest]).collect(),
            ));
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

/// The divisors of `n` from 2 up, itself included; where there are many, some of every size.
fn some_divisors(n: usize) -> impl Iterator<Item = usize> {
    let small: Vec<usize> = (1..)
        .take_while(|&d| d * d <= n && d <= 1 << 20)
        .filter(|&d| n.is_multiple_of(d))
        .collect();
    let large = small.iter().rev().map(|d| n / d).filter(|d| d * d > n);
    let all: Vec<usize> = small
        .iter()
        .copied()
        .chain(large)
        .filter(|&d| d > 1)
        .collect();
    let step = all.len().div_ceil(MOST_DIVISORS).max(1);
    all.into_iter().step_by(step)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(layouts: &[Layout]) -> Vec<String> {
        layouts.iter().map(Layout::to_string).collect()
    }

    #[test]
    fn the_layout_of_spectral_fields_is_among_the_first() {
        let layouts = texts(&first(900, false));
        for expected in ["*", "2c,*", "2c,50f,*", "450f,*", "5c,*"] {
            assert!(
                layouts.iter().any(|text| text == expected),
                "{expected} in {layouts:?}"
            );
        }
    }

    #[test]
    fn complex_values_keep_their_parts() {
        assert!(
            texts(&first(900, true))
                .iter()
                .all(|text| text.starts_with("2c,"))
        );
    }

    #[test]
    fn counts_without_a_common_divisor_leave_flat() {
        assert_eq!(texts(&first(1, false)), ["*"]);
    }

    #[test]
    fn three_dimensions_come_by_refining() {
        let refine = |text: &str, n| texts(&refined(&Layout::parse(text).unwrap(), n));
        assert!(refine("64,*", 64 * 32 * 20).contains(&"64,32,*".into()));
        assert!(refine("2048,*", 2048).contains(&"64,32,*".into()));
        assert!(refine("2c,50f,*", 2 * 50 * 80).contains(&"2c,50f,80,*".into()));
        assert!(refine("*", 64).is_empty());
        assert!(refine("4,4,*", 64).is_empty());
    }

    #[test]
    fn scales_can_be_dropped() {
        let smooth = |text: &str| texts(&smoothed(&Layout::parse(text).unwrap(), 1));
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
    fn numbers_with_many_divisors_are_thinned_out() {
        assert!(some_divisors(1 << 40).count() <= MOST_DIVISORS);
        assert!(some_divisors(720_720).count() <= MOST_DIVISORS);
        assert_eq!(some_divisors(12).collect::<Vec<_>>(), [2, 3, 4, 6, 12]);
    }
}
