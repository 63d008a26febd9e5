//! Reads one document of a file into this process's memory.
//!
//! The file is read, never mapped: if a mapped file became shorter, or its disk failed, SIGBUS would kill the process,
//! whereas a read reports an error. A document of up to 64 MiB is read completely. In a larger document, all bytes
//! except the inside of long binary values are read. These parts stay zeros, and take no memory, until [`Image::fill`]
//! reads them: the tree of a model with gigabytes of data is available as soon as its structure has been read.

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use memmap2::MmapMut;
use millstream::bson::{Document, ElementType, Layout, Rules};
use millstream::frame::{Bson, Framer, Resume, Step};
use millstream::{CancelToken, Error, ErrorKind, Result};

use super::absent::no_document;

/// The maximum length of a document that is read completely.
const WHOLE: usize = 64 << 20;

/// The maximum number of bytes of one read.
const BLOCK: usize = 1 << 20;

/// Longer binary values are skipped, except for their first bytes.
const LONG: usize = 64 << 10;

/// The number of bytes of a long binary value that are read, which is more than the number of bytes shown.
const HEAD: usize = 4 << 10;

/// A document of a file.
pub(super) struct Image {
    file: File,
    name: String,
    /// The number of the document in the file, and its offset.
    number: u64,
    base: u64,
    /// The memory, whose length is the document's length.
    memory: MmapMut,
    token: CancelToken,
}

/// A regular file of documents of which none has been read.
pub(super) struct Documents {
    pub(super) file: File,
    pub(super) name: String,
    pub(super) token: CancelToken,
}

impl Documents {
    /// Reads the document of this number, which may have at most `limit` bytes.
    pub(super) fn read(self, number: u64, limit: usize) -> Result<Image> {
        let size = self.file.metadata().map_err(Error::from_io)?.len();
        let (mut base, mut passed) = (0, 0);
        let len = loop {
            if base == size {
                return Err(no_document(&self.name, number, passed));
            }
            self.token.check()?;
            let located = |error: Error| error.with_name(&self.name).with_offset(base).with_record(passed);
            let len = self.frame(base, size).map_err(located)?;
            if passed == number {
                break len;
            }
            base += len as u64;
            passed += 1;
        };
        if len > limit {
            return Err(Error::new(ErrorKind::RecordTooLong)
                .with_name(self.name)
                .with_found(format!("a document of {len} bytes"))
                .with_expected(format!("at most {limit}"))
                .with_offset(base)
                .with_record(number));
        }
        let memory = MmapMut::map_anon(len).map_err(|error| Error::from_io(error).with_name(&self.name))?;
        let mut image = Image { file: self.file, name: self.name, number, base, memory, token: self.token };
        if len <= WHOLE || !image.read_structure()? {
            image.fill(0..len)?;
        }
        Ok(image)
    }

    /// Returns the length of the document at `base`. Only the length and the last byte are checked.
    fn frame(&self, base: u64, size: u64) -> Result<usize> {
        let mut prefix = [0; 4];
        let there = prefix.len().min((size - base) as usize);
        read_at(&self.file, &mut prefix[..there], base)?;
        let truncated = |need: u64| {
            Error::new(ErrorKind::FrameTruncated)
                .with_found(format!("{} bytes", size - base))
                .with_expected(format!("{need} bytes"))
        };
        let len = match Bson::new().step(&prefix[..there], Resume::START, there < prefix.len()) {
            Step::More { need, .. } => need as usize,
            Step::Record { len, .. } => len,
            Step::Bad(error) => return Err(error),
        };
        if len as u64 > size - base {
            return Err(truncated(len as u64));
        }
        let mut last = [0];
        read_at(&self.file, &mut last, base + len as u64 - 1)?;
        match last {
            [0] => Ok(len),
            [byte] => Err(Error::new(ErrorKind::DocumentInvalid)
                .with_found(format!("byte 0x{byte:02x} as the last byte of a document"))
                .with_expected("a zero byte")),
        }
    }
}

