//! Scans numbers and words directly in the buffer.
//!
//! A value that is valid and complete in the buffer costs only inlined code ([`quick`]). All other cases go through
//! [`Reader::scan_carefully`], which reads more if a value is cut by the end of the buffer, and reports the errors.
//! Lines are counted together, when the scanned bytes are about to be dropped.

use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{Reader, State};
use crate::error::{Error, Result};
use crate::frame::Lines;
use crate::scan::{Scan, Separator};
use millstream_core::internal::{Extent, Tokens, quick};

/// A value may have this many bytes even if the record limit is lower. This is more than [`quick`] accepts for any
/// value, so that it does not have to check the limit.
const SHORT: usize = 1 << 10;

/// The state of scanning between two calls.
#[derive(Default)]
pub(super) struct Scanning {
    /// Whether the last value was scanned: if so, the index of lines is empty, and scanning may continue.
    is_on: bool,
    /// While `is_on`: lines before this position of the buffer are included in the reader's count.
    counted: usize,
    /// The lines counted from that position for a caller that queried the position: bytes in the upper half, lines in
    /// the lower half. The next query does not have to count these bytes again. Several threads may query through
    /// `&self`; all of them count the same bytes, so every stored value is correct.
    asked: AtomicU64,
    /// The offset at which scanning stopped inside a line.
    open_line: Option<u64>,
    /// The offset at which scanning stopped, and the start of the line before it.
    line: Stop,
}

/// Where scanning stopped, to which columns are relative.
#[derive(Clone, Copy, Default)]
struct Stop {
    line_start: u64,
    at: u64,
}

impl Scanning {
    /// Sets that the reader's count includes all lines before `pos`.
    fn count_from(&mut self, pos: usize) {
        self.counted = pos;
        *self.asked.get_mut() = 0;
    }

    /// Returns the number of lines in `scanned`, the bytes from `counted` on.
    fn lines(&self, scanned: &[u8]) -> u64 {
        let asked = self.asked.load(Ordering::Relaxed);
        let (bytes, lines) = (asked >> 32, asked & u64::from(u32::MAX));
        let lines = lines + count_lines(&scanned[bytes as usize..]);
        if let Ok(bytes) = u32::try_from(scanned.len()) {
            self.asked.store(u64::from(bytes) << 32 | lines, Ordering::Relaxed);
        }
        lines
    }
}

/// Numbers and words.
///
/// They can be mixed with lines and other records. After a number, [`next_line`](Reader::next_line) returns the rest of
/// its line: white space is consumed with the value that follows it, not with the previous one.
///
/// A line end that scanning consumes counts as a record.
impl Reader {
    /// Returns the next value, a number or a tuple of numbers separated by white space, or `None` at the end, which
    /// means that the source succeeded.
    ///
    /// ```
    /// use millstream::Reader;
    /// let mut reader = Reader::memory("3\n1 -1\n2 -2\n3 -3\n")?;
    /// let count = reader.require::<usize>()?;
    /// for _ in 0..count {
    ///     let (a, b) = reader.require::<(u32, i32)>()?;
    ///     assert_eq!(i64::from(a), -i64::from(b));
    /// }
    /// assert_eq!(reader.scan::<u32>()?, None);
    /// assert_eq!(reader.position().records, 4);
    /// # Ok::<(), millstream::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns the source's failure after all the data that it delivered, but only one time; a number that is cut off
    /// by the failure is not returned. Returns these errors, with the token's offset and record (its line, counted from
    /// 0):
    ///
    /// - [`NumberInvalid`](crate::ErrorKind::NumberInvalid), [`NumberOverflow`](crate::ErrorKind::NumberOverflow): see
    ///   [the module](crate::scan) for the syntax of numbers. Only white space is consumed, even for a tuple. The error
    ///   is reported again until the token is read by another method: [`next_word`](Reader::next_word), a wider type,
    ///   or [`skip_record`](Reader::skip_record) for the rest of the line.
    /// - [`ValueMissing`](crate::ErrorKind::ValueMissing): the input ended within a tuple. Its values can still be
    ///   read.
    /// - [`RecordTooLong`](crate::ErrorKind::RecordTooLong): a value, or a tuple with its white space, is longer than
    ///   the record limit and longer than 1 KiB.
    #[inline]
    pub fn scan<T: Scan>(&mut self) -> Result<Option<T>> {
        self.scan_separated(Separator::Space)
    }

