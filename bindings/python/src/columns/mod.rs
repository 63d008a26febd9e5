//! Reads delimited text into typed columns: a table in the memory layout of Apache Arrow.
//!
//! ```text
//! batches ─► block ─► piece ─┐
//!            block ─► piece ─┼─► table
//!            block ─► piece ─┘
//! ```
//!
//! Batches are combined into blocks. A block is split into fields and parsed independently of all others, so several
//! threads can parse; the results are joined in order. Text stays in the memory of its block's copy.
//!
//! - `layout`: the definition of the columns. `block`: records and where their fields are. `fields`: the fields of a
//!   column. `kind`: converts fields to values.
//! - `growing`: from batches to a table. `table`: the Python object.

mod block;
mod fields;
mod growing;
mod kind;
mod layout;
mod table;

pub use growing::{Growing, enough_workers};
pub use layout::Layout;
pub use table::Table;