impl Image {
    /// Returns the document. Long binary values that have not been filled consist of zeros.
    pub(super) fn document(&self) -> Result<Document<'_>> {
        Document::with_rules(&self.memory, Rules::new().depth(1000))
            .map(|document| document.at_offset(self.base))
            .map_err(|error| error.with_name(&self.name).with_record(self.number))
    }

    /// Returns the name of the file.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Reads these bytes of the document.
    pub(super) fn fill(&mut self, range: Range<usize>) -> Result<()> {
        for start in range.clone().step_by(BLOCK) {
            self.token.check()?;
            let end = range.end.min(start + BLOCK);
            let read = read_at(&self.file, &mut self.memory[start..end], self.base + start as u64);
            read.map_err(|error| error.with_name(&self.name))?;
        }
        Ok(())
    }

    /// Reads all bytes except the inside of long binary values. Returns false if a length is wrong: the whole document
    /// must then be read, and the next access finds the error.
    fn read_structure(&mut self) -> Result<bool> {
        let mut read = Structure { image: self, loaded: 0 };
        let mut ends = vec![read.image.memory.len()];
        let mut at = 4;
        if !read.load(0, at, read.image.memory.len())? {
            return Ok(false);
        }
        while let Some(&end) = ends.last() {
            if !read.load(at, 1, end)? {
                return Ok(false);
            }
            let Some(kind) = ElementType::from_byte(read.image.memory[at]) else {
                if read.image.memory[at] != 0 || at + 1 != end {
                    return Ok(false);
                }
                ends.pop();
                at += 1;
                continue;
            };
            let Some(value) = read.pass_text(at + 1, end)? else { return Ok(false) };
            let len = match kind.layout() {
                Layout::Document => {
                    match read.length(value, end)? {
                        Some(len) if len >= 5 && len <= end - value => ends.push(value + len),
                        _ => return Ok(false),
                    }
                    at = value + 4;
                    continue;
                }
                Layout::Binary => match read.length(value, end)? {
                    Some(len) if len > LONG && len <= end - value => {
                        if !read.load(value, 5 + HEAD, end)? {
                            return Ok(false);
                        }
                        at = value + 5 + len;
                        continue;
                    }
                    len => len.map(|len| len + 5),
                },
                Layout::Text => read.length(value, end)?.map(|len| len + 4),
                Layout::TextAndId => read.length(value, end)?.map(|len| len + 4 + 12),
                Layout::TextAndDocument => read.length(value, end)?,
                Layout::TwoCStrings => match read.pass_text(value, end)? {
                    Some(options) => read.pass_text(options, end)?.map(|after| after - value),
                    None => None,
                },
                Layout::Fixed(len) => Some(len),
                Layout::Bool => Some(1),
            };
            match len {
                Some(len) if read.load(value, len, end)? => at = value + len,
                _ => return Ok(false),
            }
        }
        Ok(true)
    }
}

/// A document that is being read from front to back.
struct Structure<'i> {
    image: &'i mut Image,
    /// All bytes before this position have been read or skipped.
    loaded: usize,
}

impl Structure<'_> {
    /// Reads these bytes, if they are before `end`.
    fn load(&mut self, at: usize, len: usize, end: usize) -> Result<bool> {
        let wanted = at.saturating_add(len);
        if wanted > end {
            return Ok(false);
        }
        if wanted > self.loaded {
            let start = self.loaded.max(at);
            let stop = wanted.max(start + BLOCK).min(self.image.memory.len());
            self.image.fill(start..stop)?;
            self.loaded = stop;
        }
        Ok(true)
    }

    /// Returns the length at this position, if it is not negative.
    fn length(&mut self, at: usize, end: usize) -> Result<Option<usize>> {
        if !self.load(at, 4, end)? {
            return Ok(None);
        }
        let bytes = self.image.memory[at..].first_chunk().copied().unwrap_or_default();
        Ok(usize::try_from(i32::from_le_bytes(bytes)).ok())
    }

    /// Returns the position after the text that begins at this position and ends with a zero byte.
    fn pass_text(&mut self, at: usize, end: usize) -> Result<Option<usize>> {
        let mut searched = at;
        loop {
            let known = self.loaded.min(end).max(searched);
            if let Some(nul) = memchr::memchr(0, &self.image.memory[searched..known]) {
                return Ok(Some(searched + nul + 1));
            }
            searched = known;
            if !self.load(searched, 1, end)? {
                return Ok(None);
            }
        }
    }
}

