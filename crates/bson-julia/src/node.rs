//! The parts of a graph: nodes in a list, which refer to each other by index.
//!
//! A node that several others refer to is one object in Julia. No code in this module follows a node into its parts, so
//! the code cannot loop or recurse deeply.

use super::Scalar;
use super::known::Known;
use millstream_bson::ElementType;
use std::borrow::Cow;

/// Bytes that are meant to be text.
pub(super) type Text<'a> = Cow<'a, [u8]>;

/// A node of a [`Graph`](super::Graph). Two values with the same id are the same object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id(pub(super) u32);

impl Id {
    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}

/// The index of one of a graph's layouts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LayoutId(pub(super) u32);

/// The memory layout of a value in an array.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    pub(super) of: Id,
    /// The size in bytes, including padding.
    pub(super) size: usize,
    /// The alignment in bytes, a power of two.
    pub(super) align: usize,
    /// The number of parts, including nested ones and the value itself.
    pub(super) count: u64,
    pub(super) parts: Parts,
}

/// The parts of the value.
#[derive(Clone, Debug)]
pub(super) enum Parts {
    Scalar(Known),
    /// The position of each field, and its layout.
    Fields(Form, Vec<(usize, LayoutId)>),
    /// The file does not describe the type.
    Unknown,
}

impl Layout {
    /// Returns a layout for a type that the file does not describe, whose elements have this many bytes.
    pub(super) fn unknown(of: Id, size: usize) -> Layout {
        Layout { of, size, align: 1, count: 1, parts: Parts::Unknown }
    }
}

/// The layout of an array whose type has not been examined. It does not occur in a finished graph.
pub(super) const NO_LAYOUT: LayoutId = LayoutId(u32::MAX);

