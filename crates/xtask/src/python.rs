//! Python: generates types for type checkers.

use std::fmt::Write as _;

use crate::options::{Builder, Choices, Kind, Setting, plain, title};
use crate::source::{ErrorKind, snake_case};
use crate::{NOTICE, comment};

/// The maximum line length of the formatter.
const WIDTH: usize = 120;

/// Generates `_kinds.py`: the names of the error kinds.
pub fn error_kinds(kinds: &[ErrorKind]) -> String {
    let mut names = String::new();
    for kind in kinds {
        names += &comment("    #", &kind.meaning, WIDTH);
        writeln!(names, "    \"{}\",", kind.name).unwrap();
    }
    format!(
        "# {NOTICE}
\"\"\"The kinds of error.\"\"\"

from typing import Literal

#: The names of the kinds of error, the same in every language.
ErrorKind = Literal[
{names}]
"
    )
}

/// Generates `_options.py`: the names of enum values, and the options of readers and writers except for functions and
/// tokens.
pub fn options(builders: &[Builder], choices: &[Choices]) -> String {
    let mut out =
        format!("# {NOTICE}\n\"\"\"The library's options.\"\"\"\n\nfrom typing import Literal, TypedDict\n\n");
    for Choices { name, values, .. } in choices {
        let words: Vec<String> = values.iter().map(|value| format!("\"{}\"", snake_case(&value.name))).collect();
        writeln!(out, "{name} = Literal[{}]", words.join(", ")).unwrap();
    }
    for Builder { name: builder, options, .. } in builders {
        let title = title(builder);
        writeln!(out, "\n\nclass {title}Settings(TypedDict, total=False):").unwrap();
        writeln!(out, "    \"\"\"The options of a {builder}. Times are in seconds.\"\"\"\n").unwrap();
        for Setting { name, about, parameters, .. } in options {
            let types: Option<Vec<&str>> = parameters.iter().map(|(_, kind)| type_of(kind)).collect();
            let Some(types) = types else { continue };
            out += &comment("    #:", &plain(about, choices), WIDTH);
            match types[..] {
                [of] => writeln!(out, "    {name}: {of}").unwrap(),
                _ => writeln!(out, "    {name}: tuple[{}]", types.join(", ")).unwrap(),
            }
        }
    }
    out
}

/// The type of an option; `None` if the option has no value, because it is a method in Python.
fn type_of(kind: &Kind) -> Option<&str> {
    match kind {
        Kind::Whole(_) => Some("int"),
        Kind::Time => Some("float"),
        Kind::Choice(of) => Some(of),
        Kind::Text => Some("str"),
        Kind::Cancel | Kind::Function => None,
    }
}
