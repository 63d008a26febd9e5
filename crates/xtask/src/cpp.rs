//! C++: generates the headers that are used by the handwritten ones.

use crate::c_source::handle;
use crate::options::{Builder, Choices, Kind, Setting, linked, of_field};
use crate::tables::{ElementType, ErrorKind, Format, supported};
use crate::text::{comment, each, joined, snake_case};

/// Generates an enum from its documentation, its name and type, and the documentation, name and number of each value.
fn enumeration<'a>(
    about: &str,
    name: &str,
    values: impl IntoIterator<Item = (&'a str, &'a str, String)>,
    choices: &[Choices],
) -> String {
    let values = each(values, |(about, value, number)| {
        format!("{}    {} = {number},\n", documented("    ", about, choices), value_name(value))
    });
    format!("{}enum class {name} {{\n{values}}};\n", documented("", about, choices))
}

/// The name of a value: Rust's name in snake case, except for those that are keywords.
fn value_name(name: &str) -> String {
    match name {
        "Auto" => "automatic".into(),
        "Bool" => "boolean".into(),
        "Double" => "float64".into(),
        _ => snake_case(name),
    }
}

/// Generates `errc.hpp`: the enum of the error kinds, with their names and advice.
pub fn error_kinds(kinds: &[ErrorKind]) -> String {
    let values = kinds.iter().map(|kind| (kind.meaning.as_str(), kind.name.as_str(), kind.code.to_string()));
    let about = "The kinds of error. The numbers never change their meaning; later versions may add some.";
    let codes = enumeration(about, "errc : int", values, &[]);
    let texts = each(kinds, |kind| format!("    {{{:?}, {:?}}},\n", kind.name, kind.advice));
    let count = kinds.len();
    let content = format!(
        "#include <array>
#include <string_view>

namespace millstream {{

{codes}
namespace detail {{

/// A kind's name in snake case and what the user can do about it.
struct kind_text {{
    std::string_view name;
    std::string_view advice;
}};

/// In the order of the codes; the first is 1.
inline constexpr std::array<kind_text, {count}> kind_texts{{{{
{texts}}}}};

}} // namespace detail

}} // namespace millstream
"
    );
    header("errc", 17, "The kinds of error, of `error.hpp`.", &content)
}

/// Generates `format.hpp`: the compressed formats.
pub fn formats(formats: &[Format]) -> String {
    let none = [("Not at all, or not known yet.", "None")].into_iter();
    let values = none.chain(supported(formats).map(|(variant, format)| (format.about.as_str(), variant)));
    let about = "How a source is compressed. Later versions may add some.";
    of_c("format", "Compressed formats.", "millstream", &mirrored(about, "format", "format", values, &[]))
}

/// Generates `bson_type.hpp`: the types of BSON values.
pub fn element_types(types: &[ElementType]) -> String {
    let values = [("There is no value.", "Nothing")].into_iter();
    let values = values.chain(types.iter().map(|of| (of.about.as_str(), of.name.as_str())));
    let about = "The types that a value can have; the numbers are those of the format.";
    let declared = mirrored(about, "type", "bson_type", values, &[]);
    of_c("bson_type", "The types of values in BSON documents, of `bson.hpp`.", "millstream::bson", &declared)
}

/// Generates `enums.hpp`: the enums of options, commands and framers.
pub fn enums(choices: &[Choices]) -> String {
    // C++ has its own enum for byte orders.
    let wanted = choices.iter().filter(|choices| choices.path.is_some() && choices.name != "Endian");
    let enums = joined(wanted, "\n", |Choices { name, about, values, .. }| {
        let c = snake_case(name);
        // Three of the names are macros of C.
        let name = match c.as_str() {
            "stdin" => "stdin_from",
            "stdout" => "stdout_to",
            "stderr" => "stderr_to",
            other => other,
        };
        let values = values.iter().map(|value| (value.about.as_str(), value.name.as_str()));
        mirrored(about, name, &c, values, choices)
    });
    of_c("enums", "The values of options, commands and framers.", "millstream", &enums)
}

/// Generates an enum whose numbers are those of an enum of C.
fn mirrored<'a>(
    about: &str,
    name: &str,
    c: &str,
    values: impl IntoIterator<Item = (&'a str, &'a str)>,
    choices: &[Choices],
) -> String {
    let number = |value: &str| format!("millstream_{c}_{}", snake_case(value)).to_uppercase();
    let values = values.into_iter().map(|(about, value)| (about, value, number(value)));
    enumeration(about, &format!("{name} : std::uint32_t"), values, choices)
}

/// Generates a header of enums whose numbers are those of enums of C.
fn of_c(name: &str, about: &str, namespace: &str, enums: &str) -> String {
    let content = format!(
        "#include <cstdint>

#include <millstream.h>

namespace {namespace} {{

{enums}
}} // namespace {namespace}
"
    );
    header(name, 20, about, &content)
}

