//! The outputs of a run: the tee files and the output itself, written together and completed together.

use std::time::Duration;

use millstream::{CancelToken, Result, Writer};

use crate::hash::Algorithm;

use super::checksum::{Checksum, Hashed};
use super::options::Options;
use super::sink::Sink;

/// The writers: the output is the last one. Nothing when records are only counted.
pub(super) struct Outputs(Vec<Output>);

struct Output {
    writer: Writer,
    hashed: Option<Hashed>,
    /// Whether bytes are passed on as soon as they arrive. Nothing is visible in a file that is not in place yet.
    prompt: bool,
}

impl Outputs {
    /// Opens all of them, or none: those already open when one fails are removed again.
    pub(super) fn open(options: &Options, token: &CancelToken) -> Result<Outputs> {
        let open = |(sink, hash)| Output::open(sink, hash, options, token);
        options.sinks().map(open).collect::<Result<_>>().map(Outputs)
    }

    /// Writes `bytes` to each of them.
    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<()> {
        for output in &mut self.0 {
            output.writer.write(bytes)?;
            if output.prompt {
                output.writer.flush()?;
            }
        }
        Ok(())
    }

    /// How long we have waited for the outputs.
    pub(super) fn waited(&self) -> Duration {
        self.0.iter().map(|output| output.writer.waited()).sum()
    }

    /// Completes all of them: files appear under their names. Returns the checksum of the output.
    pub(super) fn close(self) -> Result<Option<Checksum>> {
        let mut checksum = None;
        for output in self.0 {
            output.writer.close()?;
            checksum = output.hashed.map(Hashed::close).transpose()?;
        }
        Ok(checksum)
    }

    /// Gives up: written bytes are passed on where they are visible, and partial files are removed (unless they are to
    /// be kept). A compressed stream gets no end, so that its readers notice. The reason is another error, so this one
    /// is not reported.
    pub(super) fn abandon(self) {
        for mut output in self.0 {
            let _ = output.writer.flush();
            output.writer.abort();
            if let Some(hashed) = output.hashed {
                hashed.abort();
            }
        }
    }
}

impl Output {
    fn open(sink: &Sink, hash: Option<Algorithm>, options: &Options, token: &CancelToken) -> Result<Output> {
        let builder = || options.writer().cancel(token);
        let encode = options.encode(sink)?;
        let (writer, hashed) = match hash {
            None => (sink.open(options.for_output(sink, options.encoded(encode, builder())))?, None),
            Some(algorithm) => {
                let (writer, hashed) = Hashed::open(algorithm, sink, encode, options, builder)?;
                (writer, Some(hashed))
            }
        };
        let prompt = !options.flushes() && (options.is_in_place() || !sink.is_regular_file());
        Ok(Output { writer, hashed, prompt })
    }
}
