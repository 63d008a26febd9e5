//! Writes `FromBson` and `FromMembers`.
//!
//! The members of a document, which usually come in the order of the fields, are read by code of this form:
//!
//! ```text
//! let mut place = 0;                        // the field whose member is expected
//! loop {
//!     if place == 0 { if "id" is next { read it; place = 1; } }
//!     if place == 1 { if "name" is next { read it; place = 2; } }
//!     …                                     // what is not as expected falls through to here
//!     match next member, or break {
//!         "id" => { read it; place = 1; }
//!         "name" => { read it; place = 2; }
//!         …
//!         _ => skip it,                     // and expect what was expected
//!     }
//! }
//! ```
//!
//! Each test for a name compares a constant number of bytes. A prediction only ever holds where the name is the very
//! name of the field: aliases are found by the `match`.

use crate::attributes::Default;
use crate::shape::{Body, Field, Fields, Shape, Variant, byte_string};
use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::Lifetime;

/// Returns the implementations for this type.
pub fn implement(shape: &Shape) -> TokenStream {
    let (name, crate_path, lifetime) = (&shape.name, &shape.crate_path, shape.lifetime());
    let bounded = shape.bounded(&quote!(__bson::FromBson<#lifetime>), &quote!(__bson::FromMembers<#lifetime>));
    let generics = shape.unified_generics(bounded);
    let (parameters, _, conditions) = generics.split_for_impl();
    let arguments = shape.unified_arguments();
    let writer = Writer { lifetime: &lifetime, name: name.to_string() };

    let (from_bson, when_missing) = writer.whole(shape);
    let from_members = shape.is_document().then(|| {
        let (read, takes) = writer.document(shape);
        quote! {
            #[automatically_derived]
            impl #parameters __bson::FromMembers<#lifetime> for #name #arguments #conditions {
                fn from_members<TAKEN: __bson::Fn(&[u8]) -> bool>(
                    cursor: &mut __bson::Cursor<#lifetime>,
                    taken: TAKEN,
                ) -> __bson::Result<Self> {
                    #read
                }

                fn takes(key: &[u8]) -> bool {
                    #takes
                }
            }
        }
    });
    quote! {
        const _: () = {
            use #crate_path::bson::derive_support as __bson;

            #[automatically_derived]
            impl #parameters __bson::FromBson<#lifetime> for #name #arguments #conditions {
                fn from_bson(
                    kind: __bson::ElementType,
                    cursor: &mut __bson::Cursor<#lifetime>,
                ) -> __bson::Result<Self> {
                    #from_bson
                }

                #when_missing
            }

            #from_members
        };
    }
}

struct Writer<'s> {
    lifetime: &'s Lifetime,
    /// The type's name, for errors.
    name: String,
}

