//! Framers for Python.

use millstream::frame::{
    Bson, Csv, CsvBlankLines, CsvByteOrderMark, CsvDialect, CsvLineEnd, CsvStrayQuotes, Delimiter, Endian, Fixed,
    Framer as CoreFramer, JsonLines, LengthPrefixed, Lines, Predicate, PrefixCounts, PrefixWidth,
};
use millstream::splits::Framing;
use millstream::{Error, ErrorKind};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;

use crate::error;
use crate::number::Whole;

/// A way to find records, usable by any number of readers.
#[pyclass(frozen, eq, module = "millstream")]
#[derive(Clone, PartialEq)]
pub struct Framer {
    pub spec: Spec,
}

#[derive(Clone, PartialEq)]
pub enum Spec {
    Lines {
        keep: bool,
    },
    Delimiter {
        bytes: Vec<u8>,
        keep: bool,
    },
    AnyOf {
        bytes: Vec<u8>,
        keep: bool,
    },
    Fixed(usize),
    LengthPrefixed(LengthPrefixed),
    Bson,
    Csv(CsvDialect),
    /// The depth limit, if lines are checked.
    JsonLines(Option<usize>),
}

/// The depth limit of JSON by default.
pub const JSON_DEPTH: usize = 128;

impl Spec {
    /// The elements of an array of a JSON document, as a reader with `json_elements` delivers them.
    pub fn elements() -> Spec {
        Spec::Delimiter { bytes: vec![0x1e], keep: false }
    }

    /// The framing that a plan stores. A plan stores neither several delimiters nor whether records keep theirs.
    pub fn framing(&self) -> Result<Framing, Error> {
        Ok(match self {
            Spec::Lines { keep: false } => Framing::Lines,
            Spec::Delimiter { bytes, keep: false } => Framing::Delimiter { bytes: bytes.clone() },
            Spec::Fixed(len) => Framing::Fixed { len: *len },
            Spec::LengthPrefixed(prefix) => Framing::LengthPrefixed { prefix: *prefix },
            Spec::Bson => Framing::Bson,
            Spec::Csv(dialect) => Framing::Csv { dialect: *dialect },
            Spec::JsonLines(depth) => {
                Framing::JsonLines { checked: depth.is_some(), depth: depth.unwrap_or(JSON_DEPTH) }
            }
            Spec::AnyOf { .. } => {
                return Err(Error::new(ErrorKind::InvalidOption)
                    .with_found("Framer.any_of for a plan")
                    .with_expected("Framer.lines, delimiter, fixed, length_prefixed, bson, csv or json_lines"));
            }
            Spec::Lines { keep: true } | Spec::Delimiter { keep: true, .. } => {
                return Err(Error::new(ErrorKind::InvalidOption)
                    .with_found("a framer with keep_delimiter for a plan")
                    .with_expected("the framer without it, and open_split(split, keep_delimiter=True)"));
            }
        })
    }

    /// The framer for records of CSV, if it is one.
    pub fn csv(&self) -> Option<Csv> {
        if let Spec::Csv(dialect) = self { Csv::with(*dialect).ok() } else { None }
    }

    /// The framer for newline-delimited JSON, if it is one.
    pub fn json_lines(&self) -> Option<JsonLines> {
        match self {
            Spec::JsonLines(None) => Some(JsonLines::new()),
            Spec::JsonLines(Some(depth)) => Some(JsonLines::checked().depth(*depth)),
            _ => None,
        }
    }

    /// The core's framer.
    pub fn build(&self) -> Result<Box<dyn CoreFramer + Send>, Error> {
        Ok(match self {
            Spec::Lines { keep: false } => Box::new(Lines::new()),
            Spec::Lines { keep: true } => Box::new(Lines::untrimmed()),
            Spec::Delimiter { bytes, keep } => {
                let framer = Delimiter::bytes(bytes.clone())?;
                Box::new(if *keep { framer.untrimmed() } else { framer })
            }
            Spec::AnyOf { bytes, keep } => {
                let bytes = bytes.clone();
                let framer = Predicate::new(move |byte| bytes.contains(&byte));
                Box::new(if *keep { framer.untrimmed() } else { framer })
            }
            Spec::Fixed(len) => Box::new(Fixed::new(*len)?),
            Spec::LengthPrefixed(prefix) => Box::new(*prefix),
            Spec::Bson => Box::new(Bson::new()),
            Spec::Csv(dialect) => Box::new(Csv::with(*dialect)?),
            Spec::JsonLines(_) => Box::new(self.json_lines().unwrap_or_default()),
        })
    }
}

