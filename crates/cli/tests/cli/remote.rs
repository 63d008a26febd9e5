//! URLs as sources. The tests of `Reader::url` in the library have the misbehaving servers.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;

use crate::place::{Place, Words};

/// Starts a server that answers every request with `answer`. Returns its address, and the lines of the requests.
fn server(answer: &'static str) -> (String, mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (sender, lines) = mpsc::channel();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            for line in BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok) {
                if line.is_empty() {
                    break;
                }
                let _ = sender.send(line);
            }
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    (address, lines)
}

/// Sets the variables that lead to a store. Others, which the machine may have, are not used.
fn stored(words: Words, address: &str) -> Words {
    words
        .env("AWS_ENDPOINT_URL", &format!("http://{address}"))
        .env("AWS_ACCESS_KEY_ID", "some-key")
        .env("AWS_SECRET_ACCESS_KEY", "some-secret")
        .env("AWS_REGION", "eu-north-1")
}

const COMPLETE: &str = "HTTP/1.1 200 OK\r\nContent-Length: 8\r\nConnection: close\r\n\r\none\ntwo\n";

#[test]
fn an_object_is_a_source_like_any_other() {
    let (address, _) = server(COMPLETE);
    let url = format!("http://user:hidden@{address}/a?token=hidden");
    Place::new().file("b", "three\n").run("--count").word(&url).word("b").succeeds().prints("3 records, 14 bytes\n");
}

#[test]
fn an_object_reports_that_it_is_complete_if_it_has_a_length() {
    let place = Place::new();
    let status = |answer, options: &str| {
        let (address, _) = server(answer);
        place.run(options).word(format!("http://{address}/a")).succeeds().prints("one\ntwo\n");
        let stats: Value = serde_json::from_slice(&place.read("stats")).unwrap();
        stats["sources"][0]["status"].clone()
    };
    assert_eq!(status(COMPLETE, "--stats stats"), "succeeded");
    let endless = "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\none\ntwo\n";
    assert_eq!(status(endless, "--stats stats --allow-unknown-length"), "closed");
}

#[test]
fn a_short_body_is_a_failure_after_its_bytes() {
    let (address, _) = server("HTTP/1.1 200 OK\r\nContent-Length: 9\r\nConnection: close\r\n\r\none\ntwo\n");
    let url = format!("http://user:hidden@{address}/a?token=hidden");
    let seen = Place::new().run("").word(url).fails();
    let name = format!("http://{address}/a: ");
    seen.complains_of(&[&name, "expected 1 more bytes"]).prints("one\ntwo\n");
}

#[test]
fn an_output_file_does_not_appear_if_the_body_is_short() {
    let (address, _) = server("HTTP/1.1 200 OK\r\nContent-Length: 9\r\nConnection: close\r\n\r\none\ntwo\n");
    let place = Place::new();
    place.run("-o out").word(format!("http://{address}/a")).fails();
    assert_eq!(place.names(), Vec::<String>::new());
}

#[test]
fn requests_for_objects_of_s3_are_signed() {
    let (address, lines) = server(COMPLETE);
    let place = Place::new();
    stored(place.run("").word("s3://bucket/a b//100%.csv"), &address).succeeds().prints("one\ntwo\n");
    let lines: Vec<String> = lines.try_iter().collect();
    assert_eq!(lines[0], "GET /bucket/a%20b//100%25.csv HTTP/1.1");
    let signature = lines.iter().find_map(|line| line.strip_prefix("authorization: ")).expect("a signature");
    let credential = "AWS4-HMAC-SHA256 Credential=some-key/";
    assert!(signature.starts_with(credential) && signature.contains("/eu-north-1/s3/aws4_request"), "{signature}");
    assert!(lines.iter().any(|line| line == "range: bytes=0-"), "{lines:?}");
    assert!(!lines.iter().any(|line| line.contains("some-secret")));

    let (address, lines) = server(COMPLETE);
    let words = stored(place.run("").word("s3://bucket/a"), &address).env("AWS_SKIP_SIGNATURE", "true");
    words.succeeds().prints("one\ntwo\n");
    assert!(!lines.try_iter().any(|line| line.starts_with("authorization")));
}

