//! How long failed requests are repeated.

use std::time::{Duration, Instant};

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use millstream_core::error::Error;

/// Why a request did not deliver what it should.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Repeating the request would not help.
    Lasting(Error),
    /// Repeating the request may help.
    Passing {
        error: Error,
        /// The server's request to wait.
        retry_after: Option<Duration>,
        /// Whether the server may have received the request, and may still be working on it.
        may_have_arrived: bool,
    },
}

impl Failure {
    pub(crate) fn passing(error: Error) -> Failure {
        Failure::Passing { error, retry_after: None, may_have_arrived: true }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::Lasting(error)
    }
}

/// Waits between attempts, until there has been no progress for the limit.
pub(crate) struct Patience {
    limit: Duration,
    since: Option<Instant>,
    delays: ExponentialBackoff,
}

impl Patience {
    pub(crate) fn new(limit: Duration) -> Patience {
        Patience { limit, since: None, delays: delays(LONGEST) }
    }

    /// Starts anew, because bytes have arrived.
    pub(crate) fn progress(&mut self) {
        if self.since.take().is_some() {
            self.delays = delays(LONGEST);
        }
    }

    /// Shortens the next delays, because other requests to the same server succeed.
    pub(crate) fn shorten(&mut self) {
        self.delays = delays(Duration::from_secs(1));
    }

    /// Waits before the next attempt, or returns the error if there should be none.
    pub(crate) async fn wait(&mut self, failure: Failure) -> Result<(), Error> {
        let (error, retry_after) = match failure {
            Failure::Lasting(error) => return Err(error),
            Failure::Passing { error, retry_after, .. } => (error, retry_after),
        };
        let since = *self.since.get_or_insert_with(Instant::now);
        let delay = self.delays.next().unwrap_or(LONGEST).max(retry_after.unwrap_or_default());
        if since.elapsed() + delay > self.limit {
            return Err(error);
        }
        tokio::time::sleep(delay).await;
        Ok(())
    }
}

const LONGEST: Duration = Duration::from_secs(10);

fn delays(longest: Duration) -> ExponentialBackoff {
    ExponentialBuilder::default()
        .with_min_delay(Duration::from_millis(50))
        .with_max_delay(longest)
        .without_max_times()
        .with_jitter()
        .build()
}
