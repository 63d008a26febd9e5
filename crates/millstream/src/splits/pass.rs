//! A pass over a file of CSV that several processes make together.
//!
//! Each follows the records of some parts, from where it guesses that the first record of the part begins. Then the process
//! that plans composes what they found: a guess is right if the part before ended there. It follows the other parts itself, so
//! the plan is the same as without help.

use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::Remote;
use crate::error::{Error, ErrorKind, Result};
use crate::frame::Csv;
use crate::os::cancel::{CancelToken, Wait};
use crate::versioned;

use super::chunks::Chunks;
use super::content::Content;
use super::plan::{Planning, refuse_empty};
use super::stored::{StoredSplit, VERSION, refused};
use super::walk::{Boundaries, Counts, Walked, follow};
use super::{Framing, Location, Split, SplitPin, Splits, SplitsBuilder, source};

/// A pass over a file or object of CSV, which several processes or machines make together. The plan is the one that
/// [`SplitsBuilder::plan`] makes.
///
/// The process that plans sends the [`parts`](SharedPass::parts) to others as JSON, each of which
/// [follows](PassPart::follow) its part and sends the result back as JSON.
///
/// ```
/// use millstream::frame::CsvDialect;
/// use millstream::splits::{Framing, PassPart, PassResult, Splits};
/// # let directory = tempfile::tempdir().unwrap();
/// # let path = directory.path().join("data.csv");
/// std::fs::write(&path, "id,text\n1,\"a\nb\"\n2,c\n3,d\n")?;
/// let framing = Framing::Csv { dialect: CsvDialect::new() };
/// let pass = Splits::builder().share(&path, framing.clone(), 8, 12)?.unwrap();
///
/// let mut results = Vec::new();
/// for part in pass.parts() {
///     let json = part.to_json();
///     // In another process:
///     let result = PassPart::from_json(&json)?.follow()?.to_json();
///     // In the first process:
///     results.push(PassResult::from_json(&result)?);
/// }
/// assert_eq!(pass.plan(results)?, Splits::plan(&path, framing, 8)?);
/// # Ok::<(), millstream::Error>(())
/// ```
pub struct SharedPass {
    options: SplitsBuilder,
    plan: Planning,
    csv: Csv,
    /// The size of a part in bytes.
    part: u64,
}

/// A part of a [`SharedPass`], complete by itself.
#[derive(Clone, Debug)]
pub struct PassPart {
    /// The whole file as one split.
    file: Split,
    range: Range<u64>,
    /// The size of the splits of the plan.
    step: u64,
    cancel: Option<CancelToken>,
}

/// What following a [`PassPart`] found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PassResult {
    version: u32,
    /// The hash of the part's JSON.
    part: String,
    /// `None` if the start of a record was not found.
    found: Option<FollowedPart>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct FollowedPart {
    /// The guess.
    begin: u64,
    end: u64,
    counts: Counts,
    /// Whether a record that is incomplete or invalid, or the end of the file, is at `end`.
    last: bool,
    boundaries: Boundaries,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredPart<'a> {
    version: u32,
    #[serde(borrow)]
    file: StoredSplit<'a>,
    begin: u64,
    end: u64,
    /// The size of the splits of the plan.
    size: u64,
}

impl SplitsBuilder {
    /// Begins a plan of a regular file of CSV with splits of about `size` bytes, whose pass other processes help to make, in
    /// parts of `part` bytes: see [`SharedPass`]. At most the header is read.
    ///
    /// Returns `None` if there is no pass of CSV to share: for other records, a file that has to be decoded,
    /// [`SplitPin::Full`], which reads the file a second time, and [`SplitPin::None`], with which processes could read
    /// different files.
    ///
    /// # Errors
    /// Returns the errors of [`plan`](SplitsBuilder::plan) before its pass.
    pub fn share(self, path: impl AsRef<Path>, framing: Framing, size: u64, part: u64) -> Result<Option<SharedPass>> {
        let (path, wait) = (path.as_ref(), self.wait());
        let share = || {
            self.check(&framing, size)?;
            let (content, location) = SplitsBuilder::file(path)?;
            self.share_content(&content, location, framing, size, part, &wait)
        };
        share().map_err(|error| error.with_name(path.display().to_string()))
    }

