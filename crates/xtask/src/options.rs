//! The library's options: the methods of its builders, and the enums that they take.

use std::path::Path;

use syn::{Fields, ImplItem, Item, ItemEnum, Type, TypeParamBound, Visibility};

use crate::source::{documentation, files, items, parameter};
use crate::text::{joined, snake_case};

/// A builder and its options.
pub struct Builder {
    /// Its name in C, such as `reader`.
    pub name: &'static str,
    /// Its type in Rust.
    pub of: &'static str,
    pub options: Vec<Setting>,
}

impl Builder {
    /// What it describes.
    pub fn title(&self) -> &'static str {
        if self.name == "remote" { "remote object" } else { self.name }
    }
}

/// An option: a method of a builder.
pub struct Setting {
    pub name: String,
    /// Its documentation, without examples.
    pub about: String,
    /// The names and kinds of its arguments.
    pub parameters: Vec<(String, Kind)>,
    /// The call of the builder's method, with `{}` in place of the arguments.
    pub call: String,
}

impl Setting {
    /// Whether it takes a function, which only handwritten code can pass on.
    pub fn takes_function(&self) -> bool {
        self.parameters.iter().any(|(_, kind)| matches!(kind, Kind::Function))
    }

    /// The end of its setter's name in C: the unit of a time.
    pub fn unit(&self) -> &'static str {
        if let [(_, Kind::Time)] = self.parameters[..] { "_ns" } else { "" }
    }
}

/// The type of an option's argument.
pub enum Kind {
    /// An integer with this Rust type.
    Whole(String),
    /// Any number of `i32`s.
    Wholes,
    /// Whether something is done.
    Flag,
    /// A duration.
    Time,
    /// A value of an enum.
    Choice(String),
    /// Text.
    Text,
    /// A cancel token.
    Cancel,
    /// A function.
    Function,
}

/// An enum of the library.
pub struct Choices {
    pub name: String,
    /// Its path in Rust; `None` if the C ABI does not have it.
    pub path: Option<String>,
    pub about: String,
    pub values: Vec<Value>,
}

impl Choices {
    /// The names of the values in snake case, each as written by `write`, with `between` between them.
    pub fn words(&self, between: &str, write: impl Fn(&str) -> String) -> String {
        joined(&self.values, between, |value| write(&value.word))
    }

    fn has(&self, name: &str, value: &str) -> bool {
        self.name == name && self.values.iter().any(|found| found.name == value)
    }
}

/// A value of an enum.
pub struct Value {
    pub name: String,
    /// Its name in snake case.
    pub word: String,
    pub about: String,
    pub is_default: bool,
}

/// The builders whose options other languages have, and their source files.
const BUILDERS: [(&str, &str, &str); 4] = [
    ("reader", "ReaderBuilder", "crates/millstream/src/reader/builder.rs"),
    ("writer", "WriterBuilder", "crates/millstream/src/writer/builder.rs"),
    ("command", "Command", "crates/millstream/src/os/command.rs"),
    ("remote", "Remote", "crates/remote/src/remote.rs"),
];

/// Enums that no builder takes but that other languages have: the module of the library, if the C ABI has them, the source
/// file, and their names.
const ENUMS: [(Option<&str>, &str, &[&str]); 6] = [
    (Some("millstream"), "crates/millstream/src/os/command.rs", &["Stdin", "Stdout", "Stderr"]),
    (Some("millstream::frame"), "crates/core/src/frame/length_prefixed.rs", &["Endian", "PrefixCounts"]),
    (Some("millstream::frame"), "crates/core/src/frame/csv/ragged.rs", &["CsvRagged"]),
    (None, "crates/bson/src/columns/mod.rs", &["OnMismatch", "OnUnknown", "OnAbsent"]),
    (None, "crates/bson/src/columns/infer.rs", &["OnMixed"]),
    (None, "crates/columns/src/options.rs", &["Duplicates", "OnBad"]),
];

