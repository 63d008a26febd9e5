//! A queue that is shared by several threads, each of which may add and remove items.
//!
//! The standard library's channels have one receiver. Adding an item never waits, so the callers must bound the number
//! of items.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A queue between threads.
pub(super) struct Queue<T> {
    state: Mutex<State<T>>,
    /// An item was added, or the queue was closed.
    changed: Condvar,
}

struct State<T> {
    items: VecDeque<T>,
    is_closed: bool,
}

impl<T> Queue<T> {
    /// Creates an empty queue with memory for `capacity` items.
    pub(super) fn new(capacity: usize) -> Queue<T> {
        let state = State { items: VecDeque::with_capacity(capacity), is_closed: false };
        Queue { state: Mutex::new(state), changed: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        // The code that holds the lock cannot panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn push(&self, item: T) {
        self.lock().items.push_back(item);
        self.changed.notify_one();
    }

    /// Waits for the next item and returns it, or `None` when the queue is closed.
    pub(super) fn pop(&self) -> Option<T> {
        let is_waiting = |state: &mut State<T>| state.items.is_empty() && !state.is_closed;
        let mut state = self.changed.wait_while(self.lock(), is_waiting).unwrap_or_else(PoisonError::into_inner);
        state.items.pop_front()
    }

    /// Returns the next item, if there is one within `patience`.
    pub(super) fn pop_within(&self, patience: Duration) -> Option<T> {
        let is_waiting = |state: &mut State<T>| state.items.is_empty() && !state.is_closed;
        let waited = self.changed.wait_timeout_while(self.lock(), patience, is_waiting);
        waited.unwrap_or_else(PoisonError::into_inner).0.items.pop_front()
    }

    /// Returns the next item, if one is available.
    pub(super) fn try_pop(&self) -> Option<T> {
        self.lock().items.pop_front()
    }

    pub(super) fn len(&self) -> usize {
        self.lock().items.len()
    }

    /// Drops all items, and wakes all waiting threads.
    pub(super) fn close(&self) {
        let items = {
            let mut state = self.lock();
            state.is_closed = true;
            std::mem::take(&mut state.items)
        };
        self.changed.notify_all();
        drop(items);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_item_is_taken_once_and_closing_ends_all_waits() {
        let (jobs, done) = (Queue::new(4), Queue::new(4));
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    while let Some(job) = jobs.pop() {
                        done.push(job);
                    }
                });
            }
            (0..1000).for_each(|job| jobs.push(job));
            let mut all: Vec<i32> = (0..1000).map(|_| done.pop().unwrap()).collect();
            all.sort_unstable();
            assert!(all.into_iter().eq(0..1000));
            assert_eq!((jobs.len(), done.try_pop(), done.pop_within(Duration::from_millis(1))), (0, None, None));
            jobs.close();
        });
        done.push(7);
        done.close();
        assert_eq!((done.pop(), done.len()), (None, 0));
    }
}
