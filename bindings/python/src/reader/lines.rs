//! Lines one at a time, for a `for` loop: an iterator whose `__next__` is a function that Python calls directly.
//!
//! It takes only lines that are in the reader's buffer. The reader's own `__next__` handles everything else (waiting,
//! errors and the end), so both can be used alternately. A call through PyO3 checks types, tracks the recursion depth,
//! and wraps the result. This costs 59 of 538 instructions for a line of 300 bytes, loop and object included, and
//! decides whether the loop is as fast as a loop over a Python file.
//!
//! Unsafe code: PyO3 does not support this kind of type.

use std::ffi::{c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;
use pyo3::{PyTypeInfo, ffi};

use super::Reader;

/// The object, in C's layout.
#[repr(C)]
struct Lines {
    base: ffi::PyObject,
    /// A strong reference to a `Reader`.
    reader: *mut ffi::PyObject,
    /// The reader's `__next__`.
    next: ffi::iternextfunc,
}

/// Returns an iterator over the lines of this reader.
pub fn iterate<'py>(reader: Bound<'py, Reader>) -> PyResult<Bound<'py, PyAny>> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let py = reader.py();
    let class = CLASS.get_or_try_init(py, || make_class(py))?.bind(py).as_type_ptr();
    // SAFETY: this is the type of the slot, and every `Reader` has the slot, since it has a `__next__`.
    let next = unsafe {
        let slot = ffi::PyType_GetSlot(Reader::type_object_raw(py), ffi::Py_tp_iternext);
        std::mem::transmute::<*mut c_void, ffi::iternextfunc>(slot)
    };
    // SAFETY: `class` is a ready type, of objects as large as `Lines`. No other code has access to the new object until
    // it is returned, and all of its fields are written here.
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
    // SAFETY: the name is static, the slots end with a 0 and their functions have the types that Python expects. Only
    // `iterate` creates objects of the type, so their fields always have the values that it has written.
    let class = unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyType_FromSpec(&mut spec))? };
    Ok(class.cast_into::<PyType>()?.unbind())
}

/// `tp_iternext`: a new reference; or null, with an exception or at the end.
unsafe extern "C" fn next(object: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: Python calls this with an object of the class, whose fields `iterate` has written, and holds a reference to it
    // and the interpreter's lock meanwhile.
    let (py, lines) = unsafe { (Python::assume_attached(), &*object.cast::<Lines>()) };
    // SAFETY: it is a `Reader`, and `object` holds a reference to it.
    let reader = unsafe { Borrowed::from_ptr(py, lines.reader).cast_unchecked::<Reader>() };
    let line = catch_unwind(AssertUnwindSafe(|| {
        reader.get().take_buffered(|line| {
            // SAFETY: the bytes are valid during this call, and Python copies them.
            unsafe { ffi::PyBytes_FromStringAndSize(line.as_ptr().cast(), line.len() as isize) }
        })
    }));
    match line {
        Ok(Some(line)) => line,
        // SAFETY: the function is the reader's own, and it is called as Python would call it.
        _ => unsafe { (lines.next)(lines.reader) },
    }
}

/// `tp_traverse`: visits the references. There is no `tp_clear`, because the reader drops its references to this
/// object.
unsafe extern "C" fn traverse(object: *mut ffi::PyObject, visit: ffi::visitproc, arg: *mut c_void) -> c_int {
    // SAFETY: Python calls this with an object of the class, whose fields are zero until `iterate` has written them,
    // and with a function for the references that the object holds. The reference to the reader can be null only here.
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
