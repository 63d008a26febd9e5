//! One run of the command in a separate directory, and the files that it must leave there.

use std::fs::{self, File};
use std::io::{Read, Seek};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use tempfile::TempDir;

/// The content of the output before the command runs.
#[derive(Clone, Copy, Debug)]
pub enum Before {
    Absent,
    Present,
}

const OLD: &[u8] = b"what was here before\n";

/// A directory with the input, where the command runs.
pub struct Place {
    directory: TempDir,
    data: Vec<u8>,
    expected: Expected,
}

/// The content of the output file after a complete run.
#[derive(Default)]
enum Output {
    /// A copy of the input.
    #[default]
    Input,
    File(Vec<u8>),
    /// No output file is written.
    Nothing,
}

/// The files that a complete run leaves.
#[derive(Default)]
struct Expected {
    output: Output,
    /// The printed output, if it is checked.
    stdout: Option<Vec<u8>>,
}

impl Place {
    /// Creates a place whose input is `len` bytes of numbered lines.
    pub fn new(len: usize) -> Place {
        let mut data: Vec<u8> = (0..).flat_map(|i| format!("{i}\n").into_bytes()).take(len).collect();
        data.shrink_to_fit();
        Place::with(&data.clone(), data)
    }

    /// Creates a place with this input, from which the command creates `data`.
    pub fn with(input: &[u8], data: Vec<u8>) -> Place {
        let place = Place { directory: tempfile::tempdir().unwrap(), data, expected: Expected::default() };
        fs::write(place.input(), input).unwrap();
        fs::write(place.input().with_extension("bson"), documents(6_000)).unwrap();
        let gzip = Command::new("gzip").arg("-kf").arg(place.input()).status().unwrap();
        assert!(gzip.success());
        place
    }

    pub fn input(&self) -> PathBuf {
        self.directory.path().join("input")
    }

    /// The directory contains only the output, so that any leftover next to it is detected.
    pub fn output_directory(&self) -> PathBuf {
        self.directory.path().join("out")
    }

    /// Recreates the directory of the output, with the output as it was before.
    pub fn reset(&self, before: Before) {
        let directory = self.output_directory();
        let _ = fs::remove_dir_all(&directory);
        fs::create_dir(&directory).unwrap();
        if let Before::Present = before {
            fs::write(directory.join("output"), OLD).unwrap();
        }
    }

    /// Replaces `IN`, `IN.gz` and `OUT` by their paths.
    pub fn arguments(&self, words: &[&str]) -> Vec<String> {
        let (input, out) = (self.input(), self.output_directory().join("output"));
        let replace = |word: &&str| word.replace("IN", input.to_str().unwrap()).replace("OUT", out.to_str().unwrap());
        words.iter().map(replace).collect()
    }

    /// Sets the expected result of these words: the result of a run without faults.
    pub fn expect(&mut self, words: &[&str]) {
        self.reset(Before::Absent);
        let mut argv = vec![millstream().to_str().unwrap().to_string()];
        argv.extend(self.arguments(words));
        let outcome = self.run(&argv);
        assert!(outcome.status.success(), "{words:?}: {outcome:?}");
        let output = fs::read(self.output_directory().join("output")).ok();
        assert!(output.is_some() || !outcome.stdout.is_empty(), "{words:?} makes nothing");
        if words[0] == "run" {
            assert!(output.as_ref().unwrap_or(&outcome.stdout) == &self.data, "{words:?} is no copy");
        }
        let output = output.map_or(Output::Nothing, Output::File);
        self.expected = Expected { output, stdout: Some(outcome.stdout) };
    }

