//! A chain's view of the current batch, and the state that is kept from batch to batch.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use bumpalo::Bump;

use super::origin::{Origin, Place};
use crate::error::{Error, ErrorKind};
use crate::frame::Batch;
use crate::panicked::panicked;

/// Whether the next item is needed. `Break` ends the chain's work: it has enough items, or it has failed.
pub type Flow = ControlFlow<()>;

/// The current batch.
#[derive(Clone, Copy)]
pub struct Scope<'a> {
    /// Memory for items that a stage creates. It is valid for as long as the batch.
    pub(super) arena: &'a Bump,
    /// The origin of the records; absent if a chain begins with values.
    pub(super) batch: Option<Batch<'a>>,
    pub(super) run: &'a Run,
}

impl<'a> Scope<'a> {
    /// Stores a record that a stage has created, so that it is valid for as long as the batch.
    ///
    /// # Errors
    /// Returns [`ErrorKind::RecordTooLong`] if the record, or the total size of the records created from the batch,
    /// exceeds the run's limits.
    #[inline]
    pub(super) fn keep(self, record: &[u8]) -> Result<&'a [u8], Error> {
        let kept = self.run.kept.get().saturating_add(record.len());
        if record.len() > self.run.record_limit || kept > self.run.batch_limit {
            return Err(self.too_long(record.len()));
        }
        self.run.kept.set(kept);
        Ok(self.arena.alloc_slice_copy(record))
    }

    #[cold]
    fn too_long(self, len: usize) -> Error {
        let (limit, found) = match len > self.run.record_limit {
            true => (self.run.record_limit, "a longer record, produced by a stage".to_string()),
            false => (self.run.batch_limit, "more, produced by stages from the records of one batch".to_string()),
        };
        Error::new(ErrorKind::RecordTooLong).with_found(found).with_expected(format!("at most {limit} bytes"))
    }

    /// Returns the origin of this batch's items. All callers share one.
    pub(super) fn origin(self) -> Option<Arc<Origin>> {
        let batch = self.batch?;
        let keep = self.run.on_error == OnFailure::Skip { keep: true };
        let mut known = self.run.origin.borrow_mut();
        let origin = known.get_or_insert_with(|| {
            Arc::new(Origin::of(batch, self.run.name.borrow().clone(), self.run.first.get(), keep))
        });
        Some(origin.clone())
    }

    /// Handles a record that a stage could not process. Returns whether to continue.
    #[cold]
    pub(super) fn fail(self, record: u64, error: Error) -> Flow {
        self.fail_at(record, 0, error)
    }

    /// Like [`fail`](Scope::fail), for a stage that got the bytes at this address, from which the error counts its
    /// position. The position is kept if the bytes are part of the record as it was read.
    #[cold]
    pub(super) fn fail_at(self, record: u64, address: usize, error: Error) -> Flow {
        let handed = self.run.handed.borrow();
        let name = self.run.name.borrow();
        let here = || self.batch.and_then(|batch| Place::find(batch, self.run.first.get().0, name.as_ref(), record));
        let place = handed.iter().find_map(|origin| origin.place(record)).or_else(here);
        let at = place.as_ref().and_then(|place| place.bytes).and_then(|bytes| {
            let at = address.checked_sub(bytes.as_ptr().addr()).filter(|at| *at <= bytes.len())?;
            error.column().map(|_| at as u64)
        });
        let mut error = match &place {
            // The error is about another source, which has its own lines.
            Some(place) if error.name().is_some() => error.in_record(Some(place.offset), place.record, None, None),
            Some(place) => error.in_record(Some(place.offset), place.record, place.line, at),
            None => error.in_record(None, record, None, None),
        };
        if let Some(name) = place.as_ref().map_or(name.as_ref(), |place| place.name) {
            error = error.with_name(&**name);
        }
        let bytes = match self.run.on_error {
            OnFailure::Stop => None,
            OnFailure::Skip { keep } => place.filter(|_| keep).and_then(|place| place.bytes.map(<[u8]>::to_vec)),
        };
        // If a record must be kept but cannot be, it must not be skipped.
        let is_lost = bytes.is_none() && self.run.on_error == OnFailure::Skip { keep: true };
        let is_fatal =
            is_lost || error.kind() == ErrorKind::StagePanicked || matches!(self.run.on_error, OnFailure::Stop);
        self.run.failures.borrow_mut().push(Failure { record, error, bytes, is_fatal });
        if is_fatal { Flow::Break(()) } else { Flow::Continue(()) }
    }

    /// Handles a failure of something other than the record, such as a sink. It ends the pipe, regardless of the
    /// policy.
    #[cold]
    pub(super) fn end(self, record: u64, error: Error) -> Flow {
        self.run.failures.borrow_mut().push(Failure { record, error, bytes: None, is_fatal: true });
        Flow::Break(())
    }

    /// Runs stages. A panic in a stage counts as a failure at its current record. Without a panic this has no cost.
    #[inline]
    pub(super) fn guard(&self, work: impl FnOnce() -> Flow) -> Flow {
        // Items that the stages hold are not used again, because a panic ends the pipe.
        catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| self.fail_by(panic))
    }

    #[cold]
    #[inline(never)]
    fn fail_by(&self, panic: Box<dyn Any + Send>) -> Flow {
        self.fail(self.run.current.get(), panicked(&*panic))
    }
}

