//! Types that contain other values: collections, pointers, `Option`.

use super::{FromBson, FromMembers};
use crate::wire::text::text_at;
use crate::{Cursor, ElementType};
use millstream_core::{Error, ErrorKind, Result};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::hash::{BuildHasher, Hash};
use std::marker::PhantomData;
use std::rc::Rc;
use std::sync::Arc;

/// Passes each value of an array to `put`.
#[inline]
fn each<'a, T: FromBson<'a>>(kind: ElementType, cursor: &mut Cursor<'a>, mut put: impl FnMut(T)) -> Result<()> {
    if kind != ElementType::Array {
        return Err(cursor.mismatch(kind, "an array"));
    }
    let outer = cursor.enter()?;
    while let Some(kind) = cursor.next_in_array()? {
        put(T::from_bson(kind, cursor)?);
    }
    cursor.leave(outer);
    Ok(())
}

/// Reads the values of an array. The vector grows as they are read, because their number is not known in advance.
#[inline]
pub(super) fn read_vec<'a, T: FromBson<'a>>(kind: ElementType, cursor: &mut Cursor<'a>) -> Result<Vec<T>> {
    let mut values = Vec::new();
    each(kind, cursor, |value| {
        if values.capacity() == 0 {
            // `push` would reserve the same number more slowly. Nothing is allocated for an empty array.
            values = Vec::with_capacity(4);
        }
        values.push(value);
    })?;
    Ok(values)
}

/// Reads an array that must have exactly `N` values. No memory other than the array's is needed.
#[inline]
pub(super) fn read_array<'a, T: FromBson<'a>, const N: usize>(
    kind: ElementType,
    cursor: &mut Cursor<'a>,
) -> Result<[T; N]> {
    let at = cursor.offset();
    let mut values = [const { None }; N];
    let mut count = 0;
    each(kind, cursor, |value| {
        if let Some(place) = values.get_mut(count) {
            *place = Some(value);
        }
        count += 1;
    })?;
    match count == N {
        true => Ok(values.map(|value| value.expect("every element of the array is set"))),
        false => Err(wrong_count(count, N, at)),
    }
}

#[cold]
pub(super) fn wrong_count(found: usize, expected: usize, at: usize) -> Error {
    Error::new(ErrorKind::ShapeMismatch)
        .with_found(format!("{found} values"))
        .with_expected(format!("exactly {expected}"))
        .with_offset(at as u64)
}

impl<'a, T: FromBson<'a>> FromBson<'a> for Vec<T> {
    #[inline]
    fn from_bson(kind: ElementType, cursor: &mut Cursor<'a>) -> Result<Self> {
        T::vec_from_bson(kind, cursor)
    }
}

impl<'a, T: FromBson<'a>, const N: usize> FromBson<'a> for [T; N] {
    #[inline]
    fn from_bson(kind: ElementType, cursor: &mut Cursor<'a>) -> Result<Self> {
        T::array_from_bson(kind, cursor)
    }
}

/// Implements types that wrap another type.
macro_rules! made_of {
    ($(($($generic:tt)*) $type:ty, $other:ty;)*) => {
        $(impl<'a, $($generic)*> FromBson<'a> for $type {
            #[inline]
            fn from_bson(kind: ElementType, cursor: &mut Cursor<'a>) -> Result<Self> {
                <$other>::from_bson(kind, cursor).map(Into::into)
            }
        })*
    };
}

made_of! {
    (T: FromBson<'a>) VecDeque<T>, Vec<T>;
    (T: FromBson<'a>) Box<[T]>, Vec<T>;
    (T: FromBson<'a>) Rc<[T]>, Vec<T>;
    (T: FromBson<'a>) Arc<[T]>, Vec<T>;
    () Box<str>, Cow<'a, str>;
    () Rc<str>, Cow<'a, str>;
    () Arc<str>, Cow<'a, str>;
}

impl<'a, T: FromBson<'a> + Ord> FromBson<'a> for BTreeSet<T> {
    fn from_bson(kind: ElementType, cursor: &mut Cursor<'a>) -> Result<Self> {
        let mut values = BTreeSet::new();
        each(kind, cursor, |value| {
            values.insert(value);
        })?;
        Ok(values)
    }
}

impl<'a, T: FromBson<'a> + Eq + Hash, S: BuildHasher + Default> FromBson<'a> for HashSet<T, S> {
    fn from_bson(kind: ElementType, cursor: &mut Cursor<'a>) -> Result<Self> {
        let mut values = HashSet::default();
        each(kind, cursor, |value| {
            values.insert(value);
        })?;
        Ok(values)
    }
}

/// The types that the keys of a map can have.
pub trait FromKey<'a>: Sized {
    /// Converts a key that [`Cursor::next`] has just returned.
    ///
    /// # Errors
    /// [`Utf8Invalid`](ErrorKind::Utf8Invalid) if the key must be UTF-8 and is not.
    fn from_key(key: &'a [u8], cursor: &Cursor<'a>) -> Result<Self>;
}

impl<'a> FromKey<'a> for &'a str {
    #[inline]
    fn from_key(key: &'a [u8], cursor: &Cursor<'a>) -> Result<Self> {
        text_at(key, key_at(key, cursor))
    }
}