    /// Runs the command (`argv` after its prefix) until it ends by itself.
    pub fn run(&self, argv: &[String]) -> Outcome {
        let (mut stdout, mut stderr) = (tempfile::tempfile().unwrap(), tempfile::tempfile().unwrap());
        let mut child = Command::new(&argv[0])
            .args(&argv[1..])
            .stdin(Stdio::null())
            .stdout(stdout.try_clone().unwrap())
            .stderr(stderr.try_clone().unwrap())
            .spawn()
            .unwrap();
        let deadline = Instant::now() + Duration::from_secs(60);
        let status = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break status;
            }
            if Instant::now() > deadline {
                child.kill().unwrap();
                child.wait().unwrap();
                panic!("still running after a minute: {argv:?}");
            }
            thread::sleep(Duration::from_millis(1));
        };
        let stderr = String::from_utf8_lossy(&read_all(&mut stderr)).into_owned();
        Outcome { status, stdout: read_all(&mut stdout), stderr }
    }

    /// Whether the file system supports files without a name.
    fn has_nameless_files(&self) -> bool {
        use rustix::fs::{Mode, OFlags};
        rustix::fs::open(self.output_directory(), OFlags::TMPFILE | OFlags::WRONLY, Mode::RUSR).is_ok()
    }

    /// Panics unless the files are valid after this ending.
    pub fn check(&self, outcome: &Outcome, before: Before, what: &str) {
        // If one of its own calls fails, the standard library's code that starts a thread aborts the process. The code
        // that starts the process (the loader even by SIGSEGV) and the allocator do so too.
        let aborted = outcome.stderr.contains("std/src/sys/pal/unix/stack_overflow.rs");
        assert!(aborted || !outcome.stderr.contains("panicked"), "{what}: {}", outcome.stderr);
        let is_signal = |signal: Signal| outcome.status.signal() == Some(signal.as_raw());
        assert!(!is_signal(Signal::BUS), "{what}: {outcome:?}");
        let mut names: Vec<_> =
            fs::read_dir(self.output_directory()).unwrap().map(|e| e.unwrap().file_name()).collect();
        names.retain(|name| name != "output");
        // A process that is killed cannot clean up: only a file that has no name yet leaves no trace.
        let is_ended = aborted || is_signal(Signal::KILL) || is_signal(Signal::ABORT);
        let may_leave = is_ended && (matches!(before, Before::Present) || !self.has_nameless_files());
        assert!(names.is_empty() || may_leave, "{what}: left over: {names:?}; {outcome:?}");
        let now = fs::read(self.output_directory().join("output")).ok();
        let printed = self.expected.stdout.as_deref();
        let all_is_printed = printed.is_none_or(|printed| printed == outcome.stdout);
        let is_beginning = printed.is_none_or(|printed| printed.starts_with(&outcome.stdout));
        let as_before = match before {
            Before::Absent => now.is_none(),
            Before::Present => now.as_deref() == Some(OLD),
        };
        let whole = match &self.expected.output {
            Output::Input => now.as_deref() == Some(&self.data[..]),
            Output::File(expected) => now.as_ref() == Some(expected),
            Output::Nothing => as_before,
        };
        match outcome.status.success() {
            true => {
                assert!(whole, "{what}: status 0, but the output is not whole; {outcome:?}");
                assert!(all_is_printed, "{what}: status 0, but {} bytes are printed", outcome.stdout.len());
            }
            false => assert!(
                as_before || whole,
                "{what}: a part of the output, {:?} bytes; {outcome:?}",
                now.map(|now| now.len())
            ),
        }
        assert!(is_beginning, "{what}: something else is printed");
    }
}

/// Returns `count` consecutive documents: `{"n": 0, "s": "text 0"}` and so on.
fn documents(count: i32) -> Vec<u8> {
    let mut bytes = Vec::new();
    for n in 0..count {
        let text = format!("text {n}");
        let mut body = [b"\x10n\0", &n.to_le_bytes()[..], b"\x02s\0"].concat();
        body.extend((text.len() as i32 + 1).to_le_bytes());
        body.extend([text.as_bytes(), b"\0\0"].concat());
        bytes.extend((body.len() as i32 + 4).to_le_bytes());
        bytes.extend(body);
    }
    bytes
}

fn read_all(file: &mut File) -> Vec<u8> {
    file.rewind().unwrap();
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).unwrap();
    bytes
}

/// How the command ended, and its messages.
pub struct Outcome {
    pub status: ExitStatus,
    pub stdout: Vec<u8>,
    pub stderr: String,
}

impl std::fmt::Debug for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}, {} bytes printed, saying {:?}", self.status, self.stdout.len(), self.stderr)
    }
}

/// The command under test.
pub fn millstream() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_millstream"))
}
