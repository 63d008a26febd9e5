//! Functions that every call across the boundary needs: they convert errors and panics to codes, check pointers, borrow
//! text and bytes that C lends for the duration of a call, and check numbers against their enum.

use std::any::Any;
use std::ffi::{CStr, OsStr, c_char, c_void};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use millstream::{Error, ErrorKind, Result};

use crate::error::{millstream_code, millstream_error};
pub(crate) use crate::memory::{c_string, free, lend};

/// The type that is `millstream_error **` in C.
pub(crate) type ErrorOut<'a> = Option<&'a mut MaybeUninit<Box<millstream_error>>>;

/// Runs `act`, and converts its result or panic to a code. An error is passed to the caller if the caller requested it.
#[inline]
pub(crate) fn call(error: ErrorOut<'_>, act: impl FnOnce() -> Result<()>) -> millstream_code {
    // A panic can leave a handle in an inconsistent state; the handle records that: see `Condition`.
    match catch_unwind(AssertUnwindSafe(act)) {
        Ok(Ok(())) => 0,
        Ok(Err(failure)) => report(failure, error),
        Err(panic) => report(panicked(&*panic), error),
    }
}

/// Runs `act` where its panic cannot become a code, and converts it to an error.
pub(crate) fn caught<T>(act: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(act)).unwrap_or_else(|panic| Err(panicked(&*panic)))
}

#[cold]
fn report(failure: Error, error: ErrorOut<'_>) -> millstream_code {
    let code = failure.code();
    if let Some(error) = error {
        error.write(Box::new(millstream_error::new(failure)));
    }
    code
}

fn panicked(panic: &(dyn Any + Send)) -> Error {
    let text = panic.downcast_ref::<&str>().copied().or(panic.downcast_ref::<String>().map(String::as_str));
    Error::new(ErrorKind::Internal).with_found(format!("a panic: {}", text.unwrap_or("without a message")))
}

/// Whether a handle can be used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Condition {
    #[default]
    Good,
    /// Its window is open: C has pointers into the buffer, which any other call could move.
    Lent,
    /// A call is running. If this is still set when another call begins, the first call has panicked, or the second one
    /// is made from a callback.
    Busy,
}

impl Condition {
    /// Runs `act` on a handle that no other code uses.
    #[inline]
    pub(crate) fn during<T>(&mut self, act: impl FnOnce() -> Result<T>) -> Result<T> {
        self.between(Condition::Good, Condition::Good, act)
    }

    /// Runs `act`, which opens a window if it succeeds.
    pub(crate) fn lend<T>(&mut self, act: impl FnOnce() -> Result<T>) -> Result<T> {
        self.between(Condition::Good, Condition::Lent, act)
    }

    /// Closes the window.
    ///
    /// # Errors
    /// Returns [`ErrorKind::ArgumentInvalid`] if no window is open.
    pub(crate) fn take_back(&mut self) -> Result<()> {
        self.between(Condition::Lent, Condition::Good, || Ok(()))
    }

    /// Closes the window, if one is open, and discards its content.
    pub(crate) fn end_loan(&mut self) {
        if *self == Condition::Lent {
            *self = Condition::Good;
        }
    }

    #[inline]
    fn between<T>(&mut self, from: Condition, to: Condition, act: impl FnOnce() -> Result<T>) -> Result<T> {
        if *self != from {
            return Err(self.refuse());
        }
        *self = Condition::Busy;
        let result = act();
        *self = if result.is_ok() { to } else { from };
        result
    }

    #[cold]
    fn refuse(self) -> Error {
        match self {
            Condition::Good => invalid("no open window", "an open window"),
            Condition::Lent => invalid("an open window", "a call that ends it before other calls"),
            Condition::Busy => Error::new(ErrorKind::Closed).with_found("a handle whose last call has not returned"),
        }
    }
}

/// Returns the error for an invalid argument.
pub(crate) fn invalid(found: impl Into<String>, expected: impl Into<String>) -> Error {
    Error::new(ErrorKind::ArgumentInvalid).with_found(found).with_expected(expected)
}

/// Returns an argument, which must not be null.
#[inline]
pub(crate) fn given<T>(argument: Option<T>, name: &str) -> Result<T> {
    argument.ok_or_else(|| null(name))
}

/// Returns an out-parameter, which must not be null. It is set to zero first, so that it is zero after an error.
#[inline]
pub(crate) fn out<'a, T>(argument: Option<&'a mut MaybeUninit<T>>, name: &str) -> Result<&'a mut MaybeUninit<T>> {
    let argument = given(argument, name)?;
    *argument = MaybeUninit::zeroed();
    Ok(argument)
}

#[cold]
fn null(name: &str) -> Error {
    invalid(format!("a null pointer for `{name}`"), "a pointer")
}