    /// Begins a plan of an object of CSV: see [`share`](SplitsBuilder::share).
    ///
    /// # Errors
    /// Returns the errors of [`plan_url`](SplitsBuilder::plan_url) before its pass.
    pub fn share_url(
        self,
        remote: impl Into<Remote>,
        framing: Framing,
        size: u64,
        part: u64,
    ) -> Result<Option<SharedPass>> {
        let (remote, wait) = (remote.into(), self.wait());
        let name = remote.name();
        let share = || {
            self.check(&framing, size)?;
            let content = self.object(&remote, &wait)?;
            self.share_content(&content, Location::Object(Box::new(remote)), framing, size, part, &wait)
        };
        share().map_err(|error| error.with_name(name))
    }

    fn share_content(
        self,
        content: &Content,
        location: Location,
        framing: Framing,
        size: u64,
        part: u64,
        wait: &Wait,
    ) -> Result<Option<SharedPass>> {
        refuse_empty(part)?;
        let Framing::Csv { dialect } = &framing else { return Ok(None) };
        let csv = Csv::with(*dialect)?;
        if matches!(self.pin, SplitPin::None | SplitPin::Full) {
            return Ok(None);
        }
        let (plan, format) = self.begin(content, location, framing, size, wait)?;
        Ok(format.is_none().then_some(SharedPass { options: self, plan, csv, part }))
    }
}

impl SharedPass {
    /// Returns the parts, in order. Even an empty file has one.
    pub fn parts(&self) -> impl Iterator<Item = PassPart> + use<> {
        let (size, step, length) = (self.plan.size, self.plan.step, self.part);
        let file = self.plan.whole();
        (0..size.div_ceil(length).max(1)).map(move |index| {
            let begin = index * length;
            let range = begin..size.min(begin.saturating_add(length));
            PassPart { file: file.clone(), range, step, cancel: None }
        })
    }

    /// Composes the results into the plan. They may be in any order, and any of them may be missing: this process follows those
    /// parts, as it does those for which the guess was wrong.
    ///
    /// # Errors
    /// Returns [`ErrorKind::InvalidOption`] for the result of another pass or of another version of the file, and otherwise the
    /// errors of [`SplitsBuilder::plan`].
    pub fn plan(&self, results: impl IntoIterator<Item = PassResult>) -> Result<Splits> {
        let file = self.plan.whole();
        self.compose(&file, results).map_err(|error| error.with_name(file.name()))
    }

    fn compose(&self, file: &Split, results: impl IntoIterator<Item = PassResult>) -> Result<Splits> {
        let parts: Vec<(String, Range<u64>)> = self.parts().map(|part| (part.id(), part.range)).collect();
        let mut found: HashMap<&str, Option<FollowedPart>> = parts.iter().map(|(id, _)| (&**id, None)).collect();
        let size = self.plan.size;
        for result in results {
            match found.get_mut(&*result.part) {
                Some(place) if result.found.as_ref().is_none_or(|found| found.is_possible(size)) => {
                    *place = result.found;
                }
                _ => {
                    return Err(Error::new(ErrorKind::InvalidOption)
                        .with_found("the result of another pass, or one that was changed")
                        .with_expected("results of the parts of this pass"));
                }
            }
        }
        let wait = self.options.wait();
        let content = source::open(file, &wait)?;
        let (mut plan, mut csv) = (self.plan.clone(), self.csv.clone());
        let records = plan.by_records(|report| {
            let mut whole = Walked { counts: Counts::default(), end: 0, is_last: false };
            for (id, Range { start, end }) in &parts {
                // A record that begins earlier may contain the whole part.
                if whole.is_last || whole.end >= *end && *start > 0 {
                    continue;
                }
                let (walked, boundaries) = match found.remove(&**id).flatten().filter(|part| part.begin == whole.end) {
                    Some(part) => (Walked { counts: part.counts, end: part.end, is_last: part.last }, part.boundaries),
                    None => follow(&content, whole.end..*end, size, self.plan.step, &mut csv, &wait)?,
                };
                for (offset, counts) in boundaries {
                    report(offset, whole.counts + counts);
                }
                whole = Walked { counts: whole.counts + walked.counts, ..walked };
                self.options.report(whole.end);
            }
            Ok(whole)
        })?;
        plan.finish(&content, Some(records), None, &wait)
    }
}

impl PassPart {
    /// Lets a token interrupt [`follow`](PassPart::follow).
    #[must_use]
    pub fn cancel(self, token: &CancelToken) -> PassPart {
        PassPart { cancel: Some(token.clone()), ..self }
    }

