//! The output of a conversion: one table, or with `--parts` several of a limited size.

use std::ffi::OsString;
use std::io::Write;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use millstream::{CancelToken, Encode, Error, ErrorKind, Result, Writer};
use rustix::process::{Resource, getrlimit, setrlimit};

use crate::run::{Network, Sink};
use crate::tables::{self, BinaryOptions, Kind, Table, TextOptions};

/// The names of the parts: a path with `{}` in the place of the number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pattern {
    directory: PathBuf,
    before: Vec<u8>,
    after: Vec<u8>,
}

impl Pattern {
    /// Returns the pattern that a path is, if its last component contains `{}` one time.
    pub(super) fn of(path: &Path) -> Option<Pattern> {
        let name = path.file_name()?.as_bytes();
        let mut places = memchr::memmem::find_iter(name, b"{}");
        let (Some(at), None) = (places.next(), places.next()) else { return None };
        let directory = path.parent().unwrap_or(Path::new("")).to_path_buf();
        Some(Pattern { directory, before: name[..at].to_vec(), after: name[at + 2..].to_vec() })
    }

    /// Returns the name of a part: its number has at least five digits.
    fn part(&self, number: usize) -> PathBuf {
        let name = [&self.before[..], format!("{number:05}").as_bytes(), &self.after].concat();
        self.directory.join(OsString::from_vec(name))
    }

    /// Fails if there are parts already: readers of all parts would mix them with the new ones.
    pub(super) fn check(&self) -> Result<()> {
        let directory = if self.directory.as_os_str().is_empty() { Path::new(".") } else { &self.directory };
        let failed =
            |error| Error::new(ErrorKind::OpenFailed).with_name(directory.display().to_string()).with_io(error);
        for entry in directory.read_dir().map_err(failed)? {
            let name = entry.map_err(failed)?.file_name();
            let number =
                name.as_bytes().strip_prefix(&self.before[..]).and_then(|name| name.strip_suffix(&self.after[..]));
            if number.is_some_and(|number| number.len() >= 5 && number.iter().all(u8::is_ascii_digit)) {
                return Err(Error::new(ErrorKind::InvalidOption)
                    .with_found(format!("the part {}, which exists", self.directory.join(name).display()))
                    .with_expected("no parts of an earlier conversion: remove them, or choose another name"));
            }
        }
        Ok(())
    }
}

/// How the tables are written.
pub(super) struct TableOptions {
    pub(super) kind: Kind,
    pub(super) binary: BinaryOptions,
    pub(super) text: TextOptions,
    pub(super) encode: Encode,
    pub(super) network: Network,
    pub(super) cancel: CancelToken,
}

/// The output that is being written.
pub(super) struct Output {
    options: TableOptions,
    schema: SchemaRef,
    sources: Vec<String>,
    place: Place,
    table: Option<Table<Counted>>,
    /// The bytes of the current table that have been written, before compression.
    written: Arc<AtomicU64>,
    /// The rows of the current table, and the rejects before it.
    rows: u64,
    rejected: u64,
    complete: Vec<(Writer, Option<PathBuf>)>,
}

/// Where the tables appear.
pub(super) enum Place {
    One(Sink),
    /// The names of the parts, and the size at which a part ends.
    Parts(Pattern, u64),
}

impl Output {
    /// Opens the first table.
    ///
    /// # Errors
    /// Returns the errors of opening, and of [`Table::new`].
    pub(super) fn open(options: TableOptions, place: Place, schema: SchemaRef, sources: Vec<String>) -> Result<Output> {
        let mut output = Output {
            options,
            schema,
            sources,
            place,
            table: None,
            written: Arc::default(),
            rows: 0,
            rejected: 0,
            complete: Vec::new(),
        };
        if let Place::Parts(..) = output.place {
            raise_file_limit();
        }
        output.table = Some(output.next_table()?);
        Ok(output)
    }

