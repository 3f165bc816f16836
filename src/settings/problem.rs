//! What is wrong with a variable, in one line.

use std::ffi::OsStr;
use std::fmt;

use super::read::Refusal;
use super::table::{self, Variable};

/// One variable that cannot be followed. `accepted` is what stands behind the colon: why, where the
/// value alone does not say it, and what is accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    pub variable: String,
    pub value: String,
    pub accepted: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}: {}", self.variable, self.value, self.accepted)
    }
}

impl Problem {
    pub(super) fn refused(variable: &Variable, text: &str, refusal: Refusal) -> Self {
        let accepted = variable.accepted;
        Self {
            variable: variable.name.into(),
            value: one_line(text),
            accepted: match refusal {
                Refusal::Part(part) if part != text => {
                    format!("cannot use \"{}\"; accepted is {accepted}", one_line(&part))
                }
                Refusal::Value | Refusal::Part(_) => format!("accepted is {accepted}"),
                Refusal::NotYet => format!("not yet available; accepted is {accepted}"),
                Refusal::Because(reason) => one_line(&reason),
            },
        }
    }

    pub(super) fn not_utf8(variable: &Variable, value: &OsStr) -> Self {
        Self {
            variable: variable.name.into(),
            value: one_line(&value.to_string_lossy()),
            accepted: format!("not UTF-8; accepted is {}", variable.accepted),
        }
    }

    pub(super) fn unknown(name: &OsStr, value: &OsStr) -> Self {
        let name = name.to_string_lossy();
        let near = table::nearest(&name);
        Self {
            variable: one_line(&name),
            value: one_line(&value.to_string_lossy()),
            accepted: if near.is_empty() {
                let known: Vec<_> = table::VARIABLES.iter().map(|known| known.name).collect();
                format!("no such variable; accepted are {}", known.join(", "))
            } else {
                format!("no such variable; did you mean {}?", near.join(" or "))
            },
        }
    }
}

/// `text` without line breaks or other control characters.
fn one_line(text: &str) -> String {
    text.chars()
        .flat_map(|c| {
            let (escaped, plain) = if c.is_control() {
                (Some(c.escape_default()), None)
            } else {
                (None, Some(c))
            };
            escaped.into_iter().flatten().chain(plain)
        })
        .collect()
}
