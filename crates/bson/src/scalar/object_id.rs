//! Object ids: their bytes, their hexadecimal text, and the generation of new ids.
//!
//! The format is described at <https://www.mongodb.com/docs/manual/reference/bson-types/#objectid>: four bytes with the
//! seconds since 1970, five random bytes per process, and a three-byte counter with a random start, all big-endian.

use super::{DateTime, bad_text};
use data_encoding::{HEXLOWER, HEXLOWER_PERMISSIVE};
use millstream_core::Error;
use std::fmt;
use std::str::FromStr;
#[cfg(feature = "random")]
use std::sync::Mutex;
#[cfg(feature = "random")]
use std::time::{SystemTime, UNIX_EPOCH};

/// A 12-byte object id. Its text is 24 hexadecimal digits.
///
/// ```
/// use millstream::bson::ObjectId;
/// let id: ObjectId = "57e193d7A9CC81B4027498b5".parse()?;
/// assert_eq!(id.to_string(), "57e193d7a9cc81b4027498b5");
/// assert_eq!(id.time().to_string(), "2016-09-20T19:53:59Z");
/// assert_ne!(ObjectId::new(), ObjectId::new());
/// # Ok::<(), millstream::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectId(pub [u8; 12]);

/// The state shared by all ids of this process.
#[cfg(feature = "random")]
struct Process {
    /// The process to which it belongs: a forked child must not continue with the state of its parent.
    pid: u32,
    random: [u8; 5],
    counter: u32,
}

#[cfg(feature = "random")]
static PROCESS: Mutex<Option<Process>> = Mutex::new(None);

impl ObjectId {
    /// Generates a new id from the current second, the random bytes of this process, and the next value of its counter.
    /// The id is unique, unless a process generates more than 16,777,216 ids in a second.
    ///
    /// Requires the feature `random`, which `millstream` enables.
    ///
    /// # Panics
    /// Panics if the operating system cannot provide random bytes when the first id is generated.
    #[cfg(feature = "random")]
    #[allow(clippy::new_without_default)] // the default is all zeros
    pub fn new() -> ObjectId {
        let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs() as u32);
        let pid = process_id();
        let mut process = PROCESS.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let process = match &mut *process {
            Some(process) if process.pid == pid => process,
            other => other.insert(Process::new(pid)),
        };
        process.next_id(seconds)
    }

    /// The time at which it was created, in seconds.
    pub fn time(&self) -> DateTime {
        let [a, b, c, d, ..] = self.0;
        DateTime(i64::from(u32::from_be_bytes([a, b, c, d])) * 1000)
    }

    /// The 24 hexadecimal digits.
    pub(crate) fn digits(&self) -> [u8; 24] {
        let mut digits = [0; 24];
        HEXLOWER.encode_mut(&self.0, &mut digits);
        digits
    }
}

/// A number that changes when a process forks.
#[cfg(all(feature = "random", not(target_family = "wasm")))]
fn process_id() -> u32 {
    std::process::id()
}

/// Processes do not fork on this platform.
#[cfg(all(feature = "random", target_family = "wasm"))]
fn process_id() -> u32 {
    0
}

#[cfg(feature = "random")]
impl Process {
    fn new(pid: u32) -> Process {
        let mut bytes = [0; 9];
        getrandom::fill(&mut bytes).expect("the system has random bytes");
        let [a, b, c, d, e, counter @ ..] = bytes;
        Process { pid, random: [a, b, c, d, e], counter: u32::from_ne_bytes(counter) }
    }

    fn next_id(&mut self, seconds: u32) -> ObjectId {
        self.counter = self.counter.wrapping_add(1);
        let [_, counter @ ..] = self.counter.to_be_bytes();
        let mut id = [0; 12];
        id[..4].copy_from_slice(&seconds.to_be_bytes());
        id[4..9].copy_from_slice(&self.random);
        id[9..].copy_from_slice(&counter);
        ObjectId(id)
    }
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(std::str::from_utf8(&self.digits()).expect("digits are ASCII"))
    }
}

/// # Errors
/// [`TextInvalid`](millstream_core::ErrorKind::TextInvalid) for anything other than 24 hexadecimal digits.
impl FromStr for ObjectId {
    type Err = Error;

    fn from_str(text: &str) -> Result<ObjectId, Error> {
        const EXPECTED: &str = "an object id: 24 hexadecimal digits";
        let mut id = [0; 12];
        if text.len() != 24 {
            return Err(bad_text(text, EXPECTED, 0));
        }
        match HEXLOWER_PERMISSIVE.decode_mut(text.as_bytes(), &mut id) {
            Ok(_) => Ok(ObjectId(id)),
            Err(error) => Err(bad_text(text, EXPECTED, error.error.position)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    #[cfg(feature = "random")]
    use std::collections::HashSet;

    #[test]
    #[cfg(feature = "random")]
    fn new_ones_differ_in_every_thread() {
        let threads: Vec<_> =
            (0..4).map(|_| std::thread::spawn(|| (0..1000).map(|_| ObjectId::new()).collect::<Vec<_>>())).collect();
        let ids: Vec<ObjectId> = threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
        assert_eq!(ids.iter().collect::<HashSet<_>>().len(), 4000);
        assert!(ids.iter().all(|id| id.0[4..9] == ids[0].0[4..9]));
        let age = DateTime::now().0 - ids[0].time().0;
        assert!((-2000..100_000).contains(&age), "{age} ms");
    }

    #[test]
    #[cfg(feature = "random")]
    fn a_counter_that_overflows_keeps_its_place() {
        let mut process = Process { pid: 0, random: [7; 5], counter: 0x00ff_ffff };
        assert_eq!(process.next_id(0x0102_0304).0, [1, 2, 3, 4, 7, 7, 7, 7, 7, 0, 0, 0]);
        assert_eq!(process.next_id(0).0[9..], [0, 0, 1]);
    }

    #[test]
    fn text_that_is_none() {
        for (text, at) in
            [("", 0), ("57e193d7a9cc81b4027498b", 0), ("57e193d7a9cc81b4027498g5", 22), ("éééééééééééé", 0)]
        {
            let error = text.parse::<ObjectId>().unwrap_err();
            assert_eq!((error.kind(), error.offset()), (millstream_core::ErrorKind::TextInvalid, Some(at)), "{text}");
        }
    }
}