/// Reads exactly these bytes.
fn read_at(file: &File, into: &mut [u8], offset: u64) -> Result<()> {
    file.read_exact_at(into, offset).map_err(|error| match error.kind() {
        std::io::ErrorKind::UnexpectedEof => Error::new(ErrorKind::SourceShrank)
            .with_found("the end of the file")
            .with_expected(format!("{} bytes, which it had when it was opened", into.len()))
            .with_offset(offset),
        _ => Error::from_io(error).with_offset(offset),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use millstream::bson::{Binary, append_document, append_element};

    /// Creates a file with these bytes.
    fn file(bytes: &[u8]) -> File {
        let file = tempfile::tempfile().unwrap();
        file.write_all_at(bytes, 0).unwrap();
        file
    }

    fn documents(file: &File) -> Documents {
        let token = CancelToken::new().unwrap();
        Documents { file: file.try_clone().unwrap(), name: "it".into(), token }
    }

    /// Returns the image with only the structure read, if it has one.
    fn structure(bytes: &[u8]) -> Option<Image> {
        let mut image = documents(&file(bytes)).read(0, bytes.len()).unwrap();
        image.memory.fill(0);
        image.read_structure().unwrap().then_some(image)
    }

    #[test]
    fn the_structure_of_the_shared_vectors() {
        const VECTORS: &str = include_str!("../../../../vectors/bson.tsv");
        let mut right = 0;
        for line in VECTORS.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let hex = line.split('\t').nth(1).unwrap();
            let bytes = data_encoding::HEXLOWER.decode(hex.as_bytes()).unwrap();
            let Ok(document) = Document::with_rules(&bytes, Rules::new().depth(1000)) else { continue };
            match structure(&bytes) {
                Some(image) => assert_eq!(&image.memory[..], bytes, "{line}"),
                None => assert!(document.check().is_err(), "{line}"),
            }
            right += u32::from(document.check().is_ok());
        }
        assert!(right > 20, "{right}");
    }

    #[test]
    fn long_binary_values_are_left_out_until_they_are_needed() {
        let data: Vec<u8> = (0..3 * LONG).map(|i| i as u8 | 1).collect();
        let mut bytes = Vec::new();
        append_document(&mut bytes, |out| {
            append_element(out, "a", &binary(data.clone()))?;
            append_element(out, "b", &"x".repeat(2 * BLOCK))?;
            append_element(out, "c", &binary(data.clone()))
        })
        .unwrap();
        let mut image = structure(&bytes).unwrap();
        let seen = image.document().unwrap();
        assert_eq!(seen.get::<&str>("b").unwrap().unwrap().len(), 2 * BLOCK);
        let part = seen.get::<&[u8]>("c").unwrap().unwrap();
        assert_eq!((part.len(), &part[..HEAD - 64]), (data.len(), &data[..HEAD - 64]));
        image.fill(0..bytes.len()).unwrap();
        assert_eq!(&image.memory[..], bytes);
    }

    #[test]
    fn a_file_that_shrinks_is_an_error() {
        let mut bytes = Vec::new();
        append_document(&mut bytes, |out| append_element(out, "a", &"x".repeat(1000))).unwrap();
        let file = file(&bytes.repeat(3));
        let mut image = documents(&file).read(2, bytes.len()).unwrap();
        assert_eq!(image.document().unwrap().offset(), 2 * bytes.len() as u64);
        file.set_len(2500).unwrap();
        assert_eq!(image.fill(0..bytes.len()).unwrap_err().kind(), ErrorKind::SourceShrank);
        let error = documents(&file).read(2, bytes.len()).err().unwrap();
        assert_eq!((error.kind(), error.record()), (ErrorKind::FrameTruncated, Some(2)));
        file.set_len(2 * bytes.len() as u64).unwrap();
        let error = documents(&file).read(2, bytes.len()).err().unwrap();
        assert_eq!((error.kind(), error.found()), (ErrorKind::KeyMissing, Some("2 documents")));
    }

    /// A document with a structure is complete, for any damage.
    #[test]
    fn damage_is_found_by_later_checks() {
        let mut bytes = Vec::new();
        append_document(&mut bytes, |out| {
            append_element(out, "list", &[1, 2, 3][..])?;
            append_element(out, "text", "some text")?;
            append_element(out, "data", &binary(vec![1; 20]))?;
            append_document_in(out)
        })
        .unwrap();
        for at in 4..bytes.len() - 1 {
            for byte in [0, 1, 2, 3, 5, 8, 0x7f, 0x80, 0xff] {
                let mut bytes = bytes.clone();
                bytes[at] = byte;
                if let Some(image) = structure(&bytes) {
                    assert_eq!(&image.memory[..], bytes, "{byte} at {at}");
                }
            }
        }
    }

    fn binary(bytes: Vec<u8>) -> Binary<Vec<u8>> {
        Binary { subtype: 0, bytes }
    }

    fn append_document_in(out: &mut Vec<u8>) -> Result<()> {
        out.extend_from_slice(b"\x03in\0");
        append_document(out, |out| append_element(out, "n", &5))
    }
}
