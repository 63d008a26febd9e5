//! `--index`: makes the index of a gzip file while the file is read. The index appears if the run succeeds.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use millstream::{
    CancelToken, Decode, Encode, Error, ErrorKind, Format, GzipIndex, GzipIndexer, Pin, ProgressHandle, Reader,
    ReaderBuilder, Result, Writer,
};

use super::settings::Settings;
use super::source::Source;

/// Fails if a file has another format than gzip. It is opened only if it is a regular file: others can be read once.
pub(super) fn check_format(sources: &[Source]) -> Result<()> {
    let [Source::File(path)] = sources else { return Ok(()) };
    let path = Path::new(path);
    let named = |error: Error| error.with_name(path.display().to_string());
    let open_failed = |error| named(Error::new(ErrorKind::OpenFailed).with_io(error));
    if !path.metadata().map_err(open_failed)?.is_file() {
        return Ok(());
    }
    let mut first = Vec::new();
    File::open(path).and_then(|file| file.take(3).read_to_end(&mut first)).map_err(open_failed)?;
    match first.as_slice() {
        [0x1f, 0x8b, 8] => Ok(()),
        _ => Err(named(
            Error::new(ErrorKind::Unsupported)
                .with_found("--index for a file that does not begin as gzip does")
                .with_expected("a gzip file"),
        )),
    }
}

/// An index that is made.
pub(super) struct Indexing {
    out: Arc<Mutex<Output>>,
    /// How many compressed bytes have been read, once the source is open.
    compressed: Option<ProgressHandle>,
}

struct Output {
    writer: Option<Writer>,
    is_complete: bool,
}

impl Indexing {
    /// Opens the output.
    ///
    /// # Errors
    /// Returns the errors of creating the file.
    pub(super) fn open(path: &Path, token: &CancelToken) -> Result<Indexing> {
        let writer = Writer::builder().cancel(token).encode(Encode::Off).path(path)?;
        let out = Output { writer: Some(writer), is_complete: false };
        Ok(Indexing { out: Arc::new(Mutex::new(out)), compressed: None })
    }

    /// Opens the source, which is a file or standard input. `size` is its size, if it is known. `builder` has the options
    /// that apply to its decoded bytes.
    pub(super) fn reader(
        &mut self,
        source: &Source,
        builder: ReaderBuilder,
        settings: &Settings,
        token: &CancelToken,
        size: Option<u64>,
    ) -> Result<Reader> {
        let compressed = source.open(settings.pinned().decode(Decode::Off).cancel(token), settings)?;
        self.compressed = Some(compressed.progress_handle());
        let (name, out) = (compressed.name().to_string(), self.out.clone());
        let indexer = GzipIndexer::new(compressed, GzipIndex::usual_spacing(size.unwrap_or(0)))?;
        builder.name(name).pin(Pin::Content).from_read(indexer.at_end(move |index| {
            let mut out = lock(&out);
            if let Some(writer) = &mut out.writer {
                index.write(writer).map_err(Error::from_io)?;
                out.is_complete = true;
            }
            Ok(())
        }))
    }

    /// Returns the compression of the source, and how many bytes of it have been read.
    pub(super) fn progress(&self) -> (Format, u64) {
        (Format::Gzip, self.compressed.as_ref().map_or(0, ProgressHandle::source_bytes))
    }

    /// Completes the file: it appears.
    ///
    /// # Errors
    /// Returns the errors of completing it, and one if the source was not read to its end.
    pub(super) fn close(self) -> Result<()> {
        let mut out = lock(&self.out);
        match out.writer.take() {
            Some(writer) if out.is_complete => writer.close().map(drop),
            Some(mut writer) => {
                let name = writer.name().to_string();
                writer.abort();
                Err(Error::new(ErrorKind::Cancelled)
                    .with_name(name)
                    .with_found("a source that was not read to its end")
                    .with_expected("a whole file to make an index of"))
            }
            None => Ok(()),
        }
    }

    /// Removes the file of a run that failed.
    pub(super) fn abandon(self) {
        if let Some(mut writer) = lock(&self.out).writer.take() {
            writer.abort();
        }
    }
}

fn lock(out: &Mutex<Output>) -> MutexGuard<'_, Output> {
    out.lock().unwrap_or_else(PoisonError::into_inner)
}
