//! The options for URLs, as sources and as outputs.

use std::fs;
use std::ops::Deref;

use clap::{ArgMatches, Args, Command, FromArgMatches};
use indicatif::HumanBytes;
use millstream::options::REMOTE;
use millstream::{Remote, Result, Writer, WriterBuilder, show_argv};

use crate::message;

use super::given::{Given, Value, arg};

/// The options for URLs.
#[derive(Clone, Default)]
pub(crate) struct Network {
    given: Given,
    http: Http,
}

/// The options for URLs of a command that writes none.
#[derive(Clone, Default)]
pub(crate) struct SourceNetwork(Network);

/// The options that only an output has.
const OF_OUTPUTS: [&str; 2] = ["part_size", "size_hint"];

#[derive(Args, Clone, Default)]
struct Http {
    /// Add a header to each request for a URL, or each line of a file as a header
    ///
    /// Such as 'Authorization: Bearer TOKEN'; other users of the machine can see the words of a command, but not
    /// those of a file. Headers that describe an object, such as Content-Type, x-amz-meta-NAME and
    /// x-amz-storage-class, are sent with the request that creates it. No header is sent to another host after a
    /// redirect.
    #[arg(long, value_name = "NAME: VALUE or @FILE", help_heading = "URLs", value_parser = http_header)]
    http_header: Vec<Headers>,
}

impl Args for Network {
    fn augment_args(command: Command) -> Command {
        augment(command, |_| true)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Network::augment_args(command)
    }
}

/// Adds the options that `wanted` accepts.
fn augment(command: Command, wanted: impl Fn(&str) -> bool) -> Command {
    let options = REMOTE.iter().filter(|option| wanted(option.name));
    Http::augment_args(command).args(options.filter_map(|option| arg(option).map(|arg| arg.help_heading("URLs"))))
}

impl FromArgMatches for Network {
    fn from_arg_matches(matches: &ArgMatches) -> std::result::Result<Network, clap::Error> {
        let mut network = Network::default();
        network.update_from_arg_matches(matches)?;
        Ok(network)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> std::result::Result<(), clap::Error> {
        self.update(matches, |_| true)
    }
}

impl Args for SourceNetwork {
    fn augment_args(command: Command) -> Command {
        augment(command, is_of_sources)
    }

    fn augment_args_for_update(command: Command) -> Command {
        SourceNetwork::augment_args(command)
    }
}

impl FromArgMatches for SourceNetwork {
    fn from_arg_matches(matches: &ArgMatches) -> std::result::Result<SourceNetwork, clap::Error> {
        let mut network = SourceNetwork::default();
        network.update_from_arg_matches(matches)?;
        Ok(network)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> std::result::Result<(), clap::Error> {
        self.0.update(matches, is_of_sources)
    }
}

impl Deref for SourceNetwork {
    type Target = Network;

    fn deref(&self) -> &Network {
        &self.0
    }
}

fn is_of_sources(name: &str) -> bool {
    !OF_OUTPUTS.contains(&name)
}

/// The headers of one option.
type Headers = Vec<(String, String)>;

fn http_header(text: &str) -> std::result::Result<Headers, String> {
    let header = |line: &str| match line.split_once(':') {
        Some((name, value)) if !name.trim().is_empty() => Ok((name.trim().to_string(), value.trim().to_string())),
        // The value may be secret, so it is not shown.
        _ => Err("expected 'NAME: VALUE'".to_string()),
    };
    match text.strip_prefix('@') {
        None => header(text).map(|header| vec![header]),
        Some(path) => {
            let lines = fs::read_to_string(path).map_err(|error| format!("expected a file of headers: {error}"))?;
            lines.lines().filter(|line| !line.trim().is_empty()).map(header).collect()
        }
    }
}

impl Network {
    /// Sets the options that were given and that `wanted` accepts.
    fn update(&mut self, matches: &ArgMatches, wanted: impl Fn(&str) -> bool) -> std::result::Result<(), clap::Error> {
        self.given.add(matches, REMOTE.iter().map(|option| option.name).filter(|name| wanted(name)));
        self.http.update_from_arg_matches(matches)
    }

    /// Returns these options with the expected size of the output, unless the user has decided about it.
    pub(super) fn expecting(&self, size: Option<u64>) -> Network {
        let mut network = self.clone();
        let is_decided = OF_OUTPUTS.iter().any(|name| self.given.has(name));
        if let Some(size) = size.filter(|_| !is_decided) {
            network.given.set("size_hint", Value::Number(size));
        }
        network
    }

    /// Returns a URL with these options.
    pub(crate) fn remote(&self, url: &str) -> Remote {
        let remote = self.given.apply(REMOTE, |_| true, Remote::new(url));
        self.http.http_header.iter().flatten().fold(remote, |remote, (name, value)| remote.header(name, value))
    }

    /// Returns whether the end of a body may be unknown.
    pub(super) fn allows_unknown_length(&self) -> bool {
        self.given.has("allow_unknown_length")
    }

    /// Checks a source without a request.
    pub(super) fn check_source(&self, url: &str) -> Result<()> {
        self.remote(url).check()
    }

    /// Checks an output without a request.
    pub(super) fn check_output(&self, url: &str) -> Result<()> {
        self.remote(url).check_upload()
    }

    /// Prints how long an object may be, if its length is not known.
    pub(super) fn state_limit(&self, url: &str) {
        if !self.given.has("size_hint")
            && let Ok(limit) = self.remote(url).upload_limit()
        {
            let (name, limit) = (self.remote(url).name(), HumanBytes(limit));
            message::say(&format!("{name}: up to {limit}, because its length is not known; see --size-hint"));
        }
    }

    pub(super) fn write(&self, builder: WriterBuilder, url: &str) -> Result<Writer> {
        builder.url(self.remote(url).on_unfinished(|upload| {
            message::complain(
                &format!("{}: an unfinished upload could not be removed: {}", upload.url, upload.id),
                Some(&format!(
                    "remove it: millstream uploads abort --older-than 0s {}",
                    show_argv(&[upload.url.clone().into()])
                )),
            );
        }))
    }
}
