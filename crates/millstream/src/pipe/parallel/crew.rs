//! The threads, and the channels to and from them.
//!
//! Both channels are those of crossbeam, and nothing else is shared. So that nobody ever waits to put something in, they have
//! room for as many lots as are allowed to be under way.

use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use bumpalo::Bump;
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};

use super::super::chain::Chain;
use super::super::scope::{Flow, Run, Scope};
use super::lot::{Lot, SendItem};
use crate::error::Result;

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
    /// Starts up to `count` threads for at most `room` lots. Fewer will do, if the system has no more.
    pub(super) fn start<P>(stages: &P, count: usize, room: usize) -> Result<Crew<I, O>>
    where
        P: Chain<I, Out = O> + Clone + Send + 'static,
    {
        let (jobs, unbegun) = bounded(room);
        let (finished, done) = bounded(room);
        let mut crew = Crew { jobs: Some(jobs), unbegun, done, threads: Vec::with_capacity(count) };
        for _ in 0..count {
            let (stages, jobs, finished) = (stages.clone(), crew.unbegun.clone(), finished.clone());
            let thread = std::thread::Builder::new().name("millstream-stages".into());
            match thread.spawn(move || work(stages, &jobs, &finished)) {
                Ok(thread) => crew.threads.push(thread),
                Err(error) if crew.threads.is_empty() => return Err(error.into()),
                Err(_) => break,
            }
        }
        Ok(crew)
    }

    /// Gives out a lot. There must be room for it.
    pub(super) fn send(&self, turn: u64, lot: Lot<I, O>) {
        let jobs = self.jobs.as_ref().expect("only dropping takes it");
        jobs.try_send((turn, lot)).expect("there is room for what may be under way");
    }

    /// A lot that is done, if there is one by then.
    pub(super) fn receive(&self, patience: Duration) -> Option<(u64, Lot<I, O>)> {
        match self.done.recv_timeout(patience) {
            Ok(done) => Some(done),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => panic!("a thread ends only when it is told to"),
        }
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

/// What a thread does.
fn work<I, O, P>(mut stages: P, jobs: &Receiver<(u64, Lot<I, O>)>, finished: &Sender<(u64, Lot<I, O>)>)
where
    I: SendItem,
    O: SendItem,
    P: Chain<I, Out = O>,
{
    let (mut run, mut arena) = (Run::new(), Bump::new());
    for (turn, mut lot) in jobs {
        pass(&mut stages, &mut lot, &mut run, &arena);
        arena.reset();
        if finished.send((turn, lot)).is_err() {
            break;
        }
    }
}

/// Sends a lot through stages.
fn pass<I, O, P>(stages: &mut P, lot: &mut Lot<I, O>, run: &mut Run, arena: &Bump)
where
    I: SendItem,
    O: SendItem,
    P: Chain<I, Out = O>,
{
    let began = Instant::now();
    let Lot { given, made, origins, on_error, failures, flow, work } = lot;
    let count = given.records.len();
    run.on_error = *on_error;
    std::mem::swap(run.handed.get_mut(), origins);
    // How many items had come out before each failure.
    let mut failed_at = Vec::new();
    let scope = Scope { arena, batch: None, run };
    *flow = scope.guard(|| {
        stages.run(given.records.drain(..).zip(I::open(&mut given.items)), scope, &mut |record, item| {
            failed_at.resize(run.failures.borrow().len(), made.records.len());
            made.push(record, item);
            Flow::Continue(())
        })
    });
    let failed = run.failures.take();
    failed_at.resize(failed.len(), made.records.len());
    failures.extend(failed_at.into_iter().zip(failed));
    std::mem::swap(run.handed.get_mut(), origins);
    *work = (count, began.elapsed());
}
