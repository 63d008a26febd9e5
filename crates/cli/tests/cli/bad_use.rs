//! Invalid use causes one line with the offending value and the accepted values and one with advice, and creates no
//! files.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::place::Place;

/// Expects exit status 2, exactly this line, and no new files.
fn refused(words: &str, message: &str) {
    let place = Place::new().file("a", "one\n");
    place
        .run(words)
        .and("-o out a")
        .gets_refused()
        .says(&format!("millstream: {message}{}see `millstream run --help`\n", joint(message)));
    assert_eq!(place.names(), ["a"]);
}

/// Returns the text between a message, which may contain a hint already, and the advice to read the help.
fn joint(message: &str) -> &'static str {
    if message.contains("\nhint: ") { "; " } else { "\nhint: " }
}

#[test]
fn sizes() {
    let accepted = "expected a size such as 4096, 64K, 1.5MiB or 2GB";
    refused("--capacity 12Q", &format!("invalid value '12Q' for '--capacity <SIZE>': {accepted}"));
    refused("--fixed five", &format!("invalid value 'five' for '--fixed <SIZE>': {accepted}"));
    refused("--record-limit 1,5M", &format!("invalid value '1,5M' for '--record-limit <SIZE>': {accepted}"));
    refused("--rate-limit fast", &format!("invalid value 'fast' for '--rate-limit <SIZE>': {accepted}"));
    refused("--fixed 0", "invalid value '0' for '--fixed <SIZE>': expected 1 byte to 2G");
    refused("--capacity 2G", "invalid value '2G' for '--capacity <SIZE>': expected 1 byte to 1G");
    refused("--rate-limit 0", "invalid value '0' for '--rate-limit <SIZE>': expected 1 byte or more, below 16E");
}

#[test]
fn durations() {
    let accepted = "expected a duration such as 500ms, 30s or 5m";
    refused("--stall-timeout 5", &format!("invalid value '5' for '--stall-timeout <DURATION>': {accepted}"));
    refused("--stall-timeout 0s", &format!("invalid value '0s' for '--stall-timeout <DURATION>': {accepted}"));
    refused(
        "--flush-policy often",
        "invalid value 'often' for '--flush-policy <HOW>': expected one of auto, when-full, line",
    );
}

#[test]
fn delimiters() {
    refused(
        "--delimiter=",
        r"invalid value '' for '--delimiter <BYTES>': expected at least one byte, such as ';', '\t', '\0' or '\x1e'",
    );
    refused(
        r"--delimiter \q",
        r"invalid value '\q' for '--delimiter <BYTES>': expected \n, \r, \t, \0, \\ or \xHH after a backslash",
    );
    refused(
        "--length-prefixed u9",
        "invalid value 'u9' for '--length-prefixed <TYPE>': expected u8, u16le, u16be, u32le, u32be, u64le or u64be, \
         perhaps with ',self'",
    );
    refused("--null --fixed 8", "the argument '--null' cannot be used with '--fixed <SIZE>'");
}

#[test]
fn choices() {
    refused("--hash md5", "invalid value 'md5' for '--hash <ALGORITHM>': expected one of sha256, blake3, crc32c");
    refused("--decode yes", "invalid value 'yes' for '--decode <HOW>': expected one of auto, off");
    refused("--read-ahead 4M", "invalid value '4M' for '--read-ahead <HOW>': expected one of auto, on, off");
    refused("--progress=no", "invalid value 'no' for '--progress <WHEN>': expected one of always, never, auto");
}

/// Compares with `vectors/names.tsv`, as in every language.
#[test]
fn words_for_failures() {
    let table = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/names.tsv")).unwrap();
    let words = table.lines().find_map(|line| line.strip_prefix("on_error\t")).unwrap().replace('\t', ", ");
    refused("--each cat --on-error x", &format!("invalid value 'x' for '--on-error <WHAT>': expected one of {words}"));
}

#[test]
fn options_that_there_are_not() {
    refused("--frobnicate", "unexpected argument '--frobnicate' found");
    refused(
        "--stall-timeou 1s",
        "unexpected argument '--stall-timeou' found\nhint: a similar argument exists: '--stall-timeout'",
    );
    refused("--count", "the argument '--count' cannot be used with '--output <OUTPUT>'");
}