#[test]
fn requests_for_objects_of_google_have_a_token() {
    let (address, lines) = server(COMPLETE);
    let place = Place::new();
    let words = || place.run("").word("gs://bucket/a b//100%.csv").env("GOOGLE_BASE_URL", &format!("http://{address}"));
    words().env("GOOGLE_BEARER_TOKEN", "some-token").succeeds().prints("one\ntwo\n");
    let found: Vec<String> = lines.try_iter().collect();
    assert_eq!(found[0], "GET /bucket/a%20b//100%25.csv HTTP/1.1");
    for line in ["authorization: Bearer some-token", "accept-encoding: gzip", "range: bytes=0-"] {
        assert!(found.iter().any(|found| found == line), "{line}: {found:?}");
    }
    words().env("GOOGLE_SKIP_SIGNATURE", "true").succeeds().prints("one\ntwo\n");
    assert!(!lines.try_iter().any(|line| line.starts_with("authorization")));
    let seen = words().env("GOOGLE_SERVICE_ACCOUNT_KEY", "\"some-secret\"").fails();
    seen.complains_of(&[
        "gs://bucket/a b//100%.csv: open failed: found the settings of Google Cloud Storage",
        "no key",
    ]);
}

#[test]
fn requests_for_objects_of_azure_have_credentials() {
    let (address, lines) = server(COMPLETE);
    let place = Place::new();
    let words = || {
        let words = place.run("").word("az://container/a b//100%.csv").env("AZURE_STORAGE_ACCOUNT_NAME", "me");
        words.env("AZURE_STORAGE_ENDPOINT", &format!("http://{address}/me"))
    };
    let path = "GET /me/container/a%20b//100%25.csv";
    for (name, value, target, header) in [
        ("AZURE_STORAGE_ACCOUNT_KEY", "c29tZS1rZXk=", "", "authorization: SharedKey me:"),
        ("AZURE_STORAGE_TOKEN", "some-token", "", "authorization: Bearer some-token"),
        ("AZURE_STORAGE_SAS_TOKEN", "?sv=1&sig=a%2Bb%3D", "?sv=1&sig=a%2Bb%3D", "x-ms-version: "),
        ("AZURE_SKIP_SIGNATURE", "true", "", "x-ms-version: "),
    ] {
        words().env(name, value).succeeds().prints("one\ntwo\n");
        let found: Vec<String> = lines.try_iter().collect();
        assert_eq!(found[0], format!("{path}{target} HTTP/1.1"));
        assert!(found.iter().any(|line| line.starts_with(header)), "{header}: {found:?}");
        let is_signed = found.iter().any(|line| line.starts_with("authorization"));
        assert_eq!(is_signed, header.starts_with("authorization"), "{found:?}");
    }
    let seen = place.run("").word("az://container/a").fails();
    seen.complains_of(&["found the settings of Azure Blob Storage: no account", "AZURE_STORAGE_ACCOUNT_NAME"]);
}

#[test]
fn errors_name_the_options_of_the_command() {
    let (address, _) = server("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\none\n");
    let url = format!("http://{address}/a");
    let place = Place::new();
    place.run("").word(&url).fails().complains_of(&["allow it with --allow-unknown-length"]);
    place.run("--allow-unknown-length").word(&url).succeeds().prints("one\n");
    place.run("http://169.254.169.254/").fails().complains_of(&["allow this one with --allow-link-local"]);
}

#[test]
fn what_cannot_be_read_is_refused() {
    let place = Place::new();
    place.run("gs://bucket").gets_refused().complains_of(&["expected gs://BUCKET/KEY"]);
    place.run("az://container/").gets_refused().complains_of(&["expected az://CONTAINER/KEY"]);
    place.run("s3://bucket").gets_refused().complains_of(&["expected s3://BUCKET/KEY"]);
    place.run("http://169.254.169.254/latest").fails().complains_of(&["link-local"]);
    let (address, _) = server(
        "HTTP/1.1 404 Not Found\r\nContent-Length: 38\r\nConnection: close\r\n\r\n<Error><Code>NoSuchKey</Code></Error>\n",
    );
    let words = stored(place.run("s3://bucket/key"), &address);
    words.fails().complains_of(&["s3://bucket/key: open failed: found the answer 404 Not Found (NoSuchKey)"]);
}