impl<'a> FromKey<'a> for Cow<'a, str> {
    #[inline]
    fn from_key(key: &'a [u8], cursor: &Cursor<'a>) -> Result<Self> {
        cursor.text_of(key, key_at(key, cursor))
    }
}

macro_rules! owned_keys {
    ($($type:ty)*) => {
        $(impl<'a> FromKey<'a> for $type {
            #[inline]
            fn from_key(key: &'a [u8], cursor: &Cursor<'a>) -> Result<Self> {
                Cow::from_key(key, cursor).map(Into::into)
            }
        })*
    };
}

owned_keys!(String Box<str> Rc<str> Arc<str>);

/// The position of a key that the cursor has just passed.
#[inline]
fn key_at(key: &[u8], cursor: &Cursor<'_>) -> usize {
    cursor.offset().saturating_sub(key.len() + 1)
}

/// Implements maps with the bounds that their keys and values need.
macro_rules! maps {
    ($($type:ty, ($($bound:tt)*), ($($generic:tt)*);)*) => {
        $(
            impl<'a, K: FromKey<'a> + $($bound)*, V: FromBson<'a>, $($generic)*> FromBson<'a> for $type {
                fn from_bson(kind: ElementType, cursor: &mut Cursor<'a>) -> Result<Self> {
                    if kind != ElementType::Document {
                        return Err(cursor.mismatch(kind, "a document"));
                    }
                    let outer = cursor.enter()?;
                    let map = Self::from_members(cursor, |_| false)?;
                    cursor.leave(outer);
                    Ok(map)
                }
            }

            /// Takes the members that no other field takes.
            impl<'a, K: FromKey<'a> + $($bound)*, V: FromBson<'a>, $($generic)*> FromMembers<'a> for $type {
                fn from_members<F: Fn(&[u8]) -> bool>(cursor: &mut Cursor<'a>, taken: F) -> Result<Self> {
                    let mut map = Self::default();
                    while let Some((kind, key)) = cursor.next()? {
                        if taken(key) {
                            cursor.skip(kind)?;
                            continue;
                        }
                        let key = K::from_key(key, cursor)?;
                        map.insert(key, V::from_bson(kind, cursor)?);
                    }
                    Ok(map)
                }

                fn takes(_key: &[u8]) -> bool {
                    false
                }
            }
        )*
    };
}

maps! {
    BTreeMap<K, V>, (Ord), ();
    HashMap<K, V, S>, (Eq + Hash), (S: BuildHasher + Default);
}

/// Implements pointers to a type that can be read.
macro_rules! pointers {
    ($($pointer:ident)*) => {
        $(
            impl<'a, T: FromBson<'a>> FromBson<'a> for $pointer<T> {
                #[inline]
                fn from_bson(kind: ElementType, cursor: &mut Cursor<'a>) -> Result<Self> {
                    T::from_bson(kind, cursor).map($pointer::new)
                }

                #[inline]
                fn when_missing() -> Option<Self> {
                    T::when_missing().map($pointer::new)
                }
            }

            impl<'a, T: FromMembers<'a>> FromMembers<'a> for $pointer<T> {
                fn from_members<F: Fn(&[u8]) -> bool>(cursor: &mut Cursor<'a>, taken: F) -> Result<Self> {
                    T::from_members(cursor, taken).map($pointer::new)
                }

                fn takes(key: &[u8]) -> bool {
                    T::takes(key)
                }
            }
        )*
    };
}

pointers!(Box Rc Arc);

