//! The formats, and how they follow from the names of files. The content is never asked.

use std::path::Path;

use clap::ValueEnum;
use millstream::Encode;

/// The formats of sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum From {
    /// Lines of text, which become one column, 'line'
    Lines,
    /// Comma-separated values with a header
    Csv,
    /// The same, separated by tabs
    Tsv,
    /// JSON, one value per line
    #[value(alias = "ndjson")]
    Jsonl,
    /// A JSON document: the elements of its array, or of the one at --json-pointer
    Json,
    /// Documents of BSON, as written by mongodump
    Bson,
    /// A Parquet file
    Parquet,
    /// An Arrow IPC file (Feather)
    Arrow,
    /// An Arrow IPC stream
    ArrowStream,
}

/// The formats of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum To {
    /// A Parquet file
    Parquet,
    /// An Arrow IPC file (Feather)
    Arrow,
    /// An Arrow IPC stream, for a pipe
    ArrowStream,
    /// Comma-separated values
    Csv,
    /// JSON, one object per line
    #[value(alias = "ndjson")]
    Jsonl,
}

impl From {
    /// Returns the format that a file's name implies, also if the file is compressed.
    pub(super) fn of_name(path: &Path) -> Option<From> {
        Some(match &*ending(path)? {
            "txt" | "log" => From::Lines,
            "csv" => From::Csv,
            "tsv" | "tab" => From::Tsv,
            "jsonl" | "ndjson" => From::Jsonl,
            "json" => From::Json,
            "bson" => From::Bson,
            "parquet" => From::Parquet,
            "arrow" | "feather" => From::Arrow,
            "arrows" => From::ArrowStream,
            _ => return None,
        })
    }

    /// Returns whether types are inferred, or given.
    pub(super) fn is_typed(self) -> bool {
        matches!(self, From::Bson | From::Parquet | From::Arrow | From::ArrowStream)
    }

    pub(super) fn is_json(self) -> bool {
        matches!(self, From::Jsonl | From::Json)
    }

    pub(super) fn is_csv(self) -> bool {
        matches!(self, From::Csv | From::Tsv)
    }
}

impl To {
    /// Returns the format that a file's name implies, also if the file is compressed.
    pub(super) fn of_name(path: &Path) -> Option<To> {
        Some(match &*ending(path)? {
            "parquet" => To::Parquet,
            "arrow" | "feather" => To::Arrow,
            "arrows" => To::ArrowStream,
            "csv" => To::Csv,
            "jsonl" | "ndjson" => To::Jsonl,
            _ => return None,
        })
    }
}

/// Returns the name on the command line.
pub(super) fn name(format: impl ValueEnum) -> String {
    format.to_possible_value().map(|value| value.get_name().to_string()).unwrap_or_default()
}

/// Returns the ending of a name, without that of a compressed file.
fn ending(path: &Path) -> Option<String> {
    let is_compressed = !matches!(Encode::of_name(path), Ok(Encode::Off));
    let stem = if is_compressed { path.file_stem().map(Path::new)? } else { path };
    Some(stem.extension()?.to_str()?.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_imply_formats() {
        let of = |name: &str| From::of_name(Path::new(name));
        assert_eq!(of("a.csv"), Some(From::Csv));
        assert_eq!(of("dir.csv/a.TSV.gz"), Some(From::Tsv));
        assert_eq!(of("a.log.zst"), Some(From::Lines));
        assert_eq!(of("a.csv.lz4"), Some(From::Csv)); // cannot be decoded, which is reported later
        assert_eq!(of("a.jsonl.gz"), Some(From::Jsonl));
        assert_eq!(of("a.json"), Some(From::Json));
        assert_eq!(of("a.gz"), None);
        assert_eq!(of("csv"), None);
        assert_eq!(To::of_name(Path::new("x/out-1.parquet")), Some(To::Parquet));
        assert_eq!(To::of_name(Path::new("out.ndjson.gz")), Some(To::Jsonl));
        assert_eq!(To::of_name(Path::new("out")), None);
    }
}
