//! Writes a graph as a file that BSON.jl loads, without recursion: a list contains the parts that are still to be
//! written.
//!
//! Every shared object gets one entry in `_backrefs`, which is written last, and a backref at each place where it is
//! used. As in BSON.jl, types without parameters are repeated at each use; so are texts, unless they are long.

use super::Scalar;
use super::known::Known;
use super::node::{ArrayNode, Data, Graph, Id, Node, Text};
use super::tag::{BACKREFS, Tag, looks_tagged};
use millstream_bson::ElementType;
use millstream_bson::internal::{begin, end, length};
use millstream_core::{Error, ErrorKind, Result};
use std::collections::HashMap;

/// Texts and names longer than this are never written twice: otherwise each reference to a megabyte of text would add
/// another megabyte.
const LONGEST_REPEATED: usize = 256;

impl Graph<'_> {
    /// Returns the graph as a file.
    ///
    /// BSON.jl 0.3.9 loads it if it knows the types, with two exceptions: its stack overflows for a `Vector{Any}` that
    /// contains itself, and it cannot load arrays of structs that have padding. BSONqs 0.6.3 cannot read fields of
    /// number types that BSON lacks (such as a `Complex{Float32}` outside an array), types with only numbers as
    /// parameters (bit arrays), unions as parameters, UnionAll, modules, functions, and the empty NamedTuple; it
    /// misreads arrays of rank 2 and more whose elements are not bits.
    ///
    /// # Errors
    /// Returns [`ValueOutOfRange`](ErrorKind::ValueOutOfRange) for values that BSON or BSON.jl cannot represent: a root
    /// that is not a document, a document of 2 GiB, a key that contains a NUL, a root that contains itself, or a plain
    /// document that would be interpreted as a tagged one.
    pub fn to_vec(&self) -> Result<Vec<u8>> {
        let mut out = Vec::new();
        self.write(&mut out)?;
        Ok(out)
    }

    /// Appends the graph as a file. After an error, no bytes are appended.
    ///
    /// # Errors
    /// Returns the errors of [`to_vec`](Graph::to_vec).
    pub fn write(&self, out: &mut Vec<u8>) -> Result<()> {
        let start = out.len();
        let written = Writing { graph: self, out, to_do: Vec::new(), numbers: HashMap::new(), order: Vec::new() }.run();
        if written.is_err() {
            out.truncate(start);
        }
        written
    }

    /// Returns whether the node is written as a backref if it is referenced more than once.
    fn has_identity(&self, id: Id) -> bool {
        match self.node(id) {
            Node::DataType(node) => !node.params.list().is_empty() || self.is_long(id),
            Node::Module(_) => self.is_long(id),
            _ => self.is_object(id) || self.node(id).is_type() && !matches!(self.node(id), Node::Bottom),
        }
    }

    /// Returns whether the node contains too much text to be repeated for each reference to it.
    fn is_long(&self, id: Id) -> bool {
        self.node(id).text_len() > LONGEST_REPEATED
    }

    /// Returns whether several references to the node can refer to one shared object. This applies to all nodes that
    /// have parts, are mutable or are long, except types.
    pub(super) fn is_object(&self, id: Id) -> bool {
        match self.node(id) {
            Node::Array(_) | Node::Tuple(_) | Node::SimpleVector(_) | Node::Document(_) | Node::Primitive(_) => true,
            node @ Node::Struct { .. } => !node.is_type(),
            Node::String(_) | Node::Symbol(_) | Node::Bson(..) => self.is_long(id),
            _ => false,
        }
    }
}

/// A key, in one of its forms.
#[derive(Clone, Copy)]
enum Key<'g> {
    Name(&'g [u8]),
    Position(usize),
}

enum Step<'g> {
    Element(Key<'g>, Id),
    /// Opens an array with these elements.
    Array(&'static [u8], &'g [Id]),
    /// The elements of an open array, from this position on.
    Elements(&'g [Id], usize),
    Members(&'g [(Text<'g>, Id)]),
    /// The shared objects, from this number on. Others can be added while they are written.
    Backrefs(usize),
    /// The end of the document that begins at this position.
    Close(usize),
}

struct Writing<'g, 'o> {
    graph: &'g Graph<'g>,
    out: &'o mut Vec<u8>,
    to_do: Vec<Step<'g>>,
    /// The numbers of the shared objects, counted from 1, or 0 for objects that have not been visited.
    numbers: HashMap<Id, usize>,
    /// The shared objects in the order of their numbers.
    order: Vec<Id>,
}

