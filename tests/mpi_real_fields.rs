//! Fields of real models and observations, transposed: Debian's libncarg-data and ferret-datasets.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::fields::Field;
use common::fills::Transposed;
use common::{BOTH, Mpi};

const NCARG: &str = "/usr/share/ncarg/data/cdf";
const FERRET: &str = "/usr/share/ferret-vis/data";

#[test]
fn temperature_of_a_climate_model() {
    let field = Field::of_netcdf(&format!("{NCARG}/vinth2p.nc"), "T");
    assert_eq!(field.extents, [128, 64, 18]);
    for mpi in BOTH {
        for (rate, bound) in [(16, 1e-6), (8, 2e-4)] {
            let transposed = Transposed::new(mpi, &field, 4, rate);
            transposed.arrived.expect_compressed();
            let error = transposed.mean_relative_error();
            assert!(
                error > 0.0 && error < bound,
                "{error:e} at {rate}: {}",
                transposed.output()
            );
        }
    }
}

/// Points with no fill value as near as a block reaches.
fn clean(field: &Field, is_fill: &[bool]) -> Vec<bool> {
    const REACH: usize = 3;
    let mut dirty = is_fill.to_vec();
    let mut stride = 1;
    for extent in field.extents {
        let before = dirty.clone();
        for (index, dirty) in dirty.iter_mut().enumerate() {
            let at = index / stride % extent;
            let reach = at.saturating_sub(REACH)..(at + REACH + 1).min(extent);
            *dirty = reach
                .into_iter()
                .any(|other| before[index - at * stride + other * stride]);
        }
        stride *= extent;
    }
    dirty.iter().map(|dirty| !dirty).collect()
}

/// Every fill point as it was, and no other point off by more than ten times the worst of those far from
/// any.
#[track_caller]
fn keeps_fills_and_ocean(mpi: Mpi, path: &str, variable: &str, fill: f32, rate: u32) {
    let field = Field::of_netcdf(path, variable);
    let is_fill: Vec<_> = field
        .values
        .iter()
        .map(|value| value.to_bits() == fill.to_bits())
        .collect();
    let filled = is_fill.iter().filter(|is| **is).count();
    assert!(
        filled > field.values.len() / 5,
        "{path}: {filled} points are {fill}"
    );
    let transposed = Transposed::new(mpi, &field, 4, rate);
    // A message of nothing but land is one of whole numbers, and goes raw.
    assert!(
        transposed.arrived.count("compressed") >= 8.0,
        "{}",
        transposed.output()
    );
    transposed.expect_exact(&is_fill);
    let wet: Vec<_> = is_fill.iter().map(|is| !is).collect();
    let worst = transposed.largest_error(&wet);
    let far = transposed.largest_error(&clean(&field, &is_fill));
    assert!(
        far > 0.0 && worst <= 10.0 * far,
        "{variable} at {rate}: {worst:e}, far from fills {far:e}: {}",
        transposed.output()
    );
}

/// The layout is sought in the ocean, not in the land.
#[test]
fn land_does_not_hide_the_layout() {
    let levitus = format!("{FERRET}/levitus_climatology.cdf");
    let pop = format!("{NCARG}/pop.nc");
    for (mpi, path, variable, layout) in [
        (Mpi::OpenMpi, levitus, "TEMP", "90,45,*"),
        (Mpi::Mpich, pop, "t", "80,*"),
    ] {
        let field = Field::of_netcdf(&path, variable);
        let wet: Vec<_> = field.values.iter().map(|value| value.abs() < 1e9).collect();
        let by_hand = Transposed::along(mpi, &field, 4, 12, layout).mean_error(&wet);
        let found = Transposed::new(mpi, &field, 4, 12);
        let error = found.mean_error(&wet);
        assert!(
            error > 0.0 && error <= 2.0 * by_hand,
            "{variable}: {error:e}, along {layout} {by_hand:e}: {}",
            found.output()
        );
    }
}

#[test]
fn temperature_of_the_levitus_climatology() {
    let path = format!("{FERRET}/levitus_climatology.cdf");
    for (mpi, rate) in [(Mpi::OpenMpi, 16), (Mpi::Mpich, 8)] {
        keeps_fills_and_ocean(mpi, &path, "TEMP", -1e10, rate);
    }
}

#[test]
fn temperature_of_the_ocean_atlas() {
    let path = format!("{FERRET}/ocean_atlas_subset.nc");
    for (mpi, rate) in [(Mpi::Mpich, 16), (Mpi::OpenMpi, 8)] {
        keeps_fills_and_ocean(mpi, &path, "TEMP", -1e34, rate);
    }
}

#[test]
fn currents_and_temperature_of_an_ocean_model() {
    let path = format!("{NCARG}/pop.nc");
    for (mpi, variable) in [(Mpi::OpenMpi, "t"), (Mpi::Mpich, "urot")] {
        keeps_fills_and_ocean(mpi, &path, variable, 9.969_21e36, 16);
    }
}
