//! Divides a file.

#[cfg(feature = "compression")]
use std::collections::VecDeque;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::Format;
use crate::Remote;
use crate::error::{Error, ErrorKind, Result};
use crate::frame::{Csv, Framer, Resume, Step};
use crate::os::cancel::{CancelToken, Wait};
use crate::os::stamp::shrank;
use crate::source::Decode;
use millstream_core::internal::{Guess, JsonElements, Known, guess, is_known, refuse};
use millstream_remote::{ListedObject, Version};

use super::chunks::Chunks;
use super::content::{Content, Location, current_version};
use super::pin::{Pinned, hash_of};
use super::walk::{CHUNK, Counts, Walked, count_before, walk, walk_elements};
use super::{AssumedSplits, Encoded, Framing, JsonPlace, Split, SplitPin, Splits, Whole, source};

/// The maximum number of splits of a plan.
const MOST: u64 = 1 << 24;

/// The maximum length of a header.
const HEADER: u64 = 64 << 20;

/// A function that is called with a number of bytes.
type Report = Arc<dyn Fn(u64) + Send + Sync>;

/// The options of a plan.
///
/// ```
/// use millstream::splits::{Framing, SplitPin, Splits};
/// # let directory = tempfile::tempdir().unwrap();
/// # let path = directory.path().join("data.txt");
/// # std::fs::write(&path, "one\ntwo\nthree\nfour\n")?;
/// let plan = Splits::builder().pin(SplitPin::Ends).plan(&path, Framing::Lines, 64 << 20)?;
/// assert_eq!(plan.len(), 1);
/// # Ok::<(), millstream::Error>(())
/// ```
#[derive(Clone, Default)]
#[must_use = "a builder does nothing until a file is planned"]
pub struct SplitsBuilder {
    pub(super) pin: SplitPin,
    decode: Option<Decode>,
    index: Option<PathBuf>,
    listed: Option<ListedObject>,
    cancel: Option<CancelToken>,
    header: bool,
    number: bool,
    before_pass: Option<Report>,
    progress: Option<Report>,
}

impl SplitsBuilder {
    /// Sets which properties of the file are stored, to detect another file or another version of it.
    pub fn pin(mut self, pin: SplitPin) -> SplitsBuilder {
        self.pin = pin;
        self
    }

    /// Sets whether a compressed file is decoded, which is the default, or divided as it is.
    pub fn decode(mut self, decode: Decode) -> SplitsBuilder {
        self.decode = Some(decode);
        self
    }

    /// Sets the index of a plain gzip file, with which the file is divided. `millstream index` and
    /// [`GzipIndex`](crate::GzipIndex) make one.
    ///
    /// By default, the index is `FILE.gzidx` next to `FILE` if there is one. If that one cannot be used, the file is one
    /// split, and [`Splits::note`] says why. An index that is set here and cannot be used is an error: it is for a file of
    /// another length or with another end, is damaged or truncated, has another version, or has no checksums, which
    /// other programs do not write.
    ///
    /// Planning reads the points of the index, and a split refers to the index by its path, so the index must still be
    /// there when the split is read. Each split is decoded from one point to another, and the checksums of both are
    /// compared, and the checksum of each member at its end. So what the splits return, in order, is what a reader of the
    /// whole file returns, except that a wrong checksum may be reported earlier.
    #[cfg(feature = "compression")]
    pub fn index(mut self, path: impl AsRef<Path>) -> SplitsBuilder {
        self.index = Some(path.as_ref().to_path_buf());
        self
    }

    /// Sets the object's entry in a list, such as one of [`Objects`](crate::remote::Objects). If the list has the ETag,
    /// [`plan_url`](SplitsBuilder::plan_url) takes the version from it and does not ask for it. With [`Decode::Off`], and for
    /// records that need no pass, such as lines, it then makes no request at all, so any number of objects can be planned.
    ///
    /// ```no_run
    /// use millstream::Decode;
    /// use millstream::remote::{Objects, Remote};
    /// use millstream::splits::{Framing, Splits};
    ///
    /// for object in Objects::matching(Remote::new("s3://logs/2026/*.log"))? {
    ///     let object = object?;
    ///     let plan = Splits::builder().decode(Decode::Off).listed(&object);
    ///     println!("{} {}", object.url, plan.plan_url(&*object.url, Framing::Lines, 256 << 20)?.len());
    /// }
    /// # Ok::<(), millstream::Error>(())
    /// ```
    pub fn listed(mut self, object: &ListedObject) -> SplitsBuilder {
        self.listed = Some(object.clone());
        self
    }

