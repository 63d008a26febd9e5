//! Python: types for type checkers.

use std::fmt::Write as _;

use crate::options::Choices;
use crate::source::{ErrorKind, snake_case};
use crate::{NOTICE, comment};

/// The longest line that the formatter accepts.
const WIDTH: usize = 120;

/// `_kinds.py`: the names of the kinds.
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

/// `_choices.py`: the words of each enum.
pub fn choices(choices: &[Choices]) -> String {
    let mut out = format!("# {NOTICE}\n\"\"\"The values of options.\"\"\"\n\nfrom typing import Literal\n\n");
    for Choices { name, values, .. } in choices {
        let words: Vec<String> = values.iter().map(|value| format!("\"{}\"", snake_case(&value.name))).collect();
        writeln!(out, "{name} = Literal[{}]", words.join(", ")).unwrap();
    }
    out
}
