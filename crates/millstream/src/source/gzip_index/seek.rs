//! Decoding from an offset on.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use super::inflate::Stop;
use super::members::{Entry, Members};
use super::{GzipIndex, WINDOW, check_file, damaged};
use crate::error::{Error, ErrorKind, Result};
use crate::os::read_exact_at;
use millstream_core::internal::refuse;

/// The decoded bytes of a gzip file from an offset on. See [`GzipIndex::open`].
pub struct GzipAt<'a> {
    members: Members<File>,
    index: &'a GzipIndex,
    /// The decoded offset of the next byte.
    decoded: u64,
    /// The number of the next point, which is compared with what was decoded.
    next: usize,
    /// The decoded bytes before the next point, as far as they have been decoded.
    tail: Vec<u8>,
    /// The error that ended the stream, which is reported again.
    failure: Option<Error>,
}

impl<'a> GzipAt<'a> {
    pub(super) fn open(index: &'a GzipIndex, path: &Path, offset: u64) -> Result<GzipAt<'a>> {
        let open_failed = |error| Error::new(ErrorKind::OpenFailed).with_io(error);
        let mut file = File::open(path).map_err(open_failed)?;
        let len = file.metadata().map_err(Error::from_io)?.len();
        let mut read_at = |bytes: &mut [u8], offset| read_exact_at(&file, bytes, offset);
        check_file(len, &mut read_at, index.compressed, index.end)?;
        refuse(&[(
            offset > index.decoded,
            &format_args!("the offset {offset}"),
            &format_args!("one of at most {}, the length of the decoded data", index.decoded),
        )])?;
        // Indexes of other programs have a point at the end of the file, from which nothing can be decoded.
        let is_usable = |decoded| decoded <= offset && decoded < index.decoded;
        let number = index.points.partition_point(|point| is_usable(point.decoded)).saturating_sub(1);
        let point = &index.points[number];
        let window = point.window.as_deref().unwrap_or_default();
        let entry = Entry { compressed: point.compressed, bits: point.bits, window, check: point.check };
        file.seek(SeekFrom::Start(entry.start())).map_err(Error::from_io)?;
        let members = Members::enter(file, &entry)?;
        let mut at =
            GzipAt { members, index, decoded: point.decoded, next: number + 1, tail: window.to_vec(), failure: None };
        at.skip(offset - point.decoded)?;
        Ok(at)
    }

    fn skip(&mut self, mut count: u64) -> Result<()> {
        let mut memory = vec![0; usize::try_from(count).unwrap_or(usize::MAX).min(WINDOW)];
        while count > 0 {
            let most = usize::try_from(count).unwrap_or(usize::MAX).min(memory.len());
            match self.decode(&mut memory[..most])? {
                0 => return Err(self.ended()),
                read => count -= read as u64,
            }
        }
        Ok(())
    }

    /// Decodes at least one byte, except at the end.
    fn decode(&mut self, space: &mut [u8]) -> Result<usize> {
        if space.is_empty() {
            return Ok(0);
        }
        // Without checksums, a call ends at each point, where its window can be compared.
        let most = match self.index.points.get(self.next) {
            Some(next) if next.check.is_none() => {
                usize::try_from(next.decoded - self.decoded).unwrap_or(usize::MAX).min(space.len())
            }
            _ => space.len(),
        };
        loop {
            let Some((written, stop)) = self.members.step(&mut space[..most])? else {
                return match self.decoded == self.index.decoded {
                    true => Ok(0),
                    false => Err(self.ended()),
                };
            };
            self.decoded += written as u64;
            self.compare(&space[..written], stop)?;
            if written > 0 {
                return Ok(written);
            }
        }
    }

    fn ended(&self) -> Error {
        damaged("the end of the data", self.members.position())
            .with_expected(format!("{} decoded bytes, as in the index; make the index again", self.index.decoded))
    }

    /// Compares what was decoded with the next point, if that point has been reached.
    fn compare(&mut self, new: &[u8], stop: Stop) -> Result<()> {
        let other = |at: u64| {
            damaged("decoded bytes that are not those of the index", at)
                .with_expected("the file for which the index was made; make the index again")
        };
        if self.decoded > self.index.decoded {
            return Err(other(self.members.position()));
        }
        let Some(next) = self.index.points.get(self.next) else { return Ok(()) };
        if let Some(check) = next.check {
            let found = (self.decoded, self.members.position(), stop, self.members.check());
            match found == (next.decoded, next.compressed, Stop::Block { bits: next.bits }, Some(check)) {
                true => self.next += 1,
                false if self.decoded > next.decoded => return Err(other(self.members.position())),
                false => {}
            }
            return Ok(());
        }
        let left = usize::try_from(next.decoded - self.decoded).unwrap_or(usize::MAX);
        if left < WINDOW {
            let kept = WINDOW.saturating_sub(new.len()).min(self.tail.len());
            self.tail.drain(..self.tail.len() - kept);
            self.tail.extend_from_slice(&new[new.len().saturating_sub(WINDOW)..]);
        } else {
            self.tail.clear();
        }
        if left == 0 {
            // Before the first whole window, only a part has been decoded.
            if next.window.as_deref().is_some_and(|window| !may_be(window, &self.tail)) {
                return Err(other(self.members.position()));
            }
            self.next += 1;
        }
        Ok(())
    }
}

/// Returns whether `bytes`, which may be incomplete, are those of a window. rapidgzip writes zeros for bytes to which no
/// block refers.
fn may_be(window: &[u8], bytes: &[u8]) -> bool {
    window.iter().rev().zip(bytes.iter().rev()).all(|(&kept, &found)| kept == found || kept == 0)
}

impl Read for GzipAt<'_> {
    fn read(&mut self, space: &mut [u8]) -> io::Result<usize> {
        if let Some(error) = &self.failure {
            return Err(error.again().into());
        }
        self.decode(space).map_err(|error| {
            self.failure = Some(error.again());
            error.into()
        })
    }
}