    /// Sets whether the first record of a file of CSV is a header, which each split then contains: [`Split::header`]. The
    /// header is also a record of the first split. A compressed file is one split, which begins with its header.
    ///
    /// Planning fails with [`ErrorKind::CsvInvalid`] if there is no record, with [`ErrorKind::RecordTooLong`] for a header of
    /// more than 64 MiB, and with [`ErrorKind::InvalidOption`] for other records than those of CSV.
    ///
    /// ```
    /// use millstream::frame::CsvDialect;
    /// use millstream::splits::{Framing, Splits};
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let path = directory.path().join("data.csv");
    /// std::fs::write(&path, "id,name\n1,a\n2,b\n3,c\n")?;
    /// let framing = Framing::Csv { dialect: CsvDialect::new() };
    /// let plan = Splits::builder().header(true).plan(&path, framing, 12)?;
    /// assert_eq!((plan.len(), plan.iter().nth(1).unwrap().header()), (2, Some("id,name")));
    /// # Ok::<(), millstream::Error>(())
    /// ```
    pub fn header(mut self, header: bool) -> SplitsBuilder {
        self.header = header;
        self
    }

    /// Sets whether each split has the number of its first record: [`Split::first_record`]. Lines and delimiters need a pass
    /// for that, which counts them; all other records are numbered anyway. With it, errors and positions have the numbers of
    /// records and lines that one reader of the whole file reports.
    ///
    /// Planning fails with [`ErrorKind::Unsupported`] for a compressed file that is divided before the records are known.
    ///
    /// ```
    /// use millstream::splits::{Framing, Splits};
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let path = directory.path().join("data.txt");
    /// std::fs::write(&path, "one\ntwo\nthree\nfour\n")?;
    /// let plan = Splits::builder().number(true).plan(&path, Framing::Lines, 8)?;
    /// assert_eq!((plan.len(), plan.records()), (3, Some(4)));
    /// assert_eq!(plan.iter().nth(1).unwrap().first_record(), Some(2));
    /// # Ok::<(), millstream::Error>(())
    /// ```
    pub fn number(mut self, number: bool) -> SplitsBuilder {
        self.number = number;
        self
    }

    /// Calls a function before a pass reads all of the file or object, with its size in bytes.
    pub fn before_pass(mut self, function: impl Fn(u64) + Send + Sync + 'static) -> SplitsBuilder {
        self.before_pass = Some(Arc::new(function));
        self
    }

    /// Calls a function while a pass reads the file, with the number of bytes of the file that it has read.
    pub fn progress(mut self, progress: impl Fn(u64) + Send + Sync + 'static) -> SplitsBuilder {
        self.progress = Some(Arc::new(progress));
        self
    }

    /// Lets a token interrupt planning.
    pub fn cancel(mut self, token: &CancelToken) -> SplitsBuilder {
        self.cancel = Some(token.clone());
        self
    }

    /// Divides a regular file: see [`Splits::plan`].
    ///
    /// # Errors
    /// Returns the errors of [`Splits::plan`], [`ErrorKind::Cancelled`], and [`ErrorKind::SourceShrank`] or
    /// [`ErrorKind::SourceChanged`] if the file changes while it is planned.
    pub fn plan(self, path: impl AsRef<Path>, framing: Framing, size: u64) -> Result<Splits> {
        let path = path.as_ref();
        let plan = || {
            self.check(&framing, size)?;
            let (content, location) = SplitsBuilder::file(path)?;
            self.plan_content(&content, location, framing, size, &self.wait())
        };
        plan().map_err(|error| error.with_name(path.display().to_string()))
    }