impl Writer<'_> {
    /// Returns the bodies of `from_bson` and, if it differs from that of the trait, `when_missing`.
    fn whole(&self, shape: &Shape) -> (TokenStream, Option<TokenStream>) {
        let lifetime = self.lifetime;
        let name = &self.name;
        match &shape.body {
            _ if shape.is_document() => {
                let body = quote! {
                    let outer = __bson::enter(kind, cursor, #name)?;
                    let value = <Self as __bson::FromMembers<#lifetime>>::from_members(cursor, __bson::no_key)?;
                    cursor.leave(outer);
                    __bson::Ok(value)
                };
                (body, None)
            }
            Body::Struct(fields) => {
                let when_missing = match fields {
                    Fields::One(field) if field.with.is_none() => {
                        let (r#type, variable) = (&field.r#type, &field.variable);
                        let pattern = fields.pattern();
                        Some(quote! {
                            fn when_missing() -> __bson::Option<Self> {
                                match <#r#type as __bson::FromBson<#lifetime>>::when_missing() {
                                    __bson::Some(#variable) => __bson::Some(Self #pattern),
                                    __bson::None => __bson::None,
                                }
                            }
                        })
                    }
                    _ => None,
                };
                (self.value(fields, &quote!(Self)), when_missing)
            }
            Body::Enum { variants, .. } => (self.external(variants), None),
        }
    }

    /// Reads the value of a struct or variant from the payload that `kind` announces.
    fn value(&self, fields: &Fields, constructor: &TokenStream) -> TokenStream {
        let pattern = fields.pattern();
        match fields {
            Fields::Unit => quote! {
                <() as __bson::FromBson>::from_bson(kind, cursor)?;
                __bson::Ok(#constructor)
            },
            Fields::One(field) => {
                let (read, variable) = (self.read(field), &field.variable);
                quote! {
                    let #variable = #read?;
                    __bson::Ok(#constructor #pattern)
                }
            }
            Fields::Tuple(fields) => {
                let count = fields.len();
                let variables = fields.iter().map(|field| &field.variable);
                let reads = fields.iter().map(|field| self.read(field));
                quote! {
                    let mut places = __bson::Places::enter(kind, cursor, #count)?;
                    #(
                        let kind = places.next_kind(cursor)?;
                        let #variables = #reads?;
                    )*
                    places.leave(cursor)?;
                    __bson::Ok(#constructor #pattern)
                }
            }
            Fields::Named { .. } => {
                let name = &self.name;
                let members = self.members(fields, constructor);
                quote! {
                    let outer = __bson::enter(kind, cursor, #name)?;
                    let taken = __bson::no_key;
                    let value = { #members };
                    cursor.leave(outer);
                    __bson::Ok(value)
                }
            }
        }
    }

    /// Reads one value, whose type is `kind`, and returns a `Result`.
    fn read(&self, field: &Field) -> TokenStream {
        let (lifetime, r#type) = (self.lifetime, &field.r#type);
        match &field.with {
            Some(module) => quote!(#module::from_bson(kind, cursor)),
            None => quote_spanned!(proc_macro2::Span::call_site().located_at(type_span(r#type)) =>
                <#r#type as __bson::FromBson<#lifetime>>::from_bson(kind, cursor)),
        }
    }

    /// Reads an enum that is the name of its variant, or a document with that name as its only key.
    fn external(&self, variants: &[Variant]) -> TokenStream {
        let keys: Vec<_> = variants.iter().map(|variant| variant.key.name.as_str()).collect();
        let units = variants.iter().filter(|variant| matches!(variant.fields, Fields::Unit)).map(|variant| {
            let (patterns, name) = (variant.key.patterns(), &variant.name);
            quote!(#patterns => __bson::Ok(Self::#name),)
        });
        let others = variants.iter().map(|variant| {
            let (patterns, name) = (variant.key.patterns(), &variant.name);
            let value = self.value(&variant.fields, &quote!(Self::#name));
            quote!(#patterns => { #value })
        });
        let name = &self.name;
        quote! {
            const VARIANTS: &[&str] = &[#(#keys),*];
            match __bson::variant(kind, cursor, #name)? {
                __bson::Variant::Name(name) => match name {
                    #(#units)*
                    _ => __bson::Err(__bson::unknown_variant(name, cursor, VARIANTS)),
                },
                __bson::Variant::Member(outer, kind, name) => {
                    let value = match name {
                        #(#others)*
                        _ => __bson::Err(__bson::unknown_member(name, cursor, VARIANTS)),
                    }?;
                    __bson::leave_variant(outer, cursor)?;
                    __bson::Ok(value)
                }
            }
        }
    }

    /// Returns the bodies of `from_members` and `takes`.
    fn document(&self, shape: &Shape) -> (TokenStream, TokenStream) {
        match &shape.body {
            Body::Enum { variants, tag: Some(tag) } => (
                self.tagged(variants, tag),
                quote!({
                    let _ = key;
                    false
                }),
            ),
            Body::Enum { .. } => unreachable!("an enum without a tag is not a document"),
            Body::Struct(fields) => {
                let members = self.members(fields, &quote!(Self));
                (quote!(__bson::Ok({ #members })), self.takes(fields.all()))
            }
        }
    }

    /// Reads an enum that is a document with the variant's name as the value of the tag.
    fn tagged(&self, variants: &[Variant], tag: &str) -> TokenStream {
        let lifetime = self.lifetime;
        let keys = variants.iter().map(|variant| variant.key.name.as_str());
        let arms = variants.iter().map(|variant| {
            let (patterns, name) = (variant.key.patterns(), &variant.name);
            let value = match &variant.fields {
                Fields::Unit => quote!(Self::#name),
                Fields::One(field) => {
                    let r#type = &field.r#type;
                    let from_members = match &field.with {
                        Some(module) => quote!(#module::from_members),
                        None => quote!(<#r#type as __bson::FromMembers<#lifetime>>::from_members),
                    };
                    quote!(Self::#name(#from_members(cursor, &taken as __bson::Taken)?))
                }
                fields => self.members(fields, &quote!(Self::#name)),
            };
            quote!(#patterns => { #value })
        });
        let key = byte_string(tag);
        quote! {
            let (name, at) = __bson::tag(cursor, #tag)?;
            let taken = |key: &[u8]| key == #key || taken(key);
            __bson::Ok(match name {
                #(#arms)*
                _ => return __bson::Err(__bson::unknown_variant(name, &at, &[#(#keys),*])),
            })
        }
    }

    /// Reads named fields from the members between the cursor and the end of the document, and returns the value.
    fn members(&self, fields: &Fields, constructor: &TokenStream) -> TokenStream {
        let Fields::Named { fields: all, deny_unknown } = fields else { unreachable!("it has named fields") };
        let read: Vec<&Field> = all.iter().filter(|field| !field.skip && !field.flatten).collect();
        let has_flat = all.iter().any(|field| field.flatten);

        let variables: Vec<_> = read.iter().map(|field| &field.variable).collect();
        let types = read.iter().map(|field| &field.r#type);
        let takes: Vec<_> = read
            .iter()
            .enumerate()
            .map(|(number, field)| {
                let (variable, name, read) = (&field.variable, &field.key.name, self.read(field));
                let next = number + 1;
                quote! {
                    if #variable.is_some() {
                        return __bson::Err(__bson::duplicate(key, cursor, #name));
                    }
                    #variable = __bson::Some(#read?);
                    place = #next;
                }
            })
            .collect();
        let predictions = read.iter().zip(&takes).enumerate().map(|(number, (field, take))| {
            let key = byte_string(&field.key.name);
            let terminated = byte_string(&format!("{}\0", field.key.name));
            quote! {
                if place == #number && !taken(#key) {
                    if let __bson::Some(kind) = cursor.next_if(#terminated) {
                        let key: &[u8] = #key;
                        #take
                    }
                }
            }
        });
        let patterns = read.iter().map(|field| field.key.patterns());
        let names = read.iter().map(|field| field.key.name.as_str());
        let unknown = match deny_unknown {
            true => quote!(return __bson::Err(__bson::unknown_member(key, cursor, &[#(#names),*])),),
            false => quote!(cursor.skip(kind)?,),
        };
        let start = has_flat.then(|| quote!(let members = cursor.clone();));
        let flat = self.flat(all);
        let made = all.iter().map(|field| {
            let (member, variable) = (&field.member, &field.variable);
            match (field.flatten, field.skip) {
                (true, _) => quote!(#member: #variable,),
                (_, true) => {
                    let default = default(field);
                    quote!(#member: #default,)
                }
                _ => {
                    let missing = self.missing(field);
                    quote! {
                        #member: match #variable {
                            __bson::Some(value) => value,
                            __bson::None => #missing,
                        },
                    }
                }
            }
        });
        quote! {
            let begin = cursor.offset();
            #start
            #(let mut #variables: __bson::Option<#types> = __bson::None;)*
            let mut place = 0usize;
            loop {
                #(#predictions)*
                let __bson::Some((kind, key)) = cursor.next()? else { break };
                if taken(key) {
                    cursor.skip(kind)?;
                    continue;
                }
                match key {
                    #(#patterns => { #takes })*
                    _ => #unknown
                }
            }
            let _ = (begin, place); // not every struct uses them
            #flat
            #constructor { #(#made)* }
        }
    }

    /// Returns the value of a field if the document has no such member, or the error.
    fn missing(&self, field: &Field) -> TokenStream {
        let name = &field.key.name;
        match (&field.default, &field.with) {
            (Some(_), _) => default(field),
            (None, Some(_)) => quote!(return __bson::Err(__bson::missing_member(cursor, begin, #name))),
            (None, None) => quote!(__bson::missing(cursor, begin, #name)?),
        }
    }

    /// Reads the flattened fields from the same members, except those that an earlier field takes.
    fn flat(&self, all: &[Field]) -> TokenStream {
        let lifetime = self.lifetime;
        let mut earlier: Vec<&Field> = all.iter().filter(|field| !field.skip && !field.flatten).collect();
        let mut flat = TokenStream::new();
        for field in all.iter().filter(|field| field.flatten) {
            let (variable, r#type) = (&field.variable, &field.r#type);
            let takes = self.takes(earlier.clone());
            flat.extend(quote! {
                let #variable = {
                    let taken = |key: &[u8]| { #takes } || taken(key);
                    let mut cursor = members.clone();
                    <#r#type as __bson::FromMembers<#lifetime>>::from_members(&mut cursor, &taken as __bson::Taken)?
                };
            });
            earlier.push(field);
        }
        flat
    }

    /// Returns whether one of these fields is read from the member of this `key`.
    fn takes(&self, fields: Vec<&Field>) -> TokenStream {
        let lifetime = self.lifetime;
        let flat = fields.iter().filter(|field| field.flatten).map(|field| &field.r#type);
        let patterns = fields.iter().filter(|field| !field.flatten && !field.skip).map(|field| field.key.patterns());
        quote! {
            match key {
                #(#patterns => true,)*
                _ => false #(|| <#flat as __bson::FromMembers<#lifetime>>::takes(key))*,
            }
        }
    }
}

/// Returns the default of a field.
fn default(field: &Field) -> TokenStream {
    match &field.default {
        Some(Default::Path(path)) => quote!(#path()),
        Some(Default::Trait) | None => quote!(__bson::default()),
    }
}

fn type_span(r#type: &TokenStream) -> proc_macro2::Span {
    r#type.clone().into_iter().next().map_or_else(proc_macro2::Span::call_site, |token| token.span())
}
