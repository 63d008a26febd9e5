//! BSON documents, read in place.
//!
//! A millstream_bson_document is plain data, and so is a millstream_bson_value: they contain pointers into the
//! document's memory. They are copied like any struct and need not be freed, and they are valid while that memory is
//! valid and unchanged. Values are parsed only on request, and results are not cached.
//!
//!     millstream_bson_document document;
//!     millstream_bson_element members[64];
//!     size_t at = 0, count, i;
//!     code = millstream_bson_borrow(bytes, len, NULL, &document, &error);
//!     while (code == MILLSTREAM_OK &&
//!            (code = millstream_bson_members(&document, &at, members, 64, &count, &error)) == MILLSTREAM_OK &&
//!            count > 0)
//!         for (i = 0; i < count; i++)
//!             if (members[i].value.type == MILLSTREAM_BSON_TYPE_INT64)
//!                 use(members[i].key, members[i].key_len, members[i].value.integer);
//!
//! All functions of this section take documents and values as const and keep no state, so any number of threads may use
//! them at the same time. Each function takes the document that contains the value, so that an error has the path of
//! keys, millstream_error_path(), and the offset.
//!
//! Invalid data fails with MILLSTREAM_DOCUMENT_INVALID, MILLSTREAM_DOCUMENT_TRUNCATED, MILLSTREAM_TOO_DEEP or
//! MILLSTREAM_UTF8_INVALID wherever it is found; millstream_bson_check() checks all bytes. The inlined getters of
//! bson.h (millstream_bson_as_i64() and similar functions) convert a value to a C type.

use std::ffi::{CStr, c_char, c_void};
use std::mem::MaybeUninit;
use std::ptr::null;

use millstream::bson::{
    Array, Cursor, Document, ElementType, FromBson, Layout, Parts, Rules, Strictness, Timestamp, Utf8, ValueRef,
    split_path,
};
use millstream::{Error, ErrorKind, Result};

use crate::boundary::{Choice, bytes, call, choice, chosen, given, invalid, items, lend, memory, out, text};
use crate::bson_type::millstream_bson_type;
use crate::error::{millstream_code, millstream_error};

impl Choice for millstream_bson_type {
    type Core = Option<ElementType>;
    const NAME: &'static str = "millstream_bson_type";

    fn core(number: u32) -> Option<Option<ElementType>> {
        match u8::try_from(number).ok()? {
            0 => Some(None),
            byte => ElementType::from_byte(byte).map(Some),
        }
    }
}

/// Which deviations from the format are accepted. Deviations that prevent reading are never accepted.
#[repr(u32)]
#[derive(Clone, Copy)]
pub enum millstream_bson_strictness {
    /// Keys of arrays are ignored, and keys may repeat: the first one is found.
    Standard = 0,
    /// Like STANDARD, and also accepts bytes after a document, booleans other than 0 and 1, and a wrong inner length of
    /// the old binary subtype.
    Lenient = 1,
    /// Keys of arrays must be "0", "1", and so on, and no key may repeat within a document.
    Strict = 2,
}

/// What happens if text or a key is not UTF-8.
#[repr(u32)]
#[derive(Clone, Copy)]
pub enum millstream_bson_utf8 {
    /// The function returns MILLSTREAM_UTF8_INVALID.
    Checked = 0,
    /// The bytes of keys, strings, code and symbols are returned unchanged. Extended JSON has U+FFFD instead.
    Lossy = 1,
}

choice!(millstream_bson_strictness is Strictness {
    Standard => Strictness::Standard, Lenient => Strictness::Lenient, Strict => Strictness::Strict
});

choice!(millstream_bson_utf8 is Utf8 { Checked => Utf8::Checked, Lossy => Utf8::Lossy });

