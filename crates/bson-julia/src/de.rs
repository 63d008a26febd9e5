//! Converts values of a graph to Rust types, with serde.
//!
//! This is the only recursive part of the crate, because serde is recursive: the depth is limited, and a value is
//! rejected if it contains itself or expands far beyond the size of the file.

use super::known::Known;
use super::node::Id;
use super::{Kind, Scalar, Value};
use millstream_core::{Error, ErrorKind, Result};
use serde::de::value::{MapAccessDeserializer, StrDeserializer};
use serde::de::{self, Deserialize, DeserializeSeed, IntoDeserializer, Visitor};
use serde::forward_to_deserialize_any;
use std::cell::{Cell, RefCell};

/// The maximum nesting of values in a Rust type.
const DEEPEST: usize = 200;

/// The maximum number of values and bytes of text that are visited per node of the graph and per byte of its text.
/// Without a limit, shared objects that contain other shared objects could expand exponentially.
const MOST_VISITS: u64 = 64;

impl<'de> Value<'de> {
    /// Converts the value to a Rust type, with serde.
    ///
    /// | Julia | Rust |
    /// |---|---|
    /// | numbers, Bool, Char, String, Symbol | the same; a number that does not fit the type causes an error |
    /// | `nothing`, `missing`, no value | `None`, `()` |
    /// | Array of any rank, BitArray, Set | `Vec`, in which the first index changes fastest |
    /// | `Vector{UInt8}` | bytes, which can be borrowed, or `Vec<u8>` |
    /// | Tuple, Pair, Complex, Rational, UnitRange | a tuple or a struct, in this order |
    /// | struct (files do not contain field names) | a tuple or a struct, in the order of the declarations |
    /// | symbol-keyed Dict, NamedTuple | a map, or a struct by its fields' names |
    /// | any other Dict | a map |
    /// | Ref | its content |
    /// | types, modules, functions | their text |
    /// | symbol, or a document with one member | also an enum |
    /// | values of the user's primitive types | bytes, the lowest first |
    ///
    /// ```
    /// use millstream::bson::{Document, julia::{Builder, Graph}};
    /// # let mut builder = Builder::new();
    /// # let re = builder.scalar(0.5);
    /// # let im = builder.scalar(-2.0);
    /// # let of = builder.data_type("Float64", &[])?;
    /// # let of = builder.data_type("Complex", &[of])?;
    /// # let z = builder.structure(of, [re, im])?;
    /// # let samples = builder.array(&[1i16, 2, 3], &[3])?;
    /// # let root = builder.document([("z", z), ("samples", samples)])?;
    /// # let bytes = builder.finish(root)?.to_vec()?;
    /// #[derive(serde::Deserialize, Debug, PartialEq)]
    /// struct Measured {
    ///     z: (f64, f64),
    ///     samples: Vec<i16>,
    /// }
    /// let graph = Graph::read(Document::new(&bytes)?)?;
    /// let measured: Measured = graph.root().to()?;
    /// assert_eq!(measured, Measured { z: (0.5, -2.0), samples: vec![1, 2, 3] });
    /// # Ok::<(), millstream::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns [`ShapeMismatch`](ErrorKind::ShapeMismatch) for a value of another kind or one that contains itself;
    /// [`ValueOutOfRange`](ErrorKind::ValueOutOfRange), [`TooDeep`](ErrorKind::TooDeep);
    /// [`MemoryLimit`](ErrorKind::MemoryLimit) if objects are shared so often that they expand to 64 times the size of
    /// the file.
    pub fn to<T: Deserialize<'de>>(&self) -> Result<T> {
        T::deserialize(*self)
    }
}

/// The current nesting, and the number of visits that are still allowed.
struct Context {
    open: RefCell<Vec<Option<Id>>>,
    left: Cell<u64>,
}

impl Context {
    fn new(value: Value<'_>) -> Context {
        let left = value.graph.weight().saturating_mul(MOST_VISITS);
        Context { open: RefCell::new(Vec::new()), left: Cell::new(left) }
    }

