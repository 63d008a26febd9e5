//! Returns a record as text after checking that it is UTF-8.

use crate::error::{Error, ErrorKind, Result};

/// Returns the record as text.
///
/// # Errors
/// Returns [`Utf8Invalid`](ErrorKind::Utf8Invalid), which names the invalid byte and its position in the record.
///
/// ```
/// use millstream::frame::text;
/// assert_eq!(text("Grüße".as_bytes())?, "Grüße");
/// let error = text(b"Gr\xfc\xdfe").unwrap_err();
/// assert_eq!(error.found(), Some("0xfc at byte 2 of the record"));
/// # Ok::<(), millstream::Error>(())
/// ```
pub fn text(record: &[u8]) -> Result<&str> {
    std::str::from_utf8(record).map_err(|error| {
        let at = error.valid_up_to();
        let found = match error.error_len() {
            Some(_) => format!("0x{:02x} at byte {at} of the record", record[at]),
            None => format!("0x{:02x} at byte {at} of the record, which ends inside the character", record[at]),
        };
        Error::new(ErrorKind::Utf8Invalid).with_found(found).with_expected("UTF-8")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_truncated_character_is_reported() {
        let error = text(b"ab\xe2\x86").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Utf8Invalid);
        assert_eq!(error.found(), Some("0xe2 at byte 2 of the record, which ends inside the character"));
    }
}
