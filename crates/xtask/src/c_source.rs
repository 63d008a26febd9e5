//! The C ABI: generates enums and setters in Rust, from which the header is generated.

use crate::options::{Builder, Choices, Kind, Setting, linked};
use crate::tables::{ElementType, Format, supported};
use crate::text::{comment, each, formatted, joined, snake_case};

/// Generates an enum of the header from its documentation, name and attributes, and the documentation, name and number
/// of each value.
fn enumeration<'a>(
    about: &str,
    name: &str,
    attributes: &str,
    values: impl IntoIterator<Item = (String, &'a str, usize)>,
) -> String {
    let values = each(values, |(about, name, number)| format!("{}{name} = {number},\n", comment("///", &about)));
    format!("{}#[repr(u32)]\n{attributes}pub enum {name} {{\n{values}}}\n\n", comment("///", about))
}

/// Generates `format.rs`, the enum of compressed formats.
pub fn formats(formats: &[Format]) -> Result<String, String> {
    let none = ("Not at all, or not known yet.".into(), "None", 0);
    let values = supported(formats).zip(1..).map(|((variant, format), number)| (format.about.clone(), variant, number));
    let about = "How a source is compressed. Later versions may add some.";
    let declared =
        enumeration(about, "millstream_format", "#[derive(Clone, Copy)]\n", [none].into_iter().chain(values));
    let arms =
        each(supported(formats), |(variant, _)| format!("Some(Codec::{variant}) => millstream_format::{variant},\n"));
    formatted(&format!(
        "//! Compressed formats.

use millstream::{{Codec, Format}};

{declared}impl From<Option<Format>> for millstream_format {{
    fn from(format: Option<Format>) -> millstream_format {{
        match format.map(Format::codec) {{
            None => millstream_format::None,
            {arms}
        }}
    }}
}}
"
    ))
}

/// Generates `bson_type.rs`, the enum of BSON types.
pub fn element_types(types: &[ElementType]) -> Result<String, String> {
    let nothing = ("There is no value.".into(), "Nothing", 0);
    let values = types.iter().map(|of| (of.about.clone(), of.name.as_str(), of.byte.into()));
    let declared = enumeration(
        "The types that a value can have: the numbers are those of the format, <https://bsonspec.org/spec.html>.",
        "millstream_bson_type",
        "#[derive(Clone, Copy)]\n#[allow(dead_code, reason = \"most values are made from the numbers\")]\n",
        [nothing].into_iter().chain(values),
    );
    formatted(&format!("//! The types of values in BSON documents.\n\n{declared}"))
}

/// Generates `enums.rs`: the enums of options, commands and framers.
pub fn enums(choices: &[Choices]) -> Result<String, String> {
    let enums = each(choices, |Choices { name, path, about, values }| {
        let Some(path) = path else { return String::new() };
        let numbered = values.iter().zip(0..);
        let numbered = numbered.map(|(value, number)| (shown(&value.about, choices), value.name.as_str(), number));
        let pairs = each(values, |value| format!("    {0} => {path}::{0},\n", value.name));
        let c = c_name(name);
        let declared = enumeration(&shown(about, choices), &c, "#[derive(Clone, Copy)]\n", numbered);
        declared + &format!("choice!({c} is {path} {{\n{pairs}}});\n\n")
    });
    formatted(&format!(
        "//! The values of options, commands and framers.\n\nuse crate::boundary::choice;\n\n{}",
        enums.trim_end()
    ))
}

/// Generates a module such as `reader_options.rs`: a setter for each option that does not take a function.
pub fn setters(builder: &Builder, choices: &[Choices]) -> Result<String, String> {
    let Builder { name, options, .. } = builder;
    let title = builder.title();
    let settable = options.iter().filter(|setting| !setting.takes_function());
    let setters = joined(settable, "\n", |setting| setter(name, setting, choices));
    let used = choices.iter().filter(|found| setters.contains(&format!("MaybeUninit<{}>", c_name(&found.name))));
    let used = joined(used, ", ", |found| c_name(&found.name));
    // Names that only some options need.
    let imported = |names: &[&str]| {
        joined(
            names.iter().filter(|name| setters.contains(&format!("{name}(")) || setters.contains(&format!("{name}>"))),
            ", ",
            |name| name.to_string(),
        )
    };
    let (handle, _) = handle(name);
    formatted(&format!(
        "//! The options of a {title}.

{}use std::mem::MaybeUninit;
use std::time::Duration;

use crate::boundary::{{call, given, {}}};
{}{}use crate::error::{{millstream_code, millstream_error}};
use crate::{name}::{handle};

{setters}",
        if setters.contains("c_char") { "use std::ffi::c_char;\n" } else { "" },
        imported(&["chosen", "items", "string"]),
        if setters.contains("millstream_cancel_token") { "use crate::cancel::millstream_cancel_token;\n" } else { "" },
        if used.is_empty() { String::new() } else { format!("use crate::enums::{{{used}}};\n") },
    ))
}

