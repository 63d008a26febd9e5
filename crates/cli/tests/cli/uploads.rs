//! Objects as outputs. The tests of `Writer::url` in the library have the failing stores.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use rustix::process::Signal;

use crate::place::{Live, Place, Words, until};
use crate::store::{Dialect, Fault, Store};

/// A store that answers the requests of a single PUT, and keeps what arrives. `exists` is whether an object exists.
fn store(exists: bool) -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let requests = Arc::new(Mutex::new(Vec::new()));
    let kept = requests.clone();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let mut lines: Vec<String> = Vec::new();
            for line in reader.by_ref().lines().map_while(Result::ok) {
                if line.is_empty() {
                    break;
                }
                lines.push(line.to_ascii_lowercase());
            }
            let length =
                lines.iter().find_map(|line| line.strip_prefix("content-length: ")).map(|n| n.parse().unwrap());
            let mut body = vec![0; length.unwrap_or(0)];
            reader.read_exact(&mut body).unwrap();
            let answer = match lines[0].split(' ').next().unwrap() {
                "get" if !exists => "HTTP/1.1 404 X\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
                "get" => "HTTP/1.1 206 X\r\nContent-Length: 1\r\nConnection: close\r\n\r\nx",
                _ => "HTTP/1.1 200 X\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
            };
            lines.push(String::from_utf8_lossy(&body).into_owned());
            kept.lock().unwrap().push(lines.join("\n"));
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    (address, requests)
}

fn stored(words: Words, address: &str) -> Words {
    words
        .env("AWS_ACCESS_KEY_ID", "some-key")
        .env("AWS_SECRET_ACCESS_KEY", "some-secret")
        .word("--endpoint")
        .word(format!("http://{address}"))
}

#[test]
fn an_object_appears_only_if_its_command_succeeds() {
    let (address, requests) = store(false);
    let place = Place::new().file("headers", "Content-Type: text/plain\n\nx-amz-storage-class: COLD\n");
    let words = place.run("--http-header @headers --http-header x-amz-meta-a:b -o s3://bucket/a headers");
    stored(words, &address).succeeds();
    let seen = requests.lock().unwrap().pop().unwrap();
    for part in ["put /bucket/a ", "content-type: text/plain", "x-amz-storage-class: cold", "x-amz-meta-a: b"] {
        assert!(seen.contains(part), "{part}: {seen}");
    }
    assert!(seen.contains("authorization: aws4-hmac-sha256 credential=some-key/"), "{seen}");
    assert!(seen.ends_with("\nContent-Type: text/plain\n\nx-amz-storage-class: COLD\n"), "{seen}");
    requests.lock().unwrap().clear();
    stored(place.run("-o s3://bucket/a"), &address).and("-- sh -c").word("echo one; exit 3").fails();
    assert!(requests.lock().unwrap().iter().all(|request| request.starts_with("get ")));
}

#[test]
fn an_index_may_be_an_object() {
    let (address, requests) = store(false);
    let place = Place::new().file("a", "one\n");
    place.run("a -o a.gz").succeeds();
    place.words("index a.gz").succeeds();
    let words = place.words("index a.gz --http-header x-amz-meta-a:b -o s3://bucket/a.gzidx");
    stored(words, &address).succeeds().prints("").says("");
    let seen = requests.lock().unwrap().pop().unwrap();
    for part in ["put /bucket/a.gzidx ", "x-amz-meta-a: b", "authorization: aws4-hmac-sha256 credential=some-key/"] {
        assert!(seen.contains(part), "{part}: {seen}");
    }
    let written = String::from_utf8_lossy(&place.read("a.gz.gzidx")).into_owned();
    assert!(seen.ends_with(&written) && !written.is_empty());
    assert_eq!(place.names(), ["a", "a.gz", "a.gz.gzidx"]);
}

#[test]
fn an_existing_object_is_not_replaced_by_create_new() {
    let (address, requests) = store(true);
    let place = Place::new().file("a", "one\n");
    stored(place.run("a --create-new -o s3://bucket/a"), &address)
        .fails()
        .complains_of(&["s3://bucket/a: already exists"]);
    assert_eq!(requests.lock().unwrap().len(), 1);
}

#[test]
fn a_file_is_not_replaced_by_create_new() {
    let place = Place::new().file("a", "one\n");
    place.run("a --create-new -o b").succeeds();
    let seen = place.run("a --create-new -o b").fails();
    seen.complains_of(&["b: already exists"]);
}

