//! Types that are no document, and attributes that do not go together.

use millstream::bson::{FromBson, ToBson};

#[derive(FromBson)]
union Either {
    integer: i64,
    double: f64,
}

#[derive(ToBson)]
enum Nothing {}

#[derive(FromBson)]
#[bson(deny_unknown)]
struct NoMembers(i32);

#[derive(FromBson)]
#[bson(deny_unknown)]
struct Flat {
    #[bson(flatten)]
    rest: std::collections::BTreeMap<String, i32>,
}

#[derive(ToBson)]
#[bson(tag = "kind")]
enum ArrayWithTag {
    Point(i32, i32),
}

fn main() {}
