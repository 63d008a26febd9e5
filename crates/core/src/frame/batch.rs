//! A batch of records: one block of bytes and the offsets of the records in it.

use super::Trim;
use std::iter::FusedIterator;

/// Records in one block of memory: record `i` is `bytes[offsets[i]..offsets[i + 1]]`, including its delimiter or length
/// prefix. [`trim`](Batch::trim) defines which part of it is content.
///
/// Batches have this layout in every language. A batch borrows its memory and is cheap to copy; to keep records longer,
/// copy their bytes.
///
/// ```
/// use millstream::frame::{Batch, Framer, Lines};
/// let bytes = b"one\ntwo\r\nthree";
/// let mut offsets = vec![0];
/// let terminated = Lines::new().batch(bytes, true, usize::MAX, &mut offsets)?;
/// let batch = Batch::new(bytes, &offsets, Lines::new().trim(), terminated);
/// assert_eq!(batch.len(), 3);
/// assert_eq!(batch.get(1), Some(&b"two"[..]));
/// assert_eq!(batch.raw(1), Some(&b"two\r\n"[..]));
/// assert_eq!(batch.iter().map(|record| record.len()).sum::<usize>(), 11);
/// # Ok::<(), millstream::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Batch<'a> {
    bytes: &'a [u8],
    /// The ascending offsets, n + 1 for n records. The last one is at most `bytes.len()`.
    offsets: &'a [u32],
    trim: Trim,
    terminated: bool,
    /// The stream position at which `bytes` begins, and the number of the first record.
    position: (u64, u64),
    /// Whether the number of each record is the number of its line, counted from 0.
    of_lines: bool,
    /// The call of the framer that has found the records, see [`Framer::call`](super::Framer::call).
    call: u64,
}

