//! Values of a graph, and their kinds.

use super::known::Known;
use super::layout::named_tuple;
use super::node::{ArrayNode, Data, Form, Graph, Id, LayoutId, Node, Parts, Text};
use super::{Scalar, Type};
use millstream_bson::{ElementType, Number, NumberType, View};
use millstream_core::{Error, ErrorKind, Result};
use std::fmt;

/// A value of a graph: a node, or an element of an array that is not a node. Copying it is cheap.
///
/// ```
/// use millstream::bson::julia::{Graph, Kind};
/// # use millstream::bson::{Document, julia::Builder};
/// # let mut builder = Builder::new();
/// # let weights = builder.array(&[1.0f32, 2.0, 3.0, 4.0], &[2, 2])?;
/// # let root = builder.document([("weights", weights)])?;
/// # let bytes = builder.finish(root)?.to_vec()?;
/// let graph = Graph::read(Document::new(&bytes)?)?;
/// let weights = graph.root().get("weights").unwrap();
/// let Kind::Array(array) = weights.kind() else { panic!() };
/// assert_eq!((array.element_type().to_string(), array.size()), ("Float32".to_string(), &[2, 2][..]));
/// assert_eq!(array.view::<f32>()?.iter().sum::<f32>(), 10.0); // where they lie
/// assert_eq!(array.elements().map(|value| value.as_f64()).collect::<Vec<_>>(), [1.0, 2.0, 3.0, 4.0].map(Some));
/// # Ok::<(), millstream::Error>(())
/// ```
#[derive(Clone, Copy)]
pub struct Value<'g> {
    pub(super) graph: &'g Graph<'g>,
    pub(super) place: Place<'g>,
}

#[derive(Clone, Copy)]
pub(super) enum Place<'g> {
    Node(Id),
    /// A part of an array's payload.
    Bits(LayoutId, &'g [u8]),
    /// An element of a bit array.
    Bit(bool),
}

