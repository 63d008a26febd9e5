//! Works on the parts of a file on several threads, and returns the results in order, piece by piece.
//!
//! Threads begin the parts in order. The results of a part are held until those of all parts before it have been taken.
//! Memory is bounded: a thread waits before it begins a part that is too far ahead, and before it adds a piece to too
//! many others. The part whose results are taken is never held up by the pieces of later ones.
//!
//! Where the records of a part begin may depend on all bytes before it. Then each thread guesses where the first record of
//! its part begins. The guess is right if the part before it ends there, which is known when that part has been taken;
//! otherwise the caller's thread works on the part again from the right position. So a wrong guess costs time and changes
//! nothing.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use crate::error::Result;
use crate::panicked::panicked;

/// The number of parts for each thread that have been begun and have not been taken.
const PARTS: usize = 3;

/// The maximum size of the pieces that are held, for each thread. The part whose results are taken may add one more.
const HELD: usize = 16 << 20;

/// The memory use of a piece apart from its content.
const OVERHEAD: usize = 256;

/// A file in parts.
pub trait Parts: Clone + Send + 'static {
    /// A part whose start is known.
    type Part;

    /// Returns the number of parts.
    fn count(&self) -> usize;

    /// Returns a part with the offset at which its first record probably begins, if that can be found out.
    fn guess(&self, index: usize) -> Option<(Self::Part, u64)>;

    /// Returns what is known about a part when all parts before it have been taken. The last of them ended at `begin`.
    fn check(&self, index: usize, guess: Option<u64>, begin: u64) -> Found<Self::Part>;

    /// Checks the file when all parts have been taken.
    fn finish(&self) -> Result<()>;
}

/// What is known about a part when all parts before it have been taken.
#[derive(Debug)]
pub enum Found<P> {
    /// The guess was right.
    Right,
    /// The part begins elsewhere.
    Other(P),
    /// A record that began before it contains it and all parts up to the one with this index.
    Contained(usize),
}

/// The work on one part.
pub trait Work: Send {
    /// Results, and errors if there can be any.
    type Piece: Send + 'static;

    /// Returns the next results, or `None` at the end of the part.
    fn next(&mut self) -> Option<Self::Piece>;

    /// Returns the offset after the last record of the part, when it has ended.
    fn end(&self) -> u64;

    /// Returns the size of results in bytes.
    fn size(_piece: &Self::Piece) -> usize {
        0
    }

    /// Returns whether results may be returned before those of earlier parts, if the order does not matter.
    fn is_free(_piece: &Self::Piece) -> bool {
        false
    }
}

/// The results of the parts of a file. Dropping it stops the threads, and waits until they have finished their current
/// pieces.
pub struct InOrder<P: Parts, F, W: Work> {
    parts: P,
    open: F,
    shared: Arc<Shared<W::Piece>>,
    threads: Vec<JoinHandle<()>>,
    /// The index of the next part, and the offset at which its first record begins.
    next: usize,
    begin: u64,
    current: Current<W>,
}

enum Current<W> {
    Nothing,
    /// A thread works on the part.
    Thread,
    /// The caller's thread does.
    Own(W),
    Ended,
}