/// Returns `len` bytes that C lends. Null is accepted for 0 bytes.
///
/// # Safety
/// `bytes` is null or points to `len` bytes that no caller changes during `'a`.
#[inline]
pub(crate) unsafe fn bytes<'a>(bytes: *const c_void, len: usize, name: &str) -> Result<&'a [u8]> {
    if len == 0 {
        return Ok(&[]);
    }
    if bytes.is_null() {
        return Err(null(name));
    }
    if len > isize::MAX as usize {
        return Err(invalid(format!("{len} bytes for `{name}`"), "at most half of the address space"));
    }
    // SAFETY: not null, not longer than memory can be, and lent by the caller.
    Ok(unsafe { std::slice::from_raw_parts(bytes.cast(), len) })
}

/// Returns `len` objects that C lends. Null is accepted for 0 objects.
///
/// # Safety
/// `items` is null or points to `len` objects that no caller changes during `'a`.
pub(crate) unsafe fn items<'a, T>(items: *const T, len: usize, name: &str) -> Result<&'a [T]> {
    if len == 0 {
        return Ok(&[]);
    }
    if items.is_null() {
        return Err(null(name));
    }
    if !items.is_aligned() || len > isize::MAX as usize / size_of::<T>().max(1) {
        return Err(invalid(format!("{len} items at {items:p} for `{name}`"), "an array"));
    }
    // SAFETY: not null, aligned, not longer than memory can be, and lent by the caller.
    Ok(unsafe { std::slice::from_raw_parts(items, len) })
}

/// Returns memory for `len` objects that C lends, to be written to.
///
/// # Safety
/// `memory` is null or points to memory for `len` objects that no other code uses during `'a`.
pub(crate) unsafe fn memory<'a, T>(memory: *mut T, len: usize, name: &str) -> Result<&'a mut [MaybeUninit<T>]> {
    if memory.is_null() || !memory.is_aligned() || len == 0 || len > isize::MAX as usize / size_of::<T>().max(1) {
        return Err(invalid(format!("space for {len} objects at {memory:p} for `{name}`"), "space for 1 or more"));
    }
    // SAFETY: not null, aligned, not longer than memory can be, and lent by the caller; it may be uninitialised.
    Ok(unsafe { std::slice::from_raw_parts_mut(memory.cast(), len) })
}

/// Returns a string that C lends, which may contain any bytes.
///
/// # Safety
/// `string` is null or ends with a NUL, and no caller changes it during `'a`.
pub(crate) unsafe fn string<'a>(string: *const c_char, name: &str) -> Result<&'a OsStr> {
    if string.is_null() {
        return Err(null(name));
    }
    // SAFETY: not null, and lent by the caller.
    Ok(OsStr::from_bytes(unsafe { CStr::from_ptr(string) }.to_bytes()))
}

/// Returns a path that C lends.
///
/// # Safety
/// The conditions of [`string`] apply.
pub(crate) unsafe fn path<'a>(path: *const c_char, name: &str) -> Result<&'a Path> {
    // SAFETY: guaranteed by the caller.
    unsafe { string(path, name) }.map(Path::new)
}

/// Returns text that C lends.
///
/// # Safety
/// The conditions of [`string`] apply.
pub(crate) unsafe fn text<'a>(text: *const c_char, name: &str) -> Result<&'a str> {
    // SAFETY: guaranteed by the caller.
    let string = unsafe { string(text, name) }?;
    string.to_str().ok_or_else(|| invalid(format!("{string:?} for `{name}`"), "UTF-8"))
}