#[test]
fn contradictory_options() {
    for sources in ["- -", "- in -"] {
        let place = Place::new().file("in", "one\n");
        let seen = place.run(sources).and("-o out").gets_refused();
        let _ = seen.complains_of(&["found standard input as a source more than once", "expected '-' once"]);
        assert_eq!(place.names(), ["in"]);
    }
    for (words, found) in [
        ("--unordered --stage match:x", "--unordered without threads"),
        (
            "-j 2 --unordered --stage match:x --stage uniq",
            "--unordered with --stage uniq, whose result depends on the order",
        ),
        ("-j 2 --unordered --stage take:3", "--unordered with --stage take:3,"),
        ("-j 2 --unordered --stage match:x --hash sha256", "--unordered with --hash,"),
    ] {
        let place = Place::new().file("a", "one\n");
        place.run(words).and("-o out a").gets_refused().complains_of(&[found, "expected -j N"]);
        assert_eq!(place.names(), ["a"]);
    }
    refused("--each cat --unordered --round-robin", "the argument '--unordered' cannot be used with '--round-robin'");
}

#[test]
fn the_advice_fits_the_mistake() {
    let place = Place::new().file("t.csv", "a,b\n1,2\n");
    let help = "see `millstream run --help`";
    for (words, advice) in [
        ("run t.csv --existing append --partial keep -o out", help),
        ("run - -", help),
        ("run t.csv --append", help),
        ("run --pipeline : -- ls", help),
        ("run t.csv --csv --header --stage fields:c", "select fields of the header, by their names or numbers"),
        ("run t.csv --csv --header --stage fields:3", "select fields of the header, by their names or numbers"),
        ("run x*[", "correct the pattern"),
        ("bson get t.csv a --as nothing", "see `millstream bson --help`"),
        ("count t.csv", "use `millstream run --count`; see `millstream --help`"),
        ("grep x t.csv", "use `millstream run --stage match:PATTERN`; see `millstream --help`"),
        ("conver t.csv", "a similar subcommand exists: 'convert'; see `millstream --help`"),
    ] {
        let seen = place.words(words).gets_refused();
        assert_eq!(seen.stderr.lines().last(), Some(&*format!("hint: {advice}")), "{words}");
    }
}

/// The commands in the advice for these words are accepted.
#[test]
fn what_other_programs_call_it() {
    let place = Place::new().file("in", "one\ntwo\n").file("o.bson", b"\x05\0\0\0\0");
    for (word, argument) in [
        ("cat", "in"),
        ("check", "o.bson"),
        ("count", "in"),
        ("get", "o.bson"),
        ("grep", "in"),
        ("hash", "in"),
        ("head", "in"),
        ("ls", "o.bson"),
        ("wc", "in"),
    ] {
        let seen = place.words(word).gets_refused();
        let command = seen.stderr.split("use `millstream ").nth(1).and_then(|rest| rest.split('`').next()).unwrap();
        let _ = place.words(command).and(argument).exits(0);
    }
}

#[test]
fn a_command_without_dashes() {
    let place = Place::new().file("cat", "one\n");
    let advice = |command: &str| format!("put the command after `--`: millstream run ... -- {command}");
    for words in ["ls -la", "-o out ls -la", "--tee ls ls -la", "cat ls -la"] {
        let expected = format!(
            "millstream: unexpected argument '-l' found\nhint: {}; see `millstream run --help`\n",
            advice("ls -la")
        );
        place.run(words).gets_refused().says(&expected);
    }
    for (words, command) in [("ls", "ls"), ("-o out ls cat", "ls cat"), ("cat ls --append -o out", "ls")] {
        let expected =
            format!("millstream: ls: open failed: No such file or directory (os error 2)\nhint: {}\n", advice(command));
        place.run(words).fails().prints("").says(&expected);
    }
    // If a file has this name, it is a source. The message does not apply to a name that is neither a file nor a
    // program, to the value of an option, or if a command has been given already.
    for words in ["cat -x", "no-such-program -x", "-o ls -x", "ls -x -- cat"] {
        let seen = place.run(words).gets_refused();
        assert!(!seen.stderr.contains("put the command after"), "{words}: {:?}", seen.stderr);
    }
    let seen = place.run("ls -- cat").fails().complains_of(&["ls: open failed", "\nhint: check the "]);
    assert!(!seen.stderr.contains("put the command after"), "{:?}", seen.stderr);
    assert_eq!(place.names(), ["cat"]);
}

#[test]
fn addresses() {
    refused(
        "tcp:localhost",
        "invalid value 'tcp:localhost' for '[SOURCE]...': expected tcp:HOST:PORT, such as tcp:localhost:5140 or \
         tcp:[::1]:5140",
    );
    refused("unix:", "invalid value 'unix:' for '[SOURCE]...': expected unix:PATH, such as unix:/run/log.sock");
}

