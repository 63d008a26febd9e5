//! The dialect of a CSV file: which bytes separate, quote and escape, and what is an error.

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, ErrorKind, Result};
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

impl CsvLineEnd {
    const NAMES: [(&str, CsvLineEnd); 4] =
        [("any", CsvLineEnd::Any), ("lf", CsvLineEnd::Lf), ("crlf", CsvLineEnd::Crlf), ("cr", CsvLineEnd::Cr)];
}

/// Writes the options that differ from the default, as `option=value` separated by spaces. Bytes are two hexadecimal
/// digits or `none`, and other values are those of [docs/csv.md](CsvDialect). Parsing reverses this.
///
/// ```
/// use millstream::frame::CsvDialect;
/// let dialect = CsvDialect::new().delimiter(b';').quote(None);
/// assert_eq!(dialect.to_string(), "delimiter=3b quote=none");
/// assert_eq!("delimiter=3b quote=none".parse::<CsvDialect>()?, dialect);
/// assert!("delimiter=;".parse::<CsvDialect>().is_err());
/// # Ok::<(), millstream::Error>(())
/// ```
impl fmt::Display for CsvDialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let byte = |byte: Option<u8>| byte.map_or("none".to_string(), |byte| format!("{byte:02x}"));
        let on = |on: bool| if on { "on" } else { "off" }.to_string();
        let options = |dialect: &CsvDialect| {
            let line_end =
                CsvLineEnd::NAMES.iter().find(|(_, end)| *end == dialect.line_end).map_or("", |(name, _)| name);
            [
                ("delimiter", byte(Some(dialect.delimiter))),
                ("quote", byte(dialect.quote)),
                ("escape", byte(dialect.escape)),
                ("doubled_quotes", on(dialect.doubled_quotes)),
                ("comment", byte(dialect.comment)),
                ("line_end", line_end.to_string()),
                ("blank_records", on(dialect.blank_lines == CsvBlankLines::Records)),
                ("literal_quotes", on(dialect.stray_quotes == CsvStrayQuotes::Literal)),
                ("detect_mark", on(dialect.byte_order_mark == CsvByteOrderMark::Detect)),
            ]
        };
        let others =
            options(self).into_iter().zip(options(&CsvDialect::new())).filter(|(given, default)| given != default);
        let texts: Vec<_> = others.map(|((name, value), _)| format!("{name}={value}")).collect();
        f.write_str(&texts.join(" "))
    }
}

/// Reads what [`Display`](fmt::Display) writes.
impl FromStr for CsvDialect {
    type Err = Error;

    fn from_str(text: &str) -> Result<CsvDialect> {
        let wrong = |option: &str| {
            Error::new(ErrorKind::InvalidOption)
                .with_found(format!("{option:?} in the text of a dialect of CSV"))
                .with_expected("an option of the dialect with a value, such as delimiter=3b")
        };
        let byte = |value: &str| match (value, u8::from_str_radix(value, 16)) {
            ("none", _) => Some(None),
            (_, Ok(byte)) if value.len() == 2 => Some(Some(byte)),
            _ => None,
        };
        let on = |value: &str| match value {
            "on" => Some(true),
            "off" => Some(false),
            _ => None,
        };
        let mut dialect = CsvDialect::new();
        for option in text.split(' ').filter(|option| !option.is_empty()) {
            let with = option.split_once('=').and_then(|(name, value)| {
                Some(match name {
                    "delimiter" => dialect.delimiter(byte(value)??),
                    "quote" => dialect.quote(byte(value)?),
                    "escape" => dialect.escape(byte(value)?),
                    "doubled_quotes" => dialect.doubled_quotes(on(value)?),
                    "comment" => dialect.comment(byte(value)?),
                    "line_end" => dialect.line_end(CsvLineEnd::NAMES.iter().find(|(name, _)| *name == value)?.1),
                    "blank_records" => {
                        dialect.blank_lines(if on(value)? { CsvBlankLines::Records } else { CsvBlankLines::Skip })
                    }
                    "literal_quotes" => {
                        dialect.stray_quotes(if on(value)? { CsvStrayQuotes::Literal } else { CsvStrayQuotes::Error })
                    }
                    "detect_mark" => dialect.byte_order_mark(if on(value)? {
                        CsvByteOrderMark::Detect
                    } else {
                        CsvByteOrderMark::Content
                    }),
                    _ => return None,
                })
            });
            dialect = with.ok_or_else(|| wrong(option))?;
        }
        dialect.check()?;
        Ok(dialect)
    }
}
