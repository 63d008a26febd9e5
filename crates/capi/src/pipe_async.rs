//! A stage of a pipe that waits for several operations at once, such as requests to a server.
//!
//! For each item, your function starts an operation and returns. The operation reports its result later, from any
//! thread, through a millstream_completion.

use std::ffi::{c_char, c_void};
use std::future::Future;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use millstream::pipe::{Concurrency, Pipe};
use millstream::{Error, ErrorKind, Result};

use crate::boundary::{User, bytes, call, given, invalid, text};
use crate::callback::{UserContext, millstream_release_callback};
use crate::error::{millstream_code, millstream_error};
use crate::pipe::millstream_pipe;
use crate::pipe_stage::reason;

/// The result of an operation: an item, or none.
type Made = Result<Option<Vec<u8>>>;

/// An operation of an asynchronous stage that has not reported its result yet. Exactly one of
/// millstream_completion_pass(), millstream_completion_skip() and millstream_completion_fail() must be called for it,
/// even if the pipe was freed before. That call may come from any thread, and also from the function of the stage itself.
pub struct millstream_completion(Arc<Mutex<Operation>>);

#[derive(Default)]
struct Operation {
    made: Option<Made>,
    waker: Option<Waker>,
}

/// Locks an operation. A panic while it is locked is impossible.
fn lock(operation: &Mutex<Operation>) -> MutexGuard<'_, Operation> {
    operation.lock().unwrap_or_else(PoisonError::into_inner)
}

impl millstream_completion {
    fn complete(self, made: Made) {
        let waker = {
            let mut operation = lock(&self.0);
            operation.made = Some(made);
            operation.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// The result that an operation will report.
struct Pending(Arc<Mutex<Operation>>);

impl Future for Pending {
    type Output = Made;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Made> {
        let mut operation = lock(&self.0);
        match operation.made.take() {
            Some(made) => Poll::Ready(made),
            None => {
                operation.waker = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }
}

/// The function of an asynchronous stage. It gets the `len` bytes of one item, which are valid during the call, starts
/// an operation for it and returns without waiting; the operation completes `completion` later.
///
/// It is called on the thread that runs the pipe. It must not use the pipe, its readers or its writers.
pub type millstream_async_callback = Option<
    unsafe extern "C" fn(user: *mut c_void, item: *const c_char, len: usize, completion: Box<millstream_completion>),
>;

/// Adds a stage that waits for up to `most` operations (at least 1) at the same time, after the existing stages. `user`
/// and `release` are those of millstream_pipe_add_stage().
///
/// If `ordered`, the results are in the order of the items. Otherwise they are passed on as soon as they are ready.
///
/// Memory use is bounded: at most `most` items are in progress, and a slow sink stops the source. A failure is reported
/// after all earlier results have reached the sink; by then, operations may have begun for later items. It cannot be
/// combined with millstream_pipe_merge().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_pipe_add_async(
    pipe: Option<&mut millstream_pipe>,
    name: *const c_char,
    most: usize,
    ordered: bool,
    start: millstream_async_callback,
    user: *mut c_void,
    release: millstream_release_callback,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        let context = UserContext { user: User(user), release };
        // SAFETY: C lends a string for this call.
        let name = unsafe { text(name, "name")? };
        let start = given(start, "start")?;
        let concurrency = match (most, ordered) {
            (0, _) => return Err(invalid("0 operations at the same time", "at least 1")),
            (most, true) => Concurrency::ordered(most),
            (most, false) => Concurrency::unordered(most),
        };
        let operate = move |item: &[u8]| {
            let operation = Arc::new(Mutex::new(Operation::default()));
            let completion = Box::new(millstream_completion(Arc::clone(&operation)));
            // SAFETY: this is a C function, called as documented in the header.
            unsafe { start(context.pointer(), item.as_ptr().cast(), item.len(), completion) };
            Pending(operation)
        };
        let pass = |bytes: &Vec<u8>, out: &mut Vec<u8>| out.extend_from_slice(bytes);
        let stage =
            Pipe::stages().try_map_async(concurrency, operate).filter_map(|made| made).rewrite(pass).boxed(name);
        given(pipe, "pipe")?.plan(|plan| plan.add_alone(stage))
    })
}

/// Completes an operation with the resulting item, whose bytes are copied.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_completion_pass(
    completion: Option<Box<millstream_completion>>,
    data: *const c_void,
    len: usize,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        let completion = given(completion, "completion")?;
        // SAFETY: C lends the bytes for this call.
        let data = unsafe { bytes(data, len, "data") }.map(<[u8]>::to_vec);
        // The pipe must not wait for an operation whose result is refused.
        let refused = data.as_ref().err().map(|error| Error::new(ErrorKind::StageFailed).with_found(error.to_string()));
        completion.complete(refused.map_or_else(|| Ok(data.as_ref().ok().cloned()), Err));
        data.map(drop)
    })
}

/// Completes an operation without a resulting item.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_completion_skip(completion: Option<Box<millstream_completion>>) {
    if let Some(completion) = completion {
        completion.complete(Ok(None));
    }
}

/// Completes an operation that failed, for the reason in `message` (UTF-8, or NULL for none).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_completion_fail(
    completion: Option<Box<millstream_completion>>,
    message: *const c_char,
) {
    if let Some(completion) = completion {
        // SAFETY: C lends a string for this call.
        let message = unsafe { reason(message) };
        let error = Error::new(ErrorKind::StageFailed);
        completion.complete(Err(if message.is_empty() { error } else { error.with_found(message) }));
    }
}
