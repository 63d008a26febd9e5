//! Schemas: the names and types of columns, and their form as JSON.

use arrow_schema::{DataType, Field, Fields, SchemaRef, TimeUnit};
use millstream::{Error, ErrorKind, Result};
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// The maximum nesting of types.
const MOST_DEPTH: usize = 64;

/// The names and types of columns.
///
/// ```
/// use millstream_columns::Schema;
/// let text = r#"{"fields": [{"name": "id", "type": "int64"}, {"name": "day", "type": "date32", "nullable": false}]}"#;
/// let schema = Schema::from_json(text)?;
/// assert_eq!(schema.arrow().field(1).name(), "day");
/// assert_eq!(Schema::from_json(&schema.to_json())?, schema);
/// # Ok::<(), millstream::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schema {
    arrow: SchemaRef,
    is_inferred: bool,
}

/// A field as JSON.
#[derive(Serialize, Deserialize)]
struct Stored {
    name: String,
    #[serde(flatten)]
    data_type: StoredType,
}

#[derive(Serialize, Deserialize)]
struct StoredType {
    r#type: String,
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    nullable: bool,
    /// The members of a `struct`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    fields: Option<Vec<Stored>>,
    /// The elements of a `list`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    item: Option<Box<StoredType>>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredSchema {
    fields: Vec<Stored>,
    #[serde(default, skip_serializing)]
    inferred: bool,
}

