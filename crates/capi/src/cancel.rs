//! Cancel tokens, which interrupt blocking calls of readers and writers from any thread or signal handler.
//!
//! A blocked call returns MILLSTREAM_CANCELLED immediately, and so does every later call until the token is reset. No
//! data is lost: after the reset the next call continues at the same position.

use std::mem::MaybeUninit;

use millstream::{CancelToken, ErrorKind};

use crate::boundary::{call, free, out};
use crate::error::{millstream_code, millstream_error};

/// A cancel token. It is freed by millstream_cancel_token_free(), even while readers and writers still use it.
pub struct millstream_cancel_token(pub(crate) CancelToken);

/// Creates a token that is not cancelled. It holds two file descriptors.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_cancel_token_new(
    token: Option<&mut MaybeUninit<Box<millstream_cancel_token>>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        out(token, "token")?.write(Box::new(millstream_cancel_token(CancelToken::new()?)));
        Ok(())
    })
}

/// Cancels the token. A signal handler may call this, because it only does one atomic store and one write(2).
#[unsafe(no_mangle)]
pub extern "C" fn millstream_cancel_token_cancel(token: Option<&millstream_cancel_token>) -> millstream_code {
    // This creates no error object and allocates no memory, because a signal handler must not allocate.
    let Some(token) = token else { return ErrorKind::ArgumentInvalid.code() };
    token.0.cancel();
    0
}

/// Returns whether the token is cancelled; false for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_cancel_token_is_cancelled(token: Option<&millstream_cancel_token>) -> bool {
    token.is_some_and(|token| token.0.is_cancelled())
}

/// Makes the token usable again.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_cancel_token_reset(token: Option<&millstream_cancel_token>) -> millstream_code {
    let Some(token) = token else { return ErrorKind::ArgumentInvalid.code() };
    token.0.reset();
    0
}

/// Frees a token. NULL is accepted.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_cancel_token_free(token: Option<Box<millstream_cancel_token>>) {
    free(token);
}