/// Takes ownership of a file descriptor.
///
/// # Errors
/// Returns [`ErrorKind::OpenFailed`] if it is not open.
pub(crate) fn own_fd(fd: i32) -> Result<OwnedFd> {
    check_fd(fd)?;
    // SAFETY: it is open, and the caller gives up ownership.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Returns a duplicate of a file descriptor.
///
/// # Errors
/// Returns [`ErrorKind::OpenFailed`] if it is not open, or if the process has no descriptors left.
pub(crate) fn duplicate_fd(fd: i32) -> Result<OwnedFd> {
    check_fd(fd)?;
    // SAFETY: it is open, and used only within this function.
    let fd = unsafe { BorrowedFd::borrow_raw(fd) };
    fd.try_clone_to_owned().map_err(|error| Error::new(ErrorKind::OpenFailed).with_io(error))
}

fn check_fd(fd: i32) -> Result<()> {
    let refuse = |error: rustix::io::Errno| {
        Error::new(ErrorKind::OpenFailed).with_name(format!("file descriptor {fd}")).with_io(error.into())
    };
    if fd < 0 {
        return Err(refuse(rustix::io::Errno::BADF));
    }
    // SAFETY: it is not -1, and is used only to query whether it is open.
    let borrowed = unsafe { BorrowedFd::borrow_raw(fd) };
    rustix::io::fcntl_getfd(borrowed).map(drop).map_err(refuse)
}

/// A pointer from the caller that is passed back to callbacks.
///
/// Handles may move between threads, and so may the data of their callbacks, as the header documents.
#[derive(Clone, Copy)]
pub(crate) struct User(pub(crate) *mut c_void);

// SAFETY: it is only passed back to the caller's own function, and the header documents that threads may differ.
unsafe impl Send for User {}
// SAFETY: as above; here the pointer is only a number.
unsafe impl Sync for User {}

impl User {
    /// Returns the pointer. (This is a method so that closures capture the whole of `self`, which may move between
    /// threads.)
    pub(crate) fn pointer(self) -> *mut c_void {
        self.0
    }
}

/// An enum of the header, and the library's enum for its values.
pub(crate) trait Choice: Sized {
    /// The library's type.
    type Core;
    /// The name in messages.
    const NAME: &'static str;
    /// Returns the library's value for this number.
    fn core(number: u32) -> Option<Self::Core>;
}

/// Implements [`Choice`] for an enum of the header, which is written out for the header's generator.
macro_rules! choice {
    ($name:ident is $core:ty { $($variant:ident => $value:expr),* $(,)? }) => {
        impl $crate::boundary::Choice for $name {
            type Core = $core;
            const NAME: &'static str = stringify!($name);

            fn core(number: u32) -> Option<$core> {
                $(if number == $name::$variant as u32 {
                    return Some($value);
                })*
                None
            }
        }
    };
}
pub(crate) use choice;

/// Returns the meaning of an enum value from C, which may be any number.
///
/// # Errors
/// Returns [`ErrorKind::InvalidOption`] for a value that does not exist.
pub(crate) fn chosen<C: Choice>(value: MaybeUninit<C>) -> Result<C::Core> {
    const { assert!(size_of::<C>() == size_of::<u32>() && align_of::<C>() == align_of::<u32>()) };
    // SAFETY: C has passed a number of this size, and every bit pattern is valid.
    let number = unsafe { std::mem::transmute_copy::<MaybeUninit<C>, u32>(&value) };
    C::core(number).ok_or_else(|| {
        Error::new(ErrorKind::InvalidOption)
            .with_found(number.to_string())
            .with_expected(format!("a value of {}", C::NAME))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{millstream_error_code, millstream_error_message};

    fn message(error: &millstream_error) -> &str {
        // SAFETY: the string belongs to the error, which outlives it.
        unsafe { CStr::from_ptr(millstream_error_message(Some(error))) }.to_str().unwrap()
    }

    #[test]
    fn a_panic_becomes_the_code_20() {
        let mut error = MaybeUninit::uninit();
        assert_eq!(call(Some(&mut error), || panic!("of {} elephants", 3)), 20);
        // SAFETY: a failing call sets it.
        let error = unsafe { error.assume_init() };
        assert_eq!(millstream_error_code(Some(&error)), 20);
        assert!(message(&error).starts_with("internal: found a panic: of 3 elephants"), "{}", message(&error));
        assert_eq!(call(None, || std::panic::panic_any(1)), 20);
        assert_eq!(caught(|| -> Result<()> { panic!("once") }).unwrap_err().code(), 20);
    }

    #[test]
    fn a_handle_whose_call_has_panicked_is_not_used_again() {
        let mut condition = Condition::default();
        assert_eq!(call(None, || condition.during(|| panic!("once"))), 20);
        assert_eq!(call(None, || condition.during(|| Ok(()))), ErrorKind::Closed.code());
    }

    #[test]
    fn a_handle_that_is_lent_refuses_other_calls() {
        let mut condition = Condition::default();
        assert_eq!(condition.take_back().unwrap_err().kind(), ErrorKind::ArgumentInvalid);
        condition.lend(|| Err::<(), _>(Error::new(ErrorKind::Io))).unwrap_err();
        condition.lend(|| Ok(())).unwrap();
        assert_eq!(condition.during(|| Ok(())).unwrap_err().kind(), ErrorKind::ArgumentInvalid);
        assert_eq!(condition.lend(|| Ok(())).unwrap_err().kind(), ErrorKind::ArgumentInvalid);
        condition.take_back().unwrap();
        condition.during(|| Ok(())).unwrap();
    }

    #[test]
    fn an_out_parameter_is_zeroed_first() {
        let mut value = MaybeUninit::new(7_usize);
        out(Some(&mut value), "value").unwrap();
        // SAFETY: its content has been a valid number from the start.
        assert_eq!(unsafe { value.assume_init() }, 0);
        assert_eq!(out::<usize>(None, "value").unwrap_err().found(), Some("a null pointer for `value`"));
    }

    #[test]
    fn invalid_arrays_are_refused() {
        // SAFETY: none of these pointers is ever read.
        unsafe {
            assert_eq!(bytes(std::ptr::null(), 0, "bytes").unwrap(), b"");
            assert_eq!(bytes(std::ptr::null(), 1, "bytes").unwrap_err().kind(), ErrorKind::ArgumentInvalid);
            assert_eq!(bytes(c"x".as_ptr().cast(), usize::MAX, "bytes").unwrap_err().code(), 24);
            assert_eq!(items::<u32>(std::ptr::without_provenance(2), 1, "items").unwrap_err().code(), 24);
            assert_eq!(items::<u32>(std::ptr::without_provenance(4), usize::MAX / 2, "items").unwrap_err().code(), 24);
        }
    }
}
