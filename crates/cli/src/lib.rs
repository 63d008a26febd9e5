//! The `millstream` command as a library, so that other languages can start it.
//!
//! [`main`] takes a command line and does what it says, in this process: it reads standard input, writes standard
//! output and standard error, and answers with an [`Ending`]. It keeps three promises of a well-behaved command:
//! every failure is one line on standard error, nothing half-made is left behind, and it ends the way it was
//! ended: by the signal, if it was a signal.
//!
//! While a transfer runs, SIGINT, SIGTERM and SIGHUP are watched, unless they are ignored; a handler of the host is
//! called, too. Afterwards only that one acts: a signal that had no handler does nothing, so the process should end
//! soon. The `millstream` crate itself never touches a signal.

mod arguments;
mod bench;
mod bson;
mod ending;
mod escape;
mod forgotten;
mod generate;
mod hash;
mod message;
mod program;
mod run;
mod signals;
mod size;

pub use ending::Ending;

use std::ffi::OsString;

use arguments::{Arguments, Subcommand};

/// Does what the command line `args` says; the first of them is the name of the program.
///
/// ```
/// let ending = millstream_cli::main(["millstream", "run", "--buffer", "12Q"]);
/// assert_eq!(ending, millstream_cli::Ending::Exited(2)); // a command line that cannot be understood
/// ```
pub fn main(args: impl IntoIterator<Item = impl Into<OsString>>) -> Ending {
    match arguments::parse(args.into_iter().map(Into::into).collect()) {
        Ok(Arguments { subcommand: Subcommand::Run(options) }) => run::run(&options),
        Ok(Arguments { subcommand: Subcommand::Bson(options) }) => bson::run(&options),
        Ok(Arguments { subcommand: Subcommand::Bench(options) }) => bench::run(&options),
        Ok(Arguments { subcommand: Subcommand::Completions { shell } }) => generate::completions(shell),
        Ok(Arguments { subcommand: Subcommand::Man { page } }) => generate::man(page),
        Err(ending) => ending,
    }
}
