//! Stages of pipes.
//!
//! Your own stage is a function that is called with many items; the library provides other stages. Add each stage to a
//! pipe before the pipe runs for the first time.
//!
//! For expensive work, millstream_pipe_add_parallel() adds a stage that several threads run at once. For work that
//! waits, millstream_pipe_add_async() adds one that waits for several operations at once.

use std::ffi::{c_char, c_void};
use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::sync::Arc;

use millstream::pipe::{BatchMemory, Pipe, Stage, Stopped, Threads};
use millstream::{Error, ErrorKind, Result, Writer};

use crate::boundary::{User, bytes, call, given, invalid, items, text};
use crate::callback::{UserContext, millstream_release_callback};
use crate::error::{millstream_code, millstream_error};
use crate::pipe::{Numbering, millstream_pipe, millstream_span};
use crate::writer::millstream_writer;

/// The services for a stage during a call: memory for new bytes, additional items, and reporting a failure.
pub struct millstream_stage_scope<'a> {
    memory: BatchMemory<'a>,
    numbering: Numbering,
    put: Vec<(u64, &'a [u8])>,
    failed: Option<(usize, String)>,
}

/// A stage. The function gets `*count` items, at least one, writes the resulting items to the front of the array, and
/// sets `*count` to their number. This is enough for a filter, or a stage that passes on parts of items. The bytes of a
/// span are part of the input, or come from millstream_stage_keep() or millstream_stage_space(), or stay unchanged at
/// their address for the lifetime of the pipe.
///
/// If a stage creates more items than it got, it passes all of them to millstream_stage_put(), and sets `*count` to 0.
///
/// It returns MILLSTREAM_OK. If it fails at an item, it returns the result of millstream_stage_fail(), or another code
/// after calling that function; the earlier items must be processed and counted. millstream_pipe_set_on_error() decides
/// what happens next; if failing records are skipped, the stage is called again with the items after this one. The code
/// MILLSTREAM_STAGE_PANICKED always ends the pipe.
pub type millstream_stage_callback = Option<
    unsafe extern "C" fn(
        user: *mut c_void,
        scope: *mut millstream_stage_scope,
        items: *mut millstream_span,
        count: *mut usize,
    ) -> millstream_code,
>;

/// Adds a stage after the existing ones, under a name for statistics. `stage` is called with `user`; `release` (which
/// may be NULL) is called with `user` exactly one time, when `user` is no longer needed, even if this call fails.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_pipe_add_stage(
    pipe: Option<&mut millstream_pipe>,
    name: *const c_char,
    stage: millstream_stage_callback,
    user: *mut c_void,
    release: millstream_release_callback,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        let context = UserContext { user: User(user), release };
        // SAFETY: C lends a string for this call.
        let name = unsafe { text(name, "name")? };
        let stage = given(stage, "stage")?;
        let mut spans = Vec::new();
        let stage = Stage::from_batches(name, move |items, memory, out| {
            let numbering = Numbering::of(items, memory);
            numbering.put(items, &mut spans);
            let mut scope = millstream_stage_scope { memory, numbering, put: Vec::new(), failed: None };
            let mut count = spans.len();
            // SAFETY: this is a C function, called as documented in the header.
            let code = unsafe { stage(context.pointer(), &mut scope, spans.as_mut_ptr(), &mut count) };
            out.append(&mut scope.put);
            let left = spans.get(..count).ok_or_else(|| {
                let found = format!("a stage that leaves {count} of {} items", spans.len());
                Stopped::ForGood(0, invalid(found, "millstream_stage_put() for additional items"))
            })?;
            for &span in left {
                // SAFETY: a stage's spans are parts of the batch, or live as long as the batch, as the header requires.
                let item = unsafe { numbering.item(span) };
                out.push(item.map_err(|error| Stopped::ForGood(0, error))?);
            }
            match (code, scope.failed) {
                (0, None) => Ok(()),
                (code, failed) => Err(stopped(code, failed)),
            }
        });
        given(pipe, "pipe")?.plan(|plan| {
            plan.stages.push(stage);
            Ok(())
        })
    })
}

/// The services for a parallel stage during a call: the resulting item, and reporting a failure.
pub struct millstream_item_scope {
    made: Option<Vec<u8>>,
    failed: Option<String>,
}

