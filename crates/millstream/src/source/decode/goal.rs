//! The check that decoding passes a place that a plan expects: so that a table of places which is wrong, or belongs to
//! another file, is an error and never the cause of wrong records.

use std::io;

use super::damaged;

/// A place between two blocks or frames, relative to where decoding begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Goal {
    /// The number of compressed bytes before it.
    pub(crate) at: u64,
    /// The number of decoded bytes before it.
    pub(crate) decoded: u64,
}

/// How far decoding has come.
#[derive(Default)]
pub(super) struct Passage {
    /// `None` when it has been passed.
    goal: Option<Goal>,
    at: u64,
    decoded: u64,
}

impl Passage {
    #[cfg(feature = "splits")]
    pub(super) fn new(goal: Option<Goal>) -> Passage {
        Passage { goal, at: 0, decoded: 0 }
    }

    /// A block or frame begins here.
    pub(super) fn begin(&mut self) {
        if self.goal == Some(Goal { at: self.at, decoded: self.decoded }) {
            self.goal = None;
        }
    }

    /// Counts bytes. Fails if they are after the goal, which was not passed.
    pub(super) fn advance(&mut self, at: usize, decoded: usize) -> io::Result<()> {
        self.at += at as u64;
        self.decoded += decoded as u64;
        match self.goal {
            Some(goal) if self.decoded > goal.decoded => Err(missed()),
            _ => Ok(()),
        }
    }

    /// The data ends here.
    pub(super) fn end(&mut self) -> io::Result<()> {
        self.begin();
        if self.goal.is_some() { Err(missed()) } else { Ok(()) }
    }
}

fn missed() -> io::Error {
    damaged(
        "other blocks or frames than the table of places says, from which the file was divided (its .gzi file, or the \
         seek table at its end)",
    )
}
