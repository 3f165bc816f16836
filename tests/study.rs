//! `transpress study` from outside: files that the tests write, real ones where they are installed, and
//! every kind of bad input.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use netcdf_writer::{NcAttrValue, NcFileBuilder, NcWriteFormat, NcWriteOptions};
use serde_json::Value;

fn study(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_transpress"));
    command.arg("study").args(arguments).output().unwrap()
}

/// The standard output of a study that must succeed and say nothing on stderr.
fn succeed(arguments: &[&str]) -> String {
    let output = study(arguments);
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap()
}

/// The one line of a study that must fail.
fn fail(arguments: &[&str]) -> String {
    let output = study(arguments);
    let line = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {line}");
    assert!(output.stdout.is_empty());
    assert_eq!(line.lines().count(), 1, "{line}");
    line.strip_prefix("transpress: ").unwrap().trim().to_owned()
}

/// The first variable of a study as JSON.
fn variable(arguments: &[&str]) -> Value {
    let text = succeed(&[arguments, &["--json", "-"]].concat());
    let mut results: Value = serde_json::from_str(&text).unwrap();
    results["variables"][0].take()
}

/// The row of a codec, a rate and a layout.
fn row<'a>(variable: &'a Value, codec: &str, rate: f64, layout: Option<&str>) -> &'a Value {
    let mut rows = variable["results"].as_array().unwrap().iter();
    let is_it = |row: &&Value| {
        row["codec"] == codec && row["rate"] == rate && row["layout"]["name"].as_str() == layout
    };
    rows.find(is_it)
        .unwrap_or_else(|| panic!("no {codec} {rate} {layout:?} in {variable:#}"))
}

fn error(row: &Value, measure: &str) -> f64 {
    row["errors"][measure].as_f64().unwrap()
}

/// A place for the file of one test.
fn place(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("study");
    fs::create_dir_all(&folder).unwrap();
    folder.join(name)
}

fn write(name: &str, bytes: &[u8]) -> String {
    let path = place(name);
    fs::write(&path, bytes).unwrap();
    path.to_str().unwrap().into()
}

fn raw(name: &str, values: &[f32]) -> String {
    let bytes: Vec<u8> = values
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect();
    write(name, &bytes)
}

/// Something smooth in three directions, x fastest.
fn smooth([nx, ny, nz]: [usize; 3]) -> Vec<f32> {
    let at = |index: usize| {
        let x = (index % nx) as f32;
        let y = (index / nx % ny) as f32;
        let z = (index / nx / ny) as f32;
        (0.11 * x).sin() * (0.07 * y).cos() + (0.05 * z + 0.02 * x).sin() + 3.0
    };
    (0..nx * ny * nz).map(at).collect()
}

/// A field (z, y, x) = (6, 40, 50) with a strip of land, one of packed numbers, one too small to be of
/// interest and one without values.
fn netcdf(name: &str, format: NcWriteFormat) -> String {
    let mut file = NcFileBuilder::new();
    let z = file.add_dimension("lev", 6).unwrap();
    let y = file.add_dimension("lat", 40).unwrap();
    let x = file.add_dimension("lon", 50).unwrap();
    let none = file.add_unlimited_dimension("time").unwrap();

    let field = file.add_variable::<f32>("temp", &[z, y, x]).unwrap();
    file.set_variable_fill_value(field, -1e34f32).unwrap();
    let kelvin = NcAttrValue::Chars("K".into());
    file.add_variable_attribute(field, "units", kelvin).unwrap();
    let mut values = smooth([50, 40, 6]);
    for row in values.chunks_mut(50) {
        row[20..27].fill(-1e34);
    }
    file.write_variable(field, &values).unwrap();

    let packed = file.add_variable::<i16>("packed", &[y, x]).unwrap();
    let factor = NcAttrValue::Floats(vec![0.01]);
    file.add_variable_attribute(packed, "scale_factor", factor)
        .unwrap();
    file.write_variable(packed, &[7i16; 2000]).unwrap();

    let small = file.add_variable::<f64>("lat", &[y]).unwrap();
    file.write_variable(small, &[0.5f64; 40]).unwrap();

    file.add_variable::<f32>("empty", &[none, x]).unwrap();
    let (_, bytes) = file.to_vec(NcWriteOptions { format }).unwrap();
    write(name, &bytes)
}

