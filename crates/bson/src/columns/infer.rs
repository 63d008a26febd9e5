//! Inferring a schema from documents.

use super::schema::{DataType, Field, Schema};
use crate::{Cursor, Document, ElementType, join_path};
use millstream_core::{Error, ErrorKind, Result};
use std::collections::HashMap;

/// The maximum number of columns, including inner columns. Each column uses memory in every row.
const MOST_COLUMNS: usize = 10_000;

/// Values nested deeper than this become text.
const MOST_DEPTH: usize = 32;

/// What to do with a column that contains incompatible types.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnMixed {
    /// Each value becomes the text of relaxed Extended JSON: [`DataType::Json`].
    #[default]
    Json,
    /// Report an error, [`ShapeMismatch`](ErrorKind::ShapeMismatch), with the column's path.
    Error,
}

/// Examines documents and infers their columns, in the order in which their keys first appear.
///
/// A mix of 32-bit and 64-bit integers becomes 64-bit integers. A mix of integers and doubles becomes doubles, if a
/// double can represent every integer seen. Text, symbols and JavaScript become text. A document becomes
/// [`DataType::Struct`], as in pymongoarrow; an array becomes [`DataType::List`], if its elements have compatible
/// types. For incompatible types, types without a column type (regular expressions, code with scope, the smallest and
/// the largest key), documents that are always empty, and nesting deeper than 32, [`OnMixed`] decides. Every column
/// may have missing values, because later documents are unknown.
///
/// ```
/// use millstream::bson::Document;
/// use millstream::bson::columns::{Inference, OnMixed};
/// let mut inference = Inference::new();
/// inference.observe(&Document::new(b"\x0c\0\0\0\x10n\0\x2a\0\0\0\0")?)?;
/// inference.observe(&Document::new(b"\x10\0\0\0\x12n\0\0\0\0\0\x01\0\0\0\0")?)?;
/// assert_eq!(inference.schema(OnMixed::Json)?.to_string(), "n: long");
/// # Ok::<(), millstream::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Inference {
    root: Shapes,
    columns: usize,
}

/// The members found so far in documents at one position.
#[derive(Clone, Debug, Default)]
struct Shapes {
    /// The members in order of appearance.
    members: Vec<(String, Shape)>,
    index: HashMap<String, usize>,
}

/// The values of one member, as found so far.
#[derive(Clone, Debug, Default)]
struct Shape {
    /// The types, with one bit for each, in the order of [`ElementType::ALL`].
    kinds: u32,
    /// Whether there was an integer that a double cannot represent.
    is_inexact: bool,
    is_too_deep: bool,
    members: Shapes,
    items: Option<Box<Shape>>,
}

fn bit(kind: ElementType) -> u32 {
    ElementType::ALL.iter().position(|&other| other == kind).map_or(0, |position| 1 << position)
}

impl Inference {
    /// Creates an inference that has seen no document.
    pub fn new() -> Inference {
        Inference::default()
    }

    /// Examines a document.
    ///
    /// # Errors
    /// Errors in the document, including keys that are not UTF-8; [`MemoryLimit`](ErrorKind::MemoryLimit) for more than
    /// 10,000 columns.
    pub fn observe(&mut self, document: &Document<'_>) -> Result<()> {
        let result = self.root.observe(&mut document.cursor(), 0, &mut self.columns);
        result.map_err(|error| document.locate(error))
    }

    /// Returns the inferred columns.
    ///
    /// # Errors
    /// [`ShapeMismatch`](ErrorKind::ShapeMismatch) for incompatible types, if `on_mixed` requires an error.
    pub fn schema(&self, on_mixed: OnMixed) -> Result<Schema> {
        Schema::new(self.root.fields(on_mixed, &mut Vec::new())?)
    }
}

impl Shapes {
    /// Examines the document at the cursor. Recursion is limited to `MOST_DEPTH`.
    fn observe(&mut self, cursor: &mut Cursor<'_>, depth: usize, columns: &mut usize) -> Result<()> {
        let outer = cursor.enter()?;
        let mut expected = 0;
        while let Some((kind, key)) = cursor.next()? {
            let key = cursor.key_text(key)?;
            let index = match self.members.get(expected) {
                Some((name, _)) if name == key => expected,
                _ => match self.index.get(key) {
                    Some(&index) => index,
                    None => self.add(key, columns).map_err(|error| error.with_offset(cursor.offset() as u64))?,
                },
            };
            expected = index + 1;
            self.members[index].1.observe(kind, cursor, depth, columns)?;
        }
        cursor.leave(outer);
        Ok(())
    }

