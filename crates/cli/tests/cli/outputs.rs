//! Output files, standard output and tee files: complete or absent.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::thread;
use std::time::Duration;

use rustix::process::Signal;

use crate::place::{Place, open_for_append, until};

#[test]
fn a_file_appears_under_its_name() {
    let place = Place::new().file("a", "one\n");
    place.run("a -o b").succeeds().prints("");
    assert_eq!(place.text("b"), "one\n");
    assert_eq!(place.names(), ["a", "b"]);
}

#[test]
fn a_file_is_not_there_before_it_is_complete() {
    let place = Place::new();
    let line = "echo one; until [ -e go ]; do sleep 0.01; done; echo two; [ ! -e out ] || echo early";
    let live = place.run("-o out").shell(line).start();
    thread::sleep(Duration::from_millis(50));
    assert!(!place.path("out").exists());
    fs::write(place.path("go"), "").unwrap();
    live.ends();
    assert_eq!(place.text("out"), "one\ntwo\n");
}

#[test]
fn a_file_is_replaced_whole() {
    let place = Place::new().file("a", "one\n").file("b", "a much longer content\n");
    place.run("a --output b").succeeds();
    assert_eq!(place.text("b"), "one\n");
}

#[test]
fn a_failed_run_leaves_only_the_old_file() {
    let place = Place::new().file("out", "old\n");
    place.run("-o out --tee copy").shell("echo new; exit 3").fails();
    assert_eq!(place.text("out"), "old\n");
    assert_eq!(place.names(), ["out"]);
}

#[test]
fn a_file_may_be_replaced_by_its_own_content() {
    let place = Place::new().file("a", "one\n");
    place.run("a a -o a").succeeds();
    assert_eq!(place.text("a"), "one\none\n");
}

#[test]
fn append() {
    let place = Place::new().file("log", "one\n");
    place.run("--append -o log --tee copy").stdin("two\n").succeeds();
    place.run("--append -o log --tee copy").stdin("three\n").succeeds();
    assert_eq!(place.text("log"), "one\ntwo\nthree\n");
    assert_eq!(place.text("copy"), "two\nthree\n");
}

#[test]
fn keep_partial() {
    let place = Place::new();
    place.run("--keep-partial -o out --flush-policy when-full").shell("echo one; exit 3").fails();
    assert_eq!(place.text("out"), "one\n");
    let live = place.run("--keep-partial -o out").shell("echo two; echo $$ > pid; exec sleep 60").start();
    place.wait_for("pid");
    until("the line is there", || Some(()).filter(|()| place.text("out") == "two\n"));
    live.send(Signal::TERM);
    live.dies_by(Signal::TERM);
    assert_eq!(place.text("out"), "two\n");
    assert_eq!(place.names(), ["out", "pid"]);
}

#[test]
fn tee_writes_copies() {
    let place = Place::new();
    place.run("--tee b --tee c").stdin("one\ntwo\n").succeeds().prints("one\ntwo\n");
    place.run("--tee d -o e").stdin("one\n").succeeds().prints("");
    assert_eq!([place.text("b"), place.text("c")], ["one\ntwo\n", "one\ntwo\n"]);
    assert_eq!([place.text("d"), place.text("e")], ["one\n", "one\n"]);
    place.run("--tee - -o f.gz").stdin("one\n").succeeds().prints("one\n");
    place.run("f.gz").succeeds().prints("one\n");
}

#[test]
fn standard_output_continues_at_its_position() {
    let place = Place::new().file("a", "two\n");
    let mut out = File::create(place.path("out")).unwrap();
    out.write_all(b"one\n").unwrap();
    place.run("a").stdout_to(out.try_clone().unwrap()).succeeds();
    place.run("a --hash crc32c").stdout_to(out.try_clone().unwrap()).exits(0);
    place.run("a -o /dev/stdout").stdout_to(out.try_clone().unwrap()).succeeds();
    out.write_all(b"three\n").unwrap();
    assert_eq!(place.text("out"), "one\ntwo\ntwo\ntwo\nthree\n");
}