impl TryFrom<&Framing> for Spec {
    type Error = Error;

    fn try_from(framing: &Framing) -> Result<Spec, Error> {
        Ok(match framing {
            Framing::Lines => Spec::Lines { keep: false },
            Framing::Delimiter { bytes } => Spec::Delimiter { bytes: bytes.clone(), keep: false },
            Framing::Fixed { len } => Spec::Fixed(*len),
            Framing::LengthPrefixed { prefix } => Spec::LengthPrefixed(*prefix),
            Framing::Bson => Spec::Bson,
            Framing::Csv { dialect } => Spec::Csv(*dialect),
            Framing::JsonLines { checked, depth } => Spec::JsonLines(checked.then_some(*depth)),
            Framing::JsonElements { .. } => Spec::elements(),
            other => return Err(Error::new(ErrorKind::Unsupported).with_found(format!("{other:?}"))),
        })
    }
}

#[pymethods]
impl Framer {
    /// Records are lines, without the line feed and a carriage return before it.
    #[staticmethod]
    #[pyo3(signature = (*, keep_delimiter = false))]
    fn lines(keep_delimiter: bool) -> Framer {
        Framer { spec: Spec::Lines { keep: keep_delimiter } }
    }

    /// Records end with this byte, byte string, or UTF-8 text.
    #[staticmethod]
    #[pyo3(signature = (delimiter, *, keep_delimiter = false))]
    fn delimiter(py: Python<'_>, delimiter: Words, keep_delimiter: bool) -> PyResult<Framer> {
        checked(py, Spec::Delimiter { bytes: delimiter.into_bytes(), keep: keep_delimiter })
    }

    /// Records end after any of these bytes.
    #[staticmethod]
    #[pyo3(signature = (delimiters, *, keep_delimiter = false))]
    fn any_of(py: Python<'_>, delimiters: PyBackedBytes, keep_delimiter: bool) -> PyResult<Framer> {
        checked(py, Spec::AnyOf { bytes: delimiters.to_vec(), keep: keep_delimiter })
    }

    /// Records have this many bytes.
    #[staticmethod]
    fn fixed(py: Python<'_>, length: Whole<usize>) -> PyResult<Framer> {
        checked(py, Spec::Fixed(length.0))
    }

    /// Records are preceded by their length, which has 1, 2, 4 or 8 bytes and may count itself.
    #[staticmethod]
    #[pyo3(signature = (width = Whole(4), *, endian = "little", counts = "payload"))]
    fn length_prefixed(py: Python<'_>, width: Whole<u32>, endian: &str, counts: &str) -> PyResult<Framer> {
        let width = match width.0 {
            1 => PrefixWidth::U8,
            2 => PrefixWidth::U16,
            4 => PrefixWidth::U32,
            8 => PrefixWidth::U64,
            other => return Err(error::refuse(py, format!("a prefix of {other} bytes"), "1, 2, 4 or 8")),
        };
        let endian = match endian {
            "little" => Endian::Little,
            "big" => Endian::Big,
            other => return Err(error::refuse(py, format!("the byte order {other:?}"), "\"little\" or \"big\"")),
        };
        let counts = match counts {
            "payload" => PrefixCounts::Payload,
            "itself" => PrefixCounts::Itself,
            other => {
                return Err(error::refuse(py, format!("a length that counts {other:?}"), "\"payload\" or \"itself\""));
            }
        };
        Ok(Framer { spec: Spec::LengthPrefixed(LengthPrefixed::new(width, endian).counts(counts)) })
    }

    /// BSON documents.
    #[staticmethod]
    fn bson() -> Framer {
        Framer { spec: Spec::Bson }
    }

