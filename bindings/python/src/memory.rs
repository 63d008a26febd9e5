//! The core's memory as Python sees it: read-only, and kept as long as it is referenced; and memory of Python that bytes
//! are read into.
//!
//! ```text
//! numpy array ─► memoryview ─► Memory ─► owner of the bytes
//! ```
//!
//! This module contains unsafe code because it passes a pointer to Python.

use std::ffi::c_int;
use std::ops::Range;
use std::ptr::{self, NonNull};
use std::sync::Arc;

use arrow_buffer::Buffer;
use millstream::bson::Mapped;
use pyo3::exceptions::PyMemoryError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// The owner of bytes that never change.
pub enum Owner {
    Bytes(Vec<u8>),
    Offsets(Vec<u32>),
    Buffer(Buffer),
    Mapped(Arc<Mapped>, Range<usize>),
}

/// Bytes that Python can have a view of.
#[pyclass(frozen, module = "millstream._native")]
pub struct Memory(pub Owner);

impl Memory {
    pub fn bytes(&self) -> &[u8] {
        match &self.0 {
            Owner::Bytes(bytes) => bytes,
            Owner::Offsets(offsets) => as_bytes(offsets),
            Owner::Buffer(buffer) => buffer,
            Owner::Mapped(mapped, range) => mapped.as_bytes().get(range.clone()).unwrap_or_default(),
        }
    }
}

fn as_bytes(offsets: &[u32]) -> &[u8] {
    // SAFETY: every byte of a `u32` is a valid `u8`, and both slices have the same size and lifetime.
    unsafe { std::slice::from_raw_parts(offsets.as_ptr().cast(), size_of_val(offsets)) }
}

#[pymethods]
impl Memory {
    unsafe fn __getbuffer__(slf: Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        let bytes = slf.get().bytes();
        let len = isize::try_from(bytes.len())?;
        // SAFETY: Python calls this with a view to be filled in. The bytes are owned by `slf`, which is frozen and of
        // which the view holds a reference; `readonly` is 1, so that no caller writes to them.
        let failed =
            unsafe { ffi::PyBuffer_FillInfo(view, slf.as_ptr(), bytes.as_ptr().cast_mut().cast(), len, 1, flags) };
        if failed != 0 { Err(PyErr::fetch(slf.py())) } else { Ok(()) }
    }
}

/// A bytes object of a known length that is filled without the interpreter lock, before other code sees it.
pub struct Block {
    object: Py<PyBytes>,
    start: NonNull<u8>,
    len: usize,
    filled: usize,
    /// The number of bytes whose pages have been prepared.
    prepared: usize,
}

// SAFETY: `start` points into the memory of `object`, which is Send, and no other code has a reference to it.
unsafe impl Send for Block {}

impl Block {
    /// # Errors
    /// `MemoryError`.
    pub fn new(py: Python<'_>, len: usize) -> PyResult<Block> {
        let size = isize::try_from(len).map_err(|_| PyMemoryError::new_err(()))?;
        // SAFETY: without a source, Python returns a new object of this length whose bytes are not initialised, or null
        // with an exception. The pointer to its bytes stays valid as long as the object.
        let (object, start) = unsafe {
            let object = Bound::from_owned_ptr_or_err(py, ffi::PyBytes_FromStringAndSize(ptr::null(), size))?;
            let start = ffi::PyBytes_AsString(object.as_ptr()).cast();
            (object.cast_into_unchecked::<PyBytes>(), start)
        };
        let start = NonNull::new(start).ok_or_else(|| PyMemoryError::new_err(()))?;
        Ok(Block { object: object.unbind(), start, len, filled: 0, prepared: 0 })
    }

    /// Appends as many of these bytes as fit, and returns their number.
    pub fn append(&mut self, bytes: &[u8]) -> usize {
        let count = bytes.len().min(self.len - self.filled);
        while self.len >= LARGE && self.prepared < self.filled + count {
            let next = self.len.min(self.prepared + PREPARED);
            self.prepare_pages(self.prepared, next);
            self.prepared = next;
        }
        // SAFETY: the object has `len` bytes at `start`, and `filled + count <= len`. No other code has access to them
        // before `finish`, so they do not overlap with `bytes`.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), self.start.as_ptr().add(self.filled), count) };
        self.filled += count;
        count
    }

    /// Returns the bytes so far: without a copy if it is full.
    pub fn finish(self, py: Python<'_>) -> Bound<'_, PyBytes> {
        if self.filled == self.len {
            return self.object.into_bound(py);
        }
        // SAFETY: the first `filled` bytes are initialised, and `object` keeps them valid.
        PyBytes::new(py, unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.filled) })
    }

    /// Lets the system create the pages of this range, which is faster than a page fault for each of them: reading 1 GB
    /// took 1.3 times as long without it. Where this is not supported, nothing changes.
    fn prepare_pages(&self, from: usize, to: usize) {
        #[cfg(target_os = "linux")]
        {
            let skipped = self.start.as_ptr().align_offset(rustix::param::page_size());
            let len = self.len.min(to + skipped).saturating_sub(from + skipped);
            // SAFETY: the range is within the object's memory and begins at a page. The advice changes neither its
            // content nor who may use it.
            let _ = unsafe {
                let first = self.start.as_ptr().wrapping_add(from + skipped).cast();
                rustix::mm::madvise(first, len, rustix::mm::Advice::LinuxPopulateWrite)
            };
        }
        #[cfg(not(target_os = "linux"))]
        let _ = (from, to);
    }
}

/// The length from which on pages are prepared, and how many bytes are prepared at a time: they stay in the cache until
/// they are filled.
const LARGE: usize = 4 << 20;
const PREPARED: usize = 1 << 20;
