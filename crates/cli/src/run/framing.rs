//! The options that say how records are found, which `run` and `split` share.

use clap::Args;
use millstream::Error;
use millstream::frame::LengthPrefixed;
use millstream::splits::Framing;

use crate::escape;

use super::given::record_size;
use super::json::DEPTH;

/// How records are found.
#[derive(Args)]
pub(crate) struct Records {
    /// Records end with these bytes; accepts \n \r \t \0 \\ \xHH
    #[arg(long, value_name = "BYTES", help_heading = "Records", group = "framing", value_parser = escape::parse)]
    // The type is written as a whole path, because clap's derive would read a plain `Vec<u8>` as an option that is
    // given many times.
    delimiter: Option<std::vec::Vec<u8>>,

    /// Records end with a NUL byte, as with find -print0
    // -0 is the name in xargs, which is often the next command of a pipeline; -z of sort and grep means compression in
    // other programs.
    #[arg(short = '0', long, help_heading = "Records", group = "framing")]
    null: bool,

    /// Every record has this size
    #[arg(long, value_name = "SIZE", help_heading = "Records", group = "framing", value_parser = record_size)]
    fixed: Option<usize>,

    /// Every record begins with its length: u8, u16, u32 or u64 with le or be
    ///
    /// For example u8, u16be or u32le. With ',self' added, the length counts itself: u32le,self.
    #[arg(long, value_name = "TYPE", help_heading = "Records", group = "framing", value_parser = prefix)]
    length_prefixed: Option<LengthPrefixed>,

    /// Records are consecutive BSON documents, as written by mongodump
    #[arg(long, help_heading = "Records", group = "framing")]
    bson: bool,

    /// Records are lines of newline-delimited JSON
    ///
    /// The lines are copied unchanged, and checked only with --json-check. Blank lines are not records, and stages do not
    /// see them.
    #[arg(long, help_heading = "Records", group = "framing")]
    jsonl: bool,

    /// Check that every line is one value of JSON in UTF-8
    #[arg(long, help_heading = "Records", requires = "jsonl")]
    json_check: bool,
}

impl Records {
    /// Returns whether lines of JSON are checked.
    pub(crate) fn checks_json(&self) -> bool {
        self.json_check
    }

    /// Returns the requested framing, or `None` for the default, which is lines. `depth` is the limit for lines of JSON that
    /// are checked.
    pub(crate) fn framing(&self, depth: Option<usize>) -> Option<Framing> {
        if let Some(delimiter) = &self.delimiter {
            Some(Framing::Delimiter { bytes: delimiter.clone() })
        } else if self.null {
            Some(Framing::Delimiter { bytes: vec![0] })
        } else if let Some(len) = self.fixed {
            Some(Framing::Fixed { len })
        } else if let Some(prefix) = self.length_prefixed {
            Some(Framing::LengthPrefixed { prefix })
        } else if self.jsonl {
            Some(Framing::JsonLines { checked: self.json_check, depth: depth.unwrap_or(DEPTH) })
        } else {
            self.bson.then_some(Framing::Bson)
        }
    }
}

/// Parses the form of a length prefix.
fn prefix(text: &str) -> Result<LengthPrefixed, String> {
    text.parse().map_err(|error: Error| format!("expected {}", error.expected().unwrap_or_default()))
}
