//! Pipes, which pass records through your stages to a sink, batch by batch.
//!
//! A stage is a function that gets all items of a batch in one call: the records, or the results of the previous stage.
//! So the overhead of a stage is one call per batch. Items are spans of bytes: parts of the records, without a copy, or
//! new bytes that live as long as the batch.
//!
//! If a stage fails at a record, the error is reported, with the record's number and position, after earlier records
//! have reached the sink. An error of the source is reported after all of its records, and the end means that the
//! source succeeded. Stages may have run on items of the same batch that a later stage drops, or that follow a failing
//! item; millstream_pipe_set_batch() with 1 prevents that.
//!
//! All your functions run on the thread that runs the pipe, while it runs, except for parallel stages and stages before
//! a command (millstream_pipe_through()).

use std::ffi::{CString, c_char, c_void};
use std::mem::{MaybeUninit, replace, take};
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use millstream::frame::Framer;
use millstream::pipe::{
    Attached, BatchMemory, Bytes, Chain, OnError, Pipe, Stage, StageStats, Stats, Stopped, Summary,
};
use millstream::{CancelToken, Command, Error, ErrorKind, Reader, Result, Writer};

use crate::boundary::{Condition, User, bytes, c_string, call, choice, chosen, free, given, invalid, out};
use crate::cancel::millstream_cancel_token;
use crate::command::millstream_command;
use crate::error::{CommandEnds, millstream_code, millstream_command_end, millstream_error};
use crate::frame::millstream_framer;
use crate::reader::millstream_reader;
use crate::writer::millstream_writer;

/// Passes records through stages. It is freed by millstream_pipe_free().
///
/// Add stages and settings before the pipe runs for the first time.
pub struct millstream_pipe {
    state: State,
    condition: Condition,
    /// The destination of the items, which the last stage reads.
    sink: Arc<Mutex<Option<Sink>>>,
    /// Writers lent to the pipe, which refuse other calls until it is freed.
    lent: Vec<NonNull<millstream_writer>>,
    /// Data that C reads.
    ends: CommandEnds,
    stages: Vec<millstream_stage_stats>,
    _names: Vec<CString>,
}

enum State {
    Plan(Box<Plan>),
    Runs(Box<dyn Runs>),
    /// A call that created the pipe from its builder has failed.
    Nothing,
}

/// The builder of the pipe.
pub(crate) struct Plan {
    readers: Vec<Reader>,
    pub(crate) framer: Box<dyn Framer + Send>,
    pub(crate) stages: Vec<Stage>,
    on_error: OnError<'static>,
    cancel: Option<CancelToken>,
    batch: Option<usize>,
    is_measured: bool,
    /// Whether a stage runs on several threads. It passes on items of several batches together, and a `Numbering` is
    /// for the records of one reader.
    /// A stage works on several batches at once, so the pipe has one reader.
    is_alone: bool,
}

/// A pipe with arbitrary stages.
trait Runs: Send {
    fn run(&mut self) -> Result<Summary>;
    fn write_to(&mut self, writer: &mut Writer) -> Result<Summary>;
    fn summary(&self) -> Summary;
    fn stats(&self) -> Stats;
}

impl<C: Chain<Bytes, Out = Bytes> + Send> Runs for Pipe<Attached<'static>, Bytes, C, Bytes> {
    fn run(&mut self) -> Result<Summary> {
        Pipe::run(self)
    }

    fn write_to(&mut self, writer: &mut Writer) -> Result<Summary> {
        Pipe::<Attached<'static>, Bytes, C, Bytes>::write_to(self, writer)
    }

    fn summary(&self) -> Summary {
        Pipe::summary(self)
    }

    fn stats(&self) -> Stats {
        Pipe::stats(self)
    }
}

/// An item between two stages: `len` bytes at `data`, created from the record with this number.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct millstream_span {
    /// The bytes. May be NULL if there are none.
    pub data: *const c_char,
    /// The number of bytes.
    pub len: usize,
    /// The number of the record from which the item was created, counted in the record's own reader as in errors; the
    /// first is 0. A stage passes it on unchanged, so that an error can name the record.
    pub record: u64,
}

// SAFETY: it consists of an address and two numbers; the code that reads the bytes proves that they may be read.
unsafe impl Send for millstream_span {}

/// Record numbers for C, which are counted in their own reader, whereas a pipe counts the records of all readers. The
/// difference is the same for all items of a batch, which are records of one reader.
#[derive(Clone, Copy)]
pub(crate) struct Numbering {
    shift: u64,
}