/// The treatment of a record at which a stage fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OnFailure {
    Stop,
    /// Continue with the next record, and keep this one's bytes if requested.
    Skip {
        keep: bool,
    },
}

/// The state while stages run on one thread.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) on_error: OnFailure,
    /// Whether time is measured.
    pub(super) measures: bool,
    /// The name of the source.
    pub(super) name: RefCell<Option<Arc<str>>>,
    /// The numbers of the batch's first record: over all sources, and in its own source.
    pub(super) first: Cell<(u64, u64)>,
    /// The maximum length of a record that a stage creates, and the maximum total length of the records that the
    /// stages create from a batch.
    pub(super) record_limit: usize,
    pub(super) batch_limit: usize,
    /// The number of bytes that the stages have created from this batch.
    pub(super) kept: Cell<usize>,
    /// The origins of items that were held back and have been passed on since the last batch arrived.
    pub(super) handed: RefCell<Vec<Arc<Origin>>>,
    /// The number of records that stages have read themselves since the last batch arrived, and the error that ended
    /// their reading.
    pub(super) read: Cell<u64>,
    pub(super) source_error: RefCell<Option<Error>>,
    /// The record that a stage is processing, which locates a panic.
    pub(super) current: Cell<u64>,
    /// The origin of this batch's items; absent until a stage that holds items back requests it.
    pub(super) origin: RefCell<Option<Arc<Origin>>>,
    /// The error, until it is handled.
    pub(super) failures: RefCell<Vec<Failure>>,
}

impl Run {
    pub(super) fn new() -> Run {
        Run {
            on_error: OnFailure::Stop,
            measures: false,
            name: RefCell::new(None),
            first: Cell::new((0, 0)),
            record_limit: usize::MAX,
            batch_limit: usize::MAX,
            kept: Cell::new(0),
            handed: RefCell::default(),
            origin: RefCell::default(),
            read: Cell::new(0),
            source_error: RefCell::default(),
            current: Cell::new(0),
            failures: RefCell::default(),
        }
    }

    /// Begins a batch whose first record has these numbers, over all sources and in its own source. This is also
    /// called without a batch, before held items are passed on.
    pub(super) fn begin(&mut self, first: (u64, u64)) {
        self.first.set(first);
        self.kept.set(0);
        self.handed.get_mut().clear();
        *self.origin.get_mut() = None;
    }

    /// Registers the origins of items that are now passed on.
    pub(super) fn hand(&self, origins: &[Arc<Origin>]) {
        add_new(&mut self.handed.borrow_mut(), origins);
    }

    /// Returns a record's number in its own source.
    pub(super) fn number_in_source(&self, record: u64) -> u64 {
        let handed = self.handed.borrow();
        let held = handed.iter().find_map(|origin| origin.place(record));
        let (first, first_in_source) = self.first.get();
        held.map_or_else(|| record.wrapping_sub(first).wrapping_add(first_in_source), |place| place.record)
    }

    pub(super) fn set_name(&self, name: &Arc<str>) {
        let mut known = self.name.borrow_mut();
        if known.as_ref().is_none_or(|known| !Arc::ptr_eq(known, name)) {
            *known = Some(name.clone());
        }
    }
}

/// Adds the origins that `known` lacks. Usually these are the same as for the previous item.
pub(super) fn add_new<'a>(known: &mut Vec<Arc<Origin>>, origins: impl IntoIterator<Item = &'a Arc<Origin>>) {
    for origin in origins {
        if !known.iter().rev().any(|other| Arc::ptr_eq(other, origin)) {
            known.push(origin.clone());
        }
    }
}

/// A record at which a stage failed.
#[derive(Debug)]
pub(super) struct Failure {
    /// Its number over all sources.
    pub(super) record: u64,
    pub(super) error: Error,
    /// The record as it was read, if requested and known.
    pub(super) bytes: Option<Vec<u8>>,
    /// Whether the failure ends the pipe.
    pub(super) is_fatal: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::Trim;

    /// Chunks that come back out of order can share only their last batch.
    #[test]
    fn every_origin_of_passed_on_items_is_known() {
        let batch = |first| {
            let batch = Batch::new(b"ab", &[0, 1, 2], Trim::NOTHING, true);
            Arc::new(Origin::of(batch, None, (first, first + 100), false))
        };
        let batches = [0, 2, 4].map(batch);
        let run = Run::new();
        run.hand(&batches[1..2]);
        run.hand(&batches[..2]);
        run.hand(&batches[..2]);
        run.hand(&batches[1..]);
        assert!((0..6).all(|record| run.handed.borrow().iter().any(|origin| origin.place(record).is_some())));
        assert_eq!(run.handed.borrow().len(), 3);
        assert_eq!(run.number_in_source(5), 105);
    }
}