    /// Divides an object: see [`Splits::plan`]. Each split contains the object's size and ETag, and every request requires
    /// them. The server must have ranges and send a strong ETag.
    ///
    /// A pass downloads all of the object. A compressed object is recognised by its content, not by its name, and the
    /// index of a gzip object must be set.
    ///
    /// ```no_run
    /// use millstream::Reader;
    /// use millstream::splits::{Framing, Splits};
    ///
    /// let plan = Splits::builder().plan_url("s3://logs/2026/11/27.log", Framing::Lines, 256 << 20)?;
    /// for split in &plan {
    ///     let mut lines = Reader::split(split)?;
    ///     while let Some(line) = lines.next_line()? {
    ///         println!("{}", line.len());
    ///     }
    /// }
    /// # Ok::<(), millstream::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns the errors of [`ReaderBuilder::url`](crate::ReaderBuilder::url) and of [`Splits::plan`], and
    /// [`ErrorKind::Unsupported`] for an object without ranges or without a strong ETag.
    pub fn plan_url(self, remote: impl Into<Remote>, framing: Framing, size: u64) -> Result<Splits> {
        let remote = remote.into();
        let (name, wait) = (remote.name(), self.wait());
        let plan = || {
            self.check(&framing, size)?;
            let content = self.object(&remote, &wait)?;
            self.plan_content(&content, Location::Object(Box::new(remote)), framing, size, &wait)
        };
        plan().map_err(|error| error.with_name(name))
    }

    /// Divides a regular file of CSV without reading it: see [`AssumedSplits`]. Returns `None` for a file that has to be
    /// decoded, and for other records.
    ///
    /// # Errors
    /// Returns the errors of [`plan`](SplitsBuilder::plan).
    pub fn assume(self, path: impl AsRef<Path>, framing: Framing, size: u64) -> Result<Option<AssumedSplits>> {
        let path = path.as_ref();
        self.assume_file(path, framing, size).map_err(|error| error.with_name(path.display().to_string()))
    }

    fn assume_file(self, path: &Path, framing: Framing, step: u64) -> Result<Option<AssumedSplits>> {
        let Framing::Csv { dialect } = &framing else { return Ok(None) };
        let csv = Csv::with(*dialect)?;
        refuse_empty(step)?;
        let ((content, location), wait) = (SplitsBuilder::file(path)?, self.wait());
        if self.decode != Some(Decode::Off) && needs_decoding(&location, &content.first_bytes(&wait)?) {
            return Ok(None);
        }
        let (pin, size) = (Pinned::new(self.pin, &content, &wait)?, content.size()?);
        let whole = Arc::new(Whole { location: Some(location), pin, framing, index: None, header: None });
        Ok(Some(AssumedSplits { whole, chunks: Arc::new(Chunks { content, wait, csv, size, step }) }))
    }

    pub(super) fn wait(&self) -> Wait {
        Wait::new(self.cancel.clone(), None)
    }

    /// Opens a regular file.
    pub(super) fn file(path: &Path) -> Result<(Content, Location)> {
        Ok((open(path)?, Location::File(std::path::absolute(path).map_err(Error::from_io)?)))
    }

    /// Finds the version of an object that is planned.
    pub(super) fn object(&self, remote: &Remote, wait: &Wait) -> Result<Content> {
        Ok(Content::Object(match &self.listed {
            Some(ListedObject { size, etag: Some(etag), .. }) => Version::known(remote.clone(), *size, etag)?,
            _ => current_version(remote, wait)?,
        }))
    }

    /// Refuses what cannot work, before anything is opened.
    pub(super) fn check(&self, framing: &Framing, size: u64) -> Result<()> {
        framing.framer()?;
        refuse_empty(size)?;
        match framing {
            Framing::Csv { .. } => Ok(()),
            _ if self.header => {
                Err(Error::new(ErrorKind::InvalidOption).with_found("a header").with_expected("records of CSV"))
            }
            _ => Ok(()),
        }
    }

