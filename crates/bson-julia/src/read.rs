//! Reads a graph from a document. Every container is scanned once; a list contains
//! the containers that are still to be read.
//!
//! The second half, the interpretation of structs, is in `raise`: it needs the types, which can be at the end.

use super::Scalar;
use super::known::Known;
use super::layout::Described;
use super::node::{AnonymousNode, ArrayNode, Data, DataTypeNode, Form, Graph, Id, NO_LAYOUT, Node, Params, Text};
use super::tag::{BACKREFS, Field, Payload, Tag, Tagged, tagged};
use millstream_bson::{Cursor, Document, ElementType, FromBson, Rules, ValueRef};
use millstream_core::{Error, ErrorKind, Result};
use std::borrow::Cow;
use std::collections::HashMap;

/// Options for reading a file: the memory limit of the graph, and type information that the file lacks.
///
/// ```
/// use millstream::bson::{Document, julia::{Graph, Options}};
/// # let bytes = b"\x05\0\0\0\0";
/// let mut options = Options::new().memory(64 << 20);
/// options.describe("Main.Corpus.Padded", ["UInt8", "UInt32"])?;
/// let graph = Graph::read_with(Document::new(bytes)?, &options)?;
/// # Ok::<(), millstream::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Options {
    memory: u64,
    described: Vec<(String, Vec<String>)>,
}

impl Options {
    /// Returns the defaults: 1 GiB, and no described types.
    pub fn new() -> Options {
        Options { memory: 1 << 30, described: Vec::new() }
    }

    /// Sets the maximum memory of the graph in bytes. Payloads of strings and of arrays of bits are borrowed and do not
    /// count.
    pub fn memory(self, bytes: u64) -> Options {
        Options { memory: bytes, ..self }
    }

    /// Describes the fields of an immutable struct, so that the elements of an array of these structs can be decoded:
    /// the struct's type as shown by [`Type`](super::Type), and the types of its fields in the order of declaration.
    /// The type of a field is one of Julia's number types, `Bool`, `Char`, or another described type without
    /// parameters.
    ///
    /// # Errors
    /// Returns [`InvalidOption`](ErrorKind::InvalidOption) for a field of another type.
    pub fn describe<'t>(&mut self, name: &str, fields: impl IntoIterator<Item = &'t str>) -> Result<&mut Options> {
        let fields: Vec<String> = fields.into_iter().map(String::from).collect();
        let is_good = |field: &&String| {
            Known::shown_as(field).is_some_and(|known| known.scalar_size().is_some())
                || self.described.iter().any(|(described, _)| described == *field)
        };
        if let Some(bad) = fields.iter().find(|field| !is_good(field)) {
            return Err(Error::new(ErrorKind::InvalidOption)
                .with_found(format!("a field of the type {bad:?}"))
                .with_expected("a number type, Bool, Char, or a type that has been described"));
        }
        self.described.push((name.to_string(), fields));
        Ok(self)
    }
}

impl Default for Options {
    fn default() -> Options {
        Options::new()
    }
}

