//! `--json` and `--json-pointer`: the records are the elements of an array.

use clap::Args;
use millstream::splits::Framing;
use millstream::{Error, ErrorKind, ReaderBuilder, Result};

/// The byte after each element, by which records are found.
const SEPARATOR: u8 = 0x1e;

/// The depth limit by default, which is the library's default.
pub(super) const DEPTH: usize = 128;

/// How JSON documents are read.
#[derive(Args)]
pub(crate) struct JsonOptions {
    /// Records are the elements of a JSON array, which is all of a source
    ///
    /// Each element is written unchanged, followed by a newline; one that contains line breaks keeps them. All of the
    /// document is checked, but not whether text is UTF-8, and what is wrong is reported after the last whole element.
    #[arg(long, help_heading = "Records", group = "framing", conflicts_with = "json_check")]
    json: bool,

    /// Like --json, for the array at this JSON pointer, such as /a/items
    #[arg(long, value_name = "PATH", help_heading = "Records")]
    #[arg(conflicts_with_all = ["delimiter", "null", "fixed", "length_prefixed", "bson", "csv", "jsonl", "json_check"])]
    json_pointer: Option<String>,
}

impl JsonOptions {
    fn pointer(&self) -> Option<&str> {
        self.json_pointer.as_deref().or(self.json.then_some(""))
    }

    /// Returns whether records are the elements of an array.
    pub(super) fn is_given(&self) -> bool {
        self.pointer().is_some()
    }

    /// Returns how records are found, after [`apply`](JsonOptions::apply) or by a split.
    pub(crate) fn framing(&self, depth: Option<usize>) -> Option<Framing> {
        let pointer = self.pointer()?.to_string();
        Some(Framing::JsonElements { pointer, depth: depth.unwrap_or(DEPTH) })
    }

    /// Makes a reader return the elements.
    pub(super) fn apply(&self, builder: ReaderBuilder, depth: Option<usize>) -> ReaderBuilder {
        match self.pointer() {
            Some(pointer) => builder.json_elements(pointer).json_depth(depth.unwrap_or(DEPTH)),
            None => builder,
        }
    }

    /// Fails if a depth limit is given that has no use.
    ///
    /// # Errors
    /// Returns [`ErrorKind::InvalidOption`].
    pub(crate) fn check_depth(&self, depth: Option<usize>, checks_lines: bool) -> Result<()> {
        match depth {
            Some(_) if !self.is_given() && !checks_lines => Err(Error::new(ErrorKind::InvalidOption)
                .with_found("--json-depth without JSON that is checked")
                .with_expected("--json, --json-pointer, or --jsonl with --json-check")),
            _ => Ok(()),
        }
    }
}

/// Returns elements as they are written.
pub(super) fn written(bytes: &[u8], offsets: &[u32]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for &end in &offsets[1..] {
        if let Some(last @ &mut SEPARATOR) = end.checked_sub(1).and_then(|at| bytes.get_mut(at as usize)) {
            *last = b'\n';
        }
    }
    bytes
}
