//! BSON: generates the table of value types for every language.

use std::fmt::Write as _;

use syn::parse::{Parse, ParseStream};
use syn::{Attribute, Ident, LitInt, LitStr, Path, Token};

use crate::cpp::header;
use crate::source::{documentation, rows, snake_case};
use crate::{NOTICE, comment};

const WIDTH: usize = 120;

/// The layout of a payload.
enum Layout {
    /// All payloads of the type have this size.
    Fixed(usize),
    /// Another `Layout` of the library, by its name in snake case.
    Other(String),
}

impl Parse for Layout {
    fn parse(input: ParseStream<'_>) -> syn::Result<Layout> {
        let path: Path = input.parse()?;
        let name = path.segments.last().map(|last| last.ident.to_string()).unwrap_or_default();
        Ok(match name.as_str() {
            "Fixed" => {
                let size;
                syn::parenthesized!(size in input);
                Layout::Fixed(size.parse::<LitInt>()?.base10_parse()?)
            }
            "Bool" => Layout::Fixed(1),
            other => Layout::Other(snake_case(other)),
        })
    }
}

/// A type of value.
pub struct ElementType {
    about: String,
    byte: u8,
    /// Its name in Rust.
    name: String,
    /// MongoDB's name.
    alias: String,
    layout: Layout,
}

impl Parse for ElementType {
    fn parse(input: ParseStream<'_>) -> syn::Result<ElementType> {
        let about = documentation(&input.call(Attribute::parse_outer)?);
        let byte = input.parse::<LitInt>()?.base10_parse()?;
        let name = input.parse::<Ident>()?.to_string();
        let alias = input.parse::<LitStr>()?.value();
        let layout = input.parse()?;
        input.parse::<Token![;]>()?;
        Ok(ElementType { about, byte, name, alias, layout })
    }
}

/// Reads the rows of `element_types!`.
pub fn element_types(root: &std::path::Path) -> Result<Vec<ElementType>, String> {
    rows(root, "crates/bson/src/wire/element.rs", "element_types")
}

/// Generates `bson_type.rs` of the C ABI, an enum for the header.
pub fn c_types(types: &[ElementType]) -> String {
    let mut values = String::new();
    for ElementType { about, byte, name, .. } in types {
        writeln!(values, "{}    {name} = {byte},", comment("    ///", about, WIDTH)).unwrap();
    }
    format!(
        "// {NOTICE}
//! The types of values in BSON documents.

/// The types that a value can have: the numbers are those of the format, <https://bsonspec.org/spec.html>.
#[repr(u32)]
#[derive(Clone, Copy)]
#[allow(dead_code, reason = \"most values are made from the numbers\")]
pub enum millstream_bson_type {{
    /// There is no value.
    Nothing = 0,
{values}}}
"
    )
}

/// Generates `bson_type.hpp`, the enum.
pub fn cpp_types(types: &[ElementType]) -> String {
    let mut values = String::new();
    for ElementType { about, name, .. } in types {
        let c = snake_case(name);
        // Two of the names are keywords.
        let name = match c.as_str() {
            "double" => "float64",
            "bool" => "boolean",
            other => other,
        };
        let c = c.to_uppercase();
        writeln!(values, "{}    {name} = MILLSTREAM_BSON_TYPE_{c},", comment("    ///", about, WIDTH)).unwrap();
    }
    let content = format!(
        "#include <cstdint>

#include <millstream.h>

namespace millstream::bson {{

/// The types that a value can have; the numbers are those of the format.
enum class type : std::uint32_t {{
    /// There is no value.
    nothing = MILLSTREAM_BSON_TYPE_NOTHING,
{values}}};

}} // namespace millstream::bson
"
    );
    header("bson_type", 20, "The types of values in BSON documents, of `bson.hpp`.", &content)
}

/// Generates `types.ts`, the names and layouts.
pub fn node_types(types: &[ElementType]) -> String {
    let (mut names, mut layouts, mut words) = (String::new(), String::new(), Vec::new());
    for ElementType { byte, alias, layout, .. } in types {
        writeln!(names, "  {byte}: \"{alias}\",").unwrap();
        match layout {
            Layout::Fixed(size) => writeln!(layouts, "  {byte}: {size},").unwrap(),
            Layout::Other(word) => {
                let word = format!("\"{word}\"");
                writeln!(layouts, "  {byte}: {word},").unwrap();
                if !words.contains(&word) {
                    words.push(word);
                }
            }
        }
    }
    let words = words.join(" | ");
    format!(
        "// {NOTICE}

/** The types of BSON: the byte of each, with MongoDB's name. */
export const TYPES: {{ readonly [byte: number]: string | undefined }} = {{
{names}}};

/** How a payload is laid out: its size, or what its length is in. */
export type Layout = number | {words};

/** The layout of each type. */
export const LAYOUTS: {{ readonly [byte: number]: Layout | undefined }} = {{
{layouts}}};
"
    )
}

/// Generates `elements.jl`, the names and sizes.
pub fn julia_types(types: &[ElementType]) -> String {
    let (mut names, mut sizes) = (String::new(), String::new());
    for ElementType { byte, alias, layout, .. } in types {
        writeln!(names, "    {byte:#04x} => \"{alias}\",").unwrap();
        if let Layout::Fixed(size) = layout {
            writeln!(sizes, "    {byte:#04x} => {size},").unwrap();
        }
    }
    format!(
        "# {NOTICE}

# The types of BSON: the byte of each, with MongoDB's name.
const KIND_NAMES = Dict{{UInt8,String}}(
{names})

# The size of a payload, of the types for which it is fixed.
const KIND_SIZES = Dict{{UInt8,Int}}(
{sizes})
"
    )
}
