# What a record is.

"""
Says where records end: [`Lines`](@ref), [`Delimiter`](@ref), [`AnyOf`](@ref), [`Fixed`](@ref), [`LengthPrefixed`](@ref) or
[`Documents`](@ref).
"""
mutable struct Framer
    handle::Ptr{Cvoid}

    function Framer(handle)
        framer = new(handle)
        finalizer(framer -> (@c millstream_framer_free(framer.handle::Ptr{Cvoid})::Cvoid), framer)
    end
end

Base.unsafe_convert(::Type{Ptr{Cvoid}}, framer::Framer) = framer.handle

# Makes a framer by a function that puts its handle into a reference.
function framer(make)
    out = Ref{Ptr{Cvoid}}(C_NULL)
    make(out)
    Framer(out[])
end

delimited(keep) = keep ? 0x00000001 : 0x00000000

"""
    Lines(; keep = false)

Lines, which end with a line feed; the last one need not. Unless told to `keep` it, that and a carriage return before it
are not part of the record.
"""
Lines(; keep::Bool = false) = framer() do out
    @call millstream_framer_lines(delimited(keep)::UInt32, out::Ptr{Ptr{Cvoid}})
end

"""
    Delimiter(delimiter; keep = false)

Records that end with a byte, a character or a string; the last one need not.
"""
function Delimiter(delimiter::Union{UInt8,Char,AbstractString,AbstractVector{UInt8}}; keep::Bool = false)
    bytes = delimiter isa UInt8 ? [delimiter] : delimiter isa AbstractVector ? Vector{UInt8}(delimiter) :
        Vector{UInt8}(codeunits(string(delimiter)))
    framer() do out
        @call millstream_framer_delimiter(bytes::Ptr{UInt8}, length(bytes)::Csize_t, delimited(keep)::UInt32, out::Ptr{Ptr{Cvoid}})
    end
end

is_among(ends, byte) = unsafe_load(ends, byte + 1)

"""
    AnyOf(bytes; keep = false)

Records that end after any of these bytes.
"""
function AnyOf(bytes; keep::Bool = false)
    ends = zeros(Bool, 256)
    foreach(byte -> ends[UInt8(byte)+1] = true, bytes)
    # The library asks about each byte while it makes the framer, and not later.
    ask = @cfunction(is_among, Bool, (Ptr{Bool}, UInt8))
    framer() do out
        @call millstream_framer_predicate(ask::Ptr{Cvoid}, ends::Ptr{Bool}, delimited(keep)::UInt32, out::Ptr{Ptr{Cvoid}})
    end
end

"""
    Fixed(length)

Records of `length` bytes. A stream that ends inside one is an error.
"""
Fixed(length::Integer) = framer() do out
    @call millstream_framer_fixed(length::Csize_t, out::Ptr{Ptr{Cvoid}})
end

"""
    LengthPrefixed(T; endian = :little, counts = :payload)

Records behind their length, a number of an unsigned type such as `UInt32`, which counts the bytes behind it or, with
`counts = :itself`, also its own.
"""
LengthPrefixed(::Type{T}; endian = :little, counts = :payload) where {T<:Unsigned} = framer() do out
    @call millstream_framer_length_prefixed(sizeof(T)::Csize_t, choice(:endian, endian, (:little, :big))::UInt32,
        choice(:counts, counts, (:payload, :itself))::UInt32, out::Ptr{Ptr{Cvoid}})
end

"""
    Documents()

BSON documents, one behind the other, as mongodump writes them.
"""
Documents() = framer() do out
    @call millstream_framer_bson(out::Ptr{Ptr{Cvoid}})
end

# As millstream_batch.
struct CTrim
    head::UInt32
    tail::UInt32
    carriage_return::Bool
end

struct CBatch
    bytes::Ptr{UInt8}
    len::Csize_t
    offsets::Ptr{UInt32}
    count::Csize_t
    trim::CTrim
    terminated::Bool
    offset::UInt64
    first_record::UInt64
end
