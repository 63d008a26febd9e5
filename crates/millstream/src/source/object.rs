//! An object, or a part of one, as a source.

use millstream_remote::{Object, Version};

use super::own::outcome;
use super::{ByteSource, Nature};
use crate::error::{CommandEnd, ErrorKind, Result};
use crate::os::cancel::Wait;

/// Delivers the bytes of an object. Ranges are received on the threads of the network, so waits can be interrupted.
pub(crate) struct ObjectSource {
    object: Object,
    /// Whether the object was read completely, if it has reached its end.
    end: Option<Result<()>>,
}

impl ObjectSource {
    pub(crate) fn new(object: Object) -> ObjectSource {
        ObjectSource { object, end: None }
    }

    /// Returns the version of the object, if another request can require it.
    pub(crate) fn version(&self) -> Option<Version> {
        self.object.version()
    }

    pub(crate) fn size(&self) -> Option<u64> {
        self.object.size()
    }
}

impl ByteSource for ObjectSource {
    /// A failure is treated as an end at which the source has failed, so that bytes that a decoder holds back are
    /// delivered first.
    fn read(&mut self, space: &mut [u8], wait: &Wait) -> Result<usize> {
        if self.end.is_some() {
            return Ok(0);
        }
        wait.check()?;
        match self.object.read(space, wait.checking()) {
            Ok(0) => self.end = Some(Ok(())),
            Err(error) if error.kind() != ErrorKind::Cancelled => {
                self.end = Some(Err(error.with_offset(self.object.position())));
            }
            other => return other,
        }
        Ok(0)
    }

    fn finish(&mut self, _wait: &Wait, _ends: &mut Vec<CommandEnd>) -> Result<()> {
        outcome(&self.end)
    }

    fn nature(&self) -> Nature {
        Nature::Device
    }
}
