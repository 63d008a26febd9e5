//! BSON documents, written member by member into reused memory.
//!
//!     millstream_bson_builder *builder;
//!     code = millstream_bson_builder_new(&builder, &error);
//!     ...
//!     millstream_bson_builder_append_text(builder, "name", "Ann", 3, &error);
//!     millstream_bson_builder_open(builder, "scores", 6, MILLSTREAM_BSON_TYPE_ARRAY, &error);
//!     millstream_bson_builder_append_f64(builder, NULL, 1.5, &error);
//!     millstream_bson_builder_close(builder, &error);
//!     millstream_bson_builder_write(builder, writer, &error);
//!
//! Lengths are filled in when documents and arrays are closed, and array keys are numbered automatically. After an
//! error the builder has the state before the call; millstream_bson_builder_rollback() undoes several calls. An error
//! about a value has its path, millstream_error_path(). The inlined functions of bson.h create the values.

use std::ffi::c_char;
use std::mem::MaybeUninit;

use millstream::bson::{
    Builder, Cursor, DateTime, Decimal128, Document, ElementType, FromBson, Mark, ObjectId, Rules, Timestamp, ToBson,
    ValueRef,
};
use millstream::{Error, ErrorKind, Result};

use crate::boundary::{Condition, bytes, call, chosen, free, given, invalid, items, out};
use crate::bson::{millstream_bson_element, millstream_bson_value};
use crate::bson_type::millstream_bson_type;
use crate::error::{millstream_code, millstream_error};
use crate::reader::Span;
use crate::writer::millstream_writer;

/// Writes documents, one after another. It is freed by millstream_bson_builder_free().
pub struct millstream_bson_builder {
    builder: Builder,
    condition: Condition,
}

impl millstream_bson_builder {
    fn with<T>(&mut self, act: impl FnOnce(&mut Builder) -> Result<T>) -> Result<T> {
        self.condition.during(|| act(&mut self.builder))
    }
}

/// A position in a builder's output, to which millstream_bson_builder_rollback() returns. It is plain data, which need
/// not be freed.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct millstream_bson_mark {
    /// The number of bytes.
    pub len: usize,
    /// The number of open documents and arrays.
    pub depth: usize,
}

/// Creates a builder with an empty document.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_bson_builder_new(
    builder: Option<&mut MaybeUninit<Box<millstream_bson_builder>>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        out(builder, "builder")?
            .write(Box::new(millstream_bson_builder { builder: Builder::new(), condition: Condition::default() }));
        Ok(())
    })
}

/// Starts again with an empty document, and keeps the memory.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_bson_builder_clear(
    builder: Option<&mut millstream_bson_builder>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        given(builder, "builder")?.with(|builder| {
            builder.clear();
            Ok(())
        })
    })
}

/// Appends a member to the open document, or with a `key` of NULL a value to the open array. Only the type of the value
/// and the fields of that type are used; `payload` is ignored.
///
/// Returns MILLSTREAM_ARGUMENT_INVALID for a key in an array or a missing key in a document, MILLSTREAM_CLOSED after
/// the document was finished, MILLSTREAM_UTF8_INVALID for invalid text, and MILLSTREAM_VALUE_OUT_OF_RANGE for a key
/// that contains a NUL or a value that BSON cannot represent. Documents and arrays are copied; only their frame is
/// checked.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_bson_builder_append(
    builder: Option<&mut millstream_bson_builder>,
    key: *const c_char,
    key_len: usize,
    value: Option<&millstream_bson_value>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        // SAFETY: C lends key and value for this call.
        let (key, value) = unsafe { (self::key(key, key_len)?, Lent::new(given(value, "value")?)?) };
        given(builder, "builder")?.with(|builder| match key {
            Some(key) => builder.append(key, &value),
            None => builder.push(&value),
        })
    })
}

/// Appends `count` members to the open document, or their values to the open array. `appended`, which may be NULL, is
/// set to the number of appended members. After an error it is the number of members before the invalid one, which stay
/// in the document.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_bson_builder_append_members(
    builder: Option<&mut millstream_bson_builder>,
    members: *const millstream_bson_element,
    count: usize,
    appended: Option<&mut MaybeUninit<usize>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        let mut appended = appended.map(|appended| appended.write(0));
        // SAFETY: C lends an array for this call.
        let members = unsafe { items(members, count, "members")? };
        given(builder, "builder")?.with(|builder| {
            for member in members {
                // SAFETY: C lends keys and values for this call.
                let (key, value) = unsafe { (self::key(member.key, member.key_len)?, Lent::new(&member.value)?) };
                match key {
                    Some(key) if !builder.is_in_array() => builder.append(key, &value)?,
                    _ => builder.push(&value)?,
                }
                if let Some(appended) = &mut appended {
                    **appended += 1;
                }
            }
            Ok(())
        })
    })
}

