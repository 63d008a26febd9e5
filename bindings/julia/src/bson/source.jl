# Provides a document's bytes from a file, which is read or mapped, a stream, or memory. Only one document is taken, and
# its length is trusted only as far as bytes exist.

# Calls `walk` with a `Reading` for the document in the source.
function with_reading(walk, path::Union{AbstractString,Remote}, ctx::ParseCtx, mmap::Bool)
    from = resolved(path)
    from isa Remote || return open(io -> with_reading(walk, io, ctx, mmap), from, "r")
    mmap && throw(ArgumentError("a remote object cannot be mapped: omit `mmap`"))
    # Like a file, an object is not decoded.
    Reader(io -> with_reading(walk, io, ctx, false), from; decode = :off)
end

function with_reading(walk, io::IO, ctx::ParseCtx, mmap::Bool)
    bytes, offset, len, keeper, holes = mmap ? mapped(io) : copied(io)
    attempts(walk, bytes, offset, len, ctx, keeper, holes)
end

# Repeats this if an object was created with one type but needs another.
function attempts(walk, bytes, offset, len, ctx, keeper, holes)
    wanted = Dict{Int,Any}()
    while true
        r = Reading(bytes, offset, len, ctx; keeper = keeper, holes = holes)
        r.wanted = wanted
        try
            return GC.@preserve bytes keeper begin
                find_shared!(r)
                walk(r)
            end
        catch e
            e isa MadeOtherwise || rethrow()
            length(wanted) < MOST_ATTEMPTS || mismatched("objects that would need different types", "fewer", -1)
            wanted[e.number] = e.type
        end
    end
end

# Each attempt reads the file again, so their number is limited.
const MOST_ATTEMPTS = 16

# ---- copied ----

function copied(io::IO)
    len = announced(read_exactly(io, 4))
    bytes = Vector{UInt8}(undef, 4)
    copyto!(bytes, 1, reinterpret(UInt8, [htol(Int32(len))]), 1, 4)
    rest = read_exactly(io, len - 4)
    append!(bytes, rest)
    bytes, 0, len, nothing, nothing
end

function announced(head)
    length(head) == 4 || truncated("$(length(head)) bytes", "a document, which has at least 5", 0)
    len = Int(ltoh(only(reinterpret(Int32, head))))
    len >= 5 || broken("the length $len", "at least 5", 0)
    len
end

# Reads this many bytes, or all if there are fewer. Memory grows with the data that has arrived.
function read_exactly(io::IO, count)
    bytes = UInt8[]
    readbytes!(io, bytes, count)
    length(bytes) == count ? bytes : resize!(bytes, length(bytes))
end

function copied(io::IOStream)
    at = position(io)
    file_len = filesize(io)
    # Anything but a regular file has no useful length.
    isfile(stat(io)) || return invoke(copied, Tuple{IO}, io)
    len = announced(read_exactly(io, 4))
    len <= file_len - at || truncated("$(file_len - at) bytes", "the $len that its length states", 0)
    seek(io, at)
    if len >= LEAST_SPARSE
        holes = Holes(io, at)
        bytes = Vector{UInt8}(undef, len)
        GC.@preserve bytes fetch_structure!(holes, bytes)
        return bytes, 0, len, nothing, holes
    end
    bytes = Vector{UInt8}(undef, len)
    got = readbytes!(io, bytes, len)
    got == len || shrank(got, len)
    bytes, 0, len, nothing, nothing
end

shrank(got, len) = problem(15, :source_shrank, "$got bytes", "$len, as before", -1)

# Reads the bytes of an array into its own memory.
@inline function fetch_bytes(r::Reading, to::Ptr{UInt8}, at::Int, len::Int)
    r.holes !== nothing && len >= LEAST_HOLE && return fetch_hole(r.holes::Holes, to, at, len)
    ccall(:memcpy, Ptr{Cvoid}, (Ptr{Cvoid}, Ptr{Cvoid}, Csize_t), to, r.start + at, len)
    nothing
end

# ---- sparse: the payloads of large arrays are read once, into the arrays ----

const LEAST_SPARSE = 1 << 20
const LEAST_HOLE = 1 << 16

# A file whose large binaries have not been read. Their bytes in `bytes` are meaningless, and only `fetch_bytes` uses
# them.
struct Holes
    io::IOStream
    at::Int
end

