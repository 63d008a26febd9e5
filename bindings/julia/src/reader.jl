# Readers: what a source is, how it is read, and how it is waited for.
#
# While a reader waits for a command, a socket or an `IO`, Julia's other tasks run and Ctrl-C works: the wait is Julia's
# own (`waiting.jl`), and the library is called when there is something to read. If there is nothing that Julia could
# wait for (a file descriptor passed in, a compressed stream of a command, read-ahead), the call itself waits, and so
# does the thread.

using FileWatching: FDWatcher

"""
    Mapped(path)

A file that is mapped into memory instead of being read. It must not shrink meanwhile.
"""
struct Mapped
    path::String
end

"""
    Tcp(address)

A TCP connection, for example to `"localhost:7000"`. """
struct Tcp
    address::String
end

"""
    UnixSocket(path)

A connection to a Unix stream socket.
"""
struct UnixSocket
    path::String
end

"""
    Reader(source; options...)

Reads records or bytes from a source: a path, a `Cmd` or a pipeline of them, a [`Shell`](@ref) line, a `RawFD` (a
duplicate is read), an `IO`, bytes in memory, [`Mapped`](@ref), [`Tcp`](@ref), [`UnixSocket`](@ref). Compressed files
and commands are decoded.

The end means that the source succeeded: a command that fails is a [`MillstreamError`](@ref), after everything it wrote.
A reader serves one task at a time.

Options, with their defaults first:
- `read_ahead`: `:auto` (`:off` for commands and sockets, since Julia cannot wait for read-ahead), `:on`, `:off`
- `decode`: `:auto` (`:off` for sockets and `IO`s), `:off`; `decode_limit` and `decode_ratio`, no limits by default;
  `decode_memory`: for the window of a zstd frame, 128 MiB
- `record_limit`: the longest record, 64 MiB; `capacity`: the initial size of the buffer, 256 KiB
- `latency`: `:normal`, `:low`; `follow`: `:no`, `:growing`; `pin`: `:content` (a file may grow while it is read), `:identity`; `stall_timeout`: seconds
- `cancel`: a [`CancelToken`](@ref); `name`: the name of the source in errors
"""
mutable struct Reader
    handle::Ptr{Cvoid}
    # What the library borrows, to be kept alive.
    source::Any
    # Whether the file descriptor was made by the library, so that Julia may change its flags in order to wait for it.
    is_ours::Bool
    watcher::Union{FDWatcher,Nothing}
    watched::Cint
    batch::Base.RefValue{CBatch}
    buffer::Base.RefValue{Ptr{UInt8}}
    len::Base.RefValue{Csize_t}
    added::Base.RefValue{Csize_t}
    # A task is waiting: no other may read.
    waits::Bool
    # What ends one of Julia's own waits: seconds (0: no limit), and a token.
    stall_timeout::Float64
    cancel::Union{CancelToken,Nothing}
    # A wait interrupted by a timeout or the token, for the next one to take over.
    pending::Union{Pending,Nothing}
    # The batch that a loop over single records takes them from: unused records are put back.
    in_use::Union{Batch,Nothing}
    # How many records this kind of loop requests next: few after it was left, so that leaving costs little.
    ahead::Int

    function Reader(source; stall_timeout = nothing, cancel = nothing, options...)
        reader = new(C_NULL, nothing, false, nothing, -1, Ref{CBatch}(), Ref{Ptr{UInt8}}(C_NULL), Ref{Csize_t}(0), Ref{Csize_t}(0), false,
            stall_timeout === nothing ? 0.0 : seconds(:stall_timeout, stall_timeout), token(cancel), nothing, nothing, typemax(Int))
        finalizer(forget, reader)
        with_reader_options(source; stall_timeout = stall_timeout, cancel = cancel, options...) do how
            out = Ref{Ptr{Cvoid}}(C_NULL)
            reader.source, reader.is_ours = open_source(source, how, out)
            reader.handle = out[]
        end
        reader
    end
end

"""
    Reader(use, source; options...)

Calls `use` with a reader, closes it, and returns the result of `use`. """
function Reader(use::Union{Function,Type}, source; options...)
    reader = Reader(source; options...)
    local result
    try
        result = use(reader)
    catch
        free(reader)
        rethrow()
    end
    close(reader)
    result
end

Base.unsafe_convert(::Type{Ptr{Cvoid}}, reader::Reader) = reader.handle