#[test]
fn what_cannot_be_written_is_refused_before_anything_is_opened() {
    let place = Place::new().file("a", "one\n");
    for (status, words, expected) in [
        (1, "a -o https://host/b?token=hidden", "https://host/b: unsupported: found an upload to a web server"),
        (2, "a -o gs://bucket", "expected gs://BUCKET/KEY"),
        (2, "a -o az://container", "expected az://CONTAINER/KEY"),
        (2, "a -o s3://bucket", "expected s3://BUCKET/KEY"),
        (2, "a --append -o s3://bucket/b", "found appending to an object"),
        (2, "a --append --tee s3://bucket/b -o c", "found appending to an object"),
        (2, "a -o s3://bucket/b --size-hint 1T --part-size 5M", "expected at least 109951163"),
    ] {
        place.run(words).exits(status).complains_of(&[expected]);
    }
    assert!(!place.path("c").exists());
}

#[test]
fn uploads_of_a_web_server_are_refused() {
    let place = Place::new();
    for words in ["uploads ls http://host/a", "uploads abort --older-than 1h a"] {
        place.words(words).gets_refused().complains_of(&["expected s3://BUCKET/PREFIX, gs://BUCKET/PREFIX or az://"]);
    }
    place.words("uploads ls s3://").gets_refused().complains_of(&["expected s3://BUCKET or s3://BUCKET/PREFIX"]);
    let seen = place.words("uploads ls az://container").env("AZURE_STORAGE_USE_EMULATOR", "true").fails();
    seen.complains_of(&["az://container: unsupported", "after a week"]);
    place.words("uploads abort s3://bucket").gets_refused().complains_of(&["--older-than"]);
}

/// Sets the variables that lead to a store in memory, which accepts requests without a signature.
fn in_memory(words: Words, store: &Store) -> Words {
    words.env("AWS_ENDPOINT_URL", &format!("http://{}", store.address)).env("AWS_SKIP_SIGNATURE", "true")
}

/// An object of two parts.
fn long() -> Vec<u8> {
    b"a line\n".repeat(1 << 20)
}

/// Returns the words that bash reads in a line.
fn words_of(line: &str) -> Vec<String> {
    let read = Command::new("bash").arg("-c").arg(format!("printf '%s\\0' {line}")).output().unwrap();
    let words = String::from_utf8(read.stdout).unwrap();
    words.split_terminator('\0').map(String::from).collect()
}

/// Returns the command that looks again, which the message has.
fn look_again(place: &Place, store: &Store, message: &str) -> Words {
    let command = message.rsplit('`').nth(1).and_then(|command| command.strip_prefix("millstream "));
    let words = words_of(command.unwrap_or_else(|| panic!("no command in {message}")));
    in_memory(words.into_iter().fold(place.words(""), Words::word), store)
}

#[test]
fn a_lost_answer_of_a_replaced_object_is_an_unknown_outcome() {
    let store = Store::new(Dialect::S3, |request| if request.completes() { Fault::Replaced } else { Fault::None });
    let place = Place::new().file("a", long());
    for key in ["a", "it's a key", "one\ntwo $(false) `\\\u{202e}"] {
        store.clear();
        let seen = in_memory(place.run("a -o").word(format!("s3://bucket/{key}")), &store).exits(3);
        let seen = seen.complains_of(&[": outcome unknown: found no upload", "to look again"]);
        let look = || look_again(&place, &store, &seen.stderr);
        look().exits(3).prints("unknown\n").says("");
        let own = store.content().history[0].clone();
        store.content().objects.insert(key.into(), own);
        look().succeeds().prints("written\n");
    }
}

#[test]
fn a_completion_without_any_answer_is_an_unknown_outcome() {
    let store = Store::new(Dialect::S3, |request| if request.completes() { Fault::LostBefore } else { Fault::None });
    let place = Place::new().file("a", long());
    let seen = in_memory(place.run("a -o s3://bucket/a --retry-for 100ms"), &store).exits(3);
    let seen = seen.complains_of(&["s3://bucket/a: outcome unknown"]);
    look_again(&place, &store, &seen.stderr).exits(1).prints("not written\n").says("");
    let content = store.content();
    assert_eq!((content.objects.len(), content.uploads.len()), (0, 1));
}

