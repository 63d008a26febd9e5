//! `millstream commit`: ends the job of a directory whose driver was killed.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand, ValueHint};
use millstream::{Result, job};

use crate::{Ending, message};

/// Complete or remove the unfinished job of a directory, to which many processes write
///
/// Such a job, for example of millstream.ray or millstream.spark, makes all of its parts visible, or none. It first writes a
/// manifest, '_millstream.json', then moves the parts to their names, and creates '_SUCCESS' last. If its driver is
/// killed before the manifest, no part is visible, and only 'abort' is possible. After it, use either command.
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
    /// All parts are read, and compared with their hashes in the manifest, before the first one is moved.
    Resume {
        /// The directory to which the job writes
        #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
        directory: PathBuf,
    },
    /// Remove an unfinished job with all of its parts, so that another job can begin
    ///
    /// A job that is running fails. A job that is complete is not removed.
    Abort {
        /// The directory to which the job writes
        #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
        directory: PathBuf,
    },
}

/// Runs the requested action.
pub(crate) fn run(options: &Options) -> Ending {
    let done = match &options.action {
        Action::Resume { directory } => resume(directory),
        Action::Abort { directory } => job::abort(directory).map(|was_found| match was_found {
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

fn resume(directory: &Path) -> Result<String> {
    let manifest = job::resume(directory)?;
    let records = manifest.records().map_or_else(String::new, |records| format!(", records: {records}"));
    Ok(format!("complete: parts: {}, bytes: {}{records}\n", manifest.parts().len(), manifest.size()))
}