    fn add(&mut self, key: &str, columns: &mut usize) -> Result<usize> {
        *columns += 1;
        if *columns > MOST_COLUMNS {
            return Err(Error::new(ErrorKind::MemoryLimit)
                .with_found(format!("more than {MOST_COLUMNS} different members"))
                .with_expected("fewer, or a schema that names those to read"));
        }
        let index = self.members.len();
        self.members.push((key.to_string(), Shape::default()));
        self.index.insert(key.to_string(), index);
        Ok(index)
    }

    fn fields(&self, on_mixed: OnMixed, path: &mut Vec<String>) -> Result<Vec<Field>> {
        let mut fields = Vec::with_capacity(self.members.len());
        for (key, shape) in &self.members {
            path.push(key.clone());
            fields.push(Field::of_key(key, shape.data_type(on_mixed, path)?));
            path.pop();
        }
        Ok(fields)
    }
}

impl Shape {
    fn observe(&mut self, kind: ElementType, cursor: &mut Cursor<'_>, depth: usize, columns: &mut usize) -> Result<()> {
        self.kinds |= bit(kind);
        match kind {
            ElementType::Document | ElementType::Array if depth == MOST_DEPTH => {
                self.is_too_deep = true;
                cursor.skip(kind)
            }
            ElementType::Document => self.members.observe(cursor, depth + 1, columns),
            ElementType::Array => {
                let items = self.items.get_or_insert_default();
                let outer = cursor.enter()?;
                while let Some((kind, _)) = cursor.next()? {
                    items.observe(kind, cursor, depth + 1, columns)?;
                }
                cursor.leave(outer);
                Ok(())
            }
            ElementType::Int64 => {
                let value = cursor.i64()?;
                self.is_inexact |= (value as f64) as i128 != i128::from(value);
                Ok(())
            }
            _ => cursor.skip(kind),
        }
    }

    fn data_type(&self, on_mixed: OnMixed, path: &mut Vec<String>) -> Result<DataType> {
        use ElementType as T;
        let are = |kinds: &[T]| {
            let all = kinds.iter().fold(0, |all, &kind| all | bit(kind));
            self.kinds & !(all | bit(T::Null) | bit(T::Undefined)) == 0
        };
        Ok(match () {
            () if are(&[]) => DataType::Null,
            () if are(&[T::Bool]) => DataType::Bool,
            () if are(&[T::Int32]) => DataType::Int32,
            () if are(&[T::Int32, T::Int64]) => DataType::Int64,
            () if are(&[T::Int32, T::Int64, T::Double]) && !self.is_inexact => DataType::Double,
            () if are(&[T::String, T::Symbol, T::Code]) => DataType::String,
            () if are(&[T::Binary]) => DataType::Binary,
            () if are(&[T::ObjectId]) => DataType::ObjectId,
            () if are(&[T::DateTime]) => DataType::DateTime,
            () if are(&[T::Timestamp]) => DataType::Timestamp,
            () if are(&[T::Decimal128]) => DataType::Decimal128,
            () if are(&[T::Document]) && !self.is_too_deep && !self.members.members.is_empty() => {
                DataType::Struct(self.members.fields(on_mixed, path)?)
            }
            () if are(&[T::Array]) && !self.is_too_deep => match &self.items {
                Some(items) => DataType::List(Box::new(items.data_type(on_mixed, path)?)),
                None => DataType::Json,
            },
            () if on_mixed == OnMixed::Error => return Err(self.mixed(path)),
            () => DataType::Json,
        })
    }

    #[cold]
    fn mixed(&self, path: &[String]) -> Error {
        let kinds = ElementType::ALL.iter().filter(|&&kind| self.kinds & bit(kind) != 0);
        let kinds: Vec<&str> = kinds.map(|kind| kind.name()).collect();
        let depth = if self.is_too_deep { ", nested too deep" } else { "" };
        Error::new(ErrorKind::ShapeMismatch)
            .with_found(format!("values of type {}{depth}", kinds.join(", ")))
            .with_expected("types that fit one column, or a schema that chooses one")
            .with_path(join_path(path))
    }
}