impl Numbering {
    /// Returns the difference for the batch of these items.
    pub(crate) fn of(items: &[(u64, &[u8])], memory: BatchMemory<'_>) -> Numbering {
        let shift = items.first().map_or(0, |&(record, _)| record.wrapping_sub(memory.number_in_source(record)));
        Numbering { shift }
    }

    /// Converts items for C.
    pub(crate) fn put(self, items: &[(u64, &[u8])], spans: &mut Vec<millstream_span>) {
        spans.clear();
        spans.extend(items.iter().map(|&(record, item)| millstream_span {
            data: item.as_ptr().cast(),
            len: item.len(),
            record: record.wrapping_sub(self.shift),
        }));
    }

    /// Converts an item from C.
    ///
    /// # Safety
    /// The item points to bytes that do not change during `'a`, or has no bytes.
    pub(crate) unsafe fn item<'a>(self, span: millstream_span) -> Result<(u64, &'a [u8])> {
        // SAFETY: guaranteed by the caller.
        let item = unsafe { bytes(span.data.cast(), span.len, "span")? };
        Ok((span.record.wrapping_add(self.shift), item))
    }
}

/// Takes `count` items, at least one, which are valid during the call, and returns the number it has accepted. If it
/// accepts fewer than all, the next item fails with MILLSTREAM_STAGE_FAILED, and the pipe ends.
pub type millstream_sink_callback =
    Option<unsafe extern "C" fn(user: *mut c_void, items: *const millstream_span, count: usize) -> usize>;

/// What happens if a stage fails for a record.
#[repr(u32)]
pub enum millstream_on_error {
    /// The pipe reports the error, after earlier records have reached the sink.
    Stop = 0,
    /// The record is skipped and counted.
    Skip = 1,
}

pub(crate) enum Policy {
    Stop,
    Skip,
}

choice!(millstream_on_error is Policy { Stop => Policy::Stop, Skip => Policy::Skip });

/// The results of a pipe so far.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct millstream_summary {
    /// Records that were read.
    pub records: u64,
    /// Items that the last stage produced.
    pub items: u64,
    /// The number of records at which a stage failed and that were skipped.
    pub failed: u64,
    /// Whether a stage such as millstream_pipe_take() ended the pipe before its sources ended.
    pub ended_early: bool,
}

impl From<&Summary> for millstream_summary {
    fn from(summary: &Summary) -> millstream_summary {
        let Summary { records, items, failed, ended_early, .. } = *summary;
        millstream_summary { records, items, failed, ended_early }
    }
}

/// The measurements of one stage.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct millstream_stage_stats {
    /// Its name.
    pub name: *const c_char,
    /// The number of items that the stage produced.
    pub items: u64,
    /// Their size in bytes.
    pub bytes: u64,
    /// The time inside the stage.
    pub time_ns: u64,
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[derive(Clone, Copy)]
struct Sink {
    function: unsafe extern "C" fn(*mut c_void, *const millstream_span, usize) -> usize,
    user: User,
}

// ---- creating pipes ----

/// Creates a pipe over the records that `framer` finds. It takes ownership of `reader` and `framer`, even if this
/// fails: the caller must neither use nor free them again.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_pipe_new(
    reader: Option<Box<millstream_reader>>,
    framer: Option<Box<millstream_framer>>,
    pipe: Option<&mut MaybeUninit<Box<millstream_pipe>>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        let to = out(pipe, "pipe")?;
        let (reader, framer) = (given(reader, "reader")?.into_core()?, given(framer, "framer")?);
        let plan = Plan {
            readers: vec![reader],
            framer: framer.framer,
            stages: Vec::new(),
            on_error: OnError::Stop,
            cancel: None,
            batch: None,
            is_measured: false,
            is_alone: false,
        };
        to.write(Box::new(millstream_pipe {
            state: State::Plan(Box::new(plan)),
            condition: Condition::default(),
            sink: Arc::default(),
            lent: Vec::new(),
            ends: CommandEnds::default(),
            stages: Vec::new(),
            _names: Vec::new(),
        }));
        Ok(())
    })
}

impl millstream_pipe {
    /// Changes a pipe that has not run yet.
    pub(crate) fn plan<T>(&mut self, act: impl FnOnce(&mut Plan) -> Result<T>) -> Result<T> {
        match &mut self.state {
            State::Plan(plan) => self.condition.during(|| act(plan)),
            _ => Err(invalid("a pipe that has run", "stages and settings before it runs for the first time")),
        }
    }

