//! A writer that several threads use at the same time.
//!
//! A record is the argument of one call of millstream_shared_writer_write_record(), with its delimiter. Each record is
//! written exactly one time and in one piece. Records of one thread keep their order; records of different threads are
//! in the order in which the calls acquired the lock. Each call acquires a lock, so threads with many small records
//! should collect some of them first.

use std::ffi::c_void;
use std::mem::MaybeUninit;

use millstream::SharedWriter;

use crate::boundary::{bytes, call, free, given, out};
use crate::error::{millstream_code, millstream_error};
use crate::writer::millstream_writer;

/// A writer for several threads, all of which use this one handle. It is freed by millstream_shared_writer_free(), when
/// no thread uses it.
pub struct millstream_shared_writer(SharedWriter);

/// Makes a writer usable by several threads. It takes ownership of `writer`, even if this fails: the caller must
/// neither use nor free it again.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_shared_writer_new(
    writer: Option<Box<millstream_writer>>,
    shared: Option<&mut MaybeUninit<Box<millstream_shared_writer>>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        let mut writer = given(writer, "writer")?;
        let shared = out(shared, "shared")?;
        writer.condition.during(|| Ok(()))?;
        shared.write(Box::new(millstream_shared_writer(writer.writer.shared())));
        Ok(())
    })
}

/// Writes one record of `len` bytes. After an error, no part of it was accepted.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_shared_writer_write_record(
    shared: Option<&millstream_shared_writer>,
    record: *const c_void,
    len: usize,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        // SAFETY: C lends the bytes for this call.
        let record = unsafe { bytes(record, len, "record")? };
        given(shared, "shared")?.0.write_record(record)
    })
}

/// Passes all bytes written so far, by all threads, to the operating system.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_shared_writer_flush(
    shared: Option<&millstream_shared_writer>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || given(shared, "shared")?.0.flush())
}

/// Closes the writer for all threads, as millstream_writer_close() does: their later calls return MILLSTREAM_CLOSED.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_shared_writer_close(
    shared: Option<&millstream_shared_writer>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || given(shared, "shared")?.0.close().map(drop))
}

/// Frees a shared writer. An open writer is closed as far as possible without reporting errors, as by
/// millstream_writer_free(). NULL is accepted.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_shared_writer_free(shared: Option<Box<millstream_shared_writer>>) {
    free(shared);
}
