//! Columns for other packages, through the Arrow PyCapsule interface: pyarrow, pandas and polars accept them without a
//! copy.

use std::mem::ManuallyDrop;

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

/// The result of `__arrow_c_stream__`.
pub fn stream<'py>(
    py: Python<'py>,
    batches: impl RecordBatchReader + Send + 'static,
) -> PyResult<Bound<'py, PyCapsule>> {
    let batches = Exported(ManuallyDrop::new(batches));
    PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(batches)), c"arrow_array_stream")
}

/// The interpreter lock, taken by a function that a consumer of a stream calls.
///
/// Consumers such as pyarrow may release the lock before such a call. PyO3 does not notice that: if one of our functions
/// is already on the stack, for example one that calls a function in Python, PyO3 assumes that the lock is held.
pub struct Lock(ffi::PyGILState_STATE);

impl Lock {
    pub fn take() -> Lock {
        // SAFETY: the interpreter runs, because it calls the consumer.
        #[allow(unsafe_code)]
        Lock(unsafe { ffi::PyGILState_Ensure() })
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // SAFETY: `take` has taken it on this thread, because the type is not `Send`.
        #[allow(unsafe_code)]
        unsafe {
            ffi::PyGILState_Release(self.0);
        }
    }
}

/// Batches that refer to Python objects, so dropping them needs the lock.
struct Exported<T>(ManuallyDrop<T>);

impl<T> Drop for Exported<T> {
    fn drop(&mut self) {
        // SAFETY: this function has no arguments.
        #[allow(unsafe_code)]
        if unsafe { ffi::Py_IsInitialized() } == 0 {
            return;
        }
        let _lock = Lock::take();
        // SAFETY: they are not used afterwards.
        #[allow(unsafe_code)]
        unsafe {
            ManuallyDrop::drop(&mut self.0);
        }
    }
}

impl<T: RecordBatchReader> Iterator for Exported<T> {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next()
    }
}

impl<T: RecordBatchReader> RecordBatchReader for Exported<T> {
    fn schema(&self) -> SchemaRef {
        self.0.schema()
    }
}
