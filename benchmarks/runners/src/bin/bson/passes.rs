//! The clock: one pass after the other over the same input, each timed, of which the median is told.

use std::fmt;
use std::time::{Duration, Instant};

use anyhow::Result;
use clap::Args;

use crate::allocations;

/// How often to go over the input.
#[derive(Args)]
pub struct Passes {
    /// Only give the answer, for a clock around the whole process.
    #[arg(long, global = true)]
    once: bool,
}

/// At least so many passes are timed.
const LEAST: usize = 3;
/// At most so many.
const MOST: usize = 15;
/// Between the two: until they have taken so long together.
const ENOUGH: Duration = Duration::from_millis(400);

impl Passes {
    /// Counts the allocations of one pass, then times some.
    ///
    /// # Errors
    /// Those of a pass.
    pub fn time(&self, mut pass: impl FnMut() -> Result<()>) -> Result<Figures> {
        self.time_prepared(|| Ok(()), |()| pass())
    }

    /// The same where each pass needs something that is made before its clock starts and dropped behind its end.
    ///
    /// # Errors
    /// Those of a pass, and of its preparation.
    pub fn time_prepared<T, R>(
        &self,
        mut prepare: impl FnMut() -> Result<T>,
        mut pass: impl FnMut(T) -> Result<R>,
    ) -> Result<Figures> {
        if self.once {
            return Ok(Figures(None));
        }
        let prepared = prepare()?;
        let (result, allocations) = allocations::count(|| pass(prepared));
        drop(result?);
        let mut times = Vec::new();
        while times.len() < LEAST || (times.len() < MOST && times.iter().sum::<Duration>() < ENOUGH) {
            let prepared = prepare()?;
            let start = Instant::now();
            let result = pass(prepared);
            times.push(start.elapsed());
            drop(result?);
        }
        times.sort_unstable();
        Ok(Figures(Some((times[times.len() / 2], allocations))))
    }
}

/// What was measured, in the words that the measuring tool reads.
pub struct Figures(Option<(Duration, u64)>);

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some((time, allocations)) => write!(f, "ns={} allocations={allocations}", time.as_nanos()),
            None => Ok(()),
        }
    }
}
