//! The library's tables, which are macros: error kinds, compressed formats, and the types of BSON values.

use std::path::Path;

use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::{Attribute, Expr, ExprLit, FieldValue, Ident, Item, Lit, LitInt, LitStr, Member, Token, braced};

use crate::source::{documentation, items, located};
use crate::text::snake_case;

/// A kind of error.
pub struct ErrorKind {
    /// Its meaning, in one or two sentences.
    pub meaning: String,
    /// Its number, which never changes.
    pub code: u32,
    /// Its name in snake case.
    pub name: String,
    /// Advice for the user.
    pub advice: String,
}

impl Parse for ErrorKind {
    fn parse(input: ParseStream<'_>) -> syn::Result<ErrorKind> {
        let meaning = documentation(&input.call(Attribute::parse_outer)?);
        let code = input.parse::<LitInt>()?.base10_parse()?;
        input.parse::<Ident>()?;
        let name = input.parse::<LitStr>()?.value();
        Ok(ErrorKind { meaning, code, name, advice: input.parse::<LitStr>()?.value() })
    }
}

/// Reads the rows of `error_kinds!`, in the order of the codes, which have no gaps.
pub fn error_kinds(root: &Path) -> Result<Vec<ErrorKind>, String> {
    let path = "crates/core/src/error.rs";
    let kinds: Vec<ErrorKind> = rows(root, path, "error_kinds")?;
    match kinds.iter().zip(1..).find(|(kind, code)| kind.code != *code) {
        Some((kind, code)) => Err(format!("{path}: `{}` has the code {}, expected {code}", kind.name, kind.code)),
        None => Ok(kinds),
    }
}

/// The layout of a payload.
pub enum Layout {
    /// All payloads of the type have this size.
    Fixed(usize),
    /// Another `Layout` of the library, by its name in snake case.
    Other(String),
}

impl Parse for Layout {
    fn parse(input: ParseStream<'_>) -> syn::Result<Layout> {
        let path: syn::Path = input.parse()?;
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

/// A type of BSON value.
pub struct ElementType {
    pub about: String,
    pub byte: u8,
    /// Its name in Rust.
    pub name: String,
    /// MongoDB's name.
    pub alias: String,
    pub layout: Layout,
}

impl Parse for ElementType {
    fn parse(input: ParseStream<'_>) -> syn::Result<ElementType> {
        let about = documentation(&input.call(Attribute::parse_outer)?);
        let byte = input.parse::<LitInt>()?.base10_parse()?;
        let name = input.parse::<Ident>()?.to_string();
        let alias = input.parse::<LitStr>()?.value();
        Ok(ElementType { about, byte, name, alias, layout: input.parse()? })
    }
}

/// Reads the rows of `element_types!`.
pub fn element_types(root: &Path) -> Result<Vec<ElementType>, String> {
    rows(root, "crates/bson/src/wire/element.rs", "element_types")
}

/// A compressed format that is detected.
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
    pub levels: Option<(u32, u32, u32)>,
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
    rows(root, "crates/core/src/format.rs", "formats")
}

/// The formats that are read and written, with their names in Rust.
pub fn supported(formats: &[Format]) -> impl Iterator<Item = (&str, &Format)> {
    formats.iter().filter_map(|format| Some((format.variant.as_deref()?, format)))
}

/// Reads the rows of a table, which is a macro of this name.
fn rows<T: Parse>(root: &Path, path: &str, table: &str) -> Result<Vec<T>, String> {
    let found = items(root, path)?.into_iter().find_map(|item| match item {
        Item::Macro(item) if item.mac.path.is_ident(table) => Some(item.mac),
        _ => None,
    });
    let all = |input: ParseStream<'_>| {
        let mut rows = Vec::new();
        while !input.is_empty() {
            rows.push(input.parse()?);
            input.parse::<Option<Token![;]>>()?;
        }
        Ok(rows)
    };
    let found = found.ok_or_else(|| format!("{path}: no `{table}!` found"))?;
    found.parse_body_with(all).map_err(|error| located(path, &error))
}