/// Reads the options of all builders, and the enums: those of options in the order of their first use, then the others.
pub fn options(root: &Path) -> Result<(Vec<Builder>, Vec<Choices>), String> {
    let mut enums = Vec::new();
    for file in files(root, "crates/millstream/src")? {
        enums.extend(items(root, &file)?.into_iter().filter_map(|item| match item {
            Item::Enum(item) if matches!(item.vis, Visibility::Public(_)) => Some(item),
            _ => None,
        }));
    }
    let (mut builders, mut choices) = (Vec::new(), Vec::new());
    for (builder, of, file) in BUILDERS {
        let mut options = Vec::new();
        for item in items(root, file)? {
            let Item::Impl(item) = item else { continue };
            if !documentation(&item.attrs).starts_with("Options") {
                continue;
            }
            for method in item.items {
                let ImplItem::Fn(method) = method else { continue };
                let name = method.sig.ident.to_string();
                let parameters = method.sig.inputs.iter().filter_map(parameter);
                let parameters: Result<Vec<_>, String> =
                    parameters.map(|(name, of)| Ok((name, kind(&of, &enums)?))).collect();
                let parameters = parameters.map_err(|error| format!("{file}: {name}: {error}"))?;
                let call = format!("{name}({{}})");
                let delay = match &parameters[..] {
                    [(_, Kind::Choice(of))] => {
                        let found = enums.iter().find(|found| found.ident == of).expect("it is one of them");
                        if !choices.iter().any(|known: &Choices| known.name == *of) {
                            choices.push(choices_of(found, Some("millstream")));
                        }
                        delay(&name, found)
                    }
                    _ => None,
                };
                options.push(Setting { about: about(&method.attrs), name, parameters, call });
                options.extend(delay);
            }
        }
        if options.is_empty() {
            return Err(format!("{file}: no `impl` whose documentation begins with \"Options\""));
        }
        builders.push(Builder { name: builder, of, options });
    }
    for (module, file, names) in ENUMS {
        let found = items(root, file)?.into_iter().filter_map(|item| match item {
            Item::Enum(item) if names.iter().any(|name| item.ident == name) => Some(choices_of(&item, module)),
            _ => None,
        });
        choices.extend(found);
    }
    Ok((builders, choices))
}

/// The documentation up to the first example or error list.
fn about(attributes: &[syn::Attribute]) -> String {
    let text = documentation(attributes);
    let end = [" ```", " # Errors"].iter().filter_map(|mark| text.find(mark)).min().unwrap_or(text.len());
    text[..end].trim_end().to_string()
}

/// Converts the documentation of a setter to that of a field: "Sets whether …" becomes "Whether …".
pub fn of_field(about: &str) -> String {
    let Some(rest) = about.strip_prefix("Sets ") else { return about.to_string() };
    rest[..1].to_uppercase() + &rest[1..]
}

fn kind(of: &Type, enums: &[ItemEnum]) -> Result<Kind, String> {
    let name = match of {
        Type::Path(path) => path.path.segments.last().map(|last| last.ident.to_string()).unwrap_or_default(),
        Type::Reference(_) => "CancelToken".to_string(),
        Type::ImplTrait(of) => match of.bounds.first() {
            Some(TypeParamBound::Trait(bound)) => bound.path.segments[0].ident.to_string(),
            _ => String::new(),
        },
        _ => String::new(),
    };
    Ok(match name.as_str() {
        "usize" | "u32" | "u64" | "i32" => Kind::Whole(name),
        "bool" => Kind::Flag,
        "IntoIterator" => Kind::Wholes,
        "Duration" => Kind::Time,
        "CancelToken" => Kind::Cancel,
        "Into" => Kind::Text,
        "FnMut" => Kind::Function,
        _ if enums.iter().any(|found| found.ident == name) => Kind::Choice(name),
        _ => return Err(format!("an option cannot be of type `{name}`: other languages have no counterpart")),
    })
}

/// Returns an enum of a module with its values, without those that contain data.
pub fn choices_of(item: &ItemEnum, module: Option<&str>) -> Choices {
    let values = item.variants.iter().filter(|variant| matches!(variant.fields, Fields::Unit)).map(|variant| Value {
        name: variant.ident.to_string(),
        word: snake_case(&variant.ident.to_string()),
        about: about(&variant.attrs),
        is_default: variant.attrs.iter().any(|attribute| attribute.path().is_ident("default")),
    });
    Choices {
        name: item.ident.to_string(),
        path: module.map(|module| format!("{module}::{}", item.ident)),
        about: about(&item.attrs),
        values: values.collect(),
    }
}

/// A value with a duration, such as `FlushPolicy::Delay(Duration)`, is a separate option in other languages:
/// `flush_delay`.
fn delay(option: &str, of: &ItemEnum) -> Option<Setting> {
    let variant = of.variants.iter().find(|variant| matches!(&variant.fields, Fields::Unnamed(_)))?;
    let first = option.split('_').next()?;
    Some(Setting {
        name: format!("{first}_{}", snake_case(&variant.ident.to_string())),
        about: about(&variant.attrs),
        parameters: vec![("delay".into(), Kind::Time)],
        call: format!("{option}(millstream::{}::{}({{}}))", of.ident, variant.ident),
    })
}

