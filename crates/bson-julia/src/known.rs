//! The types that this crate knows by their full names; every other type is only a name.

use std::borrow::Cow;

/// Creates the table: variant, module, name, and whether Julia shows the name without the module.
macro_rules! known {
    ($($kind:ident $module:literal $name:literal $plain:literal;)*) => {
        /// A type that this crate knows, or `Other`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Known {
            $($kind,)*
            Other,
        }

        impl Known {
            /// Returns the item with this normalised path.
            pub(super) fn of(path: &[Cow<'_, [u8]>]) -> Known {
                let [module, name] = path else { return Known::Other };
                match (module.as_ref(), name.as_ref()) {
                    $((module, name) if module == $module.as_bytes() && name == $name.as_bytes() => Known::$kind,)*
                    _ => Known::Other,
                }
            }

            /// Returns its module and its name, or `None` for `Other`.
            pub(super) const fn path(self) -> Option<[&'static str; 2]> {
                match self {
                    $(Known::$kind => Some([$module, $name]),)*
                    Known::Other => None,
                }
            }

            /// Returns the known type that Julia shows with this text.
            pub(super) fn shown_as(text: &str) -> Option<Known> {
                $(if $plain && text == $name {
                    return Some(Known::$kind);
                })*
                None
            }
        }

        /// Names of `Core` and `Base` that Julia shows without their module.
        const SHOWN_PLAIN: &[[&str; 2]] = &[$([$module, if $plain { $name } else { "" }]),*];
    };
}

known! {
    Bool "Core" "Bool" true;
    Char "Core" "Char" true;
    Int8 "Core" "Int8" true;
    Int16 "Core" "Int16" true;
    Int32 "Core" "Int32" true;
    Int64 "Core" "Int64" true;
    Int128 "Core" "Int128" true;
    UInt8 "Core" "UInt8" true;
    UInt16 "Core" "UInt16" true;
    UInt32 "Core" "UInt32" true;
    UInt64 "Core" "UInt64" true;
    UInt128 "Core" "UInt128" true;
    Float16 "Core" "Float16" true;
    Float32 "Core" "Float32" true;
    Float64 "Core" "Float64" true;
    Nothing "Core" "Nothing" true;
    Missing "Base" "Missing" true;
    Any "Core" "Any" true;
    Array "Core" "Array" true;
    String "Core" "String" true;
    Symbol "Core" "Symbol" true;
    Tuple "Core" "Tuple" true;
    NamedTuple "Core" "NamedTuple" true;
    Union "Core" "Union" true;
    TypeVar "Core" "TypeVar" true;
    TypeName "Core" "TypeName" false;
    BitArray "Base" "BitArray" true;
    Complex "Base" "Complex" true;
    Rational "Base" "Rational" true;
    Pair "Base" "Pair" true;
    Dict "Base" "Dict" true;
    IdDict "Base" "IdDict" true;
    Set "Base" "Set" true;
    RefValue "Base" "RefValue" false;
    UnitRange "Base" "UnitRange" true;
    Undef "BSON" "Undef" false;
}

/// Other names of this kind, which this crate does not know as types.
const ALSO_SHOWN_PLAIN: &[&str] = &[
    "AbstractArray",
    "AbstractChar",
    "AbstractDict",
    "AbstractFloat",
    "AbstractSet",
    "AbstractString",
    "DataType",
    "Function",
    "Integer",
    "IO",
    "Method",
    "Module",
    "Number",
    "Real",
    "Ref",
    "Regex",
    "Signed",
    "Some",
    "StepRange",
    "StepRangeLen",
    "SubArray",
    "SubString",
    "Type",
    "UnionAll",
    "Unsigned",
    "VersionNumber",
];

/// Returns whether Julia shows this name of `Core` or `Base` without the module.
pub(super) fn shown_plain(module: &[u8], name: &[u8]) -> bool {
    matches!(module, b"Core" | b"Base")
        && (SHOWN_PLAIN.iter().any(|[of, plain]| of.as_bytes() == module && plain.as_bytes() == name)
            || ALSO_SHOWN_PLAIN.iter().any(|plain| plain.as_bytes() == name))
}

impl Known {
    /// Returns the size in memory of a value of this type, if the type is the type of a [`Scalar`](super::Scalar).
    pub(super) const fn scalar_size(self) -> Option<usize> {
        Some(match self {
            Known::Nothing | Known::Missing => 0,
            Known::Bool | Known::Int8 | Known::UInt8 => 1,
            Known::Int16 | Known::UInt16 | Known::Float16 => 2,
            Known::Char | Known::Int32 | Known::UInt32 | Known::Float32 => 4,
            Known::Int64 | Known::UInt64 | Known::Float64 => 8,
            Known::Int128 | Known::UInt128 => 16,
            _ => return None,
        })
    }
}
