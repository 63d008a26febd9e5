//! Decodes the members of a gzip file, from its beginning or from a block on, and stops at each block.

use std::io::Read;

use super::inflate::{BlockInflate, Header, Step, Stop};
use super::{Window, damaged};
use crate::error::{Error, ErrorKind, Result};
use crate::source::input::Input;

/// The number of bytes after the last block of a member: its checksum and its length.
const TRAILER: usize = 8;

/// The checksum and the length (modulo 2^32) of a member's decoded bytes so far: what its trailer has for all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "splits", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Check {
    pub(crate) crc: u32,
    pub(crate) len: u32,
}

/// Decodes the bytes of any number of members, from a block or a member on.
pub(super) struct Members<R> {
    input: Input<R>,
    inflate: BlockInflate,
    state: State,
    /// The bits and the window of the block with which decoding begins.
    entry: (u8, Window),
    /// The offset of the next compressed byte.
    position: u64,
    /// That of the current member, or `None` if decoding started after its beginning and this was not known there.
    check: Option<Check>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// Before the block with which decoding begins.
    Entry,
    /// Before the end of a member's header.
    Header,
    /// In the blocks of a member.
    Blocks,
    /// After the last one.
    Trailer,
    /// Between two members, or at the end.
    Between,
    Ended,
}

/// Where decoding begins within a member.
pub(super) struct Entry<'a> {
    /// The offset of the first whole byte of the block.
    pub(super) compressed: u64,
    /// The number of high bits of the byte before that belong to the block.
    pub(super) bits: u8,
    pub(super) window: &'a [u8],
    pub(super) check: Option<Check>,
}

impl Entry<'_> {
    /// Returns the offset of the first byte that is needed.
    pub(super) fn start(&self) -> u64 {
        self.compressed - u64::from(self.bits > 0)
    }
}

impl<R: Read> Members<R> {
    /// Decodes `source`, which is at the beginning of the file.
    pub(super) fn new(source: R) -> Result<Members<R>> {
        Members::with(source, Header::Gzip, State::Header, 0, Some(Check::default()))
    }

    /// Decodes `source`, which is at the [`start`](Entry::start) of this block.
    pub(super) fn enter(source: R, entry: &Entry<'_>) -> Result<Members<R>> {
        let mut members = Members::with(source, Header::Raw, State::Entry, entry.start(), entry.check)?;
        members.entry = (entry.bits, entry.window.into());
        Ok(members)
    }

    /// Prepares the decoder for the first block.
    fn begin(&mut self) -> Result<()> {
        let (bits, mut first) = (self.entry.0, 0);
        if bits > 0 {
            let Some(&byte) = self.fill()?.first() else {
                return Err(damaged("the end of the file, which has become shorter", self.position));
            };
            first = byte;
            self.consume(1);
        }
        self.inflate.resume(bits, first, &std::mem::take(&mut self.entry.1));
        self.state = State::Blocks;
        Ok(())
    }

    fn with(source: R, header: Header, state: State, position: u64, check: Option<Check>) -> Result<Members<R>> {
        let no_memory = || Error::from_io(crate::os::out_of_memory());
        let inflate = BlockInflate::new(header).ok_or_else(no_memory)?;
        Ok(Members { input: Input::new(source), inflate, state, entry: Default::default(), position, check })
    }

    pub(super) fn source(&self) -> &R {
        self.input.source()
    }

    /// Returns the offset of the next compressed byte.
    pub(super) fn position(&self) -> u64 {
        self.position
    }

    /// Returns the checksum of the current member so far, if it is known.
    pub(super) fn check(&self) -> Option<Check> {
        self.check
    }

    fn fill(&mut self) -> Result<&[u8]> {
        self.input.at_least(1).map_err(Error::from_io)
    }

    fn consume(&mut self, count: usize) {
        std::io::BufRead::consume(&mut self.input, count);
        self.position += count as u64;
    }

    /// Decodes into `space`, which is not empty, until it is full or until a block begins, whose bits are returned.
    /// Returns `None` at the end of the last member.
    pub(super) fn step(&mut self, space: &mut [u8]) -> Result<Option<(usize, Stop)>> {
        loop {
            match self.state {
                State::Ended => return Ok(None),
                State::Entry => {
                    self.begin()?;
                    continue;
                }
                State::Trailer => {
                    self.read_trailer()?;
                    continue;
                }
                State::Between => {
                    self.next_member()?;
                    continue;
                }
                State::Header | State::Blocks => {}
            }
            let input = self.input.at_least(1).map_err(Error::from_io)?;
            let at_end = input.is_empty();
            let Some(Step { read, written, stop }) = self.inflate.decode(input, space) else {
                return Err(damaged("data that is not gzip data", self.position));
            };
            self.consume(read);
            if let Some(check) = &mut self.check {
                check.crc = zlib_rs::crc32::crc32(check.crc, &space[..written]);
                check.len = check.len.wrapping_add(written as u32);
            }
            if self.state == State::Header && matches!(stop, Stop::Block { .. }) {
                self.inflate.reset(Header::Raw);
                self.state = State::Blocks;
            }
            if stop == Stop::End {
                self.state = State::Trailer;
            } else if at_end && read == 0 && written == 0 {
                return Err(self.truncated("a gzip member"));
            }
            if written > 0 || matches!(stop, Stop::Block { .. }) {
                return Ok(Some((written, stop)));
            }
        }
    }

    /// Compares the checksum and the length.
    fn read_trailer(&mut self) -> Result<()> {
        let trailer = self.input.at_least(TRAILER).map_err(Error::from_io)?;
        let Some(&[a, b, c, d, e, f, g, h]) = trailer.first_chunk::<TRAILER>() else {
            return Err(self.truncated("the trailer of a gzip member"));
        };
        let found = Check { crc: u32::from_le_bytes([a, b, c, d]), len: u32::from_le_bytes([e, f, g, h]) };
        if self.check.is_some_and(|check| check != found) {
            return Err(damaged("a wrong checksum or length of a gzip member", self.position));
        }
        self.consume(TRAILER);
        self.state = State::Between;
        Ok(())
    }

    /// Prepares for the next member, if there is one.
    fn next_member(&mut self) -> Result<()> {
        match self.fill()?.first() {
            None => self.state = State::Ended,
            // The decoder checks the rest of the header.
            Some(0x1f) => {
                self.inflate.reset(Header::Gzip);
                self.state = State::Header;
                self.check = Some(Check::default());
            }
            Some(_) => {
                let found = "bytes that are not gzip data after the end of gzip data";
                return Err(damaged(found, self.position));
            }
        }
        Ok(())
    }

    fn truncated(&self, within: &str) -> Error {
        Error::new(ErrorKind::DecodeTruncated)
            .with_found(format!("the end of the file inside {within}, at compressed byte {}", self.position))
    }
}
