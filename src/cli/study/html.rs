//! The results as one page that needs nothing else: no script, no network.

use super::plot;
use super::result::{Results, Variable};
use super::table::{self, COLUMNS, Side};

const STYLE: &str = include_str!("page.css");

pub fn page(results: &Results) -> String {
    let title = escape(&table::title(results));
    let variables: String = results.variables.iter().map(section).collect();
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>transpress study: {}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n\
         <h1>transpress study</h1>\n<p>{title}; transpress {}</p>\n{variables}\
         <p class=\"legend\">{}</p>\n</body>\n</html>\n",
        escape(&results.file),
        results.transpress,
        escape(table::LEGEND)
    )
}

fn section(variable: &Variable) -> String {
    let notes: String = table::notes(variable)
        .iter()
        .map(|note| format!("<p class=\"note\">{}</p>\n", escape(note)))
        .collect();
    format!(
        "<section>\n<h2>{}</h2>\n{notes}<div class=\"wide\">\n{}</div>\n\
         <h3>Error against bits per value</h3>\n{}\
         <h3>Relative error by block of 4×4×4 values</h3>\n<div class=\"panels\">\n{}</div>\n</section>\n",
        escape(&table::heading(variable)),
        rows(variable),
        plot::errors(variable),
        plot::histograms(variable)
    )
}

fn rows(variable: &Variable) -> String {
    let class = |side: Side| match side {
        Side::Left => "",
        Side::Right => " class=\"number\"",
    };
    let head: String = COLUMNS
        .iter()
        .map(|(heading, side)| format!("<th{}>{heading}</th>", class(*side)))
        .collect();
    let body: String = variable
        .results
        .iter()
        .map(|row| {
            let cells = table::cells(row);
            let cells: String = cells
                .iter()
                .zip(COLUMNS)
                .map(|(cell, (_, side))| format!("<td{}>{}</td>", class(side), escape(cell)))
                .collect();
            format!("<tr>{cells}</tr>\n")
        })
        .collect();
    format!("<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody>\n</table>\n")
}

pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}
