//! Exact splits: a file or an object is divided into byte ranges that are read independently, on several threads, by several
//! processes or on several machines. Reading the splits in order returns exactly what one reader of the whole file
//! returns: the same records, the same errors, and the same byte offsets.
//!
//! - [`Splits::plan`] divides a file, and [`SplitsBuilder::plan_url`] an object. If records can be found from any position, planning reads nothing; otherwise it
//!   follows the records from the start of the file once.
//! - A plan depends only on the file, the framing and the size, not on the number of workers. It can be stored as JSON
//!   ([`Splits::to_json`]). Each [`Split`] is complete by itself, so it can be sent to a worker alone.
//! - [`Reader::split`](crate::Reader::split) reads one split.
//!
//! ```
//! use millstream::Reader;
//! use millstream::splits::{Framing, Splits};
//! # let directory = tempfile::tempdir().unwrap();
//! # let path = directory.path().join("data.txt");
//! std::fs::write(&path, "one\ntwo\nthree\nfour\n")?;
//! let plan = Splits::plan(&path, Framing::Lines, 8)?;
//! let mut lines = Vec::new();
//! for split in &plan {
//!     let mut reader = Reader::split(split)?;
//!     while let Some(line) = reader.next_line()? {
//!         lines.push(String::from_utf8_lossy(line).into_owned());
//!     }
//! }
//! assert_eq!(plan.len(), 3);
//! assert_eq!(lines, ["one", "two", "three", "four"]);
//! # Ok::<(), millstream::Error>(())
//! ```

mod assumed;
mod chunks;
mod content;
mod divided;
#[cfg(feature = "compression")]
mod encoded;
mod framing;
#[doc(hidden)] // for the command line
pub mod in_order;
mod parallel;
mod pass;
mod pin;
mod plan;
mod source;
mod stored;
#[cfg(feature = "compression")]
mod table;
mod walk;

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::Remote;
use crate::error::{Error, ErrorKind, Result};
use millstream_core::internal::{JsonElements, refuse};

pub use assumed::AssumedSplits;
pub use divided::Divided;
pub use framing::Framing;
pub use pass::{PassPart, PassResult, SharedPass};
pub use pin::SplitPin;
pub use plan::SplitsBuilder;

#[cfg(feature = "compression")]
use crate::source::gzip_index::Mark;
use content::Location;
use pin::Pinned;
pub(crate) use source::Opened;

/// The maximum number of bytes before and after the start of a split that are hashed.
const BOUNDARY: u64 = 32 << 10;

/// A plan: the splits of a file, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Splits {
    splits: Arc<Vec<Split>>,
    /// The size of the file in bytes when it was planned.
    size: u64,
    /// The number of records, if planning counted them.
    records: Option<u64>,
    /// Why there are fewer splits than the size suggests.
    note: Option<String>,
}

/// One part of a file or object, complete by itself: the path or URL, the pin, the framing and the range.
///
/// A split is a range of offsets, of decoded bytes if the file is compressed. A record belongs to the split in which it
/// begins, so a split may be read beyond its end, and may contain no record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Split {
    whole: Arc<Whole>,
    begin: u64,
    /// The offset after the split, or `None` for the end of the file.
    end: Option<u64>,
    /// Whether records begin at `begin` and at `end`. Otherwise the first record is searched for; if the framing does not
    /// allow that, it is assumed to be at `begin`.
    is_exact: bool,
    /// The number of records before the split, if planning counted them.
    record: Option<u64>,
    /// The number of its first line, which is 1 for the first line of the file, if planning counted the lines of CSV.
    line: Option<u64>,
    /// The number of its records that are not skipped, if planning counted them.
    rows: Option<u64>,
    /// If records are the elements of a JSON document, the place in it.
    json: Option<JsonPlace>,
    /// If the file is compressed, where decoding begins.
    encoded: Option<Encoded>,
    /// The hash of the split's bytes.
    hash: Option<String>,
    /// The hash of the bytes around `begin`: see [`Split::boundary`].
    boundary_hash: Option<String>,
}

