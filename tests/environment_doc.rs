//! docs/environment.md says what the table of variables says.

use transpress::settings::table::{PREFIX, VARIABLES};

const DOC: &str = include_str!("../docs/environment.md");

#[test]
fn its_table_is_the_table() {
    let rows: Vec<_> = DOC
        .lines()
        .filter(|line| line.starts_with(&format!("| `{PREFIX}")))
        .collect();
    let expected: Vec<_> = VARIABLES
        .iter()
        .map(|known| {
            format!(
                "| `{}` | {} | {} | {} |",
                known.name,
                known.default_text(),
                known.accepted,
                if known.same_on_every_rank {
                    "same"
                } else {
                    "may differ"
                }
            )
        })
        .collect();
    assert_eq!(rows, expected);
}

#[test]
fn every_variable_has_its_section() {
    let sections: Vec<_> = DOC
        .lines()
        .filter_map(|line| line.strip_prefix("### "))
        .collect();
    let names: Vec<_> = VARIABLES.iter().map(|known| known.name).collect();
    assert_eq!(sections, names);
}

#[test]
fn it_names_no_other_variable() {
    let mentions = DOC.match_indices(PREFIX).map(|(at, _)| {
        let word = |c: char| c.is_ascii_uppercase() || c == '_';
        let end = DOC[at..].find(|c| !word(c)).unwrap_or(DOC.len() - at);
        &DOC[at..at + end]
    });
    for name in mentions.filter(|name| *name != PREFIX) {
        assert!(VARIABLES.iter().any(|known| known.name == name), "{name}");
    }
}

/// The layouts that it gives as examples can be read.
#[test]
fn its_layouts_are_layouts() {
    for text in ["256,128,*", "2c,100f,*", "64,64"] {
        assert!(DOC.contains(text));
        transpress::layout::Layout::parse(text).unwrap();
    }
}