    /// Runs a function one level deeper, inside a value.
    fn inside<T>(&self, value: Value<'_>, act: impl FnOnce() -> Result<T>) -> Result<T> {
        let id = value.id();
        let mut open = self.open.borrow_mut();
        if id.is_some() && open.contains(&id) {
            return Err(Error::new(ErrorKind::ShapeMismatch)
                .with_found("a value that contains itself")
                .with_expected("one that ends"));
        }
        if open.len() == DEEPEST {
            return Err(Error::new(ErrorKind::TooDeep)
                .with_found(format!("more than {DEEPEST} nested values"))
                .with_expected(format!("at most {DEEPEST}")));
        }
        open.push(id);
        drop(open);
        let result = act();
        self.open.borrow_mut().pop();
        result
    }

    /// Counts a value and the bytes that are returned with it.
    fn visit(&self, bytes: usize) -> Result<()> {
        match self.left.get().checked_sub(1 + bytes as u64) {
            Some(left) => {
                self.left.set(left);
                Ok(())
            }
            None => Err(Error::new(ErrorKind::MemoryLimit)
                .with_found("shared objects that expand far beyond the size of the file")
                .with_expected(format!("at most {MOST_VISITS} times its values"))),
        }
    }
}

/// A value being converted to a Rust type.
#[derive(Clone, Copy)]
struct Inner<'c, 'de> {
    value: Value<'de>,
    context: &'c Context,
}

impl<'c, 'de> Inner<'c, 'de> {
    fn seq<V: Visitor<'de>>(self, values: impl Iterator<Item = Value<'de>>, visitor: V) -> Result<V::Value> {
        let context = self.context;
        context.inside(self.value, || visitor.visit_seq(List { values, context }))
    }

    fn two<V: Visitor<'de>>(self, first: Value<'de>, second: Value<'de>, visitor: V) -> Result<V::Value> {
        self.seq([first, second].into_iter(), visitor)
    }

    fn map<V: Visitor<'de>>(self, pairs: impl Iterator<Item = (Key<'de>, Value<'de>)>, visitor: V) -> Result<V::Value> {
        let context = self.context;
        context.inside(self.value, || visitor.visit_map(Map { pairs, value: None, context }))
    }

    /// Returns whether it is `nothing`, `missing` or no value.
    fn is_nothing(&self) -> bool {
        matches!(self.value.kind(), Kind::Scalar(Scalar::Nothing | Scalar::Missing) | Kind::Undef | Kind::Ref(_, None))
    }

    /// Returns the number of bytes that are returned with it, not counting the values that it contains.
    fn text_len(&self) -> usize {
        match self.value.kind() {
            Kind::Symbol(text) => text.len(),
            Kind::Module(path) | Kind::Function(path) => path.names().map(|name| name.len() + 1).sum(),
            _ => self.bytes().map_or(0, <[u8]>::len),
        }
    }

    /// Returns the bytes of a `Vector{UInt8}`.
    fn bytes(&self) -> Option<&'de [u8]> {
        match self.value.kind() {
            Kind::Array(array) if array.size().len() == 1 && array.known() == Known::UInt8 => array.payload(),
            Kind::String(text) => Some(text),
            Kind::Primitive(_, bytes) | Kind::Bits(_, bytes) => Some(bytes),
            _ => None,
        }
    }
}

