//! Files, standard input, sockets and commands, alone and one after another.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::process::Stdio;
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
fn several_sources_are_joined_unchanged() {
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
fn options_may_follow_sources() {
    Place::new().file("a", "one\n").run("a --count").succeeds().prints("1 record, 4 bytes\n");
}

#[test]
fn names_with_a_meaning_can_be_files() {
    Place::new().file("tcp:x", "a").file("-", "b").run("./tcp:x ./-").succeeds().prints("ab");
}

#[test]
fn the_output_of_a_command() {
    Place::new().run("-- seq 1 3").succeeds().prints("1\n2\n3\n");
}

#[test]
fn the_words_of_a_command_are_passed_unchanged() {
    Place::new().run("-- echo --count -o x --").succeeds().prints("--count -o x --\n");
}

#[test]
fn a_command_does_not_read_our_standard_input() {
    Place::new().run("").shell("cat; echo end").stdin("mine").succeeds().prints("end\n");
}

#[test]
fn standard_error_of_a_command_is_passed_on() {
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
        "--capacity 4K",
        "--capacity 1",
        "--capacity 8MiB --read-ahead on",
        "--decode off",
        "--flush-policy when-full",
        "--flush-policy line",
        "--flush-delay 5ms",
        "--stall-timeout 10s",
        "--rate-limit 100M",
        "--record-limit 1K",
    ] {
        place.run(options).and("a").succeeds().prints(&lines);
        place.run(options).and("-- cat a").succeeds().prints(&lines);
    }
}

#[test]
fn sources_that_do_not_end_with_a_delimiter() {
    let place = Place::new().file("f1", "a").file("f2", "b\n").file("f3", "c\nd").file("none", "");
    // Bytes are joined unchanged, and records are counted accordingly.
    place.run("f1 f2").succeeds().prints("ab\n");
    for (sources, count) in [
        ("f1 f2", "1 record, 3 bytes\n"),
        ("f1 f1 f1", "1 record, 3 bytes\n"),
        ("f1 none f2 f3 f1", "3 records, 7 bytes\n"),
        ("f3 f3", "3 records, 6 bytes\n"),
        ("none none", "0 records, 0 bytes\n"),
    ] {
        place.run("--count").and(sources).succeeds().prints(count);
    }
    place.run("f1 f1 f2 -o out --stats stats").succeeds();
    assert_eq!(place.text("out"), "aab\n");
    let stats: serde_json::Value = serde_json::from_slice(&place.read("stats")).unwrap();
    assert_eq!((&stats["records"], &stats["bytes"], &stats["longest_record"]), (&1.into(), &4.into(), &4.into()));
    place.run("--record-limit 3 f1 f1 f2").fails().complains_of(&["record too long", "begins in one source"]);
    place.run("--record-limit 4 f1 f1 f2").succeeds().prints("aab\n");
    // If records are requested, they stay separate.
    place.run("f1 f2 --stage noop").succeeds().prints("a\nb\n");
    place.run("f1 none f2 --count --stage noop").succeeds().prints("2 records, 4 bytes\n");
    place.run("f1 f1 f1 --delimiter ;").succeeds().prints("a;a;a");
    place.run("f1 f1 -0 --count").succeeds().prints("2 records, 3 bytes\n");
    place.run("f1 f2 --each cat").succeeds().prints("a\nb\n");
    // The data that was read before a source fails has been written.
    place.run("f1 --delimiter ; -- false").fails().prints("a");
}

/// If a name or the first bytes imply a format, but the content has a different format or cannot be decoded, the
/// content is never treated as plain data.
#[test]
fn a_wrong_format_is_not_copied_unchanged() {
    let place =
        Place::new().file("a.gz", "plain\n").file("b.LZ4", "plain\n").file("c", b"\x04\x22\x4d\x18\x64\x40\xa7");
    for (name, found) in [("a.gz", "as its name implies"), ("b.LZ4", "found lz4 data"), ("c", "found lz4 data")] {
        let bytes = place.read(name);
        for words in ["run", "run --count", "bson count", "bson cat", "bson check", "bson ls", "bson get"] {
            let words = format!("{words} {name}");
            place.words(&words).fails().prints("").complains_of(&[name, found]);
        }
        #[cfg(feature = "parquet")]
        place.words(&format!("bson convert --to csv {name}")).fails().complains_of(&[found]);
        place.run(&format!("--decode off {name}")).succeeds().prints(&bytes);
    }
    place.run("-").stdin(place.read("c")).fails().complains_of(&["found lz4 data", "--decode off"]);
}

#[test]
fn a_source_that_changes_while_it_is_read_is_an_error() {
    // This exceeds the capacity of a pipe, so the command cannot have finished when the change is made.
    let place = Place::new().file("a", "");
    let run = |pin: &str, change: &str, expected: &str| {
        std::fs::write(place.path("a"), vec![b'\n'; 4 << 20]).unwrap();
        let (mut reader, pipe) = std::io::pipe().unwrap();
        let mut command = place.run("a").and(pin).into_command();
        let child = command.stdout(pipe).stderr(Stdio::piped()).spawn().unwrap();
        drop(command); // and with it our end of the pipe
        let mut first = [0];
        reader.read_exact(&mut first).unwrap();
        std::process::Command::new("sh").args(["-c", change]).current_dir(place.path("")).status().unwrap();
        std::io::copy(&mut reader, &mut std::io::sink()).unwrap();
        let seen = child.wait_with_output().unwrap();
        let stderr = String::from_utf8(seen.stderr).unwrap();
        assert_eq!(seen.status.code(), Some(i32::from(!expected.is_empty())), "{stderr}");
        assert!(stderr.starts_with(expected), "{stderr}");
    };
    run("", "touch -d '+1 hour' a", "millstream: a: source changed: found a different modification time");
    run("", "truncate -s 1 a", "millstream: a: source shrank: found 1 bytes, expected the 4194304 bytes it had");
    run("", "printf more >> a", "");
    run("--pin identity", "printf more >> a", "millstream: a: source changed: found 4194308 bytes");
}

