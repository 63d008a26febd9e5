//! The options for URLs, as sources and as outputs.

use std::fs;
use std::time::Duration;

use clap::Args;
use millstream::{Reader, ReaderBuilder, Remote, Result, Writer, WriterBuilder};

use crate::{message, size};

/// The options for URLs.
#[derive(Args, Clone, Default)]
pub(crate) struct Network {
    /// Add a header to each request for a URL, or each line of a file as a header
    ///
    /// Such as 'Authorization: Bearer TOKEN'; other users of the machine can see the words of a command, but not
    /// those of a file. Headers that describe an object, such as Content-Type, x-amz-meta-NAME,
    /// x-goog-meta-NAME and x-ms-meta-NAME, are sent with the request that creates it. No header is sent to another host after a
    /// redirect.
    #[arg(long, value_name = "NAME: VALUE or @FILE", help_heading = "URLs", value_parser = http_header)]
    http_header: Vec<Headers>,

    /// The address of the store [default: that in the environment, such as AWS_ENDPOINT_URL, or the provider's]
    #[arg(long, value_name = "URL", help_heading = "URLs")]
    endpoint: Option<String>,

    /// Do not sign requests to a store: for public objects
    #[arg(long, help_heading = "URLs")]
    anonymous: bool,

    /// Repeat failed requests until there has been no progress for this long [default: 5m]
    #[arg(long, value_name = "DURATION", help_heading = "URLs", value_parser = humantime::parse_duration)]
    retry_for: Option<Duration>,

    /// Give up a connection that moves no bytes for this long, and resume [default: 10s]
    #[arg(long, value_name = "DURATION", help_heading = "URLs", value_parser = humantime::parse_duration)]
    idle_timeout: Option<Duration>,

    /// Accept a body of a web server with neither a length nor chunks, whose end cannot be known
    #[arg(long, help_heading = "URLs")]
    allow_unknown_length: bool,

    /// Allow link-local addresses, where clouds keep the credentials of a machine
    #[arg(long, help_heading = "URLs")]
    allow_link_local: bool,

    /// Upload objects in parts of this size, from 5M to 5G [default: 16M, or what --size-hint needs]
    ///
    /// An object has at most 10,000 parts: 156 GiB by default. Up to 5 parts are in memory.
    #[arg(long, value_name = "SIZE", help_heading = "URLs", value_parser = part_size)]
    part_size: Option<u64>,

    /// The expected size of an object that is uploaded [default: that of the source files]
    #[arg(long, value_name = "SIZE", help_heading = "URLs", value_parser = size_hint)]
    size_hint: Option<u64>,
}

/// The headers of one option.
type Headers = Vec<(String, String)>;

fn part_size(text: &str) -> std::result::Result<u64, String> {
    size::parse(text, 5 << 20..=5 << 30)
}

fn size_hint(text: &str) -> std::result::Result<u64, String> {
    size::parse(text, 0..=1 << 50)
}

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
    /// Returns these options with the expected size of the output, unless the user has decided about it.
    pub(super) fn expecting(&self, size: Option<u64>) -> Network {
        Network { size_hint: self.size_hint.or(size.filter(|_| self.part_size.is_none())), ..self.clone() }
    }
}

impl Network {
    /// Returns a URL with these options.
    pub(crate) fn remote(&self, url: &str) -> Remote {
        let mut remote = Remote::new(url)
            .anonymous(self.anonymous)
            .allow_unknown_length(self.allow_unknown_length)
            .allow_link_local(self.allow_link_local);
        for (name, value) in self.http_header.iter().flatten() {
            remote = remote.header(name, value);
        }
        if let Some(endpoint) = &self.endpoint {
            remote = remote.endpoint(endpoint);
        }
        if let Some(limit) = self.retry_for {
            remote = remote.retry_for(limit);
        }
        if let Some(limit) = self.idle_timeout {
            remote = remote.idle_timeout(limit);
        }
        if let Some(bytes) = self.part_size {
            remote = remote.part_size(bytes);
        }
        if let Some(bytes) = self.size_hint {
            remote = remote.size_hint(bytes);
        }
        remote
    }

    /// Checks a source without a request.
    pub(super) fn check_source(&self, url: &str) -> Result<()> {
        self.remote(url).check()
    }

    pub(super) fn read(&self, builder: ReaderBuilder, url: &str) -> Result<Reader> {
        builder.url(self.remote(url))
    }

    /// Checks an output without a request.
    pub(super) fn check_output(&self, url: &str) -> Result<()> {
        self.remote(url).check_upload()
    }

    pub(super) fn write(&self, builder: WriterBuilder, url: &str) -> Result<Writer> {
        builder.url(self.remote(url).on_unfinished(|upload| {
            message::complain(
                &format!("{}: an unfinished upload could not be removed: {}", upload.url, upload.id),
                Some(&format!("remove it: millstream uploads abort --older-than 0s '{}'", upload.url)),
            );
        }))
    }
}
