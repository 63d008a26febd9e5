//! Reads delimited text into typed columns: a table in the memory layout of Apache Arrow. The crate `millstream-columns` finds
//! the fields and parses them, on several threads if available.
//!
//! - `layout`: the definition of the columns, from Python's arguments. `growing`: from batches to a table. `table`: the
//!   Python object.

mod growing;
mod layout;
mod table;

pub use growing::{Growing, enough_workers};
pub use layout::Layout;
pub use table::Table;