    fn plan_content(
        &self,
        content: &Content,
        location: Location,
        framing: Framing,
        size: u64,
        wait: &Wait,
    ) -> Result<Splits> {
        let progress = |bytes| self.report(bytes);
        let (mut plan, format) = self.begin(content, location, framing, size, wait)?;
        let (mut records, mut note) = (None, None);
        let counts = self.number && format.is_none() && plan.whole.framing.searchable().is_some();
        if self.pin == SplitPin::Full || counts || plan.needs_pass(content, format.as_ref()) {
            self.before_pass.iter().for_each(|report| report(plan.size));
        }
        if let Some(format) = format {
            note = plan.by_pieces(content, format, wait)?;
            if self.number && plan.splits.iter().any(|split| split.record.is_none()) {
                return Err(Error::new(ErrorKind::Unsupported)
                    .with_found("numbers of the records of a compressed file")
                    .with_expected("a file that is not compressed, or a size for one split"));
            }
        } else if plan.whole.index.is_some() {
            return Err(Error::new(ErrorKind::InvalidOption)
                .with_found("an index for a file that is not decoded")
                .with_expected("an index only for a gzip file"));
        } else if let Framing::Fixed { len } = plan.whole.framing {
            plan.by_length(len as u64)?;
        } else if plan.whole.framing.searchable().is_some() {
            plan.by_search()?;
            if counts {
                records = Some(plan.number(content, wait, &progress)?);
            }
        } else if matches!(plan.whole.framing, Framing::JsonElements { .. }) {
            records = Some(plan.by_elements(content, wait, &progress)?);
        } else {
            let (whole, size, step) = (plan.whole.clone(), plan.size, plan.step);
            records = Some(plan.by_records(|found| walk(content, size, &whole.framing, step, wait, &progress, found))?);
        }
        if self.pin == SplitPin::Full {
            for split in &mut plan.splits {
                progress(split.begin);
                split.hash = Some(source::hash(split, wait)?);
            }
        }
        plan.finish(content, records, note, wait)
    }

    /// Returns an empty plan, and the format of content that is decoded.
    pub(super) fn begin(
        &self,
        content: &Content,
        location: Location,
        framing: Framing,
        size: u64,
        wait: &Wait,
    ) -> Result<(Planning, Option<Guess>)> {
        // A change while the content is planned is detected by its time, because the pin may contain no hash of these bytes.
        let version = match self.pin {
            SplitPin::None => Pinned::None,
            _ => Pinned::new(SplitPin::Identity, content, wait)?,
        };
        let pin = Pinned::new(self.pin, content, wait)?;
        let index = self.index.as_ref().map(std::path::absolute).transpose().map_err(Error::from_io)?;
        let decodes = self.decode != Some(Decode::Off);
        let first = if decodes { content.first_bytes(wait)? } else { Vec::new() };
        let is_encoded = decodes && needs_decoding(&location, &first);
        let header = match &framing {
            Framing::Csv { dialect } if self.header && !is_encoded => {
                Some(header(content, &mut Csv::with(*dialect)?, wait)?)
            }
            _ => None,
        };
        let whole = Whole { location: Some(location), pin, framing, index, header };
        let plan = Planning { whole: Arc::new(whole), size: content.size()?, step: size, splits: Vec::new(), version };
        Ok((plan, is_encoded.then(|| guess(&first, true))))
    }

    /// Reports the number of bytes that a pass has read.
    pub(super) fn report(&self, bytes: u64) {
        self.progress.iter().for_each(|progress| progress(bytes));
    }
}

/// A plan in progress.
#[derive(Clone)]
pub(super) struct Planning {
    whole: Arc<Whole>,
    /// The size of the file.
    pub(super) size: u64,
    /// The requested size of a split.
    pub(super) step: u64,
    splits: Vec<Split>,
    /// The version of the content that is planned.
    version: Pinned,
}