/// What is accepted when a document is read. A struct of zeros means the default rules, and so does NULL where rules
/// are expected.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct millstream_bson_rules {
    /// The maximum nesting depth of documents and arrays, including the outermost: 200 if this is 0, at most 1,000.
    pub depth: u32,
    /// Which deviations are accepted.
    pub strictness: MaybeUninit<millstream_bson_strictness>,
    /// What happens if text is not UTF-8.
    pub utf8: MaybeUninit<millstream_bson_utf8>,
}

/// The default rules: all zeros.
const USUAL: millstream_bson_rules =
    millstream_bson_rules { depth: 0, strictness: MaybeUninit::zeroed(), utf8: MaybeUninit::zeroed() };

impl millstream_bson_rules {
    pub(crate) fn core(&self) -> Result<Rules> {
        let rules = Rules::new().strictness(chosen(self.strictness)?).utf8(chosen(self.utf8)?);
        Ok(if self.depth == 0 { rules } else { rules.depth(self.depth.min(1000) as u16) })
    }
}

/// Returns the rules that C passes, or the default rules.
pub(crate) fn rules_or_usual(rules: Option<&millstream_bson_rules>) -> Result<(millstream_bson_rules, Rules)> {
    let rules = rules.copied().unwrap_or(USUAL);
    Ok((rules, rules.core()?))
}

/// A document in place, created by the functions below. If `bytes` is NULL, the struct contains no document.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct millstream_bson_document {
    /// Its bytes, including the length and the terminator.
    pub bytes: *const c_char,
    /// The number of bytes, at least 5.
    pub len: usize,
    /// Its offset, in bytes from the start of its stream, or of the outermost document if it is not from a stream.
    pub offset: u64,
    /// The start of the outermost document, which is this one or contains it.
    pub root: *const c_char,
    /// The name of its stream in error messages, or NULL if it does not come from a stream.
    pub name: *const c_char,
    /// The number of its record in the stream; the first is 0.
    pub record: u64,
    /// The remaining nesting depth, including this document.
    pub depth_left: u32,
    /// MILLSTREAM_BSON_TYPE_ARRAY for an array, whose paths begin with a position. Any other value means a document.
    pub r#type: MaybeUninit<millstream_bson_type>,
    /// The rules for reading it.
    pub rules: millstream_bson_rules,
}

/// A value in place. Its type determines which fields are used; the others are 0.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct millstream_bson_value {
    /// Its type.
    pub r#type: MaybeUninit<millstream_bson_type>,
    /// The kind of a binary's bytes; 0 means any bytes, 4 a UUID.
    pub subtype: u8,
    /// The remaining nesting depth.
    pub depth_left: u16,
    /// An integer; a boolean, 1 or 0; a date, in milliseconds since 1970, UTC; or a timestamp, which has the seconds
    /// since 1970 in its upper 32 bits, and in the lower ones a counter within that second.
    pub integer: i64,
    /// A double.
    pub number: f64,
    /// Text, without the NUL after it; bytes, for the old subtype 2 without the inner length; the pattern of a regular
    /// expression; the namespace of a pointer; JavaScript; or the payload of any other type: a document or an array,
    /// which millstream_bson_enter() opens, the 12 bytes of an object id, the 16 bytes of a decimal number, the lowest
    /// first.
    pub bytes: *const c_char,
    /// The number of bytes.
    pub len: usize,
    /// The options of a regular expression; the object id of a pointer, 12 bytes; the document that JavaScript runs
    /// with.
    pub more: *const c_char,
    /// The number of bytes.
    pub more_len: usize,
    /// All bytes of the value after its key, including lengths and terminators. Types without a value have no bytes.
    pub payload: *const c_char,
    /// The number of bytes.
    pub payload_len: usize,
}

/// A member of a document, or an element of an array.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct millstream_bson_element {
    /// Its key, followed by a NUL.
    pub key: *const c_char,
    /// The length of the key.
    pub key_len: usize,
    /// Its value.
    pub value: millstream_bson_value,
}

