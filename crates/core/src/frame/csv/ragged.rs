//! Records of CSV whose number of fields is not that of the header.

use crate::error::{Error, ErrorKind, Result};

/// What to do with a record that has another number of fields than the header, or than the first record if there is no
/// header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CsvRagged {
    /// It is an error: [`FieldCountMismatch`](ErrorKind::FieldCountMismatch).
    #[default]
    Error,
    /// Fields that are missing at its end are empty; in columns they are null. A record with more fields is an error, so
    /// that no data is dropped silently.
    Pad,
    /// Fields that are missing at its end are empty, and a record with more fields keeps them after those of the header.
    /// Records that become values by the names of the header, and columns, have no place for such fields.
    Collect,
}

impl CsvRagged {
    /// Checks the number of fields of a record. If it succeeds, the record has at most `width` fields, unless this is
    /// [`Collect`](CsvRagged::Collect). `like` names what has `width` fields, such as "the header".
    ///
    /// ```
    /// use millstream::frame::CsvRagged;
    /// assert!(CsvRagged::Pad.check(1, 2, "the header").is_ok());
    /// let error = CsvRagged::Pad.check(3, 2, "the header").unwrap_err();
    /// assert!(error.to_string().contains("found 3 fields, expected 2, as in the header"));
    /// ```
    ///
    /// # Errors
    /// Returns [`FieldCountMismatch`](ErrorKind::FieldCountMismatch), without the place of the record.
    #[inline]
    pub fn check(self, found: usize, width: usize, like: &str) -> Result<()> {
        let is_allowed = match self {
            CsvRagged::Error => found == width,
            CsvRagged::Pad => found <= width,
            CsvRagged::Collect => true,
        };
        if is_allowed { Ok(()) } else { Err(mismatch(found, format!("{width}, as in {like}"))) }
    }

    /// Checks that a record has the first `least` fields, which is what a program needs that does not know how many there
    /// are.
    ///
    /// # Errors
    /// Returns [`FieldCountMismatch`](ErrorKind::FieldCountMismatch), without the place of the record.
    #[inline]
    pub fn check_at_least(self, found: usize, least: usize) -> Result<()> {
        if found >= least || self != CsvRagged::Error {
            return Ok(());
        }
        Err(mismatch(found, format!("at least {least}")))
    }
}

#[cold]
fn mismatch(found: usize, expected: String) -> Error {
    let found = if found == 1 { "1 field".to_string() } else { format!("{found} fields") };
    Error::new(ErrorKind::FieldCountMismatch).with_found(found).with_expected(expected)
}

#[cfg(test)]
mod tests {
    use super::CsvRagged::{self, Collect, Error, Pad};
    use crate::error::{ErrorKind, Result};

    fn text(checked: Result<()>) -> Option<String> {
        let error = checked.err()?;
        assert_eq!(error.kind(), ErrorKind::FieldCountMismatch);
        Some(error.without_advice().to_string())
    }

    #[test]
    fn records_may_have_more_fields_than_the_header_only_if_these_are_kept() {
        let short = "field count mismatch: found 1 field, expected 2, as in the header";
        let long = "field count mismatch: found 3 fields, expected 2, as in the header";
        for (ragged, found, expected) in [
            (Error, 1, Some(short)),
            (Error, 2, None),
            (Error, 3, Some(long)),
            (Pad, 1, None),
            (Pad, 2, None),
            (Pad, 3, Some(long)),
            (Collect, 1, None),
            (Collect, 2, None),
            (Collect, 3, None),
        ] {
            assert_eq!(text(ragged.check(found, 2, "the header")).as_deref(), expected, "{ragged:?} {found}");
        }
        assert_eq!(CsvRagged::default(), Error);
    }

    #[test]
    fn without_a_header_only_missing_fields_are_errors() {
        let short = "field count mismatch: found 1 field, expected at least 2";
        assert_eq!(text(Error.check_at_least(1, 2)).as_deref(), Some(short));
        for (ragged, found) in [(Error, 2), (Error, 3), (Pad, 1), (Pad, 2), (Pad, 3), (Collect, 1), (Collect, 3)] {
            assert_eq!(text(ragged.check_at_least(found, 2)), None, "{ragged:?} {found}");
        }
    }
}