/// A parallel stage. It gets the `len` bytes of one item, which are valid during the call, and passes the resulting item
/// to millstream_item_append(); if it does not call that function, the item is dropped.
///
/// It is called from threads of the library, and from the thread that runs the pipe, by several of them at once: `user`
/// and everything else that it uses must be safe to use by several threads. The threads of the library do not handle
/// signals. It must not use the pipe, its readers or its writers.
///
/// It returns MILLSTREAM_OK. If it fails, it returns the result of millstream_item_fail(), or another code.
pub type millstream_item_callback = Option<
    unsafe extern "C" fn(
        user: *mut c_void,
        scope: *mut millstream_item_scope,
        item: *const c_char,
        len: usize,
    ) -> millstream_code,
>;

/// Adds a stage that `threads` threads (at least 1, including the caller's) run at once, after the existing stages. The
/// source, all other stages and the sink stay on the thread that runs the pipe. `user` and `release` are those of
/// millstream_pipe_add_stage(); `release` may be called from any of the threads.
///
/// If `ordered`, the results are in the order of the items. Otherwise they are passed on as soon as they are ready.
///
/// Memory use is bounded: at most about twice as many chunks of up to 64 KiB are in progress as there are threads, plus
/// their results, and a slow sink stops the source. A failure is reported after all earlier results have reached the
/// sink; by then, the stage may have run on later items. After millstream_pipe_write_to() has failed, close the writer to
/// keep these results. The threads end with the pipe: freeing it waits for calls of
/// `stage`. It cannot be combined with millstream_pipe_merge().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_pipe_add_parallel(
    pipe: Option<&mut millstream_pipe>,
    name: *const c_char,
    threads: usize,
    ordered: bool,
    stage: millstream_item_callback,
    user: *mut c_void,
    release: millstream_release_callback,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        let context = Arc::new(UserContext { user: User(user), release });
        // SAFETY: C lends a string for this call.
        let name = unsafe { text(name, "name")? };
        let stage = given(stage, "stage")?;
        let threads = match (threads, ordered) {
            (0, _) => return Err(invalid("0 threads", "at least 1")),
            (count, true) => Threads::ordered(count),
            (count, false) => Threads::unordered(count),
        };
        let work = move |item: &[u8]| -> Result<Option<Vec<u8>>> {
            let mut scope = millstream_item_scope { made: None, failed: None };
            // SAFETY: this is a C function, called as documented in the header; C allows calls from several threads.
            let code = unsafe { stage(context.pointer(), &mut scope, item.as_ptr().cast(), item.len()) };
            if code == 0 && scope.failed.is_none() {
                return Ok(scope.made);
            }
            let error = Error::new(ErrorKind::from_code(code).unwrap_or(ErrorKind::StageFailed));
            Err(match scope.failed.filter(|message| !message.is_empty()) {
                Some(message) => error.with_found(message),
                None => error,
            })
        };
        let pass = |bytes: &Vec<u8>, out: &mut Vec<u8>| out.extend_from_slice(bytes);
        let stages =
            Pipe::stages().parallel(threads, |stages| stages.try_map(work).filter_map(|made| made).rewrite(pass));
        let stage = stages.boxed(name);
        given(pipe, "pipe")?.plan(|plan| plan.add_alone(stage))
    })
}

/// For a parallel stage: appends bytes to the resulting item, which exists after the first call, even of 0 bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_item_append(
    scope: Option<&mut millstream_item_scope>,
    data: *const c_void,
    len: usize,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        // SAFETY: C lends the bytes for this call.
        let bytes = unsafe { bytes(data, len, "data")? };
        given(scope, "scope")?.made.get_or_insert_default().extend_from_slice(bytes);
        Ok(())
    })
}

/// For a parallel stage: reports that it failed at its item, for the reason in `message` (UTF-8, or NULL for none).
/// Returns MILLSTREAM_STAGE_FAILED, for the stage to return.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_item_fail(
    scope: Option<&mut millstream_item_scope>,
    message: *const c_char,
) -> millstream_code {
    if let Some(scope) = scope {
        // SAFETY: C lends a string for this call.
        scope.failed = Some(unsafe { reason(message) });
    }
    ErrorKind::StageFailed.code()
}

