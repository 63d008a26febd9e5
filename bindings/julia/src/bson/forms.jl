# Defines how the values of a type are built. Invariants that Julia's own constructors enforce are also checked here,
# because values are created without constructors and no file may violate memory safety.

const NO_VALUES, FIELDS, BITS, DICTIONARY, BIT_ARRAY = 0x00, 0x01, 0x02, 0x03, 0x04
const UNION, TYPE_VARIABLE, UNDEFINED, CUSTOM, CHECKED, CODE, INTERNAL = 0x05, 0x06, 0x07, 0x08, 0x09, 0x0a, 0x0b

# Structs of Core that contain only data. All others are internal to Julia and can crash the process.
const PLAIN_CORE = Any[Core.Box, Expr, QuoteNode, LineNumberNode, GlobalRef, Nothing, NamedTuple]

function form_of(r::Reading, @nospecialize(T), at)
    T === Union && return UNION
    T === TypeVar && return TYPE_VARIABLE
    T === Undef && return UNDEFINED
    T isa DataType && isconcretetype(T) || return NO_VALUES
    is_custom(T) && return CUSTOM
    T <: Union{Dict,IdDict} && return DICTIONARY
    T <: BitArray && return BIT_ARRAY
    (T <: Tuple || T <: Array || T === String || T === Symbol || T <: Type) && return INTERNAL
    if startswith(String(T.name.name), '#')
        # The types of functions are found only if the caller allows them.
        return r.ctx.allow_code ? FIELDS : CODE
    end
    isprimitivetype(T) && return T.name.module === Core && !(T <: Union{Number,Char,Ptr}) ? INTERNAL : BITS
    T.name.module === Core && !(T.name.wrapper in PLAIN_CORE || T <: Exception) &&
        return r.ctx.allow_code ? CODE : INTERNAL
    is_checked(T) && return CHECKED
    # A pointer is meaningless in another process, and using it would crash the process.
    (T.name.module === Core || T.name.module === Base) && has_pointer(T) && return INTERNAL
    FIELDS
end

# Whether user code defines how values of this type are created.
is_custom(T) = any(m -> m.module !== @__MODULE__, methods(newstruct!, Tuple{T,Vararg{Any}})) ||
               any(m -> m.module !== @__MODULE__, methods(initstruct, Tuple{Type{T}}))

# Whether its values, or structs in them, have pointer fields.
has_pointer(@nospecialize(T), depth = 8) = T <: Ptr || T isa DataType && isstructtype(T) && isconcretetype(T) && depth > 0 &&
    any(F -> F isa DataType && (F <: Ptr || isbitstype(F) && has_pointer(F, depth - 1)), fieldtypes_of(T))

fieldtypes_of(@nospecialize(T)) = Any[fieldtype(T, i) for i in 1:fieldcount(T)]
