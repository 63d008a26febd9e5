//! Interprets structs and validates the whole graph, after all nodes have been read.
//!
//! This takes three passes over the nodes, because each depends on the results of the previous one: the parameters of
//! types, the interpretation of structs, and the requirements on their parts and arrays.

use super::Scalar;
use super::known::Known;
use super::layout::{self, Described, Layouts, named_tuple};
use super::node::{ArrayNode, Data, Form, Id, Layout, LayoutId, Node, Params, Text};
use super::read::{Reading, invalid};
use millstream_core::{Error, ErrorKind, Result};
use std::mem;

impl<'a> Reading<'a> {
    pub(super) fn raise(&mut self, described: &Described) -> Result<()> {
        for index in 0..self.graph.nodes.len() {
            self.raise_params(index)?;
        }
        for index in 0..self.graph.nodes.len() {
            let node = mem::replace(&mut self.graph.nodes[index], Node::Pending);
            self.graph.nodes[index] = self.raise_struct(node, Id(index as u32))?;
        }
        let mut layouts = Layouts::default();
        for index in 0..self.graph.nodes.len() {
            self.check(Id(index as u32), &mut layouts, described)?;
        }
        Ok(())
    }

    /// The first pass: extracts parameters from arrays.
    fn raise_params(&mut self, index: usize) -> Result<()> {
        let source = match &self.graph.nodes[index] {
            Node::DataType(node) => &node.params,
            Node::AnonymousType(node) => &node.params,
            _ => return Ok(()),
        };
        let Params::Of(source) = *source else { return Ok(()) };
        let list = Params::List(self.content(source)?);
        match &mut self.graph.nodes[index] {
            Node::DataType(node) => node.params = list,
            Node::AnonymousType(node) => node.params = list,
            _ => {}
        }
        Ok(())
    }

    /// Returns the elements of an array as nodes.
    fn content(&mut self, source: Id) -> Result<Vec<Id>> {
        let at = self.place(source);
        let bad = || invalid("type parameters that are not a list", "an array of them", at);
        let Node::Array(array) = self.graph.node(source) else { return Err(bad()) };
        let (bytes, size) = match &array.data {
            Data::Nodes(ids) => {
                let ids = ids.clone();
                self.charge(size_of_val(&ids[..]), at)?;
                return Ok(ids);
            }
            Data::Bits(bytes, _) => (bytes.clone(), array.count()),
        };
        let known = self.graph.known(array.of);
        let width = known.scalar_size().filter(|width| *width > 0).ok_or_else(bad)?;
        if size != Some((bytes.len() / width) as u64) || bytes.len() % width != 0 {
            return Err(bad());
        }
        let mut ids = Vec::new();
        for bytes in bytes.chunks_exact(width) {
            self.charge(mem::size_of::<Id>(), at)?;
            let scalar = Scalar::from_memory(known, bytes).ok_or_else(bad)?;
            ids.push(self.push(Node::Scalar(scalar), at)?);
        }
        Ok(ids)
    }

