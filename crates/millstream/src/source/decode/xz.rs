//! Decodes xz with liblzma: any number of streams, each followed by padding.
//!
//! liblzma compares the memory that a block needs with the limit before it allocates any. It verifies every checksum and
//! the index; an unknown kind of checksum is an error, because the data could not be verified.

use std::io::{self, BufRead, Read};

use liblzma::stream::{Action, CONCATENATED, Error as Code, Status, Stream, TELL_UNSUPPORTED_CHECK};

use super::{damaged, truncated};
use crate::error::{Error, ErrorKind};
use crate::source::input::Input;

/// Decodes xz.
pub(super) struct XzDecoder<R> {
    input: Input<R>,
    stream: Stream,
    /// Whether the last call filled its space, so that liblzma may hold more data.
    may_hold: bool,
    /// Whether the last stream and the source have ended.
    ended: bool,
    /// The error to report after the bytes that precede it.
    failure: Option<io::Error>,
    /// The maximum amount of memory that liblzma may allocate.
    most: u64,
}

impl<R: Read> XzDecoder<R> {
    pub(super) fn new(source: R, most: u64) -> Result<XzDecoder<R>, Error> {
        let stream = Stream::new_stream_decoder(most, CONCATENATED | TELL_UNSUPPORTED_CHECK)
            .map_err(|code| Error::from_io(explain(code, most)))?;
        Ok(XzDecoder { input: Input::new(source), stream, may_hold: false, ended: false, failure: None, most })
    }
}

impl<R: Read> Read for XzDecoder<R> {
    fn read(&mut self, space: &mut [u8]) -> io::Result<usize> {
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        while !self.ended && !space.is_empty() {
            let bytes = if self.may_hold { self.input.unread() } else { self.input.at_least(1)? };
            let at_end = bytes.is_empty() && !self.may_hold;
            let action = if at_end { Action::Finish } else { Action::Run };
            let (read, written) = (self.stream.total_in(), self.stream.total_out());
            let result = self.stream.process(bytes, space, action);
            self.input.consume((self.stream.total_in() - read) as usize);
            let count = (self.stream.total_out() - written) as usize;
            self.may_hold = count == space.len();
            let failure = match result {
                Ok(Status::StreamEnd) => {
                    self.ended = true;
                    None
                }
                // No progress is possible without more bytes.
                Ok(Status::MemNeeded) if at_end => Some(truncated("the end of the file inside an xz stream")),
                Ok(Status::Ok | Status::MemNeeded | Status::GetCheck) => None,
                Err(code) => Some(explain(code, self.most)),
            };
            if count > 0 {
                self.failure = failure;
                return Ok(count);
            }
            if let Some(failure) = failure {
                return Err(failure);
            }
        }
        Ok(0)
    }
}

/// Converts an error of liblzma.
fn explain(code: Code, most: u64) -> io::Error {
    let unsupported = |found: &str| io::Error::other(Error::new(ErrorKind::Unsupported).with_found(found));
    match code {
        Code::Data | Code::Format => damaged("xz data with a wrong checksum or structure"),
        Code::Options => unsupported("xz data with a filter, or an option of one, that is not known"),
        Code::UnsupportedCheck | Code::NoCheck => unsupported("xz data with a kind of checksum that is not known"),
        Code::MemLimit => io::Error::other(
            Error::new(ErrorKind::DecodeLimit)
                .with_found(format!("xz data that needs more than {most} bytes of memory"))
                .with_expected(format!("at most {most}")),
        ),
        Code::Mem => {
            let error = Error::from_io(io::ErrorKind::OutOfMemory.into());
            io::Error::other(error.with_found("no memory for the decoder of xz data"))
        }
        Code::Program => io::Error::other(Error::new(ErrorKind::Internal).with_found("a wrong call of liblzma")),
    }
}