fn yes() -> bool {
    true
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_yes(value: &bool) -> bool {
    *value
}

impl Schema {
    /// Creates a schema of types that were chosen. Texts that denote a value of the type are accepted, also in another
    /// spelling, such as `+1` and `007` for integers.
    ///
    /// # Errors
    /// Returns [`InvalidOption`](ErrorKind::InvalidOption) if two columns have the same name, or if a type is not one
    /// of [`Schema::from_json`].
    pub fn new(arrow: SchemaRef) -> Result<Schema> {
        let schema = Schema { arrow, is_inferred: false };
        check(schema.arrow.fields(), 0, false)?;
        Ok(schema)
    }

    /// Creates the schema of inferred types, which accept only texts that print back losslessly.
    pub(crate) fn inferred(arrow: SchemaRef) -> Result<Schema> {
        Ok(Schema { is_inferred: true, ..Schema::new(arrow)? })
    }

    /// Returns whether the types were inferred.
    pub fn is_inferred(&self) -> bool {
        self.is_inferred
    }

    /// Adds the options that can help to the error of a value that does not fit. `skip` is how the language spells the
    /// one that leaves bad records out.
    #[doc(hidden)] // for the bindings
    pub fn advise(&self, error: Error, skip: &str) -> Error {
        if error.kind() != ErrorKind::ShapeMismatch || !self.is_inferred {
            return error;
        }
        let expected = error.expected().unwrap_or_default().to_string();
        error.with_expected(format!("{expected} (increase infer, pass a schema, or set {skip})"))
    }

    /// Returns the columns as Arrow's fields.
    pub fn arrow(&self) -> &SchemaRef {
        &self.arrow
    }

    /// Parses a schema from JSON: an object with `fields`, each with `name`, `type` and optionally `"nullable": false`.
    /// The types have the names of pyarrow: `bool`, `int8` to `int64`, `uint8` to `uint64`, `float32`, `float64`,
    /// `decimal128(precision, scale)`, `date32`, `time64[us]`, `time64[ns]`, `timestamp[us]` with the units `s`, `ms`,
    /// `us` and `ns`, `timestamp[us, UTC]` or another zone, `string`, `binary`, `null`; `json` is text of JSON. The
    /// members of a `struct` are in its `fields`, and the type of the elements of a `list` is its `item`.
    ///
    /// With `"inferred": true`, the types are as strict as inferred ones, for parts of one source:
    /// ```
    /// use millstream::{Reader, frame::Csv};
    /// use millstream_columns::{Batches, Options, Schema};
    /// let read = |schema: &str| {
    ///     let options = Options::new().schema(Schema::from_json(schema)?);
    ///     Batches::csv(Reader::memory("id\n007\n")?, Csv::new(), &options)?.next_batch()
    /// };
    /// assert!(read(r#"{"fields": [{"name": "id", "type": "int64"}]}"#).is_ok());
    /// assert!(read(r#"{"fields": [{"name": "id", "type": "int64"}], "inferred": true}"#).is_err());
    /// ```
    ///
    /// # Errors
    /// Returns [`JsonInvalid`](ErrorKind::JsonInvalid) for text that is not JSON of this form, and
    /// [`InvalidOption`](ErrorKind::InvalidOption) for a type that does not exist.
    pub fn from_json(text: &str) -> Result<Schema> {
        let stored = parse_stored(text)?;
        let schema = Schema::new(Arc::new(arrow_schema::Schema::new(fields(stored.fields)?)))?;
        Ok(Schema { is_inferred: stored.inferred, ..schema })
    }

    /// Returns the schema as JSON on one line, in the form that [`from_json`](Schema::from_json) accepts, and without
    /// whether the types were inferred.
    pub fn to_json(&self) -> String {
        let stored =
            StoredSchema { fields: self.arrow.fields().iter().map(|field| store(field)).collect(), inferred: false };
        // The maps have keys of text, so this cannot fail.
        serde_json::to_string(&stored).unwrap_or_default()
    }
}

/// Parses a schema of documents of BSON: [`Schema::from_json`] with the types `bson.objectId`, `bson.decimal` and
/// `bson.timestamp`.
///
/// # Errors
/// Returns the errors of [`Schema::from_json`].
#[doc(hidden)] // for the command line
pub fn document_schema_from_json(text: &str) -> Result<SchemaRef> {
    let fields = fields(parse_stored(text)?.fields)?;
    check(&fields, 0, true)?;
    Ok(Arc::new(arrow_schema::Schema::new(fields)))
}

/// Returns a schema as JSON: the inverse of [`document_schema_from_json`].
///
/// # Errors
/// Returns [`InvalidOption`](ErrorKind::InvalidOption) for types that it does not have.
#[doc(hidden)] // for the command line
pub fn document_schema_to_json(schema: &SchemaRef) -> Result<String> {
    check(schema.fields(), 0, true)?;
    Ok(Schema { arrow: schema.clone(), is_inferred: false }.to_json())
}

fn parse_stored(text: &str) -> Result<StoredSchema> {
    serde_json::from_str(text).map_err(|error| {
        Error::new(ErrorKind::JsonInvalid)
            .with_found(error.to_string())
            .with_expected(r#"a schema such as {"fields": [{"name": "id", "type": "int64"}]}"#)
    })
}

/// Fails for types without a name. Those of BSON have one if `has_bson` is true.
fn check(fields: &Fields, depth: usize, has_bson: bool) -> Result<()> {
    if depth > MOST_DEPTH {
        return Err(refused(format!("types nested deeper than {MOST_DEPTH}"), "fewer levels"));
    }
    let mut names = HashSet::new();
    for field in fields {
        if !names.insert(field.name()) {
            return Err(refused(format!("two columns {:?}", field.name()), "a different name for each"));
        }
        check_type(field, depth, has_bson)?;
    }
    Ok(())
}

fn check_type(field: &Field, depth: usize, has_bson: bool) -> Result<()> {
    match (field.data_type(), bson_name(field)) {
        (DataType::Struct(members), _) => check(members, depth + 1, has_bson),
        (DataType::List(item), _) if depth < MOST_DEPTH => check_type(item, depth + 1, has_bson),
        (DataType::List(_), _) => check(&Fields::empty(), depth + 1, has_bson),
        (_, Some(_)) if has_bson => Ok(()),
        (_, Some(name)) => Err(refused(
            format!("the type {name} of column {:?}, which only documents of BSON have", field.name()),
            "a type that docs/types.md names",
        )),
        (plain, None) if name(plain).is_some() => Ok(()),
        (other, None) => {
            Err(refused(format!("the type {other} of column {:?}", field.name()), "a type that docs/types.md names"))
        }
    }
}

fn refused(found: String, expected: &str) -> Error {
    Error::new(ErrorKind::InvalidOption).with_found(found).with_expected(expected)
}

fn fields(stored: Vec<Stored>) -> Result<Fields> {
    stored.into_iter().map(|Stored { name, data_type }| field(name, data_type)).collect()
}

fn field(name: String, stored: StoredType) -> Result<Field> {
    let StoredType { r#type, nullable, fields: members, item } = stored;
    let unexpected =
        |what: &str| refused(format!("\"{what}\" of column {name:?}, whose type is {}", r#type), "neither");
    if let (Some((_, kind, data_type)), None, None) = (BSON.iter().find(|(name, ..)| *name == r#type), &members, &item)
    {
        let metadata = HashMap::from([("bson".to_string(), (*kind).to_string())]);
        return Ok(Field::new(name, data_type.clone(), nullable).with_metadata(metadata));
    }
    let data_type = match (&*r#type, members, item) {
        ("struct", Some(members), None) => DataType::Struct(fields(members)?),
        ("struct", ..) => return Err(refused(format!("the struct {name:?} without its members"), "\"fields\"")),
        ("list", None, Some(item)) => DataType::List(Arc::new(field("item".to_string(), *item)?)),
        ("list", ..) => return Err(refused(format!("the list {name:?} without its elements"), "\"item\"")),
        (_, Some(_), _) => return Err(unexpected("fields")),
        (_, _, Some(_)) => return Err(unexpected("item")),
        ("json", ..) => return Ok(json_field(&name, nullable)),
        (plain, None, None) => parse(plain).ok_or_else(|| {
            refused(format!("the type {plain:?} of column {name:?}"), "a type such as int64 or string")
        })?,
    };
    Ok(Field::new(name, data_type, nullable))
}

fn store(field: &Field) -> Stored {
    Stored { name: field.name().clone(), data_type: store_type(field) }
}

fn store_type(field: &Field) -> StoredType {
    let (mut members, mut item) = (None, None);
    let name = match field.data_type() {
        DataType::Struct(inner) => {
            members = Some(inner.iter().map(|field| store(field)).collect());
            "struct".to_string()
        }
        DataType::List(inner) => {
            item = Some(Box::new(store_type(inner)));
            "list".to_string()
        }
        _ if is_json(field) => "json".to_string(),
        plain => bson_name(field).map(str::to_string).or_else(|| name(plain)).unwrap_or_default(),
    };
    StoredType { r#type: name, nullable: field.is_nullable(), fields: members, item }
}

/// The types that only documents of BSON have: the name, the value of the metadata `bson`, and the type of Arrow.
const BSON: [(&str, &str, DataType); 3] = [
    ("bson.objectId", "objectId", DataType::FixedSizeBinary(12)),
    ("bson.decimal", "decimal", DataType::FixedSizeBinary(16)),
    ("bson.timestamp", "timestamp", DataType::UInt64),
];

/// Returns the name of a type that only documents of BSON have.
fn bson_name(field: &Field) -> Option<&'static str> {
    let kind = field.metadata().get("bson")?;
    let mut types = BSON.iter();
    types.find(|(_, name, of)| name == kind && of == field.data_type()).map(|(name, ..)| *name)
}

/// Returns a column of JSON text.
pub(crate) fn json_field(name: &str, nullable: bool) -> Field {
    let metadata = [("ARROW:extension:name", "arrow.json"), ("ARROW:extension:metadata", "")];
    let metadata: HashMap<_, _> = metadata.map(|(key, value)| (key.to_string(), value.to_string())).into();
    Field::new(name, DataType::Utf8, nullable).with_metadata(metadata)
}

/// Returns whether a column is JSON text.
pub(crate) fn is_json(field: &Field) -> bool {
    field.metadata().get("ARROW:extension:name").is_some_and(|name| name == "arrow.json")
}

/// The name of a field's type in messages.
pub(crate) fn type_name(field: &Field) -> String {
    match field.data_type() {
        DataType::Struct(_) => "a struct".to_string(),
        DataType::List(_) => "a list".to_string(),
        _ if is_json(field) => "json".to_string(),
        plain => name(plain).unwrap_or_else(|| plain.to_string()),
    }
}

/// The name of a type without inner types.
pub(crate) fn name(data_type: &DataType) -> Option<String> {
    Some(match data_type {
        DataType::Null => "null".to_string(),
        DataType::Boolean => "bool".to_string(),
        DataType::Int8 => "int8".to_string(),
        DataType::Int16 => "int16".to_string(),
        DataType::Int32 => "int32".to_string(),
        DataType::Int64 => "int64".to_string(),
        DataType::UInt8 => "uint8".to_string(),
        DataType::UInt16 => "uint16".to_string(),
        DataType::UInt32 => "uint32".to_string(),
        DataType::UInt64 => "uint64".to_string(),
        DataType::Float32 => "float32".to_string(),
        DataType::Float64 => "float64".to_string(),
        DataType::Decimal128(precision, scale) => format!("decimal128({precision}, {scale})"),
        DataType::Date32 => "date32".to_string(),
        DataType::Time64(unit @ (TimeUnit::Microsecond | TimeUnit::Nanosecond)) => {
            format!("time64[{}]", unit_name(*unit))
        }
        DataType::Timestamp(unit, None) => format!("timestamp[{}]", unit_name(*unit)),
        DataType::Timestamp(unit, Some(zone)) => format!("timestamp[{}, {zone}]", unit_name(*unit)),
        DataType::Utf8 => "string".to_string(),
        DataType::Binary => "binary".to_string(),
        _ => return None,
    })
}

fn unit_name(unit: TimeUnit) -> &'static str {
    match unit {
        TimeUnit::Second => "s",
        TimeUnit::Millisecond => "ms",
        TimeUnit::Microsecond => "us",
        TimeUnit::Nanosecond => "ns",
    }
}

/// The type with this name.
fn parse(name: &str) -> Option<DataType> {
    let unit = |name: &str| {
        [TimeUnit::Second, TimeUnit::Millisecond, TimeUnit::Microsecond, TimeUnit::Nanosecond]
            .into_iter()
            .find(|&unit| unit_name(unit) == name)
    };
    let inside = |open: &str, close: char| name.strip_prefix(open)?.strip_suffix(close);
    Some(match name {
        "null" => DataType::Null,
        "bool" => DataType::Boolean,
        "int8" => DataType::Int8,
        "int16" => DataType::Int16,
        "int32" => DataType::Int32,
        "int64" => DataType::Int64,
        "uint8" => DataType::UInt8,
        "uint16" => DataType::UInt16,
        "uint32" => DataType::UInt32,
        "uint64" => DataType::UInt64,
        "float32" => DataType::Float32,
        "float64" => DataType::Float64,
        "date32" => DataType::Date32,
        "string" => DataType::Utf8,
        "binary" => DataType::Binary,
        _ => {
            if let Some(of) = inside("decimal128(", ')') {
                let (precision, scale) = of.split_once(',')?;
                let (precision, scale) = (precision.trim().parse().ok()?, scale.trim().parse().ok()?);
                let is_valid = (1..=38).contains(&precision) && (0..=precision as i8).contains(&scale);
                return is_valid.then_some(DataType::Decimal128(precision, scale));
            }
            if let Some(of) = inside("time64[", ']') {
                let unit = unit(of).filter(|unit| matches!(unit, TimeUnit::Microsecond | TimeUnit::Nanosecond))?;
                return Some(DataType::Time64(unit));
            }
            let of = inside("timestamp[", ']')?;
            match of.split_once(',') {
                None => DataType::Timestamp(unit(of)?, None),
                Some((of, zone)) => DataType::Timestamp(unit(of.trim())?, Some(zone.trim().into())),
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_has_a_name_that_is_read_back() {
        let units = [TimeUnit::Second, TimeUnit::Millisecond, TimeUnit::Microsecond, TimeUnit::Nanosecond];
        let stamps = units.into_iter().flat_map(|unit| {
            [None, Some("UTC".into()), Some("+02:00".into())].map(|zone| DataType::Timestamp(unit, zone))
        });
        let plain = ["null", "bool", "int8", "uint64", "float32", "date32", "string", "binary", "time64[ns]"];
        let plain = plain.map(|name| parse(name).unwrap()).into_iter();
        for data_type in plain.chain(stamps).chain([DataType::Decimal128(38, 2)]) {
            assert_eq!(parse(&name(&data_type).unwrap()), Some(data_type));
        }
    }

    #[test]
    fn schemas_that_cannot_be() {
        let kind = |text: &str| Schema::from_json(text).unwrap_err().kind();
        for (text, expected) in [
            ("", ErrorKind::JsonInvalid),
            (r#"{"a": "int64"}"#, ErrorKind::JsonInvalid),
            (r#"{"fields": [{"name": "a"}]}"#, ErrorKind::JsonInvalid),
            (r#"{"fields": [{"name": "a", "type": "int"}]}"#, ErrorKind::InvalidOption),
            (r#"{"fields": [{"name": "a", "type": "decimal128(39, 0)"}]}"#, ErrorKind::InvalidOption),
            (r#"{"fields": [{"name": "a", "type": "time64[s]"}]}"#, ErrorKind::InvalidOption),
            (r#"{"fields": [{"name": "a", "type": "struct"}]}"#, ErrorKind::InvalidOption),
            (r#"{"fields": [{"name": "a", "type": "list"}]}"#, ErrorKind::InvalidOption),
            (r#"{"fields": [{"name": "a", "type": "bool", "fields": []}]}"#, ErrorKind::InvalidOption),
            (r#"{"fields": [{"name": "a", "type": "bool"}, {"name": "a", "type": "bool"}]}"#, ErrorKind::InvalidOption),
        ] {
            assert_eq!(kind(text), expected, "{text}");
        }
        let deep = (0..70)
            .fold(r#"{"type": "bool"}"#.to_string(), |inner, _| format!(r#"{{"type": "list", "item": {inner}}}"#));
        let text = format!(r#"{{"fields": [{{"name": "a", {}]}}"#, &deep[1..]);
        assert_eq!(kind(&text), ErrorKind::InvalidOption);
    }

    #[test]
    fn nested_types_are_stored() {
        let text = r#"{"fields":[{"name":"a","type":"struct","fields":[{"name":"b c","type":"list","item":{"type":"json"}}]}]}"#;
        assert_eq!(Schema::from_json(text).unwrap().to_json(), text);
    }
}
