//! Schemas: the columns and their types.

use crate::{ElementType, join_path, split_path};
use millstream_core::{Error, ErrorKind, Result};
use std::collections::HashSet;
use std::fmt;

/// The columns into which documents are decoded.
///
/// ```
/// use millstream::bson::columns::{DataType, Field, Schema};
/// let schema = Schema::new([
///     Field::new("_id", DataType::ObjectId)?,
///     Field::new("customer.city", DataType::String)?,
///     Field::new("tags", DataType::List(Box::new(DataType::String)))?,
/// ])?;
/// assert_eq!(schema.to_string(), "_id: objectId, customer.city: string, tags: [string]");
/// # Ok::<(), millstream::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Schema {
    fields: Vec<Field>,
}

/// A column: its name, the path to its values, and their type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    name: String,
    /// The keys from the outermost to the innermost; there is at least one.
    keys: Vec<String>,
    data_type: DataType,
    nullable: bool,
}

/// The content of a column. In brackets: the Arrow type.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DataType {
    /// Only null, undefined, or missing (`null`).
    Null,
    /// Booleans (`bool`).
    Bool,
    /// 32-bit integers, and other numbers with such a value (`int32`).
    Int32,
    /// 64-bit integers, and other numbers with such a value (`int64`).
    Int64,
    /// Floating point numbers, and integers that a double represents exactly (`double`).
    Double,
    /// Text, including symbols and JavaScript (`utf8`).
    String,
    /// Bytes, without their subtype (`binary`).
    Binary,
    /// Object ids (`fixed_size_binary(12)`).
    ObjectId,
    /// Milliseconds since 1970 (`timestamp(ms, UTC)`).
    DateTime,
    /// MongoDB's internal timestamp: the seconds times 2³² plus the increment (`uint64`).
    Timestamp,
    /// 128-bit decimal floating point numbers, as their 16 bytes, least significant first (`fixed_size_binary(16)`).
    Decimal128,
    /// Any value, as the text of relaxed Extended JSON (`utf8`, extension type `arrow.json`).
    Json,
    /// Arrays of this type (`list`).
    List(Box<DataType>),
    /// Documents with these members (`struct`). Each field in it has exactly one key.
    Struct(Vec<Field>),
}

impl Schema {
    /// Creates a schema with these columns.
    ///
    /// # Errors
    /// [`InvalidOption`](ErrorKind::InvalidOption) if two columns have the same name, if one is inside another, or if
    /// types are nested deeper than 64.
    pub fn new(fields: impl IntoIterator<Item = Field>) -> Result<Schema> {
        let fields: Vec<Field> = fields.into_iter().collect();
        check_fields(&fields, 0)?;
        Ok(Schema { fields })
    }

    /// The columns, in order.
    pub fn fields(&self) -> &[Field] {
        &self.fields
    }
}

/// The maximum nesting of types.
pub(super) const MOST_DEPTH: usize = 64;

fn check_fields(fields: &[Field], depth: usize) -> Result<()> {
    let refuse = |found: String, expected: &str| {
        Err(Error::new(ErrorKind::InvalidOption).with_found(found).with_expected(expected))
    };
    let mut names = HashSet::new();
    let mut paths = HashSet::new();
    for field in fields {
        if !names.insert(&field.name) || !paths.insert(&field.keys[..]) {
            return refuse(format!("two columns {:?}", field.name), "one for each name and each path");
        }
    }
    for field in fields {
        if let Some(len) = (1..field.keys.len()).find(|&len| paths.contains(&field.keys[..len])) {
            return refuse(
                format!("the column {} inside {}", field.name, join_path(&field.keys[..len])),
                "one of both",
            );
        }
        if depth > 0 && field.keys.len() != 1 {
            return refuse(format!("the member {}", field.name), "a member with one key");
        }
        let mut inside = &field.data_type;
        let mut depth = depth + field.keys.len();
        while let DataType::List(item) = inside {
            inside = item;
            depth += 1;
        }
        if depth > MOST_DEPTH {
            return refuse(format!("the column {} at depth {depth}", field.name), "at most 64");
        }
        if let DataType::Struct(members) = inside {
            check_fields(members, depth)?;
        }
    }
    Ok(())
}

