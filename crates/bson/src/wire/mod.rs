//! The wire format: the table of types, a cursor over the bytes, its rules, and the path of an error.

pub(crate) mod cursor;
mod element;
pub(crate) mod path;
pub(crate) mod quick;
pub(crate) mod rules;
pub(crate) mod text;

pub use cursor::{Cursor, Outer};
pub(crate) use element::kind_of;
pub use element::{ElementType, Layout};
pub use path::{join_path, split_path};
pub use rules::{Rules, Strictness, Utf8};
