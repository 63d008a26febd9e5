//! The first request for an object.

use std::sync::{Arc, mpsc};

use http::StatusCode;
use millstream_core::error::{Error, Result};
use reqwest::Response;

use crate::address::shown;
use crate::answer::{Facts, is_empty_range, wrong};
use crate::checksum::Checksum;
use crate::client::{Target, Task, receive};
use crate::object::Object;
use crate::patience::Patience;
use crate::range::{Arrivals, Part, Place, Range};
use crate::remote::Remote;

/// An object that is being opened: its first request is made while the program does something else.
///
/// Programs that read many small objects can open the next ones in advance, and need not wait for each answer.
pub struct Opening {
    name: String,
    target: Arc<Target>,
    first: mpsc::Receiver<Result<First>>,
    task: Task,
}

/// What is known when the first answer has arrived, whose body is being received.
struct First {
    facts: Facts,
    checksum: Option<Checksum>,
    /// Where the body ends, or is cut off.
    end: Option<u64>,
    arrivals: Arc<Arrivals>,
}

impl Opening {
    /// Starts to open an object.
    ///
    /// # Errors
    /// Fails if the URL or an option is invalid.
    pub fn start(remote: Remote) -> Result<Opening> {
        let name = shown(&remote.url);
        let named = |error: Error| error.with_name(&name);
        let target = Arc::new(Target::new(remote).map_err(named)?);
        let (sender, first) = mpsc::sync_channel(1);
        let task = Task::start(receive_first(target.clone(), sender)).map_err(named)?;
        Ok(Opening { name, target, first, task })
    }

    /// Waits for the first answer. `check` is called every 20 ms; an error of it ends the wait.
    ///
    /// # Errors
    /// Fails if the server cannot be reached or refuses, if its answer does not say where the object ends, or with the
    /// error of `check`.
    pub fn wait(self, mut check: impl FnMut() -> Result<()>) -> Result<Object> {
        let Opening { name, target, first, task } = self;
        let First { facts, checksum, end, arrivals } =
            receive(&first, &mut check)?.map_err(|error| error.with_name(&name))?;
        Object::opened(name, target, facts, checksum, (Part::first(arrivals, end, task), end))
    }
}

/// Requests all of an object, sends what the answer says, and receives its body.
async fn receive_first(target: Arc<Target>, sender: mpsc::SyncSender<Result<First>>) {
    // Sending fails if the opening was dropped.
    match begin(target).await {
        Ok((first, range, response)) => {
            let _ = sender.send(Ok(first));
            range.receive(Some(response)).await;
        }
        Err(error) => drop(sender.send(Err(error))),
    }
}

async fn begin(target: Arc<Target>) -> Result<(First, Range, Response)> {
    let response = first_answer(&target, None).await?;
    let Remote { allow_unknown_length, md5_etag, range_size, first_range, .. } = target.options;
    let facts = Facts::new(response.status(), response.version(), response.headers(), allow_unknown_length)?;
    let checksum = Checksum::announced(response.headers(), md5_etag);
    // If the rest can be requested, this answer is cut short where the second range begins.
    let end = match facts.validator {
        Some(_) => facts.body.map(|body| body.min(range_size).min(first_range.max(1))),
        None => facts.body,
    };
    let version = facts.validator.clone().zip(facts.total);
    let (range, arrivals) = Range::new(Place { target, version, begin: 0, end });
    Ok((First { facts, checksum, end, arrivals }, range, response))
}

/// Requests all of the object, or its bytes before `end`, until there is an answer.
pub(crate) async fn first_answer(target: &Target, end: Option<u64>) -> Result<Response> {
    let mut patience = Patience::new(target.options.retry_for);
    let mut range = Some((0, end));
    loop {
        match target.get(range, None, true).await {
            // An empty object has no range. Servers differ in what they say about it: ask again without a range.
            Ok(response)
                if response.status() == StatusCode::RANGE_NOT_SATISFIABLE
                    || response.status() == StatusCode::PARTIAL_CONTENT && is_empty_range(response.headers()) =>
            {
                if range.take().is_none() {
                    return Err(wrong("the answer 416 to a request without a range").with_expected("the object"));
                }
            }
            Ok(response) => return Ok(response),
            Err(failure) => patience.wait(failure).await?,
        }
    }
}
