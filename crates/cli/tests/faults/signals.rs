//! Signals at random times, in every mode of `--each`, with every kind of output.
//!
//! Status 0 means that the output is complete, and the statistics agree with the status. Otherwise the command was
//! killed by the signal, a file is unchanged, no file is left next to it, and no process remains.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use fastrand::Rng;
use rustix::fs::{CWD, Mode, OFlags, mkfifoat};
use rustix::process::{Pid, Signal, kill_process};

use crate::command::millstream;

/// The number of runs, and the number with `MILLSTREAM_DEEP`.
const RUNS: (u64, u64) = (60, 3000);

/// A time that no run needs.
const PATIENCE: Duration = Duration::from_secs(60);

const MODES: [&[&str]; 9] = [
    &["in"],
    &["in", "--stage", "noop"],
    &["--", "cat", "in"],
    &["in", "--each", "cat"],
    &["in", "--each", "sleep 0.01; cat; sleep 0.01", "-j", "3", "--block", "40K"],
    &["in", "--each", "cat", "-j", "3", "--block", "40K", "--unordered"],
    &["in", "--each", "sleep 0.02; cat", "-j", "2", "--unordered"],
    &["in", "--each", "cat", "-j", "3", "--block", "10K", "--round-robin"],
    &["in", "--each", "sleep 0.02; cat; sleep 0.01", "-j", "2", "--on-error", "skip", "--round-robin"],
];

const OUTPUTS: [Output; 8] = [
    Output::File("out"),
    Output::File("old"),
    Output::File("out.gz"),
    Output::Tee,
    Output::Stdout,
    Output::Fifo,
    Output::Tcp,
    Output::Unix,
];

#[derive(Clone, Copy, Debug)]
enum Output {
    File(&'static str),
    Tee,
    Stdout,
    Fifo,
    Tcp,
    Unix,
}

/// The data that a peer has received when it has seen the end, or when it is known that no more data will arrive.
type Peer = thread::JoinHandle<Vec<u8>>;

/// Reads the data that arrives on a descriptor opened by `open`, which returns `None` while no descriptor is available.
fn peer<T: Read>(is_over: &Arc<AtomicBool>, mut open: impl FnMut() -> Option<T> + Send + 'static) -> Peer {
    let is_over = is_over.clone();
    thread::spawn(move || {
        let mut got = Vec::new();
        loop {
            let over = is_over.load(Ordering::Acquire);
            if let Some(mut stream) = open() {
                let _ = stream.read_to_end(&mut got); // a reset does not matter here
                return got;
            }
            if over {
                return got;
            }
            thread::sleep(Duration::from_millis(1));
        }
    })
}

/// Returns the processes that were started with this in their environment.
fn processes(mark: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let environment = fs::read(entry.path().join("environ")).unwrap_or_default();
        if environment.split(|byte| *byte == 0).any(|word| word == mark.as_bytes()) {
            let command = fs::read(entry.path().join("cmdline")).unwrap_or_default();
            found.push(format!("{:?}: {}", entry.file_name(), String::from_utf8_lossy(&command).replace('\0', " ")));
        }
    }
    found
}

fn sorted(bytes: &[u8]) -> Vec<&[u8]> {
    let mut lines: Vec<_> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
    lines.sort_unstable();
    lines
}

fn decoded(path: &Path) -> Vec<u8> {
    let done = Command::new("gzip").arg("-dc").arg(path).output().unwrap();
    assert!(done.status.success(), "{done:?}");
    done.stdout
}

