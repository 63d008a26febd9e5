//! Wakes JavaScript's thread.

use napi::Status;
use napi::bindgen_prelude::Function;
use napi::threadsafe_function::{ThreadsafeFunction, ThreadsafeFunctionCallMode};

/// Calls a function on JavaScript's thread. This does not keep the process alive; the waiting call does.
type Wake = ThreadsafeFunction<(), (), (), Status, false, true>;

/// Returns a function that calls `wake` on JavaScript's thread and does not wait for it.
pub fn waking(wake: Function<(), ()>) -> napi::Result<impl Fn() + Send + Sync + 'static> {
    let wake: Wake = wake.build_threadsafe_function().weak::<true>().build()?;
    // This can fail only if the environment has ended, and then no code waits.
    Ok(move || {
        wake.call((), ThreadsafeFunctionCallMode::NonBlocking);
    })
}
