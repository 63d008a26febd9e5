//! BSON documents that follow each other, from any source: a mongodump file, say, or what a server sends.
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
//! Every document that the source delivered comes, then the end if the source succeeded, or one error. The longest
//! document is the reader's record limit. Documents of a stream are valid until the next call on it that is not const.

use std::mem::MaybeUninit;

use millstream::bson::{Checking, Documents, OnBad};

use crate::boundary::{Condition, call, choice, chosen, free, given, out};
use crate::bson::{millstream_bson_document, millstream_bson_rules, rules_or_usual};
use crate::error::{millstream_code, millstream_error};
use crate::reader::millstream_reader;

/// Reads documents that follow each other. Freed by millstream_bson_documents_free().
pub struct millstream_bson_documents {
    documents: Documents,
    condition: Condition,
    rules: millstream_bson_rules,
    /// What C looks at.
    found: Vec<millstream_bson_document>,
    places: Vec<millstream_bson_skipped_place>,
}

/// What happens at a document that is wrong.
#[repr(u32)]
pub enum millstream_bson_on_bad {
    /// It is an error, and the end.
    Stop = 0,
    /// It is passed over, and millstream_bson_documents_skipped() tells where it was. Where its length is wrong, the next
    /// bytes that cannot well be anything but documents are searched for. Documents are checked ahead.
    Skip = 1,
}

/// When a document's inside is looked at.
#[repr(u32)]
pub enum millstream_bson_checking {
    /// When a value is asked for.
    OnAccess = 0,
    /// Before the document is given.
    Ahead = 1,
}

choice!(millstream_bson_on_bad is OnBad { Stop => OnBad::Stop, Skip => OnBad::Skip });

choice!(millstream_bson_checking is Checking { OnAccess => Checking::OnAccess, Ahead => Checking::Ahead });

/// A place that was passed over.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct millstream_bson_skipped_place {
    /// Where it begins, in bytes from the start of the stream.
    pub offset: u64,
    /// How long it is, in bytes.
    pub len: u64,
    /// Which record it was; the first is 0.
    pub record: u64,
    /// What was wrong.
    pub code: millstream_code,
    /// Where, in bytes from the start of the stream.
    pub wrong_at: u64,
}

/// What was passed over.
#[repr(C)]
pub struct millstream_bson_skipped {
    /// How many places.
    pub count: u64,
    /// How many bytes they have.
    pub bytes: u64,
    /// The first 1,000 of them.
    pub places: *const millstream_bson_skipped_place,
    /// How many of them these are.
    pub places_count: usize,
}

/// Makes a stream of documents of what `reader` has not given yet. It takes the reader over, also if this fails: the
/// caller neither uses nor frees it again.
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
        let documents = Documents::new(reader.into_core()?).rules(rules).on_bad(on_bad).checking(checking);
        made.write(Box::new(millstream_bson_documents {
            documents,
            condition: Condition::default(),
            rules: c_rules,
            found: Vec::new(),
            places: Vec::new(),
        }));
        Ok(())
    })
}

/// The next documents, as many as are there: waits for one, never for a second. `found` is an array of `count`, which is 0
/// at the end. The documents before a bad one are delivered first.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_bson_documents_next(
    documents: Option<&mut millstream_bson_documents>,
    found: Option<&mut MaybeUninit<*const millstream_bson_document>>,
    count: Option<&mut MaybeUninit<usize>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        let (to, count) = (out(found, "found")?, out(count, "count")?);
        let millstream_bson_documents { documents, condition, rules, found, .. } = given(documents, "documents")?;
        condition.during(|| {
            found.clear();
            if let Some(batch) = documents.next_batch()? {
                found.extend(batch.iter().map(|document| millstream_bson_document::new(document, *rules)));
                to.write(found.as_ptr());
                count.write(found.len());
            }
            Ok(())
        })
    })
}

/// What was passed over so far. Its places are valid until the next call on the stream that is not const.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_bson_documents_skipped(
    documents: Option<&mut millstream_bson_documents>,
    skipped: Option<&mut MaybeUninit<millstream_bson_skipped>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        let to = out(skipped, "skipped")?;
        let millstream_bson_documents { documents, places, .. } = given(documents, "documents")?;
        let skipped = documents.skipped();
        places.clear();
        places.extend(skipped.places().iter().map(|place| millstream_bson_skipped_place {
            offset: place.offset,
            len: place.len,
            record: place.record,
            code: place.kind.code(),
            wrong_at: place.wrong_at,
        }));
        to.write(millstream_bson_skipped {
            count: skipped.count(),
            bytes: skipped.bytes(),
            places: places.as_ptr(),
            places_count: places.len(),
        });
        Ok(())
    })
}

/// Frees a stream and its reader, as millstream_reader_free() does. NULL is fine.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_bson_documents_free(documents: Option<Box<millstream_bson_documents>>) {
    free(documents);
}
