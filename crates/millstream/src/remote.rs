//! Remote objects as sources: all network code is in `millstream-remote`.

use std::io;

use millstream_remote::Object;

pub use millstream_remote::Remote;

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