impl<'de> de::Deserializer<'de> for Inner<'_, 'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.context.visit(self.text_len())?;
        match self.value.kind() {
            Kind::Scalar(scalar) => self::scalar(scalar, visitor),
            Kind::String(text) | Kind::Symbol(text) => self::text(text, visitor),
            Kind::Array(array) => match self.bytes() {
                Some(bytes) => visitor.visit_borrowed_bytes(bytes),
                None => self.seq(array.elements(), visitor),
            },
            Kind::Primitive(_, bytes) | Kind::Bits(_, bytes) => visitor.visit_borrowed_bytes(bytes),
            Kind::BitArray(_, values)
            | Kind::Tuple(values)
            | Kind::SimpleVector(values)
            | Kind::Set(_, values)
            | Kind::Struct(_, values) => self.seq(values, visitor),
            Kind::Pair(a, b) | Kind::Complex(a, b) | Kind::Rational(a, b) | Kind::UnitRange(a, b) => {
                self.two(a, b, visitor)
            }
            Kind::NamedTuple(keys, values) | Kind::Dict(_, keys, values) => {
                self.map(keys.map(Key::Value).zip(values), visitor)
            }
            Kind::Document(members) => self.map(members.map(|(key, value)| (Key::Text(key), value)), visitor),
            Kind::Ref(_, Some(value)) => {
                let context = self.context;
                context.inside(self.value, || Inner { value, context }.deserialize_any(visitor))
            }
            Kind::Ref(_, None) | Kind::Undef => visitor.visit_unit(),
            Kind::Type(of) => {
                let text = of.to_string();
                self.context.visit(text.len())?;
                visitor.visit_string(text)
            }
            Kind::Module(path) | Kind::Function(path) => visitor.visit_string(path.to_string()),
            Kind::Anonymous(_) => Err(no_data("a function with a body")),
            Kind::Bson(kind, _) => Err(no_data(&format!("a value of type {kind}, which Julia does not have"))),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        match self.is_nothing() {
            true => visitor.visit_none(),
            false => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _name: &'static str, visitor: V) -> Result<V::Value> {
        visitor.visit_newtype_struct(self)
    }

    /// Passes single bytes if a sequence of numbers is requested.
    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        match self.value.kind() {
            Kind::Array(array) => {
                self.context.visit(0)?;
                self.seq(array.elements(), visitor)
            }
            Kind::Ref(_, Some(value)) => {
                let context = self.context;
                context.inside(self.value, || Inner { value, context }.deserialize_seq(visitor))
            }
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _len: usize, visitor: V) -> Result<V::Value> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(self, _: &'static str, _len: usize, visitor: V) -> Result<V::Value> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_bytes<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        match self.bytes() {
            Some(bytes) => {
                self.context.visit(bytes.len())?;
                visitor.visit_borrowed_bytes(bytes)
            }
            None => self.deserialize_any(visitor),
        }
    }

    fn deserialize_byte_buf<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.deserialize_bytes(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value> {
        if let Some(name) = self.value.as_str() {
            self.context.visit(name.len())?;
            return visitor.visit_enum(name.into_deserializer());
        }
        match self.value.kind() {
            Kind::Document(members) if members.len() == 1 => {
                let context = self.context;
                let pairs = members.map(|(key, value)| (Key::Text(key), value));
                context.inside(self.value, || {
                    visitor.visit_enum(MapAccessDeserializer::new(Map { pairs, value: None, context }))
                })
            }
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string unit unit_struct map struct identifier
    }
}

/// Deserialises the value as plain data.
impl<'de> de::Deserializer<'de> for Value<'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        Inner { value: self, context: &Context::new(self) }.deserialize_any(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        Inner { value: self, context: &Context::new(self) }.deserialize_option(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, name: &'static str, visitor: V) -> Result<V::Value> {
        Inner { value: self, context: &Context::new(self) }.deserialize_newtype_struct(name, visitor)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        Inner { value: self, context: &Context::new(self) }.deserialize_seq(visitor)
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _len: usize, visitor: V) -> Result<V::Value> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(self, _: &'static str, _len: usize, visitor: V) -> Result<V::Value> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_bytes<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        Inner { value: self, context: &Context::new(self) }.deserialize_bytes(visitor)
    }

    fn deserialize_byte_buf<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.deserialize_bytes(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value> {
        Inner { value: self, context: &Context::new(self) }.deserialize_enum(name, variants, visitor)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string unit unit_struct map struct identifier
        ignored_any
    }
}

