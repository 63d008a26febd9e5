//! `millstream commit`: ends the job of a directory whose driver was killed.

use std::ffi::OsString;

use clap::{Args, Subcommand, ValueHint};
use millstream::job::{self, Directory};
use millstream::{Remote, Result};

use crate::run::Network;
use crate::{Ending, message};

/// Complete or remove the unfinished job of a directory, to which many processes write
///
/// Such a job, for example of millstream.ray or millstream.spark, makes all of its parts visible, or none. It first writes a
/// manifest, '_millstream.json', then moves the parts to their names, and creates '_SUCCESS' last. If its driver is
/// killed before the manifest, no part is visible, and only 'abort' is possible. After it, use either command.
///
/// The directory can be one of an object store, s3://BUCKET/PREFIX or gs://BUCKET/PREFIX. A part is an upload there, which is
/// completed instead of moved.
///
/// Both commands can be repeated, also if they were killed.
#[derive(Args)]
pub(crate) struct Options {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Complete a job that has a manifest
    ///
    /// All parts are read, and compared with their hashes in the manifest, before the first one is moved. In an object store
    /// they cannot be read before they are visible; all of them must exist.
    Resume {
        #[command(flatten)]
        place: Place,
    },
    /// Remove an unfinished job with all of its parts, so that another job can begin
    ///
    /// A job that is running fails. A job that is complete is not removed.
    Abort {
        #[command(flatten)]
        place: Place,
    },
}

#[derive(Args)]
struct Place {
    /// The directory to which the job writes, or its URL
    #[arg(value_name = "DIR or URL", value_hint = ValueHint::DirPath)]
    directory: OsString,

    #[command(flatten)]
    network: Box<Network>,
}

impl Place {
    fn directory(&self) -> Directory {
        match self.directory.to_str() {
            Some(url) if Remote::is_url(url) => self.network.remote(url).into(),
            _ => self.directory.clone().into(),
        }
    }
}

/// Runs the requested action.
pub(crate) fn run(options: &Options) -> Ending {
    let done = match &options.action {
        Action::Resume { place } => resume(place),
        Action::Abort { place } => job::abort(place.directory()).map(|was_found| match was_found {
            true => "removed the job\n".to_string(),
            false => "no job\n".to_string(),
        }),
    };
    match done {
        Ok(text) => message::print(text.as_bytes()),
        // The messages of these errors say what to do.
        Err(error) => message::fail_with_advice(&error, None),
    }
}

fn resume(place: &Place) -> Result<String> {
    let manifest = job::resume(place.directory())?;
    let records = manifest.records().map_or_else(String::new, |records| format!(", records: {records}"));
    Ok(format!("complete: parts: {}, bytes: {}{records}\n", manifest.parts().len(), manifest.size()))
}
