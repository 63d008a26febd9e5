//! The content of `#[bson(…)]`, parsed but not interpreted: `shape` decides which attributes may be where.

use crate::case::Case;
use syn::meta::ParseNestedMeta;
use syn::spanned::Spanned;
use syn::{Attribute, Error, LitStr, Path, Result};

/// The value of a field whose member is missing.
pub enum Default {
    /// `Default::default()`.
    Trait,
    /// The result of this function.
    Path(Path),
}

/// All attributes of a type, a variant or a field.
#[derive(std::default::Default)]
pub struct Attributes {
    pub rename: Option<LitStr>,
    pub aliases: Vec<LitStr>,
    pub rename_all: Option<Case>,
    pub default: Option<Default>,
    pub skip: bool,
    pub skip_if: Option<Path>,
    pub flatten: bool,
    pub with: Option<Path>,
    pub deny_unknown: bool,
    pub tag: Option<LitStr>,
    pub crate_path: Option<Path>,
}

impl Attributes {
    /// Parses the `bson` attributes. Only the `allowed` ones may be used on `what`.
    pub fn new(attributes: &[Attribute], what: &str, allowed: &[&str]) -> Result<Attributes> {
        let mut read = Attributes::default();
        let mut seen: Vec<String> = Vec::new();
        for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("bson")) {
            attribute.parse_nested_meta(|meta| {
                let name = meta.path.get_ident().map(ToString::to_string).unwrap_or_default();
                if !allowed.contains(&name.as_str()) {
                    let error = format!("unknown attribute of {what}: expected one of {}", allowed.join(", "));
                    return Err(meta.error(error));
                }
                if name != "alias" && seen.contains(&name) {
                    return Err(meta.error(format!("`{name}` is given twice")));
                }
                read.take(&name, &meta)?;
                seen.push(name);
                Ok(())
            })?;
        }
        Ok(read)
    }

    fn take(&mut self, name: &str, meta: &ParseNestedMeta) -> Result<()> {
        match name {
            "rename" => self.rename = Some(key(meta)?),
            "alias" => self.aliases.push(key(meta)?),
            "rename_all" => {
                let text = text(meta)?;
                self.rename_all = Some(Case::from_name(&text.value()).map_err(|error| Error::new(text.span(), error))?);
            }
            "default" => {
                self.default = Some(match meta.input.peek(syn::Token![=]) {
                    true => Default::Path(path(meta)?),
                    false => Default::Trait,
                });
            }
            "skip" => self.skip = true,
            "skip_if" => self.skip_if = Some(path(meta)?),
            "flatten" => self.flatten = true,
            "with" => self.with = Some(path(meta)?),
            "deny_unknown" => self.deny_unknown = true,
            "tag" => self.tag = Some(key(meta)?),
            "crate" => self.crate_path = Some(path(meta)?),
            _ => unreachable!("`{name}` is allowed somewhere, but not read"),
        }
        Ok(())
    }
}

fn text(meta: &ParseNestedMeta) -> Result<LitStr> {
    meta.value()?.parse()
}

/// Parses a key, which ends with a NUL in a document and so cannot contain one.
fn key(meta: &ParseNestedMeta) -> Result<LitStr> {
    let text = text(meta)?;
    match text.value().contains('\0') {
        true => Err(Error::new(text.span(), "a key cannot contain a NUL")),
        false => Ok(text),
    }
}

fn path(meta: &ParseNestedMeta) -> Result<Path> {
    let text = text(meta)?;
    text.parse().map_err(|_| Error::new(text.span(), format!("{:?} is not a path", text.value())))
}

/// Returns an error at the first of these attributes.
pub fn misplaced(attributes: &[Attribute], message: &str) -> Error {
    let ours = attributes.iter().find(|attribute| attribute.path().is_ident("bson"));
    Error::new(ours.map_or_else(proc_macro2::Span::call_site, |attribute| attribute.meta.span()), message)
}
