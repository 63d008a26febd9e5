//! Reading for codecs: the methods that [`ReadRecords`] requires of a reader.

use super::Reader;
use crate::error::Result;
use millstream_core::ReadRecords;

impl ReadRecords for Reader {
    #[inline]
    fn fill(&mut self) -> Result<usize> {
        Reader::fill(self)
    }

    #[inline]
    fn buffer(&self) -> &[u8] {
        Reader::buffer(self)
    }

    #[inline]
    fn consume(&mut self, count: usize) {
        Reader::consume(self, count);
    }

    #[inline]
    fn take_records(&mut self, len: usize, count: u64, longest: usize) -> &[u8] {
        self.settle();
        (self.too_long, self.skip, self.all_lines, self.inner_lines) = (false, None, false, None);
        self.records += count;
        self.longest = self.longest.max(longest);
        self.buffer.take_to(self.buffer.pos() + len)
    }

    #[inline]
    fn offset(&self) -> u64 {
        self.buffer.offset()
    }

    #[inline]
    fn record(&self) -> u64 {
        self.position().records
    }

    #[inline]
    fn record_limit(&self) -> usize {
        self.record_limit
    }

    fn name(&self) -> &str {
        Reader::name(self)
    }

    fn keep_partial(&mut self, bytes: Vec<u8>) {
        self.partial = (bytes, self.buffer.offset());
    }

    fn take_partial(&mut self) -> Vec<u8> {
        let (bytes, end) = std::mem::take(&mut self.partial);
        if end == self.buffer.offset() { bytes } else { Vec::new() }
    }
}
