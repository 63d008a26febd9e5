//! The library's options by name. TypeScript has checked them, so an unknown one is ignored.

use std::collections::HashMap;
use std::time::Duration;

use millstream::options::{Set, Setting};
use napi::bindgen_prelude::Either4;

/// The options that were given. Times are in milliseconds.
pub type Options = HashMap<String, Either4<f64, String, Vec<i32>, bool>>;

/// Sets the options that are in this table.
pub fn with_options<B>(table: &[Setting<B>], builder: B, options: Options) -> B {
    options.into_iter().fold(builder, |builder, (name, value)| match table.iter().find(|option| option.name == name) {
        Some(option) => set(builder, &option.set, value),
        None => builder,
    })
}

fn set<B>(builder: B, how: &Set<B>, value: Either4<f64, String, Vec<i32>, bool>) -> B {
    match (how, value) {
        (Set::Number(set), Either4::A(number)) => set(builder, number as u64),
        (Set::Time(set), Either4::A(milliseconds)) => {
            set(builder, Duration::try_from_secs_f64(milliseconds / 1000.0).unwrap_or(Duration::MAX))
        }
        (Set::List(set), Either4::C(numbers)) => set(builder, &numbers),
        (Set::Text(set), Either4::B(text)) => set(builder, text),
        (Set::Flag(set), Either4::D(flag)) => set(builder, flag),
        (Set::Word(words), Either4::B(text)) => match words.iter().find(|word| word.word == text) {
            Some(word) => (word.set)(builder),
            None => builder,
        },
        _ => builder,
    }
}