impl Planning {
    /// Returns whether planning reads all of the content, which has this format if it is decoded.
    fn needs_pass(&self, content: &Content, format: Option<&Guess>) -> bool {
        match format {
            // The headers of blocks are everywhere. Between them, a file is not read.
            Some(Guess::Is(Known::Ours(Format::Bgzf))) => {
                matches!(content, Content::Object(_)) && self.whole.index.is_none()
            }
            Some(_) => false,
            None => !matches!(self.whole.framing, Framing::Fixed { .. }) && self.whole.framing.searchable().is_none(),
        }
    }

    fn add(&mut self, begin: u64, end: Option<u64>, is_exact: bool, record: Option<u64>) {
        self.splits.push(self.split(begin, end, is_exact, record));
    }

    fn split(&self, begin: u64, end: Option<u64>, is_exact: bool, record: Option<u64>) -> Split {
        let whole = self.whole.clone();
        let is_json = matches!(whole.framing, Framing::JsonElements { .. });
        let json = is_json.then(|| JsonPlace { last: true, ..JsonPlace::default() });
        Split {
            whole,
            begin,
            end,
            is_exact,
            record,
            line: None,
            rows: None,
            json,
            encoded: None,
            hash: None,
            boundary_hash: None,
        }
    }

    /// Returns the whole content as one split.
    pub(super) fn whole(&self) -> Split {
        self.split(0, Some(self.size), true, Some(0))
    }

    /// Divides a compressed file at its bgzf blocks, zstd frames or points of its index. Returns why it has fewer splits
    /// than it could have.
    #[cfg(feature = "compression")]
    fn by_pieces(&mut self, content: &Content, format: Guess, wait: &Wait) -> Result<Option<String>> {
        use super::encoded::{End, pieces};
        let whole = self.whole.clone();
        // A piece may begin within a record of a fixed length, and a delimiter may end where a split begins.
        let (unit, reach) = match (&whole.framing, whole.framing.searchable()) {
            (Framing::Fixed { len }, _) => (*len as u64, 0),
            (_, Some(delimiter)) => (1, delimiter.len() as u64),
            _ => {
                self.add_encoded(0, None, Encoded::default());
                return Ok(Some("the records of a compressed file are followed only while they are decoded".into()));
            }
        };
        let format = match format {
            Guess::Is(Known::Ours(format)) => format,
            // A reader reports what is wrong.
            _ => Format::Gzip,
        };
        let step = self.step;
        // The last pieces, the first of which contains the bytes before the next split.
        let mut starts = VecDeque::from([Encoded::default()]);
        let (mut begin, mut from, mut next) = (0, starts[0].clone(), step);
        let end = pieces(content, &whole, self.size, format, wait, |mut piece| {
            let (at, boundary) = (piece.at, piece.decoded / unit * unit);
            piece.begin_at(boundary.saturating_sub(reach));
            starts.push_back(piece.clone());
            while starts.get(1).is_some_and(|second| second.decoded <= boundary.saturating_sub(reach)) {
                starts.pop_front();
            }
            if boundary >= next && at < self.size && (self.splits.len() as u64) < MOST {
                from.end_at(&piece);
                self.add_encoded(begin, Some(boundary), std::mem::take(&mut from));
                (begin, from, next) = (boundary, starts[0].clone(), (boundary / step + 1).saturating_mul(step));
            }
        })?;
        if begin == 0 {
            // The index is not needed.
            from = Encoded::default();
        }
        self.add_encoded(begin, None, from);
        self.check_count(self.splits.len() as u64)?;
        Ok(match end {
            End::File => None,
            End::Undivided(reason) => Some(reason),
        })
    }

    #[cfg(not(feature = "compression"))]
    fn by_pieces(&mut self, _: &Content, _: Guess, _: &Wait) -> Result<Option<String>> {
        self.add_encoded(0, None, Encoded::default());
        Ok(Some("this build has no decoders".into()))
    }

    /// Adds a split of a compressed file. Its size is unknown, so the last split has no end.
    fn add_encoded(&mut self, begin: u64, end: Option<u64>, from: Encoded) {
        let is_exact = self.whole.framing.searchable().is_none();
        let record = match self.whole.framing {
            Framing::Fixed { len } => Some(begin / len as u64),
            _ => (begin == 0).then_some(0),
        };
        self.add(begin, end, is_exact, record);
        if let Some(split) = self.splits.last_mut() {
            split.encoded = Some(from);
        }
    }

