//! Sinks without system calls: memory, and a sink that discards its input.

use crate::error::Result;
use crate::sink::Sink;
use crate::sink::WriterEnd;

/// Keeps all bytes, for [`WriterEnd::memory`].
#[derive(Default)]
pub(crate) struct MemorySink(Vec<u8>);

impl Sink for MemorySink {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn close(&mut self, end: &mut WriterEnd) -> Result<()> {
        end.memory = Some(std::mem::take(&mut self.0));
        Ok(())
    }
}

/// Accepts all bytes and discards them.
pub(crate) struct NowhereSink;

impl Sink for NowhereSink {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        Ok(bytes.len())
    }
}