/// Runs the command once, with a signal after `delay`. Returns whether the run was complete.
fn run(mode: &[&str], output: Output, signal: Signal, delay: Duration, mark: &str, input: &[u8]) -> bool {
    let what = format!("{mode:?} {output:?} {signal:?} after {delay:?}");
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name);
    fs::write(path("in"), input).unwrap();
    fs::create_dir(path("outputs")).unwrap();
    fs::write(path("outputs/old"), "old\n").unwrap();

    let is_over = Arc::new(AtomicBool::new(false));
    let (words, mut receiver): (Vec<String>, Option<Peer>) = match output {
        Output::File(name) => (vec!["-o".into(), format!("outputs/{name}"), "--hash".into(), "crc32c".into()], None),
        Output::Tee => (["-o", "outputs/out", "--tee", "outputs/old"].map(String::from).to_vec(), None),
        Output::Stdout => (vec![], None),
        Output::Fifo => {
            mkfifoat(CWD, path("fifo"), Mode::RWXU).unwrap();
            let fifo = path("fifo");
            // This reader waits for bytes, not for a writer, which may never open the FIFO.
            let file = rustix::fs::open(&fifo, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty());
            let file = File::from(file.unwrap());
            let over = is_over.clone();
            let receiver = thread::spawn(move || {
                let (mut file, mut got, mut piece) = (file, Vec::new(), vec![0; 1 << 16]);
                loop {
                    let is_last = over.load(Ordering::Acquire);
                    match file.read(&mut piece) {
                        Ok(n) if n > 0 => got.extend_from_slice(&piece[..n]),
                        _ if is_last => return got,
                        _ => thread::sleep(Duration::from_millis(1)),
                    }
                }
            });
            (vec!["-o".into(), "fifo".into()], Some(receiver))
        }
        Output::Tcp => {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            listener.set_nonblocking(true).unwrap();
            let address = format!("tcp:{}", listener.local_addr().unwrap());
            let accept = move || {
                let stream = listener.accept().ok()?.0;
                stream.set_nonblocking(false).unwrap();
                Some(stream)
            };
            (vec!["-o".into(), address], Some(peer(&is_over, accept)))
        }
        Output::Unix => {
            let listener = UnixListener::bind(path("socket")).unwrap();
            listener.set_nonblocking(true).unwrap();
            let accept = move || {
                let stream = listener.accept().ok()?.0;
                stream.set_nonblocking(false).unwrap();
                Some(stream)
            };
            (vec!["-o".into(), "unix:socket".into()], Some(peer(&is_over, accept)))
        }
    };

    let (name, value) = mark.split_once('=').unwrap();
    let mut child = Command::new(millstream())
        .args(["run", "--stats", "stats"])
        .args(words)
        .args(mode)
        .env(name, value)
        .current_dir(place.path())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let collect = |mut pipe: Box<dyn Read + Send>| {
        thread::spawn(move || {
            let mut got = Vec::new();
            pipe.read_to_end(&mut got).unwrap();
            got
        })
    };
    let (stdout, stderr) =
        (collect(Box::new(child.stdout.take().unwrap())), collect(Box::new(child.stderr.take().unwrap())));
    thread::sleep(delay);
    let _ = kill_process(Pid::from_child(&child), signal);
    let start = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if start.elapsed() > PATIENCE {
            let left = processes(mark);
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("{what}: it hangs; {left:?}");
        }
        thread::sleep(Duration::from_millis(1));
    };
    is_over.store(true, Ordering::Release);
    let received = receiver.take().map(|peer| peer.join().unwrap());
    // A signal that arrives before the command handles signals kills it immediately; its guard notices this slightly
    // later.
    let mut left = processes(mark);
    while !left.is_empty() && start.elapsed() < PATIENCE {
        thread::sleep(Duration::from_millis(5));
        left = processes(mark);
    }
    assert!(left.is_empty(), "{what}: processes are left: {left:?}");
    let stdout = stdout.join().unwrap();
    let stderr = String::from_utf8_lossy(&stderr.join().unwrap()).into_owned();
    assert!(!stderr.contains("panicked"), "{what}: {stderr}");

    let is_complete = status.success();
    assert!(is_complete || status.signal() == Some(signal.as_raw()), "{what}: {status}, {stderr}");
    let result = match output {
        Output::File("out.gz") => path("outputs/out.gz").exists().then(|| decoded(&path("outputs/out.gz"))),
        Output::File(name) => fs::read(path("outputs").join(name)).ok(),
        Output::Tee => fs::read(path("outputs/out")).ok(),
        Output::Stdout => Some(stdout),
        Output::Fifo | Output::Tcp | Output::Unix => received,
    };
    let is_in_order = !mode.iter().any(|word| ["--unordered", "--round-robin"].contains(word));
    let is_whole = |bytes: &[u8]| if is_in_order { bytes == input } else { sorted(bytes) == sorted(input) };
    let whole = result.as_deref().is_some_and(is_whole);
    if is_complete {
        assert!(whole, "{what}: status 0, and {:?} of {} bytes", result.map(|bytes| bytes.len()), input.len());
    } else if let (Output::File(_) | Output::Tee, Some(bytes)) = (output, &result) {
        assert!(whole || bytes == b"old\n", "{what}: a part of the output is in place: {} bytes", bytes.len());
    }
    if let Some(stats) = fs::read_to_string(path("stats")).ok().filter(|stats| !stats.is_empty()) {
        let says_complete = stats.contains("\"complete\": true");
        assert!(says_complete || !is_complete, "{what}: status 0, and statistics say {stats}");
        assert!(!says_complete || whole, "{what}: statistics say that it is complete");
    }
    let mut names: Vec<_> =
        fs::read_dir(path("outputs")).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.retain(|name| !["old", "out", "out.gz"].contains(&name.as_str()));
    assert!(names.is_empty(), "{what}: left behind: {names:?}");
    is_complete
}

#[test]
fn at_random_times_in_every_mode() {
    let runs = if std::env::var_os("MILLSTREAM_DEEP").is_some() { RUNS.1 } else { RUNS.0 };
    let input: Vec<u8> = (1..=60_000).flat_map(|n| format!("{n}\n").into_bytes()).collect();
    let seed = std::time::UNIX_EPOCH.elapsed().unwrap().as_nanos() as u64;
    let complete: u64 = thread::scope(|scope| {
        let workers: Vec<_> = (0..2)
            .map(|worker| {
                let input = &input;
                scope.spawn(move || {
                    let mut random = Rng::with_seed(seed.wrapping_add(worker));
                    let mut complete = 0;
                    for n in (worker..runs).step_by(2) {
                        let mode = MODES[n as usize % MODES.len()];
                        let output = OUTPUTS[(n as usize / MODES.len() + n as usize) % OUTPUTS.len()];
                        let signal = [Signal::TERM, Signal::INT, Signal::HUP][random.usize(..3)];
                        let longest = [10_000, 60_000, 250_000][random.usize(..3)];
                        let delay = Duration::from_micros(random.u64(..longest));
                        let mark = format!("MILLSTREAM_TEST_RUN={}-{seed}-{n}", std::process::id());
                        complete += u64::from(run(mode, output, signal, delay, &mark, input));
                    }
                    complete
                })
            })
            .collect();
        workers.into_iter().map(|worker| worker.join().unwrap()).sum()
    });
    let _ = writeln!(std::io::stderr(), "signals: {runs} runs, {complete} of them complete");
}
