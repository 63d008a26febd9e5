//! TypeScript: generates types and tables.

use crate::options::{Builder, Choices, Kind, Setting, is_otherwise, plain};
use crate::tables::{ElementType, ErrorKind, Format, Layout};
use crate::text::{camel_case, each, joined, pascal_case, snake_case};

/// Generates `errors.ts`: the names, codes and advice of the error kinds. Each kind is a constant, so that a bundle
/// contains only the advice of errors that its code can throw.
pub fn error_kinds(kinds: &[ErrorKind]) -> String {
    format!(
        "
/** The kinds of error, the same in every language. */
export type ErrorKind ={};

/** The `code` of each kind: it never changes its meaning. `ABORT_ERR` is Node's own. */
export const ERROR_CODES = {{
{}}} as const satisfies {{ readonly [kind in ErrorKind]: string }};

/** The values of `code`. */
export type ErrorCode = (typeof ERROR_CODES)[ErrorKind];

/** A kind of error, and what to do about it. */
export interface Kind {{
  readonly kind: ErrorKind;
  readonly advice: string;
}}

{}
/** What to do about each kind. */
export const ERROR_ADVICE: {{ readonly [kind in ErrorKind]: string }} = /* @__PURE__ */ adviceOf([
{}]);

function adviceOf(kinds: readonly Kind[]): {{ readonly [kind in ErrorKind]: string }} {{
  return Object.fromEntries(kinds.map(({{ kind, advice }}) => [kind, advice])) as never;
}}
",
        each(kinds, |kind| format!("\n  /** {} */\n  | \"{}\"", kind.meaning, kind.name)),
        each(kinds, |kind| format!("  {}: \"{}\",\n", kind.name, error_code(&kind.name))),
        each(kinds, |kind| format!(
            "/** @internal */\nexport const {}: Kind = {{ kind: \"{}\", advice: {:?} }};\n",
            kind.name.to_uppercase(),
            kind.name,
            advice(&kind.advice)
        )),
        each(kinds, |kind| format!("  {},\n", kind.name.to_uppercase())),
    )
}

/// The `code` of a kind: a string, as in Node's own errors.
fn error_code(kind: &str) -> String {
    match kind {
        "cancelled" => "ABORT_ERR".to_string(),
        _ => format!("MILLSTREAM_{}", kind.to_uppercase()),
    }
}

/// Writes the names of options in an advice as this language spells them.
fn advice(text: &str) -> String {
    joined(text.split(' '), " ", |word| if word.contains('_') { camel_case(word) } else { word.to_string() })
}

/// Methods of Rust that are mentioned in the documentation of options, and what they are in Node.
const METHODS: [(&str, &str); 1] = [("borrow_fd", "fd")];

/// Options whose documentation is different in Node: `(builder, option, documentation)`.
const ABOUT: [(&str, &str, &str); 1] =
    [("writer", "capacity", "The size of the buffer in bytes, less than 4 GiB: 256 KiB by default.")];

/// Writes the names of options in Rust's documentation as this language spells them. Links to kinds of errors, which may
/// have the name of an option, are not affected.
fn spelled(text: &str, builders: &[Builder]) -> String {
    let options = builders.iter().flat_map(|builder| &builder.options);
    let options = options.map(|option| (option.name.clone(), camel_case(&option.name)));
    let methods = METHODS.map(|(name, node)| (name.to_string(), node.to_string()));
    options
        .chain(methods)
        .fold(text.to_string(), |text, (name, node)| text.replace(&format!("`{name}`"), &format!("`{node}`")))
}