impl<'a> Batch<'a> {
    /// Creates a batch over `bytes`, with n + 1 ascending `offsets` for n records.
    ///
    /// `terminated` is whether the last record ends with its delimiter. All other records do.
    ///
    /// # Panics
    /// Panics if `offsets` is empty, or if its last value is beyond `bytes`. If the offsets do not ascend, accessing
    /// the record in question panics.
    pub fn new(bytes: &'a [u8], offsets: &'a [u32], trim: Trim, terminated: bool) -> Batch<'a> {
        let last = *offsets.last().expect("n records have n + 1 offsets");
        assert!(last as usize <= bytes.len(), "the offset {last} is beyond {} bytes", bytes.len());
        Batch { bytes, offsets, trim, terminated, position: (0, 0), of_lines: false, call: 0 }
    }

    /// Returns the batch with its position in the stream: the numbers of bytes and records before it.
    pub fn at(mut self, bytes: u64, records: u64) -> Batch<'a> {
        self.position = (bytes, records);
        self
    }

    /// Returns the batch with the information whether its records, and all earlier ones of the stream, are lines.
    pub fn of_lines(mut self, of_lines: bool) -> Batch<'a> {
        self.of_lines = of_lines;
        self
    }

    /// Returns the batch with the call of the framer that has found its records, and from whose input its bytes are, see
    /// [`Framer::call`](super::Framer::call). It must be the last call.
    #[doc(hidden)] // for readers
    #[must_use]
    pub fn of_call(mut self, call: u64) -> Batch<'a> {
        self.call = call;
        self
    }

    /// Returns the call of the framer that has found the records, or 0 if it is not known.
    #[doc(hidden)] // for readers
    pub fn call(&self) -> u64 {
        self.call
    }

    /// Returns the line number of the first record (the first is 1) if it and all earlier records of the stream are
    /// lines.
    ///
    /// ```
    /// use millstream::{Reader, frame::{Delimiter, Lines}};
    /// let mut reader = Reader::memory("one\ntwo\n;three\n")?;
    /// reader.next_line()?;
    /// assert_eq!(reader.next_batch(&mut Lines::new())?.unwrap().first_line(), Some(2));
    /// let mut reader = Reader::memory("one;two;three")?;
    /// assert_eq!(reader.next_batch(&mut Delimiter::byte(b';'))?.unwrap().first_line(), None);
    /// # Ok::<(), millstream::Error>(())
    /// ```
    pub fn first_line(&self) -> Option<u64> {
        self.of_lines.then_some(self.position.1 + 1)
    }

    /// Returns the position of `bytes()[0]` in the stream, in bytes from its start (after decoding). Record `i` begins
    /// at `offset() + offsets()[i]`.
    ///
    /// ```
    /// use millstream::{Reader, frame::Lines};
    /// let mut reader = Reader::memory("one\ntwo\nthree\n")?;
    /// reader.next_line()?;
    /// let batch = reader.next_batch(&mut Lines::new())?.unwrap();
    /// assert_eq!((batch.offset(), batch.first_record()), (4, 1));
    /// assert_eq!(batch.offset() + u64::from(batch.offsets()[1]), 8); // the start of "three"
    /// # Ok::<(), millstream::Error>(())
    /// ```
    pub fn offset(&self) -> u64 {
        self.position.0
    }

    /// Returns the number of the first record in the stream; the stream's first record is 0.
    pub fn first_record(&self) -> u64 {
        self.position.1
    }

    /// Returns a batch of the first `count` records.
    ///
    /// ```
    /// use millstream::{Reader, frame::Lines};
    /// let mut reader = Reader::memory("one\ntwo\nthree")?;
    /// let batch = reader.next_batch(&mut Lines::new())?.unwrap();
    /// assert_eq!((batch.first(2).len(), batch.first(2).bytes()), (2, &b"one\ntwo\n"[..]));
    /// # Ok::<(), millstream::Error>(())
    /// ```
    ///
    /// # Panics
    /// Panics if the batch has fewer records.
    #[must_use]
    pub fn first(self, count: usize) -> Batch<'a> {
        let offsets = &self.offsets[..=count];
        let terminated = self.terminated || count < self.len();
        Batch { bytes: &self.bytes[..offsets[count] as usize], offsets, terminated, ..self }
    }

    /// Returns the memory to which the offsets refer.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Returns the n + 1 offsets of n records.
    pub fn offsets(&self) -> &'a [u32] {
        self.offsets
    }

    /// Returns which parts of each record are not content.
    pub fn trim(&self) -> Trim {
        self.trim
    }

    /// Returns whether the last record ends with its delimiter. All other records do. If records have no delimiter,
    /// this is true.
    pub fn terminated(&self) -> bool {
        self.terminated
    }

    /// Returns the number of records.
    pub fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Returns whether there are no records.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the content of a record, or `None` after the last one.
    #[inline]
    pub fn get(&self, record: usize) -> Option<&'a [u8]> {
        let terminated = self.terminated || record + 1 < self.len();
        self.raw(record).map(|bytes| self.trim.apply(bytes, terminated))
    }

    /// Returns all bytes of a record, or `None` after the last one.
    #[inline]
    pub fn raw(&self, record: usize) -> Option<&'a [u8]> {
        let &[start, end] = self.offsets.get(record..)?.first_chunk()?;
        Some(&self.bytes[start as usize..end as usize])
    }

    /// Returns an iterator over all bytes of each record, in order, as [`raw`](Batch::raw) returns them.
    ///
    /// ```
    /// use millstream::{Reader, frame::Lines};
    /// let mut reader = Reader::memory("one\r\ntwo\n")?;
    /// reader.fill()?; // without this, the first batch is one record
    /// let batch = reader.next_batch(&mut Lines::new())?.unwrap();
    /// assert!(batch.iter_raw().eq([&b"one\r\n"[..], b"two\n"]));
    /// # Ok::<(), millstream::Error>(())
    /// ```
    pub fn iter_raw(&self) -> impl DoubleEndedIterator<Item = &'a [u8]> + ExactSizeIterator + use<'a> {
        let bytes = self.bytes;
        let bounds = self.offsets.windows(2);
        bounds.map(move |bounds| &bytes[bounds[0] as usize..bounds[1] as usize])
    }

    /// Returns an iterator over the contents of the records, in order.
    pub fn iter(&self) -> Records<'a> {
        Records { bytes: self.bytes, offsets: self.offsets, trim: self.trim, terminated: self.terminated }
    }
}

impl<'a> IntoIterator for Batch<'a> {
    type Item = &'a [u8];
    type IntoIter = Records<'a>;

    fn into_iter(self) -> Records<'a> {
        self.iter()
    }
}

