# Traverses the bytes of one document; every length is checked before it is used.
#
#     [ .......|kind key payload|kind key payload| 0 ]....
#               pos                                stop       always start <= pos <= stop < start + length(bytes)
#
# `stop` is the terminator of the innermost open document, so one comparison checks a length against all enclosing
# documents. Offsets count from the document's first byte. A pointer is dereferenced only after this comparison, and
# `bytes` is kept alive by the caller (`with_reading`).

const DOUBLE, STRING, DOCUMENT, ARRAY, BINARY = 0x01, 0x02, 0x03, 0x04, 0x05
const BOOLEAN, NULL, INT32, INT64 = 0x08, 0x0a, 0x10, 0x12

kind_name(kind) = get(() -> "unknown type " * repr(kind), KIND_NAMES, kind)

"The cursor: the mutable part of a [`Reading`](@ref)."
abstract type Cursor end

# The caller has checked that these bytes exist. Loads need no alignment.
@inline load(c::Cursor, ::Type{T}, at::Int) where {T} = ltoh(unsafe_load(Ptr{T}(c.start + at)))
@inline byte(c::Cursor, at::Int) = unsafe_load(c.start + at)

@inline function need(c::Cursor, count::Int)
    c.stop - c.pos >= count || cut_short(c, count)
    nothing
end
@noinline cut_short(c, count) = truncated("$(c.stop - c.pos) bytes to the end of the document", "$count", c.pos)

# Opens the document at `pos` and returns the stop of the enclosing document, which is passed to `leave`.
@inline function enter(c::Cursor)
    need(c, 5)
    len = Int(load(c, Int32, c.pos))
    (5 <= len <= c.stop - c.pos) || bad_length(c, len, 5)
    outer = c.stop
    stop = c.pos + len - 1
    byte(c, stop) == 0x00 || broken("a document without a zero byte at its end", "one", stop)
    c.stop = stop
    c.pos += 4
    outer
end

@inline function leave(c::Cursor, outer::Int)
    c.pos = c.stop + 1
    c.stop = outer
    nothing
end

@noinline function bad_length(c, len, least)
    len < least && broken("the length $len", "at least $least", c.pos)
    truncated("the length $len", "at most the $(c.stop - c.pos) bytes to the end of the document around it", c.pos)
end

# Returns the type of the next element and the position after its key; 0 at the end of the document.
@inline function next(c::Cursor)
    c.pos == c.stop && return 0x00
    kind = byte(c, c.pos)
    kind == 0x00 && broken("a zero byte inside a document", "the type of an element", c.pos)
    c.pos = key_end(c, c.pos + 1) + 1
    kind
end

const ONES, HIGHS = 0x0101010101010101, 0x8080808080808080

# Returns the position of the NUL that ends the key at `pos`.
@inline function key_end(c::Cursor, at::Int)
    if at + 8 <= c.stop
        word = load(c, UInt64, at)
        zeros = (word - ONES) & ~word & HIGHS
        zeros == 0 || return at + trailing_zeros(zeros) >> 3
    end
    far_key_end(c, at)
end

@noinline function far_key_end(c, at)
    found = at >= c.stop ? C_NULL : ccall(:memchr, Ptr{UInt8}, (Ptr{UInt8}, Cint, Csize_t), c.start + at, 0, c.stop - at)
    found == C_NULL && broken("an unterminated key", "a zero byte before the end of its document", at)
    Int(found - c.start)
end

# Reads the length at the start of a payload, which is at least `least` and does not exceed the document. Moves past the
# length.
@inline function length_here(c::Cursor, least::Int)
    need(c, 4)
    len = Int(load(c, Int32, c.pos))
    (least <= len <= c.stop - c.pos - 4) || bad_length(c, len, least)
    c.pos += 4
    len
end

# Moves past the payload of an element.
@inline function skip(c::Cursor, kind::UInt8)
    if kind == DOCUMENT || kind == ARRAY
        need(c, 5)
        len = Int(load(c, Int32, c.pos))
        (5 <= len <= c.stop - c.pos) || bad_length(c, len, 5)
        c.pos += len
    elseif kind == STRING
        len = length_here(c, 1)
        c.pos += len
    else
        skip_other(c, kind)
    end
    nothing
end

@noinline function skip_other(c, kind)
    if kind == BINARY
        len = length_here(c, 0)
        need(c, len + 1)
        c.pos += len + 1
    else
        len = get(KIND_SIZES, kind, -1)
        len >= 0 || unknown(c, kind)
        need(c, len)
        c.pos += len
    end
    nothing
end

@noinline unknown(c, kind) = mismatched("an element of type " * kind_name(kind), "a type that Julia's files have", c.pos)

@inline function read_bits(c::Cursor, ::Type{T}) where {T}
    need(c, sizeof(T))
    x = load(c, T, c.pos)
    c.pos += sizeof(T)
    x
end

@inline function read_bool(c::Cursor)
    need(c, 1)
    x = byte(c, c.pos)
    x <= 0x01 || broken("a boolean of $x", "0 or 1", c.pos)
    c.pos += 1
    x == 0x01
end

# Returns the position and the length of a string's text and moves past it. Text is bytes: Julia's strings need not be
# UTF-8.
@inline function text_here(c::Cursor)
    len = length_here(c, 1)
    at = c.pos
    byte(c, at + len - 1) == 0x00 || broken("a string without a zero byte at its end", "one", at + len - 1)
    c.pos = at + len
    at, len - 1
end

@inline function read_string(c::Cursor)
    at, len = text_here(c)
    unsafe_string(c.start + at, len)
end

# Returns the position and the number of a binary's bytes and moves past it.
@inline function bytes_here(c::Cursor)
    len = length_here(c, 0)
    need(c, len + 1)
    at = c.pos + 1
    c.pos = at + len
    at, len
end

symbol_at(c::Cursor, at, len) = ccall(:jl_symbol_n, Ref{Symbol}, (Ptr{UInt8}, Csize_t), c.start + at, len)

# Creates a symbol from any text without a NUL; Julia's own constructor rejects NULs too.
function read_symbol(c::Cursor)
    at, len = text_here(c)
    len == 0 || ccall(:memchr, Ptr{UInt8}, (Ptr{UInt8}, Cint, Csize_t), c.start + at, 0, len) == C_NULL ||
        invalid("a symbol with a NUL", "a name", at)
    symbol_at(c, at, len)
end
