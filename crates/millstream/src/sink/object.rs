//! Objects of stores as sinks: all network code is in `millstream-remote`.

use std::time::Duration;

use millstream_remote::{Remote, Upload};

use crate::error::Result;
use crate::os::cancel::Wait;
use crate::sink::{Medium, OnDrop, Opened, Sink, WriterEnd};

/// An object that appears when it is closed.
struct ObjectSink {
    upload: Upload,
    wait: Wait,
}

/// Opens an object for writing.
pub(crate) fn open(remote: Remote, create_new: bool, wait: Wait) -> Result<Opened> {
    let name = remote.name();
    let upload = Upload::open(remote, create_new, wait.checking())?;
    Ok(Opened { on_drop: OnDrop::Discard, ..Opened::new(ObjectSink { upload, wait }, name, Medium::File) })
}

impl Sink for ObjectSink {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        self.wait.check()?;
        self.upload.write(bytes, self.wait.checking())
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