/// Numbers stored in a document as a binary.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct millstream_bson_numbers {
    /// The first number, or NULL if there are no numbers. Each number begins with its lowest byte.
    pub items: *const c_void,
    /// The number of items.
    pub count: usize,
    /// Whether the numbers can be used in place as a C array. If not, they are not aligned, or the CPU is big-endian,
    /// and they have to be copied with memcpy().
    pub usable: bool,
}

impl millstream_bson_document {
    /// Returns the view of a document for C, without a stream.
    pub(crate) fn new(document: Document<'_>, rules: millstream_bson_rules) -> millstream_bson_document {
        let parts = document.parts();
        millstream_bson_document {
            bytes: lend(document.as_bytes()),
            len: document.len(),
            offset: parts.offset,
            root: lend(parts.root),
            name: null(),
            record: 0,
            depth_left: parts.depth_left.into(),
            r#type: MaybeUninit::new(millstream_bson_type::Document),
            rules,
        }
    }

    /// Returns the document that C passes.
    ///
    /// # Safety
    /// From `root` to `len` bytes after `bytes` there is memory that no caller changes during `'a`, if `bytes` is not
    /// null.
    unsafe fn core<'a>(&self) -> Result<Document<'a>> {
        if self.bytes.is_null() {
            return Err(invalid("an empty document", "a document"));
        }
        let start = self.bytes.addr().checked_sub(self.root.addr());
        let Some((start, len)) = start.and_then(|start| Some((start, start.checked_add(self.len)?))) else {
            return Err(invalid("a document before the one that contains it", "a document made by this library"));
        };
        // SAFETY: guaranteed by the caller.
        let root = unsafe { bytes(self.root.cast(), len, "document")? };
        let depth_left = self.depth_left.min(1000) as u16;
        Document::from_parts(Parts { root, start, offset: self.offset, depth_left }, self.rules.core()?)
    }

