//! The positions of a document's members, for many lookups by name.

use crate::wire::cursor::find_nul;
use crate::{Cursor, Document, Element, ElementType, Elements, FromBson};
use foldhash::fast::RandomState;
use hashbrown::HashTable;
use millstream_core::Result;
use std::hash::BuildHasher;

/// An index of a document's members. It is built once by scanning all members; after that, each is found in constant
/// time.
///
/// An index pays off from about five lookups. It stores the positions of members and no values: at most 20 bytes for
/// each member, whatever the member's size. `get` decodes the value each time. If several members have the same name,
/// the first is found. The hash function is seeded anew for each index, so that an attacker cannot prepare keys that
/// collide.
///
/// ```
/// use millstream::bson::Document;
/// let document = Document::new(b"\x13\0\0\0\x10a\0\x01\0\0\0\x10b\0\x02\0\0\0\0")?;
/// let index = document.index()?;
/// assert_eq!(index.get::<i32>("b")?, Some(2));
/// assert_eq!(index.get::<i32>("c")?, None);
/// assert_eq!(index.nth(0).unwrap().key()?, "a");
/// assert_eq!(index.len(), 2);
/// # Ok::<(), millstream::Error>(())
/// ```
#[derive(Clone)]
pub struct Index<'a> {
    document: Document<'a>,
    /// A cursor before the first member.
    inside: Cursor<'a>,
    /// The position of each member, counted from the document's start. 32 bits are enough because a document is
    /// smaller than 2 GiB.
    members: Vec<u32>,
    /// The number of the first member with each name.
    names: HashTable<u32>,
    hasher: RandomState,
}

impl<'a> Document<'a> {
    /// Builds an index of the members for many lookups by name or by number.
    ///
    /// # Errors
    /// Errors in the structure of the members. Their values and text are not checked.
    pub fn index(&self) -> Result<Index<'a>> {
        Index::new(*self).map_err(|error| self.locate(error))
    }
}

impl<'a> Index<'a> {
    fn new(document: Document<'a>) -> Result<Index<'a>> {
        let mut cursor = document.cursor();
        let start = cursor.offset();
        let _outer = cursor.enter()?; // never left
        let inside = cursor.clone();
        let hasher = RandomState::default();
        // The members are collected first, so that the table of names can be allocated with the right size.
        let mut members = Vec::new();
        loop {
            let place = cursor.offset() - start;
            let Some((kind, _)) = cursor.next()? else { break };
            cursor.skip(kind)?;
            members.push(place as u32);
        }
        let mut index = Index { document, inside, members, names: HashTable::new(), hasher };
        index.names.reserve(index.members.len(), |_| unreachable!("it is empty"));
        let bytes = document.as_bytes();
        for &place in &index.members {
            let key = key_at(bytes, place);
            let same = |&other: &u32| key_at(bytes, other) == key;
            let hash = index.hasher.hash_one(key);
            index.names.entry(hash, same, |_| unreachable!("its capacity is reserved")).or_insert(place);
        }
        Ok(index)
    }

    /// The document that is indexed.
    pub fn document(&self) -> Document<'a> {
        self.document
    }

    /// The number of members, including those with duplicate names.
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Whether there are no members.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// Whether there is a member with this name.
    pub fn contains(&self, key: &str) -> bool {
        self.place(key).is_some()
    }

    /// Returns the member with this name, as any type that implements [`FromBson`]; the first, if there are several.
    ///
    /// # Errors
    /// Errors in the member's value.
    #[inline]
    pub fn get<T: FromBson<'a>>(&self, key: &str) -> Result<Option<T>> {
        let Some(place) = self.place(key) else { return Ok(None) };
        let (kind, mut cursor) = self.payload(place, key.len());
        T::from_bson(kind, &mut cursor).map(Some).map_err(|error| self.document.locate(error))
    }

    /// Like [`get`](Index::get), for a required member.
    ///
    /// # Errors
    /// As for `get`, and [`KeyMissing`](millstream_core::ErrorKind::KeyMissing).
    pub fn require<T: FromBson<'a>>(&self, key: &str) -> Result<T> {
        self.get(key)?.ok_or_else(|| self.document.missing(&[key]))
    }

    /// Returns the member with this name without decoding its value.
    pub fn find(&self, key: &str) -> Option<Element<'a>> {
        self.place(key).map(|place| self.element(place))
    }

    /// Returns the member with this number, counted from 0, without decoding its value. In an array, this is the
    /// element at that position.
    pub fn nth(&self, number: usize) -> Option<Element<'a>> {
        self.members.get(number).map(|&place| self.element(place))
    }

    /// Iterates over the members in order, including those with duplicate names.
    pub fn iter(&self) -> Elements<'a> {
        self.document.iter()
    }

    #[inline]
    fn place(&self, key: &str) -> Option<u32> {
        let bytes = self.document.as_bytes();
        let key = key.as_bytes();
        self.names.find(self.hasher.hash_one(key), |&place| key_at(bytes, place) == key).copied()
    }

    /// The type of the member at this position, and a cursor at its payload.
    #[inline]
    fn payload(&self, place: u32, key_len: usize) -> (ElementType, Cursor<'a>) {
        let inside = &self.inside;
        let at = inside.offset() - 4 + place as usize;
        let kind = ElementType::from_byte(inside.bytes()[at]).expect("seen when the index was built");
        let payload = at + 1 + key_len + 1;
        (kind, Cursor::inside(inside.bytes(), payload, inside.base(), inside.depth_left(), inside.rules()))
    }

    fn element(&self, place: u32) -> Element<'a> {
        let key = key_at(self.document.as_bytes(), place);
        let (kind, payload) = self.payload(place, key.len());
        let mut after = payload.clone();
        after.skip(kind).expect("seen when the index was built");
        Element::new(kind, key, payload, after.offset())
    }
}

impl<'a> IntoIterator for &Index<'a> {
    type Item = Result<Element<'a>>;
    type IntoIter = Elements<'a>;

    fn into_iter(self) -> Elements<'a> {
        self.iter()
    }
}

impl std::fmt::Debug for Index<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Index({} members of {:?})", self.len(), self.document)
    }
}

/// The key of the member that begins at this position.
#[inline]
fn key_at(bytes: &[u8], place: u32) -> &[u8] {
    let key = &bytes[place as usize + 1..];
    &key[..find_nul(key).expect("seen when the index was built")]
}