#[test]
fn a_device_is_written_directly() {
    Place::new().run("-o /dev/null").stdin("one\n").succeeds();
    let full = Place::new();
    full.run("-o /dev/full").stdin("one\n").fails().complains_of(&["/dev/full", "No space left on device"]);
    full.run("-o /dev/full --flush-policy when-full")
        .stdin("one\n")
        .fails()
        .complains_of(&["/dev/full", "No space left"]);
}

#[test]
fn a_full_disk_at_standard_output_is_reported() {
    let full = File::options().write(true).open("/dev/full").unwrap();
    let place = Place::new().file("a", "one\n");
    place.run("a").stdout_to(full.try_clone().unwrap()).fails().complains_of(&["No space left on device"]);
    place.run("a --count").stdout_to(full).fails().complains_of(&["No space left on device"]);
}

#[test]
fn a_tcp_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let server = thread::spawn(move || {
        let mut text = String::new();
        listener.accept().unwrap().0.read_to_string(&mut text).unwrap();
        text
    });
    Place::new().run(&format!("-o tcp:{address}")).stdin("one\n").succeeds();
    assert_eq!(server.join().unwrap(), "one\n");
}

#[test]
fn a_peer_that_has_sent_data_still_gets_all_bytes() {
    let place = Place::new().file("in", "a record\n".repeat(30_000)).file("doc", b"\x05\0\0\0\0");
    for (words, expected) in [
        ("run in -o ADDRESS", "a record\n".repeat(30_000)),
        ("run in --stall-timeout 20s --tee ADDRESS -o out", "a record\n".repeat(30_000)),
        ("run in --hash crc32c -o ADDRESS", "a record\n".repeat(30_000)),
        #[cfg(feature = "parquet")]
        ("bson convert doc --to ndjson -o ADDRESS", "{}\n".into()),
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("tcp:{}", listener.local_addr().unwrap());
        let server = thread::spawn(move || {
            let mut peer = listener.accept().unwrap().0;
            peer.write_all(b"220 ready\r\n").unwrap();
            thread::sleep(Duration::from_millis(50));
            let mut text = String::new();
            peer.read_to_string(&mut text).map(|_| text)
        });
        place.words(&words.replace("ADDRESS", &address)).exits(0);
        assert_eq!(server.join().unwrap().ok(), Some(expected), "{words}");
    }
}

#[test]
fn a_peer_that_does_not_confirm_the_end_is_a_failure() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let place = Place::new();
    let run = || place.run(&format!("--stall-timeout 100ms -o tcp:{}", listener.local_addr().unwrap()));
    run().shell("echo one").fails().complains_of(&[
        "tcp:127.0.0.1:",
        "stalled",
        "has not closed 0.1 s after this side",
    ]);
    let live = run().shell("echo one").start();
    let peer = listener.accept().unwrap().0;
    let peer = (listener.accept().unwrap().0, peer).0;
    let mut one = [0; 4];
    (&peer).read_exact(&mut one[..3]).unwrap();
    drop(peer); // one byte is unread
    let seen = live.ends();
    assert_eq!(seen.status.code(), Some(1));
    seen.complains_of(&["tcp:127.0.0.1:", "reset by peer"]);
}

#[test]
fn a_failed_run_ends_no_compression() {
    let place = Place::new();
    for name in ["kept.gz", "kept.bgz", "kept.zst"] {
        for options in ["", "--hash sha256"] {
            place.run(options).and("--keep-partial -o").and(name).shell("echo one; exit 3").fails();
            let kept = place.read(name);
            place.run(name).fails().prints("one\n").complains_of(&["decode truncated"]);
            if name == "kept.bgz" {
                assert!(!kept.ends_with(b"\x1b\0\x03\0\0\0\0\0\0\0\0\0"), "it has its end-of-file block");
            }
        }
    }
    rustix::fs::mkfifoat(rustix::fs::CWD, place.path("fifo.gz"), rustix::fs::Mode::RWXU).unwrap();
    for words in ["run -o fifo.gz", "run --tee fifo.gz", "run -o fifo.gz --each cat"] {
        let fifo = place.path("fifo.gz");
        let reading = thread::spawn(move || fs::read(fifo).unwrap());
        place.words(words).shell("echo one; exit 3").fails();
        fs::write(place.path("got.gz"), reading.join().unwrap()).unwrap();
        place.run("got.gz").fails().complains_of(&["decode truncated"]);
    }
}

