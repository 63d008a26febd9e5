//! Lines one at a time, for a `for` loop: an iterator whose `__next__` is a function that Python calls directly.
//!
//! It only takes lines that are in the reader's buffer. Everything else (waiting, errors and the end) is the reader's
//! own `__next__`, so that both can be used alternately. A call through PyO3 checks types, tracks the recursion depth,
//! and wraps the result: 59 of 538 instructions for a line of 300 bytes, loop and object included, which decides
//! whether it is as fast as a Python file.
//!
//! Unsafe code: PyO3 does not support this kind of type.

use std::ffi::{c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;
use pyo3::{PyTypeInfo, ffi};

use crate::reader::Reader;

/// The object, as C has it.
#[repr(C)]
struct Lines {
    base: ffi::PyObject,
    /// A reference to a `Reader`, which is held.
    reader: *mut ffi::PyObject,
    /// Its `__next__`.
    next: ffi::iternextfunc,
}

/// An iterator over the lines of this reader.
pub fn iterate<'py>(reader: Bound<'py, Reader>) -> PyResult<Bound<'py, PyAny>> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let py = reader.py();
    let class = CLASS.get_or_try_init(py, || make_class(py))?.bind(py).as_type_ptr();
    // SAFETY: it is the type of this slot, and every `Reader` has the slot, since it has a `__next__`.
    let next = unsafe {
        let slot = ffi::PyType_GetSlot(Reader::type_object_raw(py), ffi::Py_tp_iternext);
        std::mem::transmute::<*mut c_void, ffi::iternextfunc>(slot)
    };
    // SAFETY: `class` is a ready type, of objects as large as `Lines`. A new one is ours alone until it is returned,
    // and all of its fields are written here.
    unsafe {
        let object = ffi::PyType_GenericAlloc(class, 0);
        if let Some(lines) = object.cast::<Lines>().as_mut() {
            lines.reader = reader.into_ptr();
            lines.next = next;
        }
        Bound::from_owned_ptr_or_err(py, object)
    }
}

fn make_class(py: Python<'_>) -> PyResult<Py<PyType>> {
    let slot = |slot, function| ffi::PyType_Slot { slot, pfunc: function };
    let mut slots = [
        slot(ffi::Py_tp_dealloc, dealloc as *mut c_void),
        slot(ffi::Py_tp_traverse, traverse as *mut c_void),
        slot(ffi::Py_tp_iter, ffi::PyObject_SelfIter as *mut c_void),
        slot(ffi::Py_tp_iternext, next as *mut c_void),
        slot(0, ptr::null_mut()),
    ];
    let mut spec = ffi::PyType_Spec {
        name: c"millstream._native.Lines".as_ptr(),
        basicsize: size_of::<Lines>() as i32,
        itemsize: 0,
        flags: (ffi::Py_TPFLAGS_DEFAULT | ffi::Py_TPFLAGS_HAVE_GC | ffi::Py_TPFLAGS_DISALLOW_INSTANTIATION) as u32,
        slots: slots.as_mut_ptr(),
    };
    // SAFETY: the name lives indefinitely, the slots end with a 0 and their functions have the types that Python
    // expects. Only `iterate` makes objects of the type, so their fields are always those it has written.
    let class = unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyType_FromSpec(&mut spec))? };
    Ok(class.cast_into::<PyType>()?.unbind())
}

/// `tp_iternext`: a new reference; or null, with an exception or at the end.
unsafe extern "C" fn next(object: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: Python calls this with an object of the class, whose fields `iterate` has written, and holds a reference to it
    // and the interpreter's lock meanwhile.
    let (py, lines) = unsafe { (Python::assume_attached(), &*object.cast::<Lines>()) };
    // SAFETY: it is a `Reader`, and held for as long as `object` is.
    let reader = unsafe { Borrowed::from_ptr(py, lines.reader).cast_unchecked::<Reader>() };
    let line = catch_unwind(AssertUnwindSafe(|| {
        reader.get().take_buffered(|line| {
            // SAFETY: the bytes are there for so long, and Python copies them.
            unsafe { ffi::PyBytes_FromStringAndSize(line.as_ptr().cast(), line.len() as isize) }
        })
    }));
    match line {
        Ok(Some(line)) => line,
        // SAFETY: it is the reader's own, and called as Python would call it.
        _ => unsafe { (lines.next)(lines.reader) },
    }
}

/// `tp_traverse`: what it holds. There is no `tp_clear`, since the reader drops its references to this.
unsafe extern "C" fn traverse(object: *mut ffi::PyObject, visit: ffi::visitproc, arg: *mut c_void) -> c_int {
    // SAFETY: Python calls this with an object of the class, whose fields are zero until `iterate` has written them, and with
    // a function for the references that the object holds, of which the reader may be null here only.
    unsafe {
        let held = [(*object.cast::<Lines>()).reader, ffi::Py_TYPE(object).cast()];
        held.into_iter()
            .filter(|held| !held.is_null())
            .map(|held| visit(held, arg))
            .find(|told| *told != 0)
            .unwrap_or(0)
    }
}

/// `tp_dealloc`.
unsafe extern "C" fn dealloc(object: *mut ffi::PyObject) {
    // SAFETY: Python calls this once, for an object without references. It is first removed from the
    // collector of cycles; then its references are dropped, and its memory is returned to the allocator that
    // `PyType_GenericAlloc` used; an object of a heap type holds a reference to its type.
    unsafe {
        let class = ffi::Py_TYPE(object);
        ffi::PyObject_GC_UnTrack(object.cast());
        ffi::Py_DECREF((*object.cast::<Lines>()).reader);
        ffi::PyObject_GC_Del(object.cast());
        ffi::Py_DECREF(class.cast());
    }
}
