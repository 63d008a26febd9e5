//! A command in the middle of a pipe.

use super::chain::Chain;
use super::item::{Bytes, Value};
use super::{Attached, Pipe, Unframed};
use crate::error::{ErrorKind, Result};
use crate::os::command::{Command, InputStream, Stdin};
use crate::reader::Reader;
use crate::writer::Writer;

impl<C: Chain<Bytes, Out = Bytes> + Send + 'static> Pipe<Attached<'static>, Bytes, C, Bytes> {
    /// Sends the items to a command, each followed by the record terminator of the source (a newline for lines), and
    /// continues with the command's output, which the next call divides into records.
    ///
    /// The stages before the command, and their source, run on a separate thread, including callbacks. Memory use is
    /// bounded by the buffers: if the command or the later stages are slow, the earlier ones wait. The command does not
    /// have to read all items; if it ends before, the source is closed at its current position.
    ///
    /// ```
    /// use millstream::{Reader, pipe::Pipe};
    /// let mut sorted = Pipe::from(Reader::memory("pear\nx\napple\n")?)
    ///     .lines()
    ///     .filter(|line| line.len() > 1)
    ///     .through(["sort"])?
    ///     .lines()
    ///     .map(|line| line.to_ascii_uppercase());
    /// assert_eq!(sorted.collect()?, [b"APPLE".to_vec(), b"PEAR".to_vec()]);
    /// # Ok::<(), millstream::Error>(())
    /// ```
    ///
    /// # Errors
    /// Fails if the command cannot be started, or if the operating system has no file descriptors or threads left.
    /// Later, the pipe that continues returns these errors, after all records of the command's output: an error of the
    /// earlier stages or their source, after which the command gets the end of its input; otherwise
    /// [`CommandFailed`](ErrorKind::CommandFailed) if the command fails.
    pub fn through(self, command: impl Into<Command>) -> Result<Pipe<Unframed, (), (), ()>> {
        self.reader_through(command).map(Pipe::from)
    }

    /// Returns the reader of the command's output.
    #[doc(hidden)]
    pub fn reader_through(self, command: impl Into<Command>) -> Result<Reader> {
        through(self, command.into(), |pipe, out| pipe.pass_to(out, |out, item, end| crate::put!(out, item, end)))
    }
}

impl<C, V> Pipe<Attached<'static>, Bytes, C, Value<V>>
where
    C: Chain<Bytes, Out = Value<V>> + Send + 'static,
    V: AsRef<[u8]> + 'static,
{
    /// Sends each value's bytes to a command; see [the method for bytes](Pipe::through).
    ///
    /// # Errors
    /// Returns the errors of the method for bytes.
    pub fn through(self, command: impl Into<Command>) -> Result<Pipe<Unframed, (), (), ()>> {
        let write: WriteItems<C, Value<V>> =
            |pipe, out| pipe.pass_to(out, |out, value, end| crate::put!(out, value.as_ref(), end));
        through(self, command.into(), write).map(Pipe::from)
    }
}

/// Writes all items of a pipe.
type WriteItems<C, O> = fn(&mut Pipe<Attached<'static>, Bytes, C, O>, &mut Writer) -> Result<()>;

fn through<C: Send + 'static, O: 'static>(
    mut pipe: Pipe<Attached<'static>, Bytes, C, O>,
    command: Command,
    write: WriteItems<C, O>,
) -> Result<Reader> {
    let name = command.name();
    let input = InputStream::interruptible(pipe.feed.feed.interrupters()?, move |end, stop| {
        let mut out = Writer::builder().name(&name).cancel(stop).borrow_fd(end)?;
        match write(&mut pipe, &mut out).and_then(|()| out.close().map(drop)) {
            // The command needs no more items.
            Err(error) if error.kind() == ErrorKind::BrokenPipe && error.name() == Some(&*name) => Ok(()),
            written => written,
        }
    });
    Reader::command(command.stdin(Stdin::Stream(input)))
}
