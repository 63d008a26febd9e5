//! The header is what the sources say: generated from them, committed, and compared here.
//!
//! `make header` writes it anew (this test with `MILLSTREAM_HEADER=write`). Each room of `src/` is a section: its first
//! paragraphs, then its types and functions. The codes of errors come from the library's table.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use cbindgen::{Config, DocumentationStyle, EnumConfig, ExportConfig, FunctionConfig, Language, RenameRule, Style};
use millstream::ErrorKind;

/// The rooms in the order in which they need each other.
const ROOMS: [&str; 17] = [
    "version",
    "error",
    "cancel",
    "command",
    "frame",
    "reader",
    "scan",
    "writer",
    "shared",
    "put",
    "pipe",
    "pipe_stage",
    "bson",
    "bson_scalar",
    "bson_owned",
    "bson_stream",
    "bson_write",
];

const TOP: &str = r#"/* Millstream: move records from commands, files and sockets at the speed of the machine, and know that all of them
 * arrived. Licence: MIT or Apache 2.0.
 *
 * Generated from crates/capi/src by `make header`: change it there.
 *
 *     millstream_error *error = NULL;
 *     millstream_reader *reader;
 *     if (millstream_reader_path("reads.txt.gz", NULL, &reader, &error) == MILLSTREAM_OK) {
 *         const char *line;
 *         size_t len;
 *         while (millstream_reader_next_line(reader, &line, &len, &error) == MILLSTREAM_OK && line != NULL)
 *             use(line, len);
 *     }
 *     if (error != NULL)
 *         fprintf(stderr, "%s\n", millstream_error_message(error));
 *     millstream_error_free(error);
 *     millstream_reader_free(reader);
 *
 * CONVENTIONS
 *
 * Results. A function that can fail returns a millstream_code, and gives the rest through out-parameters. When it
 * fails these are NULL, 0 or false, unless its comment says otherwise (after MILLSTREAM_ARGUMENT_INVALID they may be
 * untouched). Different out-parameters are different objects. The last argument is where an error object goes; it is
 * set by a call that fails and by no other, and NULL means that the code is enough. The few functions that cannot
 * fail return their result.
 *
 * Arguments. NULL where an object is needed is MILLSTREAM_ARGUMENT_INVALID, a number that is no value of an enum is
 * MILLSTREAM_INVALID_OPTION. Text ends with a NUL; paths are any bytes, addresses UTF-8. Bytes have a length, and may
 * be NULL if that is 0.
 *
 * Ownership. What a function gives as a handle is freed by the function named at its type, once; NULL is fine there.
 * What is passed to a function stays the caller's, and may be freed or changed when it has returned, unless its
 * comment says otherwise. Bytes and text that a handle lends are valid until the next call on it that is not const
 * (its pointer is not to const), or as long as the comment says.
 *
 * Threads. Calls on different handles may run at the same time. So may calls on one handle if all of them take it as
 * const. Any other call must be alone with its handle; it need not be on the thread that made it. A cancel token is
 * made for several threads: all its functions but millstream_cancel_token_free() take it as const.
 *
 * Callbacks run on the thread that makes the call, while it makes it, unless their comment says otherwise. They must
 * return: no exception and no longjmp() may leave them. They must not use the handle that calls them.
 *
 * Panics. A mistake in the library ends with MILLSTREAM_INTERNAL rather than with the process. Please report it. The
 * handle is then good for nothing but to be freed.
 */

#ifndef MILLSTREAM_H
#define MILLSTREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
"#;

const BOTTOM: &str = r#"
#include "millstream/numbers.h"
#include "millstream/window.h"
#include "millstream/bson.h"

#endif /* MILLSTREAM_H */
"#;

