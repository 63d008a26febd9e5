//! The library's own table of its options, for code that sets them by name.

use std::fmt::Write as _;

use crate::NOTICE;
use crate::c_options::formatted;
use crate::options::{Builder, Choices, Kind, Setting, find, plain, title};
use crate::source::snake_case;

/// Generates `options/table.rs`: a table for each builder.
pub fn options(builders: &[Builder], choices: &[Choices]) -> Result<String, String> {
    let mut out = String::new();
    for Builder { name, options, .. } in builders {
        let of = title(name) + "Builder";
        writeln!(out, "\n/// The options of a {name}.\npub const {}: &[Setting<{of}>] = &[", name.to_uppercase())
            .unwrap();
        for Setting { name, about, parameters, call } in options {
            let Some(set) = set(parameters, call, choices) else { continue };
            writeln!(out, "Setting {{ name: {name:?}, about: {:?}, set: Set::{set} }},", plain(about, choices))
                .unwrap();
        }
        out += "];\n";
    }
    let enums: Vec<&str> = choices.iter().map(|choices| choices.name.as_str()).collect();
    formatted(&format!(
        "// {NOTICE}
//! The tables.

use super::{{Set, Setting, Word}};
use crate::{{{}, ReaderBuilder, WriterBuilder}};
{out}",
        enums.join(", ")
    ))
}

/// The kind of argument that an option takes and the function that sets it; `None` if the option cannot be in a table.
fn set(parameters: &[(String, Kind)], call: &str, choices: &[Choices]) -> Option<String> {
    let number = |name: &str, of: &str| match of {
        "u64" => name.to_string(),
        _ => format!("{of}::try_from({name}).unwrap_or({of}::MAX)"),
    };
    let call = |passed: &str| call.replace("millstream::", "crate::").replace("{}", passed);
    Some(match parameters {
        [(_, Kind::Whole(of))] => format!("Number(|builder, number| builder.{})", call(&number("number", of))),
        [(_, Kind::Whole(of)), (_, Kind::Whole(other))] => format!(
            "Numbers(|builder, one, other| builder.{})",
            call(&format!("{}, {}", number("one", of), number("other", other)))
        ),
        [(_, Kind::Time)] => format!("Time(|builder, time| builder.{})", call("time")),
        [(_, Kind::Text)] => format!("Text(|builder, text| builder.{})", call("text")),
        [(_, Kind::Choice(of))] => {
            let words = find(of, choices).values.iter().map(|value| {
                format!(
                    "Word {{ word: {:?}, about: {:?}, is_default: {}, set: |builder| builder.{} }}",
                    snake_case(&value.name),
                    plain(&value.about, choices),
                    value.is_default,
                    call(&format!("{of}::{}", value.name))
                )
            });
            format!("Word(&[{}])", words.collect::<Vec<_>>().join(", "))
        }
        _ => return None,
    })
}
