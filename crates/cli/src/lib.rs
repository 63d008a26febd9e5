//! The `millstream` command as a library, so that other languages can start it.
//!
//! [`main`] takes a command line and runs it in this process: it reads standard input, writes standard output and
//! standard error, and returns an [`Ending`]. Every failure is reported on standard error, as one line and often a
//! second one with advice; no incomplete output remains, and if a signal stops the command, the process ends by that
//! signal.
//!
//! While a transfer runs, SIGINT, SIGTERM and SIGHUP are handled, unless they are ignored; a handler of the host is
//! also called. Afterwards only the host's handler is called: a signal without a handler has no effect, so the process
//! should end soon. The `millstream` crate itself never changes signal handling.

mod arguments;
mod bench;
mod bson;
mod commit;
mod convert;
mod ending;
mod escape;
mod extended_json;
mod forgotten;
mod generate;
#[allow(unsafe_code)] // fork(2), and what the child closes
mod guard;
mod index;
mod message;
#[cfg(all(test, feature = "parquet"))]
#[path = "../../millstream/tests/shared/peak.rs"]
mod peak;
mod program;
mod run;
mod signals;
mod size;
mod split;
mod standard;
mod tables;
mod uploads;

pub use ending::Ending;
pub use standard::Closed;

use std::ffi::OsString;

use arguments::{Arguments, Subcommand};

/// Runs the command line `args`, whose first word is the name of the program.
///
/// ```
/// let ending = millstream_cli::main(["millstream", "run", "--capacity", "12Q"]);
/// assert_eq!(ending, millstream_cli::Ending::Exited(2)); // the command line is invalid
/// ```
///
/// A standard stream that is currently closed is not used. If a runtime has opened `/dev/null` in its place, call
/// [`main_with`].
pub fn main(args: impl IntoIterator<Item = impl Into<OsString>>) -> Ending {
    main_with(args, Closed::now())
}

/// Runs the command line `args` like [`main`], if these standard streams were closed when the process began. If the
/// command line needs one of them, it fails before any file is opened.
pub fn main_with(args: impl IntoIterator<Item = impl Into<OsString>>, closed: Closed) -> Ending {
    standard::set_closed(closed);
    signals::heed_children();
    message::advise_with(arguments::has_option, arguments::see_help);
    let ending = match arguments::parse(args.into_iter().map(Into::into).collect()) {
        Ok(Arguments { subcommand: Subcommand::Run(options) }) => run::run(options),
        Ok(Arguments { subcommand: Subcommand::Bson(options) }) => bson::run(options.0),
        Ok(Arguments { subcommand: Subcommand::Convert(options) }) => convert::run(options.0),
        Ok(Arguments { subcommand: Subcommand::Index(options) }) => index::run(&options.0),
        Ok(Arguments { subcommand: Subcommand::Split(options) }) => split::run(&options.0),
        Ok(Arguments { subcommand: Subcommand::Commit(options) }) => commit::run(&options.0),
        Ok(Arguments { subcommand: Subcommand::Uploads(options) }) => uploads::run(&options.0),
        Ok(Arguments { subcommand: Subcommand::Bench(options) }) => bench::run(&options.0),
        Ok(Arguments { subcommand: Subcommand::Completions { shell } }) => generate::completions(shell),
        Ok(Arguments { subcommand: Subcommand::Man { page } }) => generate::man(page),
        Err(ending) => ending,
    };
    guard::end();
    ending
}
