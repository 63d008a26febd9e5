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

/// At most this many batches of items are buffered.
const ROOM: usize = 2;

impl<C, T> Pipe<Attached<'static>, Bytes, C, Value<T>>
where
    C: Chain<Bytes, Out = Value<T>> + Send + 'static,
    T: Send + 'static,
{
    /// The results, as a [`Stream`] of values. Errors are returned at their position, and end it.
    ///
    /// The pipe runs on a separate thread, with its source, including callbacks, and all its stages. It is at most a
    /// few batches ahead of the consumer. When the stream is dropped it stops at the next batch; if the source may be
    /// silent for a long time, a [cancel token](crate::ReaderBuilder::cancel) of the reader ends that.
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
    /// The system has no thread left.
    pub fn into_stream(self) -> Result<ItemStream<T>> {
        let (sender, batches) = async_channel::bounded(ROOM);
        std::thread::Builder::new().name("millstream-stream".into()).spawn(move || run(self, &sender))?;
        Ok(ItemStream { batches: Box::pin(batches), batch: Vec::new().into_iter() })
    }
}

/// The work of the thread: sends the results of each batch, until the receiver is gone.
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
            // Without a receiver there was no request.
            let _ = batches.send_blocking(Err(error));
            return;
        }
    }
}

/// The items of a pipe, as a [`Stream`]. Made by [`Pipe::into_stream`].
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