impl<'a> Graph<'a> {
    /// Reads the values of a file written by BSON.jl or BSONqs; any other document is accepted as plain data.
    ///
    /// The depth is limited only by the memory. The numbers in arrays are not read but borrowed.
    ///
    /// # Errors
    /// Returns errors in the document; [`JuliaInvalid`](ErrorKind::JuliaInvalid) for Julia values that cannot exist; or
    /// [`MemoryLimit`](ErrorKind::MemoryLimit).
    pub fn read(document: Document<'a>) -> Result<Graph<'a>> {
        Graph::read_with(document, &Options::new())
    }

    /// Reads the values like [`read`](Graph::read), with options.
    ///
    /// # Errors
    /// Returns the errors of [`read`](Graph::read).
    pub fn read_with(document: Document<'a>, options: &Options) -> Result<Graph<'a>> {
        Graph::read_from(document, None, options)
    }

    /// Reads only the value at the end of a path, and all objects in the file to which it refers. The value is the
    /// graph's root. Returns `None` if no value is at this path.
    ///
    /// The path has the keys of the plain document, as in [`Document::get_path`]: the first field of a struct `s` is at
    /// `["s", "data", "0"]`, and the first shared object at `["_backrefs", "0"]`. An item that is not itself a Julia
    /// value, such as a list of fields, is plain data.
    ///
    /// ```
    /// use millstream::bson::{Document, julia::{Graph, Options}};
    /// # use millstream::bson::julia::Builder;
    /// # let mut builder = Builder::new();
    /// # let weights = builder.array(&[1.0f32, 2.0], &[2])?;
    /// # let pair = builder.tuple([weights]);
    /// # let root = builder.document([("model", pair?)])?;
    /// # let bytes = builder.finish(root)?.to_vec()?;
    /// let document = Document::new(&bytes)?;
    /// let weights = Graph::read_path(document, ["model", "data", "0"], &Options::new())?.unwrap();
    /// assert_eq!(weights.to_string(), r#"{"$array":[1.0,2.0],"eltype":"Float32","size":[2]}"#);
    /// # Ok::<(), millstream::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns the errors of [`read`](Graph::read), for the part that is read.
    pub fn read_path(
        document: Document<'a>,
        keys: impl IntoIterator<Item = impl AsRef<str>>,
        options: &Options,
    ) -> Result<Option<Graph<'a>>> {
        let mut keys = keys.into_iter().peekable();
        if keys.peek().is_none() {
            return Graph::read_with(document, options).map(Some);
        }
        match document.get_path::<Payload>(keys)? {
            Some(part) => Graph::read_from(document, Some(part), options).map(Some),
            None => Ok(None),
        }
    }

    /// Reads the whole document or a value in it.
    fn read_from(document: Document<'a>, part: Option<Payload>, options: &Options) -> Result<Graph<'a>> {
        let cursor = document.cursor();
        let mut reading = Reading {
            bytes: cursor.bytes(),
            base: cursor.base(),
            rules: cursor.rules(),
            graph: Graph { nodes: Vec::new(), layouts: Vec::new(), root: Id(0) },
            places: Vec::new(),
            to_do: Vec::new(),
            backrefs: Vec::new(),
            types: HashMap::new(),
            any: Id(0),
            byte: Id(0),
            left: options.memory,
            empty_left: (document.len() as u64).max(1 << 20),
        };
        let read = reading.run(cursor.offset(), part, &options.described);
        read.map_err(|error| document.locate(error))?;
        Ok(reading.graph)
    }
}

/// An entry of `_backrefs`.
#[derive(Clone, Copy)]
enum Entry {
    Unread(Payload),
    Read(Id),
}

/// A container that is still to be read, and the node that it becomes.
struct ToDo {
    into: Id,
    kind: ElementType,
    at: usize,
}

pub(super) struct Reading<'a> {
    /// The bytes from the root's first byte on, from which offsets are counted.
    bytes: &'a [u8],
    base: u64,
    rules: Rules,
    pub(super) graph: Graph<'a>,
    /// The position of each node.
    places: Vec<usize>,
    to_do: Vec<ToDo>,
    backrefs: Vec<Entry>,
    /// The types that have been read, by their bytes: a file repeats them for each value.
    types: HashMap<&'a [u8], Id>,
    /// The types `Any` and `UInt8`, which are implicit in the file.
    any: Id,
    pub(super) byte: Id,
    /// The memory that may still be used.
    left: u64,
    /// The number of elements without bytes that are still allowed. No other limit applies to them.
    pub(super) empty_left: u64,
}

/// Types with more bytes are not looked up among the types already read, because nested types would be compared
/// repeatedly.
const LONGEST_LOOKED_UP: usize = 256;

impl<'a> Reading<'a> {
    fn run(&mut self, root: usize, part: Option<Payload>, described: &[(String, Vec<String>)]) -> Result<()> {
        self.any = self.known_type(Known::Any, root)?;
        self.byte = self.known_type(Known::UInt8, root)?;
        let described = self.describe(described, root)?;
        self.find_backrefs(root)?;
        self.graph.root = match part {
            Some(Payload { kind, at }) => {
                let mut cursor = self.before(at);
                self.child(kind, &mut cursor)?
            }
            None => self.reserve(ElementType::Document, root)?,
        };
        while let Some(next) = self.to_do.pop() {
            let node = match next.kind {
                ElementType::Array => {
                    let nodes = self.list(next.at)?;
                    let size = vec![nodes.len() as u64];
                    Node::Array(Box::new(ArrayNode { of: self.any, size, data: Data::Nodes(nodes) }))
                }
                _ => self.document(next.at, next.at == root)?,
            };
            self.graph.nodes[next.into.index()] = node;
        }
        // If the part refers to an object that contains it, it has been read again inside that object. The second node
        // becomes the root, because the cycle leads back to it.
        if let Some(part) = part
            && let Some(again) = (self.graph.root.index() + 1..self.places.len()).find(|&i| self.places[i] == part.at)
        {
            self.graph.root = Id(again as u32);
        }
        self.raise(&described)
    }

