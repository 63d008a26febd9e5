//! Runs the same task on many pieces, on a few threads, and returns the results in order.
//!
//! A thread is started when all others are busy. If the operating system cannot start more threads, the existing ones
//! process all pieces; without any, the caller does. Only the pieces in progress are held, and their number is bounded.

use std::collections::VecDeque;
use std::num::NonZero;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread::JoinHandle;

use crate::error::{Error, ErrorKind, Result};

/// The maximum number of threads: more threads make no stream faster.
#[cfg(feature = "compression")]
const MOST: usize = 8;

/// The number of pieces that a thread may have: one in progress, one waiting, and one finished.
const DEPTH: usize = 3;

/// Returns the number of threads that work at the same time: the number of processors, or 0 if there is only one, so that
/// the caller processes the pieces.
pub fn processors() -> usize {
    match std::thread::available_parallelism().map_or(1, NonZero::get) {
        1 => 0,
        count => count,
    }
}

/// The task that one thread runs on a piece.
pub type Work<P> = Box<dyn FnMut(&mut P) + Send>;

/// Threads that process pieces.
pub struct Workers<P> {
    new_work: Box<dyn Fn() -> Work<P> + Send>,
    /// The maximum number of threads.
    most: usize,
    threads: Vec<Worker<P>>,
    /// The task of the caller's thread, for pieces that no other thread processes.
    own: Option<Work<P>>,
    /// The places of the pieces in progress, in the order in which the pieces were passed.
    order: VecDeque<Place<P>>,
}

enum Place<P> {
    Thread(usize),
    Done(P),
}

struct Worker<P> {
    /// `None` only while the thread is being stopped.
    to: Option<Sender<P>>,
    from: Receiver<P>,
    under_way: usize,
    thread: Option<JoinHandle<()>>,
}

impl<P: Send + 'static> Workers<P> {
    /// Creates workers with as many threads as there are processors, or none if there is only one processor.
    #[cfg(feature = "compression")]
    pub fn new(new_work: impl Fn() -> Work<P> + Send + 'static) -> Workers<P> {
        Workers::with_at_most(processors().min(MOST), new_work)
    }

    /// Creates workers with at most this many threads; with 0 the caller processes the pieces.
    pub fn with_at_most(most: usize, new_work: impl Fn() -> Work<P> + Send + 'static) -> Workers<P> {
        Workers { new_work: Box::new(new_work), most, threads: Vec::new(), own: None, order: VecDeque::new() }
    }

    /// Returns whether another piece may be passed. Otherwise one has to be taken first.
    pub fn has_capacity(&self) -> bool {
        self.order.len() < (self.most * DEPTH).max(1)
    }

    /// Passes a piece to a thread.
    pub fn give(&mut self, mut piece: P) {
        let idle = |worker: &Worker<P>| worker.under_way == 0;
        if !self.threads.iter().any(idle) && self.threads.len() < self.most {
            match Worker::start((self.new_work)()) {
                Ok(worker) => self.threads.push(worker),
                // No more threads can be started, so later calls do not try again.
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
        self.own.get_or_insert_with(&self.new_work)(&mut piece);
        self.order.push_back(Place::Done(piece));
    }

    /// Waits for the oldest of the pieces in progress and returns it, or `None` if there is none.
    ///
    /// # Errors
    /// Returns [`ErrorKind::Internal`] if the task panicked.
    pub fn take(&mut self) -> Result<Option<P>> {
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

    /// Returns the oldest piece like [`take`](Workers::take), if it is already finished.
    pub fn take_done(&mut self) -> Result<Option<P>> {
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
    Error::new(ErrorKind::Internal).with_found("a panic in a thread of millstream")
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
        // The thread ends after its remaining pieces, which are few.
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
        let mut workers = Workers::with_at_most(1, || Box::new(|_: &mut u64| panic!("requested by the test")));
        workers.give(1);
        assert_eq!(workers.take().unwrap_err().kind(), ErrorKind::Internal);
    }
}
