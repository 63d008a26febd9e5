//! Delimited text as columns of one type each: a table, in the memory of Apache Arrow.
//!
//! ```text
//! batches ─► block ─► piece ─┐
//!            block ─► piece ─┼─► table
//!            block ─► piece ─┘
//! ```
//!
//! Batches are put together to blocks. A block is split into fields and parsed without looking at any other, so several
//! threads do that; what becomes of it is joined in order. Text stays in the memory that its block's was copied to.
//!
//! - `layout`: what the columns are. `block`: records, and their fields. `kind`: fields become values.
//! - `growing`: from batches to a table. `table`: what Python sees.

mod block;
mod growing;
mod kind;
mod layout;
mod table;

pub use growing::{Growing, enough_workers};
pub use layout::Layout;
pub use table::Table;