    /// Counts memory before it is allocated.
    pub(super) fn charge(&mut self, bytes: usize, at: usize) -> Result<()> {
        match self.left.checked_sub(bytes as u64) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => Err(Error::new(ErrorKind::MemoryLimit)
                .with_found("a graph that needs more memory")
                .with_expected("at most the memory limit")
                .with_offset(at as u64)),
        }
    }

    /// Adds a node.
    pub(super) fn push(&mut self, node: Node<'a>, at: usize) -> Result<Id> {
        let Ok(id) = u32::try_from(self.graph.nodes.len()) else { return Err(invalid("2^32 values", "fewer", at)) };
        self.charge(size_of::<Node<'_>>() + size_of::<usize>(), at)?;
        self.graph.nodes.push(node);
        self.places.push(at);
        Ok(Id(id))
    }

    /// Adds a node for a container that will be read later.
    fn reserve(&mut self, kind: ElementType, at: usize) -> Result<Id> {
        self.charge(size_of::<ToDo>(), at)?;
        let into = self.push(Node::Pending, at)?;
        self.to_do.push(ToDo { into, kind, at });
        Ok(into)
    }

    pub(super) fn place(&self, id: Id) -> usize {
        self.places[id.index()]
    }

    /// Adds a type of `Core` or `Base` without parameters.
    fn known_type(&mut self, known: Known, at: usize) -> Result<Id> {
        let path = known.path().into_iter().flatten().map(|name| Cow::Borrowed(name.as_bytes())).collect();
        self.push(Node::DataType(Box::new(DataTypeNode { path, known, params: Params::List(Vec::new()) })), at)
    }

    /// Adds nodes for the types that the options describe.
    fn describe(&mut self, described: &[(String, Vec<String>)], at: usize) -> Result<Described> {
        let mut ids = HashMap::new();
        for name in described.iter().flat_map(|(_, fields)| fields) {
            if ids.contains_key(name) {
                continue;
            }
            let id = match Known::shown_as(name) {
                Some(known) => self.known_type(known, at)?,
                None => {
                    let path = name.split('.').map(|part| Cow::Owned(part.as_bytes().to_vec())).collect();
                    let params = Params::List(Vec::new());
                    self.push(Node::DataType(Box::new(DataTypeNode { path, known: Known::Other, params })), at)?
                }
            };
            ids.insert(name.clone(), id);
        }
        let fields = |fields: &Vec<String>| fields.iter().map(|field| ids[field]).collect();
        Ok(described.iter().map(|(name, list)| (name.clone(), fields(list))).collect())
    }

    /// Returns a cursor before the payload at this offset.
    fn before(&self, at: usize) -> Cursor<'a> {
        Cursor::inside(self.bytes, at, self.base, 1, self.rules)
    }

