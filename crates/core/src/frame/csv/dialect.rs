//! The dialect of a CSV file: which bytes separate, quote and escape, and what is an error.

use crate::error::Result;
use crate::refusal::refuse;

/// The dialect of a CSV file. The default is RFC 4180, with any line end.
///
/// [docs/csv.md](https://github.com/millstream/millstream/blob/main/docs/csv.md) defines every option by one
/// table. [`Csv::with`](super::Csv::with) refuses options that contradict each other.
///
/// ```
/// use millstream::frame::{Csv, CsvDialect};
/// let mut csv = Csv::with(CsvDialect::new().delimiter(b';').quote(Some(b'\'')))?;
/// assert_eq!(csv.fields(b"one;'two;2'").collect::<Vec<_>>(), [&b"one"[..], b"two;2"]);
/// assert!(Csv::with(CsvDialect::new().delimiter(b'"')).is_err());
/// # Ok::<(), millstream::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CsvDialect {
    pub(super) delimiter: u8,
    pub(super) quote: Option<u8>,
    pub(super) escape: Option<u8>,
    pub(super) doubled_quotes: bool,
    pub(super) comment: Option<u8>,
    pub(super) line_end: CsvLineEnd,
    pub(super) blank_lines: CsvBlankLines,
    pub(super) stray_quotes: CsvStrayQuotes,
    pub(super) byte_order_mark: CsvByteOrderMark,
}

/// The bytes that end a line of a CSV file, and a record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CsvLineEnd {
    /// LF, CRLF and CR, also mixed.
    #[default]
    Any,
    /// LF. A CR is content.
    Lf,
    /// CRLF. Any other CR or LF is content.
    Crlf,
    /// CR. An LF is content.
    Cr,
}

/// The meaning of a line without any byte.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CsvBlankLines {
    /// It is not a record.
    #[default]
    Skip,
    /// It is a record of one empty field.
    Records,
}

/// The meaning of a quote inside a field that does not begin with one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CsvStrayQuotes {
    /// It is an error.
    #[default]
    Error,
    /// It is content.
    Literal,
}

/// The meaning of a byte order mark at the start of a record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CsvByteOrderMark {
    /// The mark of UTF-8 is not content; the mark of UTF-16 is an error.
    #[default]
    Detect,
    /// Its bytes are content.
    Content,
}

impl CsvDialect {
    /// Creates the default dialect.
    pub const fn new() -> CsvDialect {
        CsvDialect {
            delimiter: b',',
            quote: Some(b'"'),
            escape: None,
            doubled_quotes: true,
            comment: None,
            line_end: CsvLineEnd::Any,
            blank_lines: CsvBlankLines::Skip,
            stray_quotes: CsvStrayQuotes::Error,
            byte_order_mark: CsvByteOrderMark::Detect,
        }
    }

    /// Sets the byte between two fields. The default is a comma.
    pub const fn delimiter(self, delimiter: u8) -> CsvDialect {
        CsvDialect { delimiter, ..self }
    }

    /// Sets the byte around a field that contains delimiters, line ends or quotes. The default is `"`; `None` means
    /// that no byte is special except delimiters, line ends and the escape character.
    pub const fn quote(self, quote: Option<u8>) -> CsvDialect {
        CsvDialect { quote, ..self }
    }

    /// Sets the byte that makes the next byte content, inside and outside quotes. The default is none.
    pub const fn escape(self, escape: Option<u8>) -> CsvDialect {
        CsvDialect { escape, ..self }
    }

    /// Sets whether two quotes inside a quoted field are one quote of its content. The default is true.
    pub const fn doubled_quotes(self, doubled_quotes: bool) -> CsvDialect {
        CsvDialect { doubled_quotes, ..self }
    }

    /// Sets the byte that makes a line a comment if it is the line's first byte. The default is none.
    pub const fn comment(self, comment: Option<u8>) -> CsvDialect {
        CsvDialect { comment, ..self }
    }

    /// Sets which bytes end a record.
    pub const fn line_end(self, line_end: CsvLineEnd) -> CsvDialect {
        CsvDialect { line_end, ..self }
    }

    /// Sets whether blank lines are records.
    pub const fn blank_lines(self, blank_lines: CsvBlankLines) -> CsvDialect {
        CsvDialect { blank_lines, ..self }
    }

    /// Sets whether a quote inside an unquoted field is an error.
    pub const fn stray_quotes(self, stray_quotes: CsvStrayQuotes) -> CsvDialect {
        CsvDialect { stray_quotes, ..self }
    }

    /// Sets the meaning of a byte order mark.
    pub const fn byte_order_mark(self, byte_order_mark: CsvByteOrderMark) -> CsvDialect {
        CsvDialect { byte_order_mark, ..self }
    }

    /// Fails if the options contradict each other.
    pub(super) fn check(&self) -> Result<()> {
        let special = [
            ("the delimiter", Some(self.delimiter)),
            ("the quote", self.quote),
            ("the escape character", self.escape),
            ("the comment prefix", self.comment),
        ];
        for (i, (name, byte)) in special.into_iter().enumerate() {
            let Some(byte) = byte else { continue };
            let shown = byte.escape_ascii();
            refuse(&[(
                matches!(byte, b'\r' | b'\n'),
                &format_args!("the byte '{shown}' as {name}"),
                &"a byte that ends no line",
            )])?;
            if let Some((other, _)) = special[..i].iter().find(|(_, other)| *other == Some(byte)) {
                refuse(&[(
                    true,
                    &format_args!("the byte '{shown}' as {other} and as {name}"),
                    &match name {
                        "the escape character" => "different bytes; doubled quotes need no escape character",
                        _ => "different bytes",
                    },
                )])?;
            }
        }
        Ok(())
    }
}

impl Default for CsvDialect {
    fn default() -> CsvDialect {
        CsvDialect::new()
    }
}
