//! Appending any value as text.

use crate::json::{Json, append_value};
use crate::{Cursor, ElementType};
use millstream_core::Result;

/// Appends the value at the cursor as relaxed Extended JSON; nothing if it is invalid.
pub(super) fn append(out: &mut Vec<u8>, cursor: &mut Cursor<'_>, kind: ElementType) -> Result<()> {
    let len = out.len();
    append_value(out, cursor, kind, Json::Relaxed).inspect_err(|_| out.truncate(len))
}
