//! Types as names with parameters, and their notation in Julia.

use super::known::{Known, shown_plain};
use super::node::{Form, Graph, Id, Node, Text};
use super::scalar::Scalar;
use std::fmt::{self, Write as _};

/// The maximum length of a type's text in bytes, after which it is cut off with `…`. Types can be circular, or expand
/// without limit.
const LONGEST: usize = 4096;

/// A type: a name with parameters, which is never looked up.
///
/// Its text is Julia's notation, as in version 1.5: `Array{Float64,1}`, `Base.RefValue{Int64}`, `Complex{T} where
/// T<:Real`. Text of more than 4 KiB is cut off with `…`.
#[derive(Clone, Copy)]
pub struct Type<'g> {
    pub(super) graph: &'g Graph<'g>,
    pub(super) id: Id,
}

/// The kind of type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TypeKind {
    /// A name with parameters.
    DataType,
    /// A union of two types.
    Union,
    /// A type with a variable.
    UnionAll,
    /// A type variable.
    TypeVar,
    /// `Union{}`, which has no values.
    Bottom,
    /// The type of a function with a body.
    Anonymous,
}

impl TypeKind {
    /// Julia's name for the kind; for `Bottom` it is `TypeofBottom`.
    pub const fn name(self) -> &'static str {
        match self {
            TypeKind::DataType | TypeKind::Anonymous => "DataType",
            TypeKind::Union => "Union",
            TypeKind::UnionAll => "UnionAll",
            TypeKind::TypeVar => "TypeVar",
            TypeKind::Bottom => "TypeofBottom",
        }
    }
}

impl<'g> Type<'g> {
    /// Returns the kind of type.
    pub fn kind(&self) -> TypeKind {
        match self.graph.node(self.id) {
            Node::Struct { form: Form::Union, .. } => TypeKind::Union,
            Node::Struct { form: Form::TypeVar, .. } => TypeKind::TypeVar,
            Node::UnionAll { .. } => TypeKind::UnionAll,
            Node::Bottom => TypeKind::Bottom,
            Node::AnonymousType(_) => TypeKind::Anonymous,
            _ => TypeKind::DataType,
        }
    }

    /// Returns the names of its modules, starting with the outermost, and its own name: `["Base", "Complex"]`. A
    /// leading `Main` before `Base` and `Core` is omitted. Only a [`DataType`](TypeKind::DataType) has names.
    pub fn path(&self) -> impl Iterator<Item = &'g [u8]> + use<'g> {
        let path: &'g [Text<'g>] = self.graph.data_type(self.id).map_or(&[], |node| &node.path);
        path.iter().map(|name| name.as_ref())
    }

    /// Returns whether it is the type of `Core` or `Base` with this name, for any parameters: `is("Array")`.
    pub fn is(&self, name: &str) -> bool {
        let path = self.graph.data_type(self.id).and_then(|node| node.known.path());
        path.is_some_and(|[module, of]| module != "BSON" && of == name)
    }
}

impl fmt::Display for Type<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.graph.type_text(self.id))
    }
}

impl fmt::Debug for Type<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Type({self})")
    }
}

/// The parts that are still to be written, in reverse order.
enum Step {
    Text(&'static str),
    Of(Id),
    /// A member of a union, whose own members follow it.
    Member(Id),
    /// A type variable with its bounds.
    Variable(Id),
}

impl<'a> Graph<'a> {
    /// Returns a type in Julia's notation.
    pub(super) fn type_text(&self, id: Id) -> String {
        let mut out = String::new();
        let mut to_do = vec![Step::Of(id)];
        let mut steps = 0;
        while let Some(step) = to_do.pop() {
            steps += 1;
            if out.len() > LONGEST || steps > LONGEST || to_do.len() > 2 * LONGEST {
                end(&mut out);
                return out;
            }
            match step {
                Step::Text(text) => out.push_str(text),
                Step::Of(id) => self.type_step(id, &mut out, &mut to_do),
                Step::Member(id) => match self.node(id) {
                    Node::Struct { form: Form::Union, fields, .. } => {
                        to_do.extend([Step::Member(fields[1]), Step::Text(", "), Step::Member(fields[0])]);
                    }
                    _ => to_do.push(Step::Of(id)),
                },
                Step::Variable(id) => {
                    let Node::Struct { form: Form::TypeVar, fields, .. } = self.node(id) else { continue };
                    if self.known(fields[2]) != Known::Any {
                        to_do.extend([Step::Of(fields[2]), Step::Text("<:")]);
                    }
                    to_do.push(Step::Of(id));
                    if !matches!(self.node(fields[1]), Node::Bottom) {
                        to_do.extend([Step::Text("<:"), Step::Of(fields[1])]);
                    }
                }
            }
        }
        if out.len() > LONGEST {
            end(&mut out);
        }
        out
    }

