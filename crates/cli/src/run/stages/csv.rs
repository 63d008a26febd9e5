//! `fields` of records of CSV.

use std::sync::{Arc, Mutex, PoisonError};

use millstream::frame::{Csv, CsvRagged};
use millstream::{Error, ErrorKind, Result};

use super::text::{Fields, TO_THE_LAST, last_needed};

/// Selects fields of records. They are written as they are in the file, so that their quotes stay.
pub(super) struct Select {
    csv: Csv,
    list: Fields,
    /// The number of fields of the header, if there is one.
    width: Option<usize>,
    ragged: CsvRagged,
}

impl Select {
    pub(super) fn new(csv: Csv, list: Fields, width: Option<usize>, ragged: CsvRagged) -> Select {
        Select { csv, list, width, ragged }
    }

    /// Returns the names of the selected fields.
    pub(super) fn names(&self, names: &[Vec<u8>]) -> Vec<Vec<u8>> {
        self.list
            .0
            .iter()
            .flat_map(|range| names.get(range.clone()).unwrap_or(&names[*range.start()..]))
            .cloned()
            .collect()
    }

    /// Appends the selected fields of a record, which has no line end, to `out`.
    ///
    /// # Errors
    /// Returns [`ErrorKind::FieldCountMismatch`] for a record with more fields than the header, unless they are kept, and
    /// for one without all of the fields, unless missing fields are empty, and [`ErrorKind::CsvInvalid`] for one that the dialect cannot represent.
    pub(super) fn write(&self, record: &[u8], out: &mut Vec<u8>) -> Result<()> {
        let (line, mut first) = (out.len(), None);
        let mut add = |raw: &[u8]| {
            match first {
                None => first = Some(raw.len()),
                Some(_) => out.push(self.csv.delimiter()),
            }
            out.extend_from_slice(raw);
        };
        let (mut ranges, mut fields) = (self.list.0.iter().peekable(), self.csv.fields(record));
        let mut count = 0;
        while let Some(raw) = fields.next_raw() {
            match ranges.peek() {
                Some(range) if range.contains(&count) => {
                    add(raw);
                    if *range.end() == count {
                        ranges.next();
                    }
                }
                None if self.width.is_none() => return self.checked(line, first, out),
                _ => {}
            }
            count += 1;
        }
        self.check(count)?;
        for range in ranges {
            let end = if *range.end() == TO_THE_LAST { self.width.unwrap_or(0) } else { range.end() + 1 };
            (count.max(*range.start())..end).for_each(|_| add(b""));
        }
        self.checked(line, first, out)
    }

    /// Quotes the first field of a line if the line would not be the same record otherwise.
    fn checked(&self, line: usize, first: Option<usize>, out: &mut Vec<u8>) -> Result<()> {
        if !self.csv.needs_quotes_at_start(&out[line..]) {
            return Ok(());
        }
        let field = line..line + first.unwrap_or(0);
        let content = self.csv.unquote(&out[field.clone()]).into_owned();
        let Some(quoted) = self.csv.quote(&content) else {
            return Err(Error::new(ErrorKind::CsvInvalid)
                .with_found(format!("'{}' as the first of the selected fields", content.escape_ascii()))
                .with_expected("a dialect with quotes: without them the line would not be a record"));
        };
        out.splice(field, quoted);
        Ok(())
    }

    /// Checks the number of fields of a record.
    fn check(&self, count: usize) -> Result<()> {
        match self.width {
            Some(width) => self.ragged.check(count, width, "the header"),
            None => self.ragged.check_at_least(count, self.list.0.last().map_or(0, |range| last_needed(range) + 1)),
        }
    }
}

/// The order of the fields of the current source, if it is not that of the first source: where each field is.
pub(in crate::run) type Order = Arc<Mutex<Option<Vec<usize>>>>;

/// Writes the fields of records in the order of the first source.
pub(super) struct Reorder {
    select: Select,
    order: Order,
}

impl Reorder {
    pub(super) fn new(csv: Csv, width: usize, ragged: CsvRagged, order: Order) -> Reorder {
        Reorder { select: Select::new(csv, Fields(Vec::new()), Some(width), ragged), order }
    }

    /// Appends the fields of a record, which has no line end, to `out`.
    ///
    /// # Errors
    /// Returns the errors of [`Select::write`].
    pub(super) fn write(&self, record: &[u8], out: &mut Vec<u8>) -> Result<()> {
        let order = self.order.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(order) = &*order else {
            out.extend_from_slice(record);
            return Ok(());
        };
        let mut raw = Vec::with_capacity(order.len());
        let mut fields = self.select.csv.fields(record);
        while let Some(field) = fields.next_raw() {
            raw.push(field);
        }
        self.select.check(raw.len())?;
        let (line, mut first) = (out.len(), None);
        // Fields without a name follow those of the header.
        for i in order.iter().copied().chain(order.len()..raw.len()) {
            let field = raw.get(i).copied().unwrap_or_default();
            match first {
                None => first = Some(field.len()),
                Some(_) => out.push(self.select.csv.delimiter()),
            }
            out.extend_from_slice(field);
        }
        self.select.checked(line, first, out)
    }
}

