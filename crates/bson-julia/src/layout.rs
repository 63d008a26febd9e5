//! The memory layout of a value in an array, which is C's layout if the parts of the type are known.
//!
//! The types of a file can contain themselves, or expand without limit from few bytes. Therefore layouts are computed
//! from the inside out, without recursion, and only one time for each type. A type that has too many parts for its size
//! gets no layout: its elements are treated as bytes.

use super::known::Known;
use super::node::{Form, Graph, Id, Layout, LayoutId, Node, Params, Parts};
use std::collections::HashMap;

/// The maximum number of parts of an element, in addition to twice its number of bytes. It keeps the output for an
/// array proportional to the size of the array.
const MOST_EMPTY_PARTS: u64 = 64;

/// The parts of a type.
enum Made {
    Scalar(Known, usize),
    Fields(Form, Vec<Id>),
    Unknown,
}

/// The types of the fields of user-defined types, as nodes, by the text of the type.
pub(super) type Described = HashMap<String, Vec<Id>>;

/// A type for whose fields layouts are being computed.
struct Open {
    id: Id,
    form: Form,
    fields: Vec<Id>,
    /// The number of fields that have been computed.
    made: usize,
}

/// Computes the layout of each type one time.
#[derive(Clone, Debug, Default)]
pub(super) struct Layouts {
    made: HashMap<Id, Option<LayoutId>>,
}

impl Layouts {
    /// Returns the layout of this type, or `None` if it is unknown. `described` contains the types that the caller
    /// described.
    pub(super) fn of(&mut self, graph: &mut Graph<'_>, described: &Described, of: Id) -> Option<LayoutId> {
        // The types whose fields are being computed, starting with the outermost.
        let mut open: Vec<Open> = Vec::new();
        let mut next = Some(of).filter(|of| !self.made.contains_key(of));
        loop {
            if let Some(id) = next.take() {
                let layout = match made_of(graph, described, id) {
                    Made::Fields(form, fields) => {
                        open.push(Open { id, form, fields, made: 0 });
                        continue;
                    }
                    Made::Scalar(known, size) => {
                        let align = alignment(size);
                        Some(Layout { of: id, size, align, count: 1, parts: Parts::Scalar(known) })
                    }
                    Made::Unknown => None,
                };
                let layout = layout.map(|layout| add(graph, layout));
                self.made.insert(id, layout);
            }
            let Some(mut top) = open.pop() else { return self.made[&of] };
            while top.fields.get(top.made).is_some_and(|field| self.made.contains_key(field)) {
                top.made += 1;
            }
            let is_open = |field: Id| field == top.id || open.iter().any(|open| open.id == field);
            let layout = match top.fields.get(top.made).copied() {
                // A type that contains itself has no layout.
                Some(field) if is_open(field) || open.len() as u64 > MOST_EMPTY_PARTS => None,
                Some(field) => {
                    open.push(top);
                    next = Some(field);
                    continue;
                }
                None => self.with_fields(graph, top.id, top.form, &top.fields),
            };
            let layout = layout.map(|layout| add(graph, layout));
            self.made.insert(top.id, layout);
        }
    }

    /// Computes the layout of a type from the layouts of its fields.
    fn with_fields(&self, graph: &Graph<'_>, of: Id, form: Form, fields: &[Id]) -> Option<Layout> {
        let (mut size, mut align, mut count) = (0usize, 1, 1u64);
        let mut parts = Vec::new();
        for field in fields {
            let id = self.made[field]?;
            let layout = &graph.layouts[id.0 as usize];
            let at = size.checked_next_multiple_of(layout.align)?;
            parts.push((at, id));
            size = at.checked_add(layout.size)?;
            align = align.max(layout.align);
            count = count.saturating_add(layout.count);
        }
        let size = size.checked_next_multiple_of(align)?;
        let in_proportion = count <= (size as u64).saturating_mul(2).saturating_add(MOST_EMPTY_PARTS);
        in_proportion.then_some(Layout { of, size, align, count, parts: Parts::Fields(form, parts) })
    }
}

/// Stores a layout in the graph.
pub(super) fn add(graph: &mut Graph<'_>, layout: Layout) -> LayoutId {
    graph.layouts.push(layout);
    LayoutId((graph.layouts.len() - 1) as u32)
}

/// Julia aligns no number to more than 8 bytes (observed on 1.5.3: `sizeof(Tuple{Int8,Int128})` is 24).
fn alignment(size: usize) -> usize {
    size.clamp(1, 8)
}

fn made_of(graph: &Graph<'_>, described: &Described, id: Id) -> Made {
    let Some(node) = graph.data_type(id) else { return Made::Unknown };
    let Params::List(params) = &node.params else { return Made::Unknown };
    if let Some(size) = node.known.scalar_size() {
        return Made::Scalar(node.known, size);
    }
    let twice = |form| match params[..] {
        [of] => Made::Fields(form, vec![of, of]),
        _ => Made::Unknown,
    };
    match node.known {
        Known::Complex => twice(Form::Complex),
        Known::Rational => twice(Form::Rational),
        Known::UnitRange => twice(Form::UnitRange),
        Known::Pair if params.len() == 2 => Made::Fields(Form::Pair, params.clone()),
        Known::Tuple => Made::Fields(Form::Tuple, params.clone()),
        Known::NamedTuple => match named_tuple(graph, params) {
            Some((names, types)) if names.len() == types.len() => Made::Fields(Form::NamedTuple, types.to_vec()),
            _ => Made::Unknown,
        },
        Known::Other if !described.is_empty() => match described.get(&graph.type_text(id)) {
            Some(fields) => Made::Fields(Form::Plain, fields.clone()),
            None => Made::Unknown,
        },
        _ => Made::Unknown,
    }
}

/// Returns the names and types of a NamedTuple's fields, from its parameters.
pub(super) fn named_tuple<'g>(graph: &'g Graph<'_>, params: &'g [Id]) -> Option<(&'g [Id], &'g [Id])> {
    let &[names, types] = params else { return None };
    let Node::Tuple(names) = graph.node(names) else { return None };
    if !names.iter().all(|name| matches!(graph.node(*name), Node::Symbol(_))) {
        return None;
    }
    let types = graph.data_type(types).filter(|types| types.known == Known::Tuple)?;
    Some((names, types.params.list()))
}