    fn type_step(&self, id: Id, out: &mut String, to_do: &mut Vec<Step>) {
        match self.node(id) {
            Node::DataType(node) => {
                let [modules @ .., name] = &node.path[..] else { return };
                match modules {
                    [module] if shown_plain(module, name) => {}
                    // The modules that can be shown, each followed by a dot.
                    _ => modules.iter().take(LONGEST).for_each(|module| {
                        push_name(module, out);
                        out.push('.');
                    }),
                }
                push_name(name, out);
                let params = node.params.list();
                if !params.is_empty() || node.known == Known::Tuple {
                    out.push('{');
                    list(to_do, "}", ",", params);
                }
            }
            Node::Struct { form: Form::Union, fields, .. } => {
                out.push_str("Union{");
                to_do.push(Step::Text("}"));
                to_do.extend([Step::Member(fields[1]), Step::Text(", "), Step::Member(fields[0])]);
            }
            Node::Struct { form: Form::TypeVar, fields, .. } => {
                if let Node::Symbol(name) = self.node(fields[0]) {
                    push_name(name, out);
                }
            }
            Node::UnionAll { var, body } => {
                to_do.extend([Step::Variable(*var), Step::Text(" where "), Step::Of(*body)]);
            }
            Node::Bottom => out.push_str("Union{}"),
            Node::AnonymousType(_) => out.push_str("(anonymous function)"),
            Node::Symbol(name) => {
                out.push(':');
                push_name(name, out);
            }
            Node::Tuple(parts) => {
                out.push('(');
                list(to_do, if parts.len() == 1 { ",)" } else { ")" }, ", ", parts);
            }
            Node::Scalar(Scalar::Char(value)) => match value.to_char() {
                Some(value) => drop(write!(out, "{value:?}")),
                None => out.push('…'),
            },
            Node::Scalar(scalar) => match scalar.as_i128() {
                Some(value) => drop(write!(out, "{value}")),
                None => drop(write!(out, "{scalar}")),
            },
            _ => out.push('…'),
        }
    }
}

/// Adds a list and its end to the parts that are still to be written. Text that is too long to be shown is not added.
fn list(to_do: &mut Vec<Step>, end: &'static str, between: &'static str, ids: &[Id]) {
    to_do.push(Step::Text(end));
    for (i, id) in ids.iter().enumerate().take(LONGEST).rev() {
        to_do.push(Step::Of(*id));
        if i > 0 {
            to_do.push(Step::Text(between));
        }
    }
}

/// Appends the part of a name that can be shown.
fn push_name(name: &[u8], out: &mut String) {
    if out.len() <= LONGEST {
        out.push_str(&identifier(beginning(name)));
    }
}

/// Returns the names of a module or a function separated by dots, as far as they can be shown.
pub(super) fn short_path<'p>(names: impl Iterator<Item = &'p [u8]>) -> String {
    let mut out = String::new();
    for (i, name) in names.enumerate() {
        if i > 0 {
            out.push('.');
        }
        out.push_str(&String::from_utf8_lossy(beginning(name)));
        if out.len() > LONGEST {
            end(&mut out);
            break;
        }
    }
    out
}

/// Returns the part of a name that is examined. It is longer than the part that is shown, so that a remaining part is
/// detected.
fn beginning(name: &[u8]) -> &[u8] {
    const MOST: usize = LONGEST + 4;
    let begins = |at: &usize| name[*at] & 0xc0 != 0x80; // not a byte inside a UTF-8 character
    match name.len() {
        0..=MOST => name,
        _ => &name[..(LONGEST + 1..=MOST).rfind(begins).unwrap_or(MOST)],
    }
}

/// Ends a text that is too long to be shown.
fn end(text: &mut String) {
    text.truncate(text.floor_char_boundary(LONGEST));
    text.push('…');
}

/// Returns a name in Julia's notation, which is quoted if it is not an identifier.
pub(super) fn identifier(name: &[u8]) -> String {
    let text = String::from_utf8_lossy(name);
    let good = |c: char| c.is_alphanumeric() || c == '_' || c == '!';
    match text.starts_with(|c: char| c.is_alphabetic() || c == '_') && text.chars().all(good) {
        true => text.into_owned(),
        false => format!("var{text:?}"),
    }
}
