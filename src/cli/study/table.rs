//! The results as text, and the cells that the page shares with it.

use std::fmt::Write;

use super::result::{Blocks, Results, Row, Variable};

/// The columns of the table, and the side their cells stand at.
pub const COLUMNS: [(&str, Side); 15] = [
    ("codec", Side::Left),
    ("asked", Side::Right),
    ("layout", Side::Left),
    ("bits", Side::Left),
    ("MB before", Side::Right),
    ("MB wire", Side::Right),
    ("bits/value", Side::Right),
    ("ratio", Side::Right),
    ("mean rel", Side::Right),
    ("max abs", Side::Right),
    ("rel L2", Side::Right),
    ("max/range", Side::Right),
    ("worst block", Side::Left),
    ("fill exact", Side::Right),
    ("guard", Side::Left),
];

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Side {
    Left,
    Right,
}

pub fn text(results: &Results) -> String {
    let mut out = format!("{}\n", title(results));
    for variable in &results.variables {
        // Writing to a String cannot fail.
        let _ = write_variable(&mut out, variable);
    }
    let _ = writeln!(out, "\n{LEGEND}");
    out
}

pub fn title(results: &Results) -> String {
    let guard = match results.guard {
        Some(guard) => format!("guard {guard:e}"),
        None => "no guard".into(),
    };
    let cut = match results.ranks {
        Some(ranks) => format!(", cut as a transpose between {ranks} ranks"),
        None => String::new(),
    };
    format!("{}: {}{cut}, {guard}", results.file, results.format)
}

pub const LEGEND: &str = "\
MB: 10^6 bytes, header included; bits/value: on the wire; mean rel: mean of |x-x'|/|x| where x is not 0; rel L2: |x-x'|/|x| as vectors;
worst block: the 4x4x4 block of the largest rel L2, and its first x,y,z; fill exact: share of fill values that
came back bit for bit; guard: what the library would send as it is, exactly, and why.";

fn write_variable(out: &mut String, variable: &Variable) -> std::fmt::Result {
    writeln!(out, "\n{}", heading(variable))?;
    for line in notes(variable) {
        writeln!(out, "  {line}")?;
    }
    let headings = COLUMNS.map(|(heading, _)| heading.to_owned()).to_vec();
    let rows = variable.results.iter().map(|row| cells(row).to_vec());
    let lines: Vec<_> = [headings].into_iter().chain(rows).collect();
    write_aligned(out, &lines, &COLUMNS.map(|(_, side)| side))?;
    writeln!(out, "  4x4x4 blocks by relative L2 error, per cent")?;
    let lines = histogram(variable);
    // The first three columns are those of the table above.
    let sides = COLUMNS.iter().map(|(_, side)| *side).take(3);
    let sides = sides.chain(std::iter::repeat(Side::Right));
    let columns = lines.first().map_or(0, Vec::len);
    write_aligned(out, &lines, &sides.take(columns).collect::<Vec<_>>())
}

/// `T [K]: f32, 128 x 64 x 36 (lon, lat, lev), 294912 values from 180.1 to 311.2`
pub fn heading(variable: &Variable) -> String {
    let units = match &variable.units {
        Some(units) if !units.is_empty() => format!(" [{units}]"),
        _ => String::new(),
    };
    let axes = variable.axes.iter();
    let extents: Vec<_> = axes.clone().map(|axis| axis.extent.to_string()).collect();
    let names: Vec<_> = axes.map(|axis| axis.name.as_str()).collect();
    let range = match (variable.smallest, variable.largest) {
        (Some(smallest), Some(largest)) => {
            format!(" from {} to {}", plain(smallest), plain(largest))
        }
        _ => String::new(),
    };
    format!(
        "{}{units}: {}, {} ({}), {} values{range}",
        variable.name,
        variable.element,
        extents.join(" x "),
        names.join(", "),
        variable.values
    )
}

/// What else is to be known of a variable.
pub fn notes(variable: &Variable) -> Vec<String> {
    let mut notes = Vec::new();
    let fills = variable.fill_values;
    if fills > 0 {
        let share = 100.0 * fills as f64 / variable.values as f64;
        notes.push(format!(
            "{fills} fill values, {share:.1} %, not counted in the errors"
        ));
    }
    let messages = &variable.messages;
    if messages.count > 1 {
        notes.push(format!(
            "{} messages of {} to {} values",
            messages.count, messages.smallest, messages.largest
        ));
    }
    if messages.under_min_bytes > 0 {
        notes.push(format!(
            "{} messages are smaller than TRANSPRESS_MIN_BYTES and would not be compressed unless that is lowered",
            messages.under_min_bytes
        ));
    }
    notes
}

pub fn layout(row: &Row) -> String {
    let Some(layout) = &row.layout else {
        return "-".into();
    };
    let others = match layout.others {
        0 => String::new(),
        others => format!(" (+{others})"),
    };
    format!("{} {}{others}", layout.name, layout.axes)
}

/// What the codec was asked for: `16 bits`, `±0.1`, or nothing.
pub fn asked(row: &Row) -> String {
    match (row.rate, row.tolerance) {
        (Some(rate), _) => format!("{rate} bits"),
        (_, Some(tolerance)) => format!("±{tolerance}"),
        (None, None) => "-".into(),
    }
}

