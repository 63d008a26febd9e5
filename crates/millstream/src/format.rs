//! The compressed formats, for both directions.

use std::fmt;
use std::ops::RangeInclusive;
use std::path::Path;

/// A compressed format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// gzip, RFC 1952.
    Gzip,
    /// Blocked gzip, SAM specification section 4.1.
    Bgzf,
    /// Zstandard, RFC 8878.
    Zstd,
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Format::Gzip => "gzip",
            Format::Bgzf => "bgzf",
            Format::Zstd => "zstd",
        })
    }
}

impl Format {
    /// The format that a file's name promises by its ending: `.gz`, `.bgz` or `.bgzf`, `.zst`.
    pub(crate) fn of_name(path: &Path) -> Option<Format> {
        let ending = path.extension()?.to_str()?.to_ascii_lowercase();
        match ending.as_str() {
            "gz" => Some(Format::Gzip),
            "bgz" | "bgzf" => Some(Format::Bgzf),
            "zst" => Some(Format::Zstd),
            _ => None,
        }
    }

    /// The levels that make sense, from fast to small.
    pub(crate) fn levels(self) -> RangeInclusive<u32> {
        match self {
            Format::Gzip | Format::Bgzf => 0..=9,
            Format::Zstd => 1..=22,
        }
    }

    /// The level that the format's own command uses.
    #[cfg(feature = "compression")]
    pub(crate) fn usual_level(self) -> u32 {
        match self {
            Format::Gzip | Format::Bgzf => 6,
            Format::Zstd => 3,
        }
    }
}
