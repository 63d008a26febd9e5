//! The library's options: the methods of its builders, and the enums that they take.

use std::fmt::Write as _;
use std::path::Path;

use syn::{Fields, ImplItem, Item, ItemEnum, Type, TypeParamBound, Visibility};

use crate::NOTICE;
use crate::source::{documentation, files, items, parameter, snake_case};

/// A builder and its options.
pub struct Builder {
    /// Its name in C and in file names, such as `reader`.
    pub name: &'static str,
    /// The path of its generated setters in the C ABI.
    pub setters: &'static str,
    pub options: Vec<Setting>,
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

/// The type of an option's argument.
pub enum Kind {
    /// An integer with this Rust type.
    Whole(String),
    /// A duration.
    Time,
    /// A value of an enum.
    Choice(String),
    /// Text.
    Text,
    /// A cancel token.
    Cancel,
    /// A function, which only handwritten code can pass on.
    Function,
}

/// An enum of the library.
pub struct Choices {
    pub name: String,
    pub about: String,
    pub values: Vec<Value>,
}

impl Choices {
    fn has(&self, name: &str, value: &str) -> bool {
        self.name == name && self.values.iter().any(|found| found.name == value)
    }
}

/// A value of an enum.
pub struct Value {
    pub name: String,
    pub about: String,
    pub is_default: bool,
}

/// The builders whose options other languages have: the name, the source file, and the file of the generated setters.
const BUILDERS: [(&str, &str, &str); 2] = [
    ("reader", "crates/millstream/src/reader/builder.rs", "crates/capi/src/reader_options.rs"),
    ("writer", "crates/millstream/src/writer/builder.rs", "crates/capi/src/writer_options.rs"),
];

/// Reads the options of all builders, and the enums that they take in the order of their first use.
pub fn options(root: &Path) -> Result<(Vec<Builder>, Vec<Choices>), String> {
    let mut enums = Vec::new();
    for file in files(root, "crates/millstream/src")? {
        enums.extend(items(root, &file)?.into_iter().filter_map(|item| match item {
            Item::Enum(item) if matches!(item.vis, Visibility::Public(_)) => Some(item),
            _ => None,
        }));
    }
    let (mut builders, mut choices) = (Vec::new(), Vec::new());
    for (builder, file, setters) in BUILDERS {
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
                            choices.push(choices_of(found));
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
        builders.push(Builder { name: builder, setters, options });
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
        "usize" | "u32" | "u64" => Kind::Whole(name),
        "Duration" => Kind::Time,
        "CancelToken" => Kind::Cancel,
        "Into" => Kind::Text,
        "FnMut" => Kind::Function,
        _ if enums.iter().any(|found| found.ident == name) => Kind::Choice(name),
        _ => return Err(format!("an option cannot be of type `{name}`: other languages have no counterpart")),
    })
}