    /// Lends the pipe a writer, which refuses other calls until the pipe is freed.
    ///
    /// # Safety
    /// The writer exists until the pipe is freed.
    pub(crate) unsafe fn borrow(
        &mut self,
        writer: Option<NonNull<millstream_writer>>,
    ) -> Result<NonNull<millstream_writer>> {
        let mut writer = given(writer, "writer")?;
        self.plan(|_| Ok(()))?;
        // SAFETY: guaranteed by the caller; no other code uses it during this call.
        unsafe { writer.as_mut() }.condition.lend(|| Ok(()))?;
        self.lent.push(writer);
        Ok(writer)
    }

    /// Runs the pipe; the first time, it also creates it.
    fn run(&mut self, act: impl FnOnce(&mut dyn Runs) -> Result<Summary>) -> Result<millstream_summary> {
        self.condition.during(|| {
            if let State::Plan(_) = self.state {
                let State::Plan(plan) = std::mem::replace(&mut self.state, State::Nothing) else { unreachable!() };
                self.state = State::Runs(plan.make(self.sink.clone()));
            }
            let State::Runs(pipe) = &mut self.state else { return Err(Error::new(ErrorKind::Closed)) };
            act(&mut **pipe).map(|summary| (&summary).into())
        })
    }
}

impl Plan {
    /// Adds a stage that works on several batches at once. It cannot be combined with several readers.
    pub(crate) fn add_alone(&mut self, stage: Stage) -> Result<()> {
        self.refuse_several_readers(self.readers.len())?;
        self.is_alone = true;
        self.stages.push(stage);
        Ok(())
    }

    fn refuse_several_readers(&self, count: usize) -> Result<()> {
        match count {
            0 | 1 => Ok(()),
            _ => Err(invalid("a pipe with several readers and a parallel or asynchronous stage", "one of the two")),
        }
    }

    fn make(mut self, sink: Arc<Mutex<Option<Sink>>>) -> Box<dyn Runs> {
        self.stages.push(sink_stage(sink));
        Box::new(self.pipe())
    }

    /// Moves the stages and settings so far before a command, and continues with its output.
    fn through(&mut self, command: Command, framer: Box<dyn Framer + Send>) -> Result<()> {
        let before = Plan {
            readers: take(&mut self.readers),
            framer: replace(&mut self.framer, framer),
            stages: take(&mut self.stages),
            on_error: replace(&mut self.on_error, OnError::Stop),
            cancel: self.cancel.clone(),
            batch: self.batch.take(),
            is_measured: false,
            is_alone: take(&mut self.is_alone),
        };
        self.readers.push(before.pipe().reader_through(command)?);
        Ok(())
    }

    fn pipe(self) -> Pipe<Attached<'static>, Bytes, impl Chain<Bytes, Out = Bytes> + Send, Bytes> {
        let mut pipe = Pipe::merge(self.readers).frames(self.framer).on_error(self.on_error);
        if let Some(token) = &self.cancel {
            pipe = pipe.cancel(token);
        }
        if let Some(most) = self.batch {
            pipe = pipe.batch(most);
        }
        if self.is_measured {
            pipe = pipe.measured();
        }
        pipe.then_all(self.stages)
    }
}

/// Adds the records of another reader and takes ownership of the reader, even if this fails. The readers take turns,
/// one batch at a time, and a reader without data is skipped while another one has some. The records of each reader
/// stay in order. All readers must succeed.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_pipe_merge(
    pipe: Option<&mut millstream_pipe>,
    reader: Option<Box<millstream_reader>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        let reader = given(reader, "reader")?.into_core()?;
        given(pipe, "pipe")?.plan(|plan| {
            if plan.is_alone {
                plan.refuse_several_readers(plan.readers.len() + 1)?;
            }
            plan.readers.push(reader);
            Ok(())
        })
    })
}

/// Sends the items to a command, each followed by the record terminator of the source (a newline for lines), and
/// continues with the records that `framer` finds in the command's output. It takes ownership of `framer`, even if this
/// fails; `command` stays with the caller.
///
/// The command starts now. The stages that were added before, and the readers, run on a thread of the library, with the
/// settings so far; a writer of millstream_pipe_tee() or millstream_pipe_set_quarantine() is used by that thread. Stages
/// and settings that follow are for the command's output. Memory use is bounded: if the command or the later stages are
/// slow, the earlier ones wait. If the command ends before its input, or the pipe is freed, the readers are closed.
///
/// An error of the earlier stages or of their source is reported after all records of the output, and the command gets
/// the end of its input. If the command fails, this is MILLSTREAM_COMMAND_FAILED. If this call fails, the pipe has ended.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_pipe_through(
    pipe: Option<&mut millstream_pipe>,
    command: Option<&millstream_command>,
    framer: Option<Box<millstream_framer>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        let (pipe, framer) = (given(pipe, "pipe")?, given(framer, "framer")?);
        let command = given(command, "command")?.core()?;
        let result = pipe.plan(|plan| plan.through(command, framer.framer));
        if matches!(&pipe.state, State::Plan(plan) if plan.readers.is_empty()) {
            pipe.state = State::Nothing;
        }
        result
    })
}

