//! The sources of the competitors: a file, or the standard output of a command, opened with std only.

use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};

use clap::Args;
use rustix::pipe::fcntl_setpipe_size;

/// A file, or a command after `--`.
#[derive(Args)]
#[group(required = true, multiple = false, id = "SOURCE")]
pub struct Source {
    /// The file to read.
    pub file: Option<PathBuf>,
    /// The command whose standard output to read.
    #[arg(last = true)]
    pub command: Vec<String>,
}

/// A source opened with std.
pub enum Stream {
    File(File),
    Command(Child, ChildStdout),
}

/// The pipe size that Millstream also requests. With different sizes, the comparison would be of pipe sizes.
const PIPE: usize = 1 << 20;

impl Source {
    /// Opens the file, or starts the command and enlarges its pipe to 1 MiB.
    pub fn open(&self) -> io::Result<Stream> {
        if let Some(path) = &self.file {
            return Ok(Stream::File(File::open(path)?));
        }
        let mut child = Command::new(&self.command[0]).args(&self.command[1..]).stdout(Stdio::piped()).spawn()?;
        let stdout = child.stdout.take().expect("standard output is piped");
        fcntl_setpipe_size(&stdout, PIPE)?;
        Ok(Stream::Command(child, stdout))
    }
}

impl Stream {
    /// Waits for the command. Fails if it did not succeed.
    pub fn finish(self) -> io::Result<()> {
        match self {
            Stream::File(_) => Ok(()),
            Stream::Command(mut child, stdout) => {
                drop(stdout);
                let status = child.wait()?;
                if status.success() { Ok(()) } else { Err(io::Error::other(status.to_string())) }
            }
        }
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::File(file) => file.read(buffer),
            Stream::Command(_, stdout) => stdout.read(buffer),
        }
    }
}
