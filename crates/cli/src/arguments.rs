//! The command line: its definition, and the error and the hint for an invalid one.

use std::ffi::OsString;
use std::io::IsTerminal;
use std::sync::{Mutex, PoisonError};

use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, CommandFactory, FromArgMatches, Parser, ValueEnum};
use clap_complete::Shell;

use crate::run::{IN_SUMMARY, Options, Source};
use crate::{Ending, bench, bson, commit, convert, forgotten, index, message, split, uploads};

/// The help of the command itself, which begins with examples.
const HELP: &str = "\
{about-with-newline}
Examples:
  millstream run --count big.csv.gz        count records and bytes
  millstream run -o out.txt -- pg_dump db  write out.txt only if the command succeeds
  millstream convert t.csv -o t.parquet    make a table with inferred types
  millstream bson cat dump/orders.bson.gz  print documents as JSON
  millstream bench lines big.csv           measure each way to read it on this machine

{usage-heading} {usage}

{all-args}{after-help}";

/// Move streams of records between commands, files and sockets, and know that every record arrived
#[derive(Parser)]
#[command(name = "millstream", bin_name = "millstream", version, max_term_width = 100)]
#[command(disable_help_flag = true, help_template = HELP)]
#[command(after_help = "Manual pages: millstream man | man -l -, millstream man run | man -l -")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) subcommand: Subcommand,
}

/// Returns the definition of the command line. `--help` fits a screen; `--help-all` describes every option.
pub(crate) fn command() -> Command {
    let help = Arg::new("help").short('h').long("help").help("Print a summary of the help");
    let help_all = Arg::new("help_all").long("help-all").help("Print the help of every option");
    Arguments::command()
        .arg(help.action(ArgAction::HelpShort).global(true))
        .arg(help_all.action(ArgAction::HelpLong).global(true))
        .mut_subcommand("run", |run| {
            run.mut_args(|arg| {
                let is_rare = !IN_SUMMARY.contains(&arg.get_id().as_str());
                arg.hide_short_help(is_rare)
            })
        })
}

/// Each subcommand is implemented in its own file.
#[derive(clap::Subcommand)]
pub(crate) enum Subcommand {
    // The documentation is in its options.
    Run(Box<Options>),
    /// Inspect, check and convert BSON documents
    Bson(Box<Deferred<bson::Options>>),
    /// Convert records into Parquet, Arrow, CSV or JSON lines
    Convert(Box<Deferred<convert::Options>>),
    /// Write an index of a gzip file, with which decoding can start at many places of it
    Index(Deferred<index::Options>),
    /// Divide a file into splits, and print them as JSON
    Split(Deferred<split::Options>),
    /// Complete or remove the unfinished job of a directory, to which many processes write
    Commit(Deferred<commit::Options>),
    /// List and remove unfinished uploads of an object store
    Uploads(Deferred<uploads::Options>),
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
    Convert,
    Index,
    Split,
    Commit,
    Uploads,
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
            Page::Convert => "convert",
            Page::Index => "index",
            Page::Split => "split",
            Page::Commit => "commit",
            Page::Uploads => "uploads",
            Page::Bench => "bench",
            Page::Completions => "completions",
            Page::Man => "man",
        }
    }
}

/// The command line that was parsed last.
static WORDS: Mutex<Vec<OsString>> = Mutex::new(Vec::new());