#[cfg(test)]
mod tests {
    use millstream::frame::CsvDialect;

    use super::*;
    use crate::run::stages::text::{StageText, Work};

    fn select(dialect: CsvDialect, list: &str, names: Option<&str>, ragged: CsvRagged) -> Select {
        let csv = Csv::with(dialect).unwrap();
        let names: Option<Vec<_>> =
            names.map(|names| csv.fields(names.as_bytes()).map(|name| name.into_owned()).collect());
        let Work::Fields { list, .. } = StageText::parse(&format!("fields:{list}")).unwrap().work else { panic!() };
        let list = Fields::of(&list, names.as_deref()).unwrap();
        Select::new(csv, list, names.map(|names| names.len()), ragged)
    }

    fn selected(select: &Select, record: &str) -> String {
        let mut out = b"before".to_vec();
        match select.write(record.as_bytes(), &mut out) {
            Ok(()) => String::from_utf8(out.split_off(6)).unwrap(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn fields_are_written_as_they_are() {
        let csv = CsvDialect::new();
        for (list, names, record, expected) in [
            ("2", None, "a,\"b,\"\"\nc\",d", "\"b,\"\"\nc\""),
            ("3,1", None, "a,b,c,d", "a,c"),
            ("2-", None, "a,b,c", "b,c"),
            ("-2,4-", None, "a,b,c,d,e", "a,b,d,e"),
            ("c,a", Some("a,b,c"), "1,2,3", "1,3"),
            ("\"b,:\"", Some("a,\"b,:\""), "1,2", "2"),
            ("b,1", Some("a,b"), ",", ","),
            ("2", None, "a,,b", "\"\""),
            ("1", None, "\u{feff}a,b", "a"),
            ("2", None, "a,\u{feff}b", "\"\u{feff}b\""),
        ] {
            assert_eq!(selected(&select(csv, list, names, CsvRagged::Error), record), expected, "{list}");
            assert_eq!(selected(&select(csv, list, names, CsvRagged::Pad), record), expected, "{list}");
        }
        let comments = csv.comment(Some(b'#')).stray_quotes(millstream::frame::CsvStrayQuotes::Literal);
        assert_eq!(selected(&select(comments, "2-", None, CsvRagged::Error), "a,#b\"c,d"), "\"#b\"\"c\",d");
        let bare = csv.quote(None);
        assert!(selected(&select(bare, "2", None, CsvRagged::Error), "a,,b").contains("a dialect with quotes"));
    }

    #[test]
    fn a_record_with_another_number_of_fields_is_an_error_or_padded() {
        let csv = CsvDialect::new();
        for (list, names, record, error, padded) in [
            ("3", None, "a,b", "found 2 fields, expected at least 3", "\"\""),
            ("2-", None, "a", "found 1 field, expected at least 2", "\"\""),
            ("1-4", None, "a,b", "found 2 fields, expected at least 4", "a,b,,"),
            ("a", Some("a,b"), "1", "found 1 field, expected 2, as in the header", "1"),
            ("1-", Some("a,b,c"), "1", "found 1 field, expected 3, as in the header", "1,,"),
        ] {
            assert!(selected(&select(csv, list, names, CsvRagged::Error), record).contains(error), "{list} {record}");
            assert_eq!(selected(&select(csv, list, names, CsvRagged::Pad), record), padded, "{list} {record}");
        }
        // No field is dropped silently.
        for ragged in [CsvRagged::Error, CsvRagged::Pad] {
            for (list, record, found) in [("a", "1,2,3", 3), ("1-", "1,2,", 3), ("b", "1,2,3,4", 4)] {
                let error = selected(&select(csv, list, Some("a,b"), ragged), record);
                let expected = format!("found {found} fields, expected 2, as in the header");
                assert!(error.contains(&expected), "{ragged:?} {list} {record}: {error}");
            }
        }
    }

    #[test]
    fn names_are_those_of_the_header() {
        let names = [b"a".to_vec(), b"b".to_vec(), b"a".to_vec()];
        let of = |list: &str| {
            let Work::Fields { list, .. } = StageText::parse(&format!("fields:{list}")).unwrap().work else { panic!() };
            Fields::of(&list, Some(&names)).map_err(|error| error.to_string())
        };
        assert_eq!(of("b,3-"), Ok(Fields(vec![1..=TO_THE_LAST])));
        for (list, error) in [
            ("c", "no field \"c\""),
            ("a", "more than one field \"a\""),
            ("4", "field 4 of a header with 3 fields"),
            ("2-4", "field 4"),
            ("4-", "field 4"),
        ] {
            let found = of(list).unwrap_err();
            assert!(found.contains(error) && found.contains("a,b,a"), "{list}: {found}");
        }
    }
}
