//! Consecutive BSON documents from any source, such as a mongodump file or a server.
//!
//!     millstream_bson_documents *documents;
//!     const millstream_bson_document *found;
//!     size_t count, i;
//!     code = millstream_bson_documents_new(reader, NULL, MILLSTREAM_BSON_ON_BAD_STOP,
//!                                          MILLSTREAM_BSON_CHECKING_ON_ACCESS, &documents, &error);
//!     while (code == MILLSTREAM_OK &&
//!            (code = millstream_bson_documents_next(documents, &found, &count, &error)) == MILLSTREAM_OK && count > 0)
//!         for (i = 0; i < count; i++)
//!             use(&found[i]);
//!
//! The stream returns every document that the source delivered, followed by the end if the source succeeded, or by one
//! error. A document may be as long as the reader's record limit. Documents of a stream are valid until the next
//! non-const call on it. An error about a member contains the name of the stream and the number of the record.

use std::ffi::{CString, c_char};
use std::mem::MaybeUninit;

use millstream::bson::{Checking, Documents, OnBad};
use millstream::{Error, ErrorKind, Position, Result};

use crate::boundary::{Condition, c_string, call, choice, chosen, free, given, out};
use crate::bson::{millstream_bson_document, millstream_bson_rules, rules_or_usual};
use crate::error::{millstream_code, millstream_error};
use crate::reader::millstream_reader;

/// Reads consecutive documents. It is freed by millstream_bson_documents_free().
pub struct millstream_bson_documents {
    /// `None` once closed.
    documents: Option<Documents>,
    condition: Condition,
    rules: millstream_bson_rules,
    // Data that C reads, kept here so that const calls do not change it:
    name: CString,
    found: Vec<millstream_bson_document>,
    position: Position,
    places: Vec<millstream_bson_skipped_place>,
    /// The number of places and bytes that were skipped.
    skipped: (u64, u64),
}

impl millstream_bson_documents {
    /// Reads the next documents into `found`, and keeps the data that C may request afterwards.
    fn next(&mut self) -> Result<()> {
        let Some(documents) = &mut self.documents else {
            return Err(Error::new(ErrorKind::Closed).with_name(self.name.to_string_lossy()));
        };
        let read = self.condition.during(|| {
            self.found.clear();
            if let Some(batch) = documents.next_batch()? {
                let first = batch.as_batch().first_record();
                self.found.extend(batch.iter().zip(first..).map(|(document, record)| millstream_bson_document {
                    name: self.name.as_ptr(),
                    record,
                    ..millstream_bson_document::new(document, self.rules)
                }));
            }
            Ok(())
        });
        self.position = documents.reader().position();
        let skipped = documents.skipped();
        if self.skipped.0 != skipped.count() {
            self.skipped = (skipped.count(), skipped.bytes());
            self.places.extend(skipped.places()[self.places.len()..].iter().map(|place| {
                millstream_bson_skipped_place {
                    offset: place.offset,
                    len: place.len,
                    record: place.record,
                    code: place.kind.code(),
                    wrong_at: place.wrong_at,
                }
            }));
        }
        read
    }
}

/// What happens to an invalid document.
#[repr(u32)]
pub enum millstream_bson_on_bad {
    /// An error is reported, and the stream ends.
    Stop = 0,
    /// The document is skipped, and millstream_bson_documents_skipped() reports its position. If its length is wrong,
    /// the stream searches for the next bytes that are very likely documents. Documents are checked before they are
    /// returned.
    Skip = 1,
}

/// When the content of a document is checked.
#[repr(u32)]
pub enum millstream_bson_checking {
    /// When a value is accessed.
    OnAccess = 0,
    /// Before the document is returned.
    Ahead = 1,
}

choice!(millstream_bson_on_bad is OnBad { Stop => OnBad::Stop, Skip => OnBad::Skip });

choice!(millstream_bson_checking is Checking { OnAccess => Checking::OnAccess, Ahead => Checking::Ahead });

/// A skipped place.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct millstream_bson_skipped_place {
    /// Its offset, in bytes from the start of the stream.
    pub offset: u64,
    /// Its length in bytes.
    pub len: u64,
    /// The number of the record; the first is 0.
    pub record: u64,
    /// The code of the error.
    pub code: millstream_code,
    /// The offset of the error, in bytes from the start of the stream.
    pub wrong_at: u64,
}

