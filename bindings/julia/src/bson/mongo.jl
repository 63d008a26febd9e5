# Converts MongoDB documents to values and back. Every BSON type is read, and written back as the same bytes.
#
# This is independent of the files with Julia values, in which a document represents an object. Here a document is a
# `Map`, and nothing in it is looked up or executed.

using Dates: Dates, DateTime
using Base: UUID

# ---- the types that Julia lacks ----

"""
    ObjectId(text)

MongoDB's identifier of a document, which has 12 bytes. `text` contains 24 hexadecimal digits, like the result of
`string(id)`.

```jldoctest
julia> BSON.ObjectId("6b01e9338c5b33ba5caa77f3")
ObjectId("6b01e9338c5b33ba5caa77f3")
```
"""
struct ObjectId
    bytes::NTuple{12,UInt8}
end

function ObjectId(text::AbstractString)
    ncodeunits(text) == 24 && all(c -> isascii(c) && isxdigit(c), text) ||
        throw(ArgumentError("$(repr(text)) is not an ObjectId: expected 24 hexadecimal digits"))
    ObjectId(Tuple(hex2bytes(String(text))))
end

Base.print(io::IO, id::ObjectId) = print(io, bytes2hex(collect(id.bytes)))
Base.show(io::IO, id::ObjectId) = print(io, "ObjectId(\"", id, "\")")
Base.isless(a::ObjectId, b::ObjectId) = isless(a.bytes, b.bytes)

"""
    Binary(subtype, bytes)

Bytes with a subtype. (Bytes of the default subtype 0 are a `Vector{UInt8}`, and a UUID, subtype 4, is a `Base.UUID`.)
"""
struct Binary
    subtype::UInt8
    bytes::Vector{UInt8}
end

"A regular expression in MongoDB's syntax, with its options."
struct RegularExpression
    pattern::String
    options::String
end

"MongoDB's internal time: seconds since 1970, and a counter within the second."
struct Timestamp
    seconds::UInt32
    increment::UInt32
end

"JavaScript, as text."
struct Code
    text::String
end

"A time outside the range of `DateTime`, in milliseconds since 1970."
struct FarDateTime
    milliseconds::Int64
end

"A value of MongoDB's type symbol (deprecated)."
struct Name
    text::String
end

"A reference to a document in another collection (deprecated)."
struct DBPointer
    collection::String
    id::ObjectId
end

"A value that was not defined (deprecated)."
struct Undefined end

"A value less than every other value."
struct MinKey end

"A value greater than every other value."
struct MaxKey end

"""
    Map(pairs...)

A document: values with `String` keys, in the order of the document. For duplicate keys, `map[key]` and `get` find the
first; iteration returns all.

```jldoctest
julia> map = BSON.decode(BSON.encode(BSON.Map("a" => 1, "b" => [true, nothing])));

julia> map["b"]
2-element Array{Any,1}:
  true
  nothing
```
"""
struct Map <: AbstractDict{String,Any}
    keys::Vector{String}
    values::Vector{Any}
end

Map() = Map(String[], Any[])
Map(pairs::Pair...) = Map(String[String(key) for (key, _) in pairs], Any[value for (_, value) in pairs])
Map(members::AbstractDict) = Map(pairs(members)...)

Base.length(map::Map) = length(map.keys)
Base.iterate(map::Map, i = 1) = i > length(map.keys) ? nothing : (map.keys[i] => map.values[i], i + 1)
Base.keys(map::Map) = map.keys
Base.values(map::Map) = map.values
Base.haskey(map::Map, key) = find(map, key) !== nothing

function Base.get(map::Map, key, default)
    i = find(map, key)
    i === nothing ? default : map.values[i]
end

function Base.get(default::Base.Callable, map::Map, key)
    i = find(map, key)
    i === nothing ? default() : map.values[i]
end

Base.getindex(map::Map, key) = get(() -> throw(KeyError(key)), map, key)

function Base.setindex!(map::Map, value, key)
    i = find(map, key)
    i === nothing ? (push!(map.keys, String(key)); push!(map.values, value)) : (map.values[i] = value)
    map
end

# As in MongoDB, documents with a different order of members are different.
Base.:(==)(a::Map, b::Map) = a.keys == b.keys && a.values == b.values
Base.isequal(a::Map, b::Map) = isequal(a.keys, b.keys) && isequal(a.values, b.values)

