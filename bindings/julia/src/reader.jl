# Readers: sources, reading, and waiting.
#
# While a reader waits for a command, a socket or an `IO`, Julia's other tasks run and Ctrl-C works: the wait is Julia's
# own (`waiting.jl`), and the library is called when there is data to read. If Julia has nothing to wait for (a file
# descriptor passed in, a compressed stream of a command, read-ahead), the call itself waits and blocks the thread, as does
# opening a connection or an object.

using FileWatching: FDWatcher

"""
    Mapped(path)

A file that is mapped into memory instead of being read. It must not shrink while it is mapped.
"""
struct Mapped
    path::String

    Mapped(path) = new(local_path(path, "mapped"))
end

"""
    Tcp(address)

A TCP connection to an address such as `"localhost:7000"`. """
struct Tcp
    address::String
end

"""
    UnixSocket(path)

A connection to a Unix stream socket.
"""
struct UnixSocket
    path::String

    UnixSocket(path) = new(local_path(path, "a socket"))
end

# The names in the header of CSV.
struct Header
    names::Vector{String}
    symbols::Tuple
end

"""
    Reader(source; options...)

Reads records or bytes from a source: a path, a URL of an object or a [`Remote`](@ref), a `Cmd` or a pipeline of them, a
[`Shell`](@ref) line, a `RawFD` (a duplicate is read), an `IO`, bytes in memory, [`Mapped`](@ref), [`Tcp`](@ref),
[`UnixSocket`](@ref). Compressed files, objects and commands are decoded.

The end means that the source succeeded: if a command fails, a [`MillstreamError`](@ref) is thrown after all its output.
A reader is an `IO`: `readline`, `eachline`, `readuntil`, `read`, `eof` and all other functions of `Base` for a readable
`IO` work too, and `record_limit` limits the length of a line. Only one task at a time can use a reader.

Options, with their defaults first:
- `read_ahead`: `:auto` (`:off` for commands and sockets, since Julia cannot wait for read-ahead, and `:on` for objects),
  `:on`, `:off`
- `decode`: `:auto` (`:off` for sockets and `IO`s), `:off`; `decode_limit` and `decode_ratio`: no limits by default;
  `decode_memory`: the memory for the window of a zstd frame or an xz block, 128 MiB
- `record_limit`: the maximum length of a record, 64 MiB; `capacity`: the initial size of the buffer, 256 KiB
- `latency`: `:normal`, `:low`; `follow`: `:no`, `:growing`; `pin`: `:content` (a file may grow while it is read), `:identity`; `stall_timeout`: seconds
- `total_timeout`: the seconds that reading may take from opening to the end: no limit by default
- `cancel`: a [`CancelToken`](@ref); `name`: the name of the source in errors
"""
mutable struct Reader <: ByteStream
    handle::Ptr{Cvoid}
    # The window: the unread bytes in the library's memory, or NULL if none is open. They are used up to `at`.
    start::Ptr{UInt8}
    at::Ptr{UInt8}
    stop::Ptr{UInt8}
    # Objects that the library borrows, which must stay alive.
    source::Any
    # Whether the library created the file descriptor, so that Julia may change its flags in order to wait for it.
    is_ours::Bool
    watcher::Union{FDWatcher,Nothing}
    watched::Cint
    batch::Base.RefValue{CBatch}
    buffer::Base.RefValue{Ptr{UInt8}}
    len::Base.RefValue{Csize_t}
    added::Base.RefValue{Csize_t}
    # A task is waiting, so no other task may read.
    waits::Bool
    # The limits of the waiting that Julia does itself: whether there is a timeout, and a token.
    has_timeout::Bool
    cancel::Union{CancelToken,Nothing}
    # Ends a wait when the results of a stage are ready.
    waker::Union{Waker,Nothing}
    # A wait that a timeout or the token interrupted, which the next wait continues.
    pending::Union{Pending,Nothing}
    # The batch of a loop over single records. Unused records are put back.
    in_use::Union{Batch,Nothing}
    # The number of records that such a loop requests next; it is small after an early exit, so that exits cost little.
    ahead::Int
    # The framers of `readline`, without and with line ends, once they are needed.
    lines::Vector{Framer}
    # The header of CSV, once it has been read.
    header::Union{Header,Nothing}

    function Reader(source; stall_timeout = nothing, total_timeout = nothing, cancel = nothing, options...)
        check_options(:Reader, options, reader_options)
        reader = new(C_NULL, C_NULL, C_NULL, C_NULL, nothing, false, nothing, -1, Ref{CBatch}(), Ref{Ptr{UInt8}}(C_NULL), Ref{Csize_t}(0), Ref{Csize_t}(0), false,
            stall_timeout !== nothing || total_timeout !== nothing, token(cancel), nothing, nothing, nothing, typemax(Int), Framer[], nothing)
        finalizer(forget, reader)
        from = resolved(source)
        with_reader_options(from; stall_timeout = stall_timeout, total_timeout = total_timeout, cancel = cancel, options...) do how
            out = Ref{Ptr{Cvoid}}(C_NULL)
            reader.source, reader.is_ours = open_source(from, how, out)
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

