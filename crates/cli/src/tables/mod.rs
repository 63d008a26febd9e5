//! Writes tables: Parquet, Arrow IPC, CSV and JSON lines, for `convert`.
//!
//! A writer holds at most a row group of Parquet, or a batch. The output is complete when `finish` returns; the caller
//! opens and closes it. Everything but the options requires the feature `parquet`.

#[cfg(feature = "parquet")]
mod arrow;
#[cfg(feature = "parquet")]
mod cells;
#[cfg(feature = "parquet")]
mod csv;
#[cfg(feature = "parquet")]
mod documents;
#[cfg(feature = "parquet")]
mod failure;
#[cfg(feature = "parquet")]
mod json;
#[cfg(feature = "parquet")]
mod parquet;
#[cfg(feature = "parquet")]
mod table;

#[cfg(feature = "parquet")]
pub(crate) use failure::{contained, failed, read_failed};
#[cfg(feature = "parquet")]
pub(crate) use table::{Kind, Table, TextOptions};

/// How Parquet and Arrow IPC are compressed.
#[cfg_attr(not(feature = "parquet"), allow(dead_code))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Packing {
    /// zstd with this level.
    Zstd(u8),
    /// snappy, for readers of Parquet that support nothing else.
    Snappy,
    /// LZ4, which Arrow IPC has without levels.
    Lz4,
    /// No compression.
    None,
}

/// The level of zstd by default.
const LEVEL: u8 = 3;

/// How Parquet and Arrow IPC are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(feature = "parquet"), allow(dead_code))]
pub(crate) struct BinaryOptions {
    /// By default, Parquet has zstd, level 3: smaller output than snappy in slightly more time, and supported by every
    /// current reader. Arrow IPC is not compressed, so that it can be mapped.
    pub(crate) packing: Option<Packing>,
    /// The most rows of a row group of Parquet. A row group also ends when it takes 64 MiB of memory.
    pub(crate) group_rows: usize,
    /// Whether values of Parquet are encoded with dictionaries, where these are smaller.
    pub(crate) dictionary: bool,
    /// The number of threads that encode columns of Parquet.
    pub(crate) threads: usize,
}

impl Default for BinaryOptions {
    fn default() -> BinaryOptions {
        BinaryOptions { packing: None, group_rows: 1 << 20, dictionary: true, threads: 1 }
    }
}

impl Packing {
    /// Parses `zstd`, `zstd:LEVEL`, `snappy`, `lz4` or `none`.
    pub(crate) fn parse(text: &str) -> std::result::Result<Packing, String> {
        let level = |text: &str| text.parse().ok().filter(|level| (1..=22).contains(level));
        match text.split_once(':') {
            None if text == "zstd" => Ok(Packing::Zstd(LEVEL)),
            None if text == "snappy" => Ok(Packing::Snappy),
            None if text == "lz4" => Ok(Packing::Lz4),
            None if text == "none" => Ok(Packing::None),
            Some(("zstd", text)) => level(text).map(Packing::Zstd).ok_or("expected a level from 1 to 22".to_string()),
            Some((name @ ("snappy" | "lz4" | "none"), _)) => Err(format!("expected {name} without a level")),
            _ => Err("expected zstd, zstd:LEVEL, snappy, lz4 or none".to_string()),
        }
    }

    /// Returns what Parquet or Arrow IPC has instead, if it does not have this compression.
    pub(crate) fn instead(self, is_parquet: bool) -> Option<&'static str> {
        match (self, is_parquet) {
            (Packing::Lz4, true) => Some("--compression zstd, snappy or none"),
            (Packing::Snappy, false) => Some("--compression lz4, zstd or none"),
            _ => None,
        }
    }

    /// Returns the word for it in the command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Packing::Zstd(_) => "zstd",
            Packing::Snappy => "snappy",
            Packing::Lz4 => "lz4",
            Packing::None => "none",
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