find(map::Map, key::AbstractString) = findfirst(isequal(key), map.keys)
find(map::Map, key::Symbol) = find(map, String(key))
find(::Map, _) = nothing

for T in (Binary, Code) # compares their fields, not their addresses
    @eval Base.:(==)(a::$T, b::$T) = $(foldl((x, y) -> :($x && $y), [:(a.$f == b.$f) for f in fieldnames(T)]))
    @eval Base.hash(x::$T, h::UInt) = hash(($([:(x.$f) for f in fieldnames(T)]...),), hash($T, h))
end

"JavaScript, with the values of its variables (deprecated)."
struct CodeWithScope
    text::String
    scope::Map
end

Base.:(==)(a::CodeWithScope, b::CodeWithScope) = a.text == b.text && a.scope == b.scope
Base.hash(x::CodeWithScope, h::UInt) = hash((x.text, x.scope), hash(CodeWithScope, h))

# ---- decimal numbers ----

"""
    Decimal128(text)

A decimal number of 34 digits in 128 bits. Conversion from and to text is exact: a number that would have to be rounded
is an `ArgumentError`. To calculate, use `BigFloat(string(x))` or a package for decimal numbers.

```jldoctest
julia> string(BSON.Decimal128("12.50"))
"12.50"
```
"""
struct Decimal128
    bits::UInt128
end

Base.show(io::IO, x::Decimal128) = print(io, "Decimal128(\"", x, "\")")

const DECIMAL_SIGN = UInt128(1) << 127
const DECIMAL_INFINITY = UInt128(0b11110) << 122
const DECIMAL_NAN = UInt128(0b11111) << 122
const DECIMAL_DIGITS = 34

function Base.print(io::IO, x::Decimal128)
    class = x.bits >> 122 & 0b11111
    class == 0b11111 && return print(io, "NaN")
    x.bits & DECIMAL_SIGN == 0 || print(io, '-')
    class == 0b11110 && return print(io, "Infinity")
    significand, exponent = if class >= 0b11000
        UInt128(0), Int(x.bits >> 111 & 0x3fff) - 6176
    else
        x.bits & (UInt128(1) << 113 - 1), Int(x.bits >> 113 & 0x3fff) - 6176
    end
    digits = string(significand < UInt128(10)^DECIMAL_DIGITS ? significand : UInt128(0))
    len = length(digits)
    adjusted = exponent + len - 1
    if exponent > 0 || adjusted < -6
        print(io, digits[1], len > 1 ? "." : "", digits[2:end], adjusted < 0 ? "E" : "E+", adjusted)
    elseif -exponent < len
        print(io, digits[1:len+exponent], exponent < 0 ? "." : "", digits[len+exponent+1:end])
    else
        print(io, "0.", "0"^(-exponent - len), digits)
    end
end

function Decimal128(text::AbstractString)
    refuse() = throw(ArgumentError("$(repr(text)) is not a Decimal128: expected a number of at most 34 digits, between 1E-6176 and 9.99E+6144"))
    sign = startswith(text, "-") ? DECIMAL_SIGN : UInt128(0)
    rest = lowercase(startswith(text, r"[+-]") ? text[2:end] : text)
    rest in ("inf", "infinity") && return Decimal128(sign | DECIMAL_INFINITY)
    rest == "nan" && return Decimal128(DECIMAL_NAN)
    parts = match(r"^([0-9]*)(?:\.([0-9]*))?(?:e([+-]?[0-9]+))?$"a, rest)
    parts === nothing && refuse()
    whole, fraction = parts[1], something(parts[2], "")
    isempty(whole) && isempty(fraction) && refuse()
    digits = lstrip(whole * fraction, '0')
    # An exponent that is too large for this is also too large for a number, but not for 0.
    exponent = clamp(parts[3] === nothing ? big(0) : Base.parse(BigInt, parts[3]), -10^9, 10^9) - ncodeunits(fraction)
    exponent = Int(exponent)
    while length(digits) > DECIMAL_DIGITS && endswith(digits, '0')
        digits = chop(digits)
        exponent += 1
    end
    length(digits) <= DECIMAL_DIGITS || refuse()
    if isempty(digits)
        exponent = clamp(exponent, -6176, 6111)
    end
    while exponent < -6176 && endswith(digits, '0')
        digits = chop(digits)
        exponent += 1
    end
    while exponent > 6111 && length(digits) < DECIMAL_DIGITS
        digits *= '0'
        exponent -= 1
    end
    -6176 <= exponent <= 6111 || refuse()
    significand = isempty(digits) ? UInt128(0) : Base.parse(UInt128, digits)
    Decimal128(sign | UInt128(exponent + 6176) << 113 | significand)
