//! The options of `transpress run` that stand for variables, made from the table of variables.

use std::ffi::OsString;

use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, builder::ValueParser};

use crate::settings::table::{VARIABLES, Variable};

/// The variables that the options set.
#[derive(Debug)]
pub struct Options {
    pub set: Vec<(OsString, OsString)>,
}

/// The one option that may be repeated; its values end up in one variable, `;` between them.
const REPEATABLE: &str = "TRANSPRESS_LAYOUT";

fn with_option() -> impl Iterator<Item = &'static Variable> {
    VARIABLES.iter().filter(|known| known.is_for_the_library())
}

fn argument(variable: &'static Variable) -> Arg {
    let repeatable = variable.name == REPEATABLE;
    let name = variable.option();
    Arg::new(variable.name)
        .value_name(name.to_ascii_uppercase())
        .long(name)
        .help(format!(
            "{}: {} [default: {}]{}",
            variable.meaning,
            variable.accepted,
            variable.default_text(),
            if repeatable { "; may be repeated" } else { "" }
        ))
        .value_parser(ValueParser::os_string())
        // "--rate -8" is a bad rate, not an unknown option.
        .allow_negative_numbers(true)
        .action(if repeatable {
            ArgAction::Append
        } else {
            ArgAction::Set
        })
}

impl Args for Options {
    fn augment_args(command: Command) -> Command {
        with_option().fold(command, |command, variable| command.arg(argument(variable)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Options {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let set = with_option()
            .filter_map(|variable| {
                let values: Vec<OsString> = matches.get_many(variable.name)?.cloned().collect();
                Some((variable.name.into(), values.join(";".as_ref())))
            })
            .collect();
        Ok(Self { set })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}
