//! The functions that the code of `#[derive(FromBson, ToBson)]` calls. Not for other use: it changes with the macros.

#![allow(missing_docs)] // hidden

pub use crate::typed::from::{FromBson, FromMembers, Places};
pub use crate::typed::to::{ToBson, ToMembers, append_document};
pub use crate::wire::cursor::{Cursor, Outer};
pub use crate::{ElementType, Rules};
pub use millstream_core::Result;
pub use std::default::Default;
pub use std::ops::Fn;
pub use std::option::Option::{self, None, Some};
pub use std::result::Result::{Err, Ok};
pub use std::vec::Vec;

use crate::wire::path::{join_path, path_at};
use millstream_core::{Error, ErrorKind};

/// Keys that other fields take; one type for all of them, so that flattening does not multiply code.
pub type Taken<'k> = &'k dyn Fn(&[u8]) -> bool;

/// No key is taken by another field.
#[inline(always)]
pub fn nobody(_key: &[u8]) -> bool {
    false
}

#[inline]
pub fn default<T: Default>() -> T {
    T::default()
}

/// Enters the document of a type with this name.
#[inline]
pub fn enter<'a>(kind: ElementType, cursor: &mut Cursor<'a>, name: &str) -> Result<Outer<'a>> {
    match kind {
        ElementType::Document => cursor.enter(),
        _ => Err(no_document(kind, cursor, name)),
    }
}

#[cold]
fn no_document(kind: ElementType, cursor: &Cursor<'_>, name: &str) -> Error {
    cursor.mismatch(kind, &format!("a document for {name}"))
}

/// What a field becomes if its member is missing from the document whose members begin at `begin`.
#[inline]
pub fn missing<'a, T: FromBson<'a>>(cursor: &Cursor<'a>, begin: usize, name: &str) -> Result<T> {
    T::when_missing().ok_or_else(|| missing_member(cursor, begin, name))
}

#[cold]
pub fn missing_member(cursor: &Cursor<'_>, begin: usize, name: &str) -> Error {
    let error =
        Error::new(ErrorKind::KeyMissing).with_found("no such member").with_expected(format!("a member {name:?}"));
    of_member(error, cursor, begin, name).with_offset(cursor.base().wrapping_add(begin as u64).wrapping_sub(4))
}

/// Adds the path of the member of the document that has a member, or its end, at `at`. An error with its path is
/// complete, and its offset has to count from the start of the stream.
fn of_member(error: Error, cursor: &Cursor<'_>, at: usize, name: &str) -> Error {
    let mut path = path_at(cursor.bytes(), at).unwrap_or_default();
    if !path.is_empty() {
        path.push('.');
    }
    error.with_path(path + &join_path([name]))
}

/// The error of the member whose key the cursor has just passed.
fn bad_member(key: &[u8], cursor: &Cursor<'_>, found: &str, expected: &str) -> Error {
    let name = String::from_utf8_lossy(key);
    let error = Error::new(ErrorKind::ShapeMismatch).with_found(format!("{found} {name:?}")).with_expected(expected);
    // The position of its type.
    let at = cursor.offset().saturating_sub(key.len() + 2);
    of_member(error, cursor, at, &name).with_offset(cursor.base().wrapping_add(at as u64))
}

#[cold]
pub fn duplicate(key: &[u8], cursor: &Cursor<'_>, name: &str) -> Error {
    bad_member(key, cursor, &format!("one more member for {name:?}, called"), "one at most")
}

#[cold]
pub fn unknown_member(key: &[u8], cursor: &Cursor<'_>, names: &[&str]) -> Error {
    bad_member(key, cursor, "a member", &one_of(names))
}

/// No variant has the name in the text before the cursor.
#[cold]
pub fn unknown_variant(name: &[u8], cursor: &Cursor<'_>, names: &[&str]) -> Error {
    let name = String::from_utf8_lossy(name);
    Error::new(ErrorKind::ShapeMismatch)
        .with_found(format!("the variant {name:?}"))
        .with_expected(one_of(names))
        .with_offset(cursor.offset().saturating_sub(1) as u64)
}

#[cold]
fn one_of(names: &[&str]) -> String {
    match names {
        [] => "no member".to_string(),
        [only] => format!("{only:?}"),
        [names @ .., last] => {
            let names: Vec<String> = names.iter().map(|name| format!("{name:?}")).collect();
            format!("{} or {last:?}", names.join(", "))
        }
    }
}

/// The variant of an enum without a tag.
pub enum Variant<'a> {
    /// By its name alone.
    Name(&'a [u8]),
    /// By the name and the payload of a document's only member.
    Member(Outer<'a>, ElementType, &'a [u8]),
}

/// Reads the variant of the enum with this name.
#[inline]
pub fn variant<'a>(kind: ElementType, cursor: &mut Cursor<'a>, name: &str) -> Result<Variant<'a>> {
    match kind {
        ElementType::String | ElementType::Symbol => cursor.string_bytes().map(Variant::Name),
        ElementType::Document => {
            let outer = cursor.enter()?;
            match cursor.next()? {
                Some((kind, key)) => Ok(Variant::Member(outer, kind, key)),
                None => Err(no_variant(cursor, name)),
            }
        }
        _ => Err(cursor.mismatch(kind, &format!("a variant of {name}: its name, or a document of it"))),
    }
}

/// Leaves the document of a variant, which has no other member.
#[inline]
pub fn leave_variant<'a>(outer: Outer<'a>, cursor: &mut Cursor<'a>) -> Result<()> {
    match cursor.next()? {
        None => {
            cursor.leave(outer);
            Ok(())
        }
        Some((_, key)) => Err(bad_member(key, cursor, "one more member,", "a document with the variant's only")),
    }
}

/// The document whose end the cursor has reached is empty.
#[cold]
fn no_variant(cursor: &Cursor<'_>, name: &str) -> Error {
    Error::new(ErrorKind::ShapeMismatch)
        .with_found("an empty document")
        .with_expected(format!("a variant of {name}"))
        .with_offset(cursor.offset().saturating_sub(4) as u64)
}

/// The variant's name from the member `tag` of the document that the cursor is in, and a cursor after it. The cursor
/// itself stays. A second such member is an error, as for every field.
#[inline]
pub fn tag<'a>(cursor: &Cursor<'a>, tag: &str) -> Result<(&'a [u8], Cursor<'a>)> {
    let mut seeking = cursor.clone();
    let mut found = None;
    while let Some((kind, key)) = seeking.next()? {
        match (key == tag.as_bytes(), kind) {
            (true, _) if found.is_some() => return Err(duplicate(key, &seeking, tag)),
            (true, ElementType::String | ElementType::Symbol) => {
                found = Some((seeking.string_bytes()?, seeking.clone()))
            }
            (true, _) => return Err(seeking.mismatch(kind, "a variant's name")),
            (false, _) => seeking.skip(kind)?,
        }
    }
    found.ok_or_else(|| missing_member(cursor, cursor.offset(), tag))
}
