//! Writes a graph as JSON text, without recursion: a list contains the parts that are still to be written.
//!
//! An object that is referenced more than once is written only one time. However, the content of a `Dict` or a `Set` is
//! stored in arrays that are not shown themselves. A file of some hundred bytes can share these arrays on many levels,
//! so that the number of paths to a value grows exponentially. Therefore repeated output is limited: [`MOST_AGAIN`].

use super::node::{Graph, Id};
use super::types::short_path;
use super::{Kind, Members, Type, Value, Values};
use std::fmt::{self, Write};

enum Step<'g> {
    Text(&'static str),
    Value(Value<'g>),
    /// Comma-separated values, and whether one has been written.
    Values(Values<'g>, bool),
    Members(Members<'g>, bool),
    /// Keys and values, as arrays of two.
    Pairs(Values<'g>, Values<'g>, bool),
    /// Names and values, as arrays of two.
    Named(Values<'g>, Values<'g>, bool),
    /// `,"type":…}`
    TypeEnd(Type<'g>),
    /// `],"eltype":…,"size":…}`
    ArrayEnd(Type<'g>, &'g [u64]),
    SizeEnd(Vec<u64>),
    /// The end of a value that had been written before.
    AgainEnd,
}

impl Step<'_> {
    /// Returns whether it is the remaining part of a list.
    fn is_rest(&self) -> bool {
        matches!(self, Step::Values(..) | Step::Members(..) | Step::Pairs(..) | Step::Named(..))
    }
}

/// The maximum number of bytes for values that were written before. After that, each such value is `"…"`, and a list
/// ends after it.
const MOST_AGAIN: usize = 16 << 20;

/// The destination of the text, which limits repeated output.
struct Output<'f, 'a> {
    f: &'f mut fmt::Formatter<'a>,
    /// The current nesting of repeated values.
    inside: usize,
    again: usize,
}

impl<'f, 'a> Output<'f, 'a> {
    fn new(f: &'f mut fmt::Formatter<'a>) -> Self {
        Output { f, inside: 0, again: 0 }
    }

    /// Returns whether the limit for repeated values has been reached.
    fn is_spent(&self) -> bool {
        self.inside > 0 && self.again > MOST_AGAIN
    }
}

impl Write for Output<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.inside > 0 {
            self.again += text.len();
        }
        self.f.write_str(text)
    }
}

/// Writes JSON on one line; the documentation of [`Graph`] describes it.
impl fmt::Display for Graph<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        show(self.root(), &mut Output::new(f))
    }
}

/// Writes JSON on one line; the documentation of [`Graph`] describes it.
impl fmt::Display for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        show(*self, &mut Output::new(f))
    }
}

/// A placeholder for the number of an object that is assigned when the object is written.
const LATER: u32 = u32::MAX;

/// Marks a value without a number that has already been written with its whole content.
const WRITTEN: u32 = u32::MAX - 1;

/// Returns the numbers of objects that are referenced more than once: [`LATER`] until the object is written, and 0 for
/// all other values.
fn numbers(value: Value<'_>) -> Vec<u32> {
    let graph = value.graph;
    let Some(id) = value.id() else { return Vec::new() };
    // Types are shown by name, not as objects.
    let again = graph.shared_from(id, |id: Id| !graph.node(id).is_type());
    let is_object = |index: usize| graph.is_object(Id(index as u32));
    let number = |(index, again)| if again && is_object(index) { LATER } else { 0 };
    again.into_iter().enumerate().map(number).collect()
}

