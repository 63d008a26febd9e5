//! A pipe as a `Stream`: it runs on a separate thread, so that a poll never blocks.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::vec;

use async_channel::{Receiver, Sender};
use futures_util::stream::{FusedStream, Stream};

use super::chain::Chain;
use super::item::{Bytes, Value};
use super::scope::Flow;
use super::{Attached, Pipe, State};
use crate::error::{Error, Result};

/// The maximum number of batches of items that are buffered.
const BUFFERED: usize = 2;

impl<C, T> Pipe<Attached<'static>, Bytes, C, Value<T>>
where
    C: Chain<Bytes, Out = Value<T>> + Send + 'static,
    T: Send + 'static,
{
    /// Converts the pipe into a [`Stream`] of its values. An error is returned at its position and ends the stream.
    ///
    /// The pipe runs on a separate thread, with its source, including callbacks, and all its stages. It is at most a
    /// few batches ahead of the consumer. When the stream is dropped, the pipe stops at the next batch. If the source
    /// may deliver no data for a long time, a [cancel token](crate::ReaderBuilder::cancel) of the reader can interrupt
    /// the wait.
    ///
    /// ```
    /// use futures_executor::block_on;
    /// use futures_util::TryStreamExt;
    /// use millstream::{Reader, pipe::Pipe};
    /// let lengths = Pipe::from(Reader::memory("one\nthree\n")?).lines().map(|line| line.len()).into_stream()?;
    /// assert_eq!(block_on(lengths.try_collect::<Vec<_>>())?, [3, 5]);
    /// # Ok::<(), millstream::Error>(())
    /// ```
    ///
    /// # Errors
    /// Fails if the operating system cannot start a thread.
    pub fn into_stream(self) -> Result<ItemStream<T>> {
        let (sender, batches) = async_channel::bounded(BUFFERED);
        std::thread::Builder::new().name("millstream-stream".into()).spawn(move || run(self, &sender))?;
        Ok(ItemStream { batches: Box::pin(batches), batch: Vec::new().into_iter() })
    }
}

/// The thread's main loop: sends the results of each batch until the receiver is dropped.
fn run<C, T>(mut pipe: Pipe<Attached<'static>, Bytes, C, Value<T>>, batches: &Sender<Result<Vec<T>, Error>>)
where
    C: Chain<Bytes, Out = Value<T>>,
{
    while matches!(pipe.feed.state, State::Open) && !batches.is_closed() {
        let mut batch = Vec::new();
        let result = pipe.step(&mut |_, value| {
            batch.push(value);
            Flow::Continue(())
        });
        if !batch.is_empty() && batches.send_blocking(Ok(batch)).is_err() {
            return;
        }
        if let Err(error) = result {
            // If the receiver is dropped, the result was not requested.
            let _ = batches.send_blocking(Err(error));
            return;
        }
    }
}

/// The items of a pipe, as a [`Stream`]. It is created by [`Pipe::into_stream`].
#[must_use = "a stream does nothing unless it is polled"]
pub struct ItemStream<T> {
    batches: Pin<Box<Receiver<Result<Vec<T>>>>>,
    batch: vec::IntoIter<T>,
}

impl<T> Unpin for ItemStream<T> {}

impl<T> Stream for ItemStream<T> {
    type Item = Result<T>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<T>>> {
        loop {
            if let Some(value) = self.batch.next() {
                return Poll::Ready(Some(Ok(value)));
            }
            match ready!(self.batches.as_mut().poll_next(context)) {
                Some(Ok(batch)) => self.batch = batch.into_iter(),
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => return Poll::Ready(None),
            }
        }
    }
}

impl<T> FusedStream for ItemStream<T> {
    fn is_terminated(&self) -> bool {
        self.batch.len() == 0 && self.batches.is_terminated()
    }
}

impl<T> std::fmt::Debug for ItemStream<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ItemStream").finish_non_exhaustive()
    }
}
