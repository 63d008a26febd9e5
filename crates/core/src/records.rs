//! Traits through which a codec reads and writes records, independently of their source or sink.
//!
//! `millstream::Reader` and `millstream::Writer` implement these traits. [`InMemory`] reads a block of memory and needs
//! no operating system.

use crate::error::Result;

/// A buffer that can be filled, with records at its front.
///
/// The methods have the same names and behaviour as the methods of `millstream::Reader`: [`fill`](ReadRecords::fill)
/// adds bytes at the end of [`buffer`](ReadRecords::buffer), [`consume`](ReadRecords::consume) and
/// [`take_records`](ReadRecords::take_records) remove them from its front.
///
/// ```
/// use millstream_core::{InMemory, ReadRecords};
/// let mut input = InMemory::new(b"\x01a\x02bc");
/// while input.fill()? > 0 {}
/// let len = 1 + usize::from(input.buffer()[0]);
/// assert_eq!(input.take_records(len, 1, len), b"\x01a");
/// assert_eq!((input.offset(), input.record(), input.buffer()), (2, 1, &b"\x02bc"[..]));
/// # Ok::<(), millstream_core::Error>(())
/// ```
pub trait ReadRecords {
    /// Reads once and returns the number of bytes added, or 0 at the end if the source succeeded.
    ///
    /// # Errors
    /// Returns the source's failure. An error that is not [resumable](crate::ErrorKind::is_resumable) ends the stream.
    fn fill(&mut self) -> Result<usize>;

    /// Returns the bytes that have been read and not consumed.
    fn buffer(&self) -> &[u8];

    /// Removes bytes from the front of the buffer.
    ///
    /// # Panics
    /// Panics if the buffer has fewer bytes.
    fn consume(&mut self, count: usize);

    /// Removes `count` records, `len` bytes together, from the front of the buffer and returns them. The longest of them
    /// has `longest` bytes.
    ///
    /// # Panics
    /// Panics if the buffer has fewer bytes.
    fn take_records(&mut self, len: usize, count: u64, longest: usize) -> &[u8];

    /// Returns the number of bytes that have been consumed.
    fn offset(&self) -> u64;

    /// Returns the number of records that have been taken.
    fn record(&self) -> u64;

    /// Returns the maximum length of a record in bytes.
    fn record_limit(&self) -> usize;

    /// Returns the name of the source, for errors.
    fn name(&self) -> &str;

    /// Keeps the first part of a long record, which was consumed before a resumable error interrupted its reading.
    fn keep_partial(&mut self, bytes: Vec<u8>);

    /// Returns the part that was kept. It is empty if no part was kept, or if bytes were consumed since.
    fn take_partial(&mut self) -> Vec<u8>;
}

/// A sink that accepts whole records.
pub trait WriteRecord {
    /// Writes one record, either all of it or none.
    ///
    /// # Errors
    /// Returns the sink's failure.
    fn write_record(&mut self, record: &[u8]) -> Result<()>;
}

/// Appends the record to a vector.
impl WriteRecord for Vec<u8> {
    fn write_record(&mut self, record: &[u8]) -> Result<()> {
        self.extend_from_slice(record);
        Ok(())
    }
}

/// A source of records in memory.
#[derive(Clone, Debug, Default)]
pub struct InMemory<B> {
    bytes: B,
    /// The position of the first byte that has not been consumed.
    start: usize,
    /// Whether the bytes are revealed, which the first [`fill`](ReadRecords::fill) does.
    is_filled: bool,
    records: u64,
}

impl<B: AsRef<[u8]>> InMemory<B> {
    /// Creates a source of the records in these bytes.
    pub fn new(bytes: B) -> InMemory<B> {
        InMemory { bytes, start: 0, is_filled: false, records: 0 }
    }
}

impl<B: AsRef<[u8]>> ReadRecords for InMemory<B> {
    fn fill(&mut self) -> Result<usize> {
        if std::mem::replace(&mut self.is_filled, true) { Ok(0) } else { Ok(self.bytes.as_ref().len()) }
    }

    #[inline]
    fn buffer(&self) -> &[u8] {
        if self.is_filled { &self.bytes.as_ref()[self.start..] } else { &[] }
    }

    #[inline]
    fn consume(&mut self, count: usize) {
        assert!(count <= self.buffer().len(), "consumed {count} of {} bytes", self.buffer().len());
        self.start += count;
    }

    #[inline]
    fn take_records(&mut self, len: usize, count: u64, _longest: usize) -> &[u8] {
        let start = self.start;
        self.consume(len);
        self.records += count;
        &self.bytes.as_ref()[start..start + len]
    }

    #[inline]
    fn offset(&self) -> u64 {
        self.start as u64
    }

    #[inline]
    fn record(&self) -> u64 {
        self.records
    }

    #[inline]
    fn record_limit(&self) -> usize {
        i32::MAX as usize
    }

    fn name(&self) -> &str {
        "memory"
    }

    /// This does nothing, because reading from memory is never interrupted.
    fn keep_partial(&mut self, _bytes: Vec<u8>) {}

    fn take_partial(&mut self) -> Vec<u8> {
        Vec::new()
    }
}
