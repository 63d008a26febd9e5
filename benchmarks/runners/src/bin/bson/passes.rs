//! Timing: measures passes over the same input and prints the median.

use std::fmt;
use std::time::{Duration, Instant};

use anyhow::Result;
use clap::Args;

use crate::allocations;

/// The number of passes over the input.
#[derive(Args)]
pub struct Passes {
    /// Print only the answer, if the whole process is timed.
    #[arg(long, global = true)]
    once: bool,
}

/// The minimum number of timed passes.
const LEAST: usize = 3;
/// The maximum number of timed passes.
const MOST: usize = 15;
/// After the minimum number, passes are timed until their total reaches this time or their number the maximum.
const ENOUGH: Duration = Duration::from_millis(400);

impl Passes {
    /// Counts the allocations of one pass, then times further passes.
    ///
    /// # Errors
    /// Returns the errors of a pass.
    pub fn time(&self, mut pass: impl FnMut() -> Result<()>) -> Result<Figures> {
        self.time_prepared(|| Ok(()), |()| pass())
    }

    /// Like the function above, for passes that need an object that is created before the clock starts and dropped
    /// after it stops.
    ///
    /// # Errors
    /// Returns the errors of a pass or of its preparation.
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

/// Prints the measurements in the form that the measuring tool reads.
pub struct Figures(Option<(Duration, u64)>);

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some((time, allocations)) => write!(f, "ns={} allocations={allocations}", time.as_nanos()),
            None => Ok(()),
        }
    }
}
