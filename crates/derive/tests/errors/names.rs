//! Names that two things have.

use millstream::bson::FromBson;

#[derive(FromBson)]
struct Fields {
    a: i32,
    #[bson(rename = "a")]
    b: i32,
}

#[derive(FromBson)]
struct Aliases {
    a: i32,
    #[bson(alias = "c", alias = "a")]
    b: i32,
}

#[derive(FromBson)]
#[bson(rename_all = "lowercase")]
enum Variants {
    One,
    ONE,
}

#[derive(FromBson)]
#[bson(tag = "kind")]
enum Tag {
    A { kind: i32 },
}

fn main() {}