    /// Returns whether it is an array.
    fn is_array(&self) -> Result<bool> {
        Ok(chosen(self.r#type)? == Some(ElementType::Array))
    }

    /// Adds the stream's name and the record to an error, if the document is from a stream.
    ///
    /// # Safety
    /// `name` is null or a string.
    #[cold]
    unsafe fn locate(&self, error: Error) -> Error {
        if self.name.is_null() {
            return error;
        }
        // SAFETY: guaranteed by the caller.
        let name = unsafe { CStr::from_ptr(self.name) }.to_string_lossy();
        error.with_name(name).with_record(self.record)
    }
}

/// Runs a function on the document that C passes, and adds the stream's name and the record to its error.
///
/// # Safety
/// The conditions of [`millstream_bson_document::core`] apply, and the name is null or a string.
pub(crate) unsafe fn in_document<'a, T>(
    document: Option<&millstream_bson_document>,
    act: impl FnOnce(Document<'a>) -> Result<T>,
) -> Result<T> {
    let document = given(document, "document")?;
    // SAFETY: guaranteed by the caller.
    unsafe { document.core().and_then(act).map_err(|error| document.locate(error)) }
}

impl millstream_bson_value {
    /// No value.
    const NOTHING: millstream_bson_value = millstream_bson_value {
        r#type: MaybeUninit::new(millstream_bson_type::Nothing),
        subtype: 0,
        depth_left: 0,
        integer: 0,
        number: 0.0,
        bytes: null(),
        len: 0,
        more: null(),
        more_len: 0,
        payload: null(),
        payload_len: 0,
    };

    /// Returns its type.
    ///
    /// # Errors
    /// Returns [`ErrorKind::KeyMissing`] if there is no value.
    pub(crate) fn kind(&self) -> Result<ElementType> {
        chosen(self.r#type)?
            .ok_or_else(|| Error::new(ErrorKind::KeyMissing).with_found("no value").with_expected("a value"))
    }

    /// Returns the document inside it, and its kind.
    fn enter<'a>(&self, document: &Document<'a>) -> Result<(millstream_bson_type, Document<'a>)> {
        self.read(document, |kind, cursor| {
            Ok(match kind {
                ElementType::Document => (millstream_bson_type::Document, Document::from_bson(kind, cursor)?),
                ElementType::Array => (millstream_bson_type::Array, Array::from_bson(kind, cursor)?.as_document()),
                _ => match ValueRef::from_bson(kind, &mut cursor.clone())? {
                    ValueRef::CodeWithScope { scope, .. } => (millstream_bson_type::Document, scope),
                    _ => return Err(cursor.mismatch(kind, "a document, an array or a scope")),
                },
            })
        })
    }

    /// Reads the value again, in its document.
    fn read<'a, T>(
        &self,
        document: &Document<'a>,
        read: impl FnOnce(ElementType, &mut Cursor<'a>) -> Result<T>,
    ) -> Result<T> {
        let kind = self.kind()?;
        // This is only a number until `read_at` has checked it.
        let at = self.payload.addr().wrapping_sub(document.as_bytes().as_ptr().addr());
        document.read_at(at, self.depth_left, |cursor| read(kind, cursor))
    }
}

/// Returns a type for C: both tables use the numbers of the format.
fn c_type(kind: ElementType) -> MaybeUninit<millstream_bson_type> {
    // SAFETY: it is a number of this size, and any value is valid.
    unsafe { std::mem::transmute::<u32, MaybeUninit<millstream_bson_type>>(u32::from(kind as u8)) }
}

impl<'a> FromBson<'a> for millstream_bson_value {
    fn from_bson(kind: ElementType, cursor: &mut Cursor<'a>) -> Result<millstream_bson_value> {
        use ElementType as T;
        let (rest, start) = (cursor.rest(), cursor.offset());
        let mut value = millstream_bson_value {
            r#type: c_type(kind),
            depth_left: cursor.depth_left(),
            ..millstream_bson_value::NOTHING
        };
        let mut main: Option<&[u8]> = None;
        let mut more: Option<&[u8]> = None;
        match kind {
            T::Double => value.number = cursor.f64()?,
            T::Int32 => value.integer = cursor.i32()?.into(),
            T::Int64 | T::DateTime => value.integer = cursor.i64()?,
            T::Timestamp => value.integer = Timestamp::from_bson(kind, cursor)?.to_bits() as i64,
            T::Bool => value.integer = cursor.bool()?.into(),
            _ => match kind.layout() {
                Layout::Text => {
                    main = Some(cursor.clone().string_bytes()?);
                    cursor.text()?; // applies the rules
                }
                Layout::Binary => {
                    let (subtype, bytes) = cursor.binary()?;
                    (value.subtype, main) = (subtype, Some(bytes));
                }
                Layout::TwoCStrings => {
                    main = Some(cursor.cstr()?.as_bytes());
                    more = Some(cursor.cstr()?.as_bytes());
                }
                Layout::TextAndId => {
                    main = Some(cursor.str()?.as_bytes());
                    more = cursor.rest().get(..12);
                    cursor.skip(T::ObjectId)?;
                }
                Layout::TextAndDocument => {
                    let mut inside = cursor.code_with_scope()?;
                    main = Some(inside.str()?.as_bytes());
                    more = Some(inside.rest());
                }
                // These types have no payload.
                Layout::Fixed(0) => {}
                // The payload is returned unchanged.
                Layout::Fixed(_) | Layout::Bool | Layout::Document => {
                    cursor.skip(kind)?;
                    main = Some(&rest[..cursor.offset() - start]);
                }
            },
        }
        let lent = |bytes: Option<&[u8]>| bytes.map_or((null(), 0), |bytes| (lend(bytes), bytes.len()));
        (value.bytes, value.len) = lent(main);
        (value.more, value.more_len) = lent(more);
        (value.payload, value.payload_len) = lent(Some(&rest[..cursor.offset() - start]));
        Ok(value)
    }
}

// ---- documents ----

/// Returns to C the document that `find` finds in bytes.
///
/// # Safety
/// There are `len` bytes, and no caller changes them during `'a`, which lasts while C uses the document.
unsafe fn borrow<'a>(
    bytes: *const c_void,
    len: usize,
    rules: Option<&millstream_bson_rules>,
    document: Option<&mut MaybeUninit<millstream_bson_document>>,
    find: impl FnOnce(&'a [u8], Rules) -> Result<Document<'a>>,
) -> Result<()> {
    let document = out(document, "document")?;
    let (c_rules, rules) = rules_or_usual(rules)?;
    // SAFETY: guaranteed by the caller.
    let bytes = unsafe { self::bytes(bytes, len, "bytes")? };
    document.write(millstream_bson_document::new(find(bytes, rules)?, c_rules));
    Ok(())
}

/// Borrows the document that consists of these `len` bytes. Only its frame is checked: the length and the terminator.
///
/// If bytes follow the document, this also returns MILLSTREAM_DOCUMENT_INVALID, unless the rules are lenient.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_bson_borrow(
    bytes: *const c_void,
    len: usize,
    rules: Option<&millstream_bson_rules>,
    document: Option<&mut MaybeUninit<millstream_bson_document>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    // SAFETY: C lends the bytes, for longer than this call.
    call(error, || unsafe { borrow(bytes, len, rules, document, Document::with_rules) })
}

/// Borrows the document at the front of these `len` bytes: `document->len` is the offset of the next document, if there
/// is one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_bson_borrow_first(
    bytes: *const c_void,
    len: usize,
    rules: Option<&millstream_bson_rules>,
    document: Option<&mut MaybeUninit<millstream_bson_document>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    // SAFETY: C lends the bytes, for longer than this call.
    call(error, || unsafe {
        borrow(bytes, len, rules, document, |bytes, rules| Document::first(bytes, rules).map(|(first, _)| first))
    })
}

