//! Types that contain other values: collections, pointers, `Option`.

use super::{ToBson, ToMembers, append_document, append_element};
use crate::ElementType;
use millstream_core::Result;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::marker::PhantomData;
use std::rc::Rc;
use std::sync::Arc;

/// The keys of an array, "0", "1", …, as text that is incremented. Converting each number would take longer than the
/// rest of a small element.
#[derive(Clone, Debug)]
pub(crate) struct Positions {
    /// Right-aligned, with space for a type, the digits, and a NUL.
    text: [u8; 22],
    /// The position of the first digit; at least 1.
    first: usize,
}

/// The position of the last digit.
const LAST: usize = 20;

impl Positions {
    #[inline]
    pub(crate) fn new() -> Positions {
        let mut text = [0; 22];
        text[LAST] = b'0';
        Positions { text, first: LAST }
    }

    /// Creates keys of which this number is the next one.
    pub(crate) fn from(next: usize) -> Positions {
        let digits = next.to_string();
        let mut positions = Positions { first: LAST + 1 - digits.len(), ..Positions::new() };
        positions.text[positions.first..=LAST].copy_from_slice(digits.as_bytes());
        positions
    }

    /// Appends the type and the next key.
    #[inline]
    pub(crate) fn append(&mut self, out: &mut Vec<u8>, kind: ElementType) {
        let digit = self.text[LAST];
        if self.first == LAST && digit < b'9' {
            out.extend_from_slice(&[kind as u8, digit, 0]);
            self.text[LAST] = digit + 1;
        } else {
            self.append_longer(out, kind);
        }
    }

    fn append_longer(&mut self, out: &mut Vec<u8>, kind: ElementType) {
        self.text[self.first - 1] = kind as u8;
        out.extend_from_slice(&self.text[self.first - 1..]);
        for at in (self.first..=LAST).rev() {
            if self.text[at] < b'9' {
                self.text[at] += 1;
                return;
            }
            self.text[at] = b'0';
        }
        // All digits were nines. The 20 digits that fit are more than memory can contain.
        self.first -= 1;
        self.text[self.first] = b'1';
    }
}

/// Appends an array's payload.
#[inline]
pub(super) fn append_array<T: ToBson>(out: &mut Vec<u8>, values: impl IntoIterator<Item = T>) -> Result<()> {
    append_document(out, |out| {
        let mut positions = Positions::new();
        for value in values {
            positions.append(out, value.element_type());
            value.to_bson(out)?;
        }
        Ok(())
    })
}

/// Implements types that provide a slice, which is written as an array or as bytes.
macro_rules! slices {
    ($(($($generic:tt)*) $type:ty;)*) => {
        $(impl<$($generic)*> ToBson for $type {
            #[inline]
            fn element_type(&self) -> ElementType {
                T::slice_element_type()
            }

            #[inline]
            fn to_bson(&self, out: &mut Vec<u8>) -> Result<()> {
                T::slice_to_bson(self, out)
            }
        })*
    };
}

slices! {
    (T: ToBson) [T];
    (T: ToBson) Vec<T>;
    (T: ToBson, const N: usize) [T; N];
}

/// Implements other collections, which are written as arrays in iteration order.
macro_rules! arrays {
    ($(($($generic:tt)*) $type:ty;)*) => {
        $(impl<$($generic)*> ToBson for $type {
            #[inline]
            fn element_type(&self) -> ElementType {
                ElementType::Array
            }

            #[inline]
            fn to_bson(&self, out: &mut Vec<u8>) -> Result<()> {
                append_array(out, self)
            }
        })*
    };
}

arrays! {
    (T: ToBson) VecDeque<T>;
    (T: ToBson) BTreeSet<T>;
    (T: ToBson, S) HashSet<T, S>;
}

