//! Plots as SVG, coloured by the classes of the page.

use std::fmt::Write;

use super::html::escape;
use super::result::{Row, Variable};
use super::table;

/// The drawing area of the error plot, in SVG units, and the room around it.
const WIDTH: f64 = 620.0;
const HEIGHT: f64 = 320.0;
const LEFT: f64 = 70.0;
const TOP: f64 = 14.0;
const BOTTOM: f64 = 52.0;
const RIGHT: f64 = 210.0;

/// A line or a point of the error plot.
struct Series<'a> {
    label: String,
    class: &'static str,
    points: Vec<(f64, f64, &'a Row)>,
}

/// Relative L2 error over bits per value: a line per layout, a point per 16-bit float.
pub fn errors(variable: &Variable) -> String {
    let series = series(variable);
    let points = || series.iter().flat_map(|series| series.points.iter());
    let logs = || points().map(|point| point.1.log10());
    let (Some(least), Some(most)) = (logs().min_by(f64::total_cmp), logs().max_by(f64::total_cmp))
    else {
        return "<p class=\"note\">Nothing to plot: no error, or nothing that could be coded.</p>\n".into();
    };
    let (bottom, top) = (
        least.floor() as i32,
        (most.ceil() as i32).max(least.floor() as i32 + 1),
    );
    let most_bits = points().map(|point| point.0).fold(1.0, f64::max);
    let step = if most_bits > 32.0 { 8.0 } else { 4.0 };
    let last_bits = (most_bits / step).ceil() * step;
    let x = |bits: f64| LEFT + bits / last_bits * WIDTH;
    let y = |log: f64| TOP + (f64::from(top) - log) / f64::from(top - bottom) * HEIGHT;

    let mut svg = open(
        LEFT + WIDTH + RIGHT,
        TOP + HEIGHT + BOTTOM,
        "Relative L2 error over bits per value",
    );
    for exponent in ticks(bottom, top) {
        let at = y(f64::from(exponent));
        line(&mut svg, "grid", [LEFT, at, LEFT + WIDTH, at]);
        label(
            &mut svg,
            "end",
            [LEFT - 8.0, at + 4.0],
            &format!("1e{exponent}"),
        );
    }
    let mut bits = 0.0;
    while bits <= last_bits {
        label(
            &mut svg,
            "middle",
            [x(bits), TOP + HEIGHT + 18.0],
            &bits.to_string(),
        );
        bits += step;
    }
    let middle = TOP + HEIGHT / 2.0;
    label(
        &mut svg,
        "middle",
        [LEFT + WIDTH / 2.0, TOP + HEIGHT + 42.0],
        "bits per value on the wire, header included",
    );
    let _ = writeln!(
        svg,
        "<text text-anchor=\"middle\" transform=\"translate(16 {middle:.1}) rotate(-90)\">\
         relative L2 error (no unit)</text>"
    );
    for (index, series) in series.iter().enumerate() {
        draw(&mut svg, series, &x, &y);
        let at = TOP + 12.0 + 22.0 * index as f64;
        let left = LEFT + WIDTH + 16.0;
        if series.points.len() > 1 {
            let _ = writeln!(
                svg,
                "<path class=\"line {}\" d=\"M{left:.1} {at:.1}h28\"/>",
                series.class
            );
        }
        mark(&mut svg, series.class, left + 14.0, at, "");
        label(&mut svg, "start", [left + 36.0, at + 4.0], &series.label);
    }
    svg + "</svg>\n"
}

fn series(variable: &Variable) -> Vec<Series<'_>> {
    let lines = variable.curve.iter().filter(|row| row.layout.is_some());
    let points = variable.results.iter().filter(|row| row.layout.is_none());
    let mut all: Vec<Series> = Vec::new();
    for row in lines.chain(points) {
        let label = match &row.layout {
            Some(layout) if layout.name == "given" => table::layout(row),
            Some(layout) => layout.name.clone(),
            None => row.codec.into(),
        };
        let error = row.errors.as_ref().map(|errors| errors.relative_l2);
        let Some(error) = error.filter(|&error| error.is_finite() && error > 0.0) else {
            continue;
        };
        let point = (row.bits_per_value, error, row);
        match all.iter_mut().find(|series| series.label == label) {
            Some(series) => series.points.push(point),
            None => all.push(Series {
                label,
                class: class(row),
                points: vec![point],
            }),
        }
    }
    all
}

fn class(row: &Row) -> &'static str {
    match row.layout.as_ref().map(|layout| layout.name.as_str()) {
        None => row.codec,
        Some("flat") => "flat",
        Some("2-D") => "rows",
        Some("3-D") => "true",
        Some("auto") => "auto",
        Some(_) => "given",
    }
}

fn draw(svg: &mut String, series: &Series, x: &impl Fn(f64) -> f64, y: &impl Fn(f64) -> f64) {
    let at: Vec<_> = series
        .points
        .iter()
        .map(|(bits, error, row)| (x(*bits), y(error.log10()), *row))
        .collect();
    let path: Vec<_> = at
        .iter()
        .map(|(x, y, _)| format!("{x:.1} {y:.1}"))
        .collect();
    let _ = writeln!(
        svg,
        "<path class=\"line {}\" d=\"M{}\"/>",
        series.class,
        path.join("L")
    );
    for ((x, y, row), (bits, error, _)) in at.into_iter().zip(&series.points) {
        let title = format!(
            "{} {}: {bits:.2} bits, {error:.2e}",
            row.codec,
            table::layout(row)
        );
        mark(svg, series.class, x, y, &title);
    }
}

