//! The error for a panic in a function of the program.

use std::any::Any;

use crate::error::{Error, ErrorKind};

/// Returns the error for a stage that panicked.
pub(crate) fn panicked(panic: &(dyn Any + Send)) -> Error {
    Error::new(ErrorKind::StagePanicked).with_found(message(panic))
}

/// Returns the message of a panic.
fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied().or(panic.downcast_ref::<String>().map(String::as_str));
    text.map_or_else(|| "a panic without a message".to_string(), |text| format!("the panic \"{text}\""))
}
