//! Remote objects as sources and sinks, by the feature `remote`: [`Reader::url`](crate::ReaderBuilder::url) and
//! [`Writer::url`](crate::Writer::url). This module also finds what interrupted uploads left behind.
//!
//! ```no_run
//! use std::time::{Duration, SystemTime};
//! use millstream::Remote;
//! use millstream::remote::Uploads;
//!
//! let yesterday = SystemTime::now() - Duration::from_secs(24 * 60 * 60);
//! let mut uploads = Uploads::new(Remote::new("s3://reports/2026/"))?;
//! while let Some(upload) = uploads.next().transpose()? {
//!     if upload.begun.is_some_and(|begun| begun < yesterday) {
//!         uploads.abort(&upload)?;
//!     }
//! }
//! # Ok::<(), millstream::Error>(())
//! ```

use std::io;
use std::time::{Duration, Instant};

use millstream_remote::{Object, Upload};

pub use millstream_remote::{Outcome, Remote, UnfinishedUpload, Uploads, outcome};

use crate::error::Result;
use crate::os::cancel::Wait;
use crate::sink::{Medium, OnDrop, Opened, Sink, WriterEnd};
use crate::source::Source;

impl Source for Object {
    fn read(&mut self, block: &mut [u8]) -> io::Result<usize> {
        Object::read(self, block)
    }

    fn canceller(&self) -> Option<Box<dyn FnOnce() + Send>> {
        Some(Box::new(Object::canceller(self)))
    }

    fn size(&self) -> Option<u64> {
        Object::size(self)
    }

    fn place(&self) -> Option<(String, u64)> {
        Some((self.name().into(), self.position()))
    }
}

/// An object that appears when it is closed.
struct ObjectSink {
    upload: Upload,
    wait: Wait,
}

/// Opens an object for writing.
pub(crate) fn open(remote: Remote, create_new: bool, wait: Wait) -> Result<Opened> {
    let name = remote.name();
    let upload = Upload::open(remote, create_new, until(&wait))?;
    Ok(Opened { on_drop: OnDrop::Discard, ..Opened::new(ObjectSink { upload, wait }, name, Medium::File) })
}

/// Returns a check that fails if a wait that begins now is cancelled or takes too long.
fn until(wait: &Wait) -> impl FnMut() -> Result<()> + '_ {
    let start = Instant::now();
    move || wait.check().and_then(|()| wait.expired(start))
}

impl Sink for ObjectSink {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        self.wait.check()?;
        self.upload.write(bytes, until(&self.wait))
    }

    fn close(&mut self, _: &mut WriterEnd) -> Result<()> {
        // The store may take any time to join the parts.
        self.upload.close(|| self.wait.check())
    }

    fn abandon(&mut self) {
        // A user who interrupts the program does not want to wait.
        let limit = if self.wait.check().is_err() { 1 } else { 10 };
        self.upload.abandon(Duration::from_secs(limit));
    }
}