impl<P: Parts, F, W: Work> InOrder<P, F, W>
where
    F: Fn(&P::Part) -> W + Clone + Send + 'static,
{
    /// Starts `count` threads, or none if `count` is 1 or there is only one part: then the caller's thread does all work.
    /// `open` begins the work on a part. If the order does not matter, pieces that are free are returned as they come.
    pub fn start(parts: P, count: usize, is_unordered: bool, open: F) -> InOrder<P, F, W> {
        let count = if count > 1 && parts.count() > 1 { count.min(parts.count()) } else { 0 };
        let state =
            State { first: 0, next: 0, count: parts.count(), begun: VecDeque::new(), held: 0, is_stopped: false };
        let shared = Arc::new(Shared {
            state: Mutex::new(state),
            ready: Condvar::new(),
            space: Condvar::new(),
            window: count * PARTS,
            limit: count * HELD,
            is_unordered,
        });
        let mut threads = Vec::with_capacity(count);
        for _ in 0..count {
            let (parts, open, shared) = (parts.clone(), open.clone(), shared.clone());
            let run = move || {
                while let Some(index) = shared.begin() {
                    let outcome = catch_unwind(AssertUnwindSafe(|| work_on(&parts, &open, index, &shared)));
                    shared.end(index, outcome.unwrap_or_else(|panic| Some(Err(panicked(&*panic)))));
                }
            };
            match std::thread::Builder::new().name("millstream-splits".into()).spawn(run) {
                Ok(thread) => threads.push(thread),
                // The other threads do all work, or the caller's.
                Err(_) => break,
            }
        }
        InOrder { parts, open, shared, threads, next: 0, begin: 0, current: Current::Nothing }
    }

    /// Returns the next piece, or `None` when all parts have been taken.
    ///
    /// # Errors
    /// Returns the error of a panic in the work, and those of [`Parts::finish`].
    pub fn next_piece(&mut self) -> Result<Option<W::Piece>> {
        self.try_next().inspect_err(|_| self.current = Current::Ended)
    }

    fn try_next(&mut self) -> Result<Option<W::Piece>> {
        loop {
            match &mut self.current {
                Current::Nothing => self.begin_next()?,
                Current::Thread => match self.shared.take()? {
                    Taken::Piece(piece) => return Ok(Some(piece)),
                    Taken::End(end) => self.end_current(end),
                },
                Current::Own(work) => match caught(|| work.next())? {
                    Some(piece) => return Ok(Some(piece)),
                    None => {
                        let end = work.end();
                        self.end_current(end);
                    }
                },
                Current::Ended => return Ok(None),
            }
        }
    }

    fn end_current(&mut self, end: u64) {
        (self.begin, self.current) = (end, Current::Nothing);
    }

    /// Begins to take the next part.
    fn begin_next(&mut self) -> Result<()> {
        let index = self.next;
        if index >= self.parts.count() {
            self.current = Current::Ended;
            return self.parts.finish();
        }
        let guess = if self.threads.is_empty() { None } else { self.shared.start_of_first() };
        match caught(|| self.parts.check(index, guess, self.begin))? {
            Found::Right => {
                self.next = index + 1;
                self.current = Current::Thread;
            }
            Found::Other(part) => {
                self.next = index + 1;
                self.shared.drop_before(self.next);
                self.current = Current::Own(caught(|| (self.open)(&part))?);
            }
            Found::Contained(until) => {
                self.next = until;
                self.shared.drop_before(until);
            }
        }
        Ok(())
    }
}

impl<P: Parts, F, W: Work> Drop for InOrder<P, F, W> {
    fn drop(&mut self) {
        self.shared.stop();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

impl<P: Parts, F, W: Work> std::fmt::Debug for InOrder<P, F, W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("InOrder")
            .field("threads", &self.threads.len())
            .field("next", &self.next)
            .finish_non_exhaustive()
    }
}

fn caught<T>(work: impl FnOnce() -> T) -> Result<T> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| panicked(&*panic))
}

/// Works on a part, and returns the offset after its last record, or `None` if its results are not needed.
fn work_on<P: Parts, W: Work>(
    parts: &P,
    open: &impl Fn(&P::Part) -> W,
    index: usize,
    shared: &Shared<W::Piece>,
) -> Option<Result<u64>> {
    let guess = parts.guess(index);
    shared.started(index, guess.as_ref().map(|(_, begin)| *begin));
    let mut work = open(&guess?.0);
    while let Some(piece) = work.next() {
        let (size, is_free) = (W::size(&piece), W::is_free(&piece));
        if !shared.add(index, piece, size, is_free) {
            return None;
        }
    }
    Some(Ok(work.end()))
}

/// The only result for a part.
pub(super) struct AtOnce<T> {
    result: Option<Result<T>>,
    /// The offset after the last record.
    end: u64,
}

impl<T> AtOnce<T> {
    pub(super) fn new(result: Result<(T, u64)>) -> AtOnce<T> {
        match result {
            Ok((result, end)) => AtOnce { result: Some(Ok(result)), end },
            Err(error) => AtOnce { result: Some(Err(error)), end: 0 },
        }
    }
}

