//! `--csv` and the options of its dialect.

use clap::{ArgMatches, Args, Command, FromArgMatches, ValueEnum};
use millstream::Result;
use millstream::frame::{Csv, CsvBlankLines, CsvDialect, CsvLineEnd, CsvRagged, CsvStrayQuotes};

use crate::escape;

/// How CSV is read.
#[derive(Args)]
pub(crate) struct CsvOptions {
    /// Records are those of a CSV file, with quoted fields over several lines
    ///
    /// Broken quoting is an error. Blank lines are not records, and stages do not see them.
    #[arg(long, help_heading = "Records", group = "framing")]
    pub(crate) csv: bool,

    #[command(flatten)]
    dialect: WithCsv,
}

/// The dialect of CSV.
#[derive(Args)]
pub(crate) struct DialectOptions {
    /// The byte between two fields; accepts \t \xHH [default: ,]
    #[arg(long, value_name = "BYTE", help_heading = "Records", value_parser = byte)]
    csv_delimiter: Option<u8>,

    /// The byte around quoted fields, or 'none' [default: "]
    #[arg(long, value_name = "BYTE", help_heading = "Records", value_parser = byte_or_none)]
    csv_quote: Option<Byte>,

    /// The byte that makes the next byte content [default: none]
    #[arg(long, value_name = "BYTE", help_heading = "Records", value_parser = byte_or_none)]
    csv_escape: Option<Byte>,

    /// Lines that begin with this byte are not records [default: none]
    #[arg(long, value_name = "BYTE", help_heading = "Records", value_parser = byte_or_none)]
    csv_comment: Option<Byte>,

    /// The bytes that end a record
    #[arg(long, value_name = "END", help_heading = "Records", value_enum)]
    csv_line_end: Option<LineEnd>,

    /// Two quotes inside a quoted field are an error, not a quote
    #[arg(long, help_heading = "Records")]
    csv_no_doubled_quotes: bool,

    /// A quote inside a field that does not begin with one is content, not an error
    #[arg(long, help_heading = "Records")]
    csv_literal_quotes: bool,

    /// A blank line is a record of one empty field
    #[arg(long, help_heading = "Records")]
    csv_blank_records: bool,
}

/// What `run` does with the header and the fields of CSV.
#[derive(Args)]
pub(crate) struct TableOptions {
    /// The first record of each source is its header, which is written once
    ///
    /// All sources need the same header. It is not counted, and of the stages only 'fields' sees it, which then also
    /// accepts names. With --each every copy gets it.
    #[arg(long, help_heading = "Records", requires = "csv")]
    pub(super) header: bool,

    /// Match the fields of later sources by the names in their headers, which may have another order
    ///
    /// The output has the order of the first source. Every header must have the same names, each one time.
    #[arg(long, help_heading = "Records", requires = "header")]
    pub(super) header_by_name: bool,

    /// What 'fields' does with a record that has more or fewer fields than it needs [default: error]
    #[arg(long, value_name = "HOW", help_heading = "Records", requires = "csv", value_enum)]
    csv_ragged: Option<Ragged>,
}

/// [`CsvRagged`] as a value of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Ragged {
    /// It is a bad record
    Error,
    /// Missing fields are empty, or null in columns; more fields than the header has make a bad record
    Pad,
    /// Missing fields are empty, and more fields than the header has are kept; not for columns
    Collect,
}