#[test]
fn a_bucket_of_another_region_is_reported() {
    let expected = "expected a request for the region eu-west-1, in which the bucket is";
    let hint = "hint: set AWS_REGION=eu-west-1, and the endpoint of this region if you set one";
    let region = "x-amz-bucket-region: eu-west-1\r\nConnection: close\r\n";
    for (status, code) in [
        ("301 Moved Permanently", "PermanentRedirect"),
        ("307 Temporary Redirect", "TemporaryRedirect"),
        ("400 Bad Request", "AuthorizationHeaderMalformed"),
    ] {
        let body = format!("<Error><Code>{code}</Code><Message>elsewhere</Message></Error>");
        let location = "Location: http://127.0.0.1:1/\r\n";
        let head = format!("HTTP/1.1 {status}\r\n{location}{region}Content-Length: {}\r\n", body.len());
        let (address, lines) = server(format!("{head}\r\n{body}").leak());
        let place = Place::new().file("a", "one\n");
        let found = format!("found the answer {status} ({code}: elsewhere), {expected}");
        for words in ["run s3://bucket/key", "run s3://bucket/*", "run a -o s3://bucket/key", "uploads ls s3://bucket"]
        {
            stored(place.words(words), &address).fails().complains_of(&["s3://bucket", &found, hint]);
        }
        // Redirects are not followed.
        assert_eq!(lines.try_iter().filter(|line| line.ends_with(" HTTP/1.1")).count(), 4);
    }
    // Another error of a bucket in the right region has no such advice.
    let head = format!("HTTP/1.1 403 X\r\n{region}Content-Length: 0\r\n\r\n");
    let (address, _) = server(head.leak());
    let seen = stored(Place::new().run("s3://bucket/key"), &address).fails();
    assert!(!seen.stderr.contains("region"), "{}", seen.stderr);
}

/// Starts a server that answers each request with what `answer` returns for the lines of its head, in lower case. Returns its
/// address.
fn answering(mut answer: impl FnMut(&[String]) -> String + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
            let head: Vec<String> = lines.take_while(|line| !line.is_empty()).map(|line| line.to_lowercase()).collect();
            let _ = stream.write_all(answer(&head).as_bytes());
        }
    });
    address
}

/// Starts a server of an object of CSV that counts its requests. From `changes` on, it is another version.
#[cfg(feature = "parquet")]
fn versions(content: String, etag: bool, changes: usize) -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/a.csv", listener.local_addr().unwrap());
    let seen = Arc::new(Mutex::new(Vec::new()));
    let requests = seen.clone();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
            let head: Vec<String> = lines.take_while(|line| !line.is_empty()).map(|line| line.to_lowercase()).collect();
            let mut seen = seen.lock().unwrap();
            let version = if seen.len() < changes { "\"v1\"" } else { "\"v2\"" };
            let required = head.iter().find_map(|line| line.strip_prefix("if-match: ")).unwrap_or_default();
            seen.push(required.to_string());
            let end = "Connection: close\r\n";
            let _ = match (etag, required) {
                (false, _) => {
                    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n{end}", content.len());
                    write!(stream, "{head}\r\n{content}")
                }
                (true, required) if !required.is_empty() && required != version => {
                    write!(stream, "HTTP/1.1 412 X\r\nContent-Length: 0\r\n{end}\r\n")
                }
                (true, _) => {
                    let len = content.len();
                    let head = format!("HTTP/1.1 206 Partial Content\r\nContent-Length: {len}\r\n{end}");
                    write!(stream, "{head}Content-Range: bytes 0-{}/{len}\r\nETag: {version}\r\n\r\n{content}", len - 1)
                }
            };
        }
    });
    (url, requests)
}

