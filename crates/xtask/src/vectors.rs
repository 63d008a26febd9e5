//! Vectors: generates the tables with which the tests of every language compare their names.

use std::path::Path;

use syn::{Item, Visibility};

use crate::options::{Builder, Choices, Kind, OTHERWISE, Setting, choices_of, find};
use crate::source::items;
use crate::text::{each, joined, snake_case};

/// Generates `options.tsv`: the names of all options with the values of their enums.
pub fn options(builders: &[Builder], choices: &[Choices]) -> String {
    let rows = each(builders, |Builder { name: builder, options, .. }| {
        each(options, |Setting { name, parameters, .. }| {
            let takes = joined(parameters, " ", |(_, kind)| takes(kind, choices));
            let otherwise = OTHERWISE.iter().filter(|row| (row.1, row.2) == (*builder, name.as_str()));
            let otherwise = joined(otherwise, "; ", |(language, _, _, why)| format!("{language}: {why}"));
            format!("{builder}\t{name}\t{takes}\t{otherwise}").trim_end().to_string() + "\n"
        })
    });
    "# The options of readers, writers, commands and remote objects, which are the same in every language. The columns: the builder, the
# option, the type of its value, and the languages that do not have the option, each with the reason or with what it has instead.
# The default value of an enum is marked with *. An enum without a mark has a default that depends on the source. The
# spelling of names and values follows each language's convention. The unit of times is nanoseconds in C, seconds in Python
# and Julia, and milliseconds in Node.
"
    .to_string()
        + &rows
}

fn takes(kind: &Kind, choices: &[Choices]) -> String {
    match kind {
        Kind::Whole(_) => "number".into(),
        Kind::Flag => "flag".into(),
        Kind::Wholes => "numbers".into(),
        Kind::Time => "time".into(),
        Kind::Choice(of) => {
            joined(&find(of, choices).values, "|", |value| value.word.clone() + if value.is_default { "*" } else { "" })
        }
        Kind::Text => "text".into(),
        Kind::Cancel => "token".into(),
        Kind::Function => "function".into(),
    }
}

/// The content of `names.tsv`: files, each with the structures and enums whose names are repeated by hand in every
/// language.
const NAMED: [(&str, &[&str]); 5] = [
    ("crates/core/src/error.rs", &["CommandEnd"]),
    ("crates/millstream/src/os/command.rs", &["Stdin", "Stderr"]),
    ("crates/millstream/src/sink/options.rs", &["WriterEnd"]),
    ("crates/millstream/src/pipe/stats.rs", &["Summary"]),
    ("crates/millstream/src/pipe/mod.rs", &["OnError"]),
];

/// Generates `names.tsv`: the fields in the reports of commands, writers and pipes, and the names of a command's
/// streams and of failures.
pub fn names(root: &Path) -> Result<String, String> {
    let mut out = String::from(
        "# Names that are the same in every language: a structure and its fields, or an enum and its values. Values that contain
# data are omitted. The spelling follows each language's convention.
",
    );
    for (file, wanted) in NAMED {
        for item in items(root, file)? {
            let (name, names): (_, Vec<String>) = match &item {
                Item::Struct(item) => {
                    let fields = item.fields.iter().filter(|field| matches!(field.vis, Visibility::Public(_)));
                    (&item.ident, fields.filter_map(|field| Some(field.ident.as_ref()?.to_string())).collect())
                }
                Item::Enum(item) => {
                    (&item.ident, choices_of(item, None).values.into_iter().map(|value| value.word).collect())
                }
                _ => continue,
            };
            if wanted.contains(&name.to_string().as_str()) {
                out += &format!("{}\t{}\n", snake_case(&name.to_string()), names.join("\t"));
            }
        }
    }
    Ok(out)
}