/// The facts about a file that all of its splits share.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Whole {
    /// A path that is not UTF-8 is not stored in JSON.
    location: Option<Location>,
    pin: Pinned,
    framing: Framing,
    /// The index of a plain gzip file, if it is not at its usual path.
    index: Option<PathBuf>,
    /// The header of a file of CSV, if that was requested.
    header: Option<String>,
}

/// The place of a split in a JSON document: at its start, or after an element.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct JsonPlace {
    /// Whether each value around the array is an object, outermost first; nothing at the start of the document.
    objects: Vec<bool>,
    /// The number of bytes that the elements before have as records.
    kept: u64,
    /// Whether the end of the split is that of the document.
    last: bool,
}

/// A position in a compressed file at which decoding can begin.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Encoded {
    /// The offset in the file.
    at: u64,
    /// The number of decoded bytes before the first one that is delivered.
    decoded: u64,
    /// If the file is plain gzip with an index, the points of the index.
    #[cfg(feature = "compression")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    seek: Option<Seek>,
    /// Otherwise, the beginning of the block or frame at which the split ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    until: Option<Place>,
}

/// A place between two blocks or frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Place {
    /// The offset in the file.
    at: u64,
    /// The number of decoded bytes before it.
    decoded: u64,
}

/// The points of a gzip index between which a split is decoded.
#[cfg(feature = "compression")]
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Seek {
    /// Where decoding begins, or `None` for the beginning of the file.
    from: Option<Mark>,
    /// The point whose checksum is compared, at or after the end of the split, or `None` for the end of the file.
    until: Option<Mark>,
    /// The number of decoded bytes of the file.
    end: u64,
}

impl Splits {
    /// Divides a regular file into splits of about `size` bytes, with [`SplitPin::Identity`]. Set other options with
    /// [`Splits::builder`].
    ///
    /// Lines, delimiters that cannot overlap themselves, and records of a fixed length need no pass: a plan of a file of
    /// any size is made without reading it. For delimiters such as `aa`, the whole file is searched; for BSON and
    /// length-prefixed records, the lengths are followed, and all of a JSON document is checked. Such a plan knows the
    /// number of the first record of each split. An error of the framing or in the document ends the division: the last
    /// split contains everything from there on.
    ///
    /// A compressed file is divided at its bgzf blocks or zstd frames, and `size` and all offsets are of decoded bytes.
    /// Frames need the size of their content, which `zstd FILE` writes. Plain gzip is divided at the points of its index
    /// (see [`SplitsBuilder::index`]). Other formats, plain gzip without an index, and records that have to be followed,
    /// are one split; see [`note`](Splits::note).
    ///
    /// # Errors
    /// Returns [`ErrorKind::OpenFailed`], [`ErrorKind::Unsupported`] for anything other than a regular file, and
    /// [`ErrorKind::InvalidOption`] for a size of 0 or one that would need more than 16,777,216 splits.
    pub fn plan(path: impl AsRef<Path>, framing: Framing, size: u64) -> Result<Splits> {
        Splits::builder().plan(path, framing, size)
    }

    /// Returns a builder, on which options are set.
    pub fn builder() -> SplitsBuilder {
        SplitsBuilder::default()
    }

    /// Returns the number of splits. Even an empty file has one split, so that it is checked.
    #[expect(clippy::len_without_is_empty, reason = "a plan is never empty; a shard may be, but has no use for it")]
    pub fn len(&self) -> usize {
        self.splits.len()
    }

