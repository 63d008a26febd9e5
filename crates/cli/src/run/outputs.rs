//! The outputs of a run: the tee files and the output itself, written together and completed together.

use std::time::Duration;

use millstream::{CancelToken, Encode, Existing, FlushPolicy, Partial, Result, Writer, WriterBuilder};

use super::options::{Decode, Flush, Options};
use super::sink::Sink;

/// What is written to, in the order of writing. Nothing when records are only counted.
pub(super) struct Outputs(Vec<Output>);

struct Output {
    writer: Writer,
    /// Whether bytes go on as soon as they come. Nobody can see those in a file before it is complete.
    prompt: bool,
}

impl Outputs {
    /// Opens all of them, or none: those that are open when one fails are removed again.
    pub(super) fn open(options: &Options, token: &CancelToken) -> Result<Outputs> {
        let mut outputs = Vec::new();
        if !options.count {
            // The output is completed last: when it is there, everything is.
            let tees = options.tee.iter().map(|path| Sink::File(path.clone()));
            for sink in tees.chain([options.output.clone().unwrap_or(Sink::Stdout)]) {
                let prompt = options.flush.is_none() && (options.append || !sink.is_regular_file());
                outputs.push(Output { writer: sink.open(builder(options, token))?, prompt });
            }
        }
        Ok(Outputs(outputs))
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

    /// How long the outputs have kept us waiting.
    pub(super) fn waited(&self) -> Duration {
        self.0.iter().map(|output| output.writer.waited()).sum()
    }

    /// Completes all of them: files appear under their names.
    pub(super) fn close(self) -> Result<()> {
        self.0.into_iter().try_for_each(|output| output.writer.close().map(drop))
    }

    /// Gives up: what was written goes where it can be seen, and partial files are removed (unless they are to be
    /// kept). The reason is another error, so that this one has none.
    pub(super) fn abandon(self) {
        for mut output in self.0 {
            let _ = output.writer.flush();
        }
    }
}

fn builder(options: &Options, token: &CancelToken) -> WriterBuilder {
    let mut builder = Writer::builder()
        .existing(if options.append { Existing::Append } else { Existing::Replace })
        .partial(if options.keep_partial { Partial::Keep } else { Partial::Remove })
        .flush_policy(match options.flush {
            None | Some(Flush::WhenFull) => FlushPolicy::WhenFull,
            Some(Flush::Line) => FlushPolicy::Line,
            Some(Flush::Delay(delay)) => FlushPolicy::Delay(delay),
        })
        .cancel(token);
    if options.decode == Decode::Off {
        builder = builder.encode(Encode::Off);
    }
    if let Some(capacity) = options.buffer {
        builder = builder.capacity(capacity);
    }
    if let Some(timeout) = options.timeout {
        builder = builder.stall_timeout(timeout);
    }
    builder
}