/// The C type that keeps the options of a builder, and the beginning of its setters' names: a command and a remote object
/// keep them themselves.
pub fn handle(builder: &str) -> (String, String) {
    match builder {
        "command" | "remote" => (format!("millstream_{builder}"), format!("millstream_{builder}_set_")),
        _ => (format!("millstream_{builder}_options"), format!("millstream_{builder}_options_set_")),
    }
}

/// Generates the setter of an option.
fn setter(builder: &str, setting: &Setting, choices: &[Choices]) -> String {
    let Setting { name, about, parameters, call } = setting;
    let unit = setting.unit();
    let (mut declared, mut prepared, mut passed, mut safety) = (String::new(), String::new(), vec![], "");
    for (argument, kind) in parameters {
        let (of, prepare, pass) = match kind {
            Kind::Whole(of) => (of.clone(), String::new(), argument.clone()),
            Kind::Flag => ("bool".into(), String::new(), argument.clone()),
            Kind::Wholes => {
                safety = "unsafe ";
                prepared += &format!(
                    "// SAFETY: C lends an array for this call.\nlet {argument} = unsafe {{ items({argument}, count, {argument:?})? }}.to_vec();\n"
                );
                declared += &format!("    {argument}: *const i32,\n    count: usize,\n");
                passed.push(format!("{argument}.iter().copied()"));
                continue;
            }
            Kind::Time => ("u64".into(), String::new(), format!("Duration::from_nanos({argument}_ns)")),
            Kind::Choice(of) => (
                format!("MaybeUninit<{}>", c_name(of)),
                format!("let {argument} = chosen({argument})?;\n"),
                argument.clone(),
            ),
            Kind::Text => {
                safety = "unsafe ";
                let owned = format!("unsafe {{ string({argument}, {argument:?})? }}.to_string_lossy().into_owned()");
                let prepare = format!("// SAFETY: C lends a string for this call.\nlet {argument} = {owned};\n");
                ("*const c_char".into(), prepare, format!("&{argument}"))
            }
            Kind::Cancel => (
                "Option<&millstream_cancel_token>".into(),
                format!("let {argument} = given({argument}, {argument:?})?.0.clone();\n"),
                format!("&{argument}"),
            ),
            Kind::Function => continue,
        };
        declared += &format!("    {argument}{unit}: {of},\n");
        prepared += &prepare;
        passed.push(pass);
    }
    let call = call.replace("{}", &passed.join(", "));
    let (handle, setter) = handle(builder);
    let object = if handle.ends_with("_options") { "options" } else { builder };
    format!(
        "{}#[unsafe(no_mangle)]
pub {safety}extern \"C\" fn {setter}{name}{unit}(
    {object}: Option<&mut {handle}>,
{declared}    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {{
    call(error, || {{
        {prepared}given({object}, \"{object}\")?.0.set(move |builder| builder.{call});
        Ok(())
    }})
}}
",
        comment("///", &shown(about, choices))
    )
}

/// Converts `ReadAhead` to `millstream_read_ahead`.
pub fn c_name(name: &str) -> String {
    format!("millstream_{}", snake_case(name))
}

/// Converts a text: error kinds and enum values have their names in C.
fn shown(about: &str, choices: &[Choices]) -> String {
    let error = |kind: &str| format!("MILLSTREAM_{}", snake_case(kind).to_uppercase());
    linked(about, choices, error, |of, value| format!("{}_{}", c_name(of), snake_case(value)).to_uppercase())
}