# Reads everything else. Only documents larger than a hole can contain one.
function fetch_structure!(h::Holes, bytes::Vector{UInt8})
    c = Skeleton(pointer(bytes), 0, length(bytes), h, 0)
    stops = Int[]
    ensure(c, 5)
    push!(stops, enter_sparse(c))
    while !isempty(stops)
        ensure(c, c.pos + 1)
        if c.pos == c.stop
            leave(c, pop!(stops))
            continue
        end
        # A key may be long; when its end has been read, all of its bytes have.
        kind = sparse_next(c)
        if kind in (DOCUMENT, ARRAY, BINARY)
            ensure(c, min(c.pos + 5, c.stop))
            need(c, 5)
            len = Int(load(c, Int32, c.pos))
            if kind == BINARY
                0 <= len <= c.stop - c.pos - 5 || bad_length(c, len, 0)
                if len >= LEAST_HOLE
                    c.pos += 5 + len
                    jump(c, c.pos)
                else
                    c.pos += 5 + len
                    ensure(c, c.pos)
                end
            elseif len >= LEAST_HOLE
                push!(stops, enter_sparse(c))
            else
                5 <= len <= c.stop - c.pos || bad_length(c, len, 5)
                c.pos += len
                ensure(c, c.pos)
            end
        else
            ensure(c, min(c.pos + 4, c.stop))
            skip(c, kind)
            ensure(c, c.pos)
        end
    end
    nothing
end

# A traversal of bytes that are read on demand.
mutable struct Skeleton <: Cursor
    start::Ptr{UInt8}
    pos::Int
    stop::Int
    holes::Holes
    # The end of the bytes that have been read or skipped.
    filled::Int
end

const BLOCK = 1 << 18

# Reads the bytes up to `to`, and some more.
function ensure(c::Skeleton, to)
    to <= c.filled && return
    len = max(to, min(c.filled + BLOCK, c.stop + 1)) - c.filled
    read_at(c.holes, c.start + c.filled, c.filled, len)
    c.filled += len
    nothing
end

# Skips the bytes up to this position.
jump(c::Skeleton, to) = (c.filled = max(c.filled, to); nothing)

function enter_sparse(c::Skeleton)
    outer = c.stop
    need(c, 5)
    len = Int(load(c, Int32, c.pos))
    (5 <= len <= c.stop - c.pos) || bad_length(c, len, 5)
    c.stop = c.pos + len - 1
    c.pos += 4
    outer
end

function sparse_next(c::Skeleton)
    kind = byte(c, c.pos)
    at = c.pos + 1
    while true
        at < c.stop || broken("an unterminated key", "a zero byte before the end of its document", c.pos)
        ensure(c, at + 1)
        byte(c, at) == 0x00 && break
        at += 1
    end
    c.pos = at + 1
    kind
end

fetch_hole(h::Holes, to, at, len) = read_at(h, to, at, len)

function read_at(h::Holes, to::Ptr{UInt8}, at, len)
    seek(h.io, h.at + at)
    got = 0
    while got < len
        more = Int(ccall(:ios_readall, Csize_t, (Ptr{Cvoid}, Ptr{Cvoid}, Csize_t), h.io, to + got, len - got))
        more == 0 && shrank(got, len)
        got += more
    end
    nothing
end

# ---- mapped ----

# Maps the bytes of a file privately: writing to an array changes neither the file nor other processes' view of it.
function mapped(io::IOStream)
    Sys.isunix() && isfile(stat(io)) || return copied(io)
    at = position(io)
    file_len = filesize(io)
    file_len - at >= 4 || truncated("$(file_len - at) bytes", "a document, which has at least 5", 0)
    bytes = Mmap.mmap(io, Vector{UInt8}, (file_len - at,), at; grow = false, shared = false)
    len = announced(bytes[1:4])
    len <= file_len - at || truncated("$(file_len - at) bytes", "the $len that its length states", 0)
    seek(io, at + len)
    page = ccall(:getpagesize, Cint, ())
    from = UInt(pointer(bytes)) & ~UInt(page - 1)
    # Read-only arrays would crash a process that writes to them.
    writable = ccall(:mprotect, Cint, (Ptr{Cvoid}, Csize_t, Cint), Ptr{Cvoid}(from), UInt(pointer(bytes)) + len - from, 3) == 0
    bytes, 0, len, writable ? bytes : nothing, nothing
end

# For the caller's memory, such as a mapped file, which arrays share.
function mapped(io::Base.GenericIOBuffer{Vector{UInt8}})
    io.readable || throw(ArgumentError("read failed, IOBuffer is not readable"))
    at = io.ptr - 1
    len = announced(io.data[io.ptr:min(io.ptr + 3, io.size)])
    len <= io.size - at || truncated("$(io.size - at) bytes", "the $len that its length states", 0)
    io.ptr = at + len + 1
    io.data, at, len, io.data, nothing
end

mapped(io::IO) = copied(io)

# Returns the document in memory without a copy, because no part of it is returned to the caller.
function copied(io::Base.GenericIOBuffer{Vector{UInt8}})
    bytes, at, len, _, holes = mapped(io)
    bytes, at, len, nothing, holes
end