    /// Returns the next value, whose numbers are separated by one byte or a line end: see [`Separator::Byte`]. The
    /// separator after a value is consumed with it.
    ///
    /// ```
    /// use millstream::Reader;
    /// let mut reader = Reader::memory("1,2\n3,4\n")?;
    /// let mut numbers = Vec::new();
    /// while let Some(number) = reader.scan_delimited::<u32>(b',')? {
    ///     numbers.push(number);
    /// }
    /// assert_eq!(numbers, [1, 2, 3, 4]);
    /// # Ok::<(), millstream::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns the errors of [`scan`](Reader::scan). An empty field is not a number. A separator that may be part of a
    /// number (such as `-`) always separates.
    #[inline]
    pub fn scan_delimited<T: Scan>(&mut self, separator: u8) -> Result<Option<T>> {
        self.scan_separated(Separator::Byte(separator))
    }

    #[inline(always)]
    fn scan_separated<T: Scan>(&mut self, separator: Separator) -> Result<Option<T>> {
        // The value is extracted from the result of the call, so that the compiler keeps the fast path's value in
        // registers. Otherwise it would store the numbers and load them again before the stores are done.
        let value = match self.scan_quickly(separator) {
            Some(value) => value,
            None => match self.scan_carefully(separator)? {
                Some(value) => value,
                None => return Ok(None),
            },
        };
        Ok(Some(value))
    }

    #[inline(always)]
    fn scan_quickly<T: Scan>(&mut self, separator: Separator) -> Option<T> {
        if !self.scanning.is_on {
            return None;
        }
        let (value, used) = quick(self.buffer.unread(), separator)?;
        self.buffer.consume(used);
        Some(value)
    }

    /// Returns the next value, which must exist.
    ///
    /// # Errors
    /// Returns the errors of [`scan`](Reader::scan), and [`ValueMissing`](crate::ErrorKind::ValueMissing) at the end.
    ///
    /// ```
    /// use millstream::{ErrorKind, Reader};
    /// let mut reader = Reader::memory("7\n")?;
    /// assert_eq!(reader.require::<u8>()?, 7);
    /// let error = reader.require::<u8>().unwrap_err();
    /// assert_eq!(error.kind(), ErrorKind::ValueMissing);
    /// assert_eq!(error.expected(), Some("a u8 (0 to 255)"));
    /// # Ok::<(), millstream::Error>(())
    /// ```
    #[inline]
    pub fn require<T: Scan>(&mut self) -> Result<T> {
        match self.scan()? {
            Some(value) => Ok(value),
            None => Err(self.value_missing::<T>(Separator::Space)),
        }
    }

    /// Returns the next value, separated as in [`scan_delimited`](Reader::scan_delimited), which must exist.
    ///
    /// # Errors
    /// Returns the errors of [`require`](Reader::require).
    #[inline]
    pub fn require_delimited<T: Scan>(&mut self, separator: u8) -> Result<T> {
        match self.scan_delimited(separator)? {
            Some(value) => Ok(value),
            None => Err(self.value_missing::<T>(Separator::Byte(separator))),
        }
    }

