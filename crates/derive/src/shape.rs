//! The BSON form of a type: its members, their keys, and its variants. Impossible types are rejected here.

use crate::attributes::{Attributes, Default, misplaced};
use crate::case::Case;
use proc_macro2::{Group, Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, format_ident, quote};
use std::collections::HashSet;
use syn::ext::IdentExt;
use syn::{Data, DeriveInput, Error, GenericParam, Generics, Lifetime, Path, Result, Type, parse_quote};

/// A type.
pub struct Shape {
    pub name: Ident,
    pub generics: Generics,
    pub body: Body,
    /// The path of `millstream`.
    pub crate_path: Path,
}

pub enum Body {
    Struct(Fields),
    Enum { variants: Vec<Variant>, tag: Option<String> },
}

pub struct Variant {
    pub name: Ident,
    pub key: Key,
    pub fields: Fields,
}

pub enum Fields {
    /// `{ a: A, b: B }`
    Named { fields: Vec<Field>, deny_unknown: bool },
    /// `(A)`
    One(Box<Field>),
    /// `(A, B)`
    Tuple(Vec<Field>),
    /// No fields.
    Unit,
}

pub struct Field {
    /// The field's name or number.
    pub member: syn::Member,
    /// The variable that contains its value.
    pub variable: Ident,
    pub key: Key,
    pub r#type: TokenStream,
    pub default: Option<Default>,
    pub skip: bool,
    pub skip_if: Option<Path>,
    pub flatten: bool,
    pub with: Option<Path>,
}

/// The name of a field or variant in a document.
pub struct Key {
    pub name: String,
    pub aliases: Vec<String>,
}

impl Key {
    /// Returns every name that is read, as patterns of byte strings.
    pub fn patterns(&self) -> TokenStream {
        let names = [&self.name].into_iter().chain(&self.aliases).map(|name| byte_string(name));
        quote!(#(#names)|*)
    }
}

const NAMED: [&str; 7] = ["rename", "alias", "default", "skip", "skip_if", "flatten", "with"];

/// Returns a text's bytes as a literal.
pub fn byte_string(text: &str) -> syn::LitByteStr {
    syn::LitByteStr::new(text.as_bytes(), Span::call_site())
}

impl Shape {
    pub fn new(input: DeriveInput) -> Result<Shape> {
        let attributes = match &input.data {
            Data::Enum(_) => Attributes::new(&input.attrs, "an enum", &["rename_all", "deny_unknown", "tag", "crate"])?,
            _ => Attributes::new(&input.attrs, "a struct", &["rename_all", "deny_unknown", "crate"])?,
        };
        let lifetimes = Lifetimes::new(&input.generics);
        let rules = FieldRules { case: attributes.rename_all, deny_unknown: attributes.deny_unknown, lifetimes };
        let body = match &input.data {
            Data::Struct(data) => Body::Struct(Fields::new(&data.fields, &rules)?),
            Data::Enum(data) => {
                let rules = FieldRules { case: None, ..rules };
                let variants = data.variants.iter().map(|variant| Variant::new(variant, &attributes, &rules));
                let variants = all(variants)?;
                unique(variants.iter().map(|variant| (&variant.key, variant.name.span())))?;
                if variants.is_empty() {
                    return Err(Error::new(input.ident.span(), "an enum without variants has no value"));
                }
                Body::Enum { variants, tag: attributes.tag.map(|tag| tag.value()) }
            }
            Data::Union(_) => return Err(Error::new(input.ident.span(), "a union cannot be a BSON value")),
        };
        let has_members = match &body {
            Body::Struct(fields) => matches!(fields, Fields::Named { .. }),
            Body::Enum { variants, .. } => {
                variants.iter().any(|variant| matches!(variant.fields, Fields::Named { .. }))
            }
        };
        if attributes.deny_unknown && !has_members {
            return Err(misplaced(&input.attrs, "`deny_unknown` is for named fields, and there are none"));
        }
        let crate_path = attributes.crate_path.unwrap_or_else(|| parse_quote!(::millstream));
        Ok(Shape { name: input.ident, generics: input.generics, body, crate_path })
    }