/// Generates `settings.ts`: the options of readers and writers that the package has, the names of enum values, and a
/// rule for each option.
pub fn options(builders: &[Builder], choices: &[Choices]) -> String {
    let (mut out, mut missing) = (String::new(), Vec::new());
    for of @ Builder { name: builder, options, .. } in builders {
        let (mut fields, mut checks) = (String::new(), String::new());
        for Setting { name, about, parameters, .. } in options {
            let [(_, kind)] = &parameters[..] else { continue };
            let (of, rule) = match kind {
                Kind::Choice(of) if is_otherwise("node", builder, name) => {
                    missing.push(of);
                    continue;
                }
                _ if is_otherwise("node", builder, name) => continue,
                Kind::Whole(_) => ("number", "WHOLE".to_string()),
                Kind::Flag => ("boolean", "FLAG".into()),
                Kind::Wholes => ("readonly number[]", "WHOLES".into()),
                Kind::Time => ("number", "NUMBER".into()),
                Kind::Text => ("string", "TEXT".into()),
                Kind::Choice(of) => (of.as_str(), rule_name(of)),
                Kind::Cancel | Kind::Function => continue,
            };
            let own = ABOUT.iter().find(|row| (row.0, row.1) == (*builder, name.as_str()));
            let about = own.map_or_else(|| plain(&spelled(about, builders), choices), |row| row.2.to_string());
            fields += &format!("  /** {about} */\n  {}?: {of} | undefined;\n", camel_case(name));
            checks += &format!("  {}: {rule},\n", camel_case(name));
        }
        out += &format!(
            "
/** The library's options of a {of}. Times are in milliseconds. */
export interface {title}Settings {{
{fields}}}

export const {}_SETTINGS: Rules<{title}Settings> = {{
{checks}}};
",
            builder.to_uppercase(),
            of = of.title(),
            title = pascal_case(builder),
        );
    }
    let enums = each(choices.iter().filter(|choices| !missing.contains(&&choices.name)), |choices| {
        let about = |about: &str| plain(&spelled(about, builders), std::slice::from_ref(choices));
        let values = joined(&choices.values, "\n", |value| {
            format!("  /** {} */\n  | {}", about(&value.about), quoted(&value.word))
        });
        let rule = format!("export const {}: Rule = [{}];", rule_name(&choices.name), choices.words(", ", quoted));
        format!("\n/** {} */\nexport type {} =\n{values};\n\n{rule}\n", about(&choices.about), choices.name)
    });
    format!(
        "\nimport {{ FLAG, NUMBER, type Rule, type Rules, TEXT, WHOLE, WHOLES }} from \"./options.js\";\n{enums}{out}"
    )
}

/// Converts `FlushPolicy` to `FLUSH_POLICY`, the name of the rule for this type.
fn rule_name(name: &str) -> String {
    snake_case(name).to_uppercase()
}

fn quoted(word: &str) -> String {
    format!("\"{word}\"")
}

/// Generates `formats.ts`: the first bytes of compressed formats.
pub fn formats(formats: &[Format]) -> String {
    let beginnings = each(formats.iter().flat_map(|format| &format.beginnings), |pairs| {
        format!("  \"{}\",\n", joined(pairs, " ", |(low, high)| format!("{low:02x}{high:02x}")))
    });
    format!(
        "
/** The first bytes of every format that is detected: the lowest and the highest value of each byte, in hexadecimal. */
export const BEGINNINGS: readonly string[] = [
{beginnings}];
"
    )
}

/// Generates `types.ts`: the names and layouts of BSON types.
pub fn element_types(types: &[ElementType]) -> String {
    let mut words = Vec::new();
    let layouts = each(types, |ElementType { byte, layout, .. }| match layout {
        Layout::Fixed(size) => format!("  {byte}: {size},\n"),
        Layout::Other(word) => {
            if !words.contains(word) {
                words.push(word.clone());
            }
            format!("  {byte}: \"{word}\",\n")
        }
    });
    format!(
        "
/** The types of BSON: the byte of each, with MongoDB's name. */
export const TYPES: {{ readonly [byte: number]: string | undefined }} = {{
{}}};

/** How a payload is laid out: its size, or what its length is in. */
export type Layout = number | {};

/** The layout of each type. */
export const LAYOUTS: {{ readonly [byte: number]: Layout | undefined }} = {{
{layouts}}};
",
        each(types, |of| format!("  {}: \"{}\",\n", of.byte, of.alias)),
        joined(words, " | ", |word| quoted(&word)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_spelled_as_in_node() {
        let option =
            Setting { name: "stop_grace".into(), about: String::new(), parameters: Vec::new(), call: String::new() };
        let builder = Builder { name: "command", of: "Command", options: vec![option] };
        let text = "see [`stop_grace`](Command::stop_grace), `borrow_fd` and [`ErrorKind::StopGrace`]";
        assert_eq!(plain(&spelled(text, &[builder]), &[]), "see `stopGrace`, `fd` and `stop_grace`");
    }
}