impl From<Ragged> for CsvRagged {
    fn from(ragged: Ragged) -> CsvRagged {
        match ragged {
            Ragged::Error => CsvRagged::Error,
            Ragged::Pad => CsvRagged::Pad,
            Ragged::Collect => CsvRagged::Collect,
        }
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum LineEnd {
    /// LF, CRLF and CR, also mixed
    Any,
    /// LF; a CR is content
    Lf,
    /// CRLF; any other CR or LF is content
    Crlf,
    /// CR; an LF is content
    Cr,
}

/// A byte, or none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Byte(Option<u8>);

impl TableOptions {
    pub(super) fn ragged(&self) -> CsvRagged {
        self.csv_ragged.map_or(CsvRagged::Error, CsvRagged::from)
    }
}

impl CsvOptions {
    /// Returns the framer, if `--csv` is given.
    ///
    /// # Errors
    /// Returns [`InvalidOption`](millstream::ErrorKind::InvalidOption) for options that contradict each other.
    pub(crate) fn framer(&self) -> Result<Option<Csv>> {
        if self.csv { self.dialect.0.framer(CsvDialect::new()).map(Some) } else { Ok(None) }
    }
}

/// The options of the dialect, which require `--csv`.
struct WithCsv(DialectOptions);

impl Args for WithCsv {
    fn augment_args(command: Command) -> Command {
        let options = DialectOptions::augment_args(Command::new("csv"));
        command.args(options.get_arguments().map(|arg| arg.clone().requires("csv")))
    }

    fn augment_args_for_update(command: Command) -> Command {
        WithCsv::augment_args(command)
    }
}

impl FromArgMatches for WithCsv {
    fn from_arg_matches(matches: &ArgMatches) -> std::result::Result<WithCsv, clap::Error> {
        DialectOptions::from_arg_matches(matches).map(WithCsv)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> std::result::Result<(), clap::Error> {
        self.0.update_from_arg_matches(matches)
    }
}

impl DialectOptions {
    /// Returns the first of these options that was given.
    #[cfg(feature = "parquet")]
    pub(crate) fn first_given(&self) -> Option<&'static str> {
        let given = [
            (self.csv_delimiter.is_some(), "--csv-delimiter"),
            (self.csv_quote.is_some(), "--csv-quote"),
            (self.csv_escape.is_some(), "--csv-escape"),
            (self.csv_comment.is_some(), "--csv-comment"),
            (self.csv_line_end.is_some(), "--csv-line-end"),
            (self.csv_no_doubled_quotes, "--csv-no-doubled-quotes"),
            (self.csv_literal_quotes, "--csv-literal-quotes"),
            (self.csv_blank_records, "--csv-blank-records"),
        ];
        given.into_iter().find_map(|(is_given, option)| is_given.then_some(option))
    }

    /// Returns the framer of a dialect with these options.
    ///
    /// # Errors
    /// Returns [`InvalidOption`](millstream::ErrorKind::InvalidOption) for options that contradict each other.
    pub(crate) fn framer(&self, mut dialect: CsvDialect) -> Result<Csv> {
        if self.csv_no_doubled_quotes {
            dialect = dialect.doubled_quotes(false);
        }
        if let Some(byte) = self.csv_delimiter {
            dialect = dialect.delimiter(byte);
        }
        if let Some(Byte(byte)) = self.csv_quote {
            dialect = dialect.quote(byte);
        }
        if let Some(Byte(byte)) = self.csv_escape {
            dialect = dialect.escape(byte);
        }
        if let Some(Byte(byte)) = self.csv_comment {
            dialect = dialect.comment(byte);
        }
        if let Some(line_end) = self.csv_line_end {
            dialect = dialect.line_end(match line_end {
                LineEnd::Any => CsvLineEnd::Any,
                LineEnd::Lf => CsvLineEnd::Lf,
                LineEnd::Crlf => CsvLineEnd::Crlf,
                LineEnd::Cr => CsvLineEnd::Cr,
            });
        }
        if self.csv_literal_quotes {
            dialect = dialect.stray_quotes(CsvStrayQuotes::Literal);
        }
        if self.csv_blank_records {
            dialect = dialect.blank_lines(CsvBlankLines::Records);
        }
        Csv::with(dialect)
    }
}

fn byte(text: &str) -> std::result::Result<u8, String> {
    match escape::parse(text)?[..] {
        [byte] => Ok(byte),
        ref bytes => Err(format!("expected one byte, found {}", bytes.len())),
    }
}

fn byte_or_none(text: &str) -> std::result::Result<Byte, String> {
    if text == "none" { Ok(Byte(None)) } else { byte(text).map(|byte| Byte(Some(byte))) }
}
