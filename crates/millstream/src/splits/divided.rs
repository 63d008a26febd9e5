//! Files in splits, whose starts are exact or assumed.

use std::ops::Range;

use crate::error::Result;

use super::in_order::{Found, InOrder, Parts, Work};
use super::{AssumedSplits, Framing, Split, Splits};

/// A divided file: [`Splits`] or [`AssumedSplits`].
#[derive(Clone, Debug)]
pub enum Divided {
    /// A plan.
    Exact(Splits),
    /// Splits of CSV without a pass.
    Assumed(AssumedSplits),
}

impl From<Splits> for Divided {
    fn from(splits: Splits) -> Divided {
        Divided::Exact(splits)
    }
}

impl From<&Splits> for Divided {
    fn from(splits: &Splits) -> Divided {
        Divided::Exact(splits.clone())
    }
}

impl From<AssumedSplits> for Divided {
    fn from(splits: AssumedSplits) -> Divided {
        Divided::Assumed(splits)
    }
}

impl From<&AssumedSplits> for Divided {
    fn from(splits: &AssumedSplits) -> Divided {
        Divided::Assumed(splits.clone())
    }
}

impl Divided {
    /// Returns how the records are found.
    pub fn framing(&self) -> &Framing {
        match self {
            // A plan is never empty.
            Divided::Exact(splits) => splits.splits[0].framing(),
            Divided::Assumed(splits) => &splits.whole.framing,
        }
    }

    /// Works on the splits on `threads` threads. The results for assumed splits are always in order: they are confirmed by
    /// those before them.
    #[doc(hidden)]
    pub fn in_order<F, W>(self, threads: usize, is_unordered: bool, open: F) -> InOrder<Divided, F, W>
    where
        F: Fn(&Split) -> W + Clone + Send + 'static,
        W: Work,
    {
        let is_unordered = is_unordered && matches!(self, Divided::Exact(_));
        InOrder::start(self, threads, is_unordered, open)
    }
}

impl AssumedSplits {
    /// Returns a split whose first record begins at the start of the range.
    pub(super) fn split(&self, range: Range<u64>) -> Split {
        Split {
            whole: self.whole.clone(),
            begin: range.start,
            end: Some(range.end),
            is_exact: range.end >= self.chunks.size,
            record: None,
            line: None,
            rows: None,
            json: None,
            encoded: None,
            hash: None,
            boundary_hash: None,
        }
    }
}

impl Parts for Divided {
    type Part = Split;

    fn count(&self) -> usize {
        match self {
            Divided::Exact(splits) => splits.len(),
            Divided::Assumed(splits) => splits.chunks.count(),
        }
    }

    fn guess(&self, index: usize) -> Option<(Split, u64)> {
        match self {
            Divided::Exact(splits) => splits.splits.get(index).map(|split| (split.clone(), split.begin)),
            Divided::Assumed(splits) => splits.chunks.guess(index).map(|(range, begin)| (splits.split(range), begin)),
        }
    }

    fn check(&self, index: usize, guess: Option<u64>, begin: u64) -> Found<Split> {
        match self {
            Divided::Exact(_) if guess.is_some() => Found::Right,
            Divided::Exact(splits) => Found::Other(splits.splits[index].clone()),
            Divided::Assumed(splits) => match splits.chunks.check(index, guess, begin) {
                Found::Right => Found::Right,
                Found::Other(range) => Found::Other(splits.split(range)),
                Found::Contained(until) => Found::Contained(until),
            },
        }
    }

    fn finish(&self) -> Result<()> {
        match self {
            Divided::Exact(_) => Ok(()),
            Divided::Assumed(splits) => Ok(splits.whole.pin.check(&splits.chunks.content, &splits.chunks.wait)?),
        }
    }
}