/// The kind of a value.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Kind<'g> {
    /// A number, a character, `nothing`, `missing`.
    Scalar(Scalar),
    /// A string: any bytes, usually UTF-8.
    String(&'g [u8]),
    /// A symbol.
    Symbol(&'g [u8]),
    /// An array of any rank, or a `Vector{UInt8}`.
    Array(Array<'g>),
    /// An array of bits: its sizes, and its elements in column-major order.
    BitArray(Vec<u64>, Values<'g>),
    /// A tuple.
    Tuple(Values<'g>),
    /// A `Core.SimpleVector`.
    SimpleVector(Values<'g>),
    /// A named tuple: names (symbols) and values.
    NamedTuple(Values<'g>, Values<'g>),
    /// `first => second`.
    Pair(Value<'g>, Value<'g>),
    /// The real and the imaginary part.
    Complex(Value<'g>, Value<'g>),
    /// The numerator and the denominator.
    Rational(Value<'g>, Value<'g>),
    /// The start and the stop.
    UnitRange(Value<'g>, Value<'g>),
    /// A `Ref` and its content.
    Ref(Type<'g>, Option<Value<'g>>),
    /// A dictionary: its type, its keys and its values in the same order, which is arbitrary. A dictionary whose keys
    /// are symbols is a `Document`.
    Dict(Type<'g>, Values<'g>, Values<'g>),
    /// A set: its type, and its elements in no particular order.
    Set(Type<'g>, Values<'g>),
    /// Any other struct: its type, and its fields in the order of declaration. The file does not contain the names of
    /// the fields.
    Struct(Type<'g>, Values<'g>),
    /// A value of a user-defined primitive type, such as an enum: its in-memory representation, least significant byte
    /// first.
    Primitive(Type<'g>, &'g [u8]),
    /// An element of an array whose type the file does not describe: its in-memory representation. See
    /// [`Options::describe`](super::Options::describe).
    Bits(Type<'g>, &'g [u8]),
    /// A type.
    Type(Type<'g>),
    /// A module.
    Module(Path<'g>),
    /// A named function.
    Function(Path<'g>),
    /// A function with a body, which is not interpreted: the values that it captures.
    Anonymous(Values<'g>),
    /// A field or element without a value.
    Undef,
    /// A dictionary whose keys are symbols, or any other plain document.
    Document(Members<'g>),
    /// A value that Julia's packages do not write: its BSON type and its payload.
    Bson(ElementType, &'g [u8]),
}

/// The names of modules and of an item in the last of them.
#[derive(Clone, Copy)]
pub struct Path<'g>(pub(super) &'g [Text<'g>]);

/// Writes the names separated by dots: `Base.sin`.
impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, name) in self.names().enumerate() {
            if i > 0 {
                f.write_str(".")?;
            }
            f.write_str(&String::from_utf8_lossy(name))?;
        }
        Ok(())
    }
}

impl fmt::Debug for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Path({self})")
    }
}

impl<'g> Path<'g> {
    /// Returns the names, starting with the outermost module. The `#` before a function's name is omitted.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &'g [u8]> + use<'g> {
        let last = self.0.len().wrapping_sub(1);
        self.0.iter().enumerate().map(move |(i, name)| match name.strip_prefix(b"#") {
            Some(name) if i == last => name,
            _ => name,
        })
    }
}

impl<'a> Graph<'a> {
    /// Returns the outermost value, which is usually a document.
    pub fn root(&self) -> Value<'_> {
        self.value(self.root)
    }

    /// Returns the value with this id, which must be from this graph.
    ///
    /// # Panics
    /// Panics if the id is greater than all ids of this graph.
    pub fn value(&self, id: Id) -> Value<'_> {
        assert!(id.index() < self.nodes.len(), "an id of another graph");
        Value { graph: self, place: Place::Node(id) }
    }
}

impl<'g> Value<'g> {
    /// Returns the kind of the value.
    pub fn kind(&self) -> Kind<'g> {
        match self.place {
            Place::Node(id) => self.node_kind(id),
            Place::Bits(layout, bytes) => self.bits_kind(layout, bytes),
            Place::Bit(value) => Kind::Scalar(Scalar::Bool(value)),
        }
    }

    /// Returns the id of its node, or `None` for an element inside an array of bits.
    pub fn id(&self) -> Option<Id> {
        match self.place {
            Place::Node(id) => Some(id),
            _ => None,
        }
    }

    fn node_kind(&self, id: Id) -> Kind<'g> {
        let graph = self.graph;
        match graph.node(id) {
            Node::Scalar(scalar) => Kind::Scalar(*scalar),
            Node::String(text) => Kind::String(text),
            Node::Symbol(text) => Kind::Symbol(text),
            Node::Bson(kind, payload) => Kind::Bson(*kind, payload),
            Node::Array(node) => Kind::Array(Array { graph, node }),
            Node::Tuple(ids) => Kind::Tuple(self.nodes(ids)),
            Node::SimpleVector(ids) => Kind::SimpleVector(self.nodes(ids)),
            Node::Document(members) => Kind::Document(Members { graph, members }),
            Node::Struct { form, of, fields } => self.struct_kind(*form, *of, fields, self.nodes(fields)),
            Node::Primitive(node) => Kind::Primitive(Type { graph, id: node.0 }, &node.1),
            Node::Module(path) => Kind::Module(Path(path)),
            Node::Undef | Node::Pending => Kind::Undef,
            Node::DataType(_) | Node::Bottom | Node::UnionAll { .. } | Node::AnonymousType(_) => {
                Kind::Type(Type { graph, id })
            }
        }
    }

    fn bits_kind(&self, layout: LayoutId, bytes: &'g [u8]) -> Kind<'g> {
        let known = &self.graph.layouts[layout.0 as usize];
        match &known.parts {
            Parts::Scalar(kind) => Kind::Scalar(Scalar::from_memory(*kind, bytes).unwrap_or(Scalar::Nothing)),
            Parts::Fields(form, fields) => {
                let list = List::Fields(layout, bytes);
                self.struct_kind(*form, known.of, &[], Values { graph: self.graph, list, next: 0, end: fields.len() })
            }
            Parts::Unknown => Kind::Bits(Type { graph: self.graph, id: known.of }, bytes),
        }
    }

    /// Returns the kind of a struct with these fields. Forms that are heap-allocated in Julia are always nodes and have
    /// `ids`.
    fn struct_kind(&self, form: Form, of: Id, ids: &'g [Id], fields: Values<'g>) -> Kind<'g> {
        let graph = self.graph;
        let id = of;
        let of = Type { graph, id };
        match form {
            Form::Tuple => Kind::Tuple(fields),
            Form::NamedTuple => {
                let params = graph.data_type(id).map_or(&[][..], |node| node.params.list());
                let names = named_tuple(graph, params).map_or(&[][..], |(names, _)| names);
                Kind::NamedTuple(self.nodes(names), fields)
            }
            Form::Complex => Kind::Complex(fields.at(0), fields.at(1)),
            Form::Rational => Kind::Rational(fields.at(0), fields.at(1)),
            Form::Pair => Kind::Pair(fields.at(0), fields.at(1)),
            Form::UnitRange => Kind::UnitRange(fields.at(0), fields.at(1)),
            Form::Ref => Kind::Ref(of, fields.get(0)),
            Form::Dict => match (graph.array(ids[0]), graph.array(ids[1])) {
                (Some(keys), Some(values)) => Kind::Dict(of, keys.elements(), values.elements()),
                _ => Kind::Struct(of, fields),
            },
            Form::Set => match graph.dict_keys(ids[0]) {
                Some(keys) => Kind::Set(of, keys.elements()),
                None => Kind::Struct(of, fields),
            },
            Form::BitArray => match graph.bit_array(ids) {
                Some((size, bits)) => Kind::BitArray(size, bits),
                None => Kind::Struct(of, fields),
            },
            Form::Function => Kind::Function(Path(graph.data_type(id).map_or(&[], |node| &node.path))),
            Form::Anonymous => Kind::Anonymous(fields),
            Form::Union | Form::TypeVar => match self.place {
                Place::Node(id) => Kind::Type(Type { graph, id }),
                _ => Kind::Struct(of, fields),
            },
            Form::Plain => Kind::Struct(of, fields),
        }
    }

    fn nodes(&self, ids: &'g [Id]) -> Values<'g> {
        Values { graph: self.graph, list: List::Nodes(ids), next: 0, end: ids.len() }
    }

    /// Returns the member with this name, of a document, a named tuple, or a dictionary with string or symbol keys.
    pub fn get(&self, key: &str) -> Option<Value<'g>> {
        let is_key = |value: &Value<'g>| value.as_bytes() == Some(key.as_bytes());
        match self.kind() {
            Kind::Document(mut members) => members.find(|(name, _)| *name == key.as_bytes()).map(|(_, value)| value),
            Kind::Dict(_, names, values) | Kind::NamedTuple(names, values) => {
                names.zip(values).find(|(name, _)| is_key(name)).map(|(_, value)| value)
            }
            _ => None,
        }
    }

    /// Returns the bytes of a string or a symbol.
    pub fn as_bytes(&self) -> Option<&'g [u8]> {
        match self.kind() {
            Kind::String(text) | Kind::Symbol(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the text of a string or a symbol, if it is UTF-8.
    pub fn as_str(&self) -> Option<&'g str> {
        std::str::from_utf8(self.as_bytes()?).ok()
    }

    /// Returns the scalar, such as a number or a character.
    pub fn as_scalar(&self) -> Option<Scalar> {
        match self.kind() {
            Kind::Scalar(scalar) => Some(scalar),
            _ => None,
        }
    }

    /// Returns the value, if it is an integer of any width that fits.
    pub fn as_i64(&self) -> Option<i64> {
        self.as_scalar()?.as_i128()?.try_into().ok()
    }

    /// Returns the value, if it is a floating point number of any width.
    pub fn as_f64(&self) -> Option<f64> {
        self.as_scalar()?.as_f64()
    }

    /// Returns the type, if this value is one.
    pub fn as_type(&self) -> Option<Type<'g>> {
        match self.kind() {
            Kind::Type(of) => Some(of),
            _ => None,
        }
    }
}

impl<'g> Type<'g> {
    /// Its parameters: types, symbols, numbers. For a union, its two types.
    pub fn params(&self) -> impl ExactSizeIterator<Item = Value<'g>> + use<'g> {
        let graph = self.graph;
        let params: &'g [Id] = match graph.node(self.id) {
            Node::DataType(node) => node.params.list(),
            Node::AnonymousType(node) => node.params.list(),
            Node::Struct { form: Form::Union, fields, .. } => fields,
            _ => &[],
        };
        params.iter().map(move |id| graph.value(*id))
    }
}

impl fmt::Debug for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.place {
            Place::Node(id) => write!(f, "Value(node {})", id.0),
            Place::Bits(_, bytes) => write!(f, "Value({} bytes of an array)", bytes.len()),
            Place::Bit(value) => write!(f, "Value(bit {value})"),
        }
    }
}

