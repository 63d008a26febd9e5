//! Non-blocking standard input and output, as a parent may pass them on: the command waits for them, does not mistake
//! them for the end or an error, and writes all bytes in order although most writes are short.

use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};

use crate::command::millstream;

#[test]
fn both_ends_would_block() {
    for (option, value) in [("--flush-policy", "when-full"), ("--flush-policy", "line"), ("--flush-delay", "1ms")] {
        let data: Vec<u8> = (0..).flat_map(|i| format!("{i}\n").into_bytes()).take(1_000_003).collect();
        let (stdin, mut feed) = std::io::pipe().unwrap();
        let (mut drain, stdout) = std::io::pipe().unwrap();
        for end in [rustix::fd::AsFd::as_fd(&stdin), rustix::fd::AsFd::as_fd(&stdout)] {
            fcntl_setfl(end, fcntl_getfl(end).unwrap() | OFlags::NONBLOCK).unwrap();
        }
        let mut child = Command::new(millstream())
            .args(["run", option, value])
            .stdin(Stdio::from(stdin))
            .stdout(Stdio::from(stdout))
            .spawn()
            .unwrap();
        let sent = data.clone();
        let feeder = thread::spawn(move || {
            for (i, piece) in sent.chunks(7_919).enumerate() {
                feed.write_all(piece).unwrap();
                if i % 16 == 0 {
                    thread::sleep(Duration::from_millis(1));
                }
            }
        });
        let mut got = Vec::new();
        let mut piece = [0; 5_003];
        loop {
            let n = drain.read(&mut piece).unwrap();
            if n == 0 {
                break;
            }
            got.extend_from_slice(&piece[..n]);
            if got.len() % 16 == 0 {
                thread::sleep(Duration::from_millis(1));
            }
        }
        feeder.join().unwrap();
        assert!(child.wait().unwrap().success(), "{option} {value}");
        assert!(got == data, "{option} {value}: {} of {} bytes", got.len(), data.len());
    }
}
