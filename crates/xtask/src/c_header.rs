//! C: generates the header.
//!
//! It begins with the documentation of `crates/capi/src/lib.rs`. Each module there is a section: its documentation,
//! followed by its types and functions as written by cbindgen. The error codes come from the library's table.

use std::path::Path;

use cbindgen::{Config, DocumentationStyle, EnumConfig, ExportConfig, Language, RenameRule, Style};

use crate::c_source::c_name;
use crate::options::Choices;
use crate::tables::ErrorKind;
use crate::text::each;

/// The modules, ordered so that each depends only on earlier ones.
pub const MODULES: [&str; 28] = [
    "version",
    "error",
    "enums",
    "callback",
    "cancel",
    "command",
    "command_options",
    "remote",
    "remote_options",
    "frame",
    "format",
    "reader",
    "reader_options",
    "columns",
    "scan",
    "writer",
    "writer_options",
    "shared",
    "put",
    "pipe",
    "pipe_stage",
    "pipe_async",
    "bson_type",
    "bson",
    "bson_scalar",
    "bson_owned",
    "bson_stream",
    "bson_write",
];

const TOP: &str = r#"
#ifndef MILLSTREAM_H
#define MILLSTREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
"#;

/// The structures of Arrow's C interfaces, as its specification prints them.
const ARROW: &str = "#ifndef ARROW_C_DATA_INTERFACE
#define ARROW_C_DATA_INTERFACE

#define ARROW_FLAG_DICTIONARY_ORDERED 1
#define ARROW_FLAG_NULLABLE 2
#define ARROW_FLAG_MAP_KEYS_SORTED 4

struct ArrowSchema {
  // Array type description
  const char* format;
  const char* name;
  const char* metadata;
  int64_t flags;
  int64_t n_children;
  struct ArrowSchema** children;
  struct ArrowSchema* dictionary;

  // Release callback
  void (*release)(struct ArrowSchema*);
  // Opaque producer-specific data
  void* private_data;
};

struct ArrowArray {
  // Array data description
  int64_t length;
  int64_t null_count;
  int64_t offset;
  int64_t n_buffers;
  int64_t n_children;
  const void** buffers;
  struct ArrowArray** children;
  struct ArrowArray* dictionary;

  // Release callback
  void (*release)(struct ArrowArray*);
  // Opaque producer-specific data
  void* private_data;
};

#endif  // ARROW_C_DATA_INTERFACE

#ifndef ARROW_C_STREAM_INTERFACE
#define ARROW_C_STREAM_INTERFACE

struct ArrowArrayStream {
  // Callbacks providing stream functionality
  int (*get_schema)(struct ArrowArrayStream*, struct ArrowSchema* out);
  int (*get_next)(struct ArrowArrayStream*, struct ArrowArray* out);
  const char* (*get_last_error)(struct ArrowArrayStream*);

  // Release callback
  void (*release)(struct ArrowArrayStream*);

  // Opaque producer-specific data
  void* private_data;
};

#endif  // ARROW_C_STREAM_INTERFACE

";

/// Those structures, whose names have a prefix in C.
const OF_ARROW: [&str; 3] = ["ArrowArray", "ArrowArrayStream", "ArrowSchema"];

const BOTTOM: &str = r#"
#include "millstream/numbers.h"
#include "millstream/window.h"
#include "millstream/bson.h"

#endif /* MILLSTREAM_H */
"#;

fn config(choices: &[Choices]) -> Config {
    let used_elsewhere =
        ["millstream_format", "millstream_bson_type", "millstream_fill_callback", "millstream_release_callback"];
    let mut include = used_elsewhere.map(String::from).to_vec();
    include.extend(choices.iter().map(|choices| c_name(&choices.name)));
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
        // The enum of codes is generated here. The included types are used only by modules other than their own.
        export: ExportConfig {
            include,
            exclude: vec!["millstream_code".into()],
            rename: OF_ARROW.map(|name| (name.to_string(), format!("struct {name}"))).into(),
            ..ExportConfig::default()
        },
        ..Config::default()
    }
}

/// Generates the codes from the library's table, as cbindgen would write an enum.
fn codes(kinds: &[ErrorKind]) -> String {
    let values = each(kinds, |ErrorKind { meaning, code, name, .. }| {
        format!("    /**\n     * {meaning}\n     */\n    MILLSTREAM_{} = {code},\n", name.to_uppercase())
    });
    format!(
        "/**
 * How a call went. Codes never change their meaning; later versions may add some.
 */
enum millstream_code
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif
 {{
    /**
     * It succeeded.
     */
    MILLSTREAM_OK = 0,
{values}}};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum millstream_code millstream_code;
#else
typedef uint32_t millstream_code;
#endif
#endif

"
    )
}

/// Returns the text at the beginning of a source file as the lines of a C comment.
fn introduction(file: &Path) -> Result<String, String> {
    let source = std::fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
    let lines = source.lines().skip_while(|line| line.starts_with("// ")).map_while(|line| line.strip_prefix("//!"));
    Ok(each(lines, |line| format!(" *{line}\n")))
}

/// Generates a module's part of the header: the text at the beginning of its file, then its types and functions.
fn section(sources: &Path, module: &str, kinds: &[ErrorKind], choices: &[Choices]) -> Result<String, String> {
    let file = sources.join(module).with_extension("rs");
    let first = match module {
        "error" => codes(kinds),
        "columns" => ARROW.to_string(),
        _ => String::new(),
    };
    let mut generated = Vec::new();
    let bindings = cbindgen::Builder::new().with_config(config(choices)).with_src(&file).generate();
    bindings.map_err(|error| format!("{}: {error}", file.display()))?.write(&mut generated);
    let generated = String::from_utf8_lossy(&generated);
    Ok(format!("\n/* ---- {module} ----\n *\n{} */\n\n{first}{}", introduction(&file)?, generated.trim_start()))
}

/// Generates `millstream.h`.
pub fn header(root: &Path, kinds: &[ErrorKind], choices: &[Choices]) -> Result<String, String> {
    let (sources, version) = (root.join("crates/capi/src"), env!("CARGO_PKG_VERSION"));
    let mut out = format!(
        "\n/*\n{} */\n{TOP}\n/**\n * The version of this header.\n */\n#define MILLSTREAM_VERSION \"{version}\"\n",
        introduction(&sources.join("lib.rs"))?
    );
    for module in MODULES {
        out += &section(&sources, module, kinds, choices)?;
    }
    Ok(out + BOTTOM)
}