#[test]
fn a_long_window_is_decoded_if_there_may_be_memory_for_it() {
    // This is a frame of one raw block, with a window of 256 MiB.
    let frame = b"\x28\xb5\x2f\xfd\0\x90\x21\0\0one\n";
    let place = Place::new().file("a.zst", frame);
    let message = "millstream: a.zst: decode limit: found zstd data with a window of 268435456 bytes, expected one of at most \
                   134217728, at byte 0\nhint: raise ";
    let all = format!("{message}--decode-limit, --decode-ratio or --decode-memory if the source is trusted\n");
    place.run("a.zst").fails().prints("").says(&all);
    place.run("a.zst --decode-memory 256M").succeeds().prints("one\n");
    place.words("bson count a.zst").fails().says(&format!("{message}--decode-memory if the source is trusted\n"));
    place.words("bson count a.zst --decode-memory 256M").fails().complains_of(&["frame truncated"]);
}

#[test]
fn a_quoted_pattern_is_every_file_that_matches() {
    let place = Place::new();
    for name in ["a/1.log", "a/b/2.log", "a/b/c/3.log", "a/.hidden.log", "a/b/x.txt", "a/10.log"] {
        std::fs::create_dir_all(place.path(name).parent().unwrap()).unwrap();
        std::fs::write(place.path(name), format!("{name}\n")).unwrap();
    }
    let prints = |word: &str, expected: &str| {
        place.run("").word(word).succeeds().prints(expected);
    };
    prints("a/*.log", "a/1.log\na/10.log\n");
    prints("a/**/*.log", "a/1.log\na/10.log\na/b/2.log\na/b/c/3.log\n");
    prints("**/[23].log", "a/b/2.log\na/b/c/3.log\n");
    prints("./a/b/*.{log,txt}", "a/b/2.log\na/b/x.txt\n");
    prints("a/.h*", "a/.hidden.log\n");
    // A file of this name is meant as it is.
    std::fs::write(place.path("a/*.log"), "itself\n").unwrap();
    prints("a/*.log", "itself\n");
    // `convert` is a part of some builds only.
    if cfg!(feature = "parquet") {
        let convert = place.words("convert --from lines --to csv").word("a/b/**/*.log");
        convert.succeeds().prints("line\na/b/2.log\na/b/c/3.log\n");
    }
    place.run("").word("a/*.gz").fails().complains_of(&["a/*.gz: open failed: found no match", "--allow-empty"]);
    place.run("").word("missing/*").fails().complains_of(&["missing/*", "found no match"]);
    place.run("--allow-empty --count").word("a/*.gz").succeeds().prints("0 records, 0 bytes\n");
    place.run("--allow-empty").word("a/*.gz").word("a/1.log").succeeds().prints("a/1.log\n");
    place.run("").word("a/[*").gets_refused().complains_of(&["expected a valid pattern"]);
}

/// Standard input looks complete if the program that writes it is killed, unless the run knows what it has to be.
#[test]
fn what_a_source_has_to_be() {
    let place = Place::new().file("a", "one\ntwo\n");
    let text = "one\ntwo\n";
    let hash = "sha256:b8c8a0b7bafa5e2c8b7b1f1bbf5d5f4d3cb4d8b0a0f6e3c9d2e1f0a9b8c7d6e5";
    for words in ["--expect-bytes 8", "--expect-records 2", "--expect-hash crc32c:fcac93a4", "-j 2 --expect-records 2"]
    {
        place.run(&format!("{words} --stage match:. -")).stdin(text).succeeds().prints(text);
    }
    for (words, parts) in [
        ("--expect-bytes 9", ["found the end after 8 bytes", "expected 9 bytes"]),
        ("--expect-bytes 4", ["found more bytes", "expected the end after 4 bytes"]),
        ("--expect-records 3", ["found the end after 2 records", "expected 3 records"]),
        (&format!("--expect-hash {hash}"), ["found sha256:", "expected sha256:b8c8"]),
    ] {
        place.run(&format!("{words} - -o out")).stdin(text).fails().complains_of(&parts);
        place.run(&format!("{words} -j 2 --stage match:. a -o out")).fails().complains_of(&parts);
        place.run(&format!("{words} --each cat a -o out")).fails().complains_of(&parts);
        assert_eq!(place.names(), ["a"], "{words}");
    }
    place.run("--expect-bytes 8 a a").gets_refused().complains_of(&["--expect-bytes with several sources"]);
    place.run("--expect-bytes 8 --stage take:1 a").gets_refused().complains_of(&["the stage 'take'"]);
    place.run("--expect-hash crc32c:1 a").gets_refused().complains_of(&["crc32c: and 8 hexadecimal digits"]);
}