/// Opens a document or an array, according to `type`, as a member of the open document, or with a `key` of NULL as a
/// value of the open array. It returns MILLSTREAM_TOO_DEEP for more than 200 levels.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_bson_builder_open(
    builder: Option<&mut millstream_bson_builder>,
    key: *const c_char,
    key_len: usize,
    r#type: MaybeUninit<millstream_bson_type>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        // SAFETY: C lends the key for this call.
        let key = unsafe { self::key(key, key_len)? };
        let kind = chosen(r#type)?;
        given(builder, "builder")?.with(|builder| match (key, kind) {
            (Some(key), Some(ElementType::Document)) => builder.open_document(key),
            (Some(key), Some(ElementType::Array)) => builder.open_array(key),
            (None, Some(ElementType::Document)) => builder.push_document(),
            (None, Some(ElementType::Array)) => builder.push_array(),
            _ => Err(invalid("a type that cannot be opened", "a document or an array")),
        })
    })
}

/// Closes the document or array that was opened last.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_bson_builder_close(
    builder: Option<&mut millstream_bson_builder>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || given(builder, "builder")?.with(Builder::close))
}

/// Returns the current position of the builder, for millstream_bson_builder_rollback().
#[unsafe(no_mangle)]
pub extern "C" fn millstream_bson_builder_mark(
    builder: Option<&mut millstream_bson_builder>,
    mark: Option<&mut MaybeUninit<millstream_bson_mark>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        let to = out(mark, "mark")?;
        let Mark { len, depth } = given(builder, "builder")?.with(|builder| Ok(builder.mark()))?;
        to.write(millstream_bson_mark { len, depth });
        Ok(())
    })
}

/// Removes all output after a mark: members, values, and documents or arrays that were opened, even if they have been
/// closed. This scans the documents open at the mark, so it takes longer than an append.
///
/// Returns MILLSTREAM_ARGUMENT_INVALID for a mark that is not between two members of an open document: for example,
/// because a document open at the mark has been closed, or another document was started. In this case no output is
/// removed.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_bson_builder_rollback(
    builder: Option<&mut millstream_bson_builder>,
    mark: Option<&millstream_bson_mark>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        let &millstream_bson_mark { len, depth } = given(mark, "mark")?;
        given(builder, "builder")?.with(|builder| builder.rollback(Mark { len, depth }))
    })
}

/// Ends the document and lends its bytes, until the next call on the builder. Until millstream_bson_builder_clear() the
/// builder accepts no more members. It returns MILLSTREAM_ARGUMENT_INVALID while a document or array in it is open.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_bson_builder_finish(
    builder: Option<&mut millstream_bson_builder>,
    bytes: Option<&mut MaybeUninit<*const c_char>>,
    len: Option<&mut MaybeUninit<usize>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        let bytes = Span::out(bytes, "bytes", len)?;
        given(builder, "builder")?.with(|builder| {
            bytes.set(builder.finish()?);
            Ok(())
        })
    })
}

/// Ends the document, writes it, and starts again with an empty one. After an error of the writer no part of it was
/// accepted, and the call may be repeated.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_bson_builder_write(
    builder: Option<&mut millstream_bson_builder>,
    writer: Option<&mut millstream_writer>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        let millstream_writer { writer, condition, .. } = given(writer, "writer")?;
        given(builder, "builder")?.with(|builder| {
            condition.during(|| writer.write(builder.finish()?))?;
            builder.clear();
            Ok(())
        })
    })
}

/// Frees a builder. NULL is accepted.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_bson_builder_free(builder: Option<Box<millstream_bson_builder>>) {
    free(builder);
}

/// Returns a key, or `None` for null.
///
/// # Safety
/// `key` is null or points to `len` bytes that no caller changes during `'a`.
unsafe fn key<'a>(key: *const c_char, len: usize) -> Result<Option<&'a str>> {
    if key.is_null() {
        return Ok(None);
    }
    // SAFETY: guaranteed by the caller.
    unsafe { text(key, len, "key") }.map(Some)
}

