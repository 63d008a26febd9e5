//! Writes and completes the outputs of a run together: the tee files and the main output.

use std::time::Duration;

use millstream::{CancelToken, Result, Writer};

use millstream::hash::Algorithm;

use super::checksum::{Checksum, Hashed};
use super::network::Network;
use super::options::Options;
use super::sink::Sink;

/// The writers; the main output is the last one. If records are only counted, this is empty.
pub(super) struct Outputs(Vec<Output>);

struct Output {
    writer: Writer,
    hashed: Option<Hashed>,
    /// Whether bytes are passed on as soon as they arrive, which is useless for a file that is not visible yet.
    prompt: bool,
}

impl Outputs {
    /// Opens all outputs or none: if opening one fails, the already opened ones are removed. `size` is the expected size of
    /// an output. If `states_limits` is true, prints how long outputs may be whose length is not known.
    pub(super) fn open(
        options: &Options,
        size: Option<u64>,
        states_limits: bool,
        token: &CancelToken,
    ) -> Result<Outputs> {
        let network = options.settings.network().expecting(size);
        let open = |(sink, hash)| Output::open(sink, hash, options, &network, token);
        let outputs = options.sinks().map(open).collect::<Result<_>>()?;
        if states_limits {
            options.sinks().for_each(|(sink, _)| sink.state_limit(&network));
        }
        Ok(Outputs(outputs))
    }

    /// Writes `bytes` to each output.
    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<()> {
        for output in &mut self.0 {
            output.writer.write(bytes)?;
            if output.prompt {
                output.writer.flush()?;
            }
        }
        Ok(())
    }

    /// Returns the time spent waiting for the outputs.
    pub(super) fn waited(&self) -> Duration {
        self.0.iter().map(|output| output.writer.waited()).sum()
    }

    /// Completes all outputs: files appear under their names. Returns the checksum of the main output.
    pub(super) fn close(self) -> Result<Option<Checksum>> {
        let mut checksum = None;
        for output in self.0 {
            output.writer.close()?;
            checksum = output.hashed.map(Hashed::close).transpose()?;
        }
        Ok(checksum)
    }

    /// Abandons the outputs: written bytes are passed on if they are visible, and partial files are removed (unless the
    /// options keep them). A compressed stream gets no end marker, so its readers can detect this. Errors are not
    /// reported, because an earlier error is the reason.
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
    fn open(
        sink: &Sink,
        hash: Option<Algorithm>,
        options: &Options,
        network: &Network,
        token: &CancelToken,
    ) -> Result<Output> {
        let builder = || options.writer().cancel(token);
        let encode = options.encode(sink)?;
        let (writer, hashed) = match hash {
            None => (sink.open(options.for_output(sink, options.encoded(encode, builder())), network)?, None),
            Some(algorithm) => {
                let (writer, hashed) = Hashed::open(algorithm, sink, encode, options, network, builder)?;
                (writer, Some(hashed))
            }
        };
        let prompt = !options.flushes() && (options.is_in_place() || !sink.appears_at_end());
        Ok(Output { writer, hashed, prompt })
    }
}