/// Limits a batch to `records` records; at least 1. By default a batch contains the records that the source has
/// delivered, at most 256 KiB.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_pipe_set_batch(
    pipe: Option<&mut millstream_pipe>,
    records: usize,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        given(pipe, "pipe")?.plan(|plan| {
            plan.batch = Some(records);
            Ok(())
        })
    })
}

/// Sets what happens if a stage fails for a record.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_pipe_set_on_error(
    pipe: Option<&mut millstream_pipe>,
    on_error: MaybeUninit<millstream_on_error>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        let on_error = match chosen(on_error)? {
            Policy::Stop => OnError::Stop,
            Policy::Skip => OnError::Skip,
        };
        given(pipe, "pipe")?.plan(|plan| {
            plan.on_error = on_error;
            Ok(())
        })
    })
}

/// Skips records at which a stage fails, and writes them to `writer` as they were read, with their delimiter.
///
/// The writer is lent to the pipe: until the pipe is freed, it must not be freed, and refuses other calls.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_pipe_set_quarantine(
    pipe: Option<&mut millstream_pipe>,
    writer: Option<NonNull<millstream_writer>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        let pipe = given(pipe, "pipe")?;
        // SAFETY: C lends the writer until the pipe is freed.
        let mut writer = unsafe { pipe.borrow(writer)? };
        pipe.plan(|plan| {
            // SAFETY: as above, and its condition prevents other calls; the reference is dropped with the pipe.
            plan.on_error = OnError::Quarantine(unsafe { &mut writer.as_mut().writer });
            Ok(())
        })
    })
}

/// Stops between two batches when this token is cancelled, with MILLSTREAM_CANCELLED. The pipe can then be run again,
/// and continues at the same position. To interrupt reads of the source as well, also pass the token to the reader.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_pipe_set_cancel(
    pipe: Option<&mut millstream_pipe>,
    token: Option<&millstream_cancel_token>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        let token = given(token, "token")?.0.clone();
        given(pipe, "pipe")?.plan(|plan| {
            plan.cancel = Some(token);
            Ok(())
        })
    })
}

/// Measures the time spent, for millstream_pipe_stats().
#[unsafe(no_mangle)]
pub extern "C" fn millstream_pipe_measure(
    pipe: Option<&mut millstream_pipe>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        given(pipe, "pipe")?.plan(|plan| {
            plan.is_measured = true;
            Ok(())
        })
    })
}

/// Creates the last stage, which passes the items to the current sink.
fn sink_stage(sink: Arc<Mutex<Option<Sink>>>) -> Stage {
    let mut spans = Vec::new();
    Stage::from_batches("sink", move |items, memory, out| {
        let sink = *sink.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(Sink { function, user }) = sink else {
            out.extend_from_slice(items);
            return Ok(());
        };
        Numbering::of(items, memory).put(items, &mut spans);
        // SAFETY: this is a C function, called as documented in the header.
        let taken = unsafe { function(user.pointer(), spans.as_ptr(), spans.len()) }.min(items.len());
        out.extend_from_slice(&items[..taken]);
        if taken < items.len() {
            let error = Error::new(ErrorKind::StageFailed).with_found("the sink does not accept this item");
            return Err(Stopped::ForGood(taken, error));
        }
        Ok(())
    })
}

// ---- running ----

/// Runs the pipe to the end, and passes the items to `sink`, batch by batch; `sink` may be NULL if the stages do
/// everything. `summary`, which may be NULL, is set to the results so far, even after an error.
///
/// After MILLSTREAM_CANCELLED the pipe can be run again, and continues at the same position. After any other error the
/// pipe has ended, and this returns MILLSTREAM_CLOSED. After the end of the pipe, this succeeds and does nothing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_pipe_run(
    pipe: Option<&mut millstream_pipe>,
    sink: millstream_sink_callback,
    user: *mut c_void,
    summary: Option<&mut MaybeUninit<millstream_summary>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        let pipe = given(pipe, "pipe")?;
        let to = pipe.sink.clone();
        let set = |sink| *to.lock().unwrap_or_else(PoisonError::into_inner) = sink;
        let result = pipe.run(|pipe| {
            set(sink.map(|function| Sink { function, user: User(user) }));
            let result = pipe.run();
            set(None);
            result
        });
        pipe.tell(result, summary)
    })
}