/// An array of any rank, in column-major order.
#[derive(Clone, Copy)]
pub struct Array<'g> {
    graph: &'g Graph<'g>,
    node: &'g ArrayNode<'g>,
}

impl<'g> Array<'g> {
    /// Returns the type of its elements. It is `Any` for a vector whose elements are not bits, because the file does
    /// not contain the type.
    pub fn element_type(&self) -> Type<'g> {
        Type { graph: self.graph, id: self.node.of }
    }

    /// Returns the type of its elements, if it is a known one.
    pub(super) fn known(&self) -> Known {
        self.graph.known(self.node.of)
    }

    /// Returns the length of each dimension; empty for rank 0.
    pub fn size(&self) -> &'g [u64] {
        &self.node.size
    }

    /// Returns the elements of an array of bits in their in-memory representation, with little-endian numbers, borrowed
    /// from the file.
    pub fn payload(&self) -> Option<&'g [u8]> {
        match &self.node.data {
            Data::Bits(bytes, _) => Some(bytes),
            Data::Nodes(_) => None,
        }
    }

    /// Returns the numbers of an array, viewed in place in the file, in column-major order.
    ///
    /// # Errors
    /// Returns [`ShapeMismatch`](ErrorKind::ShapeMismatch) if the elements are of another type.
    pub fn view<T: Number>(&self) -> Result<View<'g, T>> {
        let known = match T::TYPE {
            NumberType::U8 => Known::UInt8,
            NumberType::U16 => Known::UInt16,
            NumberType::U32 => Known::UInt32,
            NumberType::U64 => Known::UInt64,
            NumberType::I8 => Known::Int8,
            NumberType::I16 => Known::Int16,
            NumberType::I32 => Known::Int32,
            NumberType::I64 => Known::Int64,
            NumberType::F32 => Known::Float32,
            NumberType::F64 => Known::Float64,
        };
        match self.payload().filter(|_| self.known() == known) {
            Some(bytes) => View::new(bytes),
            None => Err(Error::new(ErrorKind::ShapeMismatch)
                .with_found(format!("elements of type {}", self.element_type()))
                .with_expected(T::TYPE.name())),
        }
    }

    /// Returns the number of elements.
    pub fn count(&self) -> usize {
        match &self.node.data {
            // Earlier checks ensure that this number fits.
            Data::Bits(..) => self.node.count().unwrap_or(0) as usize,
            Data::Nodes(ids) => ids.len(),
        }
    }

    /// Returns the elements in column-major order.
    pub fn elements(&self) -> Values<'g> {
        let list = match &self.node.data {
            Data::Bits(bytes, layout) => List::Elements(*layout, bytes),
            Data::Nodes(ids) => List::Nodes(ids),
        };
        Values { graph: self.graph, list, next: 0, end: self.count() }
    }
}