# ---- sources ----

# Each method stores a handle in `out`, and returns the objects to keep alive and whether the library created the file
# descriptor.

function open_source(path::AbstractString, how, out)
    @call millstream_reader_path(String(path), how, out)
    nothing, true
end

function open_source(remote::Remote, how, out)
    with_remote(remote) do handle
        @call millstream_reader_url(handle, how, out)
    end
    remote, false
end

function open_source(source::Mapped, how, out)
    @call millstream_reader_mapped(source.path, how, out)
    nothing, false
end

function open_source(cmd::Union{Base.AbstractCmd,Command}, how, out)
    input = with_commands(cmd) do handles
        @call millstream_reader_pipeline(handles, length(handles), how, out)
    end
    input, true
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

open_source(other, how, out) = throw(ArgumentError("a $(typeof(other)) is not a source: use a path, a URL, a command, a RawFD, an IO or bytes"))

# ---- options ----

function with_reader_options(use, source; read_ahead = nothing, decode = nothing, options...)
    if is_written(source)
        # The task that writes the input could not run while the library waits.
        read_ahead == :on && wrong(:read_ahead, read_ahead, ":off for a command whose input is an IO or an iterator")
        decode in (nothing, :off) || wrong(:decode, decode, ":off for a command whose input is an IO or an iterator")
        decode = :off
    end
    # Julia cannot wait for a reader that reads ahead (see above).
    if read_ahead === nothing && source isa Union{Base.AbstractCmd,Command,Shell,Tcp,UnixSocket}
        read_ahead = :off
    end
    # The library's thread waits for an object, and Julia asks the library whether it has data.
    if read_ahead === nothing && source isa Remote
        read_ahead = :on
    end
    out = Ref{Ptr{Cvoid}}(C_NULL)
    @call millstream_reader_options_new(out)
    how = out[]
    try
        set_reader_options(how; read_ahead = read_ahead, decode = decode, options...)
        use(how)
    finally
        @c millstream_reader_options_free(how)
    end
end

# ---- the reader as a whole ----

# Calls the library; `call` returns whether it reported the end. If the input of a command has failed, this is reported at
# the end instead of how the command ended.
function reading(call, reader)
    input = reader.source
    input isa Input || return with_failure(call, input)
    at_end = try
        call()
    catch
        (@c millstream_reader_has_ended(reader)) && input.failure !== nothing && throw(input.failure)
        rethrow()
    end
    at_end && input.failure !== nothing && throw(input.failure)
    at_end
end

check_open(reader) = isopen(reader) || throw(MillstreamError(19, :closed, "closed: this reader has been closed"))

"""
    isopen(reader)

Whether the reader is still open.
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

The number of bytes, after decoding, that have been read or skipped. [`progress`](@ref) has more.
"""
Base.position(reader::Reader) = progress(reader).bytes

"""
    progress(reader)

How far a reader is: the `bytes`, after decoding, and the `records` that have been taken or skipped. A loop over
[`eachrecord`](@ref) takes one record at a time, and a loop over [`batches`](@ref) takes a whole batch. Bytes that are
read by the functions of an `IO` do not count as records, except those of `readline`, `readuntil` and `eachline`.
"""
function progress(reader::Reader)
    check_open(reader)
    bytes, records = Ref{UInt64}(0), Ref{UInt64}(0)
    @call millstream_reader_position(reader, bytes, records)
    left_bytes, left = not_used(reader)
    (bytes = Int(bytes[]) - left_bytes + Int(reader.at - reader.start), records = Int(records[]) - left)
end

"""
    close(reader)

Stops reading at the current position; closing again has no effect. A running command is stopped: with SIGTERM after one
second, and with SIGKILL after another second. Its status is not an error then. An error that ended reading is thrown
again, unless a time limit caused it. """
function Base.close(reader::Reader)
    isopen(reader) || return
    unwatch(reader)
    reader.source isa Input && close(reader.source.to)
    try
        @call millstream_reader_close(reader)
    finally
        free(reader)
    end
    nothing
end

# A finalizer. It does not wait; the library stops the command in the background. When the program exits, so would the
# thread that stops the command, so this waits until the command is gone.
function forget(reader::Reader)
    isopen(reader) && !is_exiting[] && @c millstream_reader_abort(reader.handle, C_NULL)
    free(reader)
end

# Errors of closing are not reported.
function free(reader::Reader)
    unwatch(reader)
    reader.start = reader.at = reader.stop = C_NULL
    handle, reader.handle = reader.handle, C_NULL
    @c millstream_reader_free(handle)
end
