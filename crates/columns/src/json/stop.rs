//! Why a record is bad.

use arrow_schema::FieldRef;

/// Why a record is bad.
#[derive(Debug)]
pub(super) struct Stop {
    /// The position in the block.
    pub(super) at: usize,
    pub(super) reason: Reason,
    /// The names and positions of the values around it, innermost first.
    pub(super) path: Vec<String>,
}

#[derive(Debug)]
pub(super) enum Reason {
    /// The grammar or the depth limit does not allow the text.
    Invalid,
    Surrogate,
    Twice,
    Unknown,
    /// A value of another type.
    Misfit(FieldRef),
    /// Null, or no member, where the column is not nullable.
    Missing(FieldRef),
}

impl Stop {
    #[cold]
    pub(super) fn new(at: usize, reason: Reason) -> Box<Stop> {
        Box::new(Stop { at, reason, path: Vec::new() })
    }

    #[cold]
    pub(super) fn inside(mut self: Box<Stop>, name: &str) -> Box<Stop> {
        self.path.push(name.to_string());
        self
    }
}