/// Generates `options.hpp`: the structures of options, and the code that passes them to the C ABI.
pub fn options(builders: &[Builder], choices: &[Choices]) -> String {
    // Those of a command are methods of `command`.
    let structures = each(builders.iter().filter(|builder| builder.name != "command"), |builder| {
        let Builder { name, options, .. } = builder;
        format!(
            "
/// The options of a {title}. Those that are not given have their defaults.
struct {name}_options {{
{}}};

namespace detail {{

/// Sets what is given, but for functions.
inline void set(const {name}_options &options, {} *to) {{
{}}}

}} // namespace detail
",
            each(options, |option| documented("    ", &of_field(&option.about), choices) + &field(option)),
            handle(name).0,
            each(options, |option| passed_on(name, option)),
            title = builder.title(),
        )
    });
    let content = format!(
        "#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include <millstream/boundary.hpp>
#include <millstream/cancel.hpp>
#include <millstream/enums.hpp>

namespace millstream {{

struct progress;
{structures}
}} // namespace millstream
"
    );
    header("options", 20, "The options of readers, writers and remote objects.", &content)
}

/// Formats a documentation comment; values of enums have their names in C++.
fn documented(indent: &str, about: &str, choices: &[Choices]) -> String {
    let error = |kind: &str| format!("`{}`", snake_case(kind));
    let about = linked(about, choices, error, |of, value| format!("`{}::{}`", snake_case(of), value_name(value)));
    comment(&format!("{indent}///"), &about)
}

/// Options whose empty text differs from no text.
const MAY_BE_EMPTY: [&str; 1] = ["json_elements"];

/// Generates the fields of an option: a single one or, if it takes a function, also one for each other argument.
fn field(setting: &Setting) -> String {
    let Setting { name, parameters, .. } = setting;
    if setting.takes_function() {
        return each(parameters.iter().rev(), |(argument, kind)| {
            let suffix = if argument == name { String::new() } else { format!("_{argument}") };
            format!("    {} {name}{suffix}{{}};\n", type_of(kind))
        });
    }
    match &parameters[..] {
        [(_, Kind::Cancel)] => format!("    const cancel_token *{name} = nullptr;\n"),
        [(_, Kind::Text)] if !MAY_BE_EMPTY.contains(&&**name) => format!("    std::string {name}{{}};\n"),
        [(_, kind)] => format!("    std::optional<{}> {name}{{}};\n", type_of(kind)),
        several => {
            let types = joined(several, ", ", |(_, kind)| type_of(kind));
            format!("    std::optional<std::pair<{types}>> {name}{{}};\n")
        }
    }
}

fn type_of(kind: &Kind) -> String {
    match kind {
        Kind::Whole(of) if of == "usize" => "std::size_t".into(),
        Kind::Whole(of) => format!("std::{}_t", of.replace('u', "uint")),
        Kind::Flag => "bool".into(),
        Kind::Wholes => "std::vector<std::int32_t>".into(),
        Kind::Time => "std::chrono::nanoseconds".into(),
        Kind::Choice(of) => format!("millstream::{}", snake_case(of)),
        Kind::Text => "std::string".into(),
        Kind::Cancel => "const cancel_token *".into(),
        Kind::Function => "std::function<void(const progress &)>".into(),
    }
}

/// Generates the call that passes an option on; empty if the option takes a function.
fn passed_on(builder: &str, setting: &Setting) -> String {
    let Setting { name, parameters, .. } = setting;
    let option = format!("options.{name}");
    let (condition, arguments) = match &parameters[..] {
        [(_, Kind::Cancel)] => (format!("{option} != nullptr"), format!("{option}->get()")),
        [(_, Kind::Text)] if MAY_BE_EMPTY.contains(&&**name) => (option.clone(), format!("c_text(*{option}).c_str()")),
        [(_, Kind::Text)] => (format!("!{option}.empty()"), format!("c_text({option}).c_str()")),
        [(_, Kind::Time)] => (option.clone(), format!("c_time(*{option})")),
        [(_, Kind::Choice(of))] => (option.clone(), format!("static_cast<millstream_{}>(*{option})", snake_case(of))),
        [(_, Kind::Flag | Kind::Whole(_))] => (option.clone(), format!("*{option}")),
        [(_, Kind::Whole(_)), (_, Kind::Whole(_))] => (option.clone(), format!("{option}->first, {option}->second")),
        _ => return String::new(),
    };
    let setter = format!("{}{name}{}", handle(builder).1, setting.unit());
    format!("    if ({condition})\n        call({setter}, to, {arguments});\n")
}

/// Generates a header for this C++ standard with this content.
fn header(name: &str, standard: u32, about: &str, content: &str) -> String {
    let guard = format!("MILLSTREAM_{}_HPP", name.to_uppercase());
    let older = if standard == 17 { "201402L" } else { "201703L" };
    format!(
        "//
// {about}
#ifndef {guard}
#define {guard}

#if __cplusplus <= {older}
#error \"millstream/{name}.hpp needs C++{standard}: compile it with -std=c++{standard} or later\"
#else

{content}
#endif
#endif
"
    )
}
