//! Versions of sources: what a reader reads can be read again from its start, and is the same, or that is an error.

use super::Reader;
use super::builder::{Again, Origin, ReaderBuilder};
use crate::error::{Error, ErrorKind, Result};

/// One version of a source, which can be read several times: a regular file that is given by its path, an object of
/// which the server has ranges and a strong ETag, or memory. [`Reader::version`] returns it.
///
/// ```
/// use millstream::Reader;
/// # let directory = tempfile::tempdir().unwrap();
/// # let path = directory.path().join("data.txt");
/// std::fs::write(&path, "one\ntwo\n")?;
/// let mut first = Reader::path(&path)?;
/// let version = first.version()?;
/// while first.next_line()?.is_some() {}
/// let mut second = version.open()?;
/// assert_eq!(second.next_line()?, Some(&b"one"[..]));
/// # Ok::<(), millstream::Error>(())
/// ```
#[derive(Clone)]
pub struct SourceVersion(Again);

impl SourceVersion {
    /// Opens the source again, with the options of the first reader. Its cancel token and its observer are shared; its
    /// time limits begin again.
    ///
    /// # Errors
    /// Returns the errors of opening, and [`SourceChanged`](ErrorKind::SourceChanged) or
    /// [`SourceShrank`](ErrorKind::SourceShrank) if a file is not the one that was read. If an object has changed,
    /// reading fails with [`SourceChanged`](ErrorKind::SourceChanged).
    pub fn open(&self) -> Result<Reader> {
        let Again { builder, origin } = self.0.clone();
        match origin {
            Origin::File { path, stamp } => builder.same_file(&path, stamp),
            Origin::Memory(memory) => builder.same_memory(memory),
            Origin::Object(version) => builder.same_object(&version),
        }
    }

    /// Returns this version with other options of its reader.
    #[must_use]
    pub fn with(self, options: impl FnOnce(ReaderBuilder) -> ReaderBuilder) -> SourceVersion {
        SourceVersion(Again { builder: options(self.0.builder), ..self.0 })
    }
}

impl std::fmt::Debug for SourceVersion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.0.origin {
            Origin::File { path, .. } => f.debug_tuple("SourceVersion").field(path).finish(),
            Origin::Memory(_) => f.debug_tuple("SourceVersion").field(&"memory").finish(),
            Origin::Object(version) => f.debug_tuple("SourceVersion").field(version).finish(),
        }
    }
}

/// Reading again.
impl Reader {
    /// Returns the version of the source that is being read, for reading it again.
    ///
    /// # Errors
    /// Returns [`Unsupported`](ErrorKind::Unsupported) for a source that can be read only once, such as a command, a pipe,
    /// a file descriptor, a followed file, a split, or an object without ranges or a strong ETag.
    pub fn version(&self) -> Result<SourceVersion> {
        self.again.as_deref().cloned().map(SourceVersion).map_err(|kind| {
            Error::new(ErrorKind::Unsupported)
                .with_name(&*self.name)
                .with_found(format!("{kind}, which can be read only once"))
                .with_expected(
                    "a regular file given by its path, memory, or an object with a strong ETag on a server with ranges",
                )
        })
    }

    /// Starts again at the first byte of the same version of the source. The options of this reader, the time since it was
    /// opened, and its limit apply to both readings; the counts of its progress begin again.
    ///
    /// ```
    /// use millstream::{ErrorKind, Reader};
    /// let mut reader = Reader::memory("one\ntwo\n")?;
    /// while reader.next_line()?.is_some() {}
    /// reader.rewind()?;
    /// assert_eq!(reader.next_line()?, Some(&b"one"[..]));
    ///
    /// let mut command = Reader::command(["seq", "3"])?;
    /// assert_eq!(command.rewind().unwrap_err().kind(), ErrorKind::Unsupported);
    /// assert_eq!(command.next_line()?, Some(&b"1"[..])); // it continues
    /// # Ok::<(), millstream::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns the errors of [`version`](Reader::version), after which the reader continues, and those of
    /// [`SourceVersion::open`], after which it is closed.
    pub fn rewind(&mut self) -> Result<()> {
        let SourceVersion(Again { builder, origin }) = self.version()?;
        // How the first reading ended has been reported, or does not matter.
        let _ = self.try_close();
        self.meter.bytes.store(0, std::sync::atomic::Ordering::Relaxed);
        let builder = builder.continuing(self.supply.wait().clone(), self.meter.clone());
        let last = self.observer.as_ref().map(|observer| observer.last);
        *self = SourceVersion(Again { builder, origin }).open()?;
        if let (Some(observer), Some(last)) = (&mut self.observer, last) {
            observer.last = last;
        }
        Ok(())
    }
}
