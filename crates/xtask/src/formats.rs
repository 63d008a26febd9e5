//! The table of compressed formats, and the Rust code generated from it: `Encode` in the library and
//! `millstream_format` in the C ABI.

use std::fmt::Write as _;
use std::path::Path;

use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::{Attribute, Expr, ExprLit, FieldValue, Ident, Item, Lit, Member, Token, braced};

use crate::c_options::formatted;
use crate::source::{documentation, items, located};
use crate::{NOTICE, comment};

const WIDTH: usize = 120;

/// A format that is detected.
pub struct Format {
    /// A sentence that describes the format.
    pub about: String,
    /// Its name in Rust; `None` if it is neither read nor written.
    pub variant: Option<String>,
    /// Its name in messages and options.
    pub name: String,
    /// The suffixes of file names, without the dot.
    pub endings: Vec<String>,
    /// The beginnings by which it is detected, as the lowest and highest value of each byte.
    pub beginnings: Vec<Vec<(u8, u8)>>,
    /// Its lowest, highest and default level.
    levels: Option<(u32, u32, u32)>,
}

impl Parse for Format {
    fn parse(input: ParseStream<'_>) -> syn::Result<Format> {
        let about = documentation(&input.call(Attribute::parse_outer)?);
        let variant = input.peek(Ident).then(|| input.parse::<Ident>()).transpose()?.map(|name| name.to_string());
        let content;
        braced!(content in input);
        let fields: Punctuated<FieldValue, Token![,]> = content.call(Punctuated::parse_terminated)?;
        let field = |name: &str| {
            let is = |field: &&FieldValue| matches!(&field.member, Member::Named(member) if member == name);
            fields.iter().find(is).map(|field| &field.expr)
        };
        let required = |name: &str| field(name).ok_or_else(|| content.error(format!("no `{name}`")));
        let levels = match (field("levels"), field("usual_level")) {
            (Some(Expr::Range(range)), Some(usual)) => {
                let end = |end: &Option<Box<Expr>>| end.as_deref().map_or(Err(content.error("an open range")), number);
                Some((end(&range.start)?, end(&range.end)?, number(usual)?))
            }
            _ => None,
        };
        Ok(Format {
            about,
            variant,
            name: text(required("name")?)?,
            endings: elements(required("endings")?)?.into_iter().map(text).collect::<syn::Result<_>>()?,
            beginnings: elements(required("beginnings")?)?.into_iter().map(beginning).collect::<syn::Result<_>>()?,
            levels,
        })
    }
}

/// The elements of an array or of a reference to an array.
fn elements(value: &Expr) -> syn::Result<Vec<&Expr>> {
    match value {
        Expr::Array(array) => Ok(array.elems.iter().collect()),
        Expr::Reference(reference) => elements(&reference.expr),
        _ => Err(syn::Error::new_spanned(value, "expected an array")),
    }
}

fn text(value: &Expr) -> syn::Result<String> {
    match value {
        Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Ok(text.value()),
        _ => Err(syn::Error::new_spanned(value, "expected text")),
    }
}

fn number<N: std::str::FromStr<Err: std::fmt::Display>>(value: &Expr) -> syn::Result<N> {
    match value {
        Expr::Lit(ExprLit { lit: Lit::Int(number), .. }) => number.base10_parse(),
        _ => Err(syn::Error::new_spanned(value, "expected a number")),
    }
}

fn beginning(value: &Expr) -> syn::Result<Vec<(u8, u8)>> {
    let pair = |pair: &Expr| match pair {
        Expr::Tuple(pair) if pair.elems.len() == 2 => Ok((number(&pair.elems[0])?, number(&pair.elems[1])?)),
        _ => Err(syn::Error::new_spanned(pair, "expected the lowest and the highest value of a byte")),
    };
    elements(value)?.into_iter().map(pair).collect()
}

