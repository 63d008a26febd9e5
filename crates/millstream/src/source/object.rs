//! An object as the source of a split: its bytes from a position on.

use millstream_remote::Object;

use super::{ByteSource, Nature};
use crate::error::{Error, Result};
use crate::os::cancel::Wait;

/// Delivers the bytes of an object. Ranges are received on the threads of the network, so waits can be interrupted.
pub(crate) struct ObjectSource(Object);

impl ObjectSource {
    pub(crate) fn new(object: Object) -> ObjectSource {
        ObjectSource(object)
    }
}

impl ByteSource for ObjectSource {
    fn read(&mut self, space: &mut [u8], wait: &Wait) -> Result<usize> {
        wait.check()?;
        let read = self.0.read_checking(space, wait.checking());
        read.map_err(|error| Error::from_io(error).with_offset(self.0.position()))
    }

    fn nature(&self) -> Nature {
        Nature::Device
    }
}