fn scalar<'de, V: Visitor<'de>>(scalar: Scalar, visitor: V) -> Result<V::Value> {
    match scalar {
        Scalar::Nothing | Scalar::Missing => visitor.visit_unit(),
        Scalar::Bool(value) => visitor.visit_bool(value),
        Scalar::Char(value) => match value.to_char() {
            Some(value) => visitor.visit_char(value),
            None => Err(Error::new(ErrorKind::ValueOutOfRange)
                .with_found(format!("a Char of the bits 0x{:08x}", value.0))
                .with_expected("a character")),
        },
        Scalar::Int8(value) => visitor.visit_i8(value),
        Scalar::Int16(value) => visitor.visit_i16(value),
        Scalar::Int32(value) => visitor.visit_i32(value),
        Scalar::Int64(value) => visitor.visit_i64(value),
        // Most Rust types do not accept 128-bit numbers, so these are passed only if necessary.
        Scalar::Int128(value) => match i64::try_from(value) {
            Ok(value) => visitor.visit_i64(value),
            Err(_) => visitor.visit_i128(value),
        },
        Scalar::UInt8(value) => visitor.visit_u8(value),
        Scalar::UInt16(value) => visitor.visit_u16(value),
        Scalar::UInt32(value) => visitor.visit_u32(value),
        Scalar::UInt64(value) => visitor.visit_u64(value),
        Scalar::UInt128(value) => match u64::try_from(value) {
            Ok(value) => visitor.visit_u64(value),
            Err(_) => visitor.visit_u128(value),
        },
        Scalar::Float16(value) => visitor.visit_f32(value.into()),
        Scalar::Float32(value) => visitor.visit_f32(value),
        Scalar::Float64(value) => visitor.visit_f64(value),
    }
}

fn text<'de, V: Visitor<'de>>(text: &'de [u8], visitor: V) -> Result<V::Value> {
    match std::str::from_utf8(text) {
        Ok(text) => visitor.visit_borrowed_str(text),
        Err(_) => visitor.visit_borrowed_bytes(text),
    }
}

#[cold]
fn no_data(found: &str) -> Error {
    Error::new(ErrorKind::ShapeMismatch).with_found(found).with_expected("plain data")
}

struct List<'c, I> {
    values: I,
    context: &'c Context,
}

impl<'de, I: Iterator<Item = Value<'de>>> de::SeqAccess<'de> for List<'_, I> {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>> {
        let next = self.values.next();
        next.map(|value| seed.deserialize(Inner { value, context: self.context })).transpose()
    }

    fn size_hint(&self) -> Option<usize> {
        self.values.size_hint().1
    }
}

/// A key of a map: a document's key, or any value.
enum Key<'de> {
    Text(&'de [u8]),
    Value(Value<'de>),
}

struct Map<'c, 'de, I> {
    pairs: I,
    /// The value that belongs to the key that was read last.
    value: Option<Value<'de>>,
    context: &'c Context,
}

impl<'de, I: Iterator<Item = (Key<'de>, Value<'de>)>> de::MapAccess<'de> for Map<'_, 'de, I> {
    type Error = Error;

    fn next_key_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>> {
        let Some((key, value)) = self.pairs.next() else { return Ok(None) };
        self.value = Some(value);
        match key {
            Key::Text(text) => {
                self.context.visit(text.len())?;
                seed.deserialize(TextKey(text)).map(Some)
            }
            Key::Value(value) => seed.deserialize(Inner { value, context: self.context }).map(Some),
        }
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value> {
        let value = self.value.take().expect("a key comes before its value");
        seed.deserialize(Inner { value, context: self.context })
    }

    fn size_hint(&self) -> Option<usize> {
        self.pairs.size_hint().1
    }
}

/// A document's key.
struct TextKey<'de>(&'de [u8]);

impl<'de> de::Deserializer<'de> for TextKey<'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self::text(self.0, visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _name: &'static str, visitor: V) -> Result<V::Value> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value> {
        let name: StrDeserializer<'_, Error> = std::str::from_utf8(self.0).unwrap_or_default().into_deserializer();
        visitor.visit_enum(name)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string unit unit_struct map struct identifier
        ignored_any bytes byte_buf seq tuple tuple_struct
    }
}
