//! Determines which part of a record is its content.

use millstream::frame::{Csv, Framer, Trim};

/// The rule that decides which bytes of a record a stage gets. The other bytes stay unchanged: if a record has a
/// carriage return and a line feed, or no line end, so does the written record.
#[derive(Clone, Debug)]
pub(super) struct Content {
    trim: Trim,
    terminator: Vec<u8>,
    /// The framer, if the records are those of CSV.
    csv: Option<Csv>,
}

/// A record, split into its parts.
pub(super) struct Parts<'a> {
    /// A length prefix.
    pub(super) head: &'a [u8],
    pub(super) content: &'a [u8],
    /// The bytes that end the record.
    pub(super) tail: &'a [u8],
}

impl Content {
    /// Returns the rule for the records that `framer` finds.
    pub(super) fn of(framer: &dyn Framer) -> Content {
        Content { trim: framer.trim(), terminator: framer.terminator().to_vec(), csv: None }
    }

    /// Returns the rule for records of CSV.
    pub(super) fn of_csv(csv: &Csv) -> Content {
        Content { csv: Some(csv.clone()), ..Content::of(csv) }
    }

    /// Returns the terminator of a record, which is empty if records are not found by one.
    pub(super) fn terminator(&self) -> &[u8] {
        &self.terminator
    }

    /// Returns whether the record has its terminator. Only the last record of a source may lack it.
    #[inline]
    pub(super) fn is_terminated(&self, record: &[u8]) -> bool {
        let is_cr = || self.csv.is_some() && self.trim.carriage_return && record.ends_with(b"\r");
        record.ends_with(&self.terminator) || is_cr()
    }

    #[inline]
    pub(super) fn get<'a>(&self, record: &'a [u8]) -> &'a [u8] {
        self.trim.apply(record, self.is_terminated(record))
    }

    #[inline]
    pub(super) fn split<'a>(&self, record: &'a [u8]) -> Parts<'a> {
        let content = self.get(record);
        let (head, rest) = record.split_at((self.trim.head as usize).min(record.len() - content.len()));
        Parts { head, content, tail: &rest[content.len()..] }
    }
}

#[cfg(test)]
mod tests {
    use millstream::frame::{Bson, Delimiter, Lines};

    use super::*;

    #[test]
    fn parts_are_the_whole() {
        type Case = (Box<dyn Framer>, [(&'static [u8], &'static [u8]); 5]);
        let lines: Case =
            (Box::new(Lines::new()), [(b"a\r\n", b"a"), (b"a\n", b"a"), (b"a\r", b"a\r"), (b"a", b"a"), (b"\n", b"")]);
        let words: Case = (
            Box::new(Delimiter::bytes(b"--".as_slice()).unwrap()),
            [(b"a--", b"a"), (b"a-", b"a-"), (b"--", b""), (b"", b""), (b"a\n", b"a\n")],
        );
        for (framer, cases) in [lines, words] {
            let content = Content::of(&*framer);
            for (record, expected) in cases {
                let parts = content.split(record);
                assert_eq!(parts.content, expected);
                assert_eq!([parts.head, parts.content, parts.tail].concat(), record);
            }
        }
        assert!(Content::of(&Bson::new()).is_terminated(b"any"));
    }
}