    /// Fails if a plan would have too many splits.
    fn check_count(&self, count: u64) -> Result<()> {
        refuse(&[(count > MOST, &format_args!("a size that needs more than {MOST} splits"), &"a larger size")])
    }

    /// Divides at multiples of `step`.
    fn by_multiples(&mut self, step: u64, is_exact: bool, record: impl Fn(u64) -> Option<u64>) -> Result<()> {
        self.check_count(self.size.div_ceil(step))?;
        for i in 0..self.size.div_ceil(step).max(1) {
            self.add(i * step, Some(self.size.min((i + 1).saturating_mul(step))), is_exact, record(i * step));
        }
        Ok(())
    }

    fn by_length(&mut self, len: u64) -> Result<()> {
        self.by_multiples((self.step / len * len).max(len), true, |begin| Some(begin / len))
    }

    fn by_search(&mut self) -> Result<()> {
        self.by_multiples(self.step, false, |begin| (begin == 0).then_some(0))
    }

    /// Finds the number of the first record of each split, which a delimiter ends. Returns the number of all records.
    fn number(&mut self, content: &Content, wait: &Wait, progress: &dyn Fn(u64)) -> Result<u64> {
        let whole = self.whole.clone();
        let Some(delimiter) = whole.framing.searchable() else { return Ok(0) };
        let begins = self.splits.iter().map(|split| split.begin).chain([self.size]);
        let numbers = count_before(content, begins, delimiter, CHUNK, wait, progress)?;
        for (split, &number) in self.splits.iter_mut().zip(&numbers) {
            split.record = Some(number);
        }
        Ok(numbers.last().copied().unwrap_or(0))
    }

    /// Divides before the first record of each multiple of `step`. `follow` finds the records, as [`walk`] does. Returns their
    /// number.
    pub(super) fn by_records(
        &mut self,
        follow: impl FnOnce(&mut dyn FnMut(u64, Counts)) -> Result<Walked>,
    ) -> Result<u64> {
        self.check_count(self.size.div_ceil(self.step))?;
        let (size, step) = (self.size, self.step);
        let has_lines = matches!(self.whole.framing, Framing::Csv { .. });
        let mut add = |begin, end, before: Counts, after: Option<Counts>| {
            self.add(begin, Some(end), true, Some(before.records));
            let split = self.splits.last_mut().expect("it was added");
            split.line = has_lines.then_some(before.records + before.inner_lines + 1);
            split.rows = after.map(|after| after.rows() - before.rows());
        };
        let (mut begin, mut before, mut next) = (0, Counts::default(), step);
        let walked = follow(&mut |offset, counts| {
            if offset >= next && offset < size {
                add(begin, offset, before, Some(counts));
                (begin, before, next) = (offset, counts, (offset / step + 1).saturating_mul(step));
            }
        })?;
        add(begin, size, before, (walked.end == size).then_some(walked.counts));
        Ok(walked.counts.records)
    }

    /// Adds what the pin needs of each split. Fails if the content has changed since the plan began.
    pub(super) fn finish(
        mut self,
        content: &Content,
        records: Option<u64>,
        note: Option<String>,
        wait: &Wait,
    ) -> Result<Splits> {
        if let (Some(_), Pinned::Ends { .. }) = (records, &self.whole.pin) {
            // A pass has read these bytes.
            for split in self.splits.iter_mut().filter(|split| split.begin > 0) {
                wait.check()?;
                split.boundary_hash = Some(hash_of(content, &[split.boundary()], wait)?);
            }
        }
        self.version.check(content, wait)?;
        self.whole.pin.check(content, wait)?;
        let now = content.size()?;
        if now < self.size {
            return Err(shrank(now, self.size));
        }
        Ok(Splits { splits: Arc::new(self.splits), size: self.size, records, note })
    }

