//! The core's memory as Python sees it: read-only, and kept as long as it is referenced.
//!
//! ```text
//! numpy array ─► memoryview ─► Memory ─► owner of the bytes
//! ```
//!
//! This module contains unsafe code because it passes a pointer to Python.

use std::ffi::c_int;
use std::ops::Range;
use std::sync::Arc;

use arrow_buffer::Buffer;
use millstream::bson::Mapped;
use pyo3::ffi;
use pyo3::prelude::*;

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
