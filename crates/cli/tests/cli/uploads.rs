//! Objects as outputs. The tests of `Writer::url` in the library have the failing stores.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::thread;

use crate::place::{Place, Words};

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
