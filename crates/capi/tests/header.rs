//! Checks that the header, which `cargo xtask generate` writes from the sources, has every function, and that the
//! headers for C++ use all of them.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::process::Command;

use millstream::ErrorKind;

fn crate_dir() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Returns the functions that the sources export, and whether each is documented.
fn exported() -> HashMap<String, bool> {
    let mut exported = HashMap::new();
    for entry in std::fs::read_dir(crate_dir().join("src")).unwrap() {
        let path = entry.unwrap().path();
        let source = std::fs::read_to_string(&path).unwrap();
        let mut lines = source.lines().peekable();
        let mut documented = false;
        while let Some(line) = lines.next() {
            if line == "#[unsafe(no_mangle)]" {
                let signature = lines.peek().unwrap();
                let name = signature.split("fn ").nth(1).unwrap().split('(').next().unwrap().to_string();
                exported.insert(name, documented);
            }
            documented = line.starts_with("///");
        }
    }
    assert!(exported.len() > 50, "{}", exported.len());
    exported
}

/// Every function and every module of the sources is in the header.
#[test]
fn no_function_is_missing() {
    let header = std::fs::read_to_string(crate_dir().join("include/millstream.h")).unwrap();
    for (name, documented) in exported() {
        assert!(documented, "{name} has no documentation");
        assert!(header.contains(&format!(" {name}(")) || header.contains(&format!("*{name}(")), "{name} is missing");
    }
}

/// C++ has every feature of C: its headers use every function, directly or through window.h and bson.h.
#[test]
fn cpp_has_every_function() {
    // error.hpp has the table of codes itself, and MILLSTREAM_VERSION is the version that a program was compiled with.
    const OTHERWISE: [&str; 4] =
        ["millstream_code_advice", "millstream_code_is_resumable", "millstream_code_name", "millstream_version"];
    let headers = crate_dir().join("../../bindings/cpp/include/millstream");
    let inlined = ["window.h", "bson.h"].map(|header| crate_dir().join("include/millstream").join(header));
    let mut text: String = inlined.iter().map(|header| std::fs::read_to_string(header).unwrap()).collect();
    for entry in std::fs::read_dir(headers).unwrap() {
        text += &std::fs::read_to_string(entry.unwrap().path()).unwrap();
    }
    let code = text.lines().filter(|line| !line.trim_start().starts_with(['/', '*']));
    let used: HashSet<&str> =
        code.flat_map(|line| line.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')).collect();
    let mut left_out: Vec<String> = exported().into_keys().filter(|name| !used.contains(name.as_str())).collect();
    // The stages of pipe.hpp are fused: they process the batches of its readers, and do not use C's pipes.
    let of_pipes = ["millstream_pipe_", "millstream_stage_", "millstream_item_", "millstream_completion_"];
    left_out.retain(|name| !of_pipes.iter().any(|prefix| name.starts_with(prefix)));
    left_out.sort();
    assert_eq!(left_out, OTHERWISE);
}

/// The options of every language: of what, its name, what it takes, and the languages that have it otherwise.
fn options() -> Vec<Vec<String>> {
    rows("options.tsv")
}

/// The rows of a table that every language shares.
fn rows(table: &str) -> Vec<Vec<String>> {
    let table = std::fs::read_to_string(crate_dir().join("../../vectors").join(table)).unwrap();
    let rows = table.lines().filter(|line| !line.starts_with('#'));
    rows.map(|line| line.split('\t').map(str::to_string).collect()).collect()
}

/// The names of options are the same in every language.
#[test]
fn every_option_has_a_setter() {
    let mut expected: Vec<String> = options()
        .iter()
        .map(|row| {
            let unit = if row[2] == "time" { "_ns" } else { "" };
            let keeps_options = matches!(&*row[0], "command" | "remote");
            let of = if keeps_options { &row[0] } else { &format!("{}_options", row[0]) };
            format!("millstream_{of}_set_{}{unit}", row[1])
        })
        .collect();
    let exported = exported();
    // A command and a remote object also have setters that are written by hand.
    let is_option = |name: &&String| name.contains("_options_set_") || expected.contains(name);
    let mut found: Vec<String> = exported.keys().filter(is_option).cloned().collect();
    expected.sort();
    found.sort();
    assert_eq!(found, expected);
}

/// Returns what advice names, such as options.
fn named_in_advice() -> HashSet<&'static str> {
    let names: HashSet<&str> =
        ErrorKind::ALL.iter().flat_map(|kind| kind.advice().split('`').skip(1).step_by(2)).collect();
    assert!(
        ["record_limit", "allow_failure", "on_error", "depth"].iter().all(|name| names.contains(name)),
        "{names:?}"
    );
    names
}

/// What advice names is the end of a function's name, before the unit of a time, or a member.
#[test]
fn advice_names_what_c_has() {
    let header = std::fs::read_to_string(crate_dir().join("include/millstream.h")).unwrap();
    for name in named_in_advice() {
        let has = |parts: [&str; 2]| header.contains(&format!("{}{name}{}", parts[0], parts[1]));
        assert!([["_", "("], ["_", "_ns("], [" ", ";"]].into_iter().any(has), "{name}");
    }
}

/// So are those of C++, and the values of its enums, in the same order: a program that names all of them compiles.
#[test]
fn cpp_has_every_option() {
    let mut program = String::from("#include <millstream/options.hpp>\n");
    for row in options() {
        let (of, name) = (&row[0], &row[1]);
        // The options of a command are methods, which `every_function_is_used` checks.
        if of != "command" {
            program += &format!("auto {of}_{name} = &millstream::{of}_options::{name};\n");
        }
        for (number, word) in row[2].split('|').enumerate().filter(|_| row[2].contains('|')) {
            let word = word.trim_end_matches('*').replace("auto", "automatic");
            let value = format!("millstream::{name}::{word}");
            program += &format!("static_assert(static_cast<unsigned>({value}) == {number});\n");
        }
    }
    program += "#include <millstream/bson.hpp>\n#include <millstream/pipe.hpp>\n";
    for name in named_in_advice() {
        let found = match name {
            "allow_failure" => "&millstream::command",
            "skip_record" => "static_cast<bool (millstream::records::*)()>(&millstream::records",
            "depth" => "&millstream::bson::rules",
            // The class of pipes is a template; its method takes this enum.
            "on_error" => "sizeof(millstream",
            _ => "&millstream::reader_options",
        };
        let end = if found.contains('(') { ")" } else { "" };
        program += &format!("auto advised_{name} = {found}::{name}{end};\n");
    }
    for row in rows("names.tsv") {
        let of = match row[0].as_str() {
            "command_end" => "&millstream::command_end",
            "stdin" => "millstream::stdin_from",
            "stderr" => "millstream::stderr_to",
            "on_error" => "millstream::on_error",
            // It has functions in their place: `millstream::writer::accepted`, `millstream::pipe_chain::command_ends`.
            _ => continue,
        };
        for name in &row[1..] {
            program += &format!("constexpr auto {}_{name} = {of}::{name};\n", row[0]);
        }
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("options.cpp");
    std::fs::write(&path, program).unwrap();
    let include = |path: &str| format!("-I{}", crate_dir().join(path).display());
    let mut compiler = Command::new("g++");
    compiler.args(["-std=c++20", "-fsyntax-only", &include("include"), &include("../../bindings/cpp/include")]);
    match compiler.arg(&path).output() {
        Ok(done) => assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr)),
        Err(_) if std::env::var("CI").as_deref() == Ok("true") => panic!("g++ is missing"),
        Err(_) => println!("SKIPPED: g++ is missing"),
    }
}
