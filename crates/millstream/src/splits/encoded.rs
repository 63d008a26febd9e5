//! Finds where decoding can begin in a compressed file: at each bgzf block, at each zstd frame, and at each point of the
//! index of a plain gzip file.
//!
//! The lengths in the headers of blocks and frames are followed from the start of the file, or from the last place of the
//! table that the file has. Bytes that look like a header
//! elsewhere, in the compressed data of a block, are never examined.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use crate::Format;
use crate::error::{Error, ErrorKind, Result};
use crate::os::cancel::Wait;
use crate::source::Resume;
use crate::source::decode::{Goal, bgzf_block, zstd_frame};
use crate::source::gzip_index::{self, GzipIndex, WINDOW, marks, window};

use super::content::{Content, Location};
use super::{Encoded, Place, Seek, Split, Whole, table};

/// Why the traversal of a file ended.
pub(super) enum End {
    /// It reached the end of the file.
    File,
    /// The rest of the file is not divided, for this reason.
    Undivided(String),
}

impl Encoded {
    /// Delivers bytes from this offset on, if they are in the window of the point at which decoding begins.
    pub(super) fn begin_at(&mut self, offset: u64) {
        if self.seek.as_ref().is_some_and(|seek| seek.from.is_some()) && self.decoded - offset <= WINDOW as u64 {
            self.decoded = offset;
        }
    }

    /// Ends decoding at the point at which `next` begins.
    pub(super) fn end_at(&mut self, next: &Encoded) {
        if let Some(end) = &next.seek {
            // Only the first piece has no points yet.
            let seek = self.seek.get_or_insert(Seek { from: None, until: None, end: end.end });
            seek.until.clone_from(&end.from);
        } else {
            self.until = Some(Place { at: next.at, decoded: next.decoded });
        }
    }

    /// Returns why this cannot be a part of a plan.
    pub(super) fn contradiction(&self) -> Option<&'static str> {
        if self.until.is_some_and(|until| until.at < self.at || until.decoded < self.decoded || self.seek.is_some()) {
            return Some("whose decoding ends before it begins");
        }
        let Seek { from, until, end } = self.seek.as_ref()?;
        let start =
            from.as_ref().map_or((0, 0), |mark| (mark.at - u64::from(mark.bits > 0).min(mark.at), mark.decoded));
        let window = from.as_ref().map_or(0, |_| WINDOW as u64);
        let fits = from.as_ref().is_none_or(|mark| mark.bits < 8 && mark.window.is_some())
            && self.at == start.0
            && (start.1.saturating_sub(window)..=start.1).contains(&self.decoded)
            && start.1 <= *end
            && until.as_ref().is_none_or(|mark| (start.1..=*end).contains(&mark.decoded));
        (!fits).then_some("with points that do not fit together")
    }
}

impl Split {
    /// Reads what is needed from the index of the split's file, if the split needs it.
    pub(super) fn resume(&self) -> Result<Option<Resume>> {
        let Some(Encoded { at, decoded, seek, until }) = &self.encoded else { return Ok(None) };
        let Some(Seek { from, until, end }) = seek else {
            return Ok(until.map(|until| Resume::Piece(Goal { at: until.at - at, decoded: until.decoded - decoded })));
        };
        let from = match from {
            None => None,
            Some(mark) => {
                let Some((path, _)) = index_path(&self.whole) else {
                    return Err(
                        Error::new(ErrorKind::InvalidOption).with_found("a split of an object without its index")
                    );
                };
                let read = || window(&open(&path)?, mark.window.unwrap_or_default());
                Some((mark.clone(), read().map_err(|error| error.with_name(path.display().to_string()))?))
            }
        };
        Ok(Some(Resume::Seek(gzip_index::Resume { from, decoded: *decoded, until: until.clone(), end: *end })))
    }

    /// Returns the offset up to which the file must be decoded, and beyond, so that the next point is compared.
    pub(super) fn compares_at(&self) -> Option<u64> {
        let Encoded { seek, until, .. } = self.encoded.as_ref()?;
        match seek {
            Some(seek) => seek.until.as_ref().map(|mark| mark.decoded),
            None => until.map(|until| until.decoded),
        }
    }
}

