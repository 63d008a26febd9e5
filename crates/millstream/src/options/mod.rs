//! The options of readers, writers, commands and remote objects by name, for programs that get them from elsewhere: a configuration file, a
//! command line, another language.
//!
//! ```
//! use millstream::Reader;
//! use millstream::options::{READER, Set};
//!
//! let limit = READER.iter().find(|option| option.name == "record_limit").unwrap();
//! let Set::Number(set) = limit.set else { panic!("it is a number") };
//! let mut reader = set(Reader::builder(), 2).memory("one\n")?;
//! assert!(reader.next_line().is_err());
//! # Ok::<(), millstream::Error>(())
//! ```
//!
//! The tables are generated from the builders. Options that take a function or a [`CancelToken`](crate::CancelToken) are
//! not in them.

mod table;

use std::time::Duration;

pub use table::{COMMAND, READER, REMOTE, WRITER};

/// An option of a builder of this type.
#[derive(Debug)]
pub struct Setting<B: 'static> {
    /// Its name, which is the name of the builder's method.
    pub name: &'static str,
    /// What it is for.
    pub about: &'static str,
    /// The type of its value, and the function that sets it.
    pub set: Set<B>,
}

/// The type of an option's value, and the function that sets it.
#[derive(Debug)]
pub enum Set<B: 'static> {
    /// A number.
    Number(fn(B, u64) -> B),
    /// Two numbers.
    Numbers(fn(B, u64, u64) -> B),
    /// Any number of numbers.
    List(fn(B, &[i32]) -> B),
    /// Whether something is done.
    Flag(fn(B, bool) -> B),
    /// A time.
    Time(fn(B, Duration) -> B),
    /// One of these words.
    Word(&'static [Word<B>]),
    /// Text.
    Text(fn(B, String) -> B),
}

/// A value of an option.
#[derive(Debug)]
pub struct Word<B> {
    /// Its name in snake case.
    pub word: &'static str,
    /// What it means.
    pub about: &'static str,
    /// Whether it is the default.
    pub is_default: bool,
    /// Sets it.
    pub set: fn(B) -> B,
}
