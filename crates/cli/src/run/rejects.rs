//! `--on-bad`, `--rejects` and `--max-rejects`: what happens to records that are invalid, too long, or do not fit.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum, ValueHint};
use data_encoding::BASE64;
use millstream::frame::Framer;
use millstream::splits::Framing;
use millstream::{CancelToken, Encode, Error, ErrorKind, Reader, Result, Writer};
use serde::Serialize;

use crate::message;

use super::count_text;

/// The maximum number of bytes of a record that are kept.
pub(crate) const MOST_RAW: usize = 1 << 20;

/// The number of records that are reported one by one.
const REPORTED: u64 = 10;

/// What happens to bad records.
#[derive(Args)]
pub(crate) struct BadOptions {
    /// What to do with a record that is invalid, too long, or lacks a field that 'fields' needs [default: stop]
    ///
    /// Reading continues after the record. A record of CSV with broken quoting ends with its line, and one whose quote is
    /// never closed with the source. The header must be valid in any case.
    #[arg(long, value_name = "HOW", help_heading = "Records", value_enum)]
    on_bad: Option<OnBad>,

    /// Write such records to this file, and succeed: one line of JSON for each
    ///
    /// A line has the source, the byte, the record, the line and the column, the name and the message of the error, and in
    /// base64 the record, at most its first 1,048,576 bytes. The file appears when it is complete, before the output.
    #[arg(long, value_name = "FILE", help_heading = "Records", value_hint = ValueHint::FilePath)]
    rejects: Option<PathBuf>,
}

/// What happens to a bad record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum OnBad {
    /// Report an error and stop
    Stop,
    /// Leave it out, report its position, complete the output, and exit with status 1
    Skip,
}

/// What happens to bad records, for subcommands that can limit their number.
#[derive(Args)]
pub(crate) struct RejectOptions {
    /// What to do with a record that is invalid or does not fit its columns [default: stop]
    #[arg(long, value_name = "HOW", help_heading = "Records", alias = "on-error", value_enum)]
    on_bad: Option<OnBad>,

    /// Write such records to this file, and succeed: one line of JSON for each
    ///
    /// The lines are those of 'run --rejects'. The file appears when it is complete, before the output.
    #[arg(long, value_name = "FILE", help_heading = "Records", value_hint = ValueHint::FilePath)]
    rejects: Option<PathBuf>,

    /// Leave out such records, and fail if there are more than this number, or than this share, such as 1%
    #[arg(long, value_name = "NUMBER", help_heading = "Records", value_parser = MaxRejects::parse)]
    max_rejects: Option<MaxRejects>,
}

/// How many records may be left out.
#[derive(Clone, Copy, Debug, PartialEq)]
enum MaxRejects {
    Count(u64),
    /// Of all records.
    Percent(f64),
}

impl MaxRejects {
    fn parse(text: &str) -> std::result::Result<MaxRejects, String> {
        let limit = match text.strip_suffix('%') {
            Some(text) => text.parse().ok().filter(|share| (0.0..=100.0).contains(share)).map(MaxRejects::Percent),
            None => text.parse().ok().map(MaxRejects::Count),
        };
        limit.ok_or_else(|| "expected a number, or a share from 0% to 100%".to_string())
    }
}

impl RejectOptions {
    /// Returns whether reading continues after a bad record.
    pub(crate) fn skips(&self) -> bool {
        self.rejects.is_some() || self.max_rejects.is_some() || self.on_bad == Some(OnBad::Skip)
    }

    /// Returns the file of `--rejects`.
    pub(crate) fn file(&self) -> Option<&Path> {
        self.rejects.as_deref()
    }

    /// Returns the first option that was given.
    #[cfg(feature = "parquet")]
    pub(crate) fn first_given(&self) -> Option<&'static str> {
        match self {
            RejectOptions { rejects: Some(_), .. } => Some("--rejects"),
            RejectOptions { max_rejects: Some(_), .. } => Some("--max-rejects"),
            RejectOptions { on_bad: Some(_), .. } => Some("--on-bad"),
            _ => None,
        }
    }

    /// Fails if the options contradict each other.
    pub(crate) fn check(&self) -> Result<()> {
        let limits = [(self.rejects.is_some(), "--rejects"), (self.max_rejects.is_some(), "--max-rejects")];
        match limits.into_iter().find(|(is_given, _)| *is_given && self.on_bad == Some(OnBad::Stop)) {
            Some((_, option)) => Err(with_stop(option)),
            None => Ok(()),
        }
    }
}

fn with_stop(option: &str) -> Error {
    Error::new(ErrorKind::InvalidOption).with_found(format!("{option} with --on-bad stop")).with_expected("one of them")
}

impl BadOptions {
    /// Returns whether reading continues after a bad record.
    pub(crate) fn skips(&self) -> bool {
        self.rejects.is_some() || self.on_bad == Some(OnBad::Skip)
    }

    /// Returns the file of `--rejects`.
    pub(crate) fn file(&self) -> Option<&Path> {
        self.rejects.as_deref()
    }

    /// Fails if the options contradict each other.
    pub(crate) fn check(&self) -> Result<()> {
        match (&self.rejects, self.on_bad) {
            (Some(_), Some(OnBad::Stop)) => Err(with_stop("--rejects")),
            _ => Ok(()),
        }
    }
}

/// A bad record.
pub(crate) struct Reject {
    pub(super) error: Error,
    /// The content of the record, or its beginning.
    pub(super) raw: Vec<u8>,
}

