//! Writes tables: Parquet, Arrow IPC, CSV and JSON lines. `bson convert` and `convert` share these writers.
//!
//! A writer holds at most a row group of Parquet, or a batch. The output is complete when `finish` returns; the caller
//! opens and closes it. Everything but the fields of CSV requires the feature `parquet`.

#[cfg(feature = "parquet")]
mod arrow;
#[cfg(feature = "parquet")]
mod cells;
pub(crate) mod csv;
#[cfg(feature = "parquet")]
mod failure;
#[cfg(feature = "parquet")]
mod json;
#[cfg(feature = "parquet")]
mod parquet;
#[cfg(feature = "parquet")]
mod table;

#[cfg(feature = "parquet")]
pub(crate) use failure::{failed, read_failed};
#[cfg(feature = "parquet")]
pub(crate) use table::{Kind, Table, TextOptions};

use millstream::{Error, ErrorKind};

/// How Parquet is compressed.
#[cfg_attr(not(feature = "parquet"), allow(dead_code))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Packing {
    /// zstd with this level.
    Zstd(u8),
    /// snappy, for readers that support nothing else.
    Snappy,
    /// No compression.
    None,
}

impl Default for Packing {
    /// zstd, level 3: smaller output than snappy in slightly more time, and supported by every current reader.
    fn default() -> Packing {
        Packing::Zstd(3)
    }
}

/// How Parquet is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(feature = "parquet"), allow(dead_code))]
pub(crate) struct ParquetOptions {
    pub(crate) packing: Packing,
    /// The most rows of a row group. A row group also ends when it takes 64 MiB of memory.
    pub(crate) group_rows: usize,
    /// Whether values are encoded with dictionaries, where these are smaller.
    pub(crate) dictionary: bool,
    /// The number of threads that encode columns.
    pub(crate) threads: usize,
}

impl Default for ParquetOptions {
    fn default() -> ParquetOptions {
        ParquetOptions { packing: Packing::default(), group_rows: 1 << 20, dictionary: true, threads: 1 }
    }
}

impl Packing {
    /// Parses `zstd`, `zstd:LEVEL`, `snappy` or `none`.
    pub(crate) fn parse(text: &str) -> std::result::Result<Packing, String> {
        let level = |text: &str| text.parse().ok().filter(|level| (1..=22).contains(level));
        match text.split_once(':') {
            None if text == "zstd" => Ok(Packing::default()),
            None if text == "snappy" => Ok(Packing::Snappy),
            None if text == "none" => Ok(Packing::None),
            Some(("zstd", text)) => level(text).map(Packing::Zstd).ok_or("expected a level from 1 to 22".to_string()),
            _ => Err("expected zstd, zstd:LEVEL, snappy or none".to_string()),
        }
    }
}

/// Returns the metadata that is known before the rows are.
#[cfg(feature = "parquet")]
pub(crate) fn source_metadata(names: &[String]) -> Vec<(String, String)> {
    vec![("millstream.sources".to_string(), serde_json::Value::from(names).to_string())]
}

/// Returns the metadata of a complete table: the names of its sources, its rows, and the records that were left out.
#[cfg(feature = "parquet")]
pub(crate) fn metadata(names: &[String], rows: u64, rejected: u64) -> Vec<(String, String)> {
    let counts = [("millstream.rows", rows), ("millstream.rejected", rejected)];
    let counts = counts.map(|(key, count)| (key.to_string(), count.to_string()));
    source_metadata(names).into_iter().chain(counts).collect()
}

/// Returns the error for Arrow and Parquet, which are optional because they take as long to compile as all other code.
pub(crate) fn left_out(others: &str) -> Error {
    Error::new(ErrorKind::Unsupported)
        .with_found("Arrow or Parquet, which this build of millstream does not include")
        .with_expected(format!("{others}a build with all features: cargo install --path crates/cli --features full"))
}