#[test]
#[cfg(feature = "parquet")]
fn types_are_inferred_from_all_records_of_objects() {
    let late = format!("n,s\n{}2.5,x\n", "1,\n".repeat(20_000));
    let place = Place::new().file("b.csv", "s,n\ny,7\n");
    let convert = |words: &str, url: &str| place.words("convert --infer all").and(words).word(url);
    let schema = "{\"fields\":[{\"name\":\"n\",\"type\":\"float64\"},{\"name\":\"s\",\"type\":\"string\"}]}\n";
    for files in ["", "b.csv"] {
        let (url, requests) = versions(late.clone(), true, usize::MAX);
        convert("--print-schema", &url).and(files).succeeds().prints(schema);
        convert("-o out.csv", &url).and(files).succeeds();
        assert!(place.text("out.csv").ends_with(if files.is_empty() { "2.5,x\n" } else { "2.5,x\n7.0,y\n" }));
        // The second reading requires the version of the first one.
        assert_eq!(*requests.lock().unwrap(), ["", "\"v1\"", "", "\"v1\""]);
    }
    let names = place.names();
    let (url, _) = versions(late.clone(), true, 1);
    convert("-o new.csv", &url).fails().complains_of(&[&url, "source changed"]);
    let (url, requests) = versions(late, false, usize::MAX);
    let refused = convert("-o new.csv", &url).gets_refused();
    refused.complains_of(&[&url, "an object without ranges or a strong ETag", "infer from a number of records"]);
    assert_eq!((place.names(), requests.lock().unwrap().len()), (names, 1));
}

/// Answers requests for ranges of this content, of one version, for which `is_allowed`.
fn ranges(content: &'static str, mut is_allowed: impl FnMut(&[String]) -> bool + Send + 'static) -> String {
    answering(move |head| {
        let range = head.iter().find_map(|line| line.strip_prefix("range: bytes=")).unwrap();
        let (from, to) = range.split_once('-').unwrap();
        let from: usize = from.parse().unwrap();
        let to = to.parse().map_or(content.len(), |last: usize| content.len().min(last + 1));
        let status = if is_allowed(head) { "206 Partial Content" } else { "403 X" };
        format!(
            "HTTP/1.1 {status}\r\nContent-Length: {}\r\nContent-Range: bytes {from}-{}/{}\r\nETag: \"v\"\r\n\
             Connection: close\r\n\r\n{}",
            to - from,
            to - 1,
            content.len(),
            &content[from..to]
        )
    })
}

#[test]
fn credentials_that_expire_are_renewed() {
    let mut count = 0;
    // They have expired when they arrive, so each request needs new ones.
    let renewals = answering(move |head| {
        assert!(head.contains(&"authorization: a token".to_string()), "{head:?}");
        count += 1;
        let body = format!(
            r#"{{"AccessKeyId": "key-{count}", "SecretAccessKey": "secret", "Token": "token-{count}",
                "Expiration": "2020-01-01T00:00:00Z"}}"#
        );
        format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len())
    });
    // More than the first request, which is for 8 MiB, and a range of 4 MiB.
    let content: &str = "a line\n".repeat(2 << 20).leak();
    let (sender, numbers) = mpsc::channel();
    let store = ranges(content, move |head| {
        let value = |name: &str| head.iter().find_map(|line| line.strip_prefix(name)).unwrap();
        let signature = value("authorization: aws4-hmac-sha256 credential=key-");
        let number = signature.split('/').next().unwrap().to_string();
        let is_valid = value("x-amz-security-token: token-") == number;
        let _ = sender.send(number);
        is_valid
    });
    let place = Place::new().file("token", "a token");
    let words = place.run("s3://bucket/a --count").env("AWS_ENDPOINT_URL", &format!("http://{store}"));
    let words = words.env("AWS_CONTAINER_CREDENTIALS_FULL_URI", &format!("http://{renewals}/"));
    words.env("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", "token").succeeds().prints(format!(
        "{} records, {} bytes\n",
        2 << 20,
        content.len()
    ));
    // Requests at the same time may use the same ones.
    assert!(numbers.try_iter().collect::<BTreeSet<_>>().len() > 1);
}

