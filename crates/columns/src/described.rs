//! Records and options of columns as a text, for the bindings.

use crate::batches::Records;
use crate::options::{Duplicates, Infer, OnBad, Options};
use millstream::frame::{Csv, CsvRagged};
use millstream::{Error, ErrorKind, Result};
use std::str::FromStr;

/// What a text describes: words `name=value`, separated by spaces, which `millstream_columns_new` in C documents.
#[derive(Debug)]
pub struct Described {
    /// What the records are.
    pub records: Records,
    /// The options.
    pub options: Options,
}

/// The options of the dialect, which parses them.
const OF_CSV: [&str; 9] = [
    "delimiter",
    "quote",
    "escape",
    "doubled_quotes",
    "comment",
    "line_end",
    "blank_records",
    "literal_quotes",
    "detect_mark",
];

const FORMATS: [&str; 5] = ["csv", "tsv", "lines", "jsonl", "json"];

const ACCEPTED: &str = "format, header, infer, null, special_numbers, decimals, duplicates, ragged, on_bad or \
                        threads with a value, such as header=off, or an option of the dialect of CSV";

impl FromStr for Described {
    type Err = Error;

    fn from_str(text: &str) -> Result<Described> {
        let (mut format, mut dialect, mut nulls) = ("csv", Vec::new(), Vec::new());
        let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let mut options = Options::new().threads(threads);
        for option in text.split(' ').filter(|option| !option.is_empty()) {
            let refused = || {
                let error =
                    Error::new(ErrorKind::InvalidOption).with_found(format!("{option:?} in the options of columns"));
                error.with_expected(ACCEPTED)
            };
            let (name, value) = option.split_once('=').ok_or_else(refused)?;
            let with = match name {
                "format" => FORMATS.contains(&value).then(|| format = value).map(|()| options),
                "header" => is_on(value).map(|header| options.header(header)),
                "infer" if value == "off" => Some(options.infer(Infer::Off)),
                "infer" if value == "all" => Some(options.infer(Infer::All)),
                "infer" => natural(value).map(|most| options.infer(Infer::First(most))),
                "null" => bytes(value).map(|null| nulls.push(null)).map(|()| options),
                "special_numbers" => is_on(value).map(|special| options.special_numbers(special)),
                "decimals" => is_on(value).map(|decimals| options.decimals(decimals)),
                "duplicates" => match value {
                    "error" => Some(options.duplicates(Duplicates::Error)),
                    "first" => Some(options.duplicates(Duplicates::First)),
                    "last" => Some(options.duplicates(Duplicates::Last)),
                    _ => None,
                },
                "ragged" => match value {
                    "error" => Some(options.ragged(CsvRagged::Error)),
                    "pad" => Some(options.ragged(CsvRagged::Pad)),
                    "collect" => Some(options.ragged(CsvRagged::Collect)),
                    _ => None,
                },
                "on_bad" => match value {
                    "stop" => Some(options.on_bad(OnBad::Stop)),
                    "skip" => Some(options.on_bad(OnBad::Skip)),
                    _ => None,
                },
                "threads" => natural(value).map(|threads| options.threads(threads)),
                _ if OF_CSV.contains(&name) => {
                    dialect.push(option);
                    Some(options)
                }
                _ => None,
            };
            options = with.ok_or_else(refused)?;
        }
        if !["csv", "tsv"].contains(&format) && !dialect.is_empty() {
            return Err(Error::new(ErrorKind::InvalidOption)
                .with_found(format!("{:?} for format={format}", dialect[0]))
                .with_expected("format=csv or format=tsv"));
        }
        if format == "tsv" {
            dialect.insert(0, "delimiter=09");
        }
        let records = match format {
            "lines" => Records::Lines,
            "jsonl" => Records::JsonLines,
            "json" => Records::JsonElements,
            _ => Records::Csv(Box::new(Csv::with(dialect.join(" ").parse()?)?)),
        };
        Ok(Described { records, options: options.nulls(nulls) })
    }
}

fn is_on(value: &str) -> Option<bool> {
    match value {
        "on" => Some(true),
        "off" => Some(false),
        _ => None,
    }
}

fn natural(value: &str) -> Option<usize> {
    value.parse().ok().filter(|&number| number > 0 && !value.starts_with('+'))
}

/// Replaces `%` and two digits by a byte.
fn bytes(value: &str) -> Option<Vec<u8>> {
    let mut parts = value.split('%');
    let mut bytes = parts.next()?.as_bytes().to_vec();
    for part in parts {
        let digits = part.get(..2).filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()))?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        bytes.extend_from_slice(&part.as_bytes()[2..]);
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batches::Batches;
    use millstream::Reader;

    fn schema(options: &str, text: &str) -> String {
        let Described { records, options } = options.parse().unwrap();
        let builder = Reader::builder();
        let is_document = matches!(records, Records::JsonElements);
        let builder = if is_document { builder.json_elements("") } else { builder };
        let reader = builder.memory(text.to_string()).unwrap();
        let batches = Batches::of(reader, records, &options).unwrap();
        let schema = batches.schema().to_json();
        schema
            .replace(r#"{"fields":["#, "")
            .replace("]}", "")
            .replace(r#""name":"#, "")
            .replace(r#","type""#, "")
            .replace('"', "")
    }

    #[test]
    fn each_option_has_an_effect() {
        for (options, text, expected) in [
            ("", "a,b\n1,x\n", "{a:int64},{b:string}"),
            ("format=csv header=on infer=10000", "a,b\n1,x\n", "{a:int64},{b:string}"),
            ("format=tsv", "a\tb\n1\t2.5\n", "{a:int64},{b:float64}"),
            ("format=tsv delimiter=7c", "a\tb|c\n1|2\n", "{a\\tb:int64},{c:int64}"),
            ("delimiter=3b quote=27", "a;b\n1;'2'\n", "{a:int64},{b:int64}"),
            ("format=lines", "a,b\n", "{line:string}"),
            ("header=off", "1,x\n", "{0:int64},{1:string}"),
            ("infer=off", "a\n1\n", "{a:string}"),
            ("infer=1", "a\n1\n2.5\n", "{a:int64}"),
            ("infer=all", "a\n1\n2.5\n", "{a:float64}"),
            ("null=NA null= null=%20%2d", "a\n1\nNA\n -\n2\n", "{a:int64}"),
            ("special_numbers=on", "a\nNaN\n", "{a:float64}"),
            ("decimals=on", "a\n2.5\n", "{a:decimal128(38, 1)}"),
            ("format=jsonl", "{\"a\":1}\n{\"a\":2.5}\n", "{a:float64}"),
            ("format=json", "[{\"a\":1},\n{\"a\":true}]", "{a:json}"),
        ] {
            assert_eq!(schema(options, text), expected, "{options}");
        }
    }

    #[test]
    fn wrong_options_are_refused() {
        for options in [
            "format=ndjson",
            "header",
            "header=",
            "header=yes",
            "infer=0",
            "infer=-1",
            "infer=+1",
            "null=%",
            "null=%0",
            "null=%+1",
            "null=%€",
            "ragged=skip",
            "on_bad=pad",
            "threads=0",
            "delimiter=;",
            "column=a",
            "format=lines delimiter=3b",
            "format=jsonl quote=27",
            "duplicates=skip",
            "delimiter=22",
            "escape=2c",
        ] {
            let error = options.parse::<Described>().expect_err(options);
            assert_eq!(error.kind(), ErrorKind::InvalidOption, "{options}");
        }
        let error = "columns=a".parse::<Described>().unwrap_err();
        assert!(error.to_string().contains("found \"columns=a\" in the options of columns"), "{error}");
    }
}
