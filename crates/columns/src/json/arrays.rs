//! The arrays of the values of a block.

use super::text::Text;
use super::tree::{Kind, Members, Node};
use crate::build::{self, How, Misfit, Texts};
use crate::span::{Content, Span};
use arrow_array::{ArrayRef, ListArray, StructArray};
use arrow_buffer::{NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{DataType, FieldRef};
use millstream::{ErrorKind, Result};
use std::sync::Arc;

/// The texts of a column.
struct Column<'a> {
    text: &'a Text<'a>,
    spans: &'a [Span],
}

impl Texts for Column<'_> {
    fn len(&self) -> usize {
        self.spans.len()
    }

    #[inline]
    fn get(&self, row: usize) -> Option<Content<'_>> {
        self.text.get(self.spans[row])
    }

    fn byte_len(&self) -> usize {
        self.spans.iter().map(|span| span.len()).sum()
    }
}

/// A text that does not fit the type of its column.
pub(super) struct Unfit {
    pub(super) row: usize,
    pub(super) span: Span,
    pub(super) kind: ErrorKind,
    pub(super) field: FieldRef,
    /// The names and positions of the values around it, innermost first.
    pub(super) path: Vec<String>,
}

/// Returns the array of a column. If a text does not fit, it is added to `unfit`, and there is no array.
fn array(node: &Node, text: &Text<'_>, how: How, unfit: &mut Vec<Unfit>) -> Result<Option<ArrayRef>> {
    let nulls = |valid: &[bool]| Some(NullBuffer::from(valid)).filter(|nulls| nulls.null_count() > 0);
    match &node.kind {
        Kind::Plain(plain) => {
            let column = Column { text, spans: &plain.spans };
            let (array, misfits) = build::array(&column, node.field.data_type(), how)?;
            unfit.extend(misfits.iter().map(|&Misfit { row, kind }| Unfit {
                row,
                span: plain.spans[row],
                kind,
                field: node.field.clone(),
                path: Vec::new(),
            }));
            Ok(misfits.is_empty().then_some(array))
        }
        Kind::Struct(members) => {
            let Some(arrays) = arrays(members, text, how, unfit)? else { return Ok(None) };
            let DataType::Struct(fields) = node.field.data_type() else { return Ok(None) };
            let (nulls, rows) = (nulls(&members.valid), members.valid.len());
            let array = StructArray::try_new_with_length(fields.clone(), arrays, nulls, rows);
            Ok(Some(Arc::new(array.map_err(build::refused)?)))
        }
        Kind::List(items) => {
            let first = unfit.len();
            let Some(values) = array(&items.item, text, how, unfit)? else {
                for misfit in &mut unfit[first..] {
                    let row = items.offsets.partition_point(|&start| start as usize <= misfit.row) - 1;
                    misfit.path.push((misfit.row - items.offsets[row] as usize).to_string());
                    misfit.row = row;
                }
                return Ok(None);
            };
            let DataType::List(field) = node.field.data_type() else { return Ok(None) };
            let offsets = OffsetBuffer::new(ScalarBuffer::from(items.offsets.clone()));
            let array = ListArray::try_new(field.clone(), offsets, values, nulls(&items.valid));
            Ok(Some(Arc::new(array.map_err(build::refused)?)))
        }
    }
}

/// Returns the arrays of all members.
pub(super) fn arrays(
    members: &Members,
    text: &Text<'_>,
    how: How,
    unfit: &mut Vec<Unfit>,
) -> Result<Option<Vec<ArrayRef>>> {
    let mut all = Vec::with_capacity(members.nodes.len());
    for node in &members.nodes {
        let first = unfit.len();
        let array = array(node, text, how, unfit)?;
        unfit[first..].iter_mut().for_each(|misfit| misfit.path.push(node.field.name().clone()));
        all.extend(array);
    }
    Ok((all.len() == members.nodes.len()).then_some(all))
}