/// Returns a message of C, which is empty if there is none.
///
/// # Safety
/// `message` is null or a string that ends with a NUL.
pub(crate) unsafe fn reason(message: *const c_char) -> String {
    // SAFETY: guaranteed by the caller.
    let message = unsafe { crate::boundary::string(message, "message") };
    message.map(|text| text.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Returns the message of a failed stage.
#[cold]
fn stopped(code: millstream_code, failed: Option<(usize, String)>) -> Stopped {
    let kind = ErrorKind::from_code(code).unwrap_or(ErrorKind::StageFailed);
    let error = |message: Option<String>| match message {
        Some(message) => Error::new(kind).with_found(message),
        None => Error::new(kind),
    };
    match failed {
        Some((item, message)) if kind != ErrorKind::StagePanicked => {
            Stopped::AtItem(item, error(Some(message).filter(|message| !message.is_empty())))
        }
        Some((item, message)) => Stopped::ForGood(item, error(Some(message).filter(|message| !message.is_empty()))),
        None => Stopped::ForGood(0, error(Some("the stage did not report at which item".into()))),
    }
}

/// For a stage: returns a copy of `len` bytes, which lives as long as the batch. Returns NULL only if an argument is
/// NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_stage_keep(
    scope: Option<&mut millstream_stage_scope>,
    data: *const c_void,
    len: usize,
) -> *const c_char {
    // SAFETY: C lends the bytes for this call.
    match (scope, unsafe { bytes(data, len, "data") }) {
        (Some(scope), Ok(bytes)) => scope.memory.keep(bytes).as_ptr().cast(),
        _ => std::ptr::null(),
    }
}

/// For a stage: returns space for `len` bytes, which lives as long as the batch; its content is arbitrary. One call for
/// all new bytes of a batch is the cheapest. Returns NULL if `scope` is NULL, or for more than half of the address
/// space.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_stage_space(scope: Option<&mut millstream_stage_scope>, len: usize) -> *mut c_char {
    match scope {
        Some(scope) if len <= isize::MAX as usize => scope.memory.space(len).as_mut_ptr().cast(),
        _ => std::ptr::null_mut(),
    }
}

/// For a stage: adds `count` resulting items, before those left in the array when the stage returns.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_stage_put(
    scope: Option<&mut millstream_stage_scope>,
    items: *const millstream_span,
    count: usize,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        let scope = given(scope, "scope")?;
        // SAFETY: C lends the array for this call.
        for &span in unsafe { self::items(items, count, "items")? } {
            // SAFETY: a stage's spans are parts of the batch, or live as long as the batch, as the header requires.
            scope.put.push(unsafe { scope.numbering.item(span)? });
        }
        Ok(())
    })
}

/// For a stage: reports that it failed at the item with this index of the array it got, for the reason in `message`
/// (UTF-8, or NULL for none). Returns MILLSTREAM_STAGE_FAILED, for the stage to return.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_stage_fail(
    scope: Option<&mut millstream_stage_scope>,
    index: usize,
    message: *const c_char,
) -> millstream_code {
    if let Some(scope) = scope {
        // SAFETY: C lends a string for this call.
        scope.failed = Some((index, unsafe { reason(message) }));
    }
    ErrorKind::StageFailed.code()
}

/// Adds a stage of the library.
fn add(pipe: Option<&mut millstream_pipe>, stage: Stage) -> Result<()> {
    given(pipe, "pipe")?.plan(|plan| {
        plan.stages.push(stage);
        Ok(())
    })
}

/// Passes on the first `count` items. After that, the pipe ends, and its sources are closed.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_pipe_take(
    pipe: Option<&mut millstream_pipe>,
    count: u64,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || add(pipe, Pipe::stages().take(count).boxed("take")))
}

/// Passes on all but the first `count` items.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_pipe_skip(
    pipe: Option<&mut millstream_pipe>,
    count: u64,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || add(pipe, Pipe::stages().skip(count).boxed("skip")))
}

/// The writer of a tee.
struct TeeTo(NonNull<millstream_writer>);

// SAFETY: the pipe and the writer move together, because the writer is lent to the pipe and refuses other calls.
unsafe impl Send for TeeTo {}

impl TeeTo {
    fn writer(&mut self) -> &mut Writer {
        // SAFETY: C lends the writer until the pipe, and with it this stage, is freed; its condition prevents other
        // use.
        unsafe { &mut self.0.as_mut().writer }
    }
}

/// Writes each item to `writer` as well, as millstream_pipe_write_to() does.
///
/// The writer is lent to the pipe: until the pipe is freed, it must not be freed, and refuses other calls.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_pipe_tee(
    pipe: Option<&mut millstream_pipe>,
    writer: Option<NonNull<millstream_writer>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        let pipe = given(pipe, "pipe")?;
        // SAFETY: C lends the writer until the pipe is freed.
        let mut to = TeeTo(unsafe { pipe.borrow(writer)? });
        pipe.plan(|plan| {
            let terminator = plan.framer.terminator().to_vec();
            plan.stages.push(Stage::from_batches("tee", move |items, _, out| {
                for (index, &(record, item)) in items.iter().enumerate() {
                    let written = millstream::put!(to.writer(), item, &terminator[..]);
                    written.map_err(|error| Stopped::ForGood(index, error))?;
                    out.push((record, item));
                }
                Ok(())
            }));
            Ok(())
        })
    })
}