#[test]
fn an_object_is_divided_like_a_file() {
    let content = "a,\"1\n2\"\nb,3\n\"c\",\n";
    let has_key = |head: &[String]| head.contains(&"x-key: open".into());
    let (address, place) = (ranges(content, has_key), Place::new());
    let url = format!("http://user:hidden@{address}/a?token=hidden");
    let key = ["--http-header", "X-Key: open"];
    let with_key = |words: Words| key.iter().fold(words, |words, word| words.word(word));
    let said = format!("millstream: http://{address}/a: reading all of its 17 B\n");
    let plan = with_key(place.words("split --csv --size 1").word(&url)).exits(0).says(&said);
    let plan = String::from_utf8(plan.stdout).unwrap();
    let splits: Vec<&str> =
        plan.lines().filter(|line| line.contains(&url)).map(|line| line.trim_matches(',')).collect();
    assert_eq!(splits.len(), 3, "{plan}");
    let moved = splits.iter().map(|split| with_key(place.run("--split").word(split)).succeeds().stdout);
    assert_eq!(String::from_utf8(moved.collect::<Vec<_>>().concat()).unwrap(), content);
    place.run("--split").word(splits[0]).fails().complains_of(&["403", &format!("http://{address}/a")]);
    // A copy elsewhere.
    let copy = format!("http://{}/b", ranges(content, has_key));
    with_key(place.run("--split").word(splits[1]).word(copy)).succeeds().prints("b,3\n");
    // Lines need no pass.
    with_key(place.words("split").word(&url)).succeeds();
}

#[test]
fn a_login_may_come_from_a_file() {
    let (address, lines) = server(COMPLETE);
    let host = address.split(':').next().unwrap();
    let place = Place::new().file("logins", format!("# mine\nmachine {host}\nlogin me\npassword s3cret\n"));
    let url = format!("http://{address}/a");
    let run = |options: &str| place.run(options).env("NETRC", "logins").word(&url);
    let sent = || lines.try_iter().find(|line| line.to_lowercase().starts_with("authorization: "));
    run("").succeeds().prints("one\ntwo\n");
    assert_eq!(sent(), None);
    run("--netrc").succeeds().prints("one\ntwo\n");
    assert_eq!(sent().unwrap().split_once(": ").unwrap().1, "Basic bWU6czNjcmV0");
    run("--netrc").and("--http-header").word("Authorization: Bearer other").succeeds();
    assert_eq!(sent().unwrap().split_once(": ").unwrap().1, "Bearer other");
    run("--netrc")
        .env("NETRC", "missing")
        .gets_refused()
        .complains_of(&["missing: No such file", "machine HOST login USER"]);
    let place = Place::new().file("logins", "machine a password \"hidden x\"");
    let seen = place
        .run("--netrc")
        .env("NETRC", "logins")
        .word(&url)
        .gets_refused()
        .complains_of(&["logins, which is invalid"]);
    assert!(!seen.stderr.contains("hidden"), "{}", seen.stderr);
}

#[test]
fn a_file_without_certificates_is_refused() {
    let place = Place::new().file("no-pem", "some text");
    let run = |file: &str| place.run("--ca-file").and(file).word("https://127.0.0.1:1/a");
    run("no-pem").gets_refused().complains_of(&["no-pem, which contains no valid certificate"]);
    run("missing").gets_refused().complains_of(&["missing: No such file"]);
}

/// Answers the request for `/N` with N and a line feed, or 404 for `/missing`, after requests for the following objects have
/// arrived: `ahead` of them, or those up to the last one, `/29`. Returns the address and the paths of the requests.
fn numbers(ahead: usize) -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let requested = Arc::new(Mutex::new(Vec::<String>::new()));
    let all = requested.clone();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, all) = (stream.unwrap(), all.clone());
            thread::spawn(move || {
                let lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
                let head: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
                let path = head[0].split(' ').nth(1).unwrap().trim_start_matches('/').to_string();
                all.lock().unwrap().push(path.clone());
                let expected = match path.parse::<usize>() {
                    Ok(number) if number > 0 && ahead > 0 => 30.min(number + 1 + ahead),
                    _ => 0,
                };
                let start = Instant::now();
                while all.lock().unwrap().len() < expected && start.elapsed() < Duration::from_secs(20) {
                    thread::sleep(Duration::from_millis(1));
                }
                let is_right = all.lock().unwrap().len() >= expected && path != "missing";
                let status = if is_right { "200 OK" } else { "404 Not Found" };
                let length = path.len() + 1;
                let _ = write!(
                    stream,
                    "HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{path}\n"
                );
            });
        }
    });
    (address, requested)
}