#[derive(Clone, Debug)]
pub(super) enum Node<'a> {
    /// A reserved node that is not filled yet.
    Pending,
    Scalar(Scalar),
    String(Text<'a>),
    Symbol(Text<'a>),
    /// A value of a BSON type that Julia's packages do not write, with its type and its payload.
    Bson(ElementType, Text<'a>),
    Array(Box<ArrayNode<'a>>),
    Tuple(Vec<Id>),
    SimpleVector(Vec<Id>),
    Document(Vec<(Text<'a>, Id)>),
    Struct {
        form: Form,
        of: Id,
        fields: Vec<Id>,
    },
    /// A value of a primitive type that Julia itself does not define.
    Primitive(Box<(Id, Text<'a>)>),
    Undef,
    Module(Vec<Text<'a>>),
    DataType(Box<DataTypeNode<'a>>),
    Bottom,
    UnionAll {
        var: Id,
        body: Id,
    },
    /// The type of a function with a body.
    AnonymousType(Box<AnonymousNode>),
}

#[derive(Clone, Debug)]
pub(super) struct ArrayNode<'a> {
    /// The node of the element type.
    pub(super) of: Id,
    /// One length for each dimension; their product is the number of elements.
    pub(super) size: Vec<u64>,
    pub(super) data: Data<'a>,
}

impl ArrayNode<'_> {
    /// Returns the number of elements according to its sizes, or `None` if it is 2^64 or more.
    pub(super) fn count(&self) -> Option<u64> {
        product(&self.size)
    }
}

/// Returns the product of sizes, or `None` if it is 2^64 or more.
pub(super) fn product(size: &[u64]) -> Option<u64> {
    if size.contains(&0) {
        return Some(0);
    }
    size.iter().try_fold(1u64, |product, length| product.checked_mul(*length))
}

#[derive(Clone, Debug)]
pub(super) enum Data<'a> {
    /// The elements in their in-memory representation, one after another.
    Bits(Text<'a>, LayoutId),
    Nodes(Vec<Id>),
}

#[derive(Clone, Debug)]
pub(super) struct DataTypeNode<'a> {
    pub(super) path: Vec<Text<'a>>,
    pub(super) known: Known,
    pub(super) params: Params,
}

#[derive(Clone, Debug)]
pub(super) struct AnonymousNode {
    pub(super) typename: Id,
    pub(super) params: Params,
}

#[derive(Clone, Debug)]
pub(super) enum Params {
    List(Vec<Id>),
    /// The content of this array, which has not been extracted yet. It does not occur in a finished graph.
    Of(Id),
}

impl Params {
    pub(super) fn list(&self) -> &[Id] {
        match self {
            Params::List(list) => list,
            Params::Of(id) => std::slice::from_ref(id),
        }
    }
}

/// The meaning of a struct's fields. Except for `Plain`, their number and kind have been checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Plain,
    Complex,
    Rational,
    Pair,
    UnitRange,
    Ref,
    NamedTuple,
    Tuple,
    /// An array of keys and an array of values with the same length.
    Dict,
    /// A `Dict`.
    Set,
    /// An array of UInt64, a length in bits, and a tuple of sizes.
    BitArray,
    Function,
    /// A closure or another function with a body.
    Anonymous,
    /// Two types.
    Union,
    /// A symbol and two types.
    TypeVar,
}

impl Node<'_> {
    /// Visits the nodes to which this node refers, including types.
    pub(super) fn each_part(&self, mut visit: impl FnMut(Id)) {
        match self {
            Node::Array(array) => {
                visit(array.of);
                if let Data::Nodes(nodes) = &array.data {
                    nodes.iter().copied().for_each(visit);
                }
            }
            Node::Tuple(parts) | Node::SimpleVector(parts) => parts.iter().copied().for_each(visit),
            Node::Document(members) => members.iter().for_each(|member| visit(member.1)),
            Node::Struct { of, fields, .. } => {
                visit(*of);
                fields.iter().copied().for_each(visit);
            }
            Node::Primitive(primitive) => visit(primitive.0),
            Node::DataType(node) => node.params.list().iter().copied().for_each(visit),
            Node::UnionAll { var, body } => {
                visit(*var);
                visit(*body);
            }
            Node::AnonymousType(node) => {
                visit(node.typename);
                node.params.list().iter().copied().for_each(visit);
            }
            _ => {}
        }
    }

    /// Returns the size of the node's text and payload, without its parts.
    pub(super) fn text_len(&self) -> usize {
        let sum = |path: &[Text<'_>]| path.iter().map(|name| name.len()).sum();
        match self {
            Node::String(text) | Node::Symbol(text) | Node::Bson(_, text) => text.len(),
            Node::Primitive(primitive) => primitive.1.len(),
            Node::Document(members) => members.iter().map(|(key, _)| key.len()).sum(),
            Node::Module(path) => sum(path),
            Node::DataType(node) => sum(&node.path),
            _ => 0,
        }
    }

    /// Returns whether it is a type, a type variable or `Union{}`.
    pub(super) fn is_type(&self) -> bool {
        match self {
            Node::DataType(_) | Node::Bottom | Node::UnionAll { .. } | Node::AnonymousType(_) => true,
            Node::Struct { form, .. } => matches!(form, Form::Union | Form::TypeVar),
            _ => false,
        }
    }
}

/// Julia values with their identity: a BSON.jl or BSONqs file as plain data.
///
/// A value that is referenced several times or contains itself is one node with one [`Id`]. Types are names with
/// parameters: nothing is looked up or executed.
///
/// Its text is JSON on one line:
///
/// | Julia | JSON |
/// |---|---|
/// | nothing, Bool, String | `null`, `true`, a string (not UTF-8: `{"$bytes_hex"}`) |
/// | integers | a number; beyond 2^53 `{"$int":"…"}` |
/// | floating point | the fewest digits that read back as the same number of its type |
/// | NaN, infinity, -0.0 | `{"$float":"NaN","bits":hex}` |
/// | Char, Symbol, missing | `{"$char":"a","code":97}`, `{"$symbol":"x"}`, `{"$missing":true}` |
/// | symbol-keyed Dict | an object |
/// | other dicts, Set | `{"$dict":[[k,v],…],"type"}`, `{"$set":[…],"type"}` |
/// | Tuple, NamedTuple, Pair | `{"$tuple":[…]}`, `{"$namedtuple":[["a",1],…]}`, `{"$pair":[a,b]}` |
/// | Complex, Rational, UnitRange | `{"$complex":[re,im]}`, `{"$rational":[num,den]}`, `{"$range":[start,stop]}` |
/// | Array, BitArray | `{"$array":[column-major],"eltype","size"}`, `{"$bitarray":[…],"size"}` |
/// | Ref | `{"$ref":x,"type"}` |
/// | struct (the file does not contain the names of fields) | `{"$struct":type,"fields":[…]}` |
/// | a value of a user-defined primitive type | `{"$primitive":type,"bytes_hex"}` |
/// | an element of a type the file does not describe | `{"$bits":type,"bytes_hex"}` |
/// | types, modules, functions | `{"$type":text,"kind"}`, `{"$module"}`, `{"$function":"Base.sin"}` |
/// | a function with a body, which stays opaque | `{"$anonymous":true,"captures":[…]}` |
/// | no value | `{"$undef":true}` |
/// | a repeated object, or a repeated text over 256 bytes | first `{"$id":n,"$value":…}`, then `{"$sameas":n}` |
/// | a value that only BSON has | `{"$bson":type,"bytes_hex"}` |
///
/// Types and the names of modules, functions and named tuple members are cut off with `…` after 4 KiB. Dictionaries can
/// share content without being the same object: after 16 MiB of repeated content, further repetitions are `"…"`.
#[derive(Clone, Debug)]
pub struct Graph<'a> {
    pub(super) nodes: Vec<Node<'a>>,
    pub(super) layouts: Vec<Layout>,
    pub(super) root: Id,
}

impl<'a> Graph<'a> {
    pub(super) fn node(&self, id: Id) -> &Node<'a> {
        &self.nodes[id.index()]
    }

    pub(super) fn data_type(&self, id: Id) -> Option<&DataTypeNode<'a>> {
        match self.node(id) {
            Node::DataType(node) => Some(node),
            _ => None,
        }
    }

    /// Returns the known type of this node, or `Other`.
    pub(super) fn known(&self, id: Id) -> Known {
        self.data_type(id).map_or(Known::Other, |node| node.known)
    }

    /// Finds the nodes that can be reached from this node in more than one way, possibly including itself. Only nodes
    /// for which `follow` returns true are visited.
    pub(super) fn shared_from(&self, id: Id, follow: impl Fn(Id) -> bool) -> Vec<bool> {
        let mut seen = vec![false; self.nodes.len()];
        let mut again = vec![false; self.nodes.len()];
        let mut to_do = vec![id];
        seen[id.index()] = true;
        while let Some(id) = to_do.pop() {
            self.node(id).each_part(|part| {
                if !follow(part) {
                } else if seen[part.index()] {
                    again[part.index()] = true;
                } else {
                    seen[part.index()] = true;
                    to_do.push(part);
                }
            });
        }
        again
    }
}
