//! Builds graphs from Rust values.

use super::known::Known;
use super::layout::{self, Layouts};
use super::node::{ArrayNode, Data, DataTypeNode, Form, Graph, Id, Layout, Node, Params, product};
use super::types::identifier;
use super::{Scalar, Type};
use half::f16;
use millstream_core::{Error, ErrorKind, Result};
use std::borrow::Cow;
use zerocopy::IntoBytes;

/// Builds a graph value by value; [`finish`](Builder::finish) takes the outermost value.
///
/// Each call returns the id of a new value, which other values can then contain. A value that is used twice is one
/// shared object in Julia. Slices of numbers are borrowed if the CPU has the byte order of the file.
///
/// ```
/// use millstream::bson::julia::{Builder, Graph};
/// use millstream::bson::Document;
/// let mut builder = Builder::new();
/// let weights = builder.array(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0], &[2, 3])?;
/// let name = builder.string("dense");
/// let root = builder.document([("weights", weights), ("name", name), ("same", weights)])?;
/// let bytes = builder.finish(root)?.to_vec()?;
/// let graph = Graph::read(Document::new(&bytes)?)?;
/// assert_eq!(graph.root().get("weights").unwrap().id(), graph.root().get("same").unwrap().id());
/// # Ok::<(), millstream::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Builder<'a> {
    graph: Graph<'a>,
    /// The types without parameters that have been used so far.
    known: Vec<(Known, Id)>,
    layouts: Layouts,
}

/// The number types that an array can have.
pub trait Number: sealed::Sealed + Copy + Sized {}

mod sealed {
    use super::{Cow, Known};

    pub trait Sealed: Sized {
        const KNOWN: Known;
        fn payload(slice: &[Self]) -> Cow<'_, [u8]>;
    }
}

macro_rules! numbers {
    ($($type:ident $kind:ident;)*) => {
        $(impl sealed::Sealed for $type {
            const KNOWN: Known = Known::$kind;

            fn payload(slice: &[$type]) -> Cow<'_, [u8]> {
                if cfg!(target_endian = "little") {
                    return Cow::Borrowed(slice.as_bytes());
                }
                Cow::Owned(slice.iter().flat_map(|value| value.to_le_bytes()).collect())
            }
        }

        impl Number for $type {})*
    };
}

numbers! {
    i8 Int8; i16 Int16; i32 Int32; i64 Int64; i128 Int128;
    u8 UInt8; u16 UInt16; u32 UInt32; u64 UInt64; u128 UInt128;
    f16 Float16; f32 Float32; f64 Float64;
}

impl sealed::Sealed for bool {
    const KNOWN: Known = Known::Bool;

    fn payload(slice: &[bool]) -> Cow<'_, [u8]> {
        Cow::Borrowed(slice.as_bytes())
    }
}

impl Number for bool {}

