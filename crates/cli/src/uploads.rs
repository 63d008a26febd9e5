//! `millstream uploads`: unfinished uploads of an object store, such as those of programs that were killed.

use std::time::Duration;
use std::time::SystemTime;

use clap::{Args, Subcommand};
use millstream::Result;
use millstream::remote::{Outcome, UnfinishedUpload, Uploads, outcome};

use crate::run::Network;
use crate::{Ending, message};

/// List and remove unfinished uploads of an object store, and find out whether an object was written
///
/// An object appears when its upload is completed. If a program is killed before that, the parts that it has sent remain
/// in the store. They are not visible as an object, but a store may charge for them.
#[derive(Args)]
pub(crate) struct Options {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Print unfinished uploads, one on a line: when it was begun, its id, and its object
    Ls {
        #[command(flatten)]
        place: Place,

        /// Print only uploads that were begun at least this long ago, such as 2h or 7d
        #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
        older_than: Option<Duration>,
    },
    /// Remove unfinished uploads, and print them like 'ls'
    ///
    /// An upload that another program is still writing fails there, so choose a DURATION that no upload needs.
    Abort {
        #[command(flatten)]
        place: Place,

        /// Remove only uploads that were begun at least this long ago, such as 2h or 7d
        #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
        older_than: Duration,
    },
    /// Print whether a write whose outcome is unknown has written its object: 'written', 'not written' or 'unknown'
    ///
    /// The error message of that write has the arguments. The exit status is 0, 1 or 3.
    Outcome {
        /// The object
        #[arg(value_name = "URL")]
        url: String,

        /// The identity of the write
        #[arg(long, value_name = "ID")]
        id: String,

        /// The store's id of the upload, if the object has several parts
        #[arg(long, value_name = "ID")]
        upload: Option<String>,

        #[command(flatten)]
        network: Box<Network>,
    },
}

#[derive(Args)]
struct Place {
    /// The bucket, or the beginning of the names of objects: s3://BUCKET/PREFIX or gs://BUCKET/PREFIX
    #[arg(value_name = "URL")]
    url: String,

    #[command(flatten)]
    network: Box<Network>,
}

/// Runs the requested action.
pub(crate) fn run(options: &Options) -> Ending {
    let done = match &options.action {
        Action::Ls { place, older_than } => list(place, older_than.unwrap_or_default(), |_, _| Ok(())),
        Action::Abort { place, older_than } => list(place, *older_than, Uploads::abort),
        Action::Outcome { url, id, upload, network } => {
            let found = outcome(network.remote(url), id, upload.as_deref());
            found.map(|found| match found {
                Outcome::Written => print("written\n", Ending::COMPLETE),
                Outcome::NotWritten => print("not written\n", Ending::FAILED),
                Outcome::Unknown => print("unknown\n", Ending::UNKNOWN),
            })
        }
    };
    done.unwrap_or_else(|error| message::fail(&error))
}

/// Prints text. If it is printed, the process ends as given.
fn print(text: &str, ending: Ending) -> Ending {
    match message::print(text.as_bytes()) {
        Ending::COMPLETE => ending,
        failed => failed,
    }
}

/// Prints the unfinished uploads of at least this age, after `act`.
fn list(place: &Place, age: Duration, act: impl Fn(&Uploads, &UnfinishedUpload) -> Result<()>) -> Result<Ending> {
    let mut uploads = Uploads::new(place.network.remote(&place.url))?;
    let latest = SystemTime::now().checked_sub(age);
    while let Some(upload) = uploads.next().transpose()? {
        // The store's clock may be ahead of this one.
        let is_old = age.is_zero() || upload.begun.zip(latest).is_some_and(|(begun, latest)| begun <= latest);
        if !is_old {
            continue;
        }
        act(&uploads, &upload)?;
        let begun =
            upload.begun.map_or_else(|| "-".to_string(), |time| humantime::format_rfc3339_seconds(time).to_string());
        let line = message::printable(&format!("{begun}  {}  {}", upload.id, upload.url));
        let printed = message::print(format!("{line}\n").as_bytes());
        if printed != Ending::COMPLETE {
            return Ok(printed);
        }
    }
    Ok(Ending::COMPLETE)
}
