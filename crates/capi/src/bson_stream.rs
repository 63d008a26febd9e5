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
//! Every document that the source delivered is returned, then the end if the source succeeded, or one error. The limit
//! for a document is the reader's record limit. Documents of a stream are valid until the next non-const call on it. An
//! error about a member has the name of the stream and the number of the record.

use std::ffi::{CString, c_char};
use std::mem::MaybeUninit;

use millstream::bson::{Checking, Documents, OnBad};
use millstream::{Error, ErrorKind, Position, Result};

use crate::boundary::{Condition, c_string, call, choice, chosen, free, given, out};
use crate::bson::{millstream_bson_document, millstream_bson_rules, rules_or_usual};
use crate::error::{millstream_code, millstream_error};
use crate::reader::millstream_reader;

/// Reads consecutive documents. Freed by millstream_bson_documents_free().
pub struct millstream_bson_documents {
    /// `None` once closed.
    documents: Option<Documents>,
    condition: Condition,
    rules: millstream_bson_rules,
    // What C looks at, kept here so that const calls change nothing:
    name: CString,
    found: Vec<millstream_bson_document>,
    position: Position,
    places: Vec<millstream_bson_skipped_place>,
    /// How many places and bytes were skipped.
    skipped: (u64, u64),
}

impl millstream_bson_documents {
    /// Reads the next documents into `found`, and keeps what C may ask for afterwards.
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

/// What to do with an invalid document.
#[repr(u32)]
pub enum millstream_bson_on_bad {
    /// Report an error and end.
    Stop = 0,
    /// Skip it; millstream_bson_documents_skipped() reports where it was. If its length is wrong, the stream searches
    /// for the next bytes that are very likely documents. Documents are checked beforehand.
    Skip = 1,
}

/// When the inside of a document is checked.
#[repr(u32)]
pub enum millstream_bson_checking {
    /// When a value is accessed.
    OnAccess = 0,
    /// Before the document is returned.
    Ahead = 1,
}

choice!(millstream_bson_on_bad is OnBad { Stop => OnBad::Stop, Skip => OnBad::Skip });

choice!(millstream_bson_checking is Checking { OnAccess => Checking::OnAccess, Ahead => Checking::Ahead });

/// A place that was skipped.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct millstream_bson_skipped_place {
    /// Where it begins, in bytes from the start of the stream.
    pub offset: u64,
    /// Its length in bytes.
    pub len: u64,
    /// Which record it was; the first is 0.
    pub record: u64,
    /// What was wrong.
    pub code: millstream_code,
    /// Where, in bytes from the start of the stream.
    pub wrong_at: u64,
}

/// What was skipped.
#[repr(C)]
pub struct millstream_bson_skipped {
    /// How many places.
    pub count: u64,
    /// Their total size in bytes.
    pub bytes: u64,
    /// The first 1,000 of them.
    pub places: *const millstream_bson_skipped_place,
    /// The number of places in this list.
    pub places_count: usize,
}

/// Makes a stream of documents from what `reader` has not delivered yet. It takes ownership of the reader, even if this
/// fails: the caller neither uses nor frees it again.
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

/// The next documents, as many as are available: waits for one, never for a second. `found` is an array of `count`,
/// which is 0 at the end. The documents before a bad one are delivered first.
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

/// What was skipped so far. Its places are valid until the next non-const call on the stream.
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

/// The name of the source in error messages; NULL only for a stream of NULL. Valid until the stream is freed.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_bson_documents_name(documents: Option<&millstream_bson_documents>) -> *const c_char {
    documents.map_or(std::ptr::null(), |documents| documents.name.as_ptr())
}

/// The position of the stream: after the last document delivered, in bytes after decoding, and in records. Each skipped
/// place counts as a record. After closing: the final position.
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

/// Ends the reading at the current position, as millstream_reader_close() does. The stream can still be asked for its
/// position and for what was skipped, and must be freed.
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

/// Frees a stream and its reader, as millstream_reader_free() does. NULL is fine.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_bson_documents_free(documents: Option<Box<millstream_bson_documents>>) {
    free(documents);
}