#[test]
fn objects_are_opened_before_their_turn() {
    let (address, requested) = numbers(15);
    let urls = (0..30).map(|number| format!("http://{address}/{number}"));
    let place = Place::new();
    let run = urls.fold(place.run(""), |words, url| words.word(url));
    run.succeeds().prints((0..30).map(|number| format!("{number}\n")).collect::<String>());
    let mut found: Vec<usize> = requested.lock().unwrap().iter().map(|path| path.parse().unwrap()).collect();
    found.sort_unstable();
    assert_eq!(found, (0..30).collect::<Vec<_>>(), "one request for each object");
}

#[test]
fn a_failure_to_open_comes_after_the_sources_before_it() {
    let (address, _) = numbers(0);
    let place = Place::new().file("f", "file\n");
    let url = |name: &str| format!("http://{address}/{name}");
    let run = place.run("").word(url("0")).word("f").word(url("1")).word(url("missing")).word(url("2"));
    run.fails().prints("0\nfile\n1\n").complains_of(&["/missing: ", "404"]);
    // A limit of time begins with the source.
    place.run("--total-timeout 1m").word(url("0")).word(url("1")).succeeds().prints("0\n1\n");
}

/// A bucket of 1001 objects, each of which contains its key and a line feed. They are listed in two pages; `second` is the
/// answer to the request for the second one, and 404 if no object has been requested yet.
fn two_pages(second: impl Fn() -> String + Send + Sync + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let answer = Arc::new(move |head: &str, has_begun: &AtomicBool| {
        let path = head.split(' ').nth(1).unwrap();
        if !path.contains('?') {
            has_begun.store(true, Ordering::Relaxed);
            let key = path.rsplit('/').next().unwrap();
            return format!("HTTP/1.1 200 OK\r\nETag: \"1\"\r\nContent-Length: {}\r\n\r\n{key}\n", key.len() + 1);
        }
        match path.contains("continuation-token") {
            false => page(0..1000, "<IsTruncated>true</IsTruncated><NextContinuationToken>2</NextContinuationToken>"),
            true if has_begun.load(Ordering::Relaxed) => second(),
            true => "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".into(),
        }
    });
    let has_begun = Arc::new(AtomicBool::new(false));
    thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, answer, has_begun) = (stream.unwrap(), answer.clone(), has_begun.clone());
            thread::spawn(move || {
                let mut lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
                while let Some(head) = lines.next() {
                    lines.by_ref().take_while(|line| !line.is_empty()).for_each(drop);
                    let _ = stream.write_all(answer(&head, &has_begun).as_bytes());
                }
            });
        }
    });
    address
}

fn page(keys: Range<usize>, rest: &str) -> String {
    let entry = |key| format!("<Contents><Key>{key:04}</Key><Size>5</Size></Contents>");
    let body = format!("<ListBucketResult>{}{rest}</ListBucketResult>", keys.map(entry).collect::<String>());
    format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}

#[test]
fn long_lists_are_requested_while_objects_are_read() {
    let lines = |count: usize| (0..count).map(|key| format!("{key:04}\n")).collect::<String>();
    let place = Place::new();
    let run = |options: &str, address: &str| stored(place.run(options).word("s3://bucket/*"), address);
    let address = two_pages(|| page(1000..1001, ""));
    run("", &address).succeeds().prints(lines(1001));
    let address = two_pages(|| page(1000..1001, ""));
    let words = run("", &address).word("s3://bucket/000*");
    words.fails().prints("").complains_of(&["s3://bucket/", "404"]);
    // The objects before a page that cannot be listed are read.
    let refused = || "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n".to_string();
    run("", &two_pages(refused)).fails().prints(lines(1000)).complains_of(&["s3://bucket/", "403"]);
    run("-o out", &two_pages(refused)).fails();
    assert_eq!(place.names(), Vec::<String>::new());
}

