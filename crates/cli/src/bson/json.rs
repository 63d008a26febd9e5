//! Writes Extended JSON: long text in pieces, and without control characters.

use millstream::bson::{Array, Document, Element, ElementType, Json};
use millstream::{Result, Writer};

use crate::escape::{make_visible, visible};

/// Longer documents are written in pieces, because their text can be many times as long.
const LONG: usize = 64 << 10;

/// The style of printed JSON.
#[derive(Clone, Copy)]
pub(super) struct Style {
    pub(super) json: Json,
    /// Whether it is printed on a terminal.
    pub(super) is_seen: bool,
}

impl Style {
    /// Writes a document on a line, or no line if it is invalid. `line` is scratch memory.
    pub(super) fn write_line(self, document: &Document<'_>, line: &mut Vec<u8>, out: &mut Writer) -> Result<()> {
        if document.len() > LONG {
            document.check()?;
            document.write_json(self.json, |piece| self.write_piece(piece, out))?;
            return out.write(b"\n");
        }
        line.clear();
        document.append_json(line, self.json)?;
        self.end_line(line, out)
    }

    /// Writes a value on a line, or no line if it is invalid.
    pub(super) fn write_value(self, element: &Element<'_>, out: &mut Writer) -> Result<()> {
        if element.payload().len() > LONG {
            match element.kind() {
                ElementType::Document => element.get::<Document>()?.check()?,
                ElementType::Array => element.get::<Array>()?.as_document().check()?,
                _ => {}
            }
            element.write_json(self.json, |piece| self.write_piece(piece, out))?;
            return out.write(b"\n");
        }
        let mut line = Vec::new();
        element.append_json(&mut line, self.json)?;
        self.end_line(&mut line, out)
    }

    fn end_line(self, line: &mut Vec<u8>, out: &mut Writer) -> Result<()> {
        if self.is_seen {
            make_visible(line);
        }
        line.push(b'\n');
        out.write(line)
    }

    fn write_piece(self, piece: &[u8], out: &mut Writer) -> Result<()> {
        match self.is_seen {
            true => out.write(visible(&String::from_utf8_lossy(piece)).as_bytes()),
            false => out.write(piece),
        }
    }
}