impl Reject {
    /// Returns whether reading may continue after this error, because it is the error of one record.
    pub(super) fn is_reason(error: &Error, framing: Option<&Framing>) -> bool {
        match error.kind() {
            ErrorKind::CsvInvalid | ErrorKind::RecordTooLong | ErrorKind::FieldCountMismatch => true,
            // In a document of --json no record follows it.
            ErrorKind::JsonInvalid | ErrorKind::TooDeep => matches!(framing, Some(Framing::JsonLines { .. })),
            _ => false,
        }
    }

    /// Creates a reject from a record, or its beginning, and its error.
    pub(crate) fn new(error: Error, record: &[u8]) -> Reject {
        Reject { error, raw: record[..record.len().min(MOST_RAW)].to_vec() }
    }

    /// Skips the record at which reading has failed. Also returns the number of its bytes.
    ///
    /// # Errors
    /// Returns the errors of reading.
    pub(super) fn skip<F: Framer + ?Sized>(reader: &mut Reader, framer: &mut F, error: Error) -> Result<(Reject, u64)> {
        let mut raw = Vec::new();
        let len = reader.skip_record_into(framer, &mut raw, MOST_RAW)?;
        Ok((Reject { error, raw }, len.unwrap_or(0)))
    }
}

/// The line for a bad record.
#[derive(Serialize)]
struct Line<'a> {
    source: Option<&'a str>,
    byte: Option<u64>,
    record: Option<u64>,
    line: Option<u64>,
    column: Option<u64>,
    kind: &'static str,
    message: String,
    raw: String,
}

/// The bad records of a run.
pub(crate) struct Rejects {
    file: Option<(Writer, PathBuf)>,
    count: u64,
    first: Option<ErrorKind>,
    most: Option<MaxRejects>,
}

impl Rejects {
    /// # Errors
    /// Returns the errors of creating the file.
    pub(super) fn open(options: &BadOptions, token: &CancelToken) -> Result<Rejects> {
        Rejects::with(options.file(), None, token)
    }

    /// # Errors
    /// Returns the errors of creating the file.
    pub(crate) fn limited(options: &RejectOptions, token: &CancelToken) -> Result<Rejects> {
        Rejects::with(options.file(), options.max_rejects, token)
    }

    fn with(path: Option<&Path>, most: Option<MaxRejects>, token: &CancelToken) -> Result<Rejects> {
        let open = |path: &Path| {
            Writer::builder().cancel(token).encode(Encode::Off).path(path).map(|writer| (writer, path.to_path_buf()))
        };
        Ok(Rejects { file: path.map(open).transpose()?, count: 0, first: None, most })
    }

    /// # Errors
    /// Returns the errors of writing.
    pub(crate) fn add(&mut self, reject: Reject) -> Result<()> {
        let Reject { error, raw } = reject;
        self.count += 1;
        self.first.get_or_insert(error.kind());
        let message = format!("{:#}", error.without_advice());
        let Some((writer, _)) = &mut self.file else {
            if self.count <= REPORTED {
                message::say(&format!("left out: {message}"));
            }
            return Ok(());
        };
        let line = Line {
            source: error.name(),
            byte: error.offset(),
            record: error.record(),
            line: error.line(),
            column: error.column(),
            kind: error.kind().name(),
            message,
            raw: BASE64.encode(&raw),
        };
        let mut line = serde_json::to_vec(&line).map_err(|error| Error::from_io(error.into()))?;
        line.push(b'\n');
        writer.write(&line)
    }

    /// Returns the number of bad records.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Fails if there are more bad records than permitted, after this number of others. A share is known only at the
    /// end.
    ///
    /// # Errors
    /// Returns the kind of the first bad record.
    pub(crate) fn check(&self, others: u64, is_end: bool) -> Result<()> {
        let count = self.count;
        let expected = match self.most {
            Some(MaxRejects::Count(most)) if count > most => format!("at most {most}, because of --max-rejects"),
            Some(MaxRejects::Percent(most)) if is_end => {
                let records = count + others;
                if count as f64 * 100.0 <= most * records as f64 {
                    return Ok(());
                }
                format!("at most {most}% of {}, because of --max-rejects", count_text(records, "record"))
            }
            _ => return Ok(()),
        };
        let kind = self.first.unwrap_or(ErrorKind::ShapeMismatch);
        Err(Error::new(kind).with_found(count_text(count, "bad record")).with_expected(expected))
    }

    /// Completes the file. Without one, and without a limit, bad records are an error.
    ///
    /// # Errors
    /// Returns the errors of completing the file.
    pub(crate) fn close(self) -> Result<Result<()>> {
        let Some(first) = self.first else {
            return match self.file {
                Some((writer, _)) => writer.close().map(|_| Ok(())),
                None => Ok(Ok(())),
            };
        };
        let count = count_text(self.count, "bad record");
        let Some((writer, path)) = self.file else {
            if self.count > REPORTED {
                message::say(&format!("left out: {} more", self.count - REPORTED));
            }
            if self.most.is_some() {
                return Ok(Ok(()));
            }
            return Ok(Err(Error::new(first).with_found(count).with_expected("none; the output lacks them")));
        };
        writer.close()?;
        message::say(&format!("{count}: see {}", path.display()));
        Ok(Ok(()))
    }

    /// Removes the file of a run that failed.
    pub(crate) fn abandon(self) {
        if let Some((mut writer, _)) = self.file {
            writer.abort();
        }
    }
}