impl<'a> Builder<'a> {
    /// Creates an empty builder.
    pub fn new() -> Builder<'a> {
        let graph = Graph { nodes: Vec::new(), layouts: Vec::new(), root: Id(0) };
        Builder { graph, known: Vec::new(), layouts: Layouts::default() }
    }

    /// Returns the graph with this outermost value, which is usually a document.
    ///
    /// # Errors
    /// Returns [`InvalidOption`](ErrorKind::InvalidOption) for an id from another builder.
    pub fn finish(mut self, root: Id) -> Result<Graph<'a>> {
        self.check(&[root])?;
        self.graph.root = root;
        Ok(self.graph)
    }

    /// # Panics
    /// Panics after 2^32 values.
    fn push(&mut self, node: Node<'a>) -> Id {
        let id = u32::try_from(self.graph.nodes.len()).expect("fewer than 2^32 values");
        self.graph.nodes.push(node);
        Id(id)
    }

    fn check(&self, ids: &[Id]) -> Result<()> {
        match ids.iter().find(|id| id.index() >= self.graph.nodes.len()) {
            Some(id) => Err(refused(format!("the id {}", id.0), "an id made by this builder")),
            None => Ok(()),
        }
    }

    fn check_types(&self, ids: &[Id]) -> Result<()> {
        self.check(ids)?;
        match ids.iter().all(|id| self.graph.node(*id).is_type()) {
            true => Ok(()),
            false => Err(refused("a value", "a type")),
        }
    }

    fn known(&mut self, known: Known) -> Id {
        match self.known.iter().find(|(kind, _)| *kind == known) {
            Some((_, id)) => *id,
            None => {
                let id = self.with_params(known, Vec::new());
                self.known.push((known, id));
                id
            }
        }
    }

    fn with_params(&mut self, known: Known, params: Vec<Id>) -> Id {
        let path = known.path().into_iter().flatten().map(|name| Cow::Borrowed(name.as_bytes())).collect();
        self.push(Node::DataType(Box::new(DataTypeNode { path, known, params: Params::List(params) })))
    }

    /// Adds a number, a character, `true` or `false`.
    pub fn scalar(&mut self, value: impl Into<Scalar>) -> Id {
        self.push(Node::Scalar(value.into()))
    }

    /// Adds `nothing`.
    pub fn nothing(&mut self) -> Id {
        self.scalar(Scalar::Nothing)
    }

    /// Adds `missing`.
    pub fn missing(&mut self) -> Id {
        self.scalar(Scalar::Missing)
    }

    /// Adds a field without a value.
    pub fn undef(&mut self) -> Id {
        self.push(Node::Undef)
    }

    /// Adds a string.
    pub fn string(&mut self, text: impl Into<Cow<'a, str>>) -> Id {
        self.push(Node::String(bytes_of(text.into())))
    }

    /// Adds a symbol.
    pub fn symbol(&mut self, name: impl Into<Cow<'a, str>>) -> Id {
        self.push(Node::Symbol(bytes_of(name.into())))
    }

    /// Adds an array of numbers in column-major order. `size` contains one length for each dimension.
    ///
    /// # Errors
    /// Returns [`InvalidOption`](ErrorKind::InvalidOption) if the product of the sizes is not the number of elements.
    pub fn array<T: Number>(&mut self, elements: &'a [T], size: &[u64]) -> Result<Id> {
        let of = self.known(T::KNOWN);
        self.array_of_bits(of, T::payload(elements), size)
    }

    /// Adds an array of complex numbers, each consisting of a real and an imaginary part.
    ///
    /// # Errors
    /// Returns the errors of [`array`](Builder::array).
    pub fn complex_array<T: Number>(&mut self, elements: &'a [[T; 2]], size: &[u64]) -> Result<Id> {
        let part = self.known(T::KNOWN);
        let of = self.with_params(Known::Complex, vec![part]);
        self.array_of_bits(of, T::payload(elements.as_flattened()), size)
    }

    /// Adds an array of any isbits type, whose elements have their in-memory representation.
    ///
    /// # Errors
    /// Returns [`InvalidOption`](ErrorKind::InvalidOption) if the length of the payload does not match the type and the
    /// sizes.
    pub fn array_of_bits(&mut self, of: Id, payload: impl Into<Cow<'a, [u8]>>, size: &[u64]) -> Result<Id> {
        self.check_types(&[of])?;
        let payload = payload.into();
        let bad = |payload: &[u8]| {
            let found = format!("{} bytes for the size {size:?}", payload.len());
            refused(found, "as many as elements of that type need")
        };
        let count = product(size).and_then(|count| usize::try_from(count).ok()).ok_or_else(|| bad(&payload))?;
        let layout = match self.layouts.of(&mut self.graph, &Default::default(), of) {
            Some(layout) => layout,
            None => {
                let width = payload.len().checked_div(count).unwrap_or(0);
                layout::add(&mut self.graph, Layout::unknown(of, width))
            }
        };
        match self.graph.layouts[layout.0 as usize].size.checked_mul(count) {
            Some(len) if len == payload.len() => {
                let array = ArrayNode { of, size: size.to_vec(), data: Data::Bits(payload, layout) };
                Ok(self.push(Node::Array(Box::new(array))))
            }
            _ => Err(bad(&payload)),
        }
    }

    /// Adds a `Vector{Any}`.
    ///
    /// # Errors
    /// Returns [`InvalidOption`](ErrorKind::InvalidOption) for an id from another builder.
    pub fn list(&mut self, elements: impl IntoIterator<Item = Id>) -> Result<Id> {
        let of = self.known(Known::Any);
        let elements: Vec<Id> = elements.into_iter().collect();
        let size = [elements.len() as u64];
        self.array_of(of, elements, &size)
    }

    /// Adds an array of values of a type that is not an isbits type, in column-major order.
    ///
    /// # Errors
    /// Returns [`InvalidOption`](ErrorKind::InvalidOption) if the product of the sizes is not the number of elements.
    pub fn array_of(&mut self, of: Id, elements: Vec<Id>, size: &[u64]) -> Result<Id> {
        self.check_types(&[of])?;
        self.check(&elements)?;
        if product(size) != Some(elements.len() as u64) {
            return Err(refused(format!("{} elements for the size {size:?}", elements.len()), "as many as it says"));
        }
        let array = ArrayNode { of, size: size.to_vec(), data: Data::Nodes(elements) };
        Ok(self.push(Node::Array(Box::new(array))))
    }

    /// Adds a `BitArray` in column-major order.
    ///
    /// # Errors
    /// Returns the errors of [`array`](Builder::array).
    pub fn bit_array(&mut self, bits: &[bool], size: &[u64]) -> Result<Id> {
        if product(size) != Some(bits.len() as u64) {
            return Err(refused(format!("{} bits for the size {size:?}", bits.len()), "as many as it says"));
        }
        let mut chunks = vec![0; bits.len().div_ceil(64) * 8];
        for (i, _) in bits.iter().enumerate().filter(|(_, bit)| **bit) {
            chunks[i / 8] |= 1 << (i % 8);
        }
        let of = self.known(Known::UInt64);
        let count = [(chunks.len() / 8) as u64];
        let chunks = self.array_of_bits(of, chunks, &count)?;
        let count = self.scalar(bits.len() as i64);
        let dims = size.iter().map(|length| self.scalar(*length as i64)).collect();
        let dims = self.push(Node::Tuple(dims));
        let rank = self.scalar(size.len() as i64);
        let of = self.with_params(Known::BitArray, vec![rank]);
        Ok(self.push(Node::Struct { form: Form::BitArray, of, fields: vec![chunks, count, dims] }))
    }

    /// Adds a tuple.
    ///
    /// # Errors
    /// Returns [`InvalidOption`](ErrorKind::InvalidOption) for an id from another builder.
    pub fn tuple(&mut self, parts: impl IntoIterator<Item = Id>) -> Result<Id> {
        let parts: Vec<Id> = parts.into_iter().collect();
        self.check(&parts)?;
        Ok(self.push(Node::Tuple(parts)))
    }

    /// Adds a document: members with symbols as keys, which Julia loads as a `Dict{Symbol,Any}`.
    ///
    /// # Errors
    /// Returns [`InvalidOption`](ErrorKind::InvalidOption) for an id from another builder.
    pub fn document<K: Into<Cow<'a, str>>>(&mut self, members: impl IntoIterator<Item = (K, Id)>) -> Result<Id> {
        let members: Vec<_> = members.into_iter().map(|(key, id)| (bytes_of(key.into()), id)).collect();
        members.iter().try_for_each(|(_, id)| self.check(&[*id]))?;
        Ok(self.push(Node::Document(members)))
    }

    /// Adds a type without parameters in Julia's notation (`Float64`, `Main.Shop.Item`), or a name with parameters.
    ///
    /// # Errors
    /// Returns [`InvalidOption`](ErrorKind::InvalidOption) for an invalid name, or an id from another builder.
    pub fn data_type(&mut self, name: &str, params: &[Id]) -> Result<Id> {
        self.check(params)?;
        if let Some(known) = Known::shown_as(name.strip_prefix("Base.").or(name.strip_prefix("Core.")).unwrap_or(name))
        {
            return Ok(if params.is_empty() { self.known(known) } else { self.with_params(known, params.to_vec()) });
        }
        let names = name.split('.');
        if !name.contains('.') || !names.clone().all(|part| identifier(part.as_bytes()) == part) {
            return Err(refused(format!("the name {name:?}"), "a type of Core or Base, or one with its modules"));
        }
        let path: Vec<_> = names.map(|part| Cow::Owned(part.as_bytes().to_vec())).collect();
        let path =
            if name.starts_with("Main.Base.") || name.starts_with("Main.Core.") { path[1..].to_vec() } else { path };
        let node = DataTypeNode { known: Known::of(&path), path, params: Params::List(params.to_vec()) };
        Ok(self.push(Node::DataType(Box::new(node))))
    }

    /// Adds a struct of this type, with the values of its fields in the order of declaration.
    ///
    /// # Errors
    /// Returns [`InvalidOption`](ErrorKind::InvalidOption) for a type that has its own method here (such as `Dict`), or
    /// a value that is not a type.
    pub fn structure(&mut self, of: Id, fields: impl IntoIterator<Item = Id>) -> Result<Id> {
        let fields: Vec<Id> = fields.into_iter().collect();
        self.check_types(&[of])?;
        self.check(&fields)?;
        let two = fields.len() == 2;
        let form = match (self.graph.data_type(of).map(|node| node.known), two) {
            (Some(Known::Other), _) => Form::Plain,
            (Some(Known::Complex), true) => Form::Complex,
            (Some(Known::Rational), true) => Form::Rational,
            (Some(Known::Pair), true) => Form::Pair,
            (Some(Known::UnitRange), true) => Form::UnitRange,
            (Some(Known::RefValue), _) if fields.len() < 2 => Form::Ref,
            _ => {
                let of = Type { graph: &self.graph, id: of };
                return Err(refused(format!("{} fields for a {of}", fields.len()), "the fields of a struct"));
            }
        };
        Ok(self.push(Node::Struct { form, of, fields }))
    }

    /// Replaces the value of a struct's field, for structs that contain themselves.
    ///
    /// # Errors
    /// Returns [`InvalidOption`](ErrorKind::InvalidOption) if the field does not exist.
    pub fn set_field(&mut self, structure: Id, position: usize, value: Id) -> Result<()> {
        self.check(&[structure, value])?;
        match &mut self.graph.nodes[structure.index()] {
            Node::Struct { form: Form::Plain | Form::Ref, fields, .. } if position < fields.len() => {
                fields[position] = value;
                Ok(())
            }
            _ => Err(refused(format!("field {position}"), "a field of a struct made by this builder")),
        }
    }

    /// Adds a dictionary, with the types of its keys and values. `keys` and `values` are arrays of rank 1.
    ///
    /// # Errors
    /// Returns [`InvalidOption`](ErrorKind::InvalidOption) if keys and values are not two vectors with the same length.
    pub fn dict(&mut self, key: Id, value: Id, keys: Id, values: Id) -> Result<Id> {
        self.check_types(&[key, value])?;
        self.check(&[keys, values])?;
        let size = |id| self.graph.array(id).map(|array| array.size());
        if !matches!((size(keys), size(values)), (Some([a]), Some([b])) if a == b) {
            return Err(refused("other keys and values", "two vectors, equally long"));
        }
        let of = self.with_params(Known::Dict, vec![key, value]);
        Ok(self.push(Node::Struct { form: Form::Dict, of, fields: vec![keys, values] }))
    }

    /// Adds a set, with the type of its elements, which are an array of rank 1.
    ///
    /// # Errors
    /// Returns [`InvalidOption`](ErrorKind::InvalidOption) if the elements are not a vector.
    pub fn set(&mut self, of: Id, elements: Id) -> Result<Id> {
        self.check(&[elements])?;
        let count = self.graph.array(elements).map_or(0, |array| array.count() as u64);
        let nothing = self.known(Known::Nothing);
        let values = self.array_of_bits(nothing, Vec::new(), &[count])?;
        let dict = self.dict(of, nothing, elements, values)?;
        let of = self.with_params(Known::Set, vec![of]);
        Ok(self.push(Node::Struct { form: Form::Set, of, fields: vec![dict] }))
    }

    /// Adds a named tuple: names, and values with their types.
    ///
    /// # Errors
    /// Returns [`InvalidOption`](ErrorKind::InvalidOption) for an id from another builder, or a value that is not a
    /// type.
    pub fn named_tuple<K: Into<Cow<'a, str>>>(&mut self, members: impl IntoIterator<Item = (K, Id, Id)>) -> Result<Id> {
        let (mut names, mut types, mut fields) = (Vec::new(), Vec::new(), Vec::new());
        for (name, of, value) in members {
            self.check_types(&[of])?;
            self.check(&[value])?;
            names.push(self.symbol(name));
            types.push(of);
            fields.push(value);
        }
        let names = self.push(Node::Tuple(names));
        let types = self.with_params(Known::Tuple, types);
        let of = self.with_params(Known::NamedTuple, vec![names, types]);
        Ok(self.push(Node::Struct { form: Form::NamedTuple, of, fields }))
    }
}

impl Default for Builder<'_> {
    fn default() -> Self {
        Builder::new()
    }
}

fn bytes_of(text: Cow<'_, str>) -> Cow<'_, [u8]> {
    match text {
        Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
        Cow::Owned(text) => Cow::Owned(text.into_bytes()),
    }
}

#[cold]
fn refused(found: impl Into<String>, expected: &str) -> Error {
    Error::new(ErrorKind::InvalidOption).with_found(found).with_expected(expected)
}