/// Starts a command that writes an object and never ends, and waits until a part has arrived.
fn uploading(place: &Place, store: &Store) -> Live {
    let run = in_memory(place.run("-o s3://bucket/a"), store).shell("cat a; exec sleep 60").start();
    until("a part has arrived", || {
        let content = store.content();
        content.uploads.values().any(|pending| !pending.parts.is_empty()).then_some(())
    });
    run
}

#[test]
fn a_signal_while_an_object_is_uploaded_leaves_nothing() {
    for signal in [Signal::INT, Signal::TERM] {
        let (store, place) = (Store::good(Dialect::S3), Place::new().file("a", long()));
        let run = uploading(&place, &store);
        run.send(signal);
        run.dies_by(signal);
        let content = store.content();
        assert_eq!((content.objects.len(), content.uploads.len()), (0, 0));
    }
}

#[test]
fn an_upload_that_remains_after_a_signal_is_reported() {
    for signal in [Signal::INT, Signal::TERM] {
        let is_reachable = Arc::new(AtomicBool::new(false));
        let reachable = is_reachable.clone();
        let store = Store::new(Dialect::S3, move |request| match request.method == "DELETE" {
            true if !reachable.load(Ordering::SeqCst) => Fault::LostBefore,
            _ => Fault::None,
        });
        let place = Place::new().file("a", long());
        let run = uploading(&place, &store);
        run.send(signal);
        let seen = run.ends();
        assert_eq!(seen.status.signal(), Some(signal.as_raw()), "{}", seen.stderr);
        let advice = "uploads abort --older-than 0s s3://bucket/a";
        let unfinished = "s3://bucket/a: an unfinished upload could not be removed: upload&00001";
        let seen = seen.complains_of(&[unfinished, &format!("hint: remove it: millstream {advice}")]);
        seen.prints("");
        assert_eq!(store.content().objects.len(), 0);
        is_reachable.store(true, Ordering::SeqCst);
        let removed = in_memory(place.words(advice), &store).succeeds();
        assert!(removed.stdout.ends_with(b"  upload&00001  s3://bucket/a\n"));
        assert_eq!(store.content().uploads.len(), 0);
    }
}

#[test]
fn two_stores_have_an_object_or_neither_has() {
    let (one, two) = (Store::good(Dialect::S3), Store::good(Dialect::Gcs));
    let place = Place::new().file("a", long());
    let both = || {
        let words = in_memory(place.run("-o s3://bucket/a --tee gs://bucket/b"), &one);
        words.env("GOOGLE_BASE_URL", &format!("http://{}", two.address)).env("GOOGLE_SKIP_SIGNATURE", "true")
    };
    both().and("-- cat a").succeeds();
    for (store, key) in [(&one, "a"), (&two, "b")] {
        assert!(store.content().objects[key].bytes == long(), "{key}");
        store.clear();
    }
    for line in ["cat a; exit 3", "echo one; exit 3"] {
        both().shell(line).fails().complains_of(&["exited with status 3"]);
        for store in [&one, &two] {
            let content = store.content();
            assert_eq!((content.objects.len(), content.uploads.len()), (0, 0), "{line}");
        }
    }
}

#[test]
fn the_limit_of_an_object_of_unknown_length_is_printed_with_the_progress() {
    let store = Store::good(Dialect::S3);
    let place = Place::new().file("a.csv", "a\n1\n");
    let said = |words: &str| in_memory(place.words(words), &store).exits(0).stderr;
    let limit = "millstream: s3://bucket/b: up to 150.88 GiB, because its length is not known; see --size-hint\n";
    for words in [
        "run -o s3://bucket/b --progress always -- cat a.csv",
        "convert --progress always -o s3://bucket/b --to jsonl a.csv",
    ] {
        let said = said(words);
        assert!(said.starts_with(limit), "{words}: {said}");
    }
    let smaller = said("run -o s3://bucket/b --part-size 5M --progress always -- cat a.csv");
    assert!(smaller.starts_with("millstream: s3://bucket/b: up to 48.83 GiB, "), "{smaller}");
    for words in [
        "run -o s3://bucket/b --progress always a.csv",
        "run -o s3://bucket/b --progress always --size-hint 1G -- cat a.csv",
        "run -o s3://bucket/b -- cat a.csv",
    ] {
        assert!(!said(words).contains("up to"), "{words}");
    }
}
