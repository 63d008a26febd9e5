//! BSON documents that own their memory: mapped files, copies, documents from a reader, and Extended JSON in both
//! directions.
//!
//! The documents that a handle lends are valid until the handle is freed.

use std::ffi::{c_char, c_void};
use std::mem::MaybeUninit;

use millstream::Result;
use millstream::bson::{Document, DocumentBuf, Json, Mapped, Rules, json_to_bson};

use crate::boundary::{bytes, call, choice, chosen, free, given, out, path};
use crate::bson::{in_document, millstream_bson_document, millstream_bson_rules, rules_or_usual};
use crate::bson_type::millstream_bson_type;
use crate::error::{millstream_code, millstream_error};
use crate::reader::{Span, millstream_reader};
use crate::writer::millstream_writer;

/// A document with its memory. It is freed by millstream_bson_owned_free().
pub struct millstream_bson_owned {
    memory: Memory,
    rules: millstream_bson_rules,
    /// A document, or a copied array.
    kind: MaybeUninit<millstream_bson_type>,
}

enum Memory {
    Mapped(Mapped),
    Vector(DocumentBuf),
}

impl millstream_bson_owned {
    fn new(memory: Memory, rules: millstream_bson_rules) -> Box<millstream_bson_owned> {
        Box::new(millstream_bson_owned { memory, rules, kind: MaybeUninit::new(millstream_bson_type::Document) })
    }

    fn document(&self) -> Result<Document<'_>> {
        match &self.memory {
            Memory::Mapped(mapped) => mapped.document(),
            Memory::Vector(buffer) => Ok(buffer.document()),
        }
    }
}

/// Returns to C a document whose memory `make` creates according to the rules.
fn give(
    owned: Option<&mut MaybeUninit<Box<millstream_bson_owned>>>,
    rules: Option<&millstream_bson_rules>,
    make: impl FnOnce(Rules) -> Result<Memory>,
) -> Result<()> {
    let owned = out(owned, "owned")?;
    let (c_rules, rules) = rules_or_usual(rules)?;
    owned.write(millstream_bson_owned::new(make(rules)?, c_rules));
    Ok(())
}

/// The two forms of Extended JSON. Both are accepted when reading, even mixed.
#[repr(u32)]
pub enum millstream_bson_json {
    /// Numbers are JSON numbers, and dates in the years 1970 to 9999 are text: 1, {"$date":"1970-01-01T00:00:00Z"}.
    Relaxed = 0,
    /// Every type is kept: {"$numberInt":"1"}, {"$date":{"$numberLong":"0"}}.
    Canonical = 1,
}

choice!(millstream_bson_json is Json { Relaxed => Json::Relaxed, Canonical => Json::Canonical });

/// Maps a file of one or more documents. Bytes are read only when they are accessed, so this takes the same time for
/// any size. No process may shrink or change the file while it is mapped: accessing bytes that no longer exist kills
/// the process with SIGBUS.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_bson_mapped(
    path: *const c_char,
    rules: Option<&millstream_bson_rules>,
    owned: Option<&mut MaybeUninit<Box<millstream_bson_owned>>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        give(owned, rules, |rules| {
            // SAFETY: C lends a string for this call.
            Mapped::with_rules(unsafe { self::path(path, "path")? }, rules).map(Memory::Mapped)
        })
    })
}

/// Copies the document in these `len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_bson_copy(
    bytes: *const c_void,
    len: usize,
    rules: Option<&millstream_bson_rules>,
    owned: Option<&mut MaybeUninit<Box<millstream_bson_owned>>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        give(owned, rules, |rules| {
            // SAFETY: C lends the bytes for this call.
            let bytes = unsafe { self::bytes(bytes, len, "bytes")? };
            DocumentBuf::with_rules(bytes.to_vec(), rules).map(Memory::Vector)
        })
    })
}

/// Copies a document, with its rules and its offset. The copy is an outermost document: paths begin in it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_bson_copy_document(
    document: Option<&millstream_bson_document>,
    owned: Option<&mut MaybeUninit<Box<millstream_bson_owned>>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        let owned = out(owned, "owned")?;
        // SAFETY: C lends the document's memory for this call.
        let copy = unsafe { in_document(document, |document| Ok(DocumentBuf::from(document)))? };
        let &millstream_bson_document { rules, r#type: kind, .. } = given(document, "document")?;
        owned.write(Box::new(millstream_bson_owned { memory: Memory::Vector(copy), rules, kind }));
        Ok(())
    })
}