    /// Returns an iterator over the splits.
    pub fn iter(&self) -> std::slice::Iter<'_, Split> {
        self.splits.iter()
    }

    /// Returns the size of the file in bytes when it was planned.
    pub fn file_size(&self) -> u64 {
        self.size
    }

    /// Returns the number of records of the file, if planning counted them. An incomplete or invalid record at the end
    /// is not counted.
    pub fn records(&self) -> Option<u64> {
        self.records
    }

    /// Returns why the file has fewer splits than its size suggests, such as a format that cannot be divided.
    pub fn note(&self) -> Option<&str> {
        self.note.as_deref()
    }

    /// Returns the splits of worker `index` of `count`, in a random order that `seed` determines. Each split belongs to
    /// one worker, and the numbers of splits differ by at most one. For each epoch of a training loop, use another seed.
    ///
    /// The result depends only on the plan and the arguments, in every version and on every machine: the positions are
    /// shuffled by Fisher and Yates' algorithm with SplitMix64, and worker i gets every `count`-th one from i on.
    ///
    /// ```
    /// # use millstream::splits::{Framing, Splits};
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let path = directory.path().join("data.txt");
    /// # std::fs::write(&path, "one\ntwo\nthree\nfour\n")?;
    /// let plan = Splits::plan(&path, Framing::Lines, 4)?;
    /// let (first, second) = (plan.shard(0, 2, 7)?, plan.shard(1, 2, 7)?);
    /// assert_eq!((plan.len(), first.len(), second.len()), (5, 3, 2));
    /// assert!(first.iter().all(|split| second.iter().all(|other| split != other)));
    /// # Ok::<(), millstream::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns [`ErrorKind::InvalidOption`] if `index` is not less than `count`.
    pub fn shard(&self, index: usize, count: usize, seed: u64) -> Result<Vec<Split>> {
        refuse(&[(
            index >= count,
            &format_args!("worker {index} of {count}"),
            &"a worker from 0 to one less than their number",
        )])?;
        let mut order: Vec<usize> = (0..self.splits.len()).collect();
        let mut state = seed;
        for last in (1..order.len()).rev() {
            order.swap(last, below(&mut state, last as u64 + 1) as usize);
        }
        Ok(order.into_iter().skip(index).step_by(count).map(|i| self.splits[i].clone()).collect())
    }
}

/// Returns a random number less than `bound`, and advances SplitMix64.
fn below(state: &mut u64, bound: u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    // The high half of the product maps the number to the range.
    ((u128::from(z ^ (z >> 31)) * u128::from(bound)) >> 64) as u64
}

impl<'a> IntoIterator for &'a Splits {
    type Item = &'a Split;
    type IntoIter = std::slice::Iter<'a, Split>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl IntoIterator for Splits {
    type Item = Split;
    type IntoIter = std::vec::IntoIter<Split>;

    fn into_iter(self) -> Self::IntoIter {
        Arc::unwrap_or_clone(self.splits).into_iter()
    }
}

impl Split {
    /// Returns the offset at which the split begins, in bytes from the start of the (decoded) file. For elements of a JSON
    /// document, it counts in the document, and the position of a reader in its records.
    pub fn begin(&self) -> u64 {
        self.begin
    }

    /// Returns the offset after the split, or `None` for the end of the file.
    pub fn end(&self) -> Option<u64> {
        self.end
    }

    /// Returns the number of the first record (the first of the file is 0), if planning counted the records.
    pub fn first_record(&self) -> Option<u64> {
        self.record
    }

    /// Returns the number of the first line (the first of the file is 1), if planning counted the lines of a file of CSV.
    pub fn first_line(&self) -> Option<u64> {
        self.line
    }

    /// Returns the number of its records without the blank lines and comments of CSV, if planning counted them. A header is
    /// a record. If an incomplete or invalid record ended the count, the number of the last split is not known.
    ///
    /// ```
    /// # use millstream::frame::CsvDialect;
    /// # use millstream::splits::{Framing, Splits};
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let path = directory.path().join("data.csv");
    /// std::fs::write(&path, "id,text\n1,\"a\nb\"\n\n2,c\n")?;
    /// let plan = Splits::plan(&path, Framing::Csv { dialect: CsvDialect::new() }, 10)?;
    /// assert_eq!(plan.iter().map(|split| split.rows()).collect::<Vec<_>>(), [Some(2), Some(1)]);
    /// # Ok::<(), millstream::Error>(())
    /// ```
    pub fn rows(&self) -> Option<u64> {
        self.rows
    }

