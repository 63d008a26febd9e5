//! Rust: generates the parts of the library that follow from its tables and builders.

use crate::options::{Builder, Choices, Kind, Setting, find, plain};
use crate::tables::{Format, supported};
use crate::text::{comment, each, formatted, joined};

/// Generates `writer/encode.rs`, the option of writers.
pub fn encode(formats: &[Format]) -> Result<String, String> {
    let suffixes = joined(supported(formats), ", ", |(_, Format { name, endings, .. })| {
        format!("{} {name}", joined(endings, " and ", |ending| format!("`.{ending}`")))
    });
    let refused = formats.iter().find(|format| format.variant.is_none());
    let refused = refused.and_then(|format| format.endings.first()).ok_or("every format is written")?;
    let auto = format!(
        "According to the suffix of a path, in upper or lower case: {suffixes}. Opening a path whose name implies another compressed format, such as `.{refused}`, fails with [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported). Other sinks are not compressed."
    );
    let variants = each(supported(formats), |(variant, Format { about, levels, .. })| {
        let levels = levels.map_or(String::new(), |(lowest, highest, usual)| {
            format!(" The levels are {lowest} to {highest}, {usual} by default.")
        });
        format!("{}{variant},\n", comment("///", &format!("{about}{levels}")))
    });
    formatted(&format!(
        "//! How a writer compresses.

use crate::Format;
use millstream_core::internal::Codec;

/// Whether the bytes are compressed on the way to the sink.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Encode {{
    {}#[default]
    Auto,
    /// As they are.
    Off,
    {variants}
}}

impl From<Format> for Encode {{
    fn from(format: Format) -> Encode {{
        match format.codec() {{
            {}
        }}
    }}
}}

impl Encode {{
    /// The format, if one is named.
    pub(super) fn format(self) -> Option<Format> {{
        match self {{
            Encode::Auto | Encode::Off => None,
            {}
        }}
    }}
}}
",
        comment("///", &auto),
        each(supported(formats), |(variant, _)| format!("Codec::{variant} => Encode::{variant},\n")),
        each(supported(formats), |(variant, _)| format!("Encode::{variant} => Some(Format::{variant}),\n")),
    ))
}

/// Generates `options/table.rs`: a table for each builder, for code that sets options by name.
pub fn options(builders: &[Builder], choices: &[Choices]) -> Result<String, String> {
    let tables = each(builders, |builder| {
        let Builder { name, of, options } = builder;
        let rows = options.iter().filter_map(|Setting { name, about, parameters, call }| {
            let set = set(parameters, call, choices)?;
            Some(format!("Setting {{ name: {name:?}, about: {:?}, set: Set::{set} }},\n", plain(about, choices)))
        });
        format!(
            "\n/// The options of a {}.\npub const {}: &[Setting<{of}>] = &[{}];\n",
            builder.title(),
            name.to_uppercase(),
            rows.collect::<String>()
        )
    });
    formatted(&format!(
        "//! The tables.

use super::{{Set, Setting, Word}};
use crate::{{{}, {}}};
{tables}",
        joined(choices.iter().filter(|choices| tables.contains(&format!("({}::", choices.name))), ", ", |choices| {
            choices.name.clone()
        }),
        joined(builders, ", ", |builder| builder.of.to_string())
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
        [(_, Kind::Flag)] => format!("Flag(|builder, flag| builder.{})", call("flag")),
        [(_, Kind::Wholes)] => format!("List(|builder, list| builder.{})", call("list.iter().copied()")),
        [(_, Kind::Time)] => format!("Time(|builder, time| builder.{})", call("time")),
        [(_, Kind::Text)] => format!("Text(|builder, text| builder.{})", call("text")),
        [(_, Kind::Choice(of))] => {
            let words = joined(&find(of, choices).values, ", ", |value| {
                format!(
                    "Word {{ word: {:?}, about: {:?}, is_default: {}, set: |builder| builder.{} }}",
                    value.word,
                    plain(&value.about, choices),
                    value.is_default,
                    call(&format!("{of}::{}", value.name))
                )
            });
            format!("Word(&[{words}])")
        }
        _ => return None,
    })
}
