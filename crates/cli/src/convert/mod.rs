//! `millstream convert`: turns records into tables, and tables into text.
//!
//! `options` defines the command line, `formats` how formats are chosen, `input` reads any of them as batches of
//! columns, `output` writes them, and `job` moves the batches from one to the other. `check` refuses what cannot work
//! together before anything is opened.
//! Documents of BSON are converted by `bson convert`.

#[cfg(feature = "parquet")]
mod check;
#[cfg_attr(not(feature = "parquet"), allow(dead_code))]
mod formats;
#[cfg(feature = "parquet")]
mod input;
#[cfg(feature = "parquet")]
mod job;
#[cfg_attr(not(feature = "parquet"), allow(dead_code))]
mod options;
#[cfg(feature = "parquet")]
mod output;

pub(crate) use options::Options;

use crate::Ending;
#[cfg(not(feature = "parquet"))]
use crate::{message, tables};

/// Runs the requested conversion.
#[cfg(feature = "parquet")]
pub(crate) fn run(mut options: Options) -> Ending {
    match options.expand() {
        Ok(()) => job::run(&options),
        Err(error) => crate::message::fail(&error),
    }
}

/// Reports that this build cannot convert.
#[cfg(not(feature = "parquet"))]
pub(crate) fn run(_: Options) -> Ending {
    message::fail(&tables::left_out("'millstream bson convert' to ndjson or csv, or "))
}