fn crate_dir() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn config() -> Config {
    Config {
        language: Language::C,
        style: Style::Type,
        cpp_compat: true,
        no_includes: true,
        documentation_style: DocumentationStyle::Doxy,
        line_length: 110,
        tab_width: 4,
        usize_is_size_t: true,
        enumeration: EnumConfig { rename_variants: RenameRule::QualifiedScreamingSnakeCase, ..EnumConfig::default() },
        // The codes are an enum that this generator makes.
        export: ExportConfig { exclude: vec!["millstream_code".into()], ..ExportConfig::default() },
        function: FunctionConfig::default(),
        ..Config::default()
    }
}

/// The codes, from the library's one table, as cbindgen would write an enum.
fn codes() -> String {
    let typed = "#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L\n  : uint32_t\n#endif\n";
    let mut out =
        String::from("/**\n * How a call went. Codes never change their meaning; later versions may add some.\n */\n");
    write!(out, "enum millstream_code\n{typed} {{\n    /**\n     * It succeeded.\n     */\n    MILLSTREAM_OK = 0,\n")
        .unwrap();
    for kind in ErrorKind::ALL {
        let name = kind.name().to_uppercase();
        write!(out, "    /**\n     * {}\n     */\n    MILLSTREAM_{name} = {},\n", kind.meaning(), kind.code()).unwrap();
    }
    out += "};\n#ifndef __cplusplus\n#if __STDC_VERSION__ >= 202311L\n";
    out +=
        "typedef enum millstream_code millstream_code;\n#else\ntypedef uint32_t millstream_code;\n#endif\n#endif\n\n";
    out
}

/// A room's part of the header: what its file says at its top, then its types and functions.
fn section(room: &str) -> String {
    let file = crate_dir().join("src").join(format!("{room}.rs"));
    let source = std::fs::read_to_string(&file).unwrap();
    let about: Vec<&str> = source.lines().map_while(|line| line.strip_prefix("//!")).collect();
    let mut out = format!("\n/* ---- {room} ----\n *\n");
    for line in about {
        writeln!(out, " *{line}").unwrap();
    }
    out += " */\n\n";
    if room == "error" {
        out += &codes();
    }
    let mut generated = Vec::new();
    cbindgen::Builder::new().with_config(config()).with_src(&file).generate().unwrap().write(&mut generated);
    out + String::from_utf8(generated).unwrap().trim_start()
}

fn header() -> String {
    let version = env!("CARGO_PKG_VERSION");
    let mut out =
        format!("{TOP}\n/**\n * The version of this header.\n */\n#define MILLSTREAM_VERSION \"{version}\"\n");
    for room in ROOMS {
        out += &section(room);
    }
    out + BOTTOM
}

#[test]
fn the_header_is_fresh() {
    let path: PathBuf = crate_dir().join("include/millstream.h");
    let fresh = header();
    if std::env::var("MILLSTREAM_HEADER").as_deref() == Ok("write") {
        std::fs::write(&path, &fresh).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    let differs = committed.lines().zip(fresh.lines()).position(|(one, other)| one != other);
    assert!(committed == fresh, "millstream.h is stale, first at line {differs:?}: run `make header`");
}

/// The functions that the sources export, and whether each is documented.
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

/// Every function that the sources export is in the header, so every room is.
#[test]
fn no_function_is_missing() {
    let header = header();
    for (name, documented) in exported() {
        assert!(documented, "{name} has no documentation");
        assert!(header.contains(&format!(" {name}(")) || header.contains(&format!("*{name}(")), "{name} is missing");
    }
}

/// What C can do C++ can do: its headers use every function, by themselves or through window.h and bson.h.
#[test]
fn cpp_has_every_function() {
    // error.hpp has the table of codes itself, and MILLSTREAM_VERSION is the version that a program was compiled with.
    const OTHERWISE: [&str; 5] = [
        "millstream_code_advice",
        "millstream_code_is_resumable",
        "millstream_code_name",
        "millstream_error_code",
        "millstream_version",
    ];
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
    // The stages of pipe.hpp are fused: they work on the batches of its readers, and need no pipe of C's.
    left_out.retain(|name| !name.starts_with("millstream_pipe_") && !name.starts_with("millstream_stage_"));
    left_out.sort();
    assert_eq!(left_out, OTHERWISE);
}