/// Checks every byte: types, lengths, terminators, UTF-8, depth, and the requirements of the rules.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_bson_check(
    document: Option<&millstream_bson_document>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    // SAFETY: C lends the document's memory.
    call(error, || unsafe { in_document(document, |document| document.check()) })
}

/// Opens the document or array in `value`, or the scope of a code with scope.
///
/// Returns MILLSTREAM_SHAPE_MISMATCH for other types.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_bson_enter(
    document: Option<&millstream_bson_document>,
    value: Option<&millstream_bson_value>,
    inner: Option<&mut MaybeUninit<millstream_bson_document>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        let inner = out(inner, "inner")?;
        let value = given(value, "value")?;
        // SAFETY: C lends the document's memory.
        let (kind, found) = unsafe { in_document(document, |document| value.enter(&document))? };
        let outer = given(document, "document")?;
        inner.write(millstream_bson_document {
            name: outer.name,
            record: outer.record,
            r#type: MaybeUninit::new(kind),
            ..millstream_bson_document::new(found, outer.rules)
        });
        Ok(())
    })
}

// ---- values ----

/// Iterates over the members of a document, or the elements of an array, many at a time. `at` is the position to
/// continue from, in bytes from the start of the document: 0 at first, then set to the next member. `count` is set to
/// the number of `elements` filled, at most `most`; 0 means the end. The members before an invalid one are returned
/// first.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_bson_members(
    document: Option<&millstream_bson_document>,
    at: Option<&mut usize>,
    elements: *mut millstream_bson_element,
    most: usize,
    count: Option<&mut MaybeUninit<usize>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        let count = out(count, "count")?;
        let at = given(at, "at")?;
        // SAFETY: C lends the memory for this call.
        let space = unsafe { self::memory(elements, most, "elements")? };
        let fill = |document: Document<'_>| {
            let lossy = document.rules() == document.rules().utf8(Utf8::Lossy);
            let (mut filled, mut next) = (0, *at);
            let failed = document
                .members_from(*at, |kind, key, cursor| {
                    if !lossy {
                        cursor.key_text(key)?;
                    }
                    let value = millstream_bson_value::from_bson(kind, cursor)?;
                    space[filled].write(millstream_bson_element { key: lend(key), key_len: key.len(), value });
                    filled += 1;
                    next = value.payload.addr() + value.payload_len - document.as_bytes().as_ptr().addr();
                    Ok(filled < space.len())
                })
                .map(|end| next = end)
                .err();
            match failed {
                Some(error) if filled == 0 => Err(error),
                _ => Ok((next, filled)),
            }
        };
        // SAFETY: C lends the document's memory.
        let (next, filled) = unsafe { in_document(document, fill)? };
        *at = next;
        count.write(filled);
        Ok(())
    })
}

