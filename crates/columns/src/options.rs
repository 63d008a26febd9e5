//! The options of columns.

use crate::infer::How;
use crate::schema::Schema;
use crate::text::Rules;
use millstream::Error;
use millstream::frame::CsvRagged;
#[cfg(doc)]
use millstream::{ErrorKind, Reader};

/// What to do with a bad record: one that is not valid, or that has a value which does not fit its column.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnBad {
    /// The error follows the rows before the record.
    #[default]
    Stop,
    /// The record is left out and becomes a [`Reject`].
    Skip,
}

/// Which member of an object is taken of several with the same name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Duplicates {
    /// None: the record is bad, [`JsonInvalid`](ErrorKind::JsonInvalid).
    #[default]
    Error,
    /// The first one.
    First,
    /// The last one.
    Last,
}

/// From which records types are inferred.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Infer {
    /// From the first ones, at most this many and 64 MiB.
    First(usize),
    /// From all of them. The reader's source is read twice, and both readings are of the same version, or reading fails with
    /// [`SourceChanged`](ErrorKind::SourceChanged). A source that can be read only once ([`Reader::version`]) is refused with
    /// [`InvalidOption`](ErrorKind::InvalidOption) before it is read, and so is a reader that has delivered records.
    All,
    /// From none. Columns of CSV are text, and those of JSON the text of their values, `json`. The names in JSON are those of
    /// the first 10,000 records.
    Off,
}

/// How many rejects a binding keeps for its caller, the first ones; all are counted.
pub const KEPT_REJECTS: usize = 1_000;

/// A record that was left out.
#[derive(Debug)]
pub struct Reject {
    /// The reason, with the place.
    pub error: Error,
    /// The record without its line end.
    pub raw: Vec<u8>,
}

/// Options of columns.
#[derive(Clone, Debug)]
pub struct Options {
    pub(crate) threads: usize,
    pub(crate) infer: Infer,
    pub(crate) schema: Option<Schema>,
    pub(crate) header: bool,
    pub(crate) names: Option<Vec<String>>,
    pub(crate) nulls: Vec<Vec<u8>>,
    pub(crate) special_numbers: bool,
    pub(crate) decimals: bool,
    pub(crate) ragged: CsvRagged,
    pub(crate) duplicates: Duplicates,
    pub(crate) on_bad: OnBad,
}

impl Options {
    /// The defaults: one thread, types from the first 10,000 records, a header in CSV, no text is null, numbers with a
    /// fraction are floating point numbers, and a bad record is an error.
    pub fn new() -> Options {
        Options {
            threads: 1,
            infer: Infer::First(10_000),
            schema: None,
            header: true,
            names: None,
            nulls: Vec::new(),
            special_numbers: false,
            decimals: false,
            ragged: CsvRagged::Error,
            duplicates: Duplicates::Error,
            on_bad: OnBad::Stop,
        }
    }

    /// Sets the number of threads that turn records into columns. With 1, the thread that calls
    /// [`Batches::next_batch`](crate::Batches::next_batch) does all work.
    #[must_use]
    pub fn threads(self, threads: usize) -> Options {
        Options { threads, ..self }
    }

    /// Sets from which records types are inferred, if there is no schema.
    #[must_use]
    pub fn infer(self, infer: Infer) -> Options {
        Options { infer, ..self }
    }

    /// Sets the columns. Columns of CSV and members of objects of JSON are found by name; those without a field in the schema
    /// are left out.
    #[must_use]
    pub fn schema(self, schema: Schema) -> Options {
        Options { schema: Some(schema), ..self }
    }

    /// Sets whether the first record of CSV names the columns. Otherwise their names are their numbers: `0`, `1`, ….
    #[must_use]
    pub fn header(self, header: bool) -> Options {
        Options { header, ..self }
    }

    /// Sets the names of the columns of CSV whose first record is data, such as that of a part of a file. All records must
    /// have as many fields, and [`Options::header`] has no effect.
    ///
    /// ```
    /// use millstream::{Reader, frame::Csv};
    /// use millstream_columns::{Batches, Options};
    /// let options = Options::new().names(["id", "price"]);
    /// let batches = Batches::csv(Reader::memory("1,2.5\n2,3\n")?, Csv::new(), &options)?;
    /// assert_eq!(
    ///     batches.schema().to_json(),
    ///     r#"{"fields":[{"name":"id","type":"int64"},{"name":"price","type":"float64"}]}"#,
    /// );
    /// # Ok::<(), millstream::Error>(())
    /// ```
    #[must_use]
    pub fn names<T: Into<String>>(self, names: impl IntoIterator<Item = T>) -> Options {
        Options { names: Some(names.into_iter().map(Into::into).collect()), ..self }
    }

    /// Sets the texts that are null, such as `NA` or the empty text. A field of CSV in quotes is never null. JSON has its own
    /// null, and refuses this option.
    #[must_use]
    pub fn nulls<T: Into<Vec<u8>>>(self, nulls: impl IntoIterator<Item = T>) -> Options {
        Options { nulls: nulls.into_iter().map(Into::into).collect(), ..self }
    }

    /// Sets whether `NaN`, `inf` and `-inf` can be numbers in inferred columns.
    #[must_use]
    pub fn special_numbers(self, special_numbers: bool) -> Options {
        Options { special_numbers, ..self }
    }

    /// Sets whether inferred numbers with a fraction are decimal numbers, which keep every digit, and not floating point
    /// numbers. The digits after the point are as many as the longest fraction has.
    #[must_use]
    pub fn decimals(self, decimals: bool) -> Options {
        Options { decimals, ..self }
    }

    /// Sets what to do with a record of CSV that has another number of fields than the first one. With
    /// [`CsvRagged::Pad`] missing fields are null. [`CsvRagged::Collect`] is refused.
    #[must_use]
    pub fn ragged(self, ragged: CsvRagged) -> Options {
        Options { ragged, ..self }
    }

    /// Sets which member of an object of JSON is taken of several with the same name. Members without a column may
    /// have the same name in any case.
    #[must_use]
    pub fn duplicates(self, duplicates: Duplicates) -> Options {
        Options { duplicates, ..self }
    }

    /// Sets what to do with a bad record. The header must be valid in any case.
    #[must_use]
    pub fn on_bad(self, on_bad: OnBad) -> Options {
        Options { on_bad, ..self }
    }

    /// Returns whether records are read twice: first to infer their types, then to convert them.
    #[doc(hidden)] // for front ends that read on another thread
    pub fn reads_twice(&self) -> bool {
        self.infer == Infer::All && self.schema.is_none()
    }

    pub(crate) fn how(&self) -> How {
        How { rules: Rules { special: self.special_numbers }, decimals: self.decimals }
    }
}

impl Default for Options {
    fn default() -> Options {
        Options::new()
    }
}