/// The data that was skipped.
#[repr(C)]
pub struct millstream_bson_skipped {
    /// The number of places.
    pub count: u64,
    /// Their total size in bytes.
    pub bytes: u64,
    /// The first 1,000 places.
    pub places: *const millstream_bson_skipped_place,
    /// The number of places in this list.
    pub places_count: usize,
}

/// Creates a stream of documents from the data that `reader` has not delivered yet. It takes ownership of the reader,
/// even if this fails: the caller must neither use nor free it again.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_bson_documents_new(
    reader: Option<Box<millstream_reader>>,
    rules: Option<&millstream_bson_rules>,
    on_bad: MaybeUninit<millstream_bson_on_bad>,
    checking: MaybeUninit<millstream_bson_checking>,
    documents: Option<&mut MaybeUninit<Box<millstream_bson_documents>>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        let reader = given(reader, "reader")?;
        let made = out(documents, "documents")?;
        let (c_rules, rules) = rules_or_usual(rules)?;
        let (on_bad, checking) = (chosen(on_bad)?, chosen(checking)?);
        let reader = reader.into_core()?;
        let (name, position) = (c_string(reader.name()), reader.position());
        made.write(Box::new(millstream_bson_documents {
            documents: Some(Documents::new(reader).rules(rules).on_bad(on_bad).checking(checking)),
            condition: Condition::default(),
            rules: c_rules,
            name,
            found: Vec::new(),
            position,
            places: Vec::new(),
            skipped: (0, 0),
        }));
        Ok(())
    })
}

/// Returns all documents that are available. It waits only for the first one, never for a second one. `found` is an
/// array of `count` documents; `count` is 0 at the end. The documents before an invalid one are returned first.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_bson_documents_next(
    documents: Option<&mut millstream_bson_documents>,
    found: Option<&mut MaybeUninit<*const millstream_bson_document>>,
    count: Option<&mut MaybeUninit<usize>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        let (to, count) = (out(found, "found")?, out(count, "count")?);
        let documents = given(documents, "documents")?;
        documents.next()?;
        if !documents.found.is_empty() {
            to.write(documents.found.as_ptr());
            count.write(documents.found.len());
        }
        Ok(())
    })
}

/// Returns the data that was skipped so far. Its places are valid until the next non-const call on the stream.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_bson_documents_skipped(
    documents: Option<&millstream_bson_documents>,
    skipped: Option<&mut MaybeUninit<millstream_bson_skipped>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        let to = out(skipped, "skipped")?;
        let documents = given(documents, "documents")?;
        let (count, bytes) = documents.skipped;
        to.write(millstream_bson_skipped {
            count,
            bytes,
            places: documents.places.as_ptr(),
            places_count: documents.places.len(),
        });
        Ok(())
    })
}

/// Returns the name of the source in error messages; NULL only if the stream is NULL. It is valid until the stream is
/// freed.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_bson_documents_name(documents: Option<&millstream_bson_documents>) -> *const c_char {
    documents.map_or(std::ptr::null(), |documents| documents.name.as_ptr())
}

/// Returns the position of the stream after the last document delivered, in bytes after decoding, and in records. Each
/// skipped place counts as a record. After closing, this is the final position.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_bson_documents_position(
    documents: Option<&millstream_bson_documents>,
    bytes: Option<&mut MaybeUninit<u64>>,
    records: Option<&mut MaybeUninit<u64>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        let (bytes, records) = (out(bytes, "bytes")?, out(records, "records")?);
        let position = given(documents, "documents")?.position;
        bytes.write(position.bytes);
        records.write(position.records);
        Ok(())
    })
}

/// Closes the stream at the current position, as millstream_reader_close() does. Its position and the skipped data
/// remain available, and it must still be freed.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_bson_documents_close(
    documents: Option<&mut millstream_bson_documents>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        let millstream_bson_documents { documents, condition, found, name, .. } = given(documents, "documents")?;
        condition.during(|| match documents.take() {
            Some(documents) => {
                found.clear();
                documents.into_reader().close().map(drop)
            }
            None => Err(Error::new(ErrorKind::Closed).with_name(name.to_string_lossy())),
        })
    })
}

/// Frees a stream and its reader, as millstream_reader_free() does. NULL is accepted.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_bson_documents_free(documents: Option<Box<millstream_bson_documents>>) {
    free(documents);
}
