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
        tokio::time::sleep(self.delay(failure)?).await;
        Ok(())
    }

    /// Returns how long to wait before the next attempt, or the error if there should be none.
    fn delay(&mut self, failure: Failure) -> Result<Duration, Error> {
        let (error, retry_after) = match failure {
            Failure::Lasting(error) => return Err(error),
            Failure::Passing { error, retry_after, .. } => (error, retry_after),
        };
        let since = *self.since.get_or_insert_with(Instant::now);
        let delay = self.delays.next().unwrap_or(LONGEST).max(retry_after.unwrap_or_default());
        if since.elapsed() + delay > self.limit { Err(error) } else { Ok(delay) }
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

#[cfg(test)]
mod tests {
    use millstream_core::error::ErrorKind;

    use super::*;

    #[test]
    fn a_server_decides_how_long_to_wait_at_least() {
        let failure = |seconds| Failure::Passing {
            error: Error::new(ErrorKind::RemoteFailed),
            retry_after: Some(Duration::from_secs(seconds)),
            may_have_arrived: true,
        };
        let mut patience = Patience::new(Duration::from_secs(60));
        assert_eq!(patience.delay(failure(20)).unwrap(), Duration::from_secs(20));
        assert!(!patience.delay(failure(0)).unwrap().is_zero());
        assert!(patience.delay(failure(61)).is_err());
    }
}
