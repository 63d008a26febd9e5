//! TypeScript: types and tables.

use std::fmt::Write as _;

use crate::NOTICE;
use crate::source::ErrorKind;

/// `errors.ts`: the names of the kinds, their codes and what to do about them.
pub fn error_kinds(kinds: &[ErrorKind]) -> String {
    let (mut names, mut codes, mut advice) = (String::new(), String::new(), String::new());
    for kind in kinds {
        write!(names, "\n  /** {} */\n  | \"{}\"", kind.meaning, kind.name).unwrap();
        writeln!(codes, "  {}: {},", kind.name, kind.code).unwrap();
        writeln!(advice, "  {}: {:?},", kind.name, kind.advice).unwrap();
    }
    format!(
        "// {NOTICE}

/** The kinds of error, the same in every language. */
export type ErrorKind ={names};

/** The fixed number of each kind: it never changes its meaning. */
export const ERROR_CODES: {{ readonly [kind in ErrorKind]: number }} = {{
{codes}}};

/** What to do about each kind. */
export const ERROR_ADVICE: {{ readonly [kind in ErrorKind]: string }} = {{
{advice}}};
"
    )
}