/// One cell per column.
pub fn cells(row: &Row) -> [String; 15] {
    let megabytes = |bytes: u64| format!("{:.3}", bytes as f64 / 1e6);
    let number = |value: Option<f64>| value.map_or("-".into(), |value| format!("{value:.2e}"));
    let errors = row.errors.as_ref();
    let worst = errors.and_then(|errors| errors.worst_block);
    let exact = errors.and_then(|errors| errors.fill_values_exact);
    [
        row.codec.into(),
        asked(row),
        layout(row),
        row.bits.unwrap_or("-").into(),
        megabytes(row.bytes_before),
        megabytes(row.bytes_wire),
        format!("{:.2}", row.bits_per_value),
        format!("{:.2}", row.ratio),
        number(errors.and_then(|errors| errors.mean_relative)),
        errors.map_or("-".into(), |errors| plain(errors.max_absolute)),
        number(errors.map(|errors| errors.relative_l2)),
        number(errors.and_then(|errors| errors.max_over_range)),
        worst.map_or("-".into(), |worst| {
            let [x, y, z] = worst.at;
            format!("{:.2e} at {x},{y},{z}", worst.relative_l2)
        }),
        exact.map_or("-".into(), percent),
        guard(row),
    ]
}

fn guard(row: &Row) -> String {
    let verdict = &row.guard;
    match (&verdict.reason, verdict.messages) {
        (None, _) => "passes".into(),
        (Some(reason), 1) => format!("raw: {reason}"),
        (Some(reason), messages) => {
            format!("{} of {messages} raw: {reason}", verdict.raw_messages)
        }
    }
}

/// Three digits, and an exponent only where zeros would have to be counted.
fn plain(value: f64) -> String {
    let magnitude = value.abs().log10().floor();
    if value == 0.0 || (-3.0..5.0).contains(&magnitude) {
        let digits = (2.0 - magnitude).clamp(0.0, 5.0) as usize;
        format!("{value:.*}", if value == 0.0 { 0 } else { digits })
    } else {
        format!("{value:.2e}")
    }
}

/// Rounded, but never to all or nothing where it is neither.
fn percent(share: f64) -> String {
    match share {
        0.0 | 1.0 => format!("{} %", 100.0 * share),
        _ => format!("{:.2} %", (100.0 * share).clamp(0.01, 99.99)),
    }
}

/// The decades that any row of a variable has blocks in.
pub fn decades(variable: &Variable) -> Vec<i32> {
    let rows = variable
        .results
        .iter()
        .filter_map(|row| row.errors.as_ref());
    let all = rows.flat_map(|errors| errors.blocks.decades.iter().map(|decade| decade.exponent));
    match (all.clone().min(), all.max()) {
        (Some(least), Some(most)) => (least..=most).collect(),
        _ => Vec::new(),
    }
}

/// The share of the blocks whose errors lie in a decade, in per cent.
pub fn share(blocks: &Blocks, exponent: i32) -> f64 {
    let decade = blocks
        .decades
        .iter()
        .find(|decade| decade.exponent == exponent);
    part(decade.map_or(0, |decade| decade.blocks), blocks)
}

fn part(blocks: u64, of: &Blocks) -> f64 {
    100.0 * blocks as f64 / of.count.max(1) as f64
}

fn histogram(variable: &Variable) -> Vec<Vec<String>> {
    let decades = decades(variable);
    let cell = |share: f64| match share {
        0.0 => ".".into(),
        _ if share < 0.1 => "<0.1".into(),
        _ => format!("{share:.1}"),
    };
    let mut lines: Vec<Vec<String>> = vec![
        ["codec", "asked", "layout", "exact"]
            .into_iter()
            .map(String::from)
            .chain(decades.iter().map(|exponent| format!("1e{exponent}")))
            .chain(["zeros changed".into()])
            .collect(),
    ];
    for row in &variable.results {
        let Some(errors) = &row.errors else {
            continue;
        };
        let blocks = &errors.blocks;
        let shares = decades.iter().map(|&exponent| share(blocks, exponent));
        let ends = [
            part(blocks.exact, blocks),
            part(blocks.zeros_changed, blocks),
        ];
        lines.push(
            [row.codec.into(), asked(row), layout(row), cell(ends[0])]
                .into_iter()
                .chain(shares.map(cell))
                .chain([cell(ends[1])])
                .collect(),
        );
    }
    lines
}

fn write_aligned(out: &mut String, lines: &[Vec<String>], sides: &[Side]) -> std::fmt::Result {
    let width = |column: usize| {
        let cells = lines.iter().filter_map(|line| line.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<_> = (0..sides.len()).map(width).collect();
    for line in lines {
        let mut text = String::new();
        for ((cell, &width), side) in line.iter().zip(&widths).zip(sides) {
            match side {
                Side::Left => write!(text, "  {cell:<width$}")?,
                Side::Right => write!(text, "  {cell:>width$}")?,
            }
        }
        writeln!(out, "{}", text.trim_end())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned() {
        let mut out = String::new();
        let line = |cells: [&str; 2]| cells.map(String::from).to_vec();
        let lines = [line(["a", "long"]), line(["bcd", "1"])];
        write_aligned(&mut out, &lines, &[Side::Left, Side::Right]).unwrap();
        assert_eq!(out, "  a    long\n  bcd     1\n");
    }

    #[test]
    fn numbers_are_short() {
        let cases = [
            (0.0, "0"),
            (0.001_234, "0.00123"),
            (-7.406, "-7.41"),
            (309.5, "310"),
            (98_765.4, "98765"),
            (1e-6, "1.00e-6"),
            (-1e34, "-1.00e34"),
        ];
        for (value, text) in cases {
            assert_eq!(plain(value), text);
        }
    }

    #[test]
    fn shares_are_not_rounded_to_all() {
        assert_eq!(percent(1.0), "100 %");
        assert_eq!(percent(0.999_999_9), "99.99 %");
        assert_eq!(percent(0.5), "50.00 %");
    }
}