    /// Returns an iterator over the values up to the end. After an error the iterator ends, but the reader can
    /// continue.
    ///
    /// ```
    /// use millstream::Reader;
    /// let mut reader = Reader::command(["seq", "100"])?;
    /// assert_eq!(reader.values::<u64>().sum::<Result<u64, _>>()?, 5050);
    /// let mut reader = Reader::memory("0.5;1.5\n1;2\n")?;
    /// let pairs = reader.values::<(f64, f64)>().delimited(b';');
    /// assert_eq!(pairs.collect::<Result<Vec<_>, _>>()?, [(0.5, 1.5), (1.0, 2.0)]);
    /// # Ok::<(), millstream::Error>(())
    /// ```
    pub fn values<T: Scan>(&mut self) -> Values<'_, T> {
        Values { reader: self, separator: Separator::Space, is_over: false, values: PhantomData }
    }

    /// Returns the next word, that is, the bytes up to the next white space or the end, or `None` at the end.
    ///
    /// ```
    /// use millstream::Reader;
    /// let mut reader = Reader::memory("size 3\ncolour red\n")?;
    /// assert_eq!(reader.next_word()?, Some(&b"size"[..]));
    /// assert_eq!(reader.scan::<u32>()?, Some(3));
    /// assert_eq!(reader.next_word()?, Some(&b"colour"[..]));
    /// assert_eq!(reader.rest_of_line()?, Some(&b"red"[..]));
    /// assert_eq!(reader.next_word()?, None);
    /// # Ok::<(), millstream::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns the source's failure after all the data that it delivered, but only one time. Returns
    /// [`RecordTooLong`](crate::ErrorKind::RecordTooLong) for a word over the limit; in that case,
    /// [`skip_record`](Reader::skip_record) skips the word and the rest of the line.
    pub fn next_word(&mut self) -> Result<Option<&[u8]>> {
        match self.find_tokens(1, Separator::Space, self.record_limit)? {
            Some(len) => Ok(Some(self.buffer.take_to(self.buffer.pos() + len))),
            None => Ok(None),
        }
    }

    /// Returns the rest of the line, without leading blanks and tabs and without its line end, or `None` at the end.
    ///
    /// Directly after a number or a word this is the rest of *its* line, which may be empty, even if the input ends
    /// without a line end. So call it to consume the line end after the last number of a line, before
    /// [`next_line`](Reader::next_line) reads the following lines. (`next_line` would return the rest of the line too,
    /// with its leading blanks.)
    ///
    /// # Errors
    /// Returns the errors of [`next_line`](Reader::next_line).
    pub fn rest_of_line(&mut self) -> Result<Option<&[u8]>> {
        if self.is_scanning() {
            self.count_scanned();
        }
        let is_open = self.is_in_open_line() && !matches!(self.state, State::Failed);
        Ok(match self.next_line()? {
            Some(line) => {
                let start = line.iter().position(|&byte| byte != b' ' && byte != b'\t').unwrap_or(line.len());
                Some(&line[start..])
            }
            // This was a last line without a line end, and all of it has been consumed.
            None if is_open => Some(&[]),
            None => None,
        })
    }

    /// Returns the unread bytes, for code that scans them itself, such as the inlined functions of other languages.
    /// After an error of the source they are empty, because its unread bytes are not values. Call
    /// [`consume_scanned`](Reader::consume_scanned) for the bytes that were scanned, and [`scan`](Reader::scan) for a
    /// value that is incomplete in these bytes, or invalid.
    ///
    /// ```
    /// use millstream::Reader;
    /// let mut reader = Reader::memory("1\n2\n30")?;
    /// reader.fill()?;
    /// assert_eq!(reader.scan_window()?, b"1\n2\n30");
    /// reader.consume_scanned(4);
    /// assert_eq!(reader.position().records, 2); // with `consume` it would be 0
    /// assert_eq!(reader.scan::<u32>()?, Some(30));
    /// # Ok::<(), millstream::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns [`RecordTooLong`](crate::ErrorKind::RecordTooLong) while a record must be skipped first.
    pub fn scan_window(&mut self) -> Result<&[u8]> {
        match self.begin_scanning()? {
            true => Ok(self.buffer.unread()),
            false => Ok(&[]),
        }
    }

    /// Removes `count` bytes from the front of [`scan_window`](Reader::scan_window), in which values were scanned. This
    /// is like [`consume`](Reader::consume), but the line ends in these bytes count as records.
    ///
    /// # Panics
    /// Panics if the window has fewer bytes.
    pub fn consume_scanned(&mut self, count: usize) {
        match self.is_scanning() {
            true => self.buffer.consume(count),
            false => self.consume(count),
        }
    }

    /// Returns the next value, in any state of the reader.
    #[cold]
    #[inline(never)]
    fn scan_carefully<T: Scan>(&mut self, separator: Separator) -> Result<Option<T>> {
        let Some(_) = self.find_tokens(T::TOKENS, separator, self.record_limit.max(SHORT))? else { return Ok(None) };
        let mut tokens = Tokens::new(self.buffer.unread(), separator);
        match T::take(&mut tokens) {
            Ok(value) => {
                let used = tokens.used();
                self.buffer.consume(used);
                Ok(Some(value))
            }
            Err(wrong) => {
                self.settle();
                if wrong.is_missing() {
                    // If the source failed, its failure is the cause.
                    self.finish()?;
                }
                let before = &self.buffer.unread()[..wrong.token.start];
                let (offset, record) = (self.buffer.offset() + before.len() as u64, self.records + count_lines(before));
                let line_start = match memchr::memrchr(b'\n', before) {
                    Some(newline) => self.buffer.offset() + newline as u64 + 1,
                    None => self.scanning.line.line_start,
                };
                let error = self.at_record(wrong.error::<T>(self.buffer.unread()), offset, record);
                Err(if self.all_lines { error.with_column(offset - line_start + 1) } else { error })
            }
        }
    }

    /// Returns the error of a missing value at the end.
    #[cold]
    fn value_missing<T: Scan>(&mut self, separator: Separator) -> Error {
        match T::take(&mut Tokens::new(&[], separator)) {
            Ok(_) => unreachable!("no value has an empty text"),
            Err(wrong) => {
                let (offset, line) = (self.buffer.offset(), self.scanning.line);
                let line_start = if line.at == offset { line.line_start } else { offset };
                // A last line without a line end has been counted.
                let line = self.records + u64::from(line_start == offset || !self.is_at_end());
                let error = self.at_end(wrong.error::<T>(&[])).with_record(self.records);
                match self.all_lines {
                    true => error.with_line(line).with_column(offset - line_start + 1),
                    false => error,
                }
            }
        }
    }

    /// Reads until `count` tokens are complete, or as many as there are before the end. Returns the end of the last
    /// one, counted from the first unread byte, or `None` if there is no token.
    fn find_tokens(&mut self, count: usize, separator: Separator, limit: usize) -> Result<Option<usize>> {
        if !self.begin_scanning()? {
            return Ok(None);
        }
        let mut extent = Extent::new(count, separator);
        loop {
            self.buffer.consume(extent.leading(self.buffer.unread()));
            let unread = self.buffer.unread();
            let end = extent.look(unread);
            let len = end.unwrap_or(unread.len());
            if len > limit {
                self.settle();
                return self.stop_at_long_record(len);
            }
            if end.is_some() {
                return Ok(end);
            }
            if self.is_at_end() && len > 0 {
                return Ok(Some(len));
            }
            self.count_scanned();
            let more = self.read_more();
            // This runs after a cancelled wait too, because positions have moved anyway.
            self.scanning.count_from(self.buffer.pos());
            if !more? && (len == 0 || !self.is_at_end()) {
                // This is the end, or the source failed within this value.
                self.settle();
                return self.finish_records().map(|()| None);
            }
        }
    }

    /// Starts scanning values. Returns false if there are no more bytes, since an error has been reported.
    fn begin_scanning(&mut self) -> Result<bool> {
        if !self.scanning.is_on {
            self.check_resumed(&mut Lines::new())?;
            if matches!(self.state, State::Failed) {
                return Ok(false);
            }
            self.settle();
            let offset = self.buffer.offset();
            if self.scanning.line.at != offset {
                self.scanning.line = Stop { line_start: offset, at: offset };
            }
            self.scanning.is_on = true;
            self.scanning.count_from(self.buffer.pos());
        }
        Ok(true)
    }

    /// Counts the lines of the scanned bytes before these are dropped, or before a read of another kind.
    #[cold]
    pub(super) fn end_scanning(&mut self) {
        self.count_scanned();
        self.scanning.is_on = false;
    }

    fn count_scanned(&mut self) {
        let scanned = self.buffer.consumed_from(self.scanning.counted);
        if let Some(last) = scanned.last() {
            let offset = self.buffer.offset();
            self.scanning.open_line = (*last != b'\n').then_some(offset);
            self.scanning.line.at = offset;
            if let Some(newline) = memchr::memrchr(b'\n', scanned) {
                self.scanning.line.line_start = offset - (scanned.len() - newline - 1) as u64;
            }
            self.records += self.scanning.lines(scanned);
            self.scanning.count_from(self.buffer.pos());
        }
    }

    /// Returns the number of lines that are scanned but not counted yet.
    pub(super) fn lines_scanned(&self) -> u64 {
        match self.scanning.is_on {
            true => self.scanning.lines(self.buffer.consumed_from(self.scanning.counted)),
            false => 0,
        }
    }

    /// At the end of the bytes, counts an unterminated last line if scanning consumed all of it.
    pub(super) fn count_open_line(&mut self) {
        if self.is_in_open_line() && self.buffer.unread().is_empty() {
            self.scanning.open_line = None;
            self.records += 1;
        }
    }

    /// Returns whether scanning has consumed part of the current line. Only counted bytes are considered.
    fn is_in_open_line(&self) -> bool {
        self.scanning.open_line == Some(self.buffer.offset())
    }

    /// Returns whether values are being scanned.
    #[inline]
    pub(super) fn is_scanning(&self) -> bool {
        self.scanning.is_on
    }
}

