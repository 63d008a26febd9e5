//! Splits the records of CSV in a batch into fields.

use std::borrow::Cow;

use millstream_core::frame::{Batch, Csv};

/// The fields of a batch: their contents back to back, and where each one ends.
pub struct Rows {
    /// The dialect, and the trim of its records.
    pub csv: Csv,
    pub contents: Vec<u8>,
    /// The ascending offsets of n fields, n + 1: in bytes, or for text in code units of UTF-16.
    pub offsets: Vec<u32>,
    /// Two numbers for each record: its index in the batch, and the number of fields up to its end.
    pub records: Vec<u32>,
}

impl Rows {
    pub fn new(csv: Csv) -> Rows {
        Rows { csv, contents: Vec::new(), offsets: Vec::new(), records: Vec::new() }
    }

    /// Splits the records; lines that are not records are left out.
    ///
    /// For text, bytes that are not UTF-8 are replaced, as JavaScript does, so that the contents can be decoded together.
    /// If `is_strict`, they end the rows; then the index of their record and the offset of their field in the batch follow
    /// the records, and this returns false.
    pub fn split(&mut self, batch: &Batch<'_>, is_text: bool, is_strict: bool) -> bool {
        let Rows { csv, contents, offsets, records } = self;
        contents.clear();
        records.clear();
        offsets.clear();
        offsets.push(0);
        let mut end = 0;
        for (index, record) in batch.iter().enumerate() {
            if csv.skips(record) {
                continue;
            }
            let mut fields = csv.fields(record);
            while let Some(raw) = fields.next_raw() {
                let field = csv.unquote(raw);
                if is_text {
                    let text = String::from_utf8_lossy(&field);
                    if is_strict && matches!(text, Cow::Owned(_)) {
                        let offset = raw.as_ptr() as usize - batch.bytes().as_ptr() as usize;
                        records.extend([index as u32, offset as u32]);
                        return false;
                    }
                    contents.extend(text.as_bytes());
                    end += if text.is_ascii() { text.len() } else { text.encode_utf16().count() };
                } else {
                    contents.extend(&*field);
                    end += field.len();
                }
                offsets.push(end as u32);
            }
            records.extend([index as u32, offsets.len() as u32 - 1]);
        }
        true
    }
}