end

# ---- reading ----

# The maximum nesting depth of documents.
const MOST_LEVELS = 1000

mutable struct Walk <: Cursor
    start::Ptr{UInt8}
    pos::Int
    stop::Int
    levels::Int
end

const Bytes = Union{Vector{UInt8},Base.CodeUnits{UInt8,String},SubArray{UInt8,1,Vector{UInt8},Tuple{UnitRange{Int}},true}}

"""
    decode(document)

Returns the values of a BSON document, of any BSON type, as a [`Map`](@ref). `document` contains its bytes: a vector, or
a record of `eachrecord(source, Documents())`, which is a `String`. [`documents`](@ref) combines both.

| BSON | Julia |
|---|---|
| double, int32, int64, boolean, null | `Float64`, `Int32`, `Int64`, `Bool`, `nothing` |
| string, array, document | `String`, `Vector{Any}`, [`Map`](@ref) |
| date | `Dates.DateTime` (`FarDateTime` outside of its range of 292 million years) |
| binary | `Vector{UInt8}`; `Base.UUID` for subtype 4; otherwise [`Binary`](@ref) |
| ObjectId, decimal128, timestamp | `ObjectId`, `Decimal128`, `Timestamp` |
| regular expression, code, code with scope | `RegularExpression`, `Code`, `CodeWithScope` |
| MinKey, MaxKey, undefined, symbol, DBPointer | `MinKey()`, `MaxKey()`, `Undefined()`, `Name`, `DBPointer` |

For any bytes, this returns values or throws a [`BSONError`](@ref), and uses memory in proportion to the bytes.
[`encode`](@ref) produces the same bytes again. """
function decode(document::Bytes)
    GC.@preserve document begin
        walk = Walk(pointer(document), 0, length(document), 0)
        map = read_map(walk)
        walk.pos == length(document) || broken("$(length(document) - walk.pos) bytes after the document", "its end", walk.pos)
        map
    end
end

decode(document::String) = decode(codeunits(document))
decode(document::AbstractVector{UInt8}) = decode(Vector{UInt8}(document))

function read_map(walk::Walk)
    keys, values = String[], Any[]
    read_members(walk) do key, len, kind
        push!(keys, checked_text(walk, key, len))
        push!(values, read_value(walk, kind))
    end
    Map(keys, values)
end

function read_list(walk::Walk)
    values = Any[]
    read_members((_, _, kind) -> push!(values, read_value(walk, kind)), walk)
    values
end

function read_members(member, walk::Walk)
    walk.levels < MOST_LEVELS || too_deep("documents nested more than $MOST_LEVELS deep", "less depth", walk.pos)
    walk.levels += 1
    walk.stop - walk.pos >= 4 || truncated("$(walk.stop - walk.pos) bytes", "a document, which has at least 5", walk.pos)
    outer = enter(walk)
    while true
        key = walk.pos + 1
        kind = next(walk)
        kind == 0x00 && break
        member(key, walk.pos - 1 - key, kind)
    end
    leave(walk, outer)
    walk.levels -= 1
    nothing
end

# Text, which must be UTF-8.
function checked_text(walk::Walk, at, len)
    text = unsafe_string(walk.start + at, len)
    isvalid(text) || problem(9, :utf8_invalid, "bytes that are not text", "UTF-8", at)
    text
end

checked_string(walk::Walk) = checked_text(walk, text_here(walk)...)

function checked_c_string(walk::Walk)
    at = walk.pos
    walk.pos = key_end(walk, at) + 1
    checked_text(walk, at, walk.pos - 1 - at)
end

function read_value(walk::Walk, kind::UInt8)
    kind == STRING ? checked_string(walk) :
    kind == INT32 ? read_bits(walk, Int32) :
    kind == DOCUMENT ? read_map(walk) :
    kind == ARRAY ? read_list(walk) :
    kind == DOUBLE ? read_bits(walk, Float64) :
    kind == INT64 ? read_bits(walk, Int64) :
    kind == BOOLEAN ? read_bool(walk) :
    kind == NULL ? nothing :
    read_rarer(walk, kind)
