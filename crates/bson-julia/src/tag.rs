//! The documents that have a special meaning, which have a known `tag` and exactly its fields.

use millstream_bson::{Cursor, ElementType, FromBson};
use millstream_core::Result;

/// Creates the table of tags: variant, tag, and fields.
macro_rules! tags {
    ($($kind:ident $name:literal $($field:ident)*;)*) => {
        /// The meaning of a tagged document.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum Tag {
            $($kind,)*
        }

        impl Tag {
            pub(super) const fn name(self) -> &'static str {
                match self {
                    $(Tag::$kind => $name,)*
                }
            }

            fn of(tag: &[u8], fields: u16) -> Option<Tag> {
                $(if tag == $name.as_bytes() && fields == 0 $(| 1 << Field::$field as u16)* {
                    return Some(Tag::$kind);
                })*
                None
            }
        }
    };
}

tags! {
    Symbol "symbol" Name;
    Tuple "tuple" Data;
    SimpleVector "svec" Data;
    DataType "datatype" Name Params;
    Bottom "jl_bottom_type";
    UnionAll "unionall" Var Body;
    Struct "struct" Type Data;
    Array "array" Type Size Data;
    Ref "ref" Path;
    Backref "backref" Ref;
    Anonymous "jl_anonymous" TypeName Params;
}

/// The fields of tagged documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Field {
    Name,
    Data,
    Params,
    Var,
    Body,
    Type,
    Size,
    Path,
    Ref,
    TypeName,
}

const FIELDS: [(&[u8], Field); 10] = [
    (b"name", Field::Name),
    (b"data", Field::Data),
    (b"params", Field::Params),
    (b"var", Field::Var),
    (b"body", Field::Body),
    (b"type", Field::Type),
    (b"size", Field::Size),
    (b"path", Field::Path),
    (b"ref", Field::Ref),
    (b"typename", Field::TypeName),
];

/// No tag has more than three other fields.
const MOST_FIELDS: usize = 3;

/// A field's type, and the position of its payload.
#[derive(Clone, Copy, Debug)]
pub(super) struct Payload {
    pub(super) kind: ElementType,
    pub(super) at: usize,
}

/// Accepts any value, which is located but not read.
impl FromBson<'_> for Payload {
    fn from_bson(kind: ElementType, cursor: &mut Cursor<'_>) -> Result<Payload> {
        let at = cursor.offset();
        cursor.skip(kind)?;
        Ok(Payload { kind, at })
    }
}

/// A tagged document.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tagged {
    pub(super) tag: Tag,
    fields: [(Field, Payload); MOST_FIELDS],
    count: usize,
}

impl Tagged {
    /// Returns a field that the tag has.
    pub(super) fn field(&self, field: Field) -> Payload {
        let found = self.fields[..self.count].iter().find(|(name, _)| *name == field);
        found.map(|(_, payload)| *payload).expect("the tag has this field")
    }
}

/// The key of the root that contains the shared objects. It is not part of the root's value.
pub(super) const BACKREFS: &[u8] = b"_backrefs";

/// Returns the meaning of a document, or `None` for a plain document. The cursor is at the document's first member.
pub(super) fn tagged(mut cursor: Cursor<'_>, is_root: bool) -> Result<Option<Tagged>> {
    let nothing = Payload { kind: ElementType::Null, at: 0 };
    let mut fields = [(Field::Name, nothing); MOST_FIELDS];
    let (mut count, mut seen, mut tag) = (0, 0u16, None);
    while let Some((kind, key)) = cursor.next()? {
        let payload = Payload { kind, at: cursor.offset() };
        if key == b"tag" && kind == ElementType::String && tag.is_none() {
            tag = Some(cursor.string_bytes()?);
            continue;
        }
        cursor.skip(kind)?;
        if is_root && key == BACKREFS {
            continue;
        }
        let Some(&(_, field)) = FIELDS.iter().find(|(name, _)| *name == key) else { return Ok(None) };
        if seen & 1 << field as u16 != 0 || count == MOST_FIELDS {
            return Ok(None);
        }
        seen |= 1 << field as u16;
        fields[count] = (field, payload);
        count += 1;
    }
    Ok(tag.and_then(|tag| Tag::of(tag, seen)).map(|tag| Tagged { tag, fields, count }))
}

/// Returns whether a plain document with these members would be interpreted as a tagged one. `members` contains the
/// keys, and the values that are strings.
pub(super) fn looks_tagged<'k>(members: impl Iterator<Item = (&'k [u8], Option<&'k [u8]>)>) -> bool {
    let (mut seen, mut tag) = (0u16, None);
    for (key, text) in members {
        match (key, text) {
            (b"tag", Some(text)) if tag.is_none() => tag = Some(text),
            _ => match FIELDS.iter().find(|(name, _)| *name == key) {
                Some(&(_, field)) if seen & 1 << field as u16 == 0 => seen |= 1 << field as u16,
                _ => return false,
            },
        }
    }
    tag.is_some_and(|tag| Tag::of(tag, seen).is_some())
}
