//! The worker threads, and the queues to and from them, which are all that the threads share.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use super::super::chain::Chain;
use super::chunk::{Chunk, SendItem};
use super::queue::Queue;
use super::worker::Worker;

/// Threads that run copies of the same stages. Dropping the crew waits for the threads.
pub(super) struct Crew<I: SendItem, O: SendItem> {
    /// Chunks that no thread has begun.
    jobs: Arc<Queue<(u64, Chunk<I, O>)>>,
    done: Arc<Queue<(u64, Chunk<I, O>)>>,
    threads: Vec<JoinHandle<()>>,
}

impl<I: SendItem, O: SendItem> Crew<I, O> {
    /// Starts up to `count` threads for at most `capacity` chunks. If the operating system cannot start this many
    /// threads, fewer are used, or none.
    pub(super) fn start<P>(stages: &P, count: usize, capacity: usize) -> Crew<I, O>
    where
        P: Chain<I, Out = O> + Clone + Send + 'static,
    {
        let (jobs, done) = (Arc::new(Queue::new(capacity)), Arc::new(Queue::new(capacity)));
        let mut crew = Crew { jobs, done, threads: Vec::with_capacity(count) };
        for _ in 0..count {
            let (mut worker, jobs, done) = (Worker::new(stages.clone()), crew.jobs.clone(), crew.done.clone());
            let work = move || {
                while let Some((turn, mut chunk)) = jobs.pop() {
                    worker.pass(&mut chunk);
                    done.push((turn, chunk));
                }
            };
            match std::thread::Builder::new().name("millstream-stages".into()).spawn(work) {
                Ok(thread) => crew.threads.push(thread),
                Err(_) => break,
            }
        }
        crew
    }

    /// Sends a chunk to the threads.
    pub(super) fn send(&self, turn: u64, chunk: Chunk<I, O>) {
        self.jobs.push((turn, chunk));
    }

    /// Returns a finished chunk, if one is available.
    pub(super) fn done(&self) -> Option<(u64, Chunk<I, O>)> {
        self.done.try_pop()
    }

    /// Returns a finished chunk, if one is available within `patience`. There must be threads.
    pub(super) fn wait(&self, patience: Duration) -> Option<(u64, Chunk<I, O>)> {
        let done = self.done.pop_within(patience);
        let are_gone = done.is_none() && self.threads.iter().all(JoinHandle::is_finished);
        assert!(!are_gone, "a thread ends only on request");
        done
    }

    /// Takes back a chunk that no thread has begun. `under_way` chunks have been sent and have not been received.
    pub(super) fn take_back(&self, under_way: usize) -> Option<(u64, Chunk<I, O>)> {
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