/// Looks up the member of this name; if there are several, the first one. `found` is set to whether the member exists.
/// If `found` is NULL and the member does not exist, this returns MILLSTREAM_KEY_MISSING. In an array this also looks
/// up a key; see millstream_bson_element_at() for positions.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_bson_member(
    document: Option<&millstream_bson_document>,
    key: *const c_char,
    key_len: usize,
    value: Option<&mut MaybeUninit<millstream_bson_value>>,
    found: Option<&mut MaybeUninit<bool>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        let to = Found::out(value, found)?;
        // SAFETY: C lends the key for this call.
        let key = unsafe { bytes(key.cast(), key_len, "key")? };
        let key = std::str::from_utf8(key)
            .map_err(|_| invalid(format!("the key {:?}", String::from_utf8_lossy(key)), "UTF-8"))?;
        // SAFETY: C lends the document's memory.
        unsafe { in_document(document, |document| to.give(document.get(key), || document.require(key))) }
    })
}

/// Looks up the element at a position; the first is 0. In a document that is not an array, it returns the member at
/// that position. Earlier members are skipped, and keys are not read. `found` is used as by millstream_bson_member().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_bson_element_at(
    document: Option<&millstream_bson_document>,
    position: usize,
    value: Option<&mut MaybeUninit<millstream_bson_value>>,
    found: Option<&mut MaybeUninit<bool>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        let to = Found::out(value, found)?;
        let look = |document: Document<'_>| {
            let array = Array::from_bson(ElementType::Array, &mut document.cursor())?;
            to.give(array.get(position), || array.require(position))
        };
        // SAFETY: C lends the document's memory.
        unsafe { in_document(document, look) }
    })
}

/// Looks up the value at the end of a path: keys separated by dots, such as "items.3.price". In arrays the keys are
/// positions, regardless of the stored keys. A key that is empty or contains a dot or a quote is written as a JSON
/// string: "hosts.\"a.b\".port". `found` is used as by millstream_bson_member(). A path through a value that is neither
/// a document nor an array finds no value.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_bson_find(
    document: Option<&millstream_bson_document>,
    path: *const c_char,
    value: Option<&mut MaybeUninit<millstream_bson_value>>,
    found: Option<&mut MaybeUninit<bool>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        let to = Found::out(value, found)?;
        // SAFETY: C lends the path for this call.
        let keys = split_path(unsafe { text(path, "path")? })?;
        // SAFETY: C lends the document's memory.
        unsafe { to.along(document, &keys) }
    })
}

/// Looks up the value at the end of a path of `count` keys, at least 1, which are taken literally.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_bson_find_keys(
    document: Option<&millstream_bson_document>,
    keys: *const *const c_char,
    count: usize,
    value: Option<&mut MaybeUninit<millstream_bson_value>>,
    found: Option<&mut MaybeUninit<bool>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        let to = Found::out(value, found)?;
        // SAFETY: C lends an array of strings for this call.
        let keys = unsafe { items(keys, count, "keys")? };
        // SAFETY: as above.
        let keys = keys.iter().map(|key| unsafe { text(*key, "keys") }).collect::<Result<Vec<_>>>()?;
        // SAFETY: C lends the document's memory.
        unsafe { to.along(document, &keys) }
    })
}

