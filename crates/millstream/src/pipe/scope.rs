//! What a chain knows of the batch that it works on, and what it leaves behind.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use bumpalo::Bump;

use super::origin::{Origin, Place};
use crate::error::{Error, ErrorKind};
use crate::frame::Batch;

/// Whether the next item is wanted. `Break` is the end of the chain's work: enough was taken, or something failed.
pub type Flow = ControlFlow<()>;

/// The batch that is being worked on.
#[derive(Clone, Copy)]
pub struct Scope<'a> {
    /// Memory for items that a stage makes; it lives as long as the batch.
    pub(super) arena: &'a Bump,
    /// Where the records come from; absent where a chain begins with values.
    pub(super) batch: Option<Batch<'a>>,
    pub(super) run: &'a Run,
}

impl<'a> Scope<'a> {
    /// Bytes that live as long as the batch.
    pub(super) fn keep(self, bytes: &[u8]) -> &'a [u8] {
        self.arena.alloc_slice_copy(bytes)
    }

    /// A stage could not do its work on this record. Whether to go on.
    #[cold]
    pub(super) fn fail(self, record: u64, error: Error) -> Flow {
        let handed = self.run.handed.borrow();
        let name = self.run.name.borrow();
        let here = || self.batch.and_then(|batch| Place::find(batch, self.run.first.get().0, name.as_ref(), record));
        let place = handed.iter().find_map(|origin| origin.place(record)).or_else(here);
        // What the stage counted, it counted from the start of what it was given.
        let mut error = error.without_offset().with_record(place.as_ref().map_or(record, |place| place.record));
        if let Some(place) = &place {
            error = error.with_offset(place.offset);
        }
        if let Some(name) = place.as_ref().map_or(name.as_ref(), |place| place.name) {
            error = error.with_name(&**name);
        }
        let bytes = match self.run.on_error {
            OnFailure::Stop => None,
            OnFailure::Skip { keep } => place.filter(|_| keep).and_then(|place| place.bytes.map(<[u8]>::to_vec)),
        };
        // A record that is to be kept, and cannot be, must not be passed over.
        let is_lost = bytes.is_none() && self.run.on_error == OnFailure::Skip { keep: true };
        let is_fatal =
            is_lost || error.kind() == ErrorKind::StagePanicked || matches!(self.run.on_error, OnFailure::Stop);
        self.run.failures.borrow_mut().push(Failure { record, error, bytes, is_fatal });
        if is_fatal { Flow::Break(()) } else { Flow::Continue(()) }
    }

    /// Something else than the record failed, such as a sink: the end, whatever the policy.
    #[cold]
    pub(super) fn end(self, record: u64, error: Error) -> Flow {
        self.run.failures.borrow_mut().push(Failure { record, error, bytes: None, is_fatal: true });
        Flow::Break(())
    }

    /// Runs stages; one that panics has failed at the record that it was given. Where nothing panics that costs nothing.
    #[inline]
    pub(super) fn guard(&self, work: impl FnOnce() -> Flow) -> Flow {
        // What the stages hold is not used again: a panic ends the pipe.
        catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| self.fail_by(panic))
    }

    #[cold]
    #[inline(never)]
    fn fail_by(&self, panic: Box<dyn Any + Send>) -> Flow {
        self.fail(self.run.current.get(), panicked(&*panic))
    }
}

/// The error of a stage that panicked.
pub(super) fn panicked(panic: &(dyn Any + Send)) -> Error {
    Error::new(ErrorKind::StagePanicked).with_found(said(panic))
}

/// What a panic said.
fn said(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied().or(panic.downcast_ref::<String>().map(String::as_str));
    text.map_or_else(|| "a panic without a message".to_string(), |text| format!("the panic \"{text}\""))
}

/// What happens at a record that a stage fails at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OnFailure {
    Stop,
    /// Goes on with the next record, and keeps this one's bytes if they are wanted.
    Skip {
        keep: bool,
    },
}

/// What is known while stages run, on one thread.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) on_error: OnFailure,
    /// Whether somebody wants to know where the time goes.
    pub(super) measures: bool,
    /// The name of the source.
    pub(super) name: RefCell<Option<Arc<str>>>,
    /// The batch's first record: its number over all sources, and in its own.
    pub(super) first: Cell<(u64, u64)>,
    /// Where items came from that were held back, and have been handed on since the last batch came.
    pub(super) handed: RefCell<Vec<Arc<Origin>>>,
    /// The record that a stage works on: where a panic was.
    pub(super) current: Cell<u64>,
    /// Where this batch's items come from, once somebody has asked who holds some of them back.
    pub(super) origin: RefCell<Option<Arc<Origin>>>,
    /// What went wrong, until somebody deals with it.
    pub(super) failures: RefCell<Vec<Failure>>,
}

impl Run {
    pub(super) fn new() -> Run {
        Run {
            on_error: OnFailure::Stop,
            measures: false,
            name: RefCell::new(None),
            first: Cell::new((0, 0)),
            handed: RefCell::default(),
            origin: RefCell::default(),
            current: Cell::new(0),
            failures: RefCell::default(),
        }
    }

    /// A batch begins whose first record has these numbers, over all sources and in its own; or there is none, and what is
    /// held is to come out.
    pub(super) fn begin(&mut self, first: (u64, u64)) {
        self.first.set(first);
        self.handed.get_mut().clear();
        *self.origin.get_mut() = None;
    }

    /// Items made of these records are handed on now.
    pub(super) fn hand(&self, origins: &[Arc<Origin>]) {
        let mut handed = self.handed.borrow_mut();
        // Mostly they are those of the item before: all of them, since lots that share a batch differ in the others.
        let same = |(a, b): (&Arc<Origin>, &Arc<Origin>)| Arc::ptr_eq(a, b);
        let is_known = origins.len() <= handed.len() && handed.iter().rev().zip(origins.iter().rev()).all(same);
        if !is_known {
            handed.extend_from_slice(origins);
        }
    }

    /// A record's number in its own source.
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

/// A record that a stage failed at.
#[derive(Debug)]
pub(super) struct Failure {
    /// Its number over all sources.
    pub(super) record: u64,
    pub(super) error: Error,
    /// The record as it was read, where it is wanted and known.
    pub(super) bytes: Option<Vec<u8>>,
    /// Nothing comes after it.
    pub(super) is_fatal: bool,
}