#[test]
fn options_for_files_need_a_file() {
    let place = Place::new().file("a", "one\n");
    for words in
        ["a --append", "a --keep-partial", "a --append -o - --tee tcp:127.0.0.1:9", "a --keep-partial -o unix:s"]
    {
        place.run(words).gets_refused().complains_of(&["without a file as output", "-o FILE or --tee FILE"]);
    }
    place.run("a --append --keep-partial -o out").gets_refused().complains_of(&["cannot be used with"]);
    assert_eq!(place.names(), ["a"]);
    place.run("a --append --tee out").succeeds().prints("one\n");
    assert_eq!(place.text("out"), "one\n");
}

#[test]
fn bytes_are_passed_on_as_they_arrive() {
    let place = Place::new();
    let mut live = place.run("").shell("printf one; until [ -e go ]; do sleep 0.01; done; echo two").start();
    live.prints("one"); // hangs if it waits for more
    fs::write(place.path("go"), "").unwrap();
    live.prints("two\n");
    assert!(live.ends().status.success());
}

#[test]
fn whole_lines_and_delays_are_written_while_the_source_waits() {
    for (flush, first) in [("--flush-policy line", "one\n"), ("--flush-delay 5ms", "one\ntw")] {
        let place = Place::new();
        let line = r"printf 'one\ntw'; until [ -e go ]; do sleep 0.01; done; echo o";
        let mut live = place.run(flush).shell(line).start();
        live.prints(first);
        fs::write(place.path("go"), "").unwrap();
        live.prints(&"one\ntwo\n"[first.len()..]);
        assert!(live.ends().status.success());
    }
}

#[test]
fn an_output_is_compressed_according_to_its_name() {
    let lines: String = (0..10_000).map(|i| format!("line {i}\n")).collect();
    let place = Place::new().file("a", &lines);
    for name in ["b.gz", "b.bgz", "b.bgzf", "b.zst", "b.xz"] {
        place.run("a -o").and(name).succeeds();
        let packed = place.read(name);
        assert!(packed.len() < lines.len() / 2, "{name}");
        place.run(name).succeeds().prints(&lines);
        place.run(name).and("--decode off").succeeds().prints(&packed);
        place.run("--decode off --encode off").and(name).and("-o copy.gz").succeeds();
        assert_eq!(place.read("copy.gz"), packed, "{name}");
    }
}

#[test]
fn every_format_can_be_chosen_by_name() {
    let lines: String = (0..10_000).map(|i| format!("line {i}\n")).collect();
    let place = Place::new().file("a", &lines);
    for format in millstream::Format::ALL {
        let encode = format!("a -o packed --encode {}", format.name());
        place.run(&encode).succeeds();
        let packed = place.read("packed");
        assert!(packed.len() < lines.len() / 2, "{}: {} bytes", format.name(), packed.len());
        place.run("packed").succeeds().prints(&lines);
        place.run(&format!("{encode} --append")).succeeds();
        assert!(place.read("packed").len() > packed.len(), "{}", format.name());
        place.run("packed").succeeds().prints(lines.repeat(2));
    }
}

#[test]
fn a_name_that_implies_an_unsupported_format_is_refused() {
    let place = Place::new().file("a", "one\n");
    let formats = [
        ("lzma", "lzma"),
        ("bz2", "bzip2"),
        ("lz", "lzip"),
        ("lz4", "lz4"),
        ("lzo", "lzop"),
        ("br", "brotli"),
        ("Z", "compress"),
        ("zlib", "zlib"),
    ];
    for (ending, format) in formats {
        let message = format!(
            "millstream: b.{ending}: unsupported: found a name that implies {format} data, expected one that implies gzip, bgzf, zstd or xz data\nhint: --decode off or --encode off leaves the bytes unchanged\n"
        );
        // This happens before a command is started.
        place.run(&format!("-o b.{ending}")).shell("touch started; echo one").fails().says(&message);
        place.run(&format!("--tee b.{ending} a")).fails().prints("").says(&message);
    }
    assert_eq!(place.names(), ["a"]);
    // This command has no such option.
    #[cfg(feature = "parquet")]
    place.words("bson convert a --to csv -o b.lz4").gets_refused().complains_of(&["a name that implies lz4 data"]);
    assert_eq!(place.names(), ["a"]);
    place.run("a -o b.lz4 --encode off").succeeds();
    place.run("a --stats c.lz4 -o d.lz4.txt").succeeds();
    assert_eq!([place.text("b.lz4"), place.text("d.lz4.txt")], ["one\n", "one\n"]);
}

