//! Every method of reading the same bytes. A user cannot see which code path is used, so a test runs all of them.

use std::io::{BufRead, Read};

use millstream::frame::Lines;
use millstream::{Error, Latency, ReadAhead, Reader, ReaderBuilder};

pub const EVERY_READ_AHEAD: [ReadAhead; 3] = [ReadAhead::Auto, ReadAhead::On, ReadAhead::Off];

/// A way to open a source for reading.
#[derive(Clone, Copy, Debug)]
pub struct Mode {
    pub read_ahead: ReadAhead,
    pub latency: Latency,
}

impl Mode {
    pub fn builder(self) -> ReaderBuilder {
        Reader::builder().read_ahead(self.read_ahead).latency(self.latency)
    }
}

pub fn every_mode() -> impl Iterator<Item = Mode> {
    EVERY_READ_AHEAD
        .into_iter()
        .flat_map(|read_ahead| [Latency::Normal, Latency::Low].map(|latency| Mode { read_ahead, latency }))
}

/// A way to take the data that was read.
#[derive(Clone, Copy, Debug)]
pub enum Pull {
    /// `fill`, `buffer` and `consume`, all bytes at once.
    Fill,
    /// `fill`, `buffer` and `consume`, a part of the bytes each time.
    FillBits,
    /// `next_frame`.
    Frames,
    /// `buffered_frame` while it returns a record, otherwise `next_frame`.
    BufferedFrames,
    /// `next_batch`.
    Batches,
    /// `next_batch`, giving back half of it.
    LeftBatches,
    /// `std::io::Read`.
    StdRead,
    /// `std::io::BufRead`.
    StdBufRead,
}

pub const EVERY_PULL: [Pull; 8] = [
    Pull::Fill,
    Pull::FillBits,
    Pull::Frames,
    Pull::BufferedFrames,
    Pull::Batches,
    Pull::LeftBatches,
    Pull::StdRead,
    Pull::StdBufRead,
];

/// Returns all data that a reader delivers, and the error at the end if there was one.
///
/// It checks the rules for every reader: an error is reported once and is followed by the end, every later call
/// reports the end again, and the position counts the delivered data.
pub fn drain(reader: &mut Reader, pull: Pull) -> (Vec<u8>, Option<Error>) {
    let start = reader.position().bytes;
    let mut bytes = Vec::new();
    let error = loop {
        match take(reader, pull, &mut bytes) {
            Ok(true) => {}
            Ok(false) => break None,
            Err(error) => {
                // An error of `fill` keeps the unread bytes. All records come before the error, except for the one
                // that the error cut off.
                let whole_record_left = reader.buffer().contains(&b'\n');
                match pull {
                    Pull::Fill | Pull::FillBits => {}
                    Pull::Frames | Pull::BufferedFrames | Pull::Batches | Pull::LeftBatches => {
                        assert!(!whole_record_left, "{pull:?}: an error too early");
                    }
                    Pull::StdRead | Pull::StdBufRead => assert!(reader.buffer().is_empty(), "{pull:?}: too early"),
                }
                bytes.extend_from_slice(reader.buffer());
                reader.consume(reader.buffer().len());
                break Some(error);
            }
        }
    };
    let delivered = bytes.len();
    for _ in 0..2 {
        match take(reader, pull, &mut bytes) {
            Ok(false) => {}
            other => panic!("{pull:?}: after the end (error: {error:?}): {other:?}"),
        }
    }
    assert_eq!(bytes.len(), delivered, "{pull:?}: bytes after the end");
    assert_eq!(reader.position().bytes - start, delivered as u64, "{pull:?}: position");
    (bytes, error)
}

/// Takes the next piece. `false` is the end.
pub fn take(reader: &mut Reader, pull: Pull, out: &mut Vec<u8>) -> Result<bool, Error> {
    match pull {
        Pull::Fill => {
            let added = reader.fill()?;
            out.extend_from_slice(reader.buffer());
            reader.consume(reader.buffer().len());
            Ok(added > 0)
        }
        Pull::FillBits => {
            // This leaves some bytes unread, so that the next `fill` has to keep them.
            let ended = reader.fill()? == 0;
            let unread = reader.buffer().len();
            let n = if ended { unread } else { unread - unread / 3 };
            out.extend_from_slice(&reader.buffer()[..n]);
            reader.consume(n);
            Ok(!ended)
        }
        Pull::Frames => {
            Ok(reader.next_frame(&mut Lines::untrimmed())?.map(|line| out.extend_from_slice(line)).is_some())
        }
        Pull::BufferedFrames => {
            if let Some(line) = reader.buffered_frame(&mut Lines::untrimmed()) {
                out.extend_from_slice(line);
                return Ok(true);
            }
            take(reader, Pull::Frames, out)
        }
        Pull::Batches => {
            let before = reader.position();
            let Some(batch) = reader.next_batch(&mut Lines::untrimmed())? else { return Ok(false) };
            assert_eq!((batch.offset(), batch.first_record()), (before.bytes, before.records));
            assert!(!batch.is_empty(), "an empty batch");
            assert_eq!(batch.offsets().len(), batch.len() + 1);
            for record in &batch {
                out.extend_from_slice(record);
            }
            Ok(true)
        }
        Pull::LeftBatches => {
            let before = reader.position();
            let Some(batch) = reader.next_batch(&mut Lines::untrimmed())? else { return Ok(false) };
            let (all, used) = (batch.len(), batch.len().div_ceil(2));
            for record in batch.iter().take(used) {
                out.extend_from_slice(record);
            }
            let used_bytes = u64::from(batch.offsets()[used]);
            reader.give_back(all - used)?;
            let after = reader.position();
            assert_eq!((after.bytes, after.records), (before.bytes + used_bytes, before.records + used as u64));
            Ok(true)
        }
        Pull::StdRead => {
            let mut piece = [0; 777];
            let n = reader.read(&mut piece).map_err(Error::from_io)?;
            out.extend_from_slice(&piece[..n]);
            Ok(n > 0)
        }
        Pull::StdBufRead => {
            let piece = reader.fill_buf().map_err(Error::from_io)?;
            let n = piece.len();
            out.extend_from_slice(piece);
            BufRead::consume(reader, n);
            Ok(n > 0)
        }
    }
}

/// Works like [`drain`], for a reader that must not fail.
pub fn drain_whole(reader: &mut Reader, pull: Pull) -> Vec<u8> {
    match drain(reader, pull) {
        (bytes, None) => bytes,
        (bytes, Some(error)) => panic!("{pull:?}: after {} bytes: {error}", bytes.len()),
    }
}