fn classic(name: &str) -> String {
    netcdf(name, NcWriteFormat::Classic)
}

#[test]
fn the_right_axes_are_far_better_than_swapped_ones_or_none() {
    let values: Vec<f32> = (0..3600)
        .map(|i| ((i % 36) as f32 * 0.17).sin() + ((i / 36) as f32 * 0.06).cos() + 2.5)
        .collect();
    let file = raw("smooth.bin", &values);
    let right = variable(&[&file, "--shape", "36,100", "--rate", "8"]);
    let swapped = variable(&[&file, "--shape", "100,36", "--rate", "8"]);
    let flat = error(row(&right, "zfp", 8.0, Some("flat")), "relative_l2");
    let swapped = error(row(&swapped, "zfp", 8.0, Some("2-D")), "relative_l2");
    let found = row(&right, "zfp", 8.0, Some("auto"));
    let right = error(row(&right, "zfp", 8.0, Some("2-D")), "relative_l2");
    assert!(right < 1e-3, "{right}");
    assert!(
        swapped > 10.0 * right && flat > 10.0 * right,
        "{right} {swapped} {flat}"
    );
    assert!(error(found, "relative_l2") < 2.0 * right, "{found}");
}

#[test]
fn bytes_follow_the_size_rule() {
    let file = raw("bytes.bin", &smooth([20, 15, 17]));
    let studied = variable(&[&file, "--shape", "20,15,17", "--rate", "8,12.5"]);
    for (rate, wire) in [(8.0, 48 + 5104), (12.5, 48 + 7976)] {
        for layout in ["flat", "2-D", "3-D", "auto"] {
            let row = row(&studied, "zfp", rate, Some(layout));
            assert_eq!(row["bytes_before"], 20400);
            assert_eq!(row["bytes_wire"], wire, "{rate}");
            assert_eq!(row["bytes_wire"], row["guard"]["bytes_sent"]);
        }
    }
    let halves = row(&studied, "fp16", 16.0, None);
    assert_eq!(halves["bytes_wire"], 48 + 10200);
    let mean = error(halves, "mean_relative");
    assert!((1e-5..4.9e-4).contains(&mean), "{mean}");
    assert_eq!(halves["errors"]["blocks"]["count"], 5 * 4 * 5);
}

#[test]
fn doubles_are_read_as_doubles() {
    let bytes: Vec<u8> = smooth([16, 16, 16])
        .iter()
        .flat_map(|&value| (f64::from(value) + 1e-9).to_le_bytes())
        .collect();
    let file = write("doubles.bin", &bytes);
    let studied = variable(&[
        &file, "--shape", "16,16,16", "--type", "f64", "--rate", "40",
    ]);
    assert_eq!(studied["element"], "f64");
    let cube = row(&studied, "zfp", 40.0, Some("3-D"));
    assert!(error(cube, "max_absolute") < 1e-8, "{cube}");
}

#[test]
fn what_the_guard_holds_back_is_told() {
    let noise = |i: u32| f64::from(i.wrapping_mul(2_654_435_761) >> 8) / 1e6 - 8.0;
    let values: Vec<f32> = (0..8000).map(|i| noise(i) as f32).collect();
    let file = raw("noise.bin", &values);
    let studied = variable(&[&file, "--shape", "20,20,20", "--rate", "4"]);
    let cube = row(&studied, "zfp", 4.0, Some("3-D"));
    assert_eq!(cube["guard"]["raw_messages"], 1);
    assert_eq!(cube["guard"]["bytes_sent"], 48 + 4000 + 32000);
    assert!(error(cube, "relative_l2") > 1e-2);
    let open = variable(&[
        &file, "--shape", "20,20,20", "--rate", "4", "--guard", "off",
    ]);
    let cube = row(&open, "zfp", 4.0, Some("3-D"));
    assert_eq!(cube["guard"]["raw_messages"], 0);

    let numbers: Vec<f32> = (0..8000).map(|i| i as f32).collect();
    let file = raw("numbers.bin", &numbers);
    let studied = variable(&[&file, "--shape", "8000"]);
    let flat = row(&studied, "zfp", 16.0, Some("flat"));
    assert_eq!(flat["guard"]["reason"], "whole numbers");
}