/// Returns text that C lends.
///
/// # Safety
/// The conditions of [`bytes`] apply.
unsafe fn text<'a>(text: *const c_char, len: usize, name: &str) -> Result<&'a str> {
    // SAFETY: guaranteed by the caller.
    let bytes = unsafe { bytes(text.cast(), len, name)? };
    std::str::from_utf8(bytes).map_err(|error| {
        Error::new(ErrorKind::Utf8Invalid)
            .with_found(format!("0x{:02x} at byte {} of a {name}", bytes[error.valid_up_to()], error.valid_up_to()))
            .with_expected("UTF-8")
    })
}

/// Returns exactly `N` bytes, or an error.
fn exactly<const N: usize>(bytes: &[u8], what: &str) -> Result<[u8; N]> {
    bytes.try_into().map_err(|_| invalid(format!("{what} of {} bytes", bytes.len()), format!("{N} bytes")))
}

/// A value that C lends for the duration of a call. It is checked when it is written, so that an error has the path.
struct Lent<'a> {
    value: &'a millstream_bson_value,
    kind: ElementType,
}

impl<'a> Lent<'a> {
    /// # Safety
    /// The conditions of [`value_ref`] apply.
    unsafe fn new(value: &'a millstream_bson_value) -> Result<Lent<'a>> {
        Ok(Lent { value, kind: value.kind()? })
    }
}

impl ToBson for Lent<'_> {
    fn element_type(&self) -> ElementType {
        self.kind
    }

    fn to_bson(&self, out: &mut Vec<u8>) -> Result<()> {
        // SAFETY: guaranteed by the code that created it.
        unsafe { value_ref(self.value)? }.to_bson(out)
    }
}

/// Returns the meaning of a value from C, which C code may have created itself.
///
/// # Safety
/// `bytes` and `more` are null, or point to `len` and `more_len` bytes that no caller changes during `'a`.
unsafe fn value_ref<'a>(value: &millstream_bson_value) -> Result<ValueRef<'a>> {
    use ElementType as T;
    let kind = value.kind()?;
    // SAFETY: guaranteed by the caller.
    let (main, more) =
        unsafe { (bytes(value.bytes.cast(), value.len, "value")?, bytes(value.more.cast(), value.more_len, "value")?) };
    // SAFETY: guaranteed by the caller.
    let text = || unsafe { self::text(value.bytes, value.len, "value") };
    Ok(match kind {
        T::Double => ValueRef::Double(value.number),
        T::String => ValueRef::String(text()?),
        T::Document => ValueRef::Document(Document::new(main)?),
        T::Binary => ValueRef::Binary { subtype: value.subtype, bytes: main },
        T::ObjectId => ValueRef::ObjectId(ObjectId(exactly(main, "an object id")?)),
        T::Bool => ValueRef::Bool(value.integer != 0),
        T::DateTime => ValueRef::DateTime(DateTime(value.integer)),
        T::Regex => ValueRef::Regex {
            pattern: text()?,
            // SAFETY: guaranteed by the caller.
            options: unsafe { self::text(value.more, value.more_len, "value")? },
        },
        T::DbPointer => ValueRef::DbPointer { namespace: text()?, id: ObjectId(exactly(more, "an object id")?) },
        T::Code => ValueRef::Code(text()?),
        T::Symbol => ValueRef::Symbol(text()?),
        T::CodeWithScope => ValueRef::CodeWithScope { code: text()?, scope: Document::new(more)? },
        T::Int32 => ValueRef::Int32(i32::try_from(value.integer).map_err(|_| {
            Error::new(ErrorKind::ValueOutOfRange)
                .with_found(value.integer.to_string())
                .with_expected("a 32-bit integer")
        })?),
        T::Timestamp => ValueRef::Timestamp(Timestamp::from_bits(value.integer as u64)),
        T::Int64 => ValueRef::Int64(value.integer),
        T::Decimal128 => ValueRef::Decimal128(Decimal128(exactly(main, "a decimal number")?)),
        // The bytes are the unchanged payload.
        _ => {
            let mut cursor = Cursor::new(main, Rules::new());
            let found = ValueRef::from_bson(kind, &mut cursor)?;
            if !cursor.rest().is_empty() {
                return Err(invalid(format!("{} bytes", main.len()), format!("the {} of its type", cursor.offset())));
            }
            found
        }
    })
}
