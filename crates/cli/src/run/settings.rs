//! The library's options, for the subcommands that have them.

use clap::parser::ValueSource;
use clap::{ArgMatches, Args, Command, FromArgMatches};
use millstream::options::{COMMAND, READER, WRITER};
use millstream::{Decode, Reader, ReaderBuilder};

use crate::guard;

use super::given::{Given, Value, arg};
use super::network::Network;

/// The options that were given, with their values, and those for URLs.
#[derive(Clone, Default)]
pub(crate) struct Settings {
    pub(super) given: Given,
    network: Network,
}

impl Settings {
    /// Returns a reader builder with the options that apply to every source.
    pub(super) fn reader(&self) -> ReaderBuilder {
        // The depth limit is an option of the records.
        self.given.apply(READER, |name| name != "json_depth", Reader::builder().decode(Decode::Auto))
    }

    /// Returns a reader builder with the one option that applies to a file's own bytes, before decoding.
    pub(super) fn pinned(&self) -> ReaderBuilder {
        self.given.apply(READER, |name| name == "pin", Reader::builder())
    }

    /// Returns the command with the options for commands, and with the guard.
    pub(crate) fn command(&self, command: millstream::Command) -> millstream::Command {
        self.given.apply(COMMAND, |_| true, guard::command(command))
    }

    /// Returns settings in which only the options for URLs were given.
    pub(crate) fn of_network(network: &Network) -> Settings {
        Settings { network: network.clone(), ..Settings::default() }
    }

    /// Returns the options for URLs.
    pub(crate) fn network(&self) -> &Network {
        &self.network
    }

    /// Returns the option for what the source has to be, if one was given.
    pub(crate) fn expectation(&self) -> Option<&'static str> {
        ["expect_bytes", "expect_hash", "expect_records"].into_iter().find(|option| self.given.has(option))
    }

    /// Returns the first option for commands that was given.
    pub(super) fn of_command(&self) -> Option<&'static str> {
        COMMAND.iter().map(|option| option.name).find(|name| self.given.has(name))
    }
}

impl Args for Settings {
    fn augment_args(command: Command) -> Command {
        let reader = READER.iter().filter_map(|option| arg(option).map(|arg| arg.help_heading("Flow")));
        let command = command.args(reader);
        let commands = COMMAND.iter().filter_map(|option| arg(option).map(|arg| arg.help_heading("Commands")));
        let command = Network::augment_args(command.args(commands));
        let only = WRITER.iter().filter(|option| READER.iter().all(|other| other.name != option.name));
        command
            .args(only.filter_map(|option| arg(option).map(|arg| arg.help_heading("Output").conflicts_with("count"))))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Settings::augment_args(command)
    }
}

impl FromArgMatches for Settings {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Settings, clap::Error> {
        let mut settings = Settings::default();
        settings.update_from_arg_matches(matches)?;
        Ok(settings)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        let names = READER.iter().map(|option| option.name).chain(WRITER.iter().map(|option| option.name));
        self.given.add(matches, names.chain(COMMAND.iter().map(|option| option.name)));
        self.network.update_from_arg_matches(matches)?;
        let given = |name| matches.value_source(name) == Some(ValueSource::CommandLine);
        match given("encode") && given("level") && matches!(matches.get_one("encode"), Some(Value::Level(..))) {
            true => Err(clap::Error::raw(
                clap::error::ErrorKind::ArgumentConflict,
                "--level and a level in --encode: give it once\n",
            )),
            false => Ok(()),
        }
    }
}

/// The options for decoding, for subcommands that have no others of the library.
pub(crate) struct Decoding(Settings);

impl Decoding {
    const NAMES: [&str; 2] = ["decode", "decode_memory"];

    /// Returns a reader builder with these options. Compressed sources are decoded by default.
    pub(crate) fn reader(&self) -> ReaderBuilder {
        self.0.reader()
    }
}

impl Args for Decoding {
    fn augment_args(command: Command) -> Command {
        command.args(READER.iter().filter(|option| Decoding::NAMES.contains(&option.name)).filter_map(arg))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Decoding::augment_args(command)
    }
}

impl FromArgMatches for Decoding {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Decoding, clap::Error> {
        let mut decoding = Decoding(Settings::default());
        decoding.update_from_arg_matches(matches)?;
        Ok(decoding)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.0.given.add(matches, Decoding::NAMES.into_iter());
        Ok(())
    }
}

/// The options of sources, for a subcommand that has its own outputs.
#[cfg_attr(not(feature = "parquet"), allow(dead_code))]
pub(crate) struct Reading(Settings);

impl Reading {
    /// Returns a reader builder with these options, and this capacity by default. Compressed sources are decoded by default.
    #[cfg(feature = "parquet")]
    pub(crate) fn reader(&self, capacity: usize) -> ReaderBuilder {
        self.0.given.apply(READER, |_| true, Reader::builder().decode(Decode::Auto).capacity(capacity))
    }

    /// Returns the options, of which [`Source::open`](super::Source::open) uses those for commands.
    #[cfg(feature = "parquet")]
    pub(crate) fn settings(&self) -> &Settings {
        &self.0
    }

    /// Returns the first option for commands that was given.
    #[cfg(feature = "parquet")]
    pub(crate) fn of_command(&self) -> Option<&'static str> {
        self.0.of_command()
    }

    /// Returns whether the option with this name was given.
    #[cfg(feature = "parquet")]
    pub(crate) fn gives(&self, name: &str) -> bool {
        self.0.given.has(name)
    }

    /// Returns the maximum length of a record, if it was given.
    #[cfg(feature = "parquet")]
    pub(crate) fn record_limit(&self) -> Option<usize> {
        self.0.given.number("record_limit").map(|bytes| bytes as usize)
    }
}

impl Args for Reading {
    fn augment_args(command: Command) -> Command {
        let reader = READER.iter().filter_map(|option| arg(option).map(|arg| arg.help_heading("Flow")));
        let commands = COMMAND.iter().filter_map(|option| arg(option).map(|arg| arg.help_heading("Commands")));
        Network::augment_args(command.args(reader).args(commands))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Reading::augment_args(command)
    }
}

impl FromArgMatches for Reading {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Reading, clap::Error> {
        let mut reading = Reading(Settings::default());
        reading.update_from_arg_matches(matches)?;
        Ok(reading)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        let names = READER.iter().map(|option| option.name).chain(COMMAND.iter().map(|option| option.name));
        self.0.given.add(matches, names);
        self.0.network.update_from_arg_matches(matches)
    }
}
