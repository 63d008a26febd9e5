//! TypeScript: generates types and tables.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use crate::NOTICE;
use crate::formats::{Format, supported};
use crate::options::{Builder, Choices, Kind, Setting, find, is_otherwise, plain, title};
use crate::source::{ErrorKind, snake_case};

/// Generates `errors.ts`: the names, codes and advice of the error kinds.
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

/// Generates `settings.ts`: the options of readers and writers that the package has, the names of enum values, and a
/// rule for each option.
pub fn options(builders: &[Builder], choices: &[Choices]) -> String {
    let (mut out, mut used, mut rules) = (String::new(), Vec::new(), BTreeSet::new());
    for Builder { name: builder, options, .. } in builders {
        let (mut fields, mut checks) = (String::new(), String::new());
        for Setting { name, about, parameters, .. } in options {
            let [(_, kind)] = &parameters[..] else { continue };
            if is_otherwise("node", builder, name) {
                continue;
            }
            let (of, rule) = match kind {
                Kind::Whole(_) => ("number".to_string(), "whole(0)".to_string()),
                Kind::Time => ("number".into(), "number(0)".into()),
                Kind::Text => ("string".into(), "text".into()),
                Kind::Choice(of) => {
                    used.push(of);
                    (of.clone(), format!("word({})", words(find(of, choices)).join(", ")))
                }
                Kind::Cancel | Kind::Function => continue,
            };
            rules.insert(rule.split('(').next().unwrap_or_default().to_string());
            writeln!(fields, "  /** {} */\n  {}?: {of};", plain(about, choices), camel_case(name)).unwrap();
            writeln!(checks, "  {}: {rule},", camel_case(name)).unwrap();
        }
        write!(
            out,
            "
/** The library's options of a {builder}. Times are in milliseconds. */
export interface {title}Settings {{
{fields}}}

export const {}_SETTINGS: Rules<{title}Settings> = {{
{checks}}};
",
            builder.to_uppercase(),
            title = title(builder),
        )
        .unwrap();
    }
    let mut enums = String::new();
    for choices in choices.iter().filter(|choices| used.contains(&&choices.name)) {
        writeln!(
            enums,
            "\n/** {} */\nexport type {} =",
            plain(&choices.about, std::slice::from_ref(choices)),
            choices.name
        )
        .unwrap();
        let rows = choices.values.iter().zip(words(choices));
        let rows: Vec<String> = rows
            .map(|(value, word)| format!("  /** {} */\n  | {word}", plain(&value.about, std::slice::from_ref(choices))))
            .collect();
        writeln!(enums, "{};", rows.join("\n")).unwrap();
    }
    let rules: Vec<String> = rules.into_iter().collect();
    format!("// {NOTICE}\n\nimport {{ {}, type Rules }} from \"./options.js\";\n{enums}{out}", rules.join(", "))
}

fn words(choices: &Choices) -> Vec<String> {
    choices.values.iter().map(|value| format!("\"{}\"", snake_case(&value.name))).collect()
}

/// Converts `record_limit` to `recordLimit`.
fn camel_case(name: &str) -> String {
    let mut words = name.split('_');
    let first = words.next().unwrap_or_default().to_string();
    words.fold(first, |name, word| name + &title(word))
}

/// Generates `formats.ts`: the names and the first bytes of compressed formats.
pub fn formats(formats: &[Format]) -> String {
    let names: Vec<String> = supported(formats).map(|(_, format)| format!("\"{}\"", format.name)).collect();
    let (mut endings, mut beginnings) = (String::new(), String::new());
    for Format { variant, name, endings: of, beginnings: bytes, .. } in formats {
        let key = if variant.is_some() { "format" } else { "unreadable" };
        for ending in of {
            writeln!(endings, "  {ending}: {{ {key}: \"{name}\" }},").unwrap();
        }
        for pairs in bytes {
            let pairs: Vec<String> = pairs.iter().map(|(low, high)| format!("{low:02x}{high:02x}")).collect();
            writeln!(beginnings, "  \"{}\",", pairs.join(" ")).unwrap();
        }
    }
    format!(
        "// {NOTICE}

/** A compressed format that is read and written. */
export type Format = {};

/** What a name promises by its ending. */
export type Promised =
  | {{ readonly format: Format; readonly unreadable?: undefined }}
  | {{ readonly format?: undefined; readonly unreadable: string }};

/** The endings of names, in lower case. */
export const ENDINGS: {{ readonly [ending: string]: Promised | undefined }} = {{
{endings}}};

/** The first bytes of every format that is detected: the lowest and the highest value of each byte, in hexadecimal. */
export const BEGINNINGS: readonly string[] = [
{beginnings}];
",
        names.join(" | ")
    )
}
