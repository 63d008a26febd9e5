//! The table of types. A new type is a row here; `CONTRIBUTING.md` lists what else it needs.

/// Creates the table of types: byte, Rust name, MongoDB's alias, and layout of the payload.
macro_rules! element_types {
    ($($(#[doc = $doc:literal])* $byte:literal $kind:ident $name:literal $layout:expr;)*) => {
        /// The types that a value can have, with the byte of each.
        ///
        /// ```
        /// use millstream::bson::ElementType;
        /// assert_eq!(ElementType::from_byte(0x12), Some(ElementType::Int64));
        /// assert_eq!(ElementType::Int64.name(), "long");
        /// ```
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum ElementType {
            $($(#[doc = $doc])* $kind = $byte,)*
        }

        impl ElementType {
            /// Every type, in the order of the specification.
            pub const ALL: &'static [ElementType] = &[$(ElementType::$kind),*];

            /// The type of this byte; 0 ends a document and is not a type.
            #[inline(always)] // one or two comparisons; otherwise the compiler generates a call for each value
            pub const fn from_byte(byte: u8) -> Option<ElementType> {
                match byte {
                    $($byte => Some(ElementType::$kind),)*
                    _ => None,
                }
            }

            /// The name of the type: MongoDB's alias for `$type`.
            pub const fn name(self) -> &'static str {
                match self {
                    $(ElementType::$kind => $name,)*
                }
            }

            /// How its payload is laid out.
            ///
            /// ```
            /// use millstream::bson::{ElementType, Layout};
            /// assert_eq!(ElementType::Int64.layout(), Layout::Fixed(8));
            /// assert_eq!(ElementType::Symbol.layout(), Layout::Text);
            /// ```
            #[inline(always)] // as `from_byte`
            pub const fn layout(self) -> Layout {
                match self {
                    $(ElementType::$kind => $layout,)*
                }
            }

            /// The name by which a value of this type identifies itself to this crate's serializer.
            #[allow(unreachable_patterns)] // two have another name than the alias
            pub(crate) const fn marker(self) -> &'static str {
                match self {
                    ElementType::Document => "$millstream::bson::document",
                    ElementType::Binary => "$millstream::bson::binary",
                    $(ElementType::$kind => concat!("$millstream::bson::", $name),)*
                }
            }

            /// The type with this [`marker`](ElementType::marker).
            #[inline]
            pub(crate) fn from_marker(marker: &str) -> Option<ElementType> {
                match marker.strip_prefix("$millstream::bson::")? {
                    "document" => Some(ElementType::Document),
                    "binary" => Some(ElementType::Binary),
                    $($name => Some(ElementType::$kind),)*
                    _ => None,
                }
            }
        }

        /// Finds the type of a value of an enum; the enum's variants must have the names of the types.
        macro_rules! kind_of {
            ($value:expr, $of:ident) => {
                match $value {
                    $($of::$kind { .. } => ElementType::$kind,)*
                }
            };
        }
        pub(crate) use kind_of;
    };
}

/// How the bytes of a payload are laid out. All numbers have their lowest byte first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// A fixed number of bytes.
    Fixed(usize),
    /// One byte, 0 or 1.
    Bool,
    /// A length of 4 bytes, which counts a NUL at the end, and text.
    Text,
    /// A length of 4 bytes, which counts itself, and members.
    Document,
    /// A length of 4 bytes, a subtype, and bytes.
    Binary,
    /// Two texts, each ended by a NUL.
    TwoCStrings,
    /// Text as in [`Text`](Layout::Text), and an object id.
    TextAndId,
    /// A length of 4 bytes, which counts itself, text as in [`Text`](Layout::Text), and a document.
    TextAndDocument,
}

element_types! {
    /// A 64-bit floating point number.
    0x01 Double "double" Layout::Fixed(8);
    /// UTF-8 text.
    0x02 String "string" Layout::Text;
    /// A document.
    0x03 Document "object" Layout::Document;
    /// An array: a document whose keys are "0", "1", ….
    0x04 Array "array" Layout::Document;
    /// Bytes with a subtype.
    0x05 Binary "binData" Layout::Binary;
    /// No value (deprecated).
    0x06 Undefined "undefined" Layout::Fixed(0);
    /// A 12-byte object id.
    0x07 ObjectId "objectId" Layout::Fixed(12);
    /// True or false.
    0x08 Bool "bool" Layout::Bool;
    /// Milliseconds since 1970, UTC.
    0x09 DateTime "date" Layout::Fixed(8);
    /// No value.
    0x0a Null "null" Layout::Fixed(0);
    /// A regular expression and its options.
    0x0b Regex "regex" Layout::TwoCStrings;
    /// A namespace and an object id (deprecated).
    0x0c DbPointer "dbPointer" Layout::TextAndId;
    /// JavaScript.
    0x0d Code "javascript" Layout::Text;
    /// A symbol (deprecated).
    0x0e Symbol "symbol" Layout::Text;
    /// JavaScript and the document it runs with (deprecated).
    0x0f CodeWithScope "javascriptWithScope" Layout::TextAndDocument;
    /// A 32-bit integer.
    0x10 Int32 "int" Layout::Fixed(4);
    /// MongoDB's internal timestamp.
    0x11 Timestamp "timestamp" Layout::Fixed(8);
    /// A 64-bit integer.
    0x12 Int64 "long" Layout::Fixed(8);
    /// A 128-bit decimal floating point number.
    0x13 Decimal128 "decimal" Layout::Fixed(16);
    /// Compares higher than everything.
    0x7f MaxKey "maxKey" Layout::Fixed(0);
    /// Compares lower than everything.
    0xff MinKey "minKey" Layout::Fixed(0);
}

impl std::fmt::Display for ElementType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}
