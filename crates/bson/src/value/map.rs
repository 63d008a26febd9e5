//! An owned document, whose members are in order.

use crate::Document;
use crate::value::Value;
use millstream_core::Result;
use std::ops::Index;

/// An owned document: keys and [`Value`]s in order.
///
/// A duplicate key in the input is kept; [`get`](Map::get) and all other access by key find the first. Finding a key
/// scans the members linearly: this is a tree for building and changing documents, not a hash table. For reading only,
/// a borrowed [`Document`] is faster.
///
/// ```
/// use millstream::bson::{Map, Value};
/// let mut map = Map::new();
/// map.insert("n", 42);
/// map.insert("tags", vec!["a", "b"]);
/// assert_eq!(map["n"].as_i64(), Some(42));
/// assert_eq!(map["none"], Value::Null);
///
/// let bytes = map.to_vec()?;
/// assert_eq!(Map::from_slice(&bytes)?, map);
/// assert_eq!(map.remove("n"), Some(Value::Int32(42)));
/// # Ok::<(), millstream::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Map {
    pub(crate) members: Vec<(String, Value)>,
}

impl Map {
    /// Creates an empty map.
    pub const fn new() -> Map {
        Map { members: Vec::new() }
    }

    /// The number of members.
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Whether the map has no members.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// The position of the first member with this name.
    pub fn position(&self, key: &str) -> Option<usize> {
        self.members.iter().position(|(name, _)| name == key)
    }

    /// Whether there is a member with this name.
    pub fn contains_key(&self, key: &str) -> bool {
        self.position(key).is_some()
    }

    /// The value of the member with this name.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.members.iter().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    /// The value of the member with this name, mutable.
    pub fn get_mut(&mut self, key: &str) -> Option<&mut Value> {
        self.members.iter_mut().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    /// Returns the value of the member with this name. If there is no such member, appends one with the value null.
    ///
    /// ```
    /// use millstream::bson::Map;
    /// let mut map = Map::new();
    /// *map.entry("n") = 1.into();
    /// assert_eq!(map["n"].as_i64(), Some(1));
    /// ```
    pub fn entry(&mut self, key: &str) -> &mut Value {
        let at = self.position(key).unwrap_or_else(|| {
            self.members.push((key.to_string(), Value::Null));
            self.members.len() - 1
        });
        &mut self.members[at].1
    }

    /// Replaces the value of the member with this name and returns the old value; if there is none, appends the member.
    pub fn insert(&mut self, key: impl Into<String>, value: impl Into<Value>) -> Option<Value> {
        let (key, value) = (key.into(), value.into());
        match self.get_mut(&key) {
            Some(old) => Some(std::mem::replace(old, value)),
            None => {
                self.members.push((key, value));
                None
            }
        }
    }

    /// Appends a member without checking whether the name already exists.
    pub fn append(&mut self, key: impl Into<String>, value: impl Into<Value>) {
        self.members.push((key.into(), value.into()));
    }

    /// Removes the member with this name. The order of the other members is unchanged.
    pub fn remove(&mut self, key: &str) -> Option<Value> {
        self.position(key).map(|at| self.members.remove(at).1)
    }

    /// Removes all members.
    pub fn clear(&mut self) {
        self.members.clear();
    }

    /// Iterates over the members in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&str, &Value)> + ExactSizeIterator {
        self.members.iter().map(|(key, value)| (key.as_str(), value))
    }

    /// Iterates over the members in order, with mutable values.
    pub fn iter_mut(&mut self) -> impl DoubleEndedIterator<Item = (&str, &mut Value)> + ExactSizeIterator {
        self.members.iter_mut().map(|(key, value)| (key.as_str(), value))
    }

    /// Iterates over the keys in order.
    pub fn keys(&self) -> impl DoubleEndedIterator<Item = &str> + ExactSizeIterator {
        self.members.iter().map(|(key, _)| key.as_str())
    }

    /// Iterates over the values in order.
    pub fn values(&self) -> impl DoubleEndedIterator<Item = &Value> + ExactSizeIterator {
        self.members.iter().map(|(_, value)| value)
    }
}

/// Returns null if there is no member with this name.
impl Index<&str> for Map {
    type Output = Value;

    fn index(&self, key: &str) -> &Value {
        self.get(key).unwrap_or(&Value::Null)
    }
}

/// A later member of the same name replaces the earlier one.
impl<K: Into<String>, V: Into<Value>> Extend<(K, V)> for Map {
    fn extend<I: IntoIterator<Item = (K, V)>>(&mut self, members: I) {
        for (key, value) in members {
            self.insert(key, value);
        }
    }
}

/// A later member of the same name replaces the earlier one.
impl<K: Into<String>, V: Into<Value>> FromIterator<(K, V)> for Map {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(members: I) -> Map {
        let mut map = Map::new();
        map.extend(members);
        map
    }
}

/// A later member of the same name replaces the earlier one.
impl<K: Into<String>, V: Into<Value>, const N: usize> From<[(K, V); N]> for Map {
    fn from(members: [(K, V); N]) -> Map {
        members.into_iter().collect()
    }
}

impl IntoIterator for Map {
    type Item = (String, Value);
    type IntoIter = std::vec::IntoIter<(String, Value)>;

    fn into_iter(self) -> Self::IntoIter {
        self.members.into_iter()
    }
}

impl<'m> IntoIterator for &'m Map {
    type Item = (&'m str, &'m Value);
    type IntoIter = Members<'m>;

    fn into_iter(self) -> Members<'m> {
        self.members.iter().map(|(key, value)| (key, value))
    }
}

/// An iterator over a borrowed map. Unlike the type of the iterator that [`Map::iter`] returns, this type can be
/// named.
type Members<'m> = std::iter::Map<std::slice::Iter<'m, (String, Value)>, fn(&(String, Value)) -> (&str, &Value)>;

impl TryFrom<Document<'_>> for Map {
    type Error = millstream_core::Error;

    fn try_from(document: Document<'_>) -> Result<Map> {
        Map::from_document(document)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_find_the_first_and_keep_the_order() {
        // {"a": 1, "b": 2, "a": 3}
        let bytes = b"\x1a\0\0\0\x10a\0\x01\0\0\0\x10b\0\x02\0\0\0\x10a\0\x03\0\0\0\0";
        let mut map = Map::from_slice(bytes).unwrap();
        assert_eq!(map.to_vec().unwrap(), bytes);
        assert_eq!(map.keys().collect::<Vec<_>>(), ["a", "b", "a"]);
        assert_eq!(map.insert("a", 9), Some(Value::Int32(1)));
        *map.entry("c") = Value::Bool(true);
        *map.entry("b") = Value::Null;
        assert_eq!(map.remove("a"), Some(Value::Int32(9)));
        assert_eq!(map.remove("x"), None);
        let rest = [("b", Value::Null), ("a", Value::Int32(3)), ("c", Value::Bool(true))];
        assert!(map.iter().eq(rest.iter().map(|(key, value)| (*key, value))));
        assert!(map.iter().eq(&map));
        assert_ne!(map, Map::from([("a", 3)]));
        assert_eq!(Map::from([("a", 1), ("a", 2)]), Map::from([("a", 2)]));
    }
}
