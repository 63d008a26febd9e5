//! Any value as text.

use crate::bson::json::{Json, append_value};
use crate::bson::{Cursor, ElementType};
use crate::error::Result;

/// Appends the value that the cursor is at as relaxed Extended JSON; nothing, if it is wrong.
pub(super) fn append(out: &mut Vec<u8>, cursor: &mut Cursor<'_>, kind: ElementType) -> Result<()> {
    let len = out.len();
    append_value(out, cursor, kind, Json::Relaxed).inspect_err(|_| out.truncate(len))
}