end

@noinline function read_rarer(walk, kind)
    kind == BINARY ? read_binary(walk) :
    kind == 0x06 ? Undefined() :
    kind == 0x07 ? read_object_id(walk) :
    kind == 0x09 ? time_of(read_bits(walk, Int64)) :
    kind == 0x0b ? RegularExpression(checked_c_string(walk), checked_c_string(walk)) :
    kind == 0x0c ? DBPointer(checked_string(walk), read_object_id(walk)) :
    kind == 0x0d ? Code(checked_string(walk)) :
    kind == 0x0e ? Name(checked_string(walk)) :
    kind == 0x0f ? read_code_with_scope(walk) :
    kind == 0x11 ? read_timestamp(walk) :
    kind == 0x13 ? Decimal128(read_bits(walk, UInt128)) :
    kind == 0x7f ? MaxKey() :
    kind == 0xff ? MinKey() : broken("an element of " * kind_name(kind), "a type that BSON has", walk.pos)
end

function read_binary(walk)
    at = walk.pos
    from, len = bytes_here(walk)
    subtype = byte(walk, from - 1)
    if subtype == 0x02
        # The bytes start with a second copy of their length.
        len >= 4 && load(walk, Int32, from) == len - 4 || broken("an inner length that does not match its binary", "$(len - 4)", at)
        from, len = from + 4, len - 4
    end
    bytes = Vector{UInt8}(undef, len)
    unsafe_copyto!(pointer(bytes), walk.start + from, len)
    subtype == 0x00 ? bytes :
    subtype == 0x04 && len == 16 ? UUID(ntoh(load(walk, UInt128, from))) : Binary(subtype, bytes)
end

function read_object_id(walk)
    need(walk, 12)
    at = walk.pos
    walk.pos += 12
    ObjectId(ntuple(i -> byte(walk, at + i - 1), 12))
end

# Milliseconds between the year 0, from which Julia counts, and 1970.
function time_of(milliseconds)
    since, is_too_far = Base.add_with_overflow(milliseconds, Dates.UNIXEPOCH)
    is_too_far ? FarDateTime(milliseconds) : DateTime(Dates.UTM(since))
end

function read_code_with_scope(walk)
    at = walk.pos
    need(walk, 4)
    len = Int(load(walk, Int32, at))
    14 <= len <= walk.stop - at || bad_length(walk, len, 14)
    outer, walk.stop = walk.stop, at + len
    walk.pos += 4
    code = CodeWithScope(checked_string(walk), read_map(walk))
    walk.pos == walk.stop || broken("code with scope of $(walk.pos - at) bytes", "the $len that its length states", at)
    walk.stop = outer
    code
end

function read_timestamp(walk)
    increment = read_bits(walk, UInt32)
    Timestamp(read_bits(walk, UInt32), increment)
end

# ---- writing ----

"""
    encode(document)

Returns the bytes of a document. `document` is a [`Map`](@ref), another dictionary with string or symbol keys, or a
`NamedTuple`, with values as returned by [`decode`](@ref). Other integers become an int32 or int64, other floats a
double, and `missing` becomes null.

```jldoctest
julia> BSON.encode((a = 1,)) == BSON.encode(BSON.Map("a" => 1))
true
```
"""
function encode(document::Union{AbstractDict,NamedTuple})
    out = UInt8[]
    put_map(out, document, 0)
    out
end

raw!(out, x) = append!(out, reinterpret(UInt8, [htol(x)]))

# Writes bytes preceded by their length, which includes itself if `counts`.
function measured(put, out, counts)
    at = length(out)
    raw!(out, Int32(0))
    put()
    len = length(out) - at - (counts ? 0 : 4)
    len <= typemax(Int32) || unwritable("$len bytes", "fewer than 2 GiB in a document")
    out[at+1:at+4] = reinterpret(UInt8, [htol(Int32(len))])
end

function put_members(out, members, levels)
    levels < MOST_LEVELS || too_deep("documents nested more than $MOST_LEVELS deep", "less depth")
    measured(out, true) do
        for (key, value) in members
            at = length(out) + 1
            push!(out, 0x00)
            put_c_string(out, string(key), "a key")
            out[at] = put_value(out, value, levels + 1)
        end
        push!(out, 0x00)
    end