    /// Returns whether every value is a document, so that the type can be flattened.
    pub fn is_document(&self) -> bool {
        match &self.body {
            Body::Struct(fields) => matches!(fields, Fields::Named { .. }),
            Body::Enum { tag, .. } => tag.is_some(),
        }
    }

    /// Returns the fields of all variants.
    pub fn fields(&self) -> Vec<&Field> {
        match &self.body {
            Body::Struct(fields) => fields.all(),
            Body::Enum { variants, .. } => variants.iter().flat_map(|variant| variant.fields.all()).collect(),
        }
    }

    /// Returns whether the members of this field are those of the enclosing document.
    fn is_flat(&self, field: &Field) -> bool {
        let tagged = matches!(self.body, Body::Enum { tag: Some(_), .. });
        field.flatten || (tagged && matches!(field.member, syn::Member::Unnamed(_)))
    }

    /// Returns the generics with the bounds that each type parameter needs for its fields to be read or written:
    /// `plain`, or `flat` if its members are those of the enclosing document.
    pub fn bounded(&self, plain: &TokenStream, flat: &TokenStream) -> Generics {
        let mut generics = self.generics.clone();
        let fields = self.fields();
        for parameter in self.generics.type_params() {
            let name = &parameter.ident;
            let used = |is_flat| {
                fields.iter().any(|field| {
                    let read = !field.skip && field.with.is_none();
                    read && self.is_flat(field) == is_flat && mentions(field.r#type.clone(), name)
                })
            };
            let predicates = &mut generics.make_where_clause().predicates;
            if used(false) {
                predicates.push(parse_quote!(#name: #plain));
            }
            if used(true) {
                predicates.push(parse_quote!(#name: #flat));
            }
        }
        generics
    }
}

/// The rules for all fields of a struct or variant.
struct FieldRules {
    case: Option<Case>,
    deny_unknown: bool,
    lifetimes: Lifetimes,
}

impl Variant {
    fn new(variant: &syn::Variant, of_enum: &Attributes, rules: &FieldRules) -> Result<Variant> {
        let attributes = Attributes::new(&variant.attrs, "a variant", &["rename", "alias", "rename_all"])?;
        let rules = FieldRules { case: attributes.rename_all, lifetimes: rules.lifetimes.clone(), ..*rules };
        let fields = match Fields::new(&variant.fields, &rules)? {
            // There may be members next to the tag: the variant is treated as if it had fields that could be missing.
            Fields::Unit if of_enum.tag.is_some() => {
                Fields::Named { fields: Vec::new(), deny_unknown: rules.deny_unknown }
            }
            fields => fields,
        };
        if of_enum.tag.is_some() && matches!(fields, Fields::Tuple(_)) {
            let message = "a variant with several unnamed fields is an array, which has no place for a tag";
            return Err(Error::new(variant.ident.span(), message));
        }
        if let (Some(tag), Fields::Named { fields, .. }) = (&of_enum.tag, &fields) {
            let tag = tag.value();
            if let Some(field) = fields.iter().find(|field| field.is_called(&tag)) {
                return Err(Error::new(field.variable.span(), format!("the enum's tag is also called {tag:?}")));
            }
        }
        let name = variant.ident.unraw().to_string();
        let key = Key::new(attributes.rename, attributes.aliases, || match of_enum.rename_all {
            Some(case) => case.of_variant(&name),
            None => name,
        });
        Ok(Variant { name: variant.ident.clone(), key, fields })
    }
}

impl Fields {
    fn new(fields: &syn::Fields, rules: &FieldRules) -> Result<Fields> {
        let each = fields.iter().enumerate().map(|(number, field)| Field::new(number, field, rules));
        let mut each = all(each)?;
        Ok(match fields {
            syn::Fields::Named(_) => {
                let read = each.iter().filter(|field| !field.skip && !field.flatten);
                unique(read.map(|field| (&field.key, field.variable.span())))?;
                if let Some(flat) = each.iter().find(|field| field.flatten && rules.deny_unknown) {
                    let message =
                        "`flatten` and `deny_unknown` cannot be combined: unknown members go to the flattened field";
                    return Err(Error::new(flat.variable.span(), message));
                }
                Fields::Named { fields: each, deny_unknown: rules.deny_unknown }
            }
            syn::Fields::Unnamed(_) if each.len() == 1 => Fields::One(Box::new(each.remove(0))),
            syn::Fields::Unnamed(_) => Fields::Tuple(each),
            syn::Fields::Unit => Fields::Unit,
        })
    }

    /// Returns all fields, in order.
    pub fn all(&self) -> Vec<&Field> {
        match self {
            Fields::Named { fields, .. } | Fields::Tuple(fields) => fields.iter().collect(),
            Fields::One(field) => vec![field],
            Fields::Unit => Vec::new(),
        }
    }

    /// Returns `{ name: variable, … }` or `(variable, …)`, which is both a pattern and the expression that makes the
    /// value.
    pub fn pattern(&self) -> TokenStream {
        let fields = self.all();
        let members = fields.iter().map(|field| &field.member);
        let variables = fields.iter().map(|field| &field.variable);
        quote!({ #(#members: #variables),* })
    }
}

impl Field {
    fn new(number: usize, field: &syn::Field, rules: &FieldRules) -> Result<Field> {
        let attributes = match &field.ident {
            Some(_) => Attributes::new(&field.attrs, "a field", &NAMED)?,
            None => Attributes::new(&field.attrs, "a field without a name", &["with"])?,
        };
        let refuse = |message| Err(misplaced(&field.attrs, message));
        let is_named = attributes.rename.is_some() || !attributes.aliases.is_empty();
        if attributes.flatten && (is_named || attributes.default.is_some() || attributes.with.is_some()) {
            return refuse("`flatten` has no key of its own: `rename`, `alias`, `default` and `with` have no meaning");
        }
        if attributes.skip
            && (is_named || attributes.flatten || attributes.skip_if.is_some() || attributes.with.is_some())
        {
            return refuse("a field with `skip` is neither read nor written: only `default` can be combined with it");
        }
        let name = field.ident.as_ref().map_or_else(|| number.to_string(), |name| name.unraw().to_string());
        let variable = match &field.ident {
            // It has the field's span, so that errors point there, and a name that no other variable has.
            Some(ident) => Ident::new(&format!("field_{name}"), ident.span().resolved_at(Span::mixed_site())),
            None => format_ident!("field_{number}", span = Span::mixed_site()),
        };
        let key = Key::new(attributes.rename, attributes.aliases, || match rules.case {
            Some(case) => case.of_field(&name),
            None => name,
        });
        Ok(Field {
            member: match &field.ident {
                Some(name) => syn::Member::Named(name.clone()),
                None => syn::Member::Unnamed(number.into()),
            },
            variable,
            key,
            r#type: rules.lifetimes.unify(&field.ty),
            default: attributes.default,
            skip: attributes.skip,
            skip_if: attributes.skip_if,
            flatten: attributes.flatten,
            with: attributes.with,
        })
    }

    fn is_called(&self, name: &str) -> bool {
        !self.skip && !self.flatten && (self.key.name == name || self.key.aliases.iter().any(|alias| alias == name))
    }
}

impl Key {
    fn new(rename: Option<syn::LitStr>, aliases: Vec<syn::LitStr>, name: impl FnOnce() -> String) -> Key {
        let name = rename.map_or_else(name, |rename| rename.value());
        Key { name, aliases: aliases.iter().map(syn::LitStr::value).collect() }
    }
}

/// Returns all results, or all their errors.
fn all<T>(each: impl Iterator<Item = Result<T>>) -> Result<Vec<T>> {
    let mut good = Vec::new();
    let mut bad: Option<Error> = None;
    for one in each {
        match (one, &mut bad) {
            (Ok(one), _) => good.push(one),
            (Err(error), Some(bad)) => bad.combine(error),
            (Err(error), none) => *none = Some(error),
        }
    }
    bad.map_or(Ok(good), Err)
}

/// Rejects a name that two items use.
fn unique<'a>(keys: impl Iterator<Item = (&'a Key, Span)>) -> Result<()> {
    let mut seen = HashSet::new();
    for (key, span) in keys {
        for name in [&key.name].into_iter().chain(&key.aliases) {
            if !seen.insert(name) {
                return Err(Error::new(span, format!("another item is already called {name:?}")));
            }
        }
    }
    Ok(())
}

/// The lifetime of the document, which every borrowed field has: the type's first lifetime, or a new one.
#[derive(Clone)]
struct Lifetimes {
    document: Ident,
    others: Vec<Ident>,
}

impl Lifetimes {
    fn new(generics: &Generics) -> Lifetimes {
        let mut names = generics.lifetimes().map(|parameter| parameter.lifetime.ident.clone());
        let document = names.next().unwrap_or_else(|| Ident::new("document", Span::mixed_site()));
        Lifetimes { document, others: names.collect() }
    }

    /// Replaces all lifetimes of a type by the document's.
    fn unify(&self, r#type: &Type) -> TokenStream {
        self.unified(r#type.to_token_stream())
    }

    fn unified(&self, tokens: TokenStream) -> TokenStream {
        if self.others.is_empty() {
            return tokens;
        }
        let mut is_lifetime = false;
        let each = tokens.into_iter().map(|token| {
            let was_quote =
                std::mem::replace(&mut is_lifetime, matches!(&token, TokenTree::Punct(p) if p.as_char() == '\''));
            match token {
                TokenTree::Ident(name) if was_quote && self.others.contains(&name) => self.document.clone().into(),
                TokenTree::Group(group) => {
                    let mut unified = Group::new(group.delimiter(), self.unified(group.stream()));
                    unified.set_span(group.span());
                    unified.into()
                }
                other => other,
            }
        });
        each.collect()
    }
}

impl Shape {
    /// Returns the lifetime of the document that is read.
    pub fn lifetime(&self) -> Lifetime {
        Lifetime { apostrophe: Span::mixed_site(), ident: Lifetimes::new(&self.generics).document }
    }

    /// Returns the type with all lifetimes replaced by the document's, which is the type that is read.
    pub fn unified_arguments(&self) -> TokenStream {
        let lifetime = self.lifetime();
        let arguments = self.generics.params.iter().map(|parameter| match parameter {
            GenericParam::Lifetime(_) => lifetime.to_token_stream(),
            GenericParam::Type(parameter) => parameter.ident.to_token_stream(),
            GenericParam::Const(parameter) => parameter.ident.to_token_stream(),
        });
        quote!(<#(#arguments),*>)
    }

    /// Returns the generics of the type that is read, in which one lifetime replaces all others.
    pub fn unified_generics(&self, mut generics: Generics) -> Generics {
        let lifetime = self.lifetime();
        let lifetimes = Lifetimes::new(&self.generics);
        let others = generics.params.into_iter().filter(|parameter| !matches!(parameter, GenericParam::Lifetime(_)));
        let others = others.map(|parameter| -> GenericParam {
            let parameter = lifetimes.unified(parameter.into_token_stream());
            parse_quote!(#parameter)
        });
        generics.params = std::iter::once(parse_quote!(#lifetime)).chain(others).collect();
        generics.where_clause = generics.where_clause.map(|clause| {
            let clause = lifetimes.unified(clause.to_token_stream());
            parse_quote!(#clause)
        });
        generics
    }
}

/// Returns whether a type uses this parameter, except as a marker, which needs no bound.
fn mentions(r#type: TokenStream, parameter: &Ident) -> bool {
    let mut found = false;
    for token in r#type {
        match token {
            TokenTree::Ident(name) if name == "PhantomData" => return false,
            TokenTree::Ident(name) => found |= name == *parameter,
            TokenTree::Group(group) => found |= mentions(group.stream(), parameter),
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the error of an impossible type.
    #[track_caller]
    fn refused(input: DeriveInput) -> String {
        Shape::new(input).err().expect("it is refused").to_string()
    }

    #[test]
    fn impossible_types_are_refused_with_the_reason() {
        for (input, reason) in [
            (
                parse_quote!(
                    enum E {}
                ),
                "an enum without variants",
            ),
            (parse_quote!(union U { a: u8 }), "a union cannot be a BSON value"),
            (
                parse_quote!(
                    #[bson(tag = "t")]
                    struct S;
                ),
                "unknown attribute of a struct: expected one of rename_all",
            ),
            (
                parse_quote!(
                    #[bson(rename_all = "camel")]
                    struct S {}
                ),
                "unknown case \"camel\": expected one of lower",
            ),
            (
                parse_quote!(
                    #[bson(deny_unknown)]
                    struct S(u8);
                ),
                "`deny_unknown` is for named fields",
            ),
            (
                parse_quote!(
                    #[bson(tag = "t")]
                    enum E {
                        A(u8, u8),
                    }
                ),
                "an array, which has no place for a tag",
            ),
            (
                parse_quote!(
                    #[bson(tag = "t")]
                    enum E {
                        A { t: u8 },
                    }
                ),
                "the enum's tag is also called \"t\"",
            ),
            (
                parse_quote!(
                    enum E {
                        A,
                        #[bson(rename = "A")]
                        B,
                    }
                ),
                "another item is already called \"A\"",
            ),
            (
                parse_quote!(
                    struct S {
                        a: u8,
                        #[bson(alias = "a")]
                        b: u8,
                    }
                ),
                "another item is already called \"a\"",
            ),
            (
                parse_quote!(
                    struct S {
                        #[bson(renam = "b")]
                        a: u8,
                    }
                ),
                "unknown attribute of a field: expected one of rename, ",
            ),
            (
                parse_quote!(
                    struct S {
                        #[bson(rename = "a\0")]
                        a: u8,
                    }
                ),
                "a key cannot contain a NUL",
            ),
            (
                parse_quote!(
                    struct S {
                        #[bson(rename = 1)]
                        a: u8,
                    }
                ),
                "expected string literal",
            ),
            (
                parse_quote!(
                    struct S {
                        #[bson(skip, skip)]
                        a: u8,
                    }
                ),
                "`skip` is given twice",
            ),
            (
                parse_quote!(
                    struct S {
                        #[bson(with = "a b")]
                        a: u8,
                    }
                ),
                "\"a b\" is not a path",
            ),
            (
                parse_quote!(
                    struct S {
                        #[bson(skip, rename = "b")]
                        a: u8,
                    }
                ),
                "`skip` is neither read nor written",
            ),
            (
                parse_quote!(
                    struct S {
                        #[bson(flatten, default)]
                        a: u8,
                    }
                ),
                "`flatten` has no key of its own",
            ),
            (
                parse_quote!(
                    #[bson(deny_unknown)]
                    struct S {
                        #[bson(flatten)]
                        a: u8,
                    }
                ),
                "cannot be combined",
            ),
            (
                parse_quote!(
                    struct S(#[bson(rename = "b")] u8);
                ),
                "unknown attribute of a field without a name",
            ),
        ] {
            let said = refused(input);
            assert!(said.contains(reason), "{said:?} does not contain {reason:?}");
        }
        // All errors are reported together.
        let both = Shape::new(parse_quote!(
            struct S {
                #[bson(a)]
                a: u8,
                #[bson(b)]
                b: u8,
            }
        ))
        .err()
        .unwrap();
        assert_eq!(both.into_iter().count(), 2);
    }

    #[test]
    fn a_mark_needs_nothing_of_its_type() {
        let shape = Shape::new(parse_quote!(
            struct S<T, U> {
                a: Vec<T>,
                mark: PhantomData<U>,
            }
        ))
        .ok()
        .unwrap();
        let clause = shape.bounded(&quote!(Plain), &quote!(Flat)).where_clause.to_token_stream().to_string();
        assert_eq!(clause, "where T : Plain");
    }
}
