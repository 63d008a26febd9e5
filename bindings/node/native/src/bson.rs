//! Checks documents and decodes them into columns. The code is in `millstream-wasm`, which browsers use too.
//!
//! One call passes the documents of a whole batch, and another returns all columns, so there is no call per value.
//! Replies are JSON.

use std::cell::RefCell;

use millstream_wasm::documents::{self, Filler};
use napi::bindgen_prelude::BufferSlice;
use napi_derive::napi;

/// Checks the consecutive documents in these bytes.
#[napi(catch_unwind)]
pub fn check_documents(bytes: BufferSlice) -> String {
    documents::check(&bytes, true)
}

/// Columns that grow by a row for each document.
#[napi]
pub struct NativeColumns {
    filler: RefCell<Filler>,
}

#[napi]
impl NativeColumns {
    /// Creates columns as described by the JSON.
    ///
    /// # Errors
    /// Fails if the JSON is no plan.
    #[napi(constructor)]
    pub fn new(plan: String) -> napi::Result<NativeColumns> {
        let filler = Filler::new(&plan).map_err(|error| napi::Error::from_reason(error.to_string()))?;
        Ok(NativeColumns { filler: RefCell::new(filler) })
    }

    /// Appends the documents in these bytes, until a batch is full.
    #[napi(catch_unwind)]
    pub fn append(&self, bytes: BufferSlice) -> String {
        self.filler.borrow_mut().append(&bytes, true)
    }

    /// Takes the rows, for `fill` to copy out; afterwards there are none.
    #[napi(catch_unwind)]
    pub fn take(&self) -> String {
        self.filler.borrow_mut().take()
    }

    /// Copies the non-empty parts into memory of the same sizes, and drops them. Returns false if a size differs.
    #[napi(catch_unwind)]
    pub fn fill(&self, mut targets: Vec<BufferSlice>) -> bool {
        let mut filler = self.filler.borrow_mut();
        let parts: Vec<&[u8]> = filler.parts().into_iter().filter(|part| !part.is_empty()).collect();
        if parts.len() != targets.len() || parts.iter().zip(&targets).any(|(part, target)| part.len() != target.len()) {
            return false;
        }
        for (target, part) in targets.iter_mut().zip(parts) {
            target.copy_from_slice(part);
        }
        filler.release();
        true
    }
}