end

put_map(out, members, levels) = put_members(out, pairs(members), levels)
put_list(out, values, levels) = put_members(out, ((i - 1) => value for (i, value) in enumerate(values)), levels)

function put_c_string(out, text, what)
    isvalid(text) && !occursin('\0', text) || unwritable("$(repr(text)) as $what", "UTF-8 without a NUL")
    append!(out, codeunits(text))
    push!(out, 0x00)
end

function put_string(out, text)
    isvalid(text) || unwritable("text that is not UTF-8", "UTF-8; bytes are a Vector{UInt8}")
    measured(out, false) do
        append!(out, codeunits(text))
        push!(out, 0x00)
    end
end

function put_binary(out, subtype, bytes)
    measured(out, false) do
        subtype == 0x02 && raw!(out, Int32(length(bytes)))
        append!(out, bytes)
    end
    # Follows the length, which does not include it.
    insert!(out, length(out) - length(bytes) - (subtype == 0x02 ? 4 : 0) + 1, subtype)
end

# Writes the payload of an element and returns its type.
put_value(out, value::AbstractString, _) = (put_string(out, String(value)); STRING)
put_value(out, value::Bool, _) = (push!(out, value); BOOLEAN)
put_value(out, value::Union{Int8,Int16,Int32,UInt8,UInt16}, _) = (raw!(out, Int32(value)); INT32)
put_value(out, value::Union{Float16,Float32,Float64}, _) = (raw!(out, Float64(value)); DOUBLE)
put_value(out, ::Union{Nothing,Missing}, _) = NULL
put_value(out, value::Union{AbstractDict,NamedTuple}, levels) = (put_map(out, value, levels); DOCUMENT)
put_value(out, value::Union{AbstractVector,Tuple}, levels) = (put_list(out, value, levels); ARRAY)
put_value(out, value::AbstractVector{UInt8}, _) = (put_binary(out, 0x00, value); BINARY)
put_value(out, value::Binary, _) = (put_binary(out, value.subtype, value.bytes); BINARY)
put_value(out, value::UUID, _) = (put_binary(out, 0x04, reinterpret(UInt8, [hton(value.value)])); BINARY)
put_value(out, ::Undefined, _) = 0x06
put_value(out, value::ObjectId, _) = (append!(out, value.bytes); 0x07)
put_value(out, value::DateTime, _) = (raw!(out, Dates.value(value) - Dates.UNIXEPOCH); 0x09)
put_value(out, value::FarDateTime, _) = (raw!(out, value.milliseconds); 0x09)
put_value(out, value::Code, _) = (put_string(out, value.text); 0x0d)
put_value(out, value::Name, _) = (put_string(out, value.text); 0x0e)
put_value(out, value::Timestamp, _) = (raw!(out, value.increment); raw!(out, value.seconds); 0x11)
put_value(out, value::Decimal128, _) = (raw!(out, value.bits); 0x13)
put_value(out, ::MaxKey, _) = 0x7f
put_value(out, ::MinKey, _) = 0xff

function put_value(out, value::Integer, _)
    typemin(Int64) <= value <= typemax(Int64) || unwritable("the integer $value", "one of 64 bits")
    raw!(out, Int64(value))
    INT64
end

function put_value(out, value::RegularExpression, _)
    put_c_string(out, value.pattern, "a pattern")
    put_c_string(out, value.options, "options")
    0x0b
end

function put_value(out, value::DBPointer, _)
    put_string(out, value.collection)
    append!(out, value.id.bytes)
    0x0c
end

function put_value(out, value::CodeWithScope, levels)
    measured(out, true) do
        put_string(out, value.text)
        put_map(out, value.scope, levels)
    end
    0x0f
end

put_value(_, value, _) = unwritable("a value of type $(typeof(value))", "a type that BSON has; `bson` writes any Julia value, for Julia to read")

"""
    documents(source; options...)

Iterates over the BSON documents of a source, such as a file written by mongodump, each a [`Map`](@ref) as returned by
[`decode`](@ref). `source` and options work as in `Millstream.eachrecord`. If the loop ends early, a reader is
positioned after the last document that the loop received.

    for order in BSON.documents("dump/shop/orders.bson.gz")
        total += order["total"]
    end
"""
function documents end