#[test]
fn netcdf_of_both_kinds_is_read_alike() {
    let classic = classic("both.nc");
    let hdf5 = netcdf("both.nc4", NcWriteFormat::Nc4);
    let (one, other) = (variable(&[&classic]), variable(&[&hdf5]));
    assert_eq!(one["results"], other["results"]);
    assert_eq!(one["name"], "temp");
    assert_eq!(one["units"], "K");
    assert_eq!(one["axes"][0]["name"], "lon");
    assert_eq!(one["axes"][2]["extent"], 6);
    assert_eq!(one["fill_values"], 7 * 40 * 6);
    for layout in ["flat", "2-D", "3-D", "auto"] {
        let row = row(&one, "zfp", 16.0, Some(layout));
        assert_eq!(row["errors"]["fill_values_exact"], 1.0);
        assert!(error(row, "max_absolute") < 1e-2, "{row}");
    }
    // The fill value is beyond float16.
    assert!(row(&one, "fp16", 16.0, None)["errors"].is_null());
}

#[test]
fn a_transpose_is_cut_into_its_messages() {
    let file = raw("ranks.bin", &smooth([34, 30, 10]));
    let studied = variable(&[&file, "--shape", "34,30,10", "--ranks", "4", "--rate", "16"]);
    assert_eq!(studied["messages"]["count"], 12);
    assert_eq!(studied["messages"]["largest"], 9 * 8 * 10);
    assert_eq!(studied["messages"]["smallest"], 8 * 7 * 10);
    assert_eq!(studied["messages"]["under_min_bytes"], 12);
    // What a rank keeps is not sent: (9+9)·(8) + 8·7 + 8·7 columns of 10.
    let kept = (9 * 8 + 9 * 8 + 8 * 7 + 8 * 7) * 10;
    let sent = 34 * 30 * 10 - kept;
    let cube = row(&studied, "zfp", 16.0, Some("3-D"));
    assert_eq!(cube["bytes_before"], 4 * sent);
    assert!(error(cube, "relative_l2") < 1e-4);
    let rounding = cube["bytes_wire"].as_u64().unwrap() - 2 * sent - 12 * 48;
    assert!(rounding < 12 * 8, "{rounding}");
}

#[test]
fn the_table_and_the_page_say_what_the_json_says() {
    let (file, page, json) = (classic("page.nc"), place("page.html"), place("page.json"));
    let (page, json) = (page.to_str().unwrap(), json.to_str().unwrap());
    let table = succeed(&[&file, "--html", page, "--json", json, "--layout", "50,*"]);
    let results: Value = serde_json::from_str(&fs::read_to_string(json).unwrap()).unwrap();
    assert_eq!(results["format"], "NetCDF classic");
    let rows = results["variables"][0]["results"].as_array().unwrap();
    assert_eq!(rows.len(), 2 * 5 + 2);
    let page = fs::read_to_string(page).unwrap();
    for row in rows.iter().filter(|row| !row["errors"].is_null()) {
        let shown = format!("{:.2e}", error(row, "relative_l2"));
        assert!(table.contains(&shown) && page.contains(&shown), "{shown}");
    }
    assert!(page.contains("<svg") && page.contains("bits per value"));
    for outside in ["http:", "https:", "<script", "src="] {
        assert!(!page.contains(outside), "{outside}");
    }
}

