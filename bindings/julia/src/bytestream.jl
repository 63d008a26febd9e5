# The functions of `Base` for a readable `IO`, for streams whose unread bytes are in memory.
#
# The unread bytes of such a stream are between two pointers, `at` and `stop`; reading is arithmetic on them. When the
# pointers meet, `eof(stream)` makes them point to the next bytes, or returns true: the stream has ended, and its source
# has succeeded.

abstract type ByteStream <: IO end

# Returns the position of the first such byte among the unread ones in memory, or C_NULL.
@inline find(s::ByteStream, byte::UInt8) =
    ccall(:memchr, Ptr{UInt8}, (Ptr{UInt8}, Cint, Csize_t), s.at, byte, s.stop - s.at)

@inline function Base.read(s::ByteStream, ::Type{UInt8})
    s.at < s.stop || eof(s) && throw(EOFError())
    byte = GC.@preserve s unsafe_load(s.at)
    s.at += 1
    byte
end

function Base.peek(s::ByteStream, ::Type{UInt8} = UInt8)
    eof(s) && throw(EOFError())
    GC.@preserve s unsafe_load(s.at)
end

function Base.unsafe_read(s::ByteStream, to::Ptr{UInt8}, count::UInt)
    left = Int(count)
    while left > 0
        taken = take_some(s, to, left)
        taken == 0 && throw(EOFError())
        to += taken
        left -= taken
    end
end

# Copies at most this many bytes and waits for at least one; returns their number, 0 at the end.
function take_some(s, to, most)
    eof(s) && return 0
    count = min(most, Int(s.stop - s.at))
    GC.@preserve s unsafe_copyto!(to, s.at, count)
    s.at += count
    count
end

"""
    readbytes!(stream, bytes, count = length(bytes); all = true)

Reads `count` bytes, or fewer at the end; with `all = false`, reads only the bytes that are available, and waits only for
the first. Returns the number of bytes. If `bytes` is a shorter `Vector`, it grows.
"""
function Base.readbytes!(s::ByteStream, bytes::Vector{UInt8}, count::Integer = length(bytes); all::Bool = true)
    done, had = 0, length(bytes)
    while done < count
        eof(s) && break
        some = min(Int(count) - done, Int(s.stop - s.at))
        length(bytes) < done + some && resize!(bytes, min(Int(count), max(done + some, 2 * length(bytes))))
        GC.@preserve s bytes unsafe_copyto!(pointer(bytes, done + 1), s.at, some)
        s.at += some
        done += some
        all || break
    end
    length(bytes) > max(had, done) && resize!(bytes, max(had, done))
    done
end

# Other arrays may not be contiguous in memory.
function Base.readbytes!(s::ByteStream, bytes::AbstractVector{UInt8}, count::Integer = length(bytes); all::Bool = true)
    taken = UInt8[]
    done = readbytes!(s, taken, min(count, typemax(Int)); all = all)
    length(bytes) < done && resize!(bytes, done)
    copyto!(bytes, firstindex(bytes), taken, 1, done)
    done
end

"""
    readavailable(stream)

Returns the bytes that can be read without waiting, but at least one; an empty vector at the end.
"""
Base.readavailable(s::ByteStream) = eof(s) ? UInt8[] : read(s, Int(s.stop - s.at))

function Base.skip(s::ByteStream, count::Integer)
    count >= 0 || throw(ArgumentError("a stream cannot be read backwards, by $count bytes"))
    while count > 0 && !eof(s)
        some = min(count, s.stop - s.at)
        s.at += some
        count -= some
    end
    s
end

# Copies bytes to another stream up to a delimiter.
function copy_until(out::IO, s::ByteStream, delimiter::UInt8, keep)
    while !eof(s)
        found = find(s, delimiter)
        after = found == C_NULL ? s.stop : found + 1
        GC.@preserve s unsafe_write(out, s.at, UInt(after - s.at - (found != C_NULL && !keep)))
        s.at = after
        found == C_NULL || break
    end
    out
end

# Since Julia 1.11, functions of `Base` that read lines into memory of the caller use this one.
if isdefined(Base, :copyuntil)
    Base.copyuntil(out::IO, s::ByteStream, delimiter::UInt8; keep::Bool = false) = copy_until(out, s, delimiter, keep)
end

Base.isreadable(s::ByteStream) = isopen(s)
Base.iswritable(::ByteStream) = false