/// Implements maps with text keys.
macro_rules! maps {
    ($(($($generic:tt)*) $type:ty;)*) => {
        $(impl<K: AsRef<str>, V: ToBson, $($generic)*> ToBson for $type {
            #[inline]
            fn element_type(&self) -> ElementType {
                ElementType::Document
            }

            #[inline]
            fn to_bson(&self, out: &mut Vec<u8>) -> Result<()> {
                append_document(out, |out| self.append_members(out))
            }
        }

        impl<K: AsRef<str>, V: ToBson, $($generic)*> ToMembers for $type {
            fn append_members(&self, out: &mut Vec<u8>) -> Result<()> {
                self.iter().try_for_each(|(key, value)| append_element(out, key.as_ref(), value))
            }
        })*
    };
}

maps! {
    () BTreeMap<K, V>;
    (S) HashMap<K, V, S>;
}

/// Implements types that point to one value, which is written in their place.
macro_rules! pointers {
    ($($type:ty, $($bound:ident)?;)*) => {
        $(impl<T: ToBson $(+ $bound)? + ?Sized> ToBson for $type {
            #[inline]
            fn element_type(&self) -> ElementType {
                (**self).element_type()
            }

            #[inline]
            fn to_bson(&self, out: &mut Vec<u8>) -> Result<()> {
                (**self).to_bson(out)
            }
        }

        impl<T: ToMembers $(+ $bound)? + ?Sized> ToMembers for $type {
            #[inline]
            fn append_members(&self, out: &mut Vec<u8>) -> Result<()> {
                (**self).append_members(out)
            }
        })*
    };
}

pointers! {
    &T,;
    &mut T,;
    Box<T>,;
    Rc<T>,;
    Arc<T>,;
    Cow<'_, T>, ToOwned;
}

/// `None` is written as null.
impl<T: ToBson> ToBson for Option<T> {
    #[inline]
    fn element_type(&self) -> ElementType {
        self.as_ref().map_or(ElementType::Null, ToBson::element_type)
    }

    #[inline]
    fn to_bson(&self, out: &mut Vec<u8>) -> Result<()> {
        self.as_ref().map_or(Ok(()), |value| value.to_bson(out))
    }
}

/// `None` adds no members.
impl<T: ToMembers> ToMembers for Option<T> {
    #[inline]
    fn append_members(&self, out: &mut Vec<u8>) -> Result<()> {
        self.as_ref().map_or(Ok(()), |value| value.append_members(out))
    }
}

/// Written as null.
impl<T: ?Sized> ToBson for PhantomData<T> {
    #[inline]
    fn element_type(&self) -> ElementType {
        ElementType::Null
    }

    #[inline]
    fn to_bson(&self, _out: &mut Vec<u8>) -> Result<()> {
        Ok(())
    }
}

macro_rules! tuples {
    ($($($name:ident)+;)*) => {
        $(
            /// Written as an array.
            impl<$($name: ToBson),+> ToBson for ($($name,)+) {
                #[inline]
                fn element_type(&self) -> ElementType {
                    ElementType::Array
                }

                #[allow(non_snake_case)] // the names of the types are also used for their values
                fn to_bson(&self, out: &mut Vec<u8>) -> Result<()> {
                    let ($($name,)+) = self;
                    append_document(out, |out| {
                        let mut positions = Positions::new();
                        $(
                            positions.append(out, $name.element_type());
                            $name.to_bson(out)?;
                        )+
                        Ok(())
                    })
                }
            }
        )*
    };
}

tuples! {
    A; A B; A B C; A B C D; A B C D E; A B C D E F; A B C D E F G; A B C D E F G H; A B C D E F G H I;
    A B C D E F G H I J; A B C D E F G H I J K; A B C D E F G H I J K L;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_the_numbers_in_order() {
        let mut positions = Positions::new();
        let mut out = Vec::new();
        for number in 0..12_345 {
            out.clear();
            positions.append(&mut out, ElementType::Null);
            assert_eq!(out, format!("\x0a{number}\0").as_bytes());
        }
    }
}