Base.show(io::IO, reader::Reader) = print(io, "Reader(", isopen(reader) ? repr(name(reader)) : "closed", ")")

# ---- sources ----

# Each stores a handle in `out`, and returns what has to be kept alive and whether the file descriptor was made by the
# library.

function open_source(path::AbstractString, how, out)
    @call millstream_reader_path(String(path), how, out)
    nothing, true
end

function open_source(source::Mapped, how, out)
    @call millstream_reader_mapped(source.path, how, out)
    nothing, false
end

function open_source(cmd::Base.AbstractCmd, how, out)
    with_commands(cmd) do handles
        @call millstream_reader_pipeline(handles, length(handles), how, out)
    end
    nothing, true
end

function open_source(source::Shell, how, out)
    @call millstream_reader_shell(source.line, how, out)
    nothing, true
end

function open_source(fd::RawFD, how, out)
    @call millstream_reader_borrow_fd(reinterpret(Cint, fd), how, out)
    nothing, false
end

function open_source(source::Tcp, how, out)
    @call millstream_reader_tcp(source.address, how, out)
    nothing, true
end

function open_source(source::UnixSocket, how, out)
    @call millstream_reader_unix(source.path, how, out)
    nothing, true
end

function open_source(bytes::AbstractVector{UInt8}, how, out)
    memory = bytes isa Union{Vector{UInt8},Base.CodeUnits{UInt8,String}} ? bytes : Vector{UInt8}(bytes)
    @call millstream_reader_memory(memory, length(memory), how, out)
    nothing, false
end

function open_source(io::IO, how, out)
    outside = Outside(io, nothing)
    fill = @cfunction(fill_from_outside, Cssize_t, (Ptr{Cvoid}, Ptr{UInt8}, Csize_t))
    @call millstream_reader_callback(fill, pointer_from_objref(outside), how, out)
    outside, false
end

open_source(other, how, out) = throw(ArgumentError("a $(typeof(other)) is not a source: use a path, a command, a RawFD, an IO or bytes"))

# ---- options ----

function with_reader_options(use, source; read_ahead = nothing, options...)
    # See above: Julia cannot wait for a reader that reads ahead.
    if read_ahead === nothing && source isa Union{Base.AbstractCmd,Shell,Tcp,UnixSocket}
        read_ahead = :off
    end
    out = Ref{Ptr{Cvoid}}(C_NULL)
    @call millstream_reader_options_new(out)
    how = out[]
    try
        set_reader_options(how; read_ahead = read_ahead, options...)
        use(how)
    finally
        @c millstream_reader_options_free(how)
    end
end

# ---- the reader as a whole ----

check_open(reader) = isopen(reader) || throw(MillstreamError(19, :closed, "closed: this reader has been closed"))

"""
    isopen(reader)

Whether it has not been closed yet.
"""
Base.isopen(reader::Reader) = reader.handle != C_NULL

"""
    name(reader)

The name of the source in error messages. """
function name(reader::Reader)
    check_open(reader)
    unsafe_string(@c millstream_reader_name(reader))
end

"""
    position(reader)

How many `bytes`, after decoding, and how many `records` have been taken or skipped. A loop over [`eachrecord`](@ref) takes one
at a time, and one over [`batches`](@ref) a whole batch.
"""
function Base.position(reader::Reader)
    check_open(reader)
    bytes, records = Ref{UInt64}(0), Ref{UInt64}(0)
    @call millstream_reader_position(reader, bytes, records)
    left_bytes, left = not_used(reader)
    (bytes = Int(bytes[]) - left_bytes, records = Int(records[]) - left)
end

"""
    close(reader)

Ends the reading at the current position; closing again has no effect. A command still running is stopped: with SIGTERM
after a second, with SIGKILL after another one. However it ends then, that is not an error. An error that ended the
reading is thrown again. """
function Base.close(reader::Reader)
    isopen(reader) || return
    unwatch(reader)
    try
        @call millstream_reader_close(reader)
    finally
        free(reader)
    end
    nothing
end

# A finalizer: it does not wait, and the library stops a command meanwhile.
function forget(reader::Reader)
    isopen(reader) && @c millstream_reader_abort(reader.handle, C_NULL)
    free(reader)
end

# Errors of that are not reported.
function free(reader::Reader)
    unwatch(reader)
    handle, reader.handle = reader.handle, C_NULL
    @c millstream_reader_free(handle)
end