impl<'a> IntoIterator for &Batch<'a> {
    type Item = &'a [u8];
    type IntoIter = Records<'a>;

    fn into_iter(self) -> Records<'a> {
        self.iter()
    }
}

/// An iterator over the contents of a batch's records, in order. It is created by [`Batch::iter`].
#[derive(Clone, Debug)]
pub struct Records<'a> {
    bytes: &'a [u8],
    /// The n + 1 offsets of the n remaining records.
    offsets: &'a [u32],
    trim: Trim,
    /// Whether the last of the remaining records is terminated; all others are.
    terminated: bool,
}

impl<'a> Iterator for Records<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        let &[start, end] = self.offsets.first_chunk()?;
        self.offsets = &self.offsets[1..];
        let record = &self.bytes[start as usize..end as usize];
        // This case is separate, so that the records before the last need no check.
        Some(match self.offsets {
            [_] => self.trim.apply(record, self.terminated),
            _ => self.trim.apply(record, true),
        })
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.offsets.len() - 1;
        (left, Some(left))
    }

    #[inline]
    fn nth(&mut self, n: usize) -> Option<&'a [u8]> {
        // At least one offset always remains.
        self.offsets = &self.offsets[n.min(self.len())..];
        self.next()
    }
}

impl DoubleEndedIterator for Records<'_> {
    #[inline]
    fn next_back(&mut self) -> Option<Self::Item> {
        let &[start, end] = self.offsets.last_chunk()?;
        self.offsets = &self.offsets[..self.offsets.len() - 1];
        // The bytes before the last record end with a delimiter.
        let terminated = std::mem::replace(&mut self.terminated, true);
        Some(self.trim.apply(&self.bytes[start as usize..end as usize], terminated))
    }
}

impl ExactSizeIterator for Records<'_> {}

impl FusedIterator for Records<'_> {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::{Framer, Lines};

    const BYTES: &[u8] = b"one\r\n\ntwo\nend\r";
    const OFFSETS: [u32; 5] = [0, 5, 6, 10, 14];

    fn batch() -> Batch<'static> {
        Batch::new(BYTES, &OFFSETS, Lines::new().trim(), false)
    }

    #[test]
    fn only_the_last_record_may_lack_its_delimiter() {
        let expected = [&b"one"[..], b"", b"two", b"end\r"];
        assert!(batch().iter().eq(expected));
        assert!(batch().iter().rev().eq(expected.into_iter().rev()));
        assert!((0..4).map(|i| batch().get(i).unwrap()).eq(expected));
        assert!(batch().iter_raw().eq((0..4).map(|i| batch().raw(i).unwrap())));
        assert_eq!(batch().raw(3), Some(&b"end\r"[..]));
        assert_eq!((batch().get(4), batch().raw(4), batch().get(usize::MAX - 1)), (None, None, None));
    }

    #[test]
    fn from_both_ends_until_nothing_is_left() {
        let mut records = batch().iter();
        assert_eq!((records.len(), records.next_back()), (4, Some(&b"end\r"[..])));
        assert_eq!((records.len(), records.next()), (3, Some(&b"one"[..])));
        assert_eq!((records.len(), records.next_back()), (2, Some(&b"two"[..])));
        assert_eq!((records.len(), records.next()), (1, Some(&b""[..])));
        assert_eq!((records.len(), records.next(), records.next_back(), records.next()), (0, None, None, None));
    }

    #[test]
    fn the_nth_record_leaves_the_later_ones() {
        let mut records = batch().iter();
        assert_eq!(records.nth(2), Some(&b"two"[..]));
        assert_eq!(records.clone().next(), Some(&b"end\r"[..]));
        assert_eq!((records.nth(1), records.len(), records.next()), (None, 0, None));
    }

    #[test]
    fn one_offset_is_a_batch_of_nothing() {
        let batch = Batch::new(b"", &[0], Lines::new().trim(), true);
        assert!(batch.is_empty() && batch.iter().next().is_none() && batch.get(0).is_none());
    }

    #[test]
    #[should_panic(expected = "beyond 3 bytes")]
    fn an_offset_beyond_the_bytes_is_refused() {
        Batch::new(b"abc", &[0, 4], Lines::new().trim(), true);
    }
}