/// Options that a language has in another form or not at all: `(language, builder, option, reason)`.
pub const OTHERWISE: [(&str, &str, &str, &str); 23] = [
    ("cli", "reader", "cancel", "signals"),
    ("cli", "reader", "observer", "--progress"),
    ("cli", "reader", "name", "messages show the words of the command line"),
    ("cli", "writer", "lend_pages", "it cannot know who reads its output"),
    ("cli", "writer", "cancel", "signals"),
    ("cli", "writer", "name", "messages show the words of the command line"),
    ("julia", "reader", "observer", "position(reader)"),
    ("node", "reader", "capacity", "its thread reads blocks of a fixed size"),
    ("node", "reader", "read_ahead", "its thread always reads ahead"),
    ("node", "reader", "read_ahead_capacity", "its thread always reads ahead"),
    ("node", "reader", "cancel", "signal, an AbortSignal"),
    ("node", "reader", "observer", "reader.position"),
    ("node", "writer", "lend_pages", "its thread reuses a block as soon as it is written"),
    ("node", "writer", "cancel", "signal, an AbortSignal"),
    ("python", "reader", "cancel", "reader.cancel()"),
    ("python", "writer", "cancel", "writer.cancel()"),
    ("cli", "reader", "read_ahead_capacity", "--read-ahead"),
    ("cli", "reader", "follow", "a run ends when its sources end"),
    ("cli", "reader", "json_elements", "--json, --json-pointer"),
    ("cli", "command", "process_group", "commands stay in the terminal's group"),
    ("cli", "command", "stderr_limit", "all of standard error is shown as it arrives"),
    ("cli", "remote", "range_size", "it is 8 MiB"),
    ("cli", "remote", "connections", "there are up to 8"),
];

/// Whether a language has an option in another form, or not at all.
pub fn is_otherwise(language: &str, of: &str, option: &str) -> bool {
    OTHERWISE.iter().any(|row| (row.0, row.1, row.2) == (language, of, option))
}

/// Returns the enum with this name.
pub fn find<'a>(name: &str, choices: &'a [Choices]) -> &'a Choices {
    choices.iter().find(|found| found.name == name).expect("every enum of an option is among them")
}

/// Converts a text for any language, in which error kinds and enum values are written by name.
pub fn plain(text: &str, choices: &[Choices]) -> String {
    let quoted = |name: &str| format!("`{}`", snake_case(name));
    let text = linked(text, choices, quoted, |_, value| quoted(value));
    of_field(&text.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// Replaces Rust's links in a text: those to a kind of error with what `error` returns for its name, those to a value
/// of an enum with what `value` returns for the names of both, and others with the last part of their label.
pub fn linked(
    text: &str,
    choices: &[Choices],
    error: impl Fn(&str) -> String,
    value: impl Fn(&str, &str) -> String,
) -> String {
    let (mut out, mut rest) = (String::new(), text);
    while let Some((before, link)) = rest.split_once("[`") {
        let Some((label, after)) = link.split_once("`]") else { break };
        let target = after.strip_prefix('(').and_then(|target| target.split_once(')'));
        let (to, after) = target.unwrap_or((label, after));
        let names: Vec<&str> = to.rsplit("::").collect();
        out += before;
        out += &match names[..] {
            [kind, "ErrorKind", ..] => error(kind),
            [found, of, ..] if choices.iter().any(|choices| choices.has(of, found)) => value(of, found),
            _ => format!("`{}`", label.rsplit("::").next().unwrap_or(label)),
        };
        rest = after;
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_written_for_the_language() {
        let value = Value { name: "Content".into(), word: "content".into(), about: String::new(), is_default: true };
        let (name, about) = ("Pin".into(), String::new());
        let pin = Choices { name, path: None, about, values: vec![value] };
        let text = "a [`Pin::Content`], [`SourceShrank`](crate::ErrorKind::SourceShrank), [`close`](Writer::close) b";
        let shown = linked(text, &[pin], |kind| format!("E {kind}"), |of, value| format!("V {of} {value}"));
        assert_eq!(shown, "a V Pin Content, E SourceShrank, `close` b");
    }
}