/// The out-parameters for the requested value, and whether it may be missing.
struct Found<'o> {
    value: &'o mut MaybeUninit<millstream_bson_value>,
    found: Option<&'o mut bool>,
}

impl<'o> Found<'o> {
    fn out(
        value: Option<&'o mut MaybeUninit<millstream_bson_value>>,
        found: Option<&'o mut MaybeUninit<bool>>,
    ) -> Result<Found<'o>> {
        Ok(Found { value: out(value, "value")?, found: found.map(|found| &mut *found.write(false)) })
    }

    /// Returns the value, or the error that `require` creates.
    fn give(
        self,
        there: Result<Option<millstream_bson_value>>,
        require: impl FnOnce() -> Result<millstream_bson_value>,
    ) -> Result<()> {
        match (there?, self.found) {
            (Some(value), found) => {
                self.value.write(value);
                if let Some(found) = found {
                    *found = true;
                }
            }
            (None, Some(_)) => {}
            (None, None) => drop(self.value.write(require()?)),
        }
        Ok(())
    }

    /// Returns the value at the end of a path.
    ///
    /// # Safety
    /// The conditions of [`in_document`] apply.
    unsafe fn along<K: AsRef<str>>(self, document: Option<&millstream_bson_document>, keys: &[K]) -> Result<()> {
        if keys.is_empty() {
            return Err(invalid("an empty path", "1 or more"));
        }
        let is_array = given(document, "document")?.is_array()?;
        let look = |document: Document<'_>| match is_array {
            true => {
                let array = Array::from_bson(ElementType::Array, &mut document.cursor())?;
                self.give(array.get_path(keys), || array.require_path(keys))
            }
            false => self.give(document.get_path(keys), || document.require_path(keys)),
        };
        // SAFETY: guaranteed by the caller.
        unsafe { in_document(document, look) }
    }
}

/// Succeeds if `value` has this type; code and symbols are accepted as strings. Otherwise it returns
/// MILLSTREAM_SHAPE_MISMATCH, or MILLSTREAM_KEY_MISSING for no value.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_bson_expect(
    document: Option<&millstream_bson_document>,
    value: Option<&millstream_bson_value>,
    r#type: MaybeUninit<millstream_bson_type>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        let value = given(value, "value")?;
        let (found, expected) = (value.kind()?, chosen(r#type)?);
        let is_text = |kind| matches!(kind, ElementType::String | ElementType::Code | ElementType::Symbol);
        if Some(found) == expected || is_text(found) && expected == Some(ElementType::String) {
            return Ok(());
        }
        let expected = match expected {
            Some(kind) => format!("a value of type {kind}"),
            None => "nothing".to_string(),
        };
        let look = |document: Document<'_>| value.read(&document, |kind, cursor| Err(cursor.mismatch(kind, &expected)));
        // SAFETY: C lends the document's memory.
        unsafe { in_document(document, look) }
    })
}

/// Returns a number of the requested type.
///
/// # Safety
/// The conditions of [`millstream_bson_document::core`] apply.
unsafe fn number<T: for<'a> FromBson<'a>>(
    document: Option<&millstream_bson_document>,
    value: Option<&millstream_bson_value>,
    number: Option<&mut MaybeUninit<T>>,
) -> Result<()> {
    let number = out(number, "number")?;
    let value = given(value, "value")?;
    value.kind()?; // without a value, no document is needed
    let look = |document: Document<'_>| value.read(&document, |kind, cursor| T::from_bson(kind, cursor));
    // SAFETY: guaranteed by the caller.
    number.write(unsafe { in_document(document, look)? });
    Ok(())
}