/// `None` for null, undefined, and a missing member of a struct.
impl<'a, T: FromBson<'a>> FromBson<'a> for Option<T> {
    #[inline]
    fn from_bson(kind: ElementType, cursor: &mut Cursor<'a>) -> Result<Self> {
        match kind {
            ElementType::Null | ElementType::Undefined => Ok(None),
            _ => T::from_bson(kind, cursor).map(Some),
        }
    }

    #[inline]
    fn when_missing() -> Option<Self> {
        Some(None)
    }
}

/// `None` if the members are missing or do not have the required types. Damaged data causes an error.
impl<'a, T: FromMembers<'a>> FromMembers<'a> for Option<T> {
    fn from_members<F: Fn(&[u8]) -> bool>(cursor: &mut Cursor<'a>, taken: F) -> Result<Self> {
        use ErrorKind::{KeyMissing, ShapeMismatch, ValueOutOfRange};
        match T::from_members(cursor, taken) {
            Ok(value) => Ok(Some(value)),
            Err(error) if matches!(error.kind(), KeyMissing | ShapeMismatch | ValueOutOfRange) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn takes(key: &[u8]) -> bool {
        T::takes(key)
    }
}

/// Reads null.
impl<'a, T: ?Sized> FromBson<'a> for PhantomData<T> {
    #[inline]
    fn from_bson(kind: ElementType, cursor: &mut Cursor<'a>) -> Result<Self> {
        <()>::from_bson(kind, cursor).map(|()| PhantomData)
    }
}

macro_rules! tuples {
    ($($count:literal $($name:ident)+;)*) => {
        $(
            /// Reads an array with this number of values.
            impl<'a, $($name: FromBson<'a>),+> FromBson<'a> for ($($name,)+) {
                fn from_bson(kind: ElementType, cursor: &mut Cursor<'a>) -> Result<Self> {
                    let mut values = Places::enter(kind, cursor, $count)?;
                    let tuple = ($(values.next::<$name>(cursor)?,)+);
                    values.leave(cursor)?;
                    Ok(tuple)
                }
            }
        )*
    };
}

/// An array whose values each have their own type: a tuple.
pub struct Places<'a> {
    outer: crate::wire::cursor::Outer<'a>,
    /// The position of the array.
    at: usize,
    /// The number of values read so far.
    count: usize,
    /// The number of values required.
    expected: usize,
}

impl<'a> Places<'a> {
    /// Enters an array that must have `expected` values.
    ///
    /// # Errors
    /// Fails if the value is no array, or an invalid or too deep one.
    #[inline]
    pub fn enter(kind: ElementType, cursor: &mut Cursor<'a>, expected: usize) -> Result<Places<'a>> {
        if kind != ElementType::Array {
            return Err(cursor.mismatch(kind, "an array"));
        }
        let at = cursor.offset();
        Ok(Places { outer: cursor.enter()?, at, count: 0, expected })
    }

    /// Reads the type of the next value, which must exist.
    ///
    /// # Errors
    /// Fails if the array has no more values or is invalid.
    #[inline]
    pub fn next_kind(&mut self, cursor: &mut Cursor<'a>) -> Result<ElementType> {
        match cursor.next_in_array()? {
            Some(kind) => {
                self.count += 1;
                Ok(kind)
            }
            None => Err(wrong_count(self.count, self.expected, self.at)),
        }
    }

    /// Reads the next value.
    ///
    /// # Errors
    /// Fails if the array has no more values, or if the next one is no `T`.
    #[inline]
    pub fn next<T: FromBson<'a>>(&mut self, cursor: &mut Cursor<'a>) -> Result<T> {
        let kind = self.next_kind(cursor)?;
        T::from_bson(kind, cursor)
    }

    /// Leaves the array, which must have no more values.
    ///
    /// # Errors
    /// Fails if the array has more values.
    #[inline]
    pub fn leave(mut self, cursor: &mut Cursor<'a>) -> Result<()> {
        while let Some(kind) = cursor.next_in_array()? {
            self.count += 1;
            cursor.skip(kind)?;
        }
        match self.count == self.expected {
            true => {
                cursor.leave(self.outer);
                Ok(())
            }
            false => Err(wrong_count(self.count, self.expected, self.at)),
        }
    }
}

tuples! {
    1 A; 2 A B; 3 A B C; 4 A B C D; 5 A B C D E; 6 A B C D E F; 7 A B C D E F G; 8 A B C D E F G H;
    9 A B C D E F G H I; 10 A B C D E F G H I J; 11 A B C D E F G H I J K; 12 A B C D E F G H I J K L;
}