#[test]
fn bad_files_are_told_in_one_line() {
    let no_such = place("no-such.nc");
    assert!(fail(&[no_such.to_str().unwrap()]).contains("No such file"));
    assert!(fail(&[env!("CARGO_TARGET_TMPDIR")]).contains("not a file"));
    assert!(fail(&[&write("none.nc", b"")]).contains("an empty file"));
    let text = write("text.nc", b"these are no fields at all");
    assert!(fail(&[&text]).contains("not a NetCDF file"));
    assert!(fail(&[&text, "--shape", "4,2"]).contains("needs 32 bytes, and the file has 26"));
    assert!(fail(&[&text, "--shape", "4,2", "--type", "f16"]).contains("f32 or f64"));
    assert!(fail(&[&text, "--shape", "4,0"]).contains("positive extents"));
    assert!(fail(&[&text, "--type", "f32"]).contains("--shape"));

    let whole = classic("whole.nc");
    assert!(fail(&[&whole, "--shape", "3"]).contains("says its shapes itself"));
    let absent = fail(&[&whole, "--variable", "t"]);
    assert!(absent.contains("no variable t; there are temp (f32 6x40x50), packed (i16 40x50)"));
    assert!(fail(&[&whole, "--variable", "packed"]).contains("packed as i16"));
    assert!(fail(&[&whole, "--variable", "empty"]).contains("has no values"));
    assert!(fail(&[&whole, "--layout", "7,*"]).contains("does not make up"));
}

#[test]
fn files_that_were_cut_short_are_told_in_one_line() {
    for (name, format) in [
        ("classic", NcWriteFormat::Classic),
        ("hdf5", NcWriteFormat::Nc4),
    ] {
        let whole = fs::read(netcdf(&format!("{name}.nc"), format)).unwrap();
        for length in [5, 9, 40, 200, 900, whole.len() / 2] {
            let file = write(&format!("{name}-{length}.nc"), &whole[..length]);
            let line = fail(&[&file, "--variable", "temp"]);
            assert!(
                line.contains("cut short") || line.contains("not a NetCDF"),
                "{line}"
            );
        }
    }
}

/// No bit of the header of a file makes the command do worse than refuse it.
#[test]
fn damaged_headers_do_no_harm() {
    for format in [NcWriteFormat::Classic, NcWriteFormat::Nc4] {
        let whole = fs::read(netcdf("damaged.nc", format)).unwrap();
        for byte in (4..400.min(whole.len())).step_by(23) {
            let mut bytes = whole.clone();
            bytes[byte] ^= 0x55;
            let file = write("damaged.nc", &bytes);
            let output = study(&[&file, "--rate", "16"]);
            assert!(
                matches!(output.status.code(), Some(0 | 2)),
                "byte {byte}: {output:?}"
            );
        }
    }
}

#[test]
fn options_that_cannot_be_followed_are_told_in_one_line() {
    let file = classic("options.nc");
    let cases = [
        (["--tolerance", "0"], "above 0"),
        (["--tolerance", "0.1,x"], "above 0"),
        (["--codec", "zip"], "accepted is lossless"),
        (["--rate", "0.5"], "1 to 64"),
        (["--rate", "8,,16"], "1 to 64"),
        (["--rate", "nan"], "1 to 64"),
        (["--guard", "2"], "above 0 and below 1"),
        (["--bits", "odd"], "auto, even or fitted"),
        (["--ranks", "1"], "2 or more"),
        (["--layout", "4,4,4,4"], "smooth or field axes"),
        (["--json", "/nonexistent/folder/file"], "No such file"),
    ];
    for (option, expected) in cases {
        let line = fail(&[&[file.as_str()], &option[..]].concat());
        assert!(line.contains(expected), "{line}");
    }
}

/// The row of a tolerance (none: of the lossless codec) and a layout.
fn bounded_row<'a>(variable: &'a Value, tolerance: Option<f64>, layout: &str) -> &'a Value {
    let mut rows = variable["results"].as_array().unwrap().iter();
    let is_it = |row: &&Value| {
        let is_codec = (row["codec"] == "lossless") == tolerance.is_none();
        is_codec
            && row["rate"].is_null()
            && row["tolerance"].as_f64() == tolerance
            && row["layout"]["name"] == layout
    };
    rows.find(is_it)
        .unwrap_or_else(|| panic!("no {tolerance:?} {layout} in {variable:#}"))
}

