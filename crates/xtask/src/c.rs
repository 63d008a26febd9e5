//! C: generates the header.
//!
//! Each module of `crates/capi/src` is a section: the first paragraphs of its documentation, followed by its types and
//! functions as written by cbindgen. The error codes come from the library's table.

use std::fmt::Write as _;
use std::path::Path;

use cbindgen::{Config, DocumentationStyle, EnumConfig, ExportConfig, FunctionConfig, Language, RenameRule, Style};

use crate::NOTICE;
use crate::source::ErrorKind;

/// The modules, ordered so that each depends only on earlier ones.
pub const MODULES: [&str; 21] = [
    "version",
    "error",
    "cancel",
    "command",
    "frame",
    "format",
    "reader",
    "reader_options",
    "scan",
    "writer",
    "writer_options",
    "shared",
    "put",
    "pipe",
    "pipe_stage",
    "bson_type",
    "bson",
    "bson_scalar",
    "bson_owned",
    "bson_stream",
    "bson_write",
];

const TOP: &str = r#"
/* Millstream: move records from commands, files and sockets at the speed of the machine, and know that all of them
 * arrived. Licence: MIT or Apache 2.0.
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
 * Results. A function that can fail returns a millstream_code and its other results through out-parameters. If it
 * fails, these are NULL, 0 or false, unless its comment states otherwise (after MILLSTREAM_ARGUMENT_INVALID they may
 * be untouched). Different out-parameters must be different objects. The last argument receives an error object; only
 * a call that fails sets it, and it may be NULL if the code is enough. The few functions that cannot fail return their
 * result directly.
 *
 * Arguments. NULL in place of a required object is MILLSTREAM_ARGUMENT_INVALID; a number that is not a value of an
 * enum is MILLSTREAM_INVALID_OPTION. Text ends with a NUL; paths are any bytes, addresses are UTF-8. Bytes have a
 * length, and may be NULL if it is 0.
 *
 * Ownership. A handle that a function returns is freed once, by the function named at its type, which also accepts
 * NULL. Arguments still belong to the caller, and may be freed or changed when the function has returned, unless the
 * function's comment states otherwise. Bytes and text that a handle lends are valid until the next call on it that is
 * not const (its pointer is not to const), or as long as the comment states.
 *
 * Threads. Calls on different handles may run at the same time. So may calls on one handle if all of them take it as
 * const. Any other call needs exclusive use of its handle, but may come from any thread. A cancel token is made for
 * several threads: all its functions except millstream_cancel_token_free() take it as const.
 *
 * Callbacks run during the call, on the thread that makes it, unless their comment states otherwise. They must
 * return: no exception and no longjmp() may leave them. They must not use the handle that calls them.
 *
 * Panics. A bug in the library leads to MILLSTREAM_INTERNAL instead of ending the process. Please report it. The
 * handle can then only be freed.
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
        // The enum of codes is generated here. The included enums are used only by modules other than their own.
        export: ExportConfig {
            include: vec!["millstream_format".into(), "millstream_bson_type".into()],
            exclude: vec!["millstream_code".into()],
            ..ExportConfig::default()
        },
        function: FunctionConfig::default(),
        ..Config::default()
    }
}

/// Generates the codes from the library's table, as cbindgen would write an enum.
fn codes(kinds: &[ErrorKind]) -> String {
    let typed = "#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L\n  : uint32_t\n#endif\n";
    let mut out =
        String::from("/**\n * How a call went. Codes never change their meaning; later versions may add some.\n */\n");
    write!(out, "enum millstream_code\n{typed} {{\n    /**\n     * It succeeded.\n     */\n    MILLSTREAM_OK = 0,\n")
        .unwrap();
    for kind in kinds {
        let name = kind.name.to_uppercase();
        write!(out, "    /**\n     * {}\n     */\n    MILLSTREAM_{name} = {},\n", kind.meaning, kind.code).unwrap();
    }
    out += "};\n#ifndef __cplusplus\n#if __STDC_VERSION__ >= 202311L\n";
    out +=
        "typedef enum millstream_code millstream_code;\n#else\ntypedef uint32_t millstream_code;\n#endif\n#endif\n\n";
    out
}

/// Generates a module's part of the header: the text at the beginning of its file, then its types and functions.
fn section(root: &Path, module: &str, kinds: &[ErrorKind]) -> Result<String, String> {
    let file = root.join("crates/capi/src").join(module).with_extension("rs");
    let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", file.display());
    let source = std::fs::read_to_string(&file).map_err(|error| failed(&error))?;
    let about: Vec<&str> =
        source.lines().skip_while(|line| line.starts_with("// ")).map_while(|line| line.strip_prefix("//!")).collect();
    let mut out = format!("\n/* ---- {module} ----\n *\n");
    for line in about {
        writeln!(out, " *{line}").unwrap();
    }
    out += " */\n\n";
    if module == "error" {
        out += &codes(kinds);
    }
    let mut generated = Vec::new();
    let bindings = cbindgen::Builder::new().with_config(config()).with_src(&file).generate();
    bindings.map_err(|error| failed(&error))?.write(&mut generated);
    Ok(out + String::from_utf8_lossy(&generated).trim_start())
}

/// Generates `millstream.h`.
pub fn header(root: &Path, kinds: &[ErrorKind]) -> Result<String, String> {
    let version = env!("CARGO_PKG_VERSION");
    let mut out = format!("/* {NOTICE} */\n{TOP}\n/**\n * The version of this header.\n */\n");
    writeln!(out, "#define MILLSTREAM_VERSION \"{version}\"").unwrap();
    for module in MODULES {
        out += &section(root, module, kinds)?;
    }
    Ok(out + BOTTOM)
}
