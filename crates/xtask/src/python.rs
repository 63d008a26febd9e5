//! Python: generates types for type checkers.

use crate::options::{Builder, Choices, Kind, Setting, plain};
use crate::tables::ErrorKind;
use crate::text::{comment, each, pascal_case};

/// Generates `_kinds.py`: the names of the error kinds.
pub fn error_kinds(kinds: &[ErrorKind]) -> String {
    let names = each(kinds, |kind| comment("    #", &kind.meaning) + &format!("    \"{}\",\n", kind.name));
    format!(
        "\"\"\"The kinds of error.\"\"\"

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
    let mut out = String::from(
        "\"\"\"The library's options.\"\"\"\n\nfrom collections.abc import Sequence\nfrom typing import Literal, TypedDict\n\n",
    );
    out += &each(choices, |choices| {
        format!("{} = Literal[{}]\n", choices.name, choices.words(", ", |word| format!("\"{word}\"")))
    });
    for of @ Builder { name: builder, options, .. } in builders {
        out += &format!("\n\nclass {}Settings(TypedDict, total=False):\n", pascal_case(builder));
        out += &format!("    \"\"\"The options of a {}. Times are in seconds.\"\"\"\n\n", of.title());
        for Setting { name, about, parameters, .. } in options {
            let types: Option<Vec<&str>> = parameters.iter().map(|(_, kind)| type_of(kind)).collect();
            let Some(types) = types else { continue };
            out += &comment("    #:", &plain(about, choices));
            out += &match types[..] {
                [of] => format!("    {name}: {of}\n"),
                _ => format!("    {name}: tuple[{}]\n", types.join(", ")),
            };
        }
    }
    out
}

/// The type of an option; `None` if the option has no value, because it is a method in Python.
fn type_of(kind: &Kind) -> Option<&str> {
    match kind {
        Kind::Whole(_) => Some("int"),
        Kind::Flag => Some("bool"),
        Kind::Wholes => Some("Sequence[int]"),
        Kind::Time => Some("float"),
        Kind::Choice(of) => Some(of),
        Kind::Text => Some("str"),
        Kind::Cancel | Kind::Function => None,
    }
}
