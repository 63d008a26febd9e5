//! Runs the shared vectors of behaviour: detected compression formats, limits, and the defaults of options.

use crate::place::Place;

fn cases<const N: usize>(file: &str) -> Vec<[&str; N]> {
    let lines = file.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(|line| line.split('\t').collect::<Vec<_>>().try_into().unwrap()).collect()
}

fn unhex(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

/// Returns an error kind as messages contain it.
fn in_words(kind: &str) -> String {
    kind.replace('_', " ")
}

#[test]
fn sniff() {
    for [name, way, file, input, output, end] in cases(include_str!("../../../../vectors/sniff.tsv")) {
        let (place, input, output) = (Place::new(), unhex(input), unhex(output.trim_start_matches('-')));
        let (place, words) = match way {
            "read" => (place.file(file, &input), file.to_owned()),
            _ => (place.file("input", &input), format!("input -o {file}")),
        };
        let run = place.run(&words);
        match (end, way) {
            ("end", "read") => drop(run.succeeds().prints(&output)),
            ("end", _) => {
                run.succeeds();
                assert!(place.read(file).starts_with(&output), "{name}");
            }
            _ => drop(run.fails().complains_of(&[in_words(end).as_str()])),
        }
    }
}

#[test]
fn limits() {
    for [name, words, limit, input, records, end] in cases(include_str!("../../../../vectors/limits.tsv")) {
        let framing = match words.split(' ').collect::<Vec<_>>()[..] {
            ["lines"] => String::new(),
            ["byte" | "bytes", hex] => {
                format!("--delimiter={}", unhex(hex).iter().map(|byte| format!("\\x{byte:02x}")).collect::<String>())
            }
            ["fixed", size] => format!("--fixed {size}"),
            ["prefix", width, order, counts] => {
                let order = if order == "big" { "be" } else { "le" };
                format!("--length-prefixed {width}{order}{}", if counts == "itself" { ",self" } else { "" })
            }
            ["bson"] => "--bson".to_owned(),
            // The command does not have this framer.
            _ => continue,
        };
        let count = if records == "-" { 0 } else { records.split(',').count() };
        let place = Place::new();
        let run = place.run(&framing).and(&format!("--record-limit {limit} --count")).stdin(unhex(input));
        if end == "end" {
            let seen = String::from_utf8(run.succeeds().stdout).unwrap();
            assert!(seen.starts_with(&format!("{count} record")), "{name}: {seen}");
        } else {
            let at = match words {
                "lines" | "byte 0a" => format!("at line {}", count + 1),
                _ => format!("record {count} (the first is 0)"),
            };
            run.fails().complains_of(&[in_words(end).as_str(), &at]);
        }
    }
}

#[test]
fn defaults() {
    for [option, default] in cases(include_str!("../../../../vectors/defaults.tsv")) {
        if let Some(found) = default_of(option) {
            assert_eq!(found, default, "{option}");
        }
    }
}

/// Returns the default of an option, as determined from its behaviour, or `None` if the command does not have the
/// option.
fn default_of(option: &str) -> Option<&'static str> {
    let zipped = unhex("1f8b080000000000020333e4020053fc516702000000");
    let decoded = |stdout: Vec<u8>| if stdout == b"1\n" { "yes" } else { "no" };
    let place = Place::new();
    Some(match option {
        "record_limit" => {
            let place = place.file("within", vec![b'x'; 64 << 20]).file("over", vec![b'x'; (64 << 20) + 1]);
            place.run("--count within").succeeds();
            place.run("--count over").fails();
            "67108864"
        }
        "decode_file" => decoded(place.file("file", zipped).run("file").succeeds().stdout),
        "decode_command" => decoded(place.run("").shell("echo 1 | gzip").succeeds().stdout),
        "command_failure" => {
            place.run("-- false").fails();
            "error"
        }
        "command_stdin" => match place.run("--count -- cat").succeeds().stdout.starts_with(b"0 records") {
            true => "nothing",
            false => "something",
        },
        "encode_file" => {
            place.run("-o file.gz").stdin("1\n").succeeds();
            if place.read("file.gz").starts_with(&[0x1f, 0x8b]) { "by name" } else { "no" }
        }
        "existing_file" => {
            let place = place.file("file", "before");
            place.run("-o file").stdin("after").succeeds();
            if place.text("file") == "after" { "replaced" } else { "appended" }
        }
        "unfinished_file" => {
            place.run("-o file").shell("echo 1; exit 3").fails();
            if place.names().is_empty() { "removed" } else { "kept" }
        }
        "keep_delimiter" | "prefix_order" | "prefix_counts" | "decode_memory" | "decode_callback" | "encode_memory"
        | "on_error" => {
            return None;
        }
        _ => panic!("no test for the option {option}"),
    })
}