impl<T: Send + 'static> Work for AtOnce<T> {
    type Piece = Result<T>;

    fn next(&mut self) -> Option<Result<T>> {
        self.result.take()
    }

    fn end(&self) -> u64 {
        self.end
    }
}

/// What the threads share.
struct Shared<T> {
    state: Mutex<State<T>>,
    /// A piece was added, or a part was started or has ended.
    ready: Condvar,
    /// A piece or a part was taken, or everything was stopped.
    space: Condvar,
    /// The maximum number of parts that have been begun and have not been taken.
    window: usize,
    /// The maximum size of the pieces that are held.
    limit: usize,
    is_unordered: bool,
}

struct State<T> {
    /// The index of the part whose results are taken, and that of the first one that no thread has begun.
    first: usize,
    next: usize,
    count: usize,
    /// The parts from `first` to `next`.
    begun: VecDeque<Begun<T>>,
    /// The size of all pieces.
    held: usize,
    is_stopped: bool,
}

/// A part that a thread has begun.
struct Begun<T> {
    /// Where its first record begins: `None` until that has been looked for, then `None` if it was not found.
    start: Option<Option<u64>>,
    pieces: VecDeque<Held<T>>,
    /// The offset after its last record, when it has ended.
    end: Option<Result<u64>>,
}

struct Held<T> {
    piece: T,
    size: usize,
    is_free: bool,
}

enum Taken<T> {
    Piece(T),
    End(u64),
}

impl<T> State<T> {
    /// Returns a part, unless it is not needed any more.
    fn part(&mut self, index: usize) -> Option<&mut Begun<T>> {
        self.begun.get_mut(index.checked_sub(self.first)?)
    }

    fn take_piece(&mut self, part: usize) -> Option<T> {
        let Held { piece, size, .. } = self.begun.get_mut(part)?.pieces.pop_front()?;
        self.held -= size;
        Some(piece)
    }

    fn drop_first(&mut self) {
        let Some(part) = self.begun.pop_front() else { return };
        self.first += 1;
        self.held -= part.pieces.iter().map(|held| held.size).sum::<usize>();
    }
}

impl<T> Shared<T> {
    fn lock(&self) -> MutexGuard<'_, State<T>> {
        // The code that holds the lock does not panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the index of the next part for a thread, or `None` if no part is left.
    fn begin(&self) -> Option<usize> {
        let is_too_far = |state: &mut State<T>| {
            !state.is_stopped && state.next < state.count && state.next - state.first >= self.window
        };
        let mut state = self.space.wait_while(self.lock(), is_too_far).unwrap_or_else(PoisonError::into_inner);
        if state.is_stopped || state.next >= state.count {
            return None;
        }
        state.next += 1;
        state.begun.push_back(Begun { start: None, pieces: VecDeque::new(), end: None });
        Some(state.next - 1)
    }

    /// Stores where the first record of a part begins.
    fn started(&self, index: usize, start: Option<u64>) {
        if let Some(part) = self.lock().part(index) {
            part.start = Some(start);
        }
        self.ready.notify_one();
    }

    /// Adds a piece, when there is space for it. Returns false if the part is not needed any more.
    fn add(&self, index: usize, piece: T, size: usize, is_free: bool) -> bool {
        let size = size + OVERHEAD;
        let must_wait = |state: &mut State<T>| {
            let is_empty = |part: &mut Begun<T>| part.pieces.is_empty();
            let has_space =
                state.held + size <= self.limit || (index == state.first && state.part(index).is_some_and(is_empty));
            !state.is_stopped && index >= state.first && !has_space
        };
        let mut state = self.space.wait_while(self.lock(), must_wait).unwrap_or_else(PoisonError::into_inner);
        if state.is_stopped {
            return false;
        }
        let Some(part) = state.part(index) else { return false };
        part.pieces.push_back(Held { piece, size, is_free });
        state.held += size;
        drop(state);
        self.ready.notify_one();
        true
    }

