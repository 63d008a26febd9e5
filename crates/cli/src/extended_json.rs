//! Writes Extended JSON: long text in pieces, and without control characters.

use std::io::Write;

use millstream::bson::{Array, Document, Element, ElementType, Json};
use millstream::{Error, Result};

use crate::escape::{make_visible, visible};

/// Longer documents are written in pieces, because their text can be many times as long.
const LONG: usize = 64 << 10;

/// The style of printed JSON.
#[derive(Clone, Copy)]
pub(crate) struct Style {
    pub(crate) json: Json,
    /// Whether it is printed on a terminal.
    pub(crate) is_seen: bool,
}

impl Style {
    /// Writes a document on a line, or no line if it is invalid. `line` is scratch memory.
    pub(crate) fn write_line(self, document: &Document<'_>, line: &mut Vec<u8>, out: &mut impl Write) -> Result<()> {
        if document.len() > LONG {
            document.check()?;
            document.write_json(self.json, |piece| self.write_piece(piece, out))?;
            return out.write_all(b"\n").map_err(Error::from_io);
        }
        line.clear();
        document.append_json(line, self.json)?;
        self.end_line(line, out)
    }

    /// Writes a value on a line, or no line if it is invalid.
    pub(crate) fn write_value(self, element: &Element<'_>, out: &mut impl Write) -> Result<()> {
        if element.payload().len() > LONG {
            match element.kind() {
                ElementType::Document => element.get::<Document>()?.check()?,
                ElementType::Array => element.get::<Array>()?.as_document().check()?,
                _ => {}
            }
            element.write_json(self.json, |piece| self.write_piece(piece, out))?;
            return out.write_all(b"\n").map_err(Error::from_io);
        }
        let mut line = Vec::new();
        element.append_json(&mut line, self.json)?;
        self.end_line(&mut line, out)
    }

    fn end_line(self, line: &mut Vec<u8>, out: &mut impl Write) -> Result<()> {
        if self.is_seen {
            make_visible(line);
        }
        line.push(b'\n');
        out.write_all(line).map_err(Error::from_io)
    }

    fn write_piece(self, piece: &[u8], out: &mut impl Write) -> Result<()> {
        match self.is_seen {
            true => out.write_all(visible(&String::from_utf8_lossy(piece)).as_bytes()),
            false => out.write_all(piece),
        }
        .map_err(Error::from_io)
    }
}
