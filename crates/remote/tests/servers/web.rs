//! Files of a web server: nginx, with settings that are common.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use millstream::{ErrorKind, Remote};

use crate::read::{LARGE, begin, compressed, content, expect, expect_splits, read_all, read_rest};
use crate::server::{PATIENCE, Server, free_port};

/// The folder `files` under several names. Filters that change the content remove its length.
const LOCATIONS: &str = r#"
    location /weak/ { alias files/; etag off; }
    location /chunked/ { alias files/; sub_filter "a text that no file contains" ""; sub_filter_types *; }
    location /endless/ {
        alias files/; sub_filter "a text that no file contains" ""; sub_filter_types *; chunked_transfer_encoding off;
    }
    location /once/ { alias files/; keepalive_timeout 0; }
    location /whole/ { alias files/; max_ranges 0; }
    location /static/ { alias files/; gzip_static always; }
    location /gzip/ { alias files/; gzip on; gzip_types *; }
    location /proxied/ { proxy_pass http://127.0.0.1:PORT/; }
    location /proxied-chunks/ { proxy_pass http://127.0.0.1:PORT/chunked/; proxy_http_version 1.1; }
    location /limited/ { alias files/; limit_req zone=limited; limit_req_status 429; }
    location /overloaded { return 503; }
    location /private/ { deny all; }
    location /moved/301/ { return 301 /files/a; }
    location /moved/302/ { return 302 a; }
    location /moved/302/a { return 307 http://localhost:PORT/moved/307; }
    location /moved/307 { return 308 http://127.0.0.1:PORT/files/a; }
    location /moved/again { return 302 /moved/again; }
    location /moved/plain { return 302 http://127.0.0.1:PORT/files/a; }
    location /moved/relative { return 302 /files/a; }
"#;

/// Starts nginx with the empty folder `files`.
pub(crate) fn nginx(more: &str) -> Option<Server> {
    Server::start("nginx", |port, place| {
        std::fs::create_dir(place.join("files")).unwrap();
        let folders = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
        let folders: String = folders.iter().map(|name| format!("{name}_temp_path {name};\n")).collect();
        let locations = format!("{LOCATIONS}{more}").replace("PORT", &port.to_string());
        let config = format!(
            "pid pid; error_log errors; events {{}}\n\
             http {{ {folders} limit_req_zone $server_port zone=limited:1m rate=20r/s;\n\
             log_format short '$request_uri $status $bytes_sent'; access_log requests short;\n\
             server {{ listen 127.0.0.1:{port}; root .; {locations} }} }}\n"
        );
        std::fs::write(place.join("config"), config).unwrap();
        let place = place.to_str().unwrap();
        // One process, so that it can be killed.
        ["-p", place, "-c", "config", "-e", "errors", "-g", "daemon off; master_process off;"].map(String::from).into()
    })
}

/// Stores a file as a whole: a new file replaces the old one.
pub(crate) fn store(server: &Server, name: &str, bytes: &[u8]) {
    std::fs::write(server.path("new"), bytes).unwrap();
    std::fs::rename(server.path("new"), server.path("files").join(name)).unwrap();
}

/// Returns the statuses of the answers to requests for `path`, and their lengths with the headers. It waits until there
/// are at least as many as `least`, because nginx writes them down after it has sent them.
pub(crate) fn answers(server: &Server, path: &str, least: usize) -> Vec<(u16, usize)> {
    let start = Instant::now();
    loop {
        let text = std::fs::read_to_string(server.path("requests")).unwrap();
        let lines = text.lines().filter_map(|line| line.split_once(' ').filter(|(requested, _)| *requested == path));
        let lines = lines.filter_map(|(_, line)| line.split_once(' '));
        let found: Vec<_> = lines.map(|(status, bytes)| (status.parse().unwrap(), bytes.parse().unwrap())).collect();
        if found.len() >= least {
            return found;
        }
        assert!(start.elapsed() < PATIENCE, "{} requests of {path}", found.len());
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn files_arrive_in_ranges() {
    let Some(server) = nginx("") else { return };
    for length in [0, 1, LARGE] {
        let bytes = content(1, length);
        store(&server, "a", &bytes);
        let path = format!("/files/a?{length}");
        expect(server.url(&path), &bytes);
        let expected: &[u16] = match length {
            // An empty file has no ranges.
            0 => &[200],
            1 => &[206],
            // 8 MiB and ranges of 4 MiB.
            _ => &[206, 206, 206, 206, 206],
        };
        let statuses: Vec<u16> = answers(&server, &path, expected.len()).iter().map(|answer| answer.0).collect();
        assert_eq!(statuses, expected, "{length}");
        expect(Remote::new(server.url("/files/a")).range_size(1_000_000).connections(5), &bytes);
        expect_splits(Remote::new(server.url("/files/a")), &bytes);
        expect(Remote::new(server.url("/proxied/files/a")).range_size(1_000_000).connections(5), &bytes);
    }
    store(&server, "a b#c?d%", b"one\n");
    expect(server.url("/files/a%20b%23c%3Fd%25?query"), b"one\n");
}

/// Runs openssl in a folder.
fn openssl(folder: &Path, words: &str) {
    let output = Command::new("openssl").args(words.split(' ')).current_dir(folder).output().unwrap();
    assert!(output.status.success(), "{words}: {}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn the_certificate_of_an_authority_may_be_added() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("names"), "subjectAltName=IP:127.0.0.1").unwrap();
    let key = "-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes";
    openssl(folder.path(), &format!("req -x509 {key} -keyout ca.key -out ca.pem -subj /CN=authority -days 30"));
    openssl(folder.path(), &format!("req {key} -keyout key -out request -subj /CN=server"));
    let signed = "-CA ca.pem -CAkey ca.key -CAcreateserial -extfile names";
    openssl(folder.path(), &format!("x509 -req -in request -out certificate -days 30 {signed}"));
    let (port, place) = (free_port(), folder.path().display());
    let more =
        format!("listen 127.0.0.1:{port} ssl; ssl_certificate {place}/certificate; ssl_certificate_key {place}/key;");
    let Some(server) = nginx(&more) else { return };
    store(&server, "a", b"one\n");
    let url = format!("https://127.0.0.1:{port}/files/a");
    let error = read_all(Remote::new(&*url).retry_for(Duration::ZERO)).1.expect("an unknown authority");
    assert_eq!(error.kind(), ErrorKind::OpenFailed, "{error}");
    assert!(error.to_string().contains("UnknownIssuer"), "{error}");
    let trusting = |url: &str| Remote::new(url).ca_file(folder.path().join("ca.pem").to_str().unwrap());
    expect(trusting(&url), b"one\n");
    // A redirect may not lead to a connection that is not encrypted.
    expect(Remote::new(server.url("/moved/plain")), b"one\n");
    expect(trusting(&format!("https://127.0.0.1:{port}/moved/relative")), b"one\n");
    let error = read_all(trusting(&format!("https://127.0.0.1:{port}/moved/plain"))).1.expect("a redirect to HTTP");
    let expected = format!("found a redirect to {}, expected an address that is encrypted", server.url("/files/a"));
    assert!(error.kind() == ErrorKind::RemoteFailed && error.to_string().contains(&expected), "{error}");
}

#[test]
fn files_without_ranges_or_a_length_arrive() {
    let Some(server) = nginx("") else { return };
    for length in [0, 1, LARGE] {
        let bytes = content(1, length);
        store(&server, "a", &bytes);
        for folder in ["weak", "whole", "chunked", "proxied/chunked", "proxied-chunks"] {
            expect(server.url(&format!("/{folder}/a")), &bytes);
        }
        let endless = Remote::new(server.url("/endless/a"));
        // The length of an empty file is announced.
        if length > 0 {
            let (found, error) = read_all(endless.clone());
            assert_eq!((found.len(), error.expect("no length").kind()), (0, ErrorKind::RemoteFailed));
        }
        expect(endless.allow_unknown_length(true), &bytes);
    }
}

#[test]
fn compressed_files_are_decoded_one_time() {
    let Some(server) = nginx("") else { return };
    let text = content(1, 3_000_000);
    store(&server, "a", &text);
    store(&server, "a.gz", &compressed(&text));
    expect(server.url("/files/a.gz"), &text);
    expect(Remote::new(server.url("/static/a")).range_size(500_000).connections(3), &text);
    expect(Remote::new(server.url("/gzip/a")).header("Accept-Encoding", "gzip"), &text);
}

#[test]
fn redirects_are_followed() {
    let Some(server) = nginx("") else { return };
    let bytes = content(1, LARGE);
    store(&server, "a", &bytes);
    expect(server.url("/moved/301/"), &bytes);
    expect(Remote::new(server.url("/moved/302/")).range_size(1_000_000).connections(5), &bytes);
    let (_, error) = read_all(server.url("/moved/again"));
    assert!(error.expect("a loop").to_string().contains("10 redirects"));
}

#[test]
fn refusals_are_reported() {
    let Some(server) = nginx("") else { return };
    for (path, kind, part) in [
        ("/files/a", ErrorKind::OpenFailed, "404 Not Found"),
        ("/private/a", ErrorKind::OpenFailed, "403 Forbidden"),
        ("/overloaded", ErrorKind::RemoteFailed, "503 Service Unavailable"),
    ] {
        let (_, error) = read_all(Remote::new(server.url(path)).retry_for(Duration::ZERO));
        let error = error.expect(part);
        assert!(error.kind() == kind && error.to_string().contains(part), "{error}");
    }
}

#[test]
fn requests_that_come_too_fast_are_repeated() {
    let Some(server) = nginx("") else { return };
    let bytes = content(1, LARGE);
    store(&server, "a", &bytes);
    expect(Remote::new(server.url("/limited/a")).range_size(2_000_000).connections(8), &bytes);
    // One more than ranges.
    let answers = answers(&server, "/limited/a", 13);
    assert!(answers.iter().any(|(status, _)| *status == 429), "{answers:?}");
}

#[test]
fn files_that_change_are_not_mixed() {
    let Some(server) = nginx("") else { return };
    let bytes = content(1, LARGE);
    let file = server.path("files").join("a");
    let replaced = || store(&server, "a", &content(2, LARGE - 1));
    let removed = || std::fs::remove_file(&file).unwrap();
    for change in [&replaced as &dyn Fn(), &removed] {
        store(&server, "a", &bytes);
        let (reader, found) = begin(server.url("/files/a"));
        change();
        let (found, error) = read_rest(reader, found);
        assert!(found.len() < LARGE && bytes.starts_with(&found), "{} wrong bytes", found.len());
        assert_eq!(error.expect("another version").kind(), ErrorKind::SourceChanged);
    }
}