fn show<'g>(value: Value<'g>, f: &mut Output<'_, '_>) -> fmt::Result {
    let mut numbers = numbers(value);
    let mut last = 0;
    let mut to_do = vec![Step::Value(value)];
    while let Some(step) = to_do.pop() {
        match step {
            Step::Text(text) => f.write_str(text)?,
            step if f.is_spent() && step.is_rest() => {}
            Step::Value(value) => {
                let number = value.id().and_then(|id| numbers.get_mut(id.index()));
                match number.as_deref() {
                    number if f.is_spent() || number == Some(&WRITTEN) && f.again > MOST_AGAIN => {
                        f.write_str(r#""…""#)?;
                        continue;
                    }
                    Some(&WRITTEN) => {
                        f.inside += 1;
                        to_do.push(Step::AgainEnd);
                    }
                    Some(&LATER) => {
                        last += 1;
                        write!(f, r#"{{"$id":{last},"$value":"#)?;
                        to_do.push(Step::Text("}"));
                    }
                    None | Some(0) => {}
                    Some(number) => {
                        write!(f, r#"{{"$sameas":{number}}}"#)?;
                        continue;
                    }
                }
                let before = to_do.len();
                one(value, f, &mut to_do)?;
                // A value without content (a scalar, a type, a short text) is written at
                // most once per reference.
                match number {
                    Some(number) if *number == LATER => *number = last,
                    Some(number) if to_do.len() > before => *number = WRITTEN,
                    _ => {}
                }
            }
            Step::AgainEnd => f.inside -= 1,
            Step::Values(mut values, comma) => {
                if let Some(value) = values.next() {
                    separate(f, comma)?;
                    to_do.extend([Step::Values(values, true), Step::Value(value)]);
                }
            }
            Step::Members(mut members, comma) => {
                if let Some((key, value)) = members.next() {
                    separate(f, comma)?;
                    text(f, &String::from_utf8_lossy(key))?;
                    f.write_char(':')?;
                    to_do.extend([Step::Members(members, true), Step::Value(value)]);
                }
            }
            Step::Pairs(mut keys, mut values, comma) => {
                if let (Some(key), Some(value)) = (keys.next(), values.next()) {
                    separate(f, comma)?;
                    f.write_char('[')?;
                    to_do.extend([Step::Pairs(keys, values, true), Step::Text("]"), Step::Value(value)]);
                    to_do.extend([Step::Text(","), Step::Value(key)]);
                }
            }
            Step::Named(mut names, mut values, comma) => {
                if let (Some(name), Some(value)) = (names.next(), values.next()) {
                    separate(f, comma)?;
                    f.write_char('[')?;
                    text(f, &short_path(name.as_bytes().into_iter()))?;
                    f.write_char(',')?;
                    to_do.extend([Step::Named(names, values, true), Step::Text("]"), Step::Value(value)]);
                }
            }
            Step::TypeEnd(of) => {
                f.write_str(r#","type":"#)?;
                text(f, &of.to_string())?;
                f.write_char('}')?;
            }
            Step::ArrayEnd(of, size) => {
                f.write_str(r#"],"eltype":"#)?;
                text(f, &of.to_string())?;
                sizes(f, size)?;
            }
            Step::SizeEnd(size) => {
                f.write_char(']')?;
                sizes(f, &size)?;
            }
        }
    }
    Ok(())
}

/// Writes the beginning of a value and adds the remaining parts to the list.
fn one<'g>(value: Value<'g>, f: &mut Output<'_, '_>, to_do: &mut Vec<Step<'g>>) -> fmt::Result {
    let mut list = |f: &mut Output<'_, '_>, begin: &str, values: &[Value<'g>], end: &'static str| {
        to_do.push(Step::Text(end));
        for (i, value) in values.iter().enumerate().rev() {
            to_do.push(Step::Value(*value));
            if i > 0 {
                to_do.push(Step::Text(","));
            }
        }
        f.write_str(begin)
    };
    match value.kind() {
        Kind::Scalar(scalar) => write!(f, "{scalar}"),
        Kind::String(bytes) => match std::str::from_utf8(bytes) {
            Ok(valid) => text(f, valid),
            Err(_) => {
                f.write_str(r#"{"$bytes_hex":"#)?;
                hex(f, bytes)
            }
        },
        Kind::Symbol(bytes) => {
            f.write_str(r#"{"$symbol":"#)?;
            text(f, &String::from_utf8_lossy(bytes))?;
            f.write_char('}')
        }
        Kind::Array(array) => {
            to_do.push(Step::ArrayEnd(array.element_type(), array.size()));
            to_do.push(Step::Values(array.elements(), false));
            f.write_str(r#"{"$array":["#)
        }
        Kind::BitArray(size, bits) => {
            to_do.extend([Step::SizeEnd(size), Step::Values(bits, false)]);
            f.write_str(r#"{"$bitarray":["#)
        }
        Kind::Tuple(values) => {
            to_do.extend([Step::Text("]}"), Step::Values(values, false)]);
            f.write_str(r#"{"$tuple":["#)
        }
        Kind::SimpleVector(values) => {
            to_do.extend([Step::Text("]}"), Step::Values(values, false)]);
            f.write_str(r#"{"$svec":["#)
        }
        Kind::NamedTuple(names, values) => {
            to_do.extend([Step::Text("]}"), Step::Named(names, values, false)]);
            f.write_str(r#"{"$namedtuple":["#)
        }
        Kind::Pair(a, b) => list(f, r#"{"$pair":["#, &[a, b], "]}"),
        Kind::Complex(a, b) => list(f, r#"{"$complex":["#, &[a, b], "]}"),
        Kind::Rational(a, b) => list(f, r#"{"$rational":["#, &[a, b], "]}"),
        Kind::UnitRange(a, b) => list(f, r#"{"$range":["#, &[a, b], "]}"),
        Kind::Ref(of, inside) => {
            to_do.push(Step::TypeEnd(of));
            match inside {
                Some(inside) => to_do.push(Step::Value(inside)),
                None => to_do.push(Step::Text(r#"{"$undef":true}"#)),
            }
            f.write_str(r#"{"$ref":"#)
        }
        Kind::Dict(of, keys, values) => {
            to_do.extend([Step::TypeEnd(of), Step::Text("]"), Step::Pairs(keys, values, false)]);
            f.write_str(r#"{"$dict":["#)
        }
        Kind::Set(of, values) => {
            to_do.extend([Step::TypeEnd(of), Step::Text("]"), Step::Values(values, false)]);
            f.write_str(r#"{"$set":["#)
        }
        Kind::Struct(of, fields) => {
            to_do.extend([Step::Text("]}"), Step::Values(fields, false)]);
            f.write_str(r#"{"$struct":"#)?;
            text(f, &of.to_string())?;
            f.write_str(r#","fields":["#)
        }
        Kind::Primitive(of, bytes) => typed_bytes(f, "$primitive", &of.to_string(), bytes),
        Kind::Bits(of, bytes) => typed_bytes(f, "$bits", &of.to_string(), bytes),
        Kind::Bson(kind, bytes) => typed_bytes(f, "$bson", kind.name(), bytes),
        Kind::Type(of) => {
            f.write_str(r#"{"$type":"#)?;
            text(f, &of.to_string())?;
            write!(f, r#","kind":"{}"}}"#, of.kind().name())
        }
        Kind::Module(path) => {
            f.write_str(r#"{"$module":"#)?;
            text(f, &short_path(path.names()))?;
            f.write_char('}')
        }
        Kind::Function(path) => {
            f.write_str(r#"{"$function":"#)?;
            text(f, &short_path(path.names()))?;
            f.write_char('}')
        }
        Kind::Anonymous(captures) => {
            to_do.extend([Step::Text("]}"), Step::Values(captures, false)]);
            f.write_str(r#"{"$anonymous":true,"captures":["#)
        }
        Kind::Undef => f.write_str(r#"{"$undef":true}"#),
        Kind::Document(members) => {
            to_do.extend([Step::Text("}"), Step::Members(members, false)]);
            f.write_char('{')
        }
    }
}

fn separate(f: &mut Output<'_, '_>, comma: bool) -> fmt::Result {
    if comma { f.write_char(',') } else { Ok(()) }
}

/// Writes quoted text. Long text is written in pieces, so that it is not copied as a whole.
fn text(f: &mut Output<'_, '_>, mut text: &str) -> fmt::Result {
    f.write_char('"')?;
    while !text.is_empty() {
        let (piece, rest) = text.split_at(text.floor_char_boundary(4096));
        let quoted = serde_json::to_string(piece).map_err(|_| fmt::Error)?;
        f.write_str(&quoted[1..quoted.len() - 1])?;
        text = rest;
    }
    f.write_char('"')
}

/// Writes bytes as hexadecimal digits, and the end of the object.
fn hex(f: &mut Output<'_, '_>, bytes: &[u8]) -> fmt::Result {
    f.write_char('"')?;
    for byte in bytes {
        write!(f, "{byte:02x}")?;
    }
    f.write_str("\"}")
}

fn typed_bytes(f: &mut Output<'_, '_>, key: &str, of: &str, bytes: &[u8]) -> fmt::Result {
    write!(f, r#"{{"{key}":"#)?;
    text(f, of)?;
    f.write_str(r#","bytes_hex":"#)?;
    hex(f, bytes)
}

/// Writes the sizes of an array, and the end of the object.
fn sizes(f: &mut Output<'_, '_>, size: &[u64]) -> fmt::Result {
    f.write_str(r#","size":["#)?;
    for (i, length) in size.iter().enumerate() {
        separate(f, i > 0)?;
        write!(f, "{length}")?;
    }
    f.write_str("]}")
}