#[test]
fn appending_to_a_truncated_compressed_file_is_refused() {
    let place = Place::new().file("a", "one\n");
    place.run("a -o whole.gz").succeeds();
    let whole = place.read("whole.gz");
    let cut = &whole[..whole.len() - 1];
    for hash in ["", " --hash sha256"] {
        let place = Place::new().file("a", "one\n").file("cut.gz", cut);
        let refused = place.run(&format!("-o cut.gz --append{hash}")).shell("touch started; echo one").fails();
        refused.says(
            "millstream: cut.gz: open failed: found decode truncated (unexpected end of file), expected a complete gzip file to append to, or appending without the check\n",
        );
        assert_eq!((place.names(), place.read("cut.gz")), (vec!["a".to_string(), "cut.gz".to_string()], cut.to_vec()));
        place.run(&format!("a -o cut.gz --append --append-unchecked{hash}")).exits(0);
        assert!(place.read("cut.gz").len() > cut.len());
    }
    place.run("a -o x.gz --append-unchecked").gets_refused();
    let seen = place.run("a -o whole.gz --append --progress always").exits(0);
    assert!(seen.stderr.contains("whole.gz: is it complete?"), "{}", seen.stderr);
    place.run("whole.gz").succeeds().prints("one\none\n");
}

#[test]
fn a_link_to_an_output_that_is_not_there_yet_is_that_output() {
    let place = Place::new().file("a", "one\n");
    symlink("x", place.path("y")).unwrap();
    symlink("y", place.path("z")).unwrap();
    for words in ["a -o x --tee y", "a -o y --tee x", "a -o x --tee z", "a -o z --tee ./y"] {
        place.run(words).fails().complains_of(&["open failed", "not also another output"]);
    }
    assert_eq!(place.names(), ["a", "y", "z"]);
    place.run("a -o y --tee b").succeeds();
    assert_eq!((place.text("x"), place.text("b")), ("one\n".to_string(), "one\n".to_string()));
}

#[test]
fn an_output_is_never_a_source_that_is_read() {
    let place = Place::new().file("a", "one\n").file("b", "two\n");
    symlink("a", place.path("link")).unwrap();
    fs::hard_link(place.path("a"), place.path("hard")).unwrap();
    for words in
        ["a --append -o a", "b a --append -o link", "a --append -o hard", "a --keep-partial -o a", "a --stats a"]
    {
        place.run(words).fails().prints("").complains_of(&["open failed", "not one of the sources"]);
    }
    place.run("a --append -o b --tee a").fails().complains_of(&["a: open failed", "not one of the sources"]);
    place.run("a").stdout_to(open_for_append(place.path("a"))).fails().complains_of(&["standard output: open failed"]);
    let stdin = File::open(place.path("a")).unwrap();
    place.run("--append -o a").stdin_from(stdin).fails().complains_of(&["a: open failed"]);
    assert_eq!([place.text("a"), place.text("b")], ["one\n", "two\n"]);
}

#[test]
fn two_outputs_are_never_the_same_file() {
    let place = Place::new().file("a", "one\n").file("b", "two\n");
    symlink("b", place.path("link")).unwrap();
    for words in ["a -o b --tee link", "a -o new --tee ./new", "a --tee new --tee new", "a -o b --stats b"] {
        place.run(words).fails().complains_of(&["open failed", "not also another output"]);
    }
    place
        .run("a --tee b")
        .stdout_to(open_for_append(place.path("b")))
        .fails()
        .complains_of(&["not also another output"]);
    assert_eq!(place.text("b"), "two\n");
    assert_eq!(place.names(), ["a", "b", "link"]);
    place
        .run("a --tee -")
        .fails()
        .prints("")
        .complains_of(&["standard output: open failed", "not also another output"]);
    place.run("a --tee /dev/null -o /dev/null").succeeds();
}