/// Returns whether the subcommand that was parsed last has an option with this name, such as `record-limit`.
pub(crate) fn has_option(name: &str) -> bool {
    is_option(name, &WORDS.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Returns whether the subcommand of this command line has an option with this name.
pub(crate) fn is_option(name: &str, words: &[OsString]) -> bool {
    let mut command = command();
    command.build();
    let mut at = &command;
    for word in words.iter().skip(1) {
        let Some(inner) = at.find_subcommand(word) else { break };
        at = inner;
    }
    at.get_arguments().any(|arg| arg.get_long() == Some(name))
}

/// Returns the advice to read the help of the subcommand that was parsed last, if there is one.
pub(crate) fn see_help() -> Option<String> {
    let words = WORDS.lock().unwrap_or_else(PoisonError::into_inner);
    let command = command();
    let mut at = &command;
    let mut line = "see `millstream".to_string();
    for word in words.iter().skip(1) {
        let Some(inner) = at.find_subcommand(word) else { break };
        line.push_str(&format!(" {}", inner.get_name()));
        at = inner;
    }
    (words.len() > 1).then(|| format!("{line} --help`"))
}

/// Words that other programs use, and how `millstream` says them.
const KNOWN_ELSEWHERE: [(&str, &str); 9] = [
    ("cat", "run"),
    ("check", "bson check"),
    ("count", "run --count"),
    ("get", "bson get"),
    ("grep", "run --stage match:PATTERN"),
    ("hash", "run --hash sha256"),
    ("head", "run --stage take:10"),
    ("ls", "bson ls"),
    ("wc", "run --count"),
];

/// Returns the advice for a first word that is no subcommand, if it is known what it means.
fn known_elsewhere(word: Option<&OsString>) -> Option<String> {
    let (_, ours) = KNOWN_ELSEWHERE.iter().find(|(name, _)| word.is_some_and(|word| word == name))?;
    Some(format!("use `millstream {ours}`"))
}

/// Parses the command line, or reports the error and returns the ending.
pub(crate) fn parse(args: Vec<OsString>) -> Result<Arguments, Ending> {
    args.clone_into(&mut WORDS.lock().unwrap_or_else(PoisonError::into_inner));
    // If a script's list of words is empty, the command must not read standard input instead.
    let ends_open = args.last().is_some_and(|arg| arg == "--");
    let subcommand = args.get(1).and_then(|arg| Page::from_str(arg.to_str()?, false).ok());
    let matches = command().try_get_matches_from(&args);
    let arguments = matches
        .and_then(|matches| Arguments::from_arg_matches(&matches))
        .map_err(|error| explain(&error, subcommand, &args))?;
    let (command, reads_input, page) = match &arguments.subcommand {
        Subcommand::Run(options) => (Some(&options.command[..]), options.reads_input(), "run"),
        Subcommand::Bson(options) => (options.0.command(), options.0.reads_input(), "bson"),
        Subcommand::Convert(options) => (options.0.command(), options.0.reads_input(), "convert"),
        _ => return Ok(arguments),
    };
    if command.is_some_and(|words| words.first().map_or(ends_open, |program| program.is_empty())) {
        message::complain("expected a command after '--'", Some(&format!("see `millstream {page} --help`")));
        return Err(Ending::USAGE);
    }
    if reads_input && std::io::stdin().is_terminal() {
        message::complain(
            "no source is given, and standard input is a terminal",
            Some(&format!(
                "give a file, a command after '--', or '-' for the terminal; see `millstream {page} --help`"
            )),
        );
        return Err(Ending::USAGE);
    }
    Ok(arguments)
}

fn explain(error: &clap::Error, subcommand: Option<Page>, args: &[OsString]) -> Ending {
    let (mut line, tip) = match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            return message::print(error.render().to_string().as_bytes());
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => ("a subcommand is missing".to_string(), None),
        _ => in_lines(&error.render().to_string()),
    };
    let forgotten = match error.kind() {
        ErrorKind::UnknownArgument => forgotten::advice_on_option(args, ends_with_source),
        ErrorKind::InvalidSubcommand if subcommand.is_none() => known_elsewhere(args.get(1)),
        _ => None,
    };
    let page = match subcommand {
        Some(page) => format!("see `millstream {} --help`", page.name()),
        None => {
            line.push_str(": expected run, bson, convert, index, split, commit, uploads, bench, completions or man");
            "see `millstream --help`".to_string()
        }
    };
    let hint = match forgotten.or(tip) {
        Some(tip) => format!("{tip}; {page}"),
        None => page,
    };
    message::complain(&line, Some(&hint));
    Ending::USAGE
}

/// Returns whether the last of these words is a source of `millstream run`, and not an option or an option's value.
fn ends_with_source(args: &[OsString]) -> bool {
    let Ok(Arguments { subcommand: Subcommand::Run(options) }) = Arguments::try_parse_from(args) else { return false };
    matches!((options.sources.last(), args.last()), (Some(Source::File(path)), Some(word)) if path == word)
}

/// Converts clap's explanation, which has several lines, to one line with the error and the accepted values, and one
/// with its tip, if there is one. The usage is dropped.
fn in_lines(rendered: &str) -> (String, Option<String>) {
    let mut line = String::new();
    let mut tip = None;
    for part in rendered.lines().map(str::trim) {
        if part.starts_with("Usage:") || part.starts_with("For more information") {
            break;
        }
        // The words after `--` are a command, so this tip would mislead.
        if part.is_empty() || part.starts_with("tip: to pass") {
            continue;
        }
        if let Some(text) = part.strip_prefix("tip: ") {
            tip = Some(text.to_string());
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
    (line, tip)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    /// Every option in an advice for a subcommand is one of its options, and no advice has names of the library.
    #[test]
    fn advice_names_options_of_the_subcommand() {
        for (words, some) in [
            ("run", "--stall-timeout"),
            ("bson cat", "--decode-memory"),
            ("bson check", "--depth"),
            ("bson get", "--memory-limit"),
        ] {
            let words: Vec<OsString> = ["millstream"].into_iter().chain(words.split(' ')).map(OsString::from).collect();
            let has_option = |name: &str| is_option(name, &words);
            let all: Vec<_> = millstream::ErrorKind::ALL
                .iter()
                .filter_map(|&kind| message::advice_with(&millstream::Error::new(kind), has_option))
                .collect();
            assert!(all.iter().any(|advice| advice.contains(some)), "{words:?}: {all:?}");
            for advice in all {
                assert!(!advice.contains(['_', '`']) && !advice.contains("documentation of this call"), "{advice}");
                let options = advice.split([' ', ',']).filter_map(|word| word.strip_prefix("--"));
                assert!(options.into_iter().all(has_option), "{words:?}: {advice}");
            }
        }
    }

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
