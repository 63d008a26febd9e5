//! Exact splits: reading the splits of a plan in order gives what one reader of the whole file gives.

mod changes;
mod elements;
#[cfg(feature = "compression")]
mod encoded;
mod pass;
mod pipe;
mod stored;
mod union;
mod vectors;

use millstream::frame::Framer;
use millstream::splits::{Framing, Splits};
use millstream::{Error, ErrorKind, Reader, ReaderBuilder};

/// What a reader returned: records, errors and skipped records, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    Record(Vec<u8>),
    Skipped,
    Error {
        kind: ErrorKind,
        offset: Option<u64>,
        record: Option<u64>,
        found: Option<String>,
        expected: Option<String>,
        /// The line and the column of broken quoting.
        place: Option<(u64, u64)>,
    },
}

impl Event {
    /// `base` is the number of records before the reader's first one, if the reader does not know it.
    fn error(error: &Error, base: u64) -> Event {
        // How much of a long record has been read depends on the size of the buffer.
        let found = error.found().filter(|_| error.kind() != ErrorKind::RecordTooLong).map(str::to_string);
        Event::Error {
            kind: error.kind(),
            offset: error.offset(),
            record: error.record().map(|record| record + base),
            found,
            expected: error.expected().map(str::to_string),
            place: error.line().zip(error.column()).filter(|_| error.kind() == ErrorKind::CsvInvalid),
        }
    }
}

/// Reads everything, and skips records that are too long. Returns the number of records.
pub(crate) fn read(
    reader: &mut Reader,
    framer: &mut dyn Framer,
    max: usize,
    base: u64,
    events: &mut Vec<Event>,
) -> u64 {
    let start = reader.position().records;
    loop {
        let more = match max {
            1 => {
                reader.next_frame(framer).map(|record| record.map(|record| events.push(Event::Record(record.to_vec()))))
            }
            _ => reader.next_batch_of(framer, max).map(|batch| {
                batch.map(|batch| events.extend(batch.iter().map(|record| Event::Record(record.to_vec()))))
            }),
        };
        match more {
            Ok(Some(())) => {}
            Ok(None) => break,
            Err(error) => {
                events.push(Event::error(&error, base));
                if error.kind() != ErrorKind::RecordTooLong {
                    break;
                }
                match reader.skip_record(framer) {
                    Ok(true) => events.push(Event::Skipped),
                    Ok(false) => break,
                    Err(error) => events.push(Event::error(&error, base)),
                }
            }
        }
    }
    reader.position().records - start
}

/// Returns what one reader of the whole file returns.
pub(crate) fn sequential(path: &std::path::Path, framing: &Framing, options: impl Fn() -> ReaderBuilder) -> Vec<Event> {
    let mut events = Vec::new();
    read(&mut options().path(path).unwrap(), &mut *framing.framer().unwrap(), 1, 0, &mut events);
    events
}

/// Returns what the readers of the splits return, one after another, up to the first error that ends a reader.
pub(crate) fn union(plan: &Splits, max: usize, options: impl Fn() -> ReaderBuilder) -> Vec<Event> {
    let (mut events, mut records) = (Vec::new(), 0);
    for split in plan {
        let mut reader = options().split(split).unwrap();
        assert!(split.first_record().is_none_or(|record| record == records), "{split:?} after {records} records");
        let base = if split.first_record().is_some() { 0 } else { records };
        records += read(&mut reader, &mut *split.framing().framer().unwrap(), max, base, &mut events);
    }
    events
}
