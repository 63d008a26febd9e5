//! What the code of `#[derive(FromBson, ToBson)]` calls. Not for others: it changes with the macros.

#![allow(missing_docs)] // hidden

pub use super::cursor::{Cursor, Outer};
pub use super::from::{FromBson, FromMembers, Places};
pub use super::to::{ToBson, ToMembers, append_document};
pub use super::{ElementType, Rules};
pub use crate::error::Result;
pub use std::default::Default;
pub use std::ops::Fn;
pub use std::option::Option::{self, None, Some};
pub use std::result::Result::{Err, Ok};
pub use std::vec::Vec;

use super::path::{join_path, path_at};
use crate::error::{Error, ErrorKind};

/// Keys that are somebody else's; one type for all of them, so that flattening does not multiply code.
pub type Taken<'k> = &'k dyn Fn(&[u8]) -> bool;

/// No key is somebody else's.
#[inline(always)]
pub fn nobody(_key: &[u8]) -> bool {
    false
}

#[inline]
pub fn default<T: Default>() -> T {
    T::default()
}

/// Enters the document that a type of this name is.
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

/// What a field is whose member is missing from the document whose members begin at `begin`.
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

/// Adds the path of a member of the document that has a member, or its end, at `at`. With its path an error is complete,
/// and its offset has to count from the start of the stream.
fn of_member(error: Error, cursor: &Cursor<'_>, at: usize, name: &str) -> Error {
    let mut path = path_at(cursor.bytes(), at).unwrap_or_default();
    if !path.is_empty() {
        path.push('.');
    }
    error.with_path(path + &join_path([name]))
}

/// What is wrong with the member whose key the cursor has just passed.
fn bad_member(key: &[u8], cursor: &Cursor<'_>, found: &str, expected: &str) -> Error {
    let name = String::from_utf8_lossy(key);
    let error = Error::new(ErrorKind::ShapeMismatch).with_found(format!("{found} {name:?}")).with_expected(expected);
    // Where its type is.
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

/// No variant is called what the text before the cursor says.
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

/// Which variant of an enum without a tag.
pub enum Variant<'a> {
    /// By its name alone.
    Name(&'a [u8]),
    /// By the name and the payload of a document's only member.
    Member(Outer<'a>, ElementType, &'a [u8]),
}

/// Reads which variant of the enum of this name it is.
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

/// The document that the cursor has come to the end of is empty.
#[cold]
fn no_variant(cursor: &Cursor<'_>, name: &str) -> Error {
    Error::new(ErrorKind::ShapeMismatch)
        .with_found("an empty document")
        .with_expected(format!("a variant of {name}"))
        .with_offset(cursor.offset().saturating_sub(4) as u64)
}

/// The variant's name from the member `tag` of the document that the cursor is in, and a cursor behind it. The cursor
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