/// Reads one document of at most `limit` bytes, and leaves the reader after it. `owned` is NULL at the end of the
/// stream. The memory grows as bytes arrive, regardless of the length that the document claims. For a longer document,
/// this returns MILLSTREAM_MEMORY_LIMIT.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_bson_read(
    reader: Option<&mut millstream_reader>,
    limit: usize,
    rules: Option<&millstream_bson_rules>,
    owned: Option<&mut MaybeUninit<Option<Box<millstream_bson_owned>>>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        let owned = out(owned, "owned")?;
        let (c_rules, rules) = rules_or_usual(rules)?;
        let read = given(reader, "reader")?.with(|reader| DocumentBuf::read_by(reader, rules, limit))?;
        owned.write(read.map(|buffer| millstream_bson_owned::new(Memory::Vector(buffer), c_rules)));
        Ok(())
    })
}

/// Creates a document from Extended JSON, canonical, relaxed or mixed. It returns MILLSTREAM_TEXT_INVALID with the path
/// and the offset in the text, which is a few bytes after the error.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_bson_from_json(
    text: *const c_char,
    len: usize,
    rules: Option<&millstream_bson_rules>,
    owned: Option<&mut MaybeUninit<Box<millstream_bson_owned>>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        give(owned, rules, |rules| {
            let mut bytes = Vec::new();
            // SAFETY: C lends the text for this call.
            json_to_bson(unsafe { self::bytes(text.cast(), len, "text")? }, rules, &mut bytes)?;
            DocumentBuf::with_rules(bytes, rules).map(Memory::Vector)
        })
    })
}

/// Returns the document; for a mapped file, the first one. For a mapped file the rules decide whether bytes may follow
/// the document; millstream_bson_owned_bytes() returns all of them for millstream_bson_borrow_first().
#[unsafe(no_mangle)]
pub extern "C" fn millstream_bson_owned_document(
    owned: Option<&millstream_bson_owned>,
    document: Option<&mut MaybeUninit<millstream_bson_document>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        let document = out(document, "document")?;
        let owned = given(owned, "owned")?;
        let found = millstream_bson_document::new(owned.document()?, owned.rules);
        document.write(millstream_bson_document { r#type: owned.kind, ..found });
        Ok(())
    })
}

/// Returns all bytes; for a mapped file, the bytes of all documents.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_bson_owned_bytes(
    owned: Option<&millstream_bson_owned>,
    bytes: Option<&mut MaybeUninit<*const c_char>>,
    len: Option<&mut MaybeUninit<usize>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        let all = Span::out(bytes, "bytes", len)?;
        match &given(owned, "owned")?.memory {
            Memory::Mapped(mapped) => all.set(mapped.as_bytes()),
            Memory::Vector(buffer) => all.set(buffer.as_bytes()),
        }
        Ok(())
    })
}

/// Returns MILLSTREAM_SOURCE_SHRANK if a mapped file has become shorter. Other documents cannot shrink.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_bson_owned_check_length(
    owned: Option<&millstream_bson_owned>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || match &given(owned, "owned")?.memory {
        Memory::Mapped(mapped) => mapped.check_length(),
        Memory::Vector(_) => Ok(()),
    })
}

/// Writes a document as Extended JSON, on one line without a line end. After an error, no part of it was accepted.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_bson_write_json(
    document: Option<&millstream_bson_document>,
    form: MaybeUninit<millstream_bson_json>,
    writer: Option<&mut millstream_writer>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        let form = chosen(form)?;
        // SAFETY: C lends the document's memory.
        let text = unsafe { in_document(document, |document| document.to_json(form))? };
        let millstream_writer { writer, condition, .. } = given(writer, "writer")?;
        condition.during(|| writer.write(text.as_bytes()))
    })
}

/// Frees a document with its memory. NULL is accepted.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_bson_owned_free(owned: Option<Box<millstream_bson_owned>>) {
    free(owned);
}
