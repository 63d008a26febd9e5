//! The same work on many pieces, by a few threads, whose results are returned in order.
//!
//! A thread is started when all others have work. If the system has no more threads, the existing ones do the work, and
//! without any the caller does. Only the pieces in progress are held, and their number is bounded.

use std::collections::VecDeque;
use std::num::NonZero;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread::JoinHandle;

use crate::error::{Error, ErrorKind, Result};

/// More threads than this make no stream faster.
const MOST: usize = 8;

/// How many pieces a thread may have: one to work on, one that waits, and one that is done.
const DEPTH: usize = 3;

/// What one thread does to a piece.
pub(crate) type Work<P> = Box<dyn FnMut(&mut P) + Send>;

/// Threads that work on pieces.
pub(crate) struct Workers<P> {
    new_work: fn() -> Work<P>,
    /// No more threads than this.
    most: usize,
    threads: Vec<Worker<P>>,
    /// For work that no thread does.
    own: Option<Work<P>>,
    /// Where the pieces in progress are, in the order in which they were given.
    order: VecDeque<Place<P>>,
}

enum Place<P> {
    Thread(usize),
    Done(P),
}

struct Worker<P> {
    /// `None` only while the thread is being ended.
    to: Option<Sender<P>>,
    from: Receiver<P>,
    under_way: usize,
    thread: Option<JoinHandle<()>>,
}

impl<P: Send + 'static> Workers<P> {
    /// As many threads as there are processors, or none if there is only one.
    pub(crate) fn new(new_work: fn() -> Work<P>) -> Workers<P> {
        match std::thread::available_parallelism().map_or(1, NonZero::get) {
            1 => Workers::with_at_most(0, new_work),
            count => Workers::with_at_most(count.min(MOST), new_work),
        }
    }

    /// At most this many threads; with 0 the caller does the work.
    pub(crate) fn with_at_most(most: usize, new_work: fn() -> Work<P>) -> Workers<P> {
        Workers { new_work, most, threads: Vec::new(), own: None, order: VecDeque::new() }
    }

    /// Whether another piece may be given; else one has to be taken first.
    pub(crate) fn has_capacity(&self) -> bool {
        self.order.len() < (self.most * DEPTH).max(1)
    }

    /// Has a piece worked on.
    pub(crate) fn give(&mut self, mut piece: P) {
        let idle = |worker: &Worker<P>| worker.under_way == 0;
        if !self.threads.iter().any(idle) && self.threads.len() < self.most {
            match Worker::start((self.new_work)()) {
                Ok(worker) => self.threads.push(worker),
                // None are left: there is no point in trying again and again.
                Err(_) => self.most = self.threads.len(),
            }
        }
        if let Some((i, worker)) = self.threads.iter_mut().enumerate().min_by_key(|(_, worker)| worker.under_way)
            && let Some(to) = &worker.to
        {
            match to.send(piece) {
                Ok(()) => {
                    worker.under_way += 1;
                    return self.order.push_back(Place::Thread(i));
                }
                Err(error) => piece = error.0,
            }
        }
        self.own.get_or_insert_with(self.new_work)(&mut piece);
        self.order.push_back(Place::Done(piece));
    }

    /// The oldest of the pieces in progress, when it is done; `None` if there is none.
    ///
    /// # Errors
    /// [`ErrorKind::Internal`] if the work panicked.
    pub(crate) fn take(&mut self) -> Result<Option<P>> {
        match self.order.pop_front() {
            None => Ok(None),
            Some(Place::Done(piece)) => Ok(Some(piece)),
            Some(Place::Thread(i)) => {
                let worker = &mut self.threads[i];
                worker.under_way -= 1;
                worker.from.recv().map(Some).map_err(|_| panicked())
            }
        }
    }

    /// The same, if it is already done.
    pub(crate) fn take_done(&mut self) -> Result<Option<P>> {
        if let Some(Place::Thread(i)) = self.order.front() {
            let worker = &mut self.threads[*i];
            return match worker.from.try_recv() {
                Ok(piece) => {
                    worker.under_way -= 1;
                    self.order.pop_front();
                    Ok(Some(piece))
                }
                Err(TryRecvError::Empty) => Ok(None),
                Err(TryRecvError::Disconnected) => Err(panicked()),
            };
        }
        self.take()
    }
}

fn panicked() -> Error {
    Error::new(ErrorKind::Internal).with_found("a thread that compresses or decodes and has panicked")
}

impl<P: Send + 'static> Worker<P> {
    fn start(mut work: Work<P>) -> std::io::Result<Worker<P>> {
        let (to, pieces) = channel::<P>();
        let (results, from) = channel();
        let work = move || {
            for mut piece in pieces {
                work(&mut piece);
                if results.send(piece).is_err() {
                    break;
                }
            }
        };
        let thread = std::thread::Builder::new().name("millstream-blocks".into()).spawn(work)?;
        Ok(Worker { to: Some(to), from, under_way: 0, thread: Some(thread) })
    }
}

impl<P> Drop for Worker<P> {
    fn drop(&mut self) {
        self.to = None;
        // The thread ends when it has done what it has, which is little.
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn squares() -> Work<u64> {
        Box::new(|piece| *piece *= *piece)
    }

    #[test]
    fn pieces_come_back_in_order() {
        for most in [0, 1, 3] {
            let mut workers = Workers::with_at_most(most, squares);
            let mut squares = Vec::new();
            for i in 0..1000 {
                while !workers.has_capacity() {
                    squares.extend(workers.take().unwrap());
                }
                workers.give(i);
                squares.extend(workers.take_done().unwrap());
            }
            while let Some(square) = workers.take().unwrap() {
                squares.push(square);
            }
            assert!(squares.iter().copied().eq((0..1000).map(|i| i * i)), "{most} threads");
            assert!(workers.threads.len() <= most);
        }
    }

    #[test]
    fn a_panic_is_an_error() {
        let mut workers = Workers::with_at_most(1, || Box::new(|_: &mut u64| panic!("on purpose")));
        workers.give(1);
        assert_eq!(workers.take().unwrap_err().kind(), ErrorKind::Internal);
    }
}