    /// Lines of newline-delimited JSON, with or without a carriage return before the line feed. With `check`, each line that
    /// is not blank is one value in UTF-8, with at most `depth` arrays and objects inside each other (128 by default).
    /// Blank lines are not removed from the records, but `Reader.json` skips them.
    #[staticmethod]
    #[pyo3(signature = (*, check = false, depth = None))]
    fn json_lines(py: Python<'_>, check: bool, depth: Option<Whole<usize>>) -> PyResult<Framer> {
        if depth.is_some() && !check {
            return Err(error::refuse(py, "depth for lines that are not checked", "check=True, or no depth"));
        }
        let depth = depth.map_or(JSON_DEPTH, |Whole(depth)| depth);
        Ok(Framer { spec: Spec::JsonLines(check.then_some(depth)) })
    }

    /// Records of CSV: RFC 4180 with any line end by default. Blank lines and comments are not removed from the records,
    /// but `Reader.rows` and `Reader.dicts` skip them.
    #[staticmethod]
    #[pyo3(signature = (
        delimiter = Words::Byte(Whole(b',')), *, quote = Some(Words::Byte(Whole(b'"'))), escape = None,
        doubled_quotes = true, comment = None, line_end = "any", blank_records = false, literal_quotes = false,
        detect_mark = true
    ), text_signature = "(delimiter=',', *, quote='\"', escape=None, doubled_quotes=True, comment=None, line_end='any', blank_records=False, literal_quotes=False, detect_mark=True)")]
    #[expect(clippy::too_many_arguments, reason = "keywords of Python")]
    fn csv(
        py: Python<'_>,
        delimiter: Words,
        quote: Option<Words>,
        escape: Option<Words>,
        doubled_quotes: bool,
        comment: Option<Words>,
        line_end: &str,
        blank_records: bool,
        literal_quotes: bool,
        detect_mark: bool,
    ) -> PyResult<Framer> {
        let byte = |name: &str, words: Words| match words.into_bytes()[..] {
            [byte] => Ok(byte),
            ref bytes => Err(error::refuse(py, format!("{name} of {} bytes", bytes.len()), "one byte")),
        };
        let dialect = CsvDialect::new()
            .delimiter(byte("delimiter", delimiter)?)
            .quote(quote.map(|words| byte("quote", words)).transpose()?)
            .escape(escape.map(|words| byte("escape", words)).transpose()?)
            .comment(comment.map(|words| byte("comment", words)).transpose()?)
            .doubled_quotes(doubled_quotes)
            .line_end(match line_end {
                "any" => CsvLineEnd::Any,
                "lf" => CsvLineEnd::Lf,
                "crlf" => CsvLineEnd::Crlf,
                "cr" => CsvLineEnd::Cr,
                other => {
                    let found = format!("line_end={other:?}");
                    return Err(error::refuse(py, found, "\"any\", \"lf\", \"crlf\" or \"cr\""));
                }
            })
            .blank_lines(if blank_records { CsvBlankLines::Records } else { CsvBlankLines::Skip })
            .stray_quotes(if literal_quotes { CsvStrayQuotes::Literal } else { CsvStrayQuotes::Error })
            .byte_order_mark(if detect_mark { CsvByteOrderMark::Detect } else { CsvByteOrderMark::Content });
        checked(py, Spec::Csv(dialect))
    }
}

fn checked(py: Python<'_>, spec: Spec) -> PyResult<Framer> {
    spec.build().map_err(|error| error::raise(py, &error))?;
    Ok(Framer { spec })
}

/// A delimiter as bytes, as text, or as the number of a byte.
#[derive(FromPyObject)]
pub enum Words {
    Bytes(PyBackedBytes),
    Text(String),
    Byte(Whole<u8>),
}

impl Words {
    pub fn into_bytes(self) -> Vec<u8> {
        match self {
            Words::Bytes(bytes) => bytes.to_vec(),
            Words::Text(text) => text.into_bytes(),
            Words::Byte(Whole(byte)) => vec![byte],
        }
    }
}