/// A mark whose form tells the series apart where colours do not.
fn mark(svg: &mut String, class: &str, x: f64, y: f64, title: &str) {
    let path = match class {
        "flat" => format!("M{:.1} {y:.1}a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z", x - 4.0),
        "rows" => format!("M{:.1} {:.1}h7v7h-7z", x - 3.5, y - 3.5),
        "true" => format!("M{x:.1} {:.1}l5 8h-10z", y - 5.0),
        "auto" => format!("M{x:.1} {:.1}l7 7l-7 7l-7 -7z", y - 7.0),
        "fp16" => format!("M{:.1} {:.1}l9 9m0 -9l-9 9", x - 4.5, y - 4.5),
        _ => format!("M{:.1} {y:.1}h10m-5 -5v10", x - 5.0),
    };
    let hole = if class == "auto" {
        " fill-opacity=\"0\""
    } else {
        ""
    };
    let _ = writeln!(
        svg,
        "<path class=\"mark {class}\"{hole} d=\"{path}\"><title>{}</title></path>",
        escape(title)
    );
}

/// Blocks by the decade of their error: a small plot per row of the table.
pub fn histograms(variable: &Variable) -> String {
    let decades = table::decades(variable);
    let rows = variable.results.iter().filter(|row| row.errors.is_some());
    rows.map(|row| histogram(row, &decades)).collect()
}

fn histogram(row: &Row, decades: &[i32]) -> String {
    const WIDTH: f64 = 220.0;
    const HEIGHT: f64 = 90.0;
    const LEFT: f64 = 44.0;
    const TOP: f64 = 24.0;
    let layout = match &row.layout {
        Some(_) => format!(", {}", table::layout(row)),
        None => String::new(),
    };
    let title = format!("{} {}{layout}: % of blocks", row.codec, table::asked(row));
    let mut svg = open(LEFT + WIDTH + 22.0, TOP + HEIGHT + 44.0, &title);
    label(&mut svg, "start", [2.0, 13.0], &title);
    for percent in [0.0, 50.0, 100.0] {
        let at = TOP + HEIGHT * (1.0 - percent / 100.0);
        line(&mut svg, "grid", [LEFT, at, LEFT + WIDTH, at]);
        label(
            &mut svg,
            "end",
            [LEFT - 5.0, at + 4.0],
            &format!("{percent} %"),
        );
    }
    let blocks = row.errors.as_ref().map(|errors| &errors.blocks);
    let exact = blocks.map_or(0.0, |blocks| {
        100.0 * blocks.exact as f64 / blocks.count.max(1) as f64
    });
    // The first bar is that of exact blocks.
    let width = WIDTH / (decades.len() + 1) as f64;
    let shares = decades
        .iter()
        .map(|&exponent| blocks.map_or(0.0, |blocks| table::share(blocks, exponent)));
    for (index, share) in [exact].into_iter().chain(shares).enumerate() {
        let height = HEIGHT * share / 100.0;
        let (left, top) = (LEFT + index as f64 * width, TOP + HEIGHT - height);
        let name = match index.checked_sub(1).and_then(|index| decades.get(index)) {
            Some(exponent) => format!("1e{exponent} to 1e{}", exponent + 1),
            None => "exact".into(),
        };
        if share > 0.0 {
            let _ = writeln!(
                svg,
                "<rect class=\"bar {}\" x=\"{:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{height:.1}\">\
                 <title>{name}: {share:.2} %</title></rect>",
                class(row),
                left + 1.0,
                width - 2.0
            );
        }
    }
    label(
        &mut svg,
        "middle",
        [LEFT + width / 2.0, TOP + HEIGHT + 14.0],
        "0",
    );
    let first = decades.first().copied().unwrap_or(0);
    let last = first + decades.len() as i32;
    // The label of a narrow first decade would lie on that of the exact blocks.
    let least = first + i32::from(width < 36.0);
    for exponent in ticks(first, last).filter(|&exponent| exponent >= least) {
        let past = f64::from(exponent - first);
        label(
            &mut svg,
            "middle",
            [LEFT + width * (1.0 + past), TOP + HEIGHT + 14.0],
            &format!("1e{exponent}"),
        );
    }
    label(
        &mut svg,
        "middle",
        [LEFT + WIDTH / 2.0, TOP + HEIGHT + 34.0],
        "relative L2 error of the block",
    );
    svg + "</svg>\n"
}

/// Whole exponents, no more than fit.
fn ticks(bottom: i32, top: i32) -> impl Iterator<Item = i32> {
    const MOST: i32 = 6;
    let step = (top - bottom).div_euclid(MOST) + 1;
    (bottom..=top).filter(move |exponent| exponent.rem_euclid(step) == 0)
}

fn open(width: f64, height: f64, title: &str) -> String {
    format!(
        "<svg viewBox=\"0 0 {width} {height}\" width=\"{width}\" role=\"img\" aria-label=\"{}\">\n",
        escape(title)
    )
}

fn line(svg: &mut String, class: &str, [x1, y1, x2, y2]: [f64; 4]) {
    let _ = writeln!(
        svg,
        "<path class=\"{class}\" d=\"M{x1:.1} {y1:.1}L{x2:.1} {y2:.1}\"/>"
    );
}

fn label(svg: &mut String, anchor: &str, [x, y]: [f64; 2], text: &str) {
    let _ = writeln!(
        svg,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{}</text>",
        escape(text)
    );
}