    /// Follows the records that begin in this part. The memory is 256 KiB, and one thread is used.
    ///
    /// # Errors
    /// Returns the errors of opening and reading the file, [`ErrorKind::Cancelled`], and [`ErrorKind::SourceChanged`] or
    /// [`ErrorKind::SourceShrank`] for another version of it.
    pub fn follow(&self) -> Result<PassResult> {
        self.follow_records().map_err(|error| error.with_name(self.file.name()))
    }

    fn follow_records(&self) -> Result<PassResult> {
        let wait = Wait::new(self.cancel.clone(), None);
        let content = source::open(&self.file, &wait)?;
        let mut csv = match self.file.framing() {
            Framing::Csv { dialect } => Csv::with(*dialect)?,
            _ => return Err(other_records()),
        };
        let (Range { start, end }, size) = (self.range.clone(), self.file.end.unwrap_or(0));
        let chunks = Chunks { content: content.clone(), wait: wait.clone(), csv: csv.clone(), size, step: self.step };
        let begin = if start == 0 { Some(0) } else { chunks.guess_start(start)?.filter(|&begin| begin < end) };
        let follow = |begin| -> Result<FollowedPart> {
            let (Walked { counts, end, is_last }, boundaries) =
                follow(&content, begin..end, size, self.step, &mut csv, &wait)?;
            Ok(FollowedPart { begin, end, counts, last: is_last, boundaries })
        };
        let found = begin.map(follow).transpose()?;
        source::check(&self.file, &content, &wait)?;
        Ok(PassResult { version: VERSION, part: self.id(), found })
    }

    /// What the result of this part contains, so that no result is taken for another one.
    fn id(&self) -> String {
        blake3::hash(self.to_json().as_bytes()).to_hex().to_string()
    }

    /// Returns the part as one line of JSON, like [`Split::to_json`].
    pub fn to_json(&self) -> String {
        let PassPart { file, range: Range { start, end }, step, .. } = self;
        let stored = StoredPart { version: VERSION, file: file.stored(), begin: *start, end: *end, size: *step };
        serde_json::to_string(&stored).expect("the fields have no maps and cannot fail")
    }

    /// Parses a part from JSON.
    ///
    /// # Errors
    /// Returns the errors of [`Split::from_json`].
    pub fn from_json(json: &str) -> Result<PassPart> {
        let stored: StoredPart<'_> =
            versioned::parse(json.as_bytes(), VERSION).map_err(|invalid| refused(invalid, PART))?;
        let StoredPart { file, begin, end, size: step, .. } = stored;
        let file = file.into_split()?;
        if !matches!(file.framing(), Framing::Csv { .. }) {
            return Err(other_records());
        }
        let is_possible =
            begin <= end && file.end.is_some_and(|size| end <= size) && file.encoded.is_none() && step > 0;
        if !is_possible {
            return Err(Error::new(ErrorKind::InvalidOption)
                .with_found(format!("bytes {begin} to {end} as a part, for splits of {step} bytes"))
                .with_expected("an unchanged part of a shared pass"));
        }
        Ok(PassPart { file, range: begin..end, step, cancel: None })
    }
}

const PART: &str = "a part of a shared pass";

fn other_records() -> Error {
    Error::new(ErrorKind::InvalidOption).with_found("a part of other records").with_expected("a part of CSV")
}

impl PassResult {
    /// Returns the result as one line of JSON.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("the fields have no maps and cannot fail")
    }

    /// Parses a result from JSON.
    ///
    /// # Errors
    /// Returns the errors of [`Split::from_json`].
    pub fn from_json(json: &str) -> Result<PassResult> {
        versioned::parse(json.as_bytes(), VERSION).map_err(|invalid| refused(invalid, "the result of a shared pass"))
    }
}

impl FollowedPart {
    /// Returns whether a part of a file of `size` bytes can have this result.
    fn is_possible(&self, size: u64) -> bool {
        let bytes = self.end.saturating_sub(self.begin);
        let mut before = (self.begin, Counts::default());
        self.end <= size
            && self.counts.records <= bytes
            && self.counts.inner_lines <= bytes
            && self.boundaries.iter().chain([&(self.end, self.counts)]).all(|&(offset, counts)| {
                let (last, last_counts) = std::mem::replace(&mut before, (offset, counts));
                last <= offset && counts.is_after(last_counts)
            })
    }
}