/// Runs the pipe to the end like millstream_pipe_run(), and writes each item, followed by the record terminator of the
/// source: a newline for lines. The writer is neither flushed nor closed. If this succeeds, all items have been written
/// to the writer.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_pipe_write_to(
    pipe: Option<&mut millstream_pipe>,
    writer: Option<&mut millstream_writer>,
    summary: Option<&mut MaybeUninit<millstream_summary>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        let (pipe, writer) = (given(pipe, "pipe")?, given(writer, "writer")?);
        let millstream_writer { writer, condition, .. } = writer;
        let result = condition.during(|| pipe.run(|pipe| pipe.write_to(writer)));
        pipe.tell(result, summary)
    })
}

impl millstream_pipe {
    fn tell(
        &self,
        result: Result<millstream_summary>,
        summary: Option<&mut MaybeUninit<millstream_summary>>,
    ) -> Result<()> {
        if let Some(summary) = summary {
            let so_far = match &self.state {
                State::Runs(pipe) => (&pipe.summary()).into(),
                _ => (&Summary::default()).into(),
            };
            summary.write(so_far);
        }
        result.map(drop)
    }
}

/// Returns how each of the sources' commands that are no longer running ended, as an array of `count`, which is valid
/// until the next non-const call on the pipe.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_pipe_command_ends(
    pipe: Option<&mut millstream_pipe>,
    ends: Option<&mut MaybeUninit<*const millstream_command_end>>,
    count: Option<&mut MaybeUninit<usize>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        let (ends, count) = (out(ends, "ends")?, out(count, "count")?);
        let pipe = given(pipe, "pipe")?;
        pipe.condition.during(|| Ok(()))?;
        if let State::Runs(runs) = &pipe.state {
            pipe.ends = CommandEnds::new(runs.summary().commands);
        }
        ends.write(pipe.ends.ends.as_ptr());
        count.write(pipe.ends.ends.len());
        Ok(())
    })
}

/// Returns how the time was spent, if it is measured: the running time of the pipe, the time that the pipe waited for
/// its sources, and the measurements of each stage, including the sink as the last one. The measurements are an array
/// of `count`, which is valid until the next non-const call on the pipe.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_pipe_stats(
    pipe: Option<&mut millstream_pipe>,
    elapsed_ns: Option<&mut MaybeUninit<u64>>,
    source_waited_ns: Option<&mut MaybeUninit<u64>>,
    stages: Option<&mut MaybeUninit<*const millstream_stage_stats>>,
    count: Option<&mut MaybeUninit<usize>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        let (elapsed_ns, source_waited_ns) =
            (out(elapsed_ns, "elapsed_ns")?, out(source_waited_ns, "source_waited_ns")?);
        let (stages, count) = (out(stages, "stages")?, out(count, "count")?);
        let pipe = given(pipe, "pipe")?;
        pipe.condition.during(|| Ok(()))?;
        if let State::Runs(runs) = &pipe.state {
            let stats = runs.stats();
            elapsed_ns.write(nanoseconds(stats.elapsed));
            source_waited_ns.write(nanoseconds(stats.source_waited));
            pipe._names = stats.stages.iter().map(|stage| c_string(&*stage.name)).collect();
            pipe.stages = stats.stages.iter().zip(&pipe._names).map(stage_stats).collect();
        }
        stages.write(pipe.stages.as_ptr());
        count.write(pipe.stages.len());
        Ok(())
    })
}

fn stage_stats((stage, name): (&StageStats, &CString)) -> millstream_stage_stats {
    millstream_stage_stats {
        name: name.as_ptr(),
        items: stage.items,
        bytes: stage.bytes,
        time_ns: nanoseconds(stage.time),
    }
}

/// Frees a pipe, ending it if necessary, and releases the writers lent to it. Commands that are still running are
/// stopped, as by millstream_reader_free(). NULL is accepted.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_pipe_free(pipe: Option<Box<millstream_pipe>>) {
    free(pipe);
}

impl Drop for millstream_pipe {
    fn drop(&mut self) {
        // Other code that uses the writers finishes first.
        self.state = State::Nothing;
        for writer in &mut self.lent {
            // SAFETY: C has lent it until the pipe is freed, and no other code refers to it any more.
            let _ = unsafe { writer.as_mut() }.condition.take_back();
        }
    }
}
