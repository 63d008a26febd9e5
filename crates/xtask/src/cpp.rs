//! C++: generates the headers that are used by the handwritten ones.

use std::fmt::Write as _;

use crate::formats::{Format, supported};
use crate::options::{Builder, Choices, Kind, Link, Setting, linked, of_field};
use crate::source::{ErrorKind, snake_case};
use crate::{NOTICE, comment};

/// Generates `errc.hpp`: the enum of the error kinds, with their names and advice.
pub fn error_kinds(kinds: &[ErrorKind]) -> String {
    let mut codes = String::new();
    let mut texts = String::new();
    for kind in kinds {
        codes += &comment("    ///", &kind.meaning, 120);
        writeln!(codes, "    {} = {},", kind.name, kind.code).unwrap();
        writeln!(texts, "    {{{:?}, {:?}}},", kind.name, kind.advice).unwrap();
    }
    let count = kinds.len();
    let content = format!(
        "#include <array>
#include <string_view>

namespace millstream {{

/// The kinds of error. The numbers never change their meaning; later versions may add some.
enum class errc : int {{
{codes}}};

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
    let mut values = String::new();
    for (variant, Format { about, .. }) in supported(formats) {
        values += &comment("    ///", about, 120);
        writeln!(values, "    {} = MILLSTREAM_FORMAT_{},", snake_case(variant), snake_case(variant).to_uppercase())
            .unwrap();
    }
    let content = format!(
        "#include <cstdint>

#include <millstream.h>

namespace millstream {{

/// How a source is compressed. Later versions may add some.
enum class format : std::uint32_t {{
    /// Not at all, or not known yet.
    none = MILLSTREAM_FORMAT_NONE,
{values}}};

}} // namespace millstream
"
    );
    header("format", 20, "Compressed formats.", &content)
}

/// Generates `options.hpp`: the enums and structures of options, and the code that passes them to the C ABI.
pub fn options(builders: &[Builder], choices: &[Choices]) -> String {
    let mut out = String::from(
        "#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include <millstream/boundary.hpp>
#include <millstream/cancel.hpp>

namespace millstream {

struct progress;
",
    );
    for Choices { name, about, values } in choices {
        let name = snake_case(name);
        writeln!(out, "\n{}enum class {name} : std::uint32_t {{", documented("", about, choices)).unwrap();
        for value in values {
            let c = format!("millstream_{name}_{}", snake_case(&value.name)).to_uppercase();
            writeln!(out, "{}    {} = {c},", documented("    ", &value.about, choices), value_name(&value.name))
                .unwrap();
        }
        out += "};\n";
    }
    for Builder { name, options, .. } in builders {
        let (mut fields, mut calls) = (String::new(), String::new());
        for setting in options {
            fields += &documented("    ", &of_field(&setting.about), choices);
            fields += &field(setting);
            calls += &passed_on(name, setting);
        }
        write!(
            out,
            "
/// The options of a {name}. Those that are not given have their defaults.
struct {name}_options {{
{fields}}};

namespace detail {{

/// Sets what is given, but for functions.
inline void set(const {name}_options &options, millstream_{name}_options *to) {{
{calls}}}

}} // namespace detail
"
        )
        .unwrap();
    }
    header("options", 20, "The options of readers and writers.", &(out + "\n} // namespace millstream\n"))
}

fn documented(indent: &str, about: &str, choices: &[Choices]) -> String {
    let about = linked(about, choices, |link| match link {
        Link::Error(kind) => format!("`{}`", snake_case(kind)),
        Link::Value(of, value) => format!("`{}::{}`", snake_case(of), value_name(value)),
        Link::Name(name) => format!("`{name}`"),
    });
    comment(&format!("{indent}///"), &about, 120)
}

/// The name of a value: Rust's name in snake case, except for `auto`, which is a keyword.
fn value_name(name: &str) -> String {
    if name == "Auto" { "automatic".into() } else { snake_case(name) }
}

/// Generates the fields of an option: a single one or, if it takes a function, also one for each other argument.
fn field(Setting { name, parameters, .. }: &Setting) -> String {
    let types: Vec<String> = parameters.iter().map(|(_, kind)| type_of(kind)).collect();
    if parameters.iter().any(|(_, kind)| matches!(kind, Kind::Function)) {
        let fields = parameters.iter().zip(&types).map(|((argument, _), of)| {
            if argument == name {
                format!("    {of} {name}{{}};\n")
            } else {
                format!("    {of} {name}_{argument}{{}};\n")
            }
        });
        return fields.rev().collect();
    }
    match (&types[..], &parameters[0].1) {
        ([_], Kind::Cancel) => format!("    const cancel_token *{name} = nullptr;\n"),
        ([_], Kind::Text) => format!("    std::string {name}{{}};\n"),
        ([of], _) => format!("    std::optional<{of}> {name}{{}};\n"),
        _ => format!("    std::optional<std::pair<{}>> {name}{{}};\n", types.join(", ")),
    }
}

fn type_of(kind: &Kind) -> String {
    match kind {
        Kind::Whole(of) if of == "usize" => "std::size_t".into(),
        Kind::Whole(of) => format!("std::{}_t", of.replace('u', "uint")),
        Kind::Time => "std::chrono::nanoseconds".into(),
        Kind::Choice(of) => format!("millstream::{}", snake_case(of)),
        Kind::Text => "std::string".into(),
        Kind::Cancel => "const cancel_token *".into(),
        Kind::Function => "std::function<void(const progress &)>".into(),
    }
}

/// Generates the call that passes an option on; empty if the option takes a function.
fn passed_on(builder: &str, Setting { name, parameters, .. }: &Setting) -> String {
    let (condition, unit, arguments) = match &parameters[..] {
        [(_, Kind::Cancel)] => (format!("options.{name} != nullptr"), "", format!("options.{name}->get()")),
        [(_, Kind::Text)] => (format!("!options.{name}.empty()"), "", format!("c_text(options.{name}).c_str()")),
        [(_, Kind::Time)] => (format!("options.{name}"), "_ns", format!("c_time(*options.{name})")),
        [(_, Kind::Choice(of))] => {
            let c = format!("static_cast<millstream_{}>(*options.{name})", snake_case(of));
            (format!("options.{name}"), "", c)
        }
        [(_, Kind::Whole(_))] => (format!("options.{name}"), "", format!("*options.{name}")),
        [(_, Kind::Whole(_)), (_, Kind::Whole(_))] => {
            (format!("options.{name}"), "", format!("options.{name}->first, options.{name}->second"))
        }
        _ => return String::new(),
    };
    format!("    if ({condition})\n        call(millstream_{builder}_options_set_{name}{unit}, to, {arguments});\n")
}

/// Generates a header for this C++ standard with this content.
pub fn header(name: &str, standard: u32, about: &str, content: &str) -> String {
    let guard = format!("MILLSTREAM_{}_HPP", name.to_uppercase());
    let older = if standard == 17 { "201402L" } else { "201703L" };
    format!(
        "// {NOTICE}
//
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
