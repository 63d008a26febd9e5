//! Attributes that are not there, or not here, or not so.

use millstream::bson::{FromBson, ToBson};

#[derive(FromBson)]
#[bson(rename = "a")]
struct OnAStruct {}

#[derive(ToBson)]
#[bson(default)]
enum OnAnEnum {
    A,
}

#[derive(FromBson)]
enum OnAVariant {
    #[bson(skip)]
    A,
}

#[derive(FromBson)]
struct OnFields {
    #[bson(renamed = "a")]
    unknown: i32,
    #[bson(default, default = "zero")]
    twice: i32,
    #[bson(rename = 1)]
    no_text: i32,
    #[bson(rename = "a\0")]
    no_key: i32,
    #[bson(with = "a b")]
    no_path: i32,
    #[bson(flatten, rename = "a")]
    flat: Vec<i32>,
    #[bson(skip, with = "zero")]
    neither: i32,
}

#[derive(FromBson)]
#[bson(rename_all = "Camel")]
struct NoCase {
    a: i32,
}

#[derive(FromBson)]
struct WithoutNames(i32, #[bson(rename = "b")] i32);

fn main() {}
