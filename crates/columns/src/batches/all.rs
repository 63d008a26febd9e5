//! Types that are inferred from all records, before these are read again.

use super::{Batches, Records, inferred, rows, text_schema};
use crate::infer::Inferred;
use crate::json::{self, Guesses, MOST_COLUMNS};
use crate::options::{Infer, Options};
use crate::schema::Schema;
use arrow_schema::DataType;
use millstream::{Error, ErrorKind, Position, Reader, Result, SourceVersion};
use std::borrow::Cow;

impl Batches {
    /// Infers the columns from all records of the readers, in any order. CSV has the names of the first reader.
    ///
    /// ```
    /// use millstream::{Reader, frame::Csv};
    /// use millstream_columns::{Batches, Options, Records};
    /// let (records, readers) = (Records::Csv(Box::new(Csv::new())), ["n\n1\n", "n\n2.5\n"].map(Reader::memory));
    /// let schema = Batches::infer(readers, &records, &Options::new())?;
    /// let batches = Batches::of(Reader::memory("n\n1\n")?, records, &Options::new().schema(schema))?;
    /// assert_eq!(batches.schema().to_json(), r#"{"fields":[{"name":"n","type":"float64"}]}"#);
    /// # Ok::<(), millstream::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns the errors of the readers, of [`Batches::of`] and of reading.
    pub fn infer(
        readers: impl IntoIterator<Item = Result<Reader>>,
        records: &Records,
        options: &Options,
    ) -> Result<Schema> {
        let mut all = All::new(records, options)?;
        for reader in readers {
            all.observe(reader?)?.close()?;
        }
        all.schema()
    }

    /// Returns the version of a reader's source, which [`Infer::All`] reads twice.
    ///
    /// # Errors
    /// Returns [`InvalidOption`](ErrorKind::InvalidOption) if it can be read only once, or was read already.
    #[doc(hidden)] // for front ends that read several sources, or on another thread
    pub fn version(reader: &Reader) -> Result<SourceVersion> {
        let refused = |found: &str| {
            Error::new(ErrorKind::InvalidOption)
                .with_name(reader.name())
                .with_found(format!("types from all records of {found}"))
                .with_expected(
                    "a regular file given by its path, bytes, or an object with a strong ETag on a server with ranges, \
                     because it is read twice; or infer from a number of records",
                )
        };
        let version = reader.version().map_err(|error| refused(error.found().unwrap_or_default()))?;
        match reader.position() == Position::default() {
            true => Ok(version),
            false => Err(refused("a reader that has delivered some of them")),
        }
    }
}

/// Infers the types from all records if the options say so. Returns the reader at its start, and the options with the types.
pub(super) fn prepare<'a>(
    reader: Reader,
    options: &'a Options,
    records: impl FnOnce() -> Records,
) -> Result<(Reader, Cow<'a, Options>)> {
    if !options.reads_twice() {
        return Ok((reader, Cow::Borrowed(options)));
    }
    Batches::version(&reader)?;
    let mut all = All::new(&records(), options)?;
    let mut reader = all.observe(reader)?;
    reader.rewind()?;
    Ok((reader, Cow::Owned(options.clone().schema(all.schema()?))))
}

/// The types that all records can have so far.
struct All {
    records: Records,
    /// The options for reading the records without inference.
    options: Options,
    seen: Seen,
}

enum Seen {
    /// Nothing yet.
    Nothing,
    Texts {
        names: Vec<String>,
        columns: Vec<Inferred>,
    },
    Json {
        guesses: Guesses,
        columns: usize,
        schema: Schema,
    },
}

impl All {
    fn new(records: &Records, options: &Options) -> Result<All> {
        let (schema, seen) = match records {
            Records::Csv(_) | Records::Lines => (None, Seen::Nothing),
            Records::JsonLines | Records::JsonElements => {
                let schema = text_schema(&[])?;
                (Some(schema.clone()), Seen::Json { guesses: Guesses::default(), columns: 0, schema })
            }
        };
        Ok(All { records: records.clone(), options: Options { schema, ..options.clone().infer(Infer::Off) }, seen })
    }

    /// Examines all records of a reader, and returns it at its end.
    fn observe(&mut self, reader: Reader) -> Result<Reader> {
        let mut batches = Batches::of(reader, self.records.clone(), &self.options)?;
        if let Seen::Nothing = self.seen {
            let fields = batches.layout.schema.arrow().fields();
            let names: Vec<String> = fields.iter().map(|field| field.name().clone()).collect();
            self.options.schema = Some(inferred(&names, names.iter().map(|_| DataType::Utf8))?);
            self.seen = Seen::Texts { columns: vec![Inferred::default(); names.len()], names };
        }
        let mut scratch = rows::Scratch::default();
        while let Some(mut piece) = batches.read()? {
            match &mut self.seen {
                Seen::Nothing => {}
                Seen::Texts { columns, .. } => {
                    batches.layout.observe(&piece.block, &mut piece.positions, &mut scratch, usize::MAX, columns);
                }
                Seen::Json { guesses, columns, .. } => {
                    json::observe(&piece.block, usize::MAX, &self.options, guesses, columns);
                    if *columns > MOST_COLUMNS {
                        break;
                    }
                }
            }
            batches.spare.push((piece.block, piece.positions));
        }
        if let Some(error) = batches.error.take() {
            return Err(error);
        }
        if let Seen::Json { guesses, columns, schema } = &mut self.seen {
            *schema = batches.json_schema(guesses, *columns, &Options { infer: Infer::All, ..self.options.clone() })?;
        }
        Ok(batches.into_reader())
    }

    fn schema(self) -> Result<Schema> {
        let how = self.options.how();
        match self.seen {
            Seen::Nothing => text_schema(&[]),
            Seen::Texts { names, columns } => {
                inferred(&names, columns.iter().map(|column| column.data_type(how).unwrap_or(DataType::Utf8)))
            }
            Seen::Json { schema, .. } => Ok(schema),
        }
    }
}