    fn next_table(&self) -> Result<Table<Counted>> {
        let builder = Writer::builder().cancel(&self.options.cancel).encode(self.options.encode);
        let (writer, path) = match &self.place {
            Place::One(sink) => (sink.open(builder, &self.options.network)?, None),
            Place::Parts(pattern, _) => {
                let path = pattern.part(self.complete.len());
                (Sink::File(path.clone()).open(builder, &self.options.network)?, Some(path))
            }
        };
        let source = tables::source_metadata(&self.sources);
        let out = Counted { writer, path, written: self.written.clone() };
        Table::new(self.options.kind, &self.schema, &self.options.binary, &self.options.text, &source, out)
    }

    /// Adds rows, before which this number of records has been rejected.
    ///
    /// # Errors
    /// Returns the errors of the output, and values that the format cannot hold.
    pub(super) fn write(&mut self, batch: &RecordBatch, rejected: u64) -> Result<()> {
        let mut table = match self.table.take() {
            Some(table) => table,
            None => self.next_table()?,
        };
        table.write(batch)?;
        self.rows += batch.num_rows() as u64;
        let is_full = match self.place {
            Place::One(_) => false,
            Place::Parts(_, size) => self.written.load(Ordering::Relaxed) + table.pending() as u64 >= size,
        };
        self.table = Some(table);
        if is_full { self.end_table(rejected) } else { Ok(()) }
    }

    fn end_table(&mut self, rejected: u64) -> Result<()> {
        if let Some(table) = self.table.take() {
            let metadata = tables::metadata(&self.sources, self.rows, rejected - self.rejected);
            let Counted { writer, path, .. } = table.finish(&metadata)?;
            self.complete.push((writer, path));
            (self.rows, self.rejected) = (0, rejected);
            self.written.store(0, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Completes the tables, which do not appear yet.
    ///
    /// # Errors
    /// Returns the errors of the output.
    pub(super) fn finish(mut self, rejected: u64) -> Result<Complete> {
        self.end_table(rejected)?;
        Ok(Complete(self.complete))
    }
}

/// Lets this process open as many files as it may: all parts are open until they appear.
fn raise_file_limit() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // If this fails, a part that exceeds the limit is an error.
    let _ = setrlimit(Resource::Nofile, limit);
}

/// Complete tables that have not appeared yet.
pub(super) struct Complete(Vec<(Writer, Option<PathBuf>)>);

impl Complete {
    /// Returns the number of tables.
    pub(super) fn count(&self) -> usize {
        self.0.len()
    }

    /// Makes all tables appear. If one cannot, no part of them remains.
    ///
    /// # Errors
    /// Returns the errors of closing a writer.
    pub(super) fn close(self) -> Result<()> {
        let mut appeared = Vec::new();
        let mut tables = self.0.into_iter();
        for (writer, path) in tables.by_ref() {
            if let Err(error) = writer.close() {
                tables.for_each(|(mut writer, _)| writer.abort());
                // They did not exist before.
                for path in appeared.iter().flatten() {
                    let _ = std::fs::remove_file(path);
                }
                return Err(error);
            }
            appeared.push(path);
        }
        Ok(())
    }

    /// Removes all tables.
    pub(super) fn abort(self) {
        self.0.into_iter().for_each(|(mut writer, _)| writer.abort());
    }
}

/// A writer that counts its bytes before compression.
struct Counted {
    writer: Writer,
    path: Option<PathBuf>,
    written: Arc<AtomicU64>,
}

impl Write for Counted {
    fn write(&mut self, data: &[u8]) -> std::io::Result<usize> {
        let count = Write::write(&mut self.writer, data)?;
        self.written.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Write::flush(&mut self.writer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        let pattern = Pattern::of(Path::new("a/{}-b.parquet")).unwrap();
        assert_eq!(pattern.part(7), Path::new("a/00007-b.parquet"));
        assert_eq!(pattern.part(123_456), Path::new("a/123456-b.parquet"));
        for path in ["b.parquet", "{}/b", "{}{}", "{}-{}", "{"] {
            assert_eq!(Pattern::of(Path::new(path)), None, "{path}");
        }
    }
}