    /// The second pass: interprets a struct according to its type.
    fn raise_struct(&self, node: Node<'a>, id: Id) -> Result<Node<'a>> {
        let at = self.place(id);
        match node {
            Node::Primitive(primitive) => {
                let Some(known) = self.graph.data_type(primitive.0).map(|node| node.known) else {
                    return Err(invalid("bytes of a type that has no values", "a primitive type", at));
                };
                let bytes = &primitive.1;
                match known.scalar_size() {
                    Some(size) if size == bytes.len() && size > 0 => {
                        let bad = || invalid("bytes that are not a value", "a value", at);
                        Scalar::from_memory(known, bytes).map(Node::Scalar).ok_or_else(bad)
                    }
                    None if known == Known::Other && !bytes.is_empty() => Ok(Node::Primitive(primitive)),
                    size => {
                        let found = format!("{} bytes for a {}", bytes.len(), self.graph.type_text(primitive.0));
                        let expected = match size {
                            Some(size) => format!("{size} bytes"),
                            None => "a list of its fields, or at least one byte".to_string(),
                        };
                        Err(invalid(found, expected, at))
                    }
                }
            }
            Node::Struct { of, fields, .. } => {
                let form = match self.graph.node(of) {
                    Node::DataType(node) => match self.form(node.known, &node.path, node.params.list(), fields.len()) {
                        Ok(form) => form,
                        Err(Some(node)) => return Ok(node),
                        Err(None) => {
                            let found = format!("{} fields for a {}", fields.len(), self.graph.type_text(of));
                            return Err(invalid(found, "what a value of that type has", at));
                        }
                    },
                    Node::AnonymousType(_) => Form::Anonymous,
                    _ => return Err(invalid("a struct of a type that has no values", "a concrete type", at)),
                };
                Ok(Node::Struct { form, of, fields })
            }
            node => Ok(node),
        }
    }

    /// Returns the interpretation of a struct with this many fields, or the node that replaces the struct, if any.
    fn form(&self, known: Known, path: &[Text<'_>], params: &[Id], count: usize) -> Result<Form, Option<Node<'a>>> {
        match (known, count) {
            (Known::Nothing, 0) => Err(Some(Node::Scalar(Scalar::Nothing))),
            (Known::Missing, 0) => Err(Some(Node::Scalar(Scalar::Missing))),
            (Known::Undef, 0) => Err(Some(Node::Undef)),
            (Known::Complex, 2) => Ok(Form::Complex),
            (Known::Rational, 2) => Ok(Form::Rational),
            (Known::Pair, 2) => Ok(Form::Pair),
            (Known::UnitRange, 2) => Ok(Form::UnitRange),
            (Known::RefValue, 0 | 1) => Ok(Form::Ref),
            (Known::NamedTuple, _) => Ok(Form::NamedTuple),
            (Known::Dict | Known::IdDict, 2) => Ok(Form::Dict),
            (Known::Set, 1) => Ok(Form::Set),
            (Known::BitArray, 3) => Ok(Form::BitArray),
            (Known::Union, 2) => Ok(Form::Union),
            (Known::TypeVar, 3) => Ok(Form::TypeVar),
            (Known::Other, 0) if params.is_empty() => match path.last() {
                Some(name) if name.len() > 1 && name[0] == b'#' => Ok(Form::Function),
                _ => Ok(Form::Plain),
            },
            (Known::Other | Known::TypeName, _) => Ok(Form::Plain),
            _ => Err(None),
        }
    }

    /// The third pass: checks the requirements on parts and arrays.
    fn check(&mut self, id: Id, layouts: &mut Layouts, described: &Described) -> Result<()> {
        let at = self.place(id);
        let graph = &self.graph;
        let is_type = |id: &Id| graph.node(*id).is_type();
        match graph.node(id) {
            Node::Array(array) => self.check_array(id, array.of, layouts, described),
            Node::UnionAll { var, body } => {
                let has_var = matches!(graph.node(*var), Node::Struct { form: Form::TypeVar, .. });
                require(has_var && is_type(body), "a UnionAll with other parts", "a TypeVar and a type", at)
            }
            Node::AnonymousType(node) => {
                let name = graph.node(node.typename);
                let good = matches!(name, Node::Struct { of, .. } if graph.known(*of) == Known::TypeName);
                require(good, "a function without a body", "a Core.TypeName", at)
            }
            Node::Struct { form, of, fields } => match form {
                Form::Union => require(fields.iter().all(is_type), "a Union with other parts", "two types", at),
                Form::TypeVar => {
                    let named = matches!(graph.node(fields[0]), Node::Symbol(_));
                    let good = named && fields[1..].iter().all(is_type);
                    require(good, "a TypeVar with other parts", "a symbol and two types", at)
                }
                Form::Dict => {
                    let count = |id| graph.array(id).map(|array| array.size());
                    let good = matches!((count(fields[0]), count(fields[1])), (Some([a]), Some([b])) if a == b);
                    require(
                        good,
                        "a dictionary with other parts",
                        "a vector of keys and an equally long vector of values",
                        at,
                    )
                }
                // The dictionary in it is checked separately.
                Form::Set => require(graph.dict_keys(fields[0]).is_some(), "a Set of something else", "a Dict", at),
                Form::NamedTuple => {
                    let params = graph.data_type(*of).map_or(&[][..], |node| node.params.list());
                    let names = named_tuple(graph, params).map(|(names, _)| names.len());
                    if names == Some(fields.len()) {
                        return Ok(());
                    }
                    let found = format!("{} fields for a {}", fields.len(), graph.type_text(*of));
                    Err(invalid(found, "one for each name in its type", at))
                }
                Form::BitArray => self.check_bit_array(id),
                _ => Ok(()),
            },
            _ => Ok(()),
        }
    }

    fn check_array(&mut self, id: Id, of: Id, layouts: &mut Layouts, described: &Described) -> Result<()> {
        let at = self.place(id);
        if !self.graph.node(of).is_type() {
            return Err(invalid("an array whose element type is not a type", "the type of its elements", at));
        }
        let Node::Array(array) = self.graph.node(id) else { return Ok(()) };
        let Some(count) = array.count().and_then(|count| usize::try_from(count).ok()) else {
            return Err(invalid(format!("the size {}", format_size(array)), "fewer than 2^64 elements", at));
        };
        let len = match &array.data {
            Data::Nodes(ids) if ids.len() == count => return Ok(()),
            Data::Nodes(ids) => {
                let found = format!("{} elements for the size {}", ids.len(), format_size(array));
                return Err(invalid(found, "as many as the size says", at));
            }
            Data::Bits(bytes, _) => bytes.len(),
        };
        let has_bits = self.graph.data_type(of).is_some_and(|node| may_be_bits(node.known));
        let known = if has_bits { layouts.of(&mut self.graph, described, of) } else { None };
        let (layout, width) = match known {
            Some(layout) => (layout, self.graph.layouts[layout.0 as usize].size),
            None if (has_bits || len == 0) && len.checked_rem(count).unwrap_or(len) == 0 => {
                self.charge(mem::size_of::<Layout>(), at)?;
                let width = len.checked_div(count).unwrap_or(0);
                (layout::add(&mut self.graph, Layout::unknown(of, width)), width)
            }
            None => {
                let found = format!("{len} bytes for {count} elements of type {}", self.graph.type_text(of));
                return Err(invalid(found, "the same number of bytes for each element of an isbits type", at));
            }
        };
        if width.checked_mul(count) != Some(len) {
            let found = format!("{len} bytes for {count} elements of {width} bytes each");
            return Err(invalid(found, "as many as their product", at));
        }
        if width == 0 {
            match self.empty_left.checked_sub(count as u64) {
                Some(left) => self.empty_left = left,
                None => {
                    return Err(Error::new(ErrorKind::MemoryLimit)
                        .with_found(format!("{count} elements without bytes"))
                        .with_expected("not many more than the file has bytes")
                        .with_offset(at as u64));
                }
            }
        }
        self.set_layout(id, layout);
        Ok(())
    }

    fn set_layout(&mut self, id: Id, layout: LayoutId) {
        if let Node::Array(array) = &mut self.graph.nodes[id.index()]
            && let Data::Bits(_, unset) = &mut array.data
        {
            *unset = layout;
        }
    }

    /// Checks the bits, their number, and the sizes. A vector's sizes are arbitrary bytes and are replaced.
    fn check_bit_array(&mut self, id: Id) -> Result<()> {
        let at = self.place(id);
        let graph = &self.graph;
        let bad = |found: &str| invalid(found, "a BitArray's chunks, its length and its sizes", at);
        let Node::Struct { of, fields, .. } = graph.node(id) else { return Ok(()) };
        let &[chunks, count, dims] = &fields[..] else { return Err(bad("other fields")) };
        let Some(array) = graph.array(chunks).filter(|array| array.element_type().is("UInt64")) else {
            return Err(bad("chunks that are not of 64 bits"));
        };
        let len = array.payload().map(|bytes| bytes.len() as u64);
        let bits = graph.integer(count).and_then(|bits| u64::try_from(bits).ok());
        let Some(bits) = bits.filter(|bits| len == bits.div_ceil(64).checked_mul(8)) else {
            return Err(bad("a length that does not match its chunks"));
        };
        let Node::Tuple(sizes) = graph.node(dims) else { return Err(bad("no sizes")) };
        let rank = graph.data_type(*of).and_then(|node| graph.integer(*node.params.list().first()?));
        if rank.unwrap_or(sizes.len() as i64) == 1 {
            self.charge(mem::size_of::<Id>(), at)?;
            let dims = self.push(Node::Tuple(vec![count]), at)?;
            if let Node::Struct { fields, .. } = &mut self.graph.nodes[id.index()] {
                fields[2] = dims;
            }
            return Ok(());
        }
        let sizes = sizes.iter().map(|id| u64::try_from(graph.integer(*id)?).ok()).collect::<Option<Vec<_>>>();
        match sizes.and_then(|sizes| super::node::product(&sizes)) {
            Some(product) if product == bits => Ok(()),
            _ => Err(bad("sizes that do not match its length")),
        }
    }
}

fn require(good: bool, found: &str, expected: &str, at: usize) -> Result<()> {
    if good { Ok(()) } else { Err(invalid(found, expected, at)) }
}

/// Returns whether values of this type can be in an array without references.
fn may_be_bits(known: Known) -> bool {
    use Known as K;
    let never = [
        K::Any,
        K::Array,
        K::String,
        K::Symbol,
        K::Union,
        K::TypeVar,
        K::TypeName,
        K::BitArray,
        K::Dict,
        K::IdDict,
        K::Set,
        K::RefValue,
    ];
    !never.contains(&known)
}

/// Formats sizes as Julia shows them: `2×3`.
fn format_size(array: &ArrayNode<'_>) -> String {
    let mut text = String::new();
    for (i, length) in array.size.iter().enumerate() {
        if i == 8 {
            return text + "×…";
        }
        text += if i > 0 { "×" } else { "" };
        text += &length.to_string();
    }
    text
}