    /// Returns a cursor inside the document or array at this offset. Its length was checked when the enclosing document
    /// was scanned.
    fn inside(&self, at: usize) -> Result<Cursor<'a>> {
        let mut cursor = self.before(at);
        let _outer = cursor.enter()?; // never left
        Ok(cursor)
    }

    /// Records the positions of the entries of the root's `_backrefs`.
    fn find_backrefs(&mut self, root: usize) -> Result<()> {
        let mut cursor = self.inside(root)?;
        let mut found = None;
        while let Some((kind, key)) = cursor.next()? {
            if key == BACKREFS {
                match (kind, found) {
                    (ElementType::Array, None) => found = Some(cursor.offset()),
                    (ElementType::Array, _) => return Err(invalid("a second _backrefs", "one", cursor.offset())),
                    _ => return Err(cursor.mismatch(kind, "an array of the objects that are shared")),
                }
            }
            cursor.skip(kind)?;
        }
        let Some(at) = found else { return Ok(()) };
        let mut cursor = self.inside(at)?;
        while let Some((kind, _)) = cursor.next()? {
            let at = cursor.offset();
            self.charge(size_of::<Entry>(), at)?;
            self.backrefs.push(Entry::Unread(Payload { kind, at }));
            cursor.skip(kind)?;
        }
        Ok(())
    }

    /// Returns the node of the value at the cursor, and skips the value.
    fn child(&mut self, kind: ElementType, cursor: &mut Cursor<'a>) -> Result<Id> {
        let at = cursor.offset();
        if kind == ElementType::Document {
            let document = Document::at(cursor)?;
            if let Some(number) = self.backref(at, document.len())? {
                return self.resolve(number, at);
            }
            return self.reserve(kind, at);
        }
        self.value(kind, cursor)
    }

    /// Does what `child` does, for a value that is not a backref.
    fn value(&mut self, kind: ElementType, cursor: &mut Cursor<'a>) -> Result<Id> {
        let at = cursor.offset();
        let node = match kind {
            ElementType::Document | ElementType::Array => {
                cursor.skip(kind)?;
                return self.reserve(kind, at);
            }
            ElementType::Double => Node::Scalar(Scalar::Float64(cursor.f64()?)),
            ElementType::Int32 => Node::Scalar(Scalar::Int32(cursor.i32()?)),
            ElementType::Int64 => Node::Scalar(Scalar::Int64(cursor.i64()?)),
            ElementType::Bool => Node::Scalar(Scalar::Bool(cursor.bool()?)),
            ElementType::Null => Node::Scalar(Scalar::Nothing),
            ElementType::String => Node::String(Cow::Borrowed(cursor.string_bytes()?)),
            ElementType::Binary => {
                let mut whole = cursor.clone();
                match cursor.binary()? {
                    (0, bytes) => return self.bytes(bytes, at),
                    _ => {
                        whole.skip(kind)?;
                        Node::Bson(kind, Cow::Borrowed(&self.bytes[at..whole.offset()]))
                    }
                }
            }
            _ => {
                ValueRef::from_bson(kind, cursor)?;
                Node::Bson(kind, Cow::Borrowed(&self.bytes[at..cursor.offset()]))
            }
        };
        self.push(node, at)
    }

    /// Adds a `Vector{UInt8}`.
    fn bytes(&mut self, bytes: &'a [u8], at: usize) -> Result<Id> {
        self.charge(size_of::<ArrayNode<'_>>() + 8, at)?;
        let array = ArrayNode {
            of: self.byte,
            size: vec![bytes.len() as u64],
            data: Data::Bits(Cow::Borrowed(bytes), NO_LAYOUT),
        };
        self.push(Node::Array(Box::new(array)), at)
    }

    /// Returns the number of the backref at this position, if it is one. Its fields allow only two lengths.
    fn backref(&self, at: usize, len: usize) -> Result<Option<i64>> {
        if !matches!(len, 31 | 35) {
            return Ok(None);
        }
        match tagged(self.inside(at)?, false)? {
            Some(tagged) if tagged.tag == Tag::Backref => {
                let Payload { kind, at } = tagged.field(Field::Ref);
                self.integer(kind, at).map(Some)
            }
            _ => Ok(None),
        }
    }

    fn integer(&self, kind: ElementType, at: usize) -> Result<i64> {
        let mut cursor = self.before(at);
        match kind {
            ElementType::Int32 => cursor.i32().map(i64::from),
            ElementType::Int64 => cursor.i64(),
            _ => Err(invalid(format!("a value of type {kind}"), "an integer", at)),
        }
    }

    /// Returns the node to which a backref refers. A chain of backrefs is followed to its end.
    fn resolve(&mut self, number: i64, at: usize) -> Result<Id> {
        let count = self.backrefs.len();
        let index = |number: i64| {
            usize::try_from(number).ok().and_then(|number| number.checked_sub(1)).filter(|index| *index < count)
        };
        let mut number = number;
        let mut passed = Vec::new();
        let id = loop {
            let Some(index) = index(number) else {
                let found = format!("a backref to object {number}");
                return Err(invalid(
                    found,
                    format!("a number from 1 to {count}, the position of an entry in _backrefs"),
                    at,
                ));
            };
            let payload = match self.backrefs[index] {
                Entry::Read(id) => break id,
                Entry::Unread(payload) => payload,
            };
            passed.push(index);
            let mut cursor = self.before(payload.at);
            if payload.kind == ElementType::Document {
                let len = Document::at(&mut cursor.clone())?.len();
                if let Some(next) = self.backref(payload.at, len)? {
                    if passed.len() > count {
                        return Err(invalid("backrefs that refer to each other", "backrefs that end at an object", at));
                    }
                    number = next;
                    continue;
                }
            }
            break self.value(payload.kind, &mut cursor)?;
        };
        for index in passed {
            self.backrefs[index] = Entry::Read(id);
        }
        Ok(id)
    }

    /// Returns the nodes of an array's elements.
    fn list(&mut self, at: usize) -> Result<Vec<Id>> {
        let mut cursor = self.inside(at)?;
        let mut ids = Vec::new();
        while let Some((kind, _)) = cursor.next()? {
            self.charge(size_of::<Id>(), cursor.offset())?;
            let id = self.child(kind, &mut cursor)?;
            ids.push(id);
        }
        Ok(ids)
    }

    /// Returns the node of a type. Types with the same bytes have the same node.
    fn type_at(&mut self, payload: Payload) -> Result<Id> {
        let Payload { kind, at } = payload;
        if kind != ElementType::Document {
            return Err(invalid(format!("a value of type {kind}"), "a type", at));
        }
        let mut cursor = self.before(at);
        let document = Document::at(&mut cursor.clone())?;
        let bytes = document.as_bytes();
        if bytes.len() > LONGEST_LOOKED_UP {
            return self.child(kind, &mut cursor);
        }
        if let Some(id) = self.types.get(bytes) {
            return Ok(*id);
        }
        let id = self.child(kind, &mut cursor)?;
        if tagged(self.inside(at)?, false)?.is_some_and(|tagged| tagged.tag == Tag::DataType) {
            self.charge(2 * size_of::<(&[u8], Id)>(), at)?;
            self.types.insert(bytes, id);
        }
        Ok(id)
    }

    /// Interprets a document.
    fn document(&mut self, at: usize, is_root: bool) -> Result<Node<'a>> {
        match tagged(self.inside(at)?, is_root)? {
            Some(tagged) => self.tagged(at, &tagged),
            None => self.plain(at, is_root).map(Node::Document),
        }
    }

    fn plain(&mut self, at: usize, is_root: bool) -> Result<Vec<(Text<'a>, Id)>> {
        let mut cursor = self.inside(at)?;
        let mut members = Vec::new();
        while let Some((kind, key)) = cursor.next()? {
            if is_root && key == BACKREFS {
                cursor.skip(kind)?;
                continue;
            }
            self.charge(size_of::<(Text<'_>, Id)>(), cursor.offset())?;
            let id = self.child(kind, &mut cursor)?;
            members.push((Cow::Borrowed(key), id));
        }
        Ok(members)
    }

    fn tagged(&mut self, at: usize, tagged: &Tagged) -> Result<Node<'a>> {
        let data = |reading: &mut Reading<'a>| match tagged.field(Field::Data) {
            Payload { kind: ElementType::Array, at } => reading.list(at),
            Payload { kind, at } => Err(wrong_field(tagged.tag, "data", kind, at)),
        };
        Ok(match tagged.tag {
            Tag::Symbol => match tagged.field(Field::Name) {
                Payload { kind: ElementType::String, at } => {
                    Node::Symbol(Cow::Borrowed(self.before(at).string_bytes()?))
                }
                Payload { kind, at } => return Err(wrong_field(tagged.tag, "name", kind, at)),
            },
            Tag::Tuple => Node::Tuple(data(self)?),
            Tag::SimpleVector => Node::SimpleVector(data(self)?),
            Tag::DataType => {
                let path = self.path(tagged, Field::Name)?;
                self.charge(size_of::<DataTypeNode<'_>>(), at)?;
                let known = Known::of(&path);
                let params = self.params(tagged.field(Field::Params))?;
                Node::DataType(Box::new(DataTypeNode { path, known, params }))
            }
            Tag::Bottom => Node::Bottom,
            Tag::UnionAll => {
                let var = self.type_at(tagged.field(Field::Var))?;
                Node::UnionAll { var, body: self.type_at(tagged.field(Field::Body))? }
            }
            Tag::Struct => {
                let of = self.type_at(tagged.field(Field::Type))?;
                match tagged.field(Field::Data) {
                    Payload { kind: ElementType::Binary, at } => {
                        self.charge(size_of::<(Id, Text<'_>)>(), at)?;
                        Node::Primitive(Box::new((of, Cow::Borrowed(self.before(at).binary()?.1))))
                    }
                    _ => Node::Struct { form: Form::Plain, of, fields: data(self)? },
                }
            }
            Tag::Array => {
                let of = self.type_at(tagged.field(Field::Type))?;
                let size = self.size(tagged.field(Field::Size))?;
                self.charge(size_of::<ArrayNode<'_>>(), at)?;
                let data = match tagged.field(Field::Data) {
                    Payload { kind: ElementType::Binary, at } => {
                        Data::Bits(Cow::Borrowed(self.before(at).binary()?.1), NO_LAYOUT)
                    }
                    _ => Data::Nodes(data(self)?),
                };
                Node::Array(Box::new(ArrayNode { of, size, data }))
            }
            Tag::Ref => Node::Module(self.path(tagged, Field::Path)?),
            Tag::Backref => return Err(invalid("a backref", "a number in it, and a place other than the root", at)),
            Tag::Anonymous => {
                let typename = self.type_at(tagged.field(Field::TypeName))?;
                let params = self.params(tagged.field(Field::Params))?;
                self.charge(size_of::<AnonymousNode>(), at)?;
                Node::AnonymousType(Box::new(AnonymousNode { typename, params }))
            }
        })
    }

    /// Reads the names of modules and of an item in them. A leading `Main` before `Base` and `Core` is omitted.
    fn path(&mut self, tagged: &Tagged, field: Field) -> Result<Vec<Text<'a>>> {
        let Payload { kind, at } = tagged.field(field);
        if kind != ElementType::Array {
            return Err(wrong_field(tagged.tag, "names", kind, at));
        }
        let mut cursor = self.inside(at)?;
        let mut path: Vec<Text<'a>> = Vec::new();
        while let Some((kind, _)) = cursor.next()? {
            if kind != ElementType::String {
                return Err(wrong_field(tagged.tag, "names", kind, cursor.offset()));
            }
            self.charge(size_of::<Text<'_>>(), at)?;
            path.push(Cow::Borrowed(cursor.string_bytes()?));
        }
        match &path[..] {
            [] => return Err(invalid("no name", "the names of modules and of an item in them", at)),
            [main, module, ..] if **main == *b"Main" && matches!(&**module, b"Base" | b"Core") => {
                path.remove(0);
            }
            _ => {}
        }
        Ok(path)
    }

    fn params(&mut self, payload: Payload) -> Result<Params> {
        let Payload { kind, at } = payload;
        if kind != ElementType::Array {
            // If all elements are numbers, it is an array of bits, which cannot be interpreted before its type is
            // known.
            let mut cursor = self.before(at);
            return self.child(kind, &mut cursor).map(Params::Of);
        }
        let mut cursor = self.inside(at)?;
        let mut ids = Vec::new();
        while let Some((kind, _)) = cursor.next()? {
            let at = cursor.offset();
            self.charge(size_of::<Id>(), at)?;
            let id = match kind {
                ElementType::Document => {
                    cursor.skip(kind)?;
                    self.type_at(Payload { kind, at })?
                }
                _ => self.child(kind, &mut cursor)?,
            };
            ids.push(id);
        }
        Ok(Params::List(ids))
    }

    /// Reads the sizes of an array, which must not be negative.
    fn size(&mut self, payload: Payload) -> Result<Vec<u64>> {
        let Payload { kind, at } = payload;
        if kind != ElementType::Array {
            return Err(wrong_field(Tag::Array, "size", kind, at));
        }
        let mut cursor = self.inside(at)?;
        let mut size = Vec::new();
        while let Some((kind, _)) = cursor.next()? {
            let at = cursor.offset();
            let length = self.integer(kind, at)?;
            let Ok(length) = u64::try_from(length) else {
                return Err(invalid(format!("the size {length}"), "0 or more", at));
            };
            self.charge(size_of::<u64>(), at)?;
            size.push(length);
            cursor.skip(kind)?;
        }
        Ok(size)
    }
}

/// Returns the error for a Julia value that cannot exist.
#[cold]
pub(super) fn invalid(found: impl Into<String>, expected: impl Into<String>, at: usize) -> Error {
    Error::new(ErrorKind::JuliaInvalid).with_found(found).with_expected(expected).with_offset(at as u64)
}

#[cold]
fn wrong_field(tag: Tag, field: &str, kind: ElementType, at: usize) -> Error {
    invalid(format!("{field} of type {kind}"), format!("what the tag {:?} requires there", tag.name()), at)
}
