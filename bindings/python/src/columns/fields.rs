//! The fields of a column, and the error for one of them.

use millstream::ErrorKind;
use millstream::scan::Separator;

/// The fields of one column in a block.
#[derive(Clone, Copy)]
pub struct Fields<'a> {
    pub bytes: &'a [u8],
    /// For each record, the starts of its fields and the position one byte past its end.
    pub bounds: &'a [u32],
    /// The number of bounds per record.
    pub stride: usize,
    /// The index of the field in each record.
    pub column: usize,
    pub missing: Option<&'a [u8]>,
    /// The byte that ends a field besides the end of a line, if there is only one; then the parser of numbers finds the
    /// end itself.
    pub separator: Option<Separator>,
    /// Whether the whole block is valid UTF-8.
    pub is_text: bool,
}

impl<'a> Fields<'a> {
    /// The fields of another column.
    pub fn of(&self, column: usize) -> Fields<'a> {
        Fields { column, ..*self }
    }

    /// The number of fields.
    pub fn len(&self) -> usize {
        self.bounds.len() / self.stride
    }

    /// Each field, and its position in the block.
    pub fn iter(&self) -> impl Iterator<Item = (usize, &'a [u8])> + use<'a> {
        let (bytes, column) = (self.bytes, self.column);
        self.bounds.chunks_exact(self.stride).map(move |record| {
            let (start, end) = (record[column] as usize, record[column + 1] as usize - 1);
            (start, &bytes[start..end])
        })
    }

    /// Whether this field is a missing value.
    pub fn is_missing(&self, field: &[u8]) -> bool {
        self.missing.is_some_and(|missing| missing == field)
    }
}

/// A field that is not a valid value for its column.
pub struct Wrong {
    pub row: usize,
    pub column: usize,
    pub kind: ErrorKind,
    pub found: String,
    pub expected: String,
    /// Its position in the block.
    pub at: usize,
}
