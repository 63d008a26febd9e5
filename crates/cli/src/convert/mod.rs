//! `millstream convert`: turns records into tables, and tables into text.
//!
//! `options` defines the command line, `formats` how formats are chosen, `input` reads any of them as batches of
//! columns, `output` writes them, and `job` moves the batches from one to the other. `check` refuses what cannot work
//! together before anything is opened. `arrow` reads Arrow IPC; `documents` reads documents of BSON, and `document_options`
//! has their options.

#[cfg(feature = "parquet")]
mod arrow;
#[cfg(feature = "parquet")]
mod check;
#[cfg_attr(not(feature = "parquet"), allow(dead_code))]
mod document_options;
#[cfg(feature = "parquet")]
mod documents;
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

use formats::From;
use millstream::{Error, ErrorKind};

use crate::{Ending, message};

/// Runs the requested conversion.
#[cfg(feature = "parquet")]
pub(crate) fn run(mut options: Options) -> Ending {
    match options.expand() {
        Ok(()) => job::run(&options),
        Err(error) => message::fail(&error),
    }
}

/// Reports that this build cannot convert.
#[cfg(not(feature = "parquet"))]
pub(crate) fn run(_: Options) -> Ending {
    message::fail(
        &Error::new(ErrorKind::Unsupported)
            .with_found("convert, which this build of millstream does not include")
            .with_expected(
                "'millstream bson cat' for documents as JSON, or a build with all features: \
                 cargo install --path crates/cli --features full",
            ),
    )
}

/// Runs a conversion of documents of BSON, which `millstream bson convert` requests.
pub(crate) fn run_bson(mut options: Options) -> Ending {
    match options.from.replace(From::Bson) {
        None | Some(From::Bson) => run(options),
        Some(other) => message::fail(
            &Error::new(ErrorKind::InvalidOption)
                .with_found(format!("--from {} with 'bson convert'", formats::name(other)))
                .with_expected("millstream convert"),
        ),
    }
}
