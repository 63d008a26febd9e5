//! One run of the command in a directory of its own, and what it must leave behind.

use std::fs::{self, File};
use std::io::{Read, Seek};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// What the output is before the command runs.
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
}

impl Place {
    /// A place whose input is `len` bytes of numbered lines.
    pub fn new(len: usize) -> Place {
        let mut data: Vec<u8> = (0..).flat_map(|i| format!("{i}\n").into_bytes()).take(len).collect();
        data.shrink_to_fit();
        let place = Place { directory: tempfile::tempdir().unwrap(), data };
        fs::write(place.input(), &place.data).unwrap();
        let gzip = Command::new("gzip").arg("-kf").arg(place.input()).status().unwrap();
        assert!(gzip.success());
        place
    }

    pub fn input(&self) -> PathBuf {
        self.directory.path().join("input")
    }

    /// The output is alone in a directory, so that whatever is left beside it shows.
    pub fn output_directory(&self) -> PathBuf {
        self.directory.path().join("out")
    }

    /// Makes the output directory new, and in it the output as it is before.
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

    /// Runs the command (`argv` with whatever is before it) until it ends by itself.
    pub fn run(&self, argv: &[String]) -> Outcome {
        let mut stderr = tempfile::tempfile().unwrap();
        let mut child = Command::new(&argv[0])
            .args(&argv[1..])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
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
        Outcome { status, stderr: read_all(&mut stderr) }
    }

    /// Panics unless what is there now is what may be there after such an end.
    pub fn check(&self, outcome: &Outcome, before: Before, what: &str) {
        // The language's own start of a thread ends the process where a call of its own fails.
        let aborted = outcome.stderr.contains("std/src/sys/pal/unix/stack_overflow.rs");
        assert!(aborted || !outcome.stderr.contains("panicked"), "{what}: {}", outcome.stderr);
        let mut names: Vec<_> =
            fs::read_dir(self.output_directory()).unwrap().map(|e| e.unwrap().file_name()).collect();
        names.retain(|name| name != "output");
        // A process that is killed cannot tidy up.
        if !aborted && outcome.status.signal() != Some(9) {
            assert!(names.is_empty(), "{what}: left behind: {names:?}; {outcome:?}");
        }
        let now = fs::read(self.output_directory().join("output")).ok();
        let whole = now.as_deref() == Some(&self.data[..]);
        let as_before = match before {
            Before::Absent => now.is_none(),
            Before::Present => now.as_deref() == Some(OLD),
        };
        match outcome.status.success() {
            true => assert!(whole, "{what}: status 0, but the output is not whole; {outcome:?}"),
            false => assert!(
                as_before || whole,
                "{what}: a part of the output, {:?} bytes; {outcome:?}",
                now.map(|now| now.len())
            ),
        }
    }
}

fn read_all(file: &mut File) -> String {
    file.rewind().unwrap();
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).unwrap();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// How the command ended and what it said.
#[derive(Debug)]
pub struct Outcome {
    pub status: ExitStatus,
    pub stderr: String,
}

/// The command under test.
pub fn millstream() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_millstream"))
}