fn count_lines(bytes: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', bytes).count() as u64
}

/// An iterator over the values of a reader: see [`Reader::values`].
#[must_use = "an iterator reads nothing until it is advanced"]
pub struct Values<'r, T> {
    reader: &'r mut Reader,
    separator: Separator,
    is_over: bool,
    values: PhantomData<fn() -> T>,
}

impl<T> Values<'_, T> {
    /// Sets the byte that separates the numbers: see [`Separator::Byte`].
    pub fn delimited(mut self, separator: u8) -> Self {
        self.separator = Separator::Byte(separator);
        self
    }
}

impl<T: Scan> Iterator for Values<'_, T> {
    type Item = Result<T>;

    #[inline]
    fn next(&mut self) -> Option<Result<T>> {
        if self.is_over {
            return None;
        }
        let value = self.reader.scan_separated(self.separator).transpose();
        self.is_over = !matches!(value, Some(Ok(_)));
        value
    }
}

impl<T: Scan> std::iter::FusedIterator for Values<'_, T> {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_were_counted_for_a_position_are_not_counted_again() {
        let mut reader = Reader::memory("1\n2\n3\n4\n").unwrap();
        let asked = |reader: &mut Reader| {
            let asked = *reader.scanning.asked.get_mut();
            (asked >> 32, asked as u32)
        };
        assert_eq!(reader.scan::<(u8, u8)>().unwrap(), Some((1, 2)));
        assert_eq!((reader.position().records, asked(&mut reader)), (1, (3, 1)));
        assert_eq!((reader.position().records, asked(&mut reader)), (1, (3, 1)));
        assert_eq!(reader.scan::<u8>().unwrap(), Some(3));
        assert_eq!((reader.progress().records, asked(&mut reader)), (2, (5, 2)));
        assert_eq!(reader.next_line().unwrap(), Some(&b""[..]));
        assert_eq!((reader.position().records, asked(&mut reader)), (3, (0, 0)));
        assert_eq!(reader.scan::<u8>().unwrap(), Some(4));
        assert_eq!((reader.position().records, reader.scan::<u8>().unwrap()), (3, None));
        assert_eq!((reader.position().records, asked(&mut reader)), (4, (0, 0)));
    }

    #[test]
    fn the_rest_of_a_line_does_not_index_the_lines_after_it() {
        let mut reader = Reader::memory("1 one\n2\n3\n").unwrap();
        assert_eq!(reader.scan::<u8>().unwrap(), Some(1));
        assert_eq!(reader.rest_of_line().unwrap(), Some(&b"one"[..]));
        assert_eq!(reader.index.next(), None);
        assert_eq!(reader.next_line().unwrap(), Some(&b"2"[..]));
        assert_eq!(reader.index.next(), Some("1 one\n2\n3\n".len()), "it is used from the second line on");
    }
}
