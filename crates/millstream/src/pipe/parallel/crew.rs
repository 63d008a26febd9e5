//! The threads, and the queues to and from them. Nothing else is shared.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use super::super::chain::Chain;
use super::lot::{Lot, SendItem};
use super::queue::Queue;
use super::worker::Worker;

/// Threads that run copies of the same stages. Dropped, it waits for them.
pub(super) struct Crew<I: SendItem, O: SendItem> {
    /// What no thread has begun.
    jobs: Arc<Queue<(u64, Lot<I, O>)>>,
    done: Arc<Queue<(u64, Lot<I, O>)>>,
    threads: Vec<JoinHandle<()>>,
}

impl<I: SendItem, O: SendItem> Crew<I, O> {
    /// Starts up to `count` threads for at most `room` lots. Fewer are accepted if the system has no more: even none.
    pub(super) fn start<P>(stages: &P, count: usize, room: usize) -> Crew<I, O>
    where
        P: Chain<I, Out = O> + Clone + Send + 'static,
    {
        let (jobs, done) = (Arc::new(Queue::new(room)), Arc::new(Queue::new(room)));
        let mut crew = Crew { jobs, done, threads: Vec::with_capacity(count) };
        for _ in 0..count {
            let (mut worker, jobs, done) = (Worker::new(stages.clone()), crew.jobs.clone(), crew.done.clone());
            let work = move || {
                while let Some((turn, mut lot)) = jobs.pop() {
                    worker.pass(&mut lot);
                    done.push((turn, lot));
                }
            };
            match std::thread::Builder::new().name("millstream-stages".into()).spawn(work) {
                Ok(thread) => crew.threads.push(thread),
                Err(_) => break,
            }
        }
        crew
    }

    /// Gives out a lot.
    pub(super) fn send(&self, turn: u64, lot: Lot<I, O>) {
        self.jobs.push((turn, lot));
    }

    /// A lot that is done, if there is one now.
    pub(super) fn done(&self) -> Option<(u64, Lot<I, O>)> {
        self.done.try_pop()
    }

    /// A lot that is done, if there is one by then. There must be threads.
    pub(super) fn wait(&self, patience: Duration) -> Option<(u64, Lot<I, O>)> {
        let done = self.done.pop_within(patience);
        let are_gone = done.is_none() && self.threads.iter().all(JoinHandle::is_finished);
        assert!(!are_gone, "a thread ends only when it is told to");
        done
    }

    /// Takes back a lot that no thread is free for. This many have been sent and not been received.
    pub(super) fn take_back(&self, under_way: usize) -> Option<(u64, Lot<I, O>)> {
        let unfinished = under_way.saturating_sub(self.done.len());
        if unfinished > self.threads.len() { self.jobs.try_pop() } else { None }
    }
}

impl<I: SendItem, O: SendItem> Drop for Crew<I, O> {
    fn drop(&mut self) {
        self.jobs.close();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}
