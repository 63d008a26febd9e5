//! Writes `ToBson` and `ToMembers`.
//!
//! The type and the key of a member, whose length is known, are appended as one array of constant length.

use crate::shape::{Body, Field, Fields, Shape, Variant};
use proc_macro2::TokenStream;
use quote::quote;

/// Returns the implementations for this type.
pub fn implement(shape: &Shape) -> TokenStream {
    let (name, crate_path) = (&shape.name, &shape.crate_path);
    let generics = shape.bounded(&quote!(__bson::ToBson), &quote!(__bson::ToMembers));
    let (parameters, arguments, conditions) = generics.split_for_impl();
    let (element_type, to_bson) = match &shape.body {
        _ if shape.is_document() => (
            quote!(__bson::ElementType::Document),
            quote!(__bson::append_document(out, |out| __bson::ToMembers::append_members(self, out))),
        ),
        Body::Struct(fields) => {
            let pattern = fields.pattern();
            let (element_type, to_bson) = (element_type(fields), payload(fields));
            (quote!({ let Self #pattern = self; #element_type }), quote!({ let Self #pattern = self; #to_bson }))
        }
        Body::Enum { variants, .. } => external(variants),
    };
    let to_members = shape.is_document().then(|| {
        let members = match &shape.body {
            Body::Struct(fields) => {
                let (pattern, members) = (fields.pattern(), members(fields));
                quote!({ let Self #pattern = self; #members })
            }
            Body::Enum { variants, tag } => tagged(variants, tag.as_deref().unwrap_or_default()),
        };
        quote! {
            #[automatically_derived]
            impl #parameters __bson::ToMembers for #name #arguments #conditions {
                fn append_members(&self, out: &mut __bson::Vec<u8>) -> __bson::Result<()> {
                    #members
                }
            }
        }
    });
    quote! {
        const _: () = {
            use #crate_path::bson::derive_support as __bson;

            #[automatically_derived]
            #[allow(unused_variables)] // a skipped field
            impl #parameters __bson::ToBson for #name #arguments #conditions {
                fn element_type(&self) -> __bson::ElementType {
                    #element_type
                }

                fn to_bson(&self, out: &mut __bson::Vec<u8>) -> __bson::Result<()> {
                    #to_bson
                }
            }

            #[allow(unused_variables)]
            const _: () = {
                #to_members
            };
        };
    }
}

/// Returns the type of a struct's or variant's value, whose fields are variables.
fn element_type(fields: &Fields) -> TokenStream {
    match fields {
        Fields::Named { .. } => quote!(__bson::ElementType::Document),
        Fields::One(field) => type_of(field),
        Fields::Tuple(_) => quote!(__bson::ElementType::Array),
        Fields::Unit => quote!(__bson::ElementType::Null),
    }
}

/// Appends the payload of a struct or variant, and returns a `Result`.
fn payload(fields: &Fields) -> TokenStream {
    match fields {
        Fields::Named { .. } => {
            let members = members(fields);
            quote!(__bson::append_document(out, |out| { #members }))
        }
        Fields::One(field) => write(field),
        Fields::Tuple(fields) => {
            let elements = fields.iter().enumerate().map(|(number, field)| element(&number.to_string(), field));
            quote!(__bson::append_document(out, |out| { #(#elements)* __bson::Ok(()) }))
        }
        Fields::Unit => quote!(__bson::Ok(())),
    }
}

/// Appends a member for each named field, and returns a `Result`.
fn members(fields: &Fields) -> TokenStream {
    let fields = fields.all();
    // This is the minimum size of the members, so that memory grows once and not in small steps.
    let least: usize = fields.iter().filter(|field| !field.skip).map(|field| field.key.name.len() + 10).sum();
    let members = fields.iter().filter(|field| !field.skip).map(|field| {
        let variable = &field.variable;
        let append = match field.flatten {
            true => quote!(__bson::ToMembers::append_members(#variable, out)?;),
            false => element(&field.key.name, field),
        };
        match &field.skip_if {
            Some(is_skipped) => quote!(if !#is_skipped(#variable) { #append }),
            None => append,
        }
    });
    quote! {
        out.reserve(#least);
        #(#members)*
        __bson::Ok(())
    }
}

/// Appends type, key and payload.
fn element(key: &str, field: &Field) -> TokenStream {
    let (kind, write) = (type_of(field), write(field));
    let head = head(&quote!(#kind as u8), key);
    quote! {
        out.extend_from_slice(&#head);
        #write?;
    }
}

/// Returns type, key and NUL as an array.
fn head(kind: &TokenStream, key: &str) -> TokenStream {
    let bytes = key.bytes();
    quote!([#kind, #(#bytes,)* 0u8])
}

fn type_of(field: &Field) -> TokenStream {
    let variable = &field.variable;
    match &field.with {
        Some(module) => quote!(#module::element_type(#variable)),
        None => quote!(__bson::ToBson::element_type(#variable)),
    }
}

/// Appends a field's payload, and returns a `Result`.
fn write(field: &Field) -> TokenStream {
    let variable = &field.variable;
    match &field.with {
        Some(module) => quote!(#module::to_bson(#variable, out)),
        None => quote!(__bson::ToBson::to_bson(#variable, out)),
    }
}

/// Writes an enum that is the name of its variant, or a document with that name as its only key. Returns the bodies of
/// `element_type` and `to_bson`.
fn external(variants: &[Variant]) -> (TokenStream, TokenStream) {
    let types = variants.iter().map(|variant| {
        let name = &variant.name;
        match &variant.fields {
            Fields::Unit => quote!(Self::#name => __bson::ElementType::String,),
            _ => quote!(Self::#name { .. } => __bson::ElementType::Document,),
        }
    });
    let payloads = variants.iter().map(|variant| {
        let (name, key) = (&variant.name, &variant.key.name);
        if let Fields::Unit = variant.fields {
            return quote!(Self::#name => __bson::ToBson::to_bson(#key, out),);
        }
        let (pattern, payload, kind) =
            (variant.fields.pattern(), payload(&variant.fields), element_type(&variant.fields));
        let head = head(&quote!(#kind as u8), key);
        quote! {
            Self::#name #pattern => __bson::append_document(out, |out| {
                out.extend_from_slice(&#head);
                #payload
            }),
        }
    });
    (quote!(match self { #(#types)* }), quote!(match self { #(#payloads)* }))
}

/// Writes an enum that is a document with the variant's name as the value of the tag. Returns the body of
/// `append_members`.
fn tagged(variants: &[Variant], tag: &str) -> TokenStream {
    let head = head(&quote!(__bson::ElementType::String as u8), tag);
    let arms = variants.iter().map(|variant| {
        let (name, key) = (&variant.name, &variant.key.name);
        let tag = quote! {
            out.extend_from_slice(&#head);
            __bson::ToBson::to_bson(#key, out)?;
        };
        match &variant.fields {
            Fields::Unit => quote!(Self::#name => { #tag __bson::Ok(()) }),
            Fields::One(field) => {
                let append_members = match &field.with {
                    Some(module) => quote!(#module::append_members),
                    None => quote!(__bson::ToMembers::append_members),
                };
                quote!(Self::#name(value) => { #tag #append_members(value, out) })
            }
            fields => {
                let (pattern, members) = (fields.pattern(), members(fields));
                quote!(Self::#name #pattern => { #tag #members })
            }
        }
    });
    quote!(match self { #(#arms)* })
}
