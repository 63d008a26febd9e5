//! Files, standard input, sockets, commands: alone and one after another.

use std::io::Write;
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::thread;

use crate::place::Place;

#[test]
fn a_file_is_copied_byte_for_byte() {
    let bytes: Vec<u8> = (0..3_000_000u32).map(|i| (i.wrapping_mul(i) >> 7) as u8).collect();
    Place::new().file("a.bin", &bytes).run("a.bin").succeeds().prints(&bytes);
}

#[test]
fn an_empty_file_is_complete() {
    Place::new().file("empty", "").run("empty").succeeds().prints("");
}

#[test]
fn without_a_source_standard_input_is_read() {
    Place::new().run("").stdin("one\ntwo").succeeds().prints("one\ntwo");
    Place::new().run("-").stdin("one\ntwo").succeeds().prints("one\ntwo");
}

#[test]
fn several_sources_follow_each_other_as_they_are() {
    Place::new()
        .file("a", "one\nno newline here")
        .file("b", "two\n")
        .run("a - b")
        .stdin("between")
        .shell("printf last")
        .succeeds()
        .prints("one\nno newline herebetweentwo\nlast");
}

#[test]
fn records_never_join_across_sources() {
    let place = Place::new().file("a", "one\ntw").file("b", "o\n");
    place.run("--count a b").succeeds().prints("3 records, 8 bytes\n");
}

#[test]
fn options_may_follow_sources() {
    Place::new().file("a", "one\n").run("a --count").succeeds().prints("1 record, 4 bytes\n");
}

#[test]
fn names_with_a_meaning_can_be_files() {
    Place::new().file("tcp:x", "a").file("-", "b").run("./tcp:x ./-").succeeds().prints("ab");
}

#[test]
fn what_a_command_writes() {
    Place::new().run("-- seq 1 3").succeeds().prints("1\n2\n3\n");
}

#[test]
fn the_words_of_a_command_are_its_own() {
    Place::new().run("-- echo --count -o x --").succeeds().prints("--count -o x --\n");
}

#[test]
fn a_command_does_not_read_our_standard_input() {
    Place::new().run("").shell("cat; echo end").stdin("mine").succeeds().prints("end\n");
}

#[test]
fn what_a_command_says_is_passed_on() {
    Place::new().run("").shell("echo warning >&2; echo one").exits(0).prints("one\n").says("warning\n");
}

#[test]
fn a_tcp_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let server = thread::spawn(move || listener.accept().unwrap().0.write_all(b"one\ntwo\n").unwrap());
    Place::new().run(&format!("tcp:{address}")).succeeds().prints("one\ntwo\n");
    server.join().unwrap();
}

#[test]
fn a_unix_socket() {
    let place = Place::new();
    let listener = UnixListener::bind(place.path("sock")).unwrap();
    let server = thread::spawn(move || listener.accept().unwrap().0.write_all(b"one\ntwo\n").unwrap());
    place.run("unix:sock").succeeds().prints("one\ntwo\n");
    server.join().unwrap();
}

#[test]
fn a_fifo() {
    let place = Place::new();
    rustix::fs::mkfifoat(rustix::fs::CWD, place.path("fifo"), rustix::fs::Mode::RWXU).unwrap();
    let path = place.path("fifo");
    let writer = thread::spawn(move || std::fs::write(path, "one\ntwo\n").unwrap());
    place.run("fifo").succeeds().prints("one\ntwo\n");
    writer.join().unwrap();
}

#[test]
fn every_way_of_reading_and_writing_gives_the_same_bytes() {
    let lines: String = (0..10_000).map(|i| format!("line {i}\n")).collect();
    let place = Place::new().file("a", &lines);
    for options in [
        "--read-ahead on",
        "--read-ahead off",
        "--read-ahead auto",
        "--buffer 4K",
        "--buffer 1",
        "--buffer 8MiB --read-ahead on",
        "--decode off",
        "--flush when-full",
        "--flush line",
        "--flush 5ms",
        "--timeout 10s",
        "--rate-limit 100M",
        "--record-limit 1K",
    ] {
        place.run(options).and("a").succeeds().prints(&lines);
        place.run(options).and("-- cat a").succeeds().prints(&lines);
    }
}