impl fmt::Debug for Array<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Array({}, {:?})", self.element_type(), self.size())
    }
}

/// A sequence of values. [`get`](Values::get) returns any of them.
#[derive(Clone, Copy)]
pub struct Values<'g> {
    graph: &'g Graph<'g>,
    list: List<'g>,
    next: usize,
    end: usize,
}

#[derive(Clone, Copy)]
enum List<'g> {
    Nodes(&'g [Id]),
    /// The elements of an array in their in-memory representation.
    Elements(LayoutId, &'g [u8]),
    /// The fields of an element.
    Fields(LayoutId, &'g [u8]),
    /// Bits, starting with the lowest.
    Bits(&'g [u8]),
}

impl<'g> Values<'g> {
    /// Returns the value at this position, counted from the first one that has not been taken.
    pub fn get(&self, i: usize) -> Option<Value<'g>> {
        (i < self.end - self.next).then(|| self.at(self.next + i))
    }

    /// Returns the value at this position, which must be in range.
    fn at(&self, i: usize) -> Value<'g> {
        let graph = self.graph;
        let part = |id: LayoutId, at: usize, bytes: &'g [u8]| {
            Place::Bits(id, &bytes[at..at + graph.layouts[id.0 as usize].size])
        };
        let place = match self.list {
            List::Nodes(ids) => Place::Node(ids[i]),
            List::Elements(id, bytes) => part(id, i * graph.layouts[id.0 as usize].size, bytes),
            List::Fields(id, bytes) => match &graph.layouts[id.0 as usize].parts {
                Parts::Fields(_, fields) => part(fields[i].1, fields[i].0, bytes),
                _ => unreachable!("only a layout with fields makes such a list"),
            },
            List::Bits(bytes) => Place::Bit(bytes[i / 8] >> (i % 8) & 1 == 1),
        };
        Value { graph, place }
    }
}