/// Starts a server that sends a part of a body, and then nothing.
fn stalling() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    thread::spawn(move || {
        let mut open = Vec::new();
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\none\n");
            open.push(stream);
        }
    });
    address
}

#[test]
fn a_signal_while_a_server_stalls_ends_the_run() {
    let url = format!("http://{}/a", stalling());
    for signal in [Signal::INT, Signal::TERM] {
        let place = Place::new();
        let mut run = place.run("-o out --tee - --idle-timeout 1h").word(&url).start();
        run.prints("one\n");
        run.send(signal);
        run.dies_by(signal);
        assert_eq!(place.names(), [""; 0]);
    }
}

/// Starts a proxy that answers every request itself. Returns its address and the first lines of the requests.
fn proxy() -> (String, mpsc::Receiver<String>) {
    let (address, lines) = server(COMPLETE);
    let (sender, requests) = mpsc::channel();
    thread::spawn(move || {
        let is_request = |line: &String| line.ends_with(" HTTP/1.1");
        lines.iter().filter(is_request).for_each(|line| drop(sender.send(line)));
    });
    (address, requests)
}

#[test]
fn proxies_of_the_environment_are_used() {
    let (proxy, requests) = proxy();
    let place = Place::new();
    // No server of the domain name system knows this name.
    let run = |url: &str| place.run("").word(url).env("HTTP_PROXY", &format!("http://{proxy}"));
    run("http://host.invalid/a?b").succeeds().prints("one\ntwo\n");
    assert_eq!(requests.recv().unwrap(), "GET http://host.invalid/a?b HTTP/1.1");
    stored(run("s3://bucket/a"), "store.invalid").succeeds().prints("one\ntwo\n");
    assert_eq!(requests.recv().unwrap(), "GET http://store.invalid/bucket/a HTTP/1.1");

    let (address, _) = server("HTTP/1.1 200 OK\r\nContent-Length: 7\r\nConnection: close\r\n\r\ndirect\n");
    let url = format!("http://{address}/a");
    run(&url).env("NO_PROXY", "127.0.0.1").succeeds().prints("direct\n");
    run(&url).env("NO_PROXY", "example.org").succeeds().prints("one\ntwo\n");
    assert_eq!(requests.recv().unwrap(), format!("GET {url} HTTP/1.1"));
}

#[test]
fn a_bucket_may_be_a_part_of_the_host_name() {
    let (proxy, requests) = proxy();
    let place = Place::new();
    for (virtual_host, url) in
        [("true", "http://bucket.store.invalid/a%20b"), ("false", "http://store.invalid/bucket/a%20b")]
    {
        let words = stored(place.run("").word("s3://bucket/a b"), "store.invalid");
        let words = words.env("AWS_VIRTUAL_HOSTED_STYLE_REQUEST", virtual_host);
        words.env("HTTP_PROXY", &format!("http://{proxy}")).succeeds().prints("one\ntwo\n");
        assert_eq!(requests.recv().unwrap(), format!("GET {url} HTTP/1.1"));
    }
}

#[test]
fn the_most_specific_endpoint_is_used() {
    let (address, _) = server(COMPLETE);
    let (place, right) = (Place::new(), format!("http://{address}"));
    let run = |options: &str, s3: &str, aws: &str| {
        let words = stored(place.run(options).word("s3://bucket/a"), "127.0.0.1:1");
        let words = words.env("AWS_ENDPOINT_URL", aws).env("AWS_ENDPOINT_URL_S3", s3);
        words.succeeds().prints("one\ntwo\n")
    };
    let wrong = "http://127.0.0.1:1";
    run("", &right, wrong);
    run(&format!("--endpoint {right}"), wrong, wrong);
}
