//! Stages of pipes.
//!
//! A stage of yours is a function that is called with many items; others are the library's. Each is given to a pipe before
//! that runs for the first time.

use std::ffi::{c_char, c_void};
use std::mem::MaybeUninit;
use std::ptr::NonNull;

use millstream::pipe::{BatchMemory, Pipe, Stage, Stopped};
use millstream::{Error, ErrorKind, Result, Writer};

use crate::boundary::{User, bytes, call, given, invalid, items, text};
use crate::error::{millstream_code, millstream_error};
use crate::pipe::{Numbering, millstream_pipe, millstream_span};
use crate::reader::millstream_release_callback;
use crate::writer::millstream_writer;

/// What a stage may ask for while it is called: memory for new bytes, more items than there were, and to be told to
/// have failed.
pub struct millstream_stage_scope<'a> {
    memory: BatchMemory<'a>,
    numbering: Numbering,
    put: Vec<(u64, &'a [u8])>,
    failed: Option<(usize, String)>,
}

/// A stage. It is given `*count` items, at least one, writes those that go on over the front of the array, and sets
/// `*count` to how many these are. For a filter and for parts of items that is all. The bytes that a span points to are
/// part of what it was given, or from millstream_stage_keep() or millstream_stage_space(), or stay where and what they
/// are as long as the pipe exists.
///
/// A stage that makes more items than it was given gives all of them to millstream_stage_put(), and leaves none.
///
/// It returns MILLSTREAM_OK; or, if it fails at an item, what millstream_stage_fail() returns, or another code after it
/// has called that, with the items before that one done and counted. What happens then millstream_pipe_set_on_error()
/// says; where records that fail are passed over, the stage is called again with the items behind this one. The code
/// MILLSTREAM_STAGE_PANICKED is the end in any case.
pub type millstream_stage_callback = Option<
    unsafe extern "C" fn(
        user: *mut c_void,
        scope: *mut millstream_stage_scope,
        items: *mut millstream_span,
        count: *mut usize,
    ) -> millstream_code,
>;

/// A pointer of C's that is given back when nobody has it any more.
struct Context {
    user: User,
    release: millstream_release_callback,
}

impl Context {
    /// The pointer. (A method, so that closures capture the whole.)
    fn pointer(&self) -> *mut c_void {
        self.user.pointer()
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        if let Some(release) = self.release {
            // SAFETY: a function of C's, called as the header says.
            unsafe { release(self.user.pointer()) }
        }
    }
}

/// Adds a stage behind those that are there, under a name for statistics. `stage` is called with `user`, which
/// `release` (NULL: nobody) is given once, also if this call fails: when nobody needs it any more.
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
        let context = Context { user: User(user), release };
        // SAFETY: C lends a string for this call.
        let name = unsafe { text(name, "name")? };
        let stage = given(stage, "stage")?;
        let mut spans = Vec::new();
        let stage = Stage::from_batches(name, move |items, memory, out| {
            let numbering = Numbering::of(items, memory);
            numbering.put(items, &mut spans);
            let mut scope = millstream_stage_scope { memory, numbering, put: Vec::new(), failed: None };
            let mut count = spans.len();
            // SAFETY: a function of C's, called as the header says.
            let code = unsafe { stage(context.pointer(), &mut scope, spans.as_mut_ptr(), &mut count) };
            out.append(&mut scope.put);
            let left = spans.get(..count).ok_or_else(|| {
                let found = format!("a stage that leaves {count} of {} items", spans.len());
                Stopped::ForGood(0, invalid(found, "millstream_stage_put() for more items than there were"))
            })?;
            for &span in left {
                // SAFETY: a stage's spans are parts of the batch, or live as long: the header says so.
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

/// What a stage that failed says.
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
        None => Stopped::ForGood(0, error(Some("a stage that failed and did not say where".into()))),
    }
}

/// Of a stage: a copy of `len` bytes, which lives as long as the batch. NULL only if an argument is.
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

/// Of a stage: room for `len` bytes, which lives as long as the batch; what it holds is arbitrary. One call for all new
/// bytes of a batch is cheapest. NULL if `scope` is, or for more than half of the address space.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_stage_space(scope: Option<&mut millstream_stage_scope>, len: usize) -> *mut c_char {
    match scope {
        Some(scope) if len <= isize::MAX as usize => scope.memory.space(len).as_mut_ptr().cast(),
        _ => std::ptr::null_mut(),
    }
}

/// Of a stage: `count` items that go on, before those that are left in the array when the stage returns.
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
            // SAFETY: a stage's spans are parts of the batch, or live as long: the header says so.
            scope.put.push(unsafe { scope.numbering.item(span)? });
        }
        Ok(())
    })
}

/// Of a stage: it has failed at the item with this index of the array it was given, for the reason that `message` says
/// (UTF-8, or NULL for none). Returns MILLSTREAM_STAGE_FAILED, for the stage to return.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_stage_fail(
    scope: Option<&mut millstream_stage_scope>,
    index: usize,
    message: *const c_char,
) -> millstream_code {
    if let Some(scope) = scope {
        // SAFETY: C lends a string for this call.
        let message = unsafe { crate::boundary::string(message, "message") };
        scope.failed = Some((index, message.map(|text| text.to_string_lossy().into_owned()).unwrap_or_default()));
    }
    ErrorKind::StageFailed.code()
}

/// Adds a stage of the library's.
fn add(pipe: Option<&mut millstream_pipe>, stage: Stage) -> Result<()> {
    given(pipe, "pipe")?.plan(|plan| {
        plan.stages.push(stage);
        Ok(())
    })
}

/// Lets the first `count` items through; then the pipe ends, and its sources are closed.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_pipe_take(
    pipe: Option<&mut millstream_pipe>,
    count: u64,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || add(pipe, Pipe::stages().take(count).boxed("take")))
}

/// Lets all but the first `count` items through.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_pipe_skip(
    pipe: Option<&mut millstream_pipe>,
    count: u64,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || add(pipe, Pipe::stages().skip(count).boxed("skip")))
}

/// Where a tee writes to.
struct TeeTo(NonNull<millstream_writer>);

// SAFETY: whoever has the pipe has the writer too, which is lent to it and refuses other calls.
unsafe impl Send for TeeTo {}

impl TeeTo {
    fn writer(&mut self) -> &mut Writer {
        // SAFETY: C lends the writer until the pipe, and with it this, is freed; its condition keeps others from it.
        unsafe { &mut self.0.as_mut().writer }
    }
}

/// Writes each item to `writer` as well, as millstream_pipe_write_to() does.
///
/// The writer is lent to the pipe: until that is freed it is not used otherwise, which is refused, nor freed.
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