impl<'g> Iterator for Values<'g> {
    type Item = Value<'g>;

    fn next(&mut self) -> Option<Value<'g>> {
        let value = self.get(0)?;
        self.next += 1;
        Some(value)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.end - self.next;
        (left, Some(left))
    }
}

impl ExactSizeIterator for Values<'_> {}

impl std::iter::FusedIterator for Values<'_> {}

impl fmt::Debug for Values<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Values({} left)", self.len())
    }
}

/// The members of a document in order, each a key and a value.
#[derive(Clone, Copy)]
pub struct Members<'g> {
    graph: &'g Graph<'g>,
    members: &'g [(Text<'g>, Id)],
}

impl<'g> Iterator for Members<'g> {
    type Item = (&'g [u8], Value<'g>);

    fn next(&mut self) -> Option<Self::Item> {
        let ((key, id), rest) = self.members.split_first()?;
        self.members = rest;
        Some((key, self.graph.value(*id)))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.members.len(), Some(self.members.len()))
    }
}

impl ExactSizeIterator for Members<'_> {}

impl std::iter::FusedIterator for Members<'_> {}

impl fmt::Debug for Members<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Members({} left)", self.members.len())
    }
}

impl<'a> Graph<'a> {
    /// Returns the total number of its nodes, of elements in arrays without nodes, and of bytes of text.
    pub(super) fn weight(&self) -> u64 {
        let elements = |node: &Node<'_>| match node {
            Node::Array(array) => match &array.data {
                Data::Bits(bytes, _) => array.count().unwrap_or(0).max(bytes.len() as u64),
                Data::Nodes(ids) => ids.len() as u64,
            },
            node => node.text_len() as u64,
        };
        self.nodes.iter().fold(self.nodes.len() as u64, |sum, node| sum.saturating_add(elements(node)))
    }

    /// Returns the integer in this node. Unlike [`Value::as_i64`] it reads no other node, because the kind of a value
    /// can depend on integers in it, and a malicious file can put the value itself in their place.
    pub(super) fn integer(&self, id: Id) -> Option<i64> {
        match self.node(id) {
            Node::Scalar(scalar) => scalar.as_i128()?.try_into().ok(),
            _ => None,
        }
    }

    pub(super) fn array(&self, id: Id) -> Option<Array<'_>> {
        match self.node(id) {
            Node::Array(node) => Some(Array { graph: self, node }),
            _ => None,
        }
    }

    /// Returns the keys of the dictionary in this node.
    pub(super) fn dict_keys(&self, id: Id) -> Option<Array<'_>> {
        match self.node(id) {
            Node::Struct { form: Form::Dict, fields, .. } => self.array(fields[0]),
            _ => None,
        }
    }

    /// Returns the sizes and the bits of a bit array, from its fields.
    pub(super) fn bit_array(&self, fields: &[Id]) -> Option<(Vec<u64>, Values<'_>)> {
        let &[chunks, count, dims] = fields else { return None };
        let bytes = self.array(chunks)?.payload()?;
        let count = self.integer(count)?;
        let Node::Tuple(dims) = self.node(dims) else { return None };
        let size = dims.iter().map(|id| u64::try_from(self.integer(*id)?).ok()).collect::<Option<Vec<_>>>()?;
        Some((size, Values { graph: self, list: List::Bits(bytes), next: 0, end: usize::try_from(count).ok()? }))
    }
}
