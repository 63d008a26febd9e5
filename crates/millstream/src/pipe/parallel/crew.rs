//! The threads, and the channels to and from them.
//!
//! Both channels are those of crossbeam, and nothing else is shared. So that nobody ever waits to put something in, they have
//! room for as many lots as are allowed to be under way.

use std::thread::JoinHandle;
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};

use super::super::chain::Chain;
use super::lot::{Lot, SendItem};
use super::worker::Worker;

/// Threads that run copies of the same stages. Dropped, it waits for them.
pub(super) struct Crew<I: SendItem, O: SendItem> {
    /// Absent when they are told to end.
    jobs: Option<Sender<(u64, Lot<I, O>)>>,
    /// The threads' end, to take back what none of them has begun.
    unbegun: Receiver<(u64, Lot<I, O>)>,
    done: Receiver<(u64, Lot<I, O>)>,
    threads: Vec<JoinHandle<()>>,
}

impl<I: SendItem, O: SendItem> Crew<I, O> {
    /// Starts up to `count` threads for at most `room` lots. Fewer will do, if the system has no more: even none.
    pub(super) fn start<P>(stages: &P, count: usize, room: usize) -> Crew<I, O>
    where
        P: Chain<I, Out = O> + Clone + Send + 'static,
    {
        let (jobs, unbegun) = bounded(room);
        let (finished, done) = bounded(room);
        let mut crew = Crew { jobs: Some(jobs), unbegun, done, threads: Vec::with_capacity(count) };
        for _ in 0..count {
            let (mut worker, jobs, finished) = (Worker::new(stages.clone()), crew.unbegun.clone(), finished.clone());
            let work = move || {
                for (turn, mut lot) in jobs {
                    worker.pass(&mut lot);
                    if finished.send((turn, lot)).is_err() {
                        break;
                    }
                }
            };
            match std::thread::Builder::new().name("millstream-stages".into()).spawn(work) {
                Ok(thread) => crew.threads.push(thread),
                Err(_) => break,
            }
        }
        crew
    }

    /// Gives out a lot. There must be room for it.
    pub(super) fn send(&self, turn: u64, lot: Lot<I, O>) {
        let jobs = self.jobs.as_ref().expect("only dropping takes it");
        jobs.try_send((turn, lot)).expect("there is room for what may be under way");
    }

    /// A lot that is done, if there is one now.
    pub(super) fn done(&self) -> Option<(u64, Lot<I, O>)> {
        self.done.try_recv().ok()
    }

    /// A lot that is done, if there is one by then. There must be threads.
    pub(super) fn wait(&self, patience: Duration) -> Option<(u64, Lot<I, O>)> {
        match self.done.recv_timeout(patience) {
            Ok(done) => Some(done),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => panic!("a thread ends only when it is told to"),
        }
    }

    /// Takes back a lot that no thread is free for. So many have gone out and have not been received.
    pub(super) fn take_back(&self, under_way: usize) -> Option<(u64, Lot<I, O>)> {
        let unfinished = under_way.saturating_sub(self.done.len());
        if unfinished > self.threads.len() { self.unbegun.try_recv().ok() } else { None }
    }
}

impl<I: SendItem, O: SendItem> Drop for Crew<I, O> {
    fn drop(&mut self) {
        self.jobs = None;
        while self.unbegun.try_recv().is_ok() {}
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}