/// Returns the path of the index, and whether it was set. That of an object must be set.
fn index_path(whole: &Whole) -> Option<(PathBuf, bool)> {
    match (&whole.index, &whole.location) {
        (Some(path), _) => Some((path.clone(), true)),
        (None, Some(Location::File(path))) => Some((GzipIndex::usual_path(path), false)),
        (None, _) => None,
    }
}

fn open(path: &Path) -> Result<File> {
    File::open(path).map_err(|error| Error::new(ErrorKind::OpenFailed).with_io(error))
}

/// Calls `found` with each point of the index. An index that was not set is not used if it has an error.
fn points(content: &Content, size: u64, whole: &Whole, wait: &Wait, found: impl FnMut(Encoded)) -> Result<End> {
    let none = "the file is compressed in a format that is decoded from its start; make an index of it";
    let Some((path, is_set)) = index_path(whole) else { return Ok(End::Undivided(none.into())) };
    let mut read_end = |bytes: &mut [u8], offset| content.read_exact_at(bytes, offset, wait);
    let mut read = || marks(&open(&path)?, size, &mut read_end);
    let marks = match read().map_err(|error| error.with_name(path.display().to_string())) {
        Ok(marks) => marks,
        Err(error) if is_set => return Err(error),
        Err(error) if error.kind() == ErrorKind::OpenFailed && !path.exists() => {
            return Ok(End::Undivided(none.into()));
        }
        Err(error) => return Ok(End::Undivided(format!("the index of the file is not used: {error}"))),
    };
    // A point without a window is the first one, or one that other programs add at the end.
    let usable = marks.marks.into_iter().filter(|mark| mark.window.is_some() && mark.decoded < marks.decoded);
    usable
        .map(|mark| Encoded {
            at: mark.start(),
            decoded: mark.decoded,
            seek: Some(Seek { from: Some(mark), until: None, end: marks.decoded }),
            until: None,
        })
        .for_each(found);
    Ok(End::File)
}

/// Calls `found` with the start of each block or frame, and with the end of the last one; or with each point of the
/// index.
pub(super) fn pieces(
    content: &Content,
    whole: &Whole,
    size: u64,
    format: Format,
    wait: &Wait,
    mut found: impl FnMut(Encoded),
) -> Result<End> {
    let next = match format {
        Format::Bgzf if whole.index.is_none() => bgzf_block,
        Format::Gzip | Format::Bgzf => return points(content, size, whole, wait, found),
        _ if whole.index.is_some() => {
            return Err(Error::new(ErrorKind::InvalidOption)
                .with_found(format!("an index for a {format} file"))
                .with_expected("an index only for a gzip file"));
        }
        Format::Zstd => zstd_frame,
        _ => return Ok(End::Undivided("the file is compressed in a format that is decoded from its start".into())),
    };
    let mut cursor = content.cursor(None, size, wait);
    let mut read = |at: u64, space: &mut [u8]| cursor.read_exact_at(space, at);
    let (mut start, mut count) = (Encoded::default(), 0u64);
    // The last place of a table is followed by blocks or frames that it does not have, or by the table itself.
    for Place { at, decoded } in
        table::read(content, whole.location.as_ref().and_then(Location::path), size, format, wait)?
    {
        found(std::mem::replace(&mut start, Encoded { at, decoded, ..Encoded::default() }));
    }
    while start.at < size {
        found(start.clone());
        let piece = match next(&mut read, start.at) {
            Ok(piece) => piece,
            // A reader reports that the file is truncated.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(End::File),
            Err(error) => return Err(Error::from_io(error)),
        };
        start = match piece {
            Some((len, Some(content))) => {
                Encoded { at: start.at + len, decoded: start.decoded.saturating_add(content), ..Encoded::default() }
            }
            Some((_, None)) => {
                return Ok(End::Undivided("a zstd frame does not contain the size of its content".into()));
            }
            None => return Ok(End::Undivided("the file continues with data of another form".into())),
        };
        count += 1;
        if count % 1024 == 0 {
            wait.check()?;
        }
    }
    found(start);
    Ok(End::File)
}