#[test]
fn a_link_stays_a_link() {
    let place = Place::new().file("a", "one\n").file("b", "two\n");
    symlink("b", place.path("link")).unwrap();
    place.run("a -o link").succeeds();
    assert_eq!(place.text("b"), "one\n");
    assert!(place.path("link").is_symlink());
}

#[test]
fn a_replaced_file_keeps_its_permissions() {
    let place = Place::new().file("a", "one\n").file("b", "two\n");
    fs::set_permissions(place.path("b"), fs::Permissions::from_mode(0o640)).unwrap();
    place.run("a -o b").succeeds();
    assert_eq!(fs::metadata(place.path("b")).unwrap().permissions().mode() & 0o777, 0o640);
}

#[test]
fn options_of_the_library_for_outputs() {
    let place = Place::new().file("a", "one\n").file("old", "zero\n").file("big", "one\n".repeat(1000));
    let packed = place.run("a --encode gzip").succeeds().stdout;
    assert_eq!(packed[..2], [0x1f, 0x8b]);
    place.run("-").stdin(packed).succeeds().prints("one\n");
    place.run("a -o old --existing append").succeeds();
    assert_eq!(place.text("old"), "zero\none\n");
    place.run("--partial keep -o kept --flush-policy when-full").shell("echo one; exit 3").fails();
    assert_eq!(place.text("kept"), "one\n");
    for level in ["1", "9"] {
        place.run(&format!("big -o big.{level}.gz --level {level} --durability all")).succeeds();
    }
    assert!(place.read("big.9.gz").len() < place.read("big.1.gz").len());
    place.run("big --level 19 --encode zstd -o big.zst").succeeds();
    place.run("big --hash sha256 --level 19 --encode zstd -o hashed.zst").exits(0);
    assert_eq!(place.read("hashed.zst"), place.read("big.zst"));
    place.run("big.zst").succeeds().prints("one\n".repeat(1000));
    // Options that would have no effect, and options that contradict each other.
    for words in ["a --durability all", "a --existing append", "a -o x --existing append --partial keep"] {
        place.run(words).gets_refused().complains_of(&["invalid option"]);
    }
    for words in ["--append --existing append", "--keep-partial --partial remove", "--count --level 3"] {
        place.run(&format!("a -o x {words}")).gets_refused().complains_of(&["cannot be used with"]);
    }
    place.run("a --decode-limit 1").succeeds();
    place.run("big.zst --decode-limit 3999").fails().complains_of(&["decode limit"]);
    place.run("big.zst --decode-ratio 2 --latency low").succeeds();
}

#[test]
fn a_level_may_follow_the_format() {
    let place = Place::new().file("a", (0..20_000).map(|i| format!("{i}\n")).collect::<String>());
    let len = |words: &str| {
        place.run("a -o out --encode").and(words).succeeds();
        place.read("out").len()
    };
    assert_eq!(len("zstd:19"), len("zstd --level 19"));
    assert!(len("zstd:19") < len("zstd:1"));
    len("gzip:9 --block-size 4096");
    let members = place.read("out").windows(4).filter(|bytes| bytes == b"\x1f\x8b\x08\0").count();
    assert_eq!(members, place.read("a").len().div_ceil(4096));
    place.run("a -o out --encode zstd:x").gets_refused().complains_of(&["--encode", "expected a level from 0 to 22"]);
    place.run("a -o out --encode zstd:23").gets_refused().complains_of(&["--encode", "expected a level from 0 to 22"]);
    place.run("a -o out --encode zip:3").gets_refused().complains_of(&["expected one of auto, off, gzip"]);
    place.run("a -o out --encode zstd:3 --level 4").gets_refused().complains_of(&["--level", "once"]);
}