    /// Returns whether this is a split of [`AssumedSplits`] whose end is not the start of a record: its reader delivers the
    /// bytes of later records, too.
    pub fn is_assumed(&self) -> bool {
        !self.is_exact && self.whole.framing.searchable().is_none()
    }

    /// Returns how the records are found.
    pub fn framing(&self) -> &Framing {
        &self.whole.framing
    }

    /// Returns the header of a file of CSV, without its line end, if [`header`](SplitsBuilder::header) was set.
    pub fn header(&self) -> Option<&str> {
        self.whole.header.as_deref()
    }

    /// Returns the file's absolute path.
    pub fn path(&self) -> Option<&Path> {
        self.whole.location.as_ref()?.path()
    }

    /// Returns the object's URL as it was given. It may contain secrets.
    pub fn url(&self) -> Option<&str> {
        match self.whole.location.as_ref()? {
            Location::File(_) => None,
            Location::Object(remote) => Some(remote.url()),
        }
    }

    /// Returns the name of the file or object as messages show it: a URL without user, password, query and fragment.
    pub fn name(&self) -> String {
        self.whole.location.as_ref().map_or_else(String::new, Location::name)
    }

    /// Returns the same split of a file with another path, such as a copy on another machine. If it needs an index that
    /// is next to the file, the copy must have one too.
    #[must_use]
    pub fn with_path(self, path: impl Into<PathBuf>) -> Split {
        self.at(Location::File(path.into()))
    }

    /// Returns the same split of the object with this URL, with these options for its requests. JSON does not contain
    /// the options, because headers may be secret; credentials of stores come from the environment.
    ///
    /// ```
    /// use millstream::Remote;
    /// use millstream::splits::Split;
    /// # let json = r#"{"version":1,"url":"s3://logs/a.csv","pin":{"kind":"none"},"framing":{"kind":"lines"},"begin":0,"end":9,"exact":true,"record":0}"#;
    /// let split = Split::from_json(json)?;
    /// let remote = Remote::new(split.url().unwrap()).endpoint("http://127.0.0.1:9000");
    /// assert_eq!(split.clone().with_remote(remote), split);
    /// # Ok::<(), millstream::Error>(())
    /// ```
    #[must_use]
    pub fn with_remote(self, remote: impl Into<Remote>) -> Split {
        self.at(Location::Object(Box::new(remote.into())))
    }

    fn at(self, location: Location) -> Split {
        Split { whole: Arc::new(Whole { location: Some(location), ..(*self.whole).clone() }), ..self }
    }

    /// Returns the filter for the elements of a JSON document, and the position of the first one in the records, if
    /// records are elements.
    pub(crate) fn elements(&self) -> Result<Option<(JsonElements, u64)>> {
        let (Framing::JsonElements { pointer, depth }, Some(place)) = (self.framing(), &self.json) else {
            return Ok(None);
        };
        let elements = JsonElements::new(pointer)?.depth(*depth);
        let elements = match self.begin {
            0 => elements,
            begin => elements.after(&place.objects, begin, self.record.unwrap_or(0))?,
        };
        Ok(Some((elements, place.kept)))
    }

    /// Returns the bytes of the file around the start of the split that are hashed: at most 32 KiB before and 32 KiB after it,
    /// and not more than the split has, so that all of them are at most twice the file.
    fn boundary(&self) -> Range<u64> {
        let reach = self.end.map_or(0, |end| end - self.begin).min(BOUNDARY);
        self.begin.saturating_sub(reach)..self.begin + reach
    }

    /// Returns whether the split ends between two elements of a JSON document.
    pub(crate) fn ends_between_elements(&self) -> bool {
        self.json.as_ref().is_some_and(|place| !place.last)
    }

    /// Returns where the content is, which a split from JSON may lack.
    fn location(&self) -> Result<&Location> {
        self.whole.location.as_ref().ok_or_else(|| {
            Error::new(ErrorKind::InvalidOption)
                .with_found("a split without a path")
                .with_expected("the path of its file")
        })
    }
}