/// Converts a number of any type to an int32_t, if the int32_t has exactly its value; this includes a double without a
/// fraction. Otherwise it returns MILLSTREAM_VALUE_OUT_OF_RANGE, or MILLSTREAM_SHAPE_MISMATCH for a value that is not a
/// number. millstream_bson_as_i32() of bson.h is faster if the value has the expected type; the same applies to the
/// functions below.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_bson_to_i32(
    document: Option<&millstream_bson_document>,
    value: Option<&millstream_bson_value>,
    number: Option<&mut MaybeUninit<i32>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    // SAFETY: C lends the document's memory.
    call(error, || unsafe { self::number(document, value, number) })
}

/// Converts a number to an int64_t; otherwise identical to millstream_bson_to_i32().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_bson_to_i64(
    document: Option<&millstream_bson_document>,
    value: Option<&millstream_bson_value>,
    number: Option<&mut MaybeUninit<i64>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    // SAFETY: as above.
    call(error, || unsafe { self::number(document, value, number) })
}

/// Converts a number to a uint64_t, like millstream_bson_to_i32().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_bson_to_u64(
    document: Option<&millstream_bson_document>,
    value: Option<&millstream_bson_value>,
    number: Option<&mut MaybeUninit<u64>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    // SAFETY: as above.
    call(error, || unsafe { self::number(document, value, number) })
}

/// Converts a number to a double; otherwise identical to millstream_bson_to_i32(). It returns
/// MILLSTREAM_VALUE_OUT_OF_RANGE for an integer that no double equals.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_bson_to_f64(
    document: Option<&millstream_bson_document>,
    value: Option<&millstream_bson_value>,
    number: Option<&mut MaybeUninit<f64>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    // SAFETY: as above.
    call(error, || unsafe { self::number(document, value, number) })
}

/// Returns a binary as numbers of `item_size` bytes each: 1, 2, 4, 8 or 16. No bytes are copied.
///
/// Returns MILLSTREAM_SHAPE_MISMATCH for any other type, and for a length that is not a multiple of `item_size`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_bson_as_numbers(
    document: Option<&millstream_bson_document>,
    value: Option<&millstream_bson_value>,
    item_size: usize,
    numbers: Option<&mut MaybeUninit<millstream_bson_numbers>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        let numbers = out(numbers, "numbers")?;
        if !matches!(item_size, 1 | 2 | 4 | 8 | 16) {
            return Err(invalid(format!("items of {item_size} bytes"), "1, 2, 4, 8 or 16"));
        }
        let value = given(value, "value")?;
        let look = |document: Document<'_>| {
            value.read(&document, |kind, cursor| {
                let at = cursor.offset();
                let bytes = <&[u8]>::from_bson(kind, cursor)?;
                if bytes.len() % item_size != 0 {
                    return Err(Error::new(ErrorKind::ShapeMismatch)
                        .with_found(format!("a binary of {} bytes", bytes.len()))
                        .with_expected(format!("numbers of {item_size} bytes each"))
                        .with_offset(at as u64));
                }
                Ok((bytes.as_ptr(), bytes.len()))
            })
        };
        // SAFETY: C lends the document's memory.
        let (bytes, len) = unsafe { in_document(document, look)? };
        let is_aligned = bytes.addr() % item_size == 0 && (item_size == 1 || cfg!(target_endian = "little"));
        numbers.write(match len {
            0 => millstream_bson_numbers { items: null(), count: 0, usable: true },
            _ => millstream_bson_numbers { items: bytes.cast(), count: len / item_size, usable: is_aligned },
        });
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_have_the_numbers_of_the_format() {
        for kind in ElementType::ALL {
            assert_eq!(chosen(c_type(*kind)).unwrap(), Some(*kind));
        }
        // SAFETY: it is a number of this size, and any value is valid.
        let unknown = unsafe { std::mem::transmute::<u32, MaybeUninit<millstream_bson_type>>(0x110) };
        assert_eq!(chosen(unknown).unwrap_err().kind(), ErrorKind::InvalidOption);
    }
}