#[test]
fn errors_stay_within_a_tolerance_and_lossless_has_none() {
    let values: Vec<f32> = smooth([40, 30, 17]).iter().map(|v| 100.0 * v).collect();
    let file = raw("bounded.bin", &values);
    let asked = ["--tolerance", "0.01,1", "--codec", "lossless"];
    let studied = variable(&[&[file.as_str(), "--shape", "40,30,17"], &asked[..]].concat());
    for layout in ["flat", "2-D", "3-D", "auto"] {
        let [fine, coarse] = [0.01, 1.0].map(|bound| bounded_row(&studied, Some(bound), layout));
        let exact = bounded_row(&studied, None, layout);
        let bits = |row: &Value| row["bits_per_value"].as_f64().unwrap();
        assert!(
            bits(coarse) < bits(fine) && bits(fine) < bits(exact),
            "{layout}"
        );
        assert!(bits(exact) < 32.0, "{exact}");
        assert!(error(fine, "max_absolute") <= 0.01 && error(coarse, "max_absolute") <= 1.0);
        assert!(error(coarse, "max_absolute") > 0.01);
        assert_eq!(error(exact, "max_absolute"), 0.0);
        assert_eq!(fine["guard"]["bytes_sent"], fine["bytes_wire"]);
    }
    // What is found in the data is shortest, or nearly so.
    let bits = |layout| bounded_row(&studied, Some(0.01), layout)["bits_per_value"].as_f64();
    assert!(bits("auto").unwrap() < 1.05 * bits("3-D").unwrap());
    assert!(bits("auto").unwrap() < 0.9 * bits("flat").unwrap());
}

#[test]
fn what_does_not_get_shorter_is_exact() {
    let noise = |i: u32| f32::from_bits(0x3f80_0000 | i.wrapping_mul(2_654_435_761) >> 9);
    let file = raw("bits.bin", &(0..4096).map(noise).collect::<Vec<_>>());
    let asked = ["--tolerance", "1e-9", "--codec", "lossless"];
    let studied = variable(&[&[file.as_str(), "--shape", "4096"], &asked[..]].concat());
    let row = bounded_row(&studied, Some(1e-9), "flat");
    assert_eq!(row["guard"]["reason"], "no gain");
    assert_eq!(row["guard"]["bytes_sent"], 48 + 4 * 4096);
    assert_eq!(error(row, "max_absolute"), 0.0);
}

/// Raw output of a climate model.
#[test]
fn temperature_of_a_climate_model() {
    let file = "/usr/share/ncarg/data/cdf/vinth2p.nc";
    if !Path::new(file).exists() {
        eprintln!("skipped: {file} is not there (Debian: libncarg-data)");
        return;
    }
    let studied = variable(&[file, "--variable", "T"]);
    for (rate, bound) in [(8.0, 2e-4), (16.0, 1e-6)] {
        for layout in ["3-D", "auto"] {
            let mean = error(row(&studied, "zfp", rate, Some(layout)), "mean_relative");
            assert!(mean < bound, "{rate} {layout}: {mean}");
        }
    }
    // float16 is far from the same number of bits along the true axes.
    let halves = error(row(&studied, "fp16", 16.0, None), "mean_relative");
    assert!((1e-4..3e-4).contains(&halves), "{halves}");
}

/// Ocean, a third of which is land.
#[test]
fn temperature_of_an_ocean() {
    let file = "/usr/share/ncarg/data/cdf/pop.nc";
    if !Path::new(file).exists() {
        eprintln!("skipped: {file} is not there (Debian: libncarg-data)");
        return;
    }
    let studied = variable(&[file, "--variable", "t"]);
    assert!(studied["fill_values"].as_u64().unwrap() > 30_000);
    for rate in [8.0, 16.0] {
        for layout in ["flat", "2-D", "auto"] {
            let row = row(&studied, "zfp", rate, Some(layout));
            assert_eq!(row["errors"]["fill_values_exact"], 1.0);
        }
    }
    let mean = error(row(&studied, "zfp", 16.0, Some("2-D")), "mean_relative");
    assert!(mean < 1e-5, "{mean}");
    // Land does not keep the library from finding the rows.
    let error = |layout| error(row(&studied, "zfp", 16.0, Some(layout)), "relative_l2");
    assert!(10.0 * error("auto") < error("flat"));
}