#[test]
fn empty_names() {
    let place = Place::new();
    let accepted = "tcp:HOST:PORT or unix:PATH\nhint: see `millstream run --help`";
    let source = format!("millstream: invalid value '' for '[SOURCE]...': expected a file, '-', a URL, {accepted}\n");
    place.run("-o out").word("").gets_refused().says(&source);
    let output = format!(
        "millstream: invalid value '' for '--output <OUTPUT>': expected a file, '-', s3://BUCKET/KEY, gs://BUCKET/KEY, az://CONTAINER/KEY, {accepted}\n"
    );
    place.run("-o").word("").gets_refused().says(&output);
    let command = "millstream: expected a command after '--'\nhint: see `millstream run --help`\n";
    place.run("-o out --").word("").gets_refused().says(command);
    assert_eq!(place.names(), [""; 0]);
}

#[test]
fn a_command_that_is_not_there() {
    let place = Place::new();
    place
        .run("-o out --")
        .gets_refused()
        .says("millstream: expected a command after '--'\nhint: see `millstream run --help`\n");
    place.run("-o out -- no-such-command").fails().complains_of(&[
        "no-such-command",
        "command not started",
        "No such file or directory",
    ]);
    place.run("-o out -- /").fails().complains_of(&["command not started", "Permission denied"]);
    assert_eq!(place.names(), [""; 0]);
}

#[test]
fn subcommands() {
    let place = Place::new();
    place.words("").gets_refused().says(
        "millstream: a subcommand is missing: expected run, bson, convert, index, split, commit, uploads, bench, completions or man\nhint: see `millstream --help`\n",
    );
    place.words("rum").gets_refused().says(
        "millstream: unrecognized subcommand 'rum': expected run, bson, convert, index, split, commit, uploads, bench, completions or man\n\
         hint: a similar subcommand exists: 'run'; see `millstream --help`\n",
    );
    place.words("completions csh").gets_refused().complains_of(&["invalid value 'csh'", "expected one of bash"]);
}

#[test]
fn files_that_cannot_be_read() {
    let place = Place::new().file("a", "one\n").file("secret", "two\n");
    fs::create_dir(place.path("directory")).unwrap();
    fs::set_permissions(place.path("secret"), fs::Permissions::from_mode(0o000)).unwrap();
    let before = place.names();
    let may_read_anything = fs::File::open(place.path("secret")).is_ok(); // root
    for (name, why) in [("missing", "No such file"), ("directory", "Is a directory"), ("secret", "Permission denied")] {
        if name == "secret" && may_read_anything {
            continue;
        }
        // The word is the first source, or one that would be opened later.
        for words in [format!("{name} -o out"), format!("a {name} -o out"), format!("a {name} --append -o out")] {
            let name = format!("{name}: open failed");
            place.run(&words).fails().prints("").complains_of(&[&name, why, "\nhint: "]);
        }
    }
    place.run("a -o out -- no-such-command").fails().complains_of(&["no-such-command: command not started"]);
    place.run("a unix:missing").fails().prints("").complains_of(&[
        "unix:missing: open failed",
        "No such file",
        "\nhint: check the address, and that a server is listening there",
    ]);
    place.run("a unix:a").fails().prints("").complains_of(&["unix:a: open failed", "ocket"]);
    assert_eq!(place.names(), before);
}

#[test]
fn an_address_without_a_listener() {
    // This port was free a moment ago, and no other test uses this address.
    let address = std::net::TcpListener::bind("127.0.0.99:0").unwrap().local_addr().unwrap();
    let place = Place::new();
    place.run(&format!("tcp:{address} -o out")).fails().complains_of(&["open failed", "Connection refused"]);
    place.run("tcp:no-such-host.invalid:80 -o out").fails().complains_of(&["no-such-host.invalid:80"]);
    assert_eq!(place.names(), [""; 0]);
}

#[test]
fn outputs_that_cannot_be_written() {
    let place = Place::new().file("a", "one\n");
    fs::create_dir(place.path("directory")).unwrap();
    for words in ["-o missing/out", "-o directory", "-o out --tee missing/copy", "-o out --stats missing/stats"] {
        place.run("a").and(words).fails().complains_of(&["open failed", "\nhint: "]);
    }
    assert_eq!(place.names(), ["a", "directory"]);
}

#[test]
fn a_name_cannot_play_tricks_on_the_terminal() {
    let name = "evil\x1b[2J\r\nname\u{202e}txt";
    let seen = Place::new().run("").word(name).fails().complains_of(&["evil[2Jnametxt: open failed"]);
    assert!(!seen.stderr.lines().any(|line| line.contains(char::is_control)));
}

#[test]
fn urls_of_other_schemes() {
    let place = Place::new();
    place.run("ftp://example.org/a.gz").fails().says(
        "millstream: ftp://example.org/a.gz: open failed: No such file or directory (os error 2)\n\
         hint: this URL cannot be read; read the output of a client: millstream run -- \
         curl --fail --silent --show-error --location 'ftp://example.org/a.gz'\n",
    );
}
