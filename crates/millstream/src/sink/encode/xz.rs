//! xz, by liblzma: one stream with one block, on the caller's thread.

use std::io;

use liblzma::stream::{Action, Check, Error as Code, Status, Stream};

use crate::error::{Error, ErrorKind, Result};

/// The amount of space for compressed bytes at each call.
const SPACE: usize = 32 << 10;

/// Compresses into memory.
pub(super) struct XzEncoder {
    stream: Stream,
}

impl XzEncoder {
    /// The kind of checksum is the default of the xz command.
    pub(super) fn new(level: u32) -> Result<XzEncoder> {
        let stream = Stream::new_easy_encoder(level, Check::Crc64).map_err(|code| Error::from_io(explain(code)))?;
        Ok(XzEncoder { stream })
    }

    /// Compresses all of `bytes` and appends the output that is ready to `out`.
    pub(super) fn encode(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
        let mut rest = bytes;
        while !rest.is_empty() {
            self.process(&mut rest, out, Action::Run)?;
        }
        Ok(())
    }

    /// Makes all bytes compressed so far decodable, without ending the block.
    pub(super) fn flush(&mut self, out: &mut Vec<u8>) -> io::Result<()> {
        while self.process(&mut &[][..], out, Action::SyncFlush)? != Status::StreamEnd {}
        Ok(())
    }

    /// Ends the stream.
    pub(super) fn finish(&mut self, out: &mut Vec<u8>) -> io::Result<()> {
        while self.process(&mut &[][..], out, Action::Finish)? != Status::StreamEnd {}
        Ok(())
    }

    fn process(&mut self, bytes: &mut &[u8], out: &mut Vec<u8>, action: Action) -> io::Result<Status> {
        out.reserve(SPACE);
        let before = self.stream.total_in();
        let status = self.stream.process_vec(bytes, out, action).map_err(explain)?;
        *bytes = &bytes[(self.stream.total_in() - before) as usize..];
        Ok(status)
    }
}

fn explain(code: Code) -> io::Error {
    match code {
        Code::Mem => {
            let error = Error::from_io(io::ErrorKind::OutOfMemory.into());
            io::Error::other(error.with_found("no memory for the encoder of xz; a lower level needs less"))
        }
        code => io::Error::other(Error::new(ErrorKind::Internal).with_found(format!("liblzma: {code}"))),
    }
}