impl Field {
    /// Creates the column of the values at this path, in the notation of [`split_path`]. The name of the column is the
    /// path.
    ///
    /// # Errors
    /// [`TextInvalid`](ErrorKind::TextInvalid) if the path cannot be split or is empty.
    pub fn new(path: &str, data_type: DataType) -> Result<Field> {
        let keys = split_path(path)?;
        if keys.is_empty() {
            return Err(Error::new(ErrorKind::TextInvalid).with_found("an empty path").with_expected("a key"));
        }
        Ok(Field { name: path.to_string(), keys, data_type, nullable: true })
    }

    /// Creates the column of the member with this key. The key may contain any characters and is also the name of the
    /// column.
    pub fn of_key(key: impl Into<String>, data_type: DataType) -> Field {
        let key = key.into();
        Field { name: key.clone(), keys: vec![key], data_type, nullable: true }
    }

    /// Returns the same column with another name.
    pub fn named(self, name: impl Into<String>) -> Field {
        Field { name: name.into(), ..self }
    }

    /// Returns the same column with required values: null, undefined and missing values fail with
    /// [`KeyMissing`](ErrorKind::KeyMissing).
    pub fn required(self) -> Field {
        Field { nullable: false, ..self }
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The keys of the path to its values, starting with the outermost.
    pub fn keys(&self) -> &[String] {
        &self.keys
    }

    /// The type of its values.
    pub fn data_type(&self) -> &DataType {
        &self.data_type
    }

    /// Whether its values may be missing.
    pub fn is_nullable(&self) -> bool {
        self.nullable
    }
}

impl fmt::Display for DataType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DataType::Null => ElementType::Null.name(),
            DataType::Bool => ElementType::Bool.name(),
            DataType::Int32 => ElementType::Int32.name(),
            DataType::Int64 => ElementType::Int64.name(),
            DataType::Double => ElementType::Double.name(),
            DataType::String => ElementType::String.name(),
            DataType::Binary => ElementType::Binary.name(),
            DataType::ObjectId => ElementType::ObjectId.name(),
            DataType::DateTime => ElementType::DateTime.name(),
            DataType::Timestamp => ElementType::Timestamp.name(),
            DataType::Decimal128 => ElementType::Decimal128.name(),
            DataType::Json => "json",
            DataType::List(item) => return write!(f, "[{item}]"),
            DataType::Struct(members) => {
                f.write_str("{")?;
                show(members, f)?;
                return f.write_str("}");
            }
        })
    }
}

/// Writes the names and the types of the columns. Types are written as MongoDB's aliases, with `!` after required
/// columns.
impl fmt::Display for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        show(&self.fields, f)
    }
}

fn show(fields: &[Field], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    for (i, field) in fields.iter().enumerate() {
        let separator = if i > 0 { ", " } else { "" };
        let required = if field.nullable { "" } else { "!" };
        write!(f, "{separator}{}: {}{required}", field.name, field.data_type)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_that_cannot_be() {
        let field = |path: &str| Field::new(path, DataType::Int32).unwrap();
        for fields in [
            vec![field("a"), field("a")],
            vec![field("a"), field("a.b")],
            vec![field("a.b.c"), field("a.b")],
            vec![field("a"), field("b").named("a")],
            vec![Field::of_key("s", DataType::Struct(vec![field("a.b")]))],
            vec![Field::of_key("s", (0..70).fold(DataType::Int32, |inner, _| DataType::List(Box::new(inner))))],
        ] {
            assert_eq!(Schema::new(fields).unwrap_err().kind(), ErrorKind::InvalidOption);
        }
        assert!(Field::new("", DataType::Int32).is_err());
        let good = [field("a.b"), field("a.c"), Field::of_key("a.b", DataType::Int32).named("dotted")];
        assert_eq!(Schema::new(good).unwrap().fields().len(), 3);
    }
}