fn choices_of(item: &ItemEnum) -> Choices {
    let values = item.variants.iter().filter(|variant| matches!(variant.fields, Fields::Unit)).map(|variant| Value {
        name: variant.ident.to_string(),
        about: about(&variant.attrs),
        is_default: variant.attrs.iter().any(|attribute| attribute.path().is_ident("default")),
    });
    Choices { name: item.ident.to_string(), about: about(&item.attrs), values: values.collect() }
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
const OTHERWISE: [(&str, &str, &str, &str); 22] = [
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
    ("node", "writer", "existing", "its writer replaces files"),
    ("node", "writer", "partial", "its writer removes incomplete files"),
    ("node", "writer", "lend_pages", "its writer does not write pipes itself"),
    ("node", "writer", "durability", "its writer does not sync"),
    ("node", "writer", "stall_timeout", "its writer has no thread to wait in"),
    ("node", "writer", "cancel", "writer.abort()"),
    ("python", "reader", "cancel", "reader.cancel()"),
    ("python", "writer", "cancel", "writer.cancel()"),
    ("cli", "reader", "read_ahead_capacity", "--read-ahead"),
    ("cli", "reader", "follow", "a run ends when its sources end"),
];

/// Whether a language has an option in another form, or not at all.
pub fn is_otherwise(language: &str, of: &str, option: &str) -> bool {
    OTHERWISE.iter().any(|row| (row.0, row.1, row.2) == (language, of, option))
}

/// Generates `options.tsv`: the names of all options with the values of their enums. The default is marked with an
/// asterisk.
pub fn table(builders: &[Builder], choices: &[Choices]) -> String {
    let mut out = format!(
        "# {NOTICE}
# The options in every language: of what, its name, what it takes, and which languages have it in another form or not at all.
# The default of an enum has a star; an enum without one depends on the source. Names and words have the casing of the
# language. Times are nanoseconds in C, seconds in Python and Julia, milliseconds in Node.
"
    );
    for Builder { name: builder, options, .. } in builders {
        for Setting { name, parameters, .. } in options {
            let takes: Vec<String> = parameters.iter().map(|(_, kind)| takes(kind, choices)).collect();
            let otherwise = OTHERWISE.iter().filter(|row| (row.1, row.2) == (*builder, name.as_str()));
            let otherwise: Vec<String> = otherwise.map(|(language, _, _, why)| format!("{language}: {why}")).collect();
            let row = format!("{builder}\t{name}\t{}\t{}", takes.join(" "), otherwise.join("; "));
            writeln!(out, "{}", row.trim_end()).unwrap();
        }
    }
    out
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
    let mut out = format!(
        "# {NOTICE}
# Names that every language has, casing apart: a structure with its fields, or an enum with its values, without those that
# contain something.
"
    );
    for (file, wanted) in NAMED {
        for item in items(root, file)? {
            let (name, names): (_, Vec<String>) = match &item {
                Item::Struct(item) => {
                    let fields = item.fields.iter().filter(|field| matches!(field.vis, Visibility::Public(_)));
                    (&item.ident, fields.filter_map(|field| Some(field.ident.as_ref()?.to_string())).collect())
                }
                Item::Enum(item) => {
                    (&item.ident, choices_of(item).values.iter().map(|value| snake_case(&value.name)).collect())
                }
                _ => continue,
            };
            if wanted.contains(&name.to_string().as_str()) {
                writeln!(out, "{}\t{}", snake_case(&name.to_string()), names.join("\t")).unwrap();
            }
        }
    }
    Ok(out)
}

fn takes(kind: &Kind, choices: &[Choices]) -> String {
    let word = |value: &Value| snake_case(&value.name) + if value.is_default { "*" } else { "" };
    match kind {
        Kind::Whole(_) => "number".into(),
        Kind::Time => "time".into(),
        Kind::Choice(of) => find(of, choices).values.iter().map(word).collect::<Vec<_>>().join("|"),
        Kind::Text => "text".into(),
        Kind::Cancel => "token".into(),
        Kind::Function => "function".into(),
    }
}

/// Returns the enum with this name.
pub fn find<'a>(name: &str, choices: &'a [Choices]) -> &'a Choices {
    choices.iter().find(|found| found.name == name).expect("every enum of an option is among them")
}

/// Converts `reader` to `Reader`.
pub fn title(builder: &str) -> String {
    builder[..1].to_uppercase() + &builder[1..]
}

/// Converts a text for any language, in which error kinds and enum values are written by name.
pub fn plain(text: &str, choices: &[Choices]) -> String {
    let text = linked(text, choices, |link| match link {
        Link::Error(name) => format!("`{}`", snake_case(name)),
        Link::Value(_, value) => format!("`{}`", snake_case(value)),
        Link::Name(name) => format!("`{name}`"),
    });
    of_field(&text.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// The target of a link in the documentation.
pub enum Link<'a> {
    /// A kind of error, by its name in Rust.
    Error(&'a str),
    /// A value of an enum.
    Value(&'a str, &'a str),
    /// Anything else, by the last part of its path.
    Name(&'a str),
}

/// Replaces Rust's links in a text with what `show` returns for another language.
pub fn linked(text: &str, choices: &[Choices], show: impl Fn(Link<'_>) -> String) -> String {
    let (mut out, mut rest) = (String::new(), text);
    while let Some((before, link)) = rest.split_once("[`") {
        let Some((label, after)) = link.split_once("`]") else { break };
        let target = after.strip_prefix('(').and_then(|target| target.split_once(')'));
        let (to, after) = target.unwrap_or((label, after));
        let names: Vec<&str> = to.rsplit("::").collect();
        out += before;
        out += &match names[..] {
            [kind, "ErrorKind", ..] => show(Link::Error(kind)),
            [value, of, ..] if choices.iter().any(|found| found.has(of, value)) => show(Link::Value(of, value)),
            _ => show(Link::Name(label.rsplit("::").next().unwrap_or(label))),
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
        let value = Value { name: "Content".into(), about: String::new(), is_default: true };
        let pin = Choices { name: "Pin".into(), about: String::new(), values: vec![value] };
        let show = |link: Link<'_>| match link {
            Link::Error(name) => format!("E {name}"),
            Link::Value(of, value) => format!("V {of} {value}"),
            Link::Name(name) => format!("N {name}"),
        };
        let text = "a [`Pin::Content`], [`SourceShrank`](crate::ErrorKind::SourceShrank), [`close`](Writer::close) b";
        assert_eq!(linked(text, &[pin], show), "a V Pin Content, E SourceShrank, N close b");
    }
}
