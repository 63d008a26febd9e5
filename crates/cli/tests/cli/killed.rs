//! Commands that are killed while they write an object to versitygw. An object is whole, or as it was before, and what
//! is left of its upload can be removed.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::place::{Place, Words, until};
use crate::server::Server;
use crate::versitygw::{KEY, REGION, SECRET, versitygw};

/// The length of an object: five parts of the smallest size that stores accept, and a part of one.
const LENGTH: usize = 26_000_000;

/// Returns bytes of which no part occurs twice.
fn content(version: u64) -> Vec<u8> {
    let numbers = (0..LENGTH as u64 / 8).map(|at| (version << 32 | at).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    numbers.flat_map(u64::to_le_bytes).collect()
}

struct Store {
    server: Server,
    place: Place,
    /// The contents of the files `0` and `1`.
    contents: [Vec<u8>; 2],
}

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Killed,
    /// It succeeded after this time.
    Completed(Duration),
}

impl Store {
    fn new() -> Option<Store> {
        let server = versitygw()?;
        fs::create_dir(server.path("objects").join("bucket")).unwrap();
        let contents = [0, 1].map(content);
        let place = Place::new().file("0", &contents[0]).file("1", &contents[1]);
        Some(Store { server, place, contents })
    }

    fn stored(&self, words: Words) -> Words {
        at_versitygw(words, &self.server)
    }

    /// Writes an object with the content of this version, and kills the command after this time.
    fn write(&self, key: &str, version: usize, delay: Duration) -> End {
        let words = self.place.run(&format!("-o s3://bucket/{key} --part-size 5MiB -- cat {version}"));
        let start = Instant::now();
        let mut command = self.stored(words).start();
        while start.elapsed() < delay {
            if !command.is_running() {
                let seen = command.ends();
                assert!(seen.status.success(), "{}", seen.stderr);
                return End::Completed(start.elapsed());
            }
            std::thread::sleep(Duration::from_micros(200));
        }
        // It may have ended since.
        command.send(Signal::KILL);
        if command.ends().status.success() { End::Completed(start.elapsed()) } else { End::Killed }
    }

    /// Returns the version of an object, which must be whole, or `None` if it does not exist.
    fn version(&self, key: &str) -> Option<usize> {
        let seen = self.stored(self.place.run(&format!("s3://bucket/{key}"))).ends();
        if seen.stderr.contains("404") {
            assert_eq!((seen.status.code(), seen.stdout.len()), (Some(1), 0), "{key}: {}", seen.stderr);
            return None;
        }
        assert!(seen.status.success(), "{key}: {}", seen.stderr);
        let version = self.contents.iter().position(|content| *content == seen.stdout);
        Some(version.unwrap_or_else(|| panic!("{key}: {} bytes of no version", seen.stdout.len())))
    }

    /// Removes the unfinished uploads, of which nothing remains, and returns how many there were each time. The server may
    /// still be storing a part of a connection that is gone, and then the upload exists again after it was removed.
    fn remove_uploads(&self) -> Vec<usize> {
        let uploads = |words: &str| self.stored(self.place.words("uploads").and(words)).succeeds().stdout;
        let mut removed = Vec::new();
        until("nothing is left of uploads", || {
            let lines = uploads("abort --older-than 0s s3://bucket/");
            removed.push(lines.iter().filter(|byte| **byte == b'\n').count());
            let parts = self.server.path("objects/bucket/.sgwtmp");
            (uploads("ls s3://bucket/").is_empty() && files(&parts).is_empty()).then_some(())
        });
        removed
    }
}

/// Sets the variables that lead to a server.
pub(crate) fn at_versitygw(words: Words, server: &Server) -> Words {
    let words = words.env("AWS_ENDPOINT_URL", &server.url("")).env("AWS_REGION", REGION);
    words.env("AWS_ACCESS_KEY_ID", KEY).env("AWS_SECRET_ACCESS_KEY", SECRET)
}

/// Returns the files in a folder and in those below it.
fn files(folder: &Path) -> Vec<PathBuf> {
    let all = walkdir::WalkDir::new(folder).into_iter().filter_map(Result::ok);
    all.filter(|entry| entry.file_type().is_file()).map(walkdir::DirEntry::into_path).collect()
}

#[test]
fn a_command_that_is_killed_leaves_a_whole_object_or_none() {
    let Some(store) = Store::new() else { return };
    let points: u32 = if std::env::var_os("MILLSTREAM_DEEP").is_some() { 300 } else { 12 };
    let End::Completed(mut longest) = store.write("replaced", 0, Duration::MAX) else { unreachable!() };
    assert_eq!((store.version("replaced"), store.remove_uploads()), (Some(0), vec![0]));
    let (mut killed, mut completed, mut appeared, mut left, mut again) = (0, 0, 0, 0, 0);
    let (mut point, mut delay, mut existing) = (0, Duration::ZERO, 0);
    // It continues until a command is not killed in time.
    while point < points || completed == 0 {
        delay = if point < points { longest * 5 * (point * 2 + 1) / (points * 8) } else { delay * 2 };
        let (key, before, version) = match point % 2 {
            0 => ("replaced".into(), Some(existing), 1 - existing),
            _ => (format!("new-{point}"), None, 0),
        };
        let end = store.write(&key, version, delay);
        let removed = store.remove_uploads();
        left += usize::from(removed[0] > 0);
        again += usize::from(removed[1..].iter().any(|count| *count > 0));
        let after = store.version(&key);
        match end {
            End::Completed(time) => {
                assert_eq!(after, Some(version), "{key}");
                longest = longest.min(time);
                completed += 1;
            }
            End::Killed => {
                assert!(after == before || after == Some(version), "{key}: {after:?} instead of {before:?}");
                killed += 1;
                appeared += u32::from(after != before);
            }
        }
        match (before, after) {
            (Some(_), Some(version)) => existing = version,
            (None, Some(_)) => fs::remove_file(store.server.path("objects/bucket").join(&key)).unwrap(),
            (_, None) => {}
        }
        point += 1;
    }
    println!(
        "{killed} commands were killed, {appeared} of them after the request that completes the object; {left} left an \
         upload, and {again} had to be removed again; {completed} commands ended before"
    );
    assert!(killed > 0 && completed > 0 && left > 0 && left <= killed, "{killed}, {completed}, {left}");
}