/// Reads the rows of `formats!`. Those that are read and written come first.
pub fn formats(root: &Path) -> Result<Vec<Format>, String> {
    let path = "crates/core/src/format.rs";
    let table = items(root, path)?.into_iter().find_map(|item| match item {
        Item::Macro(item) if item.mac.path.is_ident("formats") => Some(item.mac),
        _ => None,
    });
    let table = table.ok_or_else(|| format!("{path}: no `formats!` found"))?;
    table
        .parse_body_with(|input: ParseStream<'_>| {
            let mut formats = Vec::new();
            while !input.is_empty() {
                formats.push(input.parse()?);
                input.parse::<Option<Token![;]>>()?;
            }
            Ok(formats)
        })
        .map_err(|error| located(path, &error))
}

/// The formats that are read and written, with their names in Rust.
pub fn supported(formats: &[Format]) -> impl Iterator<Item = (&str, &Format)> {
    formats.iter().filter_map(|format| Some((format.variant.as_deref()?, format)))
}

/// Generates `encode.rs`, the option of writers.
pub fn encode(formats: &[Format]) -> Result<String, String> {
    let (mut suffixes, mut variants, mut into, mut from) = (Vec::new(), String::new(), String::new(), String::new());
    for (variant, Format { about, name, endings, levels, .. }) in supported(formats) {
        let endings: Vec<String> = endings.iter().map(|ending| format!("`.{ending}`")).collect();
        suffixes.push(format!("{} {name}", endings.join(" and ")));
        let levels = levels.map_or(String::new(), |(lowest, highest, usual)| {
            format!(" The levels are {lowest} to {highest}, {usual} by default.")
        });
        variants += &comment("///", &format!("{about}{levels}"), WIDTH);
        writeln!(variants, "{variant},").unwrap();
        writeln!(into, "Codec::{variant} => Encode::{variant},").unwrap();
        writeln!(from, "Encode::{variant} => Some(Format::{variant}),").unwrap();
    }
    let refused = formats.iter().find(|format| format.variant.is_none());
    let refused = refused.and_then(|format| format.endings.first()).ok_or("every format is written")?;
    let auto = comment(
        "///",
        &format!(
            "According to the suffix of a path, in upper or lower case: {}. A name that implies another compressed format, such as `.{refused}`, is [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported). Not for other sinks.",
            suffixes.join(", ")
        ),
        WIDTH,
    );
    formatted(&format!(
        "// {NOTICE}
//! How a writer compresses.

use crate::Format;
use millstream_core::internal::Codec;

/// Whether the bytes are compressed on the way to the sink.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Encode {{
    {auto}#[default]
    Auto,
    /// As they are.
    Off,
    {variants}
}}

impl From<Format> for Encode {{
    fn from(format: Format) -> Encode {{
        match format.codec() {{
            {into}
        }}
    }}
}}

impl Encode {{
    /// The format, if one is named.
    pub(super) fn format(self) -> Option<Format> {{
        match self {{
            Encode::Auto | Encode::Off => None,
            {from}
        }}
    }}
}}
"
    ))
}

/// Generates `format.rs` of the C ABI.
pub fn abi(formats: &[Format]) -> Result<String, String> {
    let (mut variants, mut from) = (String::new(), String::new());
    for (number, (variant, Format { about, .. })) in supported(formats).enumerate() {
        variants += &comment("///", about, WIDTH);
        writeln!(variants, "{variant} = {},", number + 1).unwrap();
        writeln!(from, "Some(Codec::{variant}) => millstream_format::{variant},").unwrap();
    }
    formatted(&format!(
        "// {NOTICE}
//! Compressed formats.

use millstream::{{Codec, Format}};

/// How a source is compressed. Later versions may add some.
#[repr(u32)]
#[derive(Clone, Copy)]
pub enum millstream_format {{
    /// Not at all, or not known yet.
    None = 0,
    {variants}
}}

impl From<Option<Format>> for millstream_format {{
    fn from(format: Option<Format>) -> millstream_format {{
        match format.map(Format::codec) {{
            None => millstream_format::None,
            {from}
        }}
    }}
}}
"
    ))
}