    /// Divides a JSON document after the first element of the array that ends at or after each multiple of `step`. Returns
    /// the number of elements.
    fn by_elements(&mut self, content: &Content, wait: &Wait, progress: &dyn Fn(u64)) -> Result<u64> {
        self.check_count(self.size.div_ceil(self.step))?;
        let (whole, size, step) = (self.whole.clone(), self.size, self.step);
        let Framing::JsonElements { pointer, depth } = &whole.framing else { return Ok(0) };
        let mut elements = JsonElements::new(pointer)?.depth(*depth);
        let (mut begin, mut record, mut next) = (0, 0, step);
        let (mut place, mut kept) = (JsonPlace::default(), 0);
        walk_elements(content, size, &mut elements, wait, progress, |elements, offset, bytes| {
            kept += bytes;
            if let (true, Some(objects)) = (offset >= next && offset < size, elements.around()) {
                self.add(begin, Some(offset), true, Some(record));
                self.splits.last_mut().expect("it was added").json = Some(place.clone());
                place = JsonPlace { objects, kept, last: false };
                (begin, record, next) = (offset, elements.elements(), (offset / step + 1).saturating_mul(step));
            }
        })?;
        self.add(begin, Some(size), true, Some(record));
        self.splits.last_mut().expect("it was added").json = Some(JsonPlace { last: true, ..place });
        Ok(elements.elements())
    }
}

/// Returns the first record, without its line end.
fn header(content: &Content, csv: &mut Csv, wait: &Wait) -> Result<String> {
    let (mut wanted, size) = (64 << 10, content.size()?);
    loop {
        let mut bytes = vec![0; wanted.min(size) as usize];
        content.read_exact_at(&mut bytes, 0, wait).map_err(Error::from_io)?;
        let (mut at, eof) = (0, bytes.len() as u64 == size);
        while at < bytes.len() {
            match csv.step(&bytes[at..], Resume::START, eof) {
                Step::Record { len, terminated } => {
                    let record = csv.trim().apply(&bytes[at..at + len], terminated);
                    if !csv.skips(record) {
                        let text = std::str::from_utf8(record).map_err(|_| {
                            let error = Error::new(ErrorKind::TextInvalid).with_found("a header that is not UTF-8");
                            error.with_offset(at as u64)
                        });
                        return text.map(str::to_string);
                    }
                    at += len;
                }
                Step::More { .. } => break,
                Step::Bad(error) => return Err(error.shift_offset(at as u64)),
            }
        }
        if eof {
            return Err(Error::new(ErrorKind::CsvInvalid).with_found("no record").with_expected("a header"));
        }
        if wanted >= HEADER {
            return Err(Error::new(ErrorKind::RecordTooLong)
                .with_found(format!("{wanted} bytes without the end of the header"))
                .with_expected(format!("at most {HEADER}")));
        }
        wanted *= 4;
    }
}

/// Refuses a size of 0.
pub(super) fn refuse_empty(size: u64) -> Result<()> {
    refuse(&[(size == 0, &"splits of 0 bytes", &"at least 1")])
}

/// Returns whether content at this location, with these first bytes, is compressed.
fn needs_decoding(location: &Location, first: &[u8]) -> bool {
    location.path().is_some_and(|path| Known::of_name(path).is_some()) || is_known(first)
}

/// Opens a regular file.
fn open(path: &Path) -> Result<Content> {
    let open_failed = |error| Error::new(ErrorKind::OpenFailed).with_io(error);
    // Opening a FIFO would wait for its writer.
    let irregular = || {
        Error::new(ErrorKind::Unsupported)
            .with_found("something that is not a regular file")
            .with_expected("a regular file, which can be read from any position")
    };
    if !std::fs::metadata(path).map_err(open_failed)?.is_file() {
        return Err(irregular());
    }
    let content = Content::File(Arc::new(File::open(path).map_err(open_failed)?));
    // Files in /proc and similar file systems report a size of 0 but have content.
    if content.size()? == 0 && !content.first_bytes(&Wait::default())?.is_empty() {
        return Err(irregular());
    }
    Ok(content)
}
