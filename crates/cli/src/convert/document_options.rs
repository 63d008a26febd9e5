//! The options of `millstream convert` for documents of BSON.

use clap::{Args, ValueEnum};
use millstream::bson::columns::{DataType, Field};

/// How documents become columns, or text.
#[derive(Args)]
pub(super) struct DocumentOptions {
    /// A column of documents of BSON, as PATH:TYPE; can be given several times; replaces the inferred columns
    ///
    /// The types: bool, int, long, double, string, binData, objectId, date, timestamp, decimal, json.
    #[arg(long, value_name = "PATH:TYPE", help_heading = "BSON", value_parser = column)]
    #[arg(conflicts_with_all = ["infer", "schema"])]
    pub(super) column: Vec<Field>,

    /// What to do with an inferred column whose types do not fit together: JSON text, or an error [default: json]
    #[arg(long, value_name = "HOW", help_heading = "BSON", value_enum, conflicts_with_all = ["column", "schema"])]
    pub(super) mixed: Option<Mixed>,

    /// What to do with a value that does not fit its column: an error, or null and count it [default: error]
    #[arg(long, value_name = "HOW", help_heading = "BSON", value_enum)]
    pub(super) mismatch: Option<Mismatch>,

    /// What to do with a member without a column, and with a duplicate key [default: error, or ignore]
    ///
    /// With --column or --schema, the default is ignore.
    #[arg(long, value_name = "HOW", help_heading = "BSON", value_enum)]
    pub(super) unknown: Option<Unknown>,

    /// What to do with a column of --column or --schema that no document has [default: error]
    #[arg(long, value_name = "HOW", help_heading = "BSON", value_enum)]
    pub(super) absent: Option<Absent>,

    /// Keep every type of BSON in JSON lines: {"$numberInt": "1"}
    #[arg(long, help_heading = "BSON")]
    pub(super) canonical: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Mixed {
    Json,
    Error,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Mismatch {
    Error,
    Null,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Unknown {
    /// Both cause an error
    Error,
    /// Both are omitted and counted; the first value of a key is kept
    Count,
    /// The member is omitted, the duplicate key is an error
    Ignore,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Absent {
    /// The path may be misspelt
    Error,
    /// The column contains nulls, which a message reports
    Null,
}

impl DocumentOptions {
    /// Returns the first option for columns that was given.
    #[cfg(feature = "parquet")]
    pub(super) fn of_columns(&self) -> Option<&'static str> {
        let given = [
            (!self.column.is_empty(), "--column"),
            (self.mixed.is_some(), "--mixed"),
            (self.mismatch.is_some(), "--mismatch"),
            (self.unknown.is_some(), "--unknown"),
            (self.absent.is_some(), "--absent"),
        ];
        given.into_iter().find(|(is_given, _)| *is_given).map(|(_, option)| option)
    }
}

/// Parses `PATH:TYPE`.
fn column(text: &str) -> Result<Field, String> {
    const EXPECTED: &str = "expected PATH:TYPE, with bool, int, long, double, string, binData, objectId, date, \
                            timestamp, decimal or json for the type";
    let (path, data_type) = text.rsplit_once(':').ok_or(EXPECTED)?;
    let data_type = match data_type {
        "bool" => DataType::Bool,
        "int" => DataType::Int32,
        "long" => DataType::Int64,
        "double" => DataType::Double,
        "string" => DataType::String,
        "binData" => DataType::Binary,
        "objectId" => DataType::ObjectId,
        "date" => DataType::DateTime,
        "timestamp" => DataType::Timestamp,
        "decimal" => DataType::Decimal128,
        "json" => DataType::Json,
        _ => return Err(EXPECTED.into()),
    };
    Field::new(path, data_type).map_err(|error| error.without_advice().to_string())
}