    /// Stores that a part has ended.
    fn end(&self, index: usize, end: Option<Result<u64>>) {
        if let Some(part) = self.lock().part(index) {
            part.start.get_or_insert(None);
            part.end = end;
        }
        self.ready.notify_one();
    }

    /// Waits until it is known where the first part begins, if that can be found out.
    fn start_of_first(&self) -> Option<u64> {
        let is_unknown = |state: &mut State<T>| state.begun.front().is_none_or(|part| part.start.is_none());
        let state = self.ready.wait_while(self.lock(), is_unknown).unwrap_or_else(PoisonError::into_inner);
        state.begun.front().and_then(|part| part.start.flatten())
    }

    /// Waits for the next piece, or the end of the first part, and takes it.
    fn take(&self) -> Result<Taken<T>> {
        let mut state = self.lock();
        loop {
            if let Some(piece) = state.take_piece(0) {
                drop(state);
                self.space.notify_all();
                return Ok(Taken::Piece(piece));
            }
            if let Some(end) = state.begun.front_mut().and_then(|part| part.end.take()) {
                state.drop_first();
                drop(state);
                self.space.notify_all();
                return end.map(Taken::End);
            }
            let is_free = |part: &Begun<T>| part.pieces.front().is_some_and(|held| held.is_free);
            if self.is_unordered
                && let Some(part) = state.begun.iter().position(is_free)
                && let Some(piece) = state.take_piece(part)
            {
                drop(state);
                self.space.notify_all();
                return Ok(Taken::Piece(piece));
            }
            state = self.ready.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Drops the parts before one, whose results are not needed.
    fn drop_before(&self, index: usize) {
        let mut state = self.lock();
        while state.first < index && !state.begun.is_empty() {
            state.drop_first();
        }
        state.first = state.first.max(index);
        state.next = state.next.max(index);
        drop(state);
        self.space.notify_all();
    }

    fn stop(&self) {
        let mut state = self.lock();
        state.is_stopped = true;
        let begun = std::mem::take(&mut state.begun);
        drop(state);
        self.space.notify_all();
        drop(begun);
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::error::ErrorKind;

    /// Records that end at the `ends`, in parts of `step` bytes. Guesses are right, wrong, or missing.
    #[derive(Clone, Debug)]
    struct Numbers {
        ends: Arc<Vec<u64>>,
        step: u64,
        wrong: u64,
    }

    impl Numbers {
        fn size(&self) -> u64 {
            self.ends.last().copied().unwrap_or(0)
        }
    }

    impl Parts for Numbers {
        /// The offset at which the first record begins, and that at which the part ends.
        type Part = (u64, u64);

        fn count(&self) -> usize {
            self.size().div_ceil(self.step) as usize
        }

        fn guess(&self, index: usize) -> Option<((u64, u64), u64)> {
            let start = index as u64 * self.step;
            let begin = match (start + self.wrong) % 3 {
                _ if index == 0 => 0,
                0 => return None,
                1 => start,
                _ => self.ends[self.ends.partition_point(|&end| end < start)],
            };
            Some(((begin, self.size().min(start + self.step)), begin))
        }

        fn check(&self, index: usize, guess: Option<u64>, begin: u64) -> Found<(u64, u64)> {
            let end = self.size().min((index as u64 + 1) * self.step);
            if begin >= end {
                let until = if begin >= self.size() { self.count() } else { (begin / self.step) as usize };
                return Found::Contained(until);
            }
            if guess == Some(begin) { Found::Right } else { Found::Other((begin, end)) }
        }

        fn finish(&self) -> Result<()> {
            Ok(())
        }
    }

    /// Returns the ends of the records of a part, one by one.
    struct Ends {
        all: Arc<Vec<u64>>,
        at: u64,
        until: u64,
        panics_at: Option<u64>,
    }

    impl Work for Ends {
        type Piece = u64;

        fn next(&mut self) -> Option<u64> {
            if self.at >= self.until {
                return None;
            }
            assert!(self.panics_at != Some(self.at), "requested by the test");
            self.at = self.all[self.all.partition_point(|&end| end <= self.at)];
            Some(self.at)
        }

        fn end(&self) -> u64 {
            self.at
        }

        fn size(_piece: &u64) -> usize {
            HELD / 2 // so that threads wait
        }

        fn is_free(piece: &u64) -> bool {
            piece.is_multiple_of(2)
        }
    }

    fn start(
        numbers: &Numbers,
        threads: usize,
        is_unordered: bool,
        panics_at: Option<u64>,
    ) -> InOrder<Numbers, impl Fn(&(u64, u64)) -> Ends + Clone + Send + 'static, Ends> {
        let all = numbers.ends.clone();
        let open = move |&(at, until): &(u64, u64)| Ends { all: all.clone(), at, until, panics_at };
        InOrder::start(numbers.clone(), threads, is_unordered, open)
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn wrong_guesses_change_nothing(
            lens in vec(1..30_u64, 1..40),
            step in 1..50_u64,
            threads in 1..4_usize,
            wrong in 0..3_u64,
            taken in 0..100_usize,
            panics_at in 0..80_usize,
        ) {
            let ends: Vec<u64> = lens.iter().scan(0, |end, len| { *end += len; Some(*end) }).collect();
            let numbers = Numbers { ends: Arc::new(ends.clone()), step, wrong };
            let mut results = start(&numbers, threads, false, None);
            let mut found = Vec::new();
            while let Some(end) = results.next_piece().unwrap() {
                found.push(end);
            }
            prop_assert_eq!(&found, &ends);
            prop_assert!(results.next_piece().unwrap().is_none());

            // Stops early.
            let mut results = start(&numbers, threads, false, None);
            for &end in ends.iter().take(taken) {
                prop_assert_eq!(results.next_piece().unwrap(), Some(end));
            }
            drop(results);

            // A panic comes after everything before it.
            let panics_at = ends.get(panics_at).copied().filter(|&at| at < numbers.size());
            let mut results = start(&numbers, threads, false, panics_at);
            let mut before = ends.iter().take_while(|&&end| panics_at.is_none_or(|at| end <= at));
            let ended = loop {
                match results.next_piece() {
                    Ok(Some(end)) => prop_assert_eq!(Some(&end), before.next()),
                    ended => break ended.map_err(|error| error.kind()),
                }
            };
            prop_assert_eq!(ended, if panics_at.is_some() { Err(ErrorKind::StagePanicked) } else { Ok(None) });
            prop_assert_eq!(before.next(), None);
        }
    }

    /// With exact starts, pieces that are free come as they are ready, and the others in order.
    #[test]
    fn pieces_that_are_free_may_come_early() {
        let ends: Vec<u64> = (1..=1000).collect();
        let numbers = Numbers { ends: Arc::new(ends.clone()), step: 7, wrong: 0 };
        #[derive(Clone)]
        struct Exact(Numbers);
        impl Parts for Exact {
            type Part = (u64, u64);

            fn count(&self) -> usize {
                self.0.count()
            }

            fn guess(&self, index: usize) -> Option<((u64, u64), u64)> {
                let begin = index as u64 * 7;
                Some(((begin, self.0.size().min(begin + 7)), begin))
            }

            fn check(&self, index: usize, guess: Option<u64>, begin: u64) -> Found<(u64, u64)> {
                self.0.check(index, guess, begin)
            }

            fn finish(&self) -> Result<()> {
                Ok(())
            }
        }
        let all = numbers.ends.clone();
        let open = move |&(at, until): &(u64, u64)| Ends { all: all.clone(), at, until, panics_at: None };
        let mut results = InOrder::start(Exact(numbers), 3, true, open);
        let mut found = Vec::new();
        while let Some(end) = results.next_piece().unwrap() {
            found.push(end);
        }
        let (odd, even): (Vec<u64>, Vec<u64>) = found.iter().partition(|&&end| end % 2 == 1);
        assert!(odd.is_sorted());
        assert_eq!(odd.len() + even.len(), 1000);
        let mut all = found;
        all.sort_unstable();
        assert_eq!(all, ends);
    }
}