impl<'g> Writing<'g, '_> {
    fn run(mut self) -> Result<()> {
        let graph = self.graph;
        let shared = graph.shared_from(graph.root, |_| true);
        let ids = (0..shared.len()).filter(|index| shared[*index]).map(|index| Id(index as u32));
        self.numbers = ids.filter(|id| graph.has_identity(*id)).map(|id| (id, 0)).collect();
        if self.numbers.contains_key(&graph.root) {
            return Err(refused("a root that is part of itself", "an object that is a member of the root"));
        }
        if self.element_type(graph.root) != ElementType::Document {
            return Err(refused("a root that is not a document", "a document, such as one with the value as a member"));
        }
        let start = self.out.len();
        self.payload(graph.root)?;
        // The last step closes the root. The shared objects, if there are any, are written before it.
        if !self.numbers.is_empty() {
            self.to_do.insert(1, Step::Backrefs(0));
        }
        debug_assert!(self.to_do.first().is_none_or(|last| matches!(last, Step::Close(at) if *at == start)));
        while let Some(step) = self.to_do.pop() {
            self.step(step)?;
            length(self.out.len() - start)?; // checked now rather than when it is closed
        }
        Ok(())
    }

    fn step(&mut self, step: Step<'g>) -> Result<()> {
        match step {
            Step::Element(key, id) => return self.element(key, id),
            Step::Array(key, ids) => {
                self.key(ElementType::Array, Key::Name(key))?;
                self.open();
                self.to_do.push(Step::Elements(ids, 0));
            }
            Step::Elements(ids, position) => {
                if let Some(id) = ids.get(position) {
                    self.to_do.push(Step::Elements(ids, position + 1));
                    return self.element(Key::Position(position), *id);
                }
            }
            Step::Members(members) => {
                if let Some(((key, id), rest)) = members.split_first() {
                    self.to_do.push(Step::Members(rest));
                    return self.element(Key::Name(key), *id);
                }
            }
            Step::Backrefs(number) => {
                if number == 0 {
                    self.key(ElementType::Array, Key::Name(BACKREFS))?;
                    self.open();
                }
                if let Some(&id) = self.order.get(number) {
                    self.to_do.push(Step::Backrefs(number + 1));
                    self.key(self.element_type(id), Key::Position(number))?;
                    return self.payload(id);
                }
            }
            Step::Close(start) => return end(self.out, start),
        }
        Ok(())
    }

    fn element(&mut self, key: Key<'g>, id: Id) -> Result<()> {
        if let Some(number) = self.numbers.get_mut(&id) {
            if *number == 0 {
                self.order.push(id);
                *number = self.order.len();
            }
            let number = *number;
            self.key(ElementType::Document, key)?;
            let start = self.begin(Tag::Backref)?;
            self.key(ElementType::Int64, Key::Name(b"ref"))?;
            self.out.extend_from_slice(&(number as u64).to_le_bytes());
            return end(self.out, start);
        }
        self.key(self.element_type(id), key)?;
        self.payload(id)
    }

    /// Appends an element's type and key.
    fn key(&mut self, kind: ElementType, key: Key<'g>) -> Result<()> {
        self.out.push(kind as u8);
        match key {
            Key::Position(position) => self.out.extend_from_slice(position.to_string().as_bytes()),
            Key::Name(name) if memchr::memchr(0, name).is_some() => {
                let found = format!("the key {:?}", String::from_utf8_lossy(name));
                return Err(refused(&found, "a key without a NUL"));
            }
            Key::Name(name) => self.out.extend_from_slice(name),
        }
        self.out.push(0);
        Ok(())
    }

    fn element_type(&self, id: Id) -> ElementType {
        match self.graph.node(id) {
            Node::Scalar(scalar) => match scalar {
                Scalar::Nothing => ElementType::Null,
                Scalar::Bool(_) => ElementType::Bool,
                Scalar::Int32(_) => ElementType::Int32,
                Scalar::Int64(_) => ElementType::Int64,
                Scalar::Float64(_) => ElementType::Double,
                _ => ElementType::Document,
            },
            Node::String(_) => ElementType::String,
            Node::Bson(kind, _) => *kind,
            Node::Array(array) => match (&array.data, &array.size[..], self.graph.known(array.of)) {
                (Data::Bits(..), [_], Known::UInt8) => ElementType::Binary,
                (Data::Nodes(_), [_], Known::Any) => ElementType::Array,
                _ => ElementType::Document,
            },
            _ => ElementType::Document,
        }
    }

    /// Appends a payload, or its beginning, and adds the remaining parts to the list.
    fn payload(&mut self, id: Id) -> Result<()> {
        let graph = self.graph;
        match graph.node(id) {
            Node::Scalar(scalar) => self.scalar(*scalar),
            Node::String(text) => self.text(text),
            Node::Bson(_, payload) => {
                self.out.extend_from_slice(payload);
                Ok(())
            }
            Node::Symbol(name) => {
                let start = self.begin(Tag::Symbol)?;
                self.key(ElementType::String, Key::Name(b"name"))?;
                self.text(name)?;
                end(self.out, start)
            }
            Node::Array(array) => self.array(array, self.element_type(id)),
            Node::Tuple(ids) => self.with_list(Tag::Tuple, ids),
            Node::SimpleVector(ids) => self.with_list(Tag::SimpleVector, ids),
            Node::Document(members) => {
                let strings = members.iter().map(|(key, id)| match graph.node(*id) {
                    Node::String(text) => (key.as_ref(), Some(text.as_ref())),
                    _ => (key.as_ref(), None),
                });
                if looks_tagged(strings) {
                    return Err(refused("a plain document that would be read as something else", "other keys"));
                }
                if id == graph.root && members.iter().any(|(key, _)| key.as_ref() == BACKREFS) {
                    return Err(refused("the key \"_backrefs\" in the root", "another key"));
                }
                self.open();
                self.to_do.push(Step::Members(members));
                Ok(())
            }
            Node::Struct { of, fields, .. } => {
                self.begin_open(Tag::Struct)?;
                self.to_do.extend([Step::Array(b"data", fields), Step::Element(Key::Name(b"type"), *of)]);
                Ok(())
            }
            Node::Primitive(node) => {
                self.begin_open(Tag::Struct)?;
                self.binary(b"data", &node.1)?;
                self.to_do.push(Step::Element(Key::Name(b"type"), node.0));
                Ok(())
            }
            Node::Undef | Node::Pending => self.empty_struct(Known::Undef),
            Node::Module(path) => {
                let start = self.begin(Tag::Ref)?;
                self.path(b"path", path.iter().map(|name| name.as_ref()))?;
                end(self.out, start)
            }
            Node::DataType(node) => {
                self.begin_open(Tag::DataType)?;
                self.path(b"name", node.path.iter().map(|name| name.as_ref()))?;
                self.to_do.push(Step::Array(b"params", node.params.list()));
                Ok(())
            }
            Node::Bottom => {
                let start = self.begin(Tag::Bottom)?;
                end(self.out, start)
            }
            Node::UnionAll { var, body } => {
                self.begin_open(Tag::UnionAll)?;
                self.to_do.extend([Step::Element(Key::Name(b"body"), *body), Step::Element(Key::Name(b"var"), *var)]);
                Ok(())
            }
            Node::AnonymousType(node) => {
                self.begin_open(Tag::Anonymous)?;
                self.to_do.push(Step::Array(b"params", node.params.list()));
                self.to_do.push(Step::Element(Key::Name(b"typename"), node.typename));
                Ok(())
            }
        }
    }

    /// Writes a scalar as a BSON value, or as a struct that contains its in-memory representation.
    fn scalar(&mut self, scalar: Scalar) -> Result<()> {
        match scalar {
            Scalar::Nothing => Ok(()),
            Scalar::Missing => self.empty_struct(Known::Missing),
            Scalar::Bool(_) | Scalar::Int32(_) | Scalar::Int64(_) | Scalar::Float64(_) => {
                scalar.to_memory(self.out);
                Ok(())
            }
            _ => {
                let start = self.begin(Tag::Struct)?;
                self.known_type(scalar.known())?;
                let mut memory = Vec::with_capacity(16);
                scalar.to_memory(&mut memory);
                self.binary(b"data", &memory)?;
                end(self.out, start)
            }
        }
    }

    fn array(&mut self, array: &'g ArrayNode<'g>, kind: ElementType) -> Result<()> {
        match (&array.data, kind) {
            (Data::Bits(bytes, _), ElementType::Binary) => self.bytes(bytes),
            (Data::Nodes(ids), ElementType::Array) => {
                self.open();
                self.to_do.push(Step::Elements(ids, 0));
                Ok(())
            }
            _ => {
                self.begin_open(Tag::Array)?;
                self.key(ElementType::Array, Key::Name(b"size"))?;
                let start = begin(self.out);
                for (position, length) in array.size.iter().enumerate() {
                    self.key(ElementType::Int64, Key::Position(position))?;
                    let length = i64::try_from(*length).map_err(|_| refused("a size of 2^63", "a smaller one"))?;
                    self.out.extend_from_slice(&length.to_le_bytes());
                }
                end(self.out, start)?;
                match &array.data {
                    Data::Bits(bytes, _) => self.binary(b"data", bytes)?,
                    Data::Nodes(ids) => self.to_do.push(Step::Array(b"data", ids)),
                }
                self.to_do.push(Step::Element(Key::Name(b"type"), array.of));
                Ok(())
            }
        }
    }

    fn with_list(&mut self, tag: Tag, ids: &'g [Id]) -> Result<()> {
        self.begin_open(tag)?;
        self.to_do.push(Step::Array(b"data", ids));
        Ok(())
    }

    /// Writes a struct without fields whose type has no parameters.
    fn empty_struct(&mut self, known: Known) -> Result<()> {
        let start = self.begin(Tag::Struct)?;
        self.known_type(known)?;
        self.empty_array(b"data")?;
        end(self.out, start)
    }

    /// Writes the member `type` for a type without parameters.
    fn known_type(&mut self, known: Known) -> Result<()> {
        self.key(ElementType::Document, Key::Name(b"type"))?;
        let start = self.begin(Tag::DataType)?;
        self.path(b"name", known.path().iter().flatten().map(|name| name.as_bytes()))?;
        self.empty_array(b"params")?;
        end(self.out, start)
    }

    fn empty_array(&mut self, key: &'static [u8]) -> Result<()> {
        self.key(ElementType::Array, Key::Name(key))?;
        self.out.extend_from_slice(&[5, 0, 0, 0, 0]);
        Ok(())
    }

    /// Writes names, including the `Main` before `Base` that BSON.jl writes.
    fn path<'p>(&mut self, key: &'static [u8], path: impl Iterator<Item = &'p [u8]> + Clone) -> Result<()> {
        self.key(ElementType::Array, Key::Name(key))?;
        let start = begin(self.out);
        let main = path.clone().next() == Some(b"Base");
        for (position, name) in main.then_some(&b"Main"[..]).into_iter().chain(path).enumerate() {
            self.key(ElementType::String, Key::Position(position))?;
            self.text(name)?;
        }
        end(self.out, start)
    }

    /// Writes a string's payload.
    fn text(&mut self, text: &[u8]) -> Result<()> {
        self.out.extend_from_slice(&length(text.len() + 1)?);
        self.out.extend_from_slice(text);
        self.out.push(0);
        Ok(())
    }

    /// Writes a binary's payload.
    fn bytes(&mut self, bytes: &[u8]) -> Result<()> {
        self.out.extend_from_slice(&length(bytes.len())?);
        self.out.push(0);
        self.out.extend_from_slice(bytes);
        Ok(())
    }

    fn binary(&mut self, key: &'static [u8], bytes: &[u8]) -> Result<()> {
        self.key(ElementType::Binary, Key::Name(key))?;
        self.bytes(bytes)
    }

    /// Begins a document that a later step closes.
    fn open(&mut self) {
        self.to_do.push(Step::Close(begin(self.out)));
    }

    /// Begins a tagged document that a later step closes.
    fn begin_open(&mut self, tag: Tag) -> Result<()> {
        let start = self.begin(tag)?;
        self.to_do.push(Step::Close(start));
        Ok(())
    }

    /// Begins a tagged document and returns its position.
    fn begin(&mut self, tag: Tag) -> Result<usize> {
        let start = begin(self.out);
        self.key(ElementType::String, Key::Name(b"tag"))?;
        self.text(tag.name().as_bytes())?;
        Ok(start)
    }
}

#[cold]
fn refused(found: &str, expected: &str) -> Error {
    Error::new(ErrorKind::ValueOutOfRange).with_found(found).with_expected(expected)
}
