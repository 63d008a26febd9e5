//! The progress line, on a terminal and without one.

use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::process::Stdio;
use std::thread::{self, JoinHandle};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::place::{Place, Words};

/// A terminal, and a thread that reads the text shown on it until the last program has closed it.
struct Terminal {
    user: OwnedFd,
    screen: JoinHandle<String>,
}

impl Terminal {
    fn new() -> Terminal {
        let controller = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&controller).unwrap();
        unlockpt(&controller).unwrap();
        let name = ptsname(&controller, Vec::new()).unwrap();
        let user = File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
        tcsetwinsize(&user, Winsize { ws_row: 24, ws_col: 132, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
        let screen = thread::spawn(move || {
            let mut shown = Vec::new();
            // Linux reports EIO once no process has the terminal open.
            let _ = File::from(controller).read_to_end(&mut shown);
            String::from_utf8(shown).unwrap()
        });
        Terminal { user: user.into(), screen }
    }

    fn stdio(&self) -> Stdio {
        self.user.try_clone().unwrap().into()
    }

    /// Returns all text that was shown.
    fn shown(self) -> String {
        drop(self.user);
        self.screen.join().unwrap()
    }
}

/// Runs the command with standard error on a terminal, and standard output too if `both`.
pub(crate) fn on_a_terminal(words: Words, both: bool) -> String {
    let terminal = Terminal::new();
    let mut command = words.into_command();
    command.env("TERM", "xterm").stderr(terminal.stdio());
    command.stdout(if both { terminal.stdio() } else { Stdio::null() });
    assert!(command.status().unwrap().success());
    drop(command); // it holds the terminal, too
    terminal.shown()
}

#[test]
fn figures_are_shown_on_a_terminal() {
    let place = Place::new().file("a", "one\n".repeat(1000));
    let shown = on_a_terminal(place.run("a"), false);
    for part in ["3.91 KiB (", "B/s), 1,000 records", "100%", "ETA", " in 0s"] {
        assert!(shown.contains(part), "{part:?} is not in {shown:?}");
    }
}

#[test]
fn a_command_has_no_known_size() {
    let shown = on_a_terminal(Place::new().run("-- seq 1 1000"), false);
    assert!(shown.contains("1,000 records") && shown.contains("seq 1 1000"), "{shown:?}");
    assert!(!shown.contains("ETA") && !shown.contains('%'), "{shown:?}");
}

#[test]
fn compressed_files_are_measured_by_the_bytes_read() {
    let place = Place::new().file("a", "one\n".repeat(100_000));
    place.run("a -o a.gz").succeeds();
    let shown = on_a_terminal(place.run("a.gz"), false);
    assert!(shown.contains("100,000 records") && shown.contains("100%"), "{shown:?}");
    assert!(!shown.contains("101%"), "{shown:?}");
}

#[test]
fn a_slow_pace_is_seen_to_move() {
    let place = Place::new().file("a", "one\n".repeat(1000)).file("b", "two\n".repeat(1000));
    let shown = on_a_terminal(place.run("a b --rate-limit 10K"), false);
    let percentages = shown.split('%').filter_map(|text| text.rsplit(' ').next()?.parse::<u8>().ok());
    let between: std::collections::BTreeSet<u8> = percentages.filter(|percent| (1..100).contains(percent)).collect();
    assert!(between.len() >= 3, "{between:?} in {shown:?}");
    assert!(shown.contains("7.81 KiB") && shown.contains("100%"), "{shown:?}");
}

#[test]
fn records_and_progress_do_not_share_a_terminal() {
    let place = Place::new().file("a", "one\n");
    assert_eq!(on_a_terminal(place.run("a"), true), "one\r\n");
    assert!(on_a_terminal(place.run("a --count"), true).ends_with("1 record, 4 bytes\r\n"));
    assert!(on_a_terminal(place.run("a --progress=always"), true).contains(" 1 record ("));
}

#[test]
fn never_is_never() {
    let place = Place::new().file("a", "one\n");
    assert_eq!(on_a_terminal(place.run("a --progress=never"), false), "");
}

#[test]
fn names_cannot_move_the_cursor() {
    let place = Place::new().file("evil\x1b]0;title\x07", "one\n");
    let shown = on_a_terminal(place.run("").word("evil\x1b]0;title\x07"), false);
    assert!(shown.contains("evil]0;title"), "{shown:?}");
    assert!(!shown.contains("\x1b]0") && !shown.contains('\x07'), "{shown:?}");
}

#[test]
fn in_a_pipe_it_is_quiet_by_default() {
    let place = Place::new().file("a", "one\n".repeat(1000));
    place.run("a -o out").succeeds();
    let seen = place.run("a -o out --progress=always").exits(0);
    let last = seen.stderr.lines().last().unwrap();
    assert!(last.contains("3.91 KiB") && last.contains("1,000 records") && last.contains("100%"), "{last}");
    assert!(!seen.stderr.contains(['\x1b', '\r']), "{:?}", seen.stderr);
}

#[test]
fn a_terminal_is_read_only_if_it_is_named() {
    for (words, page) in [("run --count", "run"), ("bson cat", "bson")] {
        let (terminal, place) = (Terminal::new(), Place::new());
        let mut command = place.words(words).into_command();
        let seen = command.stdin(terminal.stdio()).stderr(Stdio::piped()).spawn().unwrap().wait_with_output().unwrap();
        assert_eq!(seen.status.code(), Some(2));
        assert_eq!(
            String::from_utf8(seen.stderr).unwrap(),
            format!(
                "millstream: no source is given, and standard input is a terminal\n\
                 hint: give a file, a command after '--', or '-' for the terminal; see `millstream {page} --help`\n"
            )
        );
    }
}
