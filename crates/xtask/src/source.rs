//! Parses the library's sources.

use std::path::Path;

use syn::{Attribute, Expr, ExprLit, FnArg, Item, ItemEnum, Lit, Meta, Pat, PatType, ReturnType, Type};

use crate::text::snake_case;

/// A function of the C ABI.
pub struct Function {
    /// Its name.
    pub name: String,
    /// The names and types of its parameters, in order.
    pub parameters: Vec<(String, Type)>,
    /// The type that it returns, if any.
    pub result: Option<Type>,
}

/// A structure with `repr(C)`, whose fields C can access.
pub struct Structure {
    /// Its name.
    pub name: String,
    /// The names and types of its fields, in order.
    pub fields: Vec<(String, Type)>,
}

/// A C enum, which is a 32-bit number.
pub struct Enumeration {
    /// Its name.
    pub name: String,
    /// Its values: names in snake case and numbers.
    pub values: Vec<(String, u32)>,
}

/// The declarations of a module of the C ABI.
#[derive(Default)]
pub struct Declarations {
    pub functions: Vec<Function>,
    pub structures: Vec<Structure>,
    pub enums: Vec<Enumeration>,
    /// The names of callback types.
    pub callbacks: Vec<String>,
}

/// Reads the declarations of these modules of the C ABI.
pub fn c_declarations(root: &Path, modules: &[&str]) -> Result<Declarations, String> {
    let mut all = Declarations::default();
    for module in modules {
        for item in items(root, &format!("crates/capi/src/{module}.rs"))? {
            match item {
                Item::Fn(item) if item.sig.abi.is_some() => all.functions.push(Function {
                    name: item.sig.ident.to_string(),
                    parameters: item.sig.inputs.iter().filter_map(parameter).collect(),
                    result: match item.sig.output {
                        ReturnType::Default => None,
                        ReturnType::Type(_, result) => Some(*result),
                    },
                }),
                Item::Struct(item) if is_for_c(&item.attrs) => {
                    let name = item.ident.to_string();
                    let fields = item.fields.into_iter();
                    let fields = fields.filter_map(|field| Some((field.ident?.to_string(), field.ty))).collect();
                    all.structures.push(Structure { name, fields });
                }
                Item::Enum(item) if is_for_c(&item.attrs) => all.enums.push(enumeration(&item)),
                Item::Type(item) if matches!(&*item.ty, Type::Path(path) if path.path.segments[0].ident == "Option") => {
                    all.callbacks.push(item.ident.to_string());
                }
                _ => {}
            }
        }
    }
    Ok(all)
}

/// Whether it has the C layout; without it, a structure is only a handle.
fn is_for_c(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| attribute.path().is_ident("repr"))
}

fn enumeration(item: &ItemEnum) -> Enumeration {
    let values = item.variants.iter().filter_map(|variant| match &variant.discriminant {
        Some((_, Expr::Lit(ExprLit { lit: Lit::Int(number), .. }))) => {
            Some((snake_case(&variant.ident.to_string()), number.base10_parse().ok()?))
        }
        _ => None,
    });
    Enumeration { name: item.ident.to_string(), values: values.collect() }
}

/// Returns the name and the type of a parameter, except for `self`.
pub fn parameter(argument: &FnArg) -> Option<(String, Type)> {
    match argument {
        FnArg::Typed(PatType { pat, ty, .. }) => match &**pat {
            Pat::Ident(name) => Some((name.ident.to_string(), (**ty).clone())),
            _ => None,
        },
        FnArg::Receiver(_) => None,
    }
}

/// Returns the paths of all source files in a folder and its subfolders, sorted.
pub fn files(root: &Path, folder: &str) -> Result<Vec<String>, String> {
    let entries = std::fs::read_dir(root.join(folder)).and_then(Iterator::collect::<std::io::Result<Vec<_>>>);
    let mut names = entries.map_err(|error| format!("{folder}: {error}"))?;
    names.sort_by_key(|entry| entry.file_name());
    let mut all = Vec::new();
    for entry in names {
        let path = format!("{folder}/{}", entry.file_name().to_string_lossy());
        if entry.path().is_dir() {
            all.extend(files(root, &path)?);
        } else if path.ends_with(".rs") {
            all.push(path);
        }
    }
    Ok(all)
}

/// Parses the items of a source file.
pub fn items(root: &Path, path: &str) -> Result<Vec<Item>, String> {
    let text = std::fs::read_to_string(root.join(path)).map_err(|error| format!("{path}: {error}"))?;
    Ok(syn::parse_file(&text).map_err(|error| located(path, &error))?.items)
}

pub fn located(path: &str, error: &syn::Error) -> String {
    format!("{path}:{}: {error}", error.span().start().line)
}

/// Returns the text of doc comments as one line.
pub fn documentation(attributes: &[Attribute]) -> String {
    let lines = attributes.iter().filter_map(|attribute| match &attribute.meta {
        Meta::NameValue(pair) if pair.path.is_ident("doc") => match &pair.value {
            Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Some(text.value().trim().to_string()),
            _ => None,
        },
        _ => None,
    });
    lines.collect::<Vec<_>>().join(" ")
}
