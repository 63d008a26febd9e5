//! The command line: its definition, and the one-line error for an invalid one.

use std::ffi::OsString;

use clap::error::ErrorKind;
use clap::{ArgMatches, Args, Command, FromArgMatches, Parser, ValueEnum};
use clap_complete::Shell;

use crate::run::{Options, Source};
use crate::{Ending, bench, bson, forgotten, message};

/// Move streams of records between commands, files and sockets, and know that every record arrived
#[derive(Parser)]
#[command(name = "millstream", bin_name = "millstream", version, max_term_width = 100)]
#[command(after_help = "Manual pages: millstream man | man -l -, millstream man run | man -l -")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) subcommand: Subcommand,
}

/// Each subcommand is implemented in its own file.
#[derive(clap::Subcommand)]
pub(crate) enum Subcommand {
    // The documentation is in its options.
    Run(Box<Options>),
    /// Inspect, check and convert BSON documents
    Bson(Box<Deferred<bson::Options>>),
    /// Measure ways to read, print and decode on this machine, with your data, and give advice
    Bench(Deferred<bench::Options>),
    /// Print the completion script for a shell
    Completions {
        /// The shell to print it for
        shell: Shell,
    },
    /// Print a manual page
    Man {
        /// The subcommand [default: millstream itself]
        page: Option<Page>,
    },
}

/// Options that are defined only if their subcommand is used: defining all of them takes longer than copying a small
/// file.
pub(crate) struct Deferred<T>(pub(crate) T);

impl<T: Args> Args for Deferred<T> {
    fn augment_args(command: Command) -> Command {
        command.defer(T::augment_args)
    }

    fn augment_args_for_update(command: Command) -> Command {
        command.defer(T::augment_args_for_update)
    }
}

impl<T: FromArgMatches> FromArgMatches for Deferred<T> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Deferred<T>, clap::Error> {
        T::from_arg_matches(matches).map(Deferred)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.0.update_from_arg_matches(matches)
    }
}

/// The subcommands that have a manual page.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum Page {
    Run,
    Bson,
    Bench,
    Completions,
    Man,
}

impl Page {
    /// Returns the subcommand's name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Page::Run => "run",
            Page::Bson => "bson",
            Page::Bench => "bench",
            Page::Completions => "completions",
            Page::Man => "man",
        }
    }
}

/// Parses the command line, or reports the error and returns the ending.
pub(crate) fn parse(args: Vec<OsString>) -> Result<Arguments, Ending> {
    // If a script's list of words is empty, the command must not read standard input instead.
    let ends_open = args.last().is_some_and(|arg| arg == "--");
    let subcommand = args.get(1).and_then(|arg| Page::from_str(arg.to_str()?, false).ok());
    let arguments = Arguments::try_parse_from(&args).map_err(|error| explain(&error, subcommand, &args))?;
    let (command, page) = match &arguments.subcommand {
        Subcommand::Run(options) => (Some(&options.command[..]), "run"),
        Subcommand::Bson(options) => (options.0.command(), "bson"),
        _ => return Ok(arguments),
    };
    if command.is_some_and(|words| words.first().map_or(ends_open, |program| program.is_empty())) {
        message::say(&format!("expected a command after '--' (see `millstream {page} --help`)"));
        return Err(Ending::USAGE);
    }
    Ok(arguments)
}

fn explain(error: &clap::Error, subcommand: Option<Page>, args: &[OsString]) -> Ending {
    let line = match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            return message::print(error.render().to_string().as_bytes());
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => "a subcommand is missing".to_string(),
        ErrorKind::UnknownArgument => match forgotten::advice_on_option(args, ends_with_source) {
            Some(advice) => format!("{}; {advice}", one_line(&error.render().to_string())),
            None => one_line(&error.render().to_string()),
        },
        _ => one_line(&error.render().to_string()),
    };
    match subcommand {
        Some(page) => message::say(&format!("{line} (see `millstream {} --help`)", page.name())),
        None => {
            message::say(&format!("{line}: expected run, bson, bench, completions or man (see `millstream --help`)"))
        }
    }
    Ending::USAGE
}

/// Returns whether the last of these words is a source of `millstream run`, and not an option or an option's value.
fn ends_with_source(args: &[OsString]) -> bool {
    let Ok(Arguments { subcommand: Subcommand::Run(options) }) = Arguments::try_parse_from(args) else { return false };
    matches!((options.sources.last(), args.last()), (Some(Source::File(path)), Some(word)) if path == word)
}

/// Converts clap's explanation to one line. clap writes several: the error, accepted values, tips and the usage, which
/// is dropped.
fn one_line(rendered: &str) -> String {
    let mut line = String::new();
    for part in rendered.lines().map(str::trim) {
        if part.starts_with("Usage:") || part.starts_with("For more information") {
            break;
        }
        // The words after `--` are a command, so this tip would mislead.
        if part.is_empty() || part.starts_with("tip: to pass") {
            continue;
        }
        if let Some(values) = part.strip_prefix("[possible values: ") {
            line.push_str(": expected one of ");
            line.push_str(values.trim_end_matches(']'));
            continue;
        }
        match line.chars().last() {
            None => {}
            Some(':') => line.push(' '),
            Some(_) => line.push_str("; "),
        }
        line.push_str(part.strip_prefix("error: ").unwrap_or(part));
    }
    line
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_definition_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn every_page_is_a_subcommand() {
        let command = Arguments::command();
        for page in Page::value_variants() {
            assert!(command.find_subcommand(page.name()).is_some());
        }
        assert_eq!(command.get_subcommands().count(), Page::value_variants().len());
    }
}
