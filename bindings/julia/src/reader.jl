# Readers: what a source is, how it is read, and how it is waited for.
#
# While a reader waits for a command, a socket or an `IO`, Julia's other tasks run and Ctrl-C works: the wait is Julia's own
# (`await`), and the library is called when there is something to read. Where there is nothing that Julia could wait for (a
# file descriptor that was handed in, a compressed stream of a command, read-ahead), the call itself waits, and so does the
# thread.

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

A TCP connection, to `"localhost:7000"` say.
"""
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

Reads records or bytes out of a source: a path, a `Cmd` or a pipeline of them, a [`Shell`](@ref) line, a `RawFD` (of which a
duplicate is read), an `IO`, bytes in memory, [`Mapped`](@ref), [`Tcp`](@ref), [`UnixSocket`](@ref). Compressed files and
commands are decoded.

The end means that the source succeeded: a command that fails is a [`MillstreamError`](@ref), after all it wrote. A reader
serves one task at a time.

Options, all with the usual value first:
- `read_ahead`: `:auto` (of commands and sockets `:off`, since read-ahead is nothing that Julia could wait for), `:on`, `:off`
- `decode`: `:auto` (of sockets and `IO`s `:off`), `:off`; `decode_limit = (bytes, ratio)`, 0 for none
- `record_limit`: the longest record, 64 MiB; `capacity`: of the buffer at first, 256 KiB
- `latency`: `:normal`, `:low`; `follow`: `:no`, `:growing`; `stall_timeout`: seconds
- `cancel`: a [`CancelToken`](@ref); `name`: what errors call the source
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
    # A task waits: no other may read.
    waits::Bool

    function Reader(source; options...)
        reader = new(C_NULL, nothing, false, nothing, -1, Ref{CBatch}(), Ref{Ptr{UInt8}}(C_NULL), Ref{Csize_t}(0), Ref{Csize_t}(0), false)
        finalizer(free, reader)
        with_reader_options(source; options...) do how
            out = Ref{Ptr{Cvoid}}(C_NULL)
            reader.source, reader.is_ours = open_source(source, how, out)
            reader.handle = out[]
        end
        reader
    end
end

"""
    Reader(use, source; options...)

Calls `use` with a reader, closes it, and returns what `use` did.
"""
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

# Each puts a handle into `out`, and returns what has to be kept alive and whether the file descriptor was made by the library.

function open_source(path::AbstractString, how, out)
    @call millstream_reader_path(String(path)::Cstring, how::Ptr{Cvoid}, out::Ptr{Ptr{Cvoid}})
    nothing, true
end

function open_source(source::Mapped, how, out)
    @call millstream_reader_mapped(source.path::Cstring, how::Ptr{Cvoid}, out::Ptr{Ptr{Cvoid}})
    nothing, false
end

function open_source(cmd::Base.AbstractCmd, how, out)
    with_commands(cmd) do handles
        @call millstream_reader_pipeline(handles::Ptr{Ptr{Cvoid}}, length(handles)::Csize_t, how::Ptr{Cvoid}, out::Ptr{Ptr{Cvoid}})
    end
    nothing, true
end

function open_source(source::Shell, how, out)
    @call millstream_reader_shell(source.line::Cstring, how::Ptr{Cvoid}, out::Ptr{Ptr{Cvoid}})
    nothing, true
end

function open_source(fd::RawFD, how, out)
    @call millstream_reader_borrow_fd(fd::RawFD, how::Ptr{Cvoid}, out::Ptr{Ptr{Cvoid}})
    nothing, false
end

function open_source(source::Tcp, how, out)
    @call millstream_reader_tcp(source.address::Cstring, how::Ptr{Cvoid}, out::Ptr{Ptr{Cvoid}})
    nothing, true
end

function open_source(source::UnixSocket, how, out)
    @call millstream_reader_unix(source.path::Cstring, how::Ptr{Cvoid}, out::Ptr{Ptr{Cvoid}})
    nothing, true
end

function open_source(bytes::AbstractVector{UInt8}, how, out)
    memory = bytes isa Union{Vector{UInt8},Base.CodeUnits{UInt8,String}} ? bytes : Vector{UInt8}(bytes)
    @call millstream_reader_memory(memory::Ptr{UInt8}, length(memory)::Csize_t, how::Ptr{Cvoid}, out::Ptr{Ptr{Cvoid}})
    nothing, false
end

function open_source(io::IO, how, out)
    outside = Outside(io, nothing)
    fill = @cfunction(fill_from_outside, Cssize_t, (Ptr{Cvoid}, Ptr{UInt8}, Csize_t))
    @call millstream_reader_callback(fill::Ptr{Cvoid}, pointer_from_objref(outside)::Ptr{Cvoid}, how::Ptr{Cvoid}, out::Ptr{Ptr{Cvoid}})
    outside, false
end

open_source(other, how, out) = throw(ArgumentError("a $(typeof(other)) is no source: a path, a command, a RawFD, an IO or bytes is"))

# ---- options ----

function with_reader_options(use, source; capacity = nothing, read_ahead = nothing, latency = nothing, record_limit = nothing,
    decode = nothing, decode_limit = nothing, stall_timeout = nothing, follow = nothing, cancel = nothing, name = nothing)
    # See above: a reader that reads ahead is nothing to wait for.
    if read_ahead === nothing && source isa Union{Base.AbstractCmd,Shell,Tcp,UnixSocket}
        read_ahead = :off
    end
    out = Ref{Ptr{Cvoid}}(C_NULL)
    @call millstream_reader_options_new(out::Ptr{Ptr{Cvoid}})
    how = out[]
    try
        capacity === nothing || @call millstream_reader_options_set_capacity(how::Ptr{Cvoid}, capacity::Csize_t)
        read_ahead === nothing || @call millstream_reader_options_set_read_ahead(how::Ptr{Cvoid},
            choice(:read_ahead, read_ahead, (:auto, :on, :off))::UInt32)
        latency === nothing || @call millstream_reader_options_set_latency(how::Ptr{Cvoid},
            choice(:latency, latency, (:normal, :low))::UInt32)
        record_limit === nothing || @call millstream_reader_options_set_record_limit(how::Ptr{Cvoid}, record_limit::Csize_t)
        decode === nothing || @call millstream_reader_options_set_decode(how::Ptr{Cvoid}, choice(:decode, decode, (:auto, :off))::UInt32)
        decode_limit === nothing || @call millstream_reader_options_set_decode_limit(how::Ptr{Cvoid}, decode_limit[1]::UInt64,
            decode_limit[2]::UInt64)
        stall_timeout === nothing || @call millstream_reader_options_set_stall_timeout_ns(how::Ptr{Cvoid},
            round(UInt64, stall_timeout * 1e9)::UInt64)
        follow === nothing || @call millstream_reader_options_set_follow(how::Ptr{Cvoid}, choice(:follow, follow, (:no, :growing))::UInt32)
        cancel === nothing || @call millstream_reader_options_set_cancel(how::Ptr{Cvoid}, cancel::Ptr{Cvoid})
        name === nothing || @call millstream_reader_options_set_name(how::Ptr{Cvoid}, name::Cstring)
        use(how)
    finally
        @c millstream_reader_options_free(how::Ptr{Cvoid})::Cvoid
    end
end

# ---- waiting ----

# Reads on, once Julia has waited for something to read, until `is_enough(bytes, length)` of what is unread; or until only
# the library can know more: at the end, with an error to be told, and of sources that Julia cannot wait for.
function await(is_enough, reader::Reader)
    check_open(reader)
    while true
        @call millstream_reader_buffer(reader::Ptr{Cvoid}, reader.buffer::Ptr{Ptr{UInt8}}, reader.len::Ptr{Csize_t})
        reader.len[] > 0 && is_enough(reader.buffer[], reader.len[]) && return
        await_readable(reader) || return
        code = @c millstream_reader_fill(reader::Ptr{Cvoid}, reader.buffer::Ptr{Ptr{UInt8}}, reader.len::Ptr{Csize_t},
            reader.added::Ptr{Csize_t}, (error = Ref{Ptr{Cvoid}}(C_NULL))::Ptr{Ptr{Cvoid}})::UInt32
        if code == record_too_long
            # The call that follows says so, and where.
            @c millstream_error_free(error[]::Ptr{Cvoid})::Cvoid
            return
        end
        code == 0 || with_failure(() -> throw_error(code, error[]), reader.source)
        reader.added[] == 0 && return
    end
end

const record_too_long = 6

# Waits until a read would find bytes. Returns whether it would: not at the end, and not where nobody can say.
function await_readable(reader::Reader)
    reader.source isa Outside || reader.is_ours || return false
    reader.waits && throw(only_one_task())
    reader.waits = true
    try
        reader.source isa Outside ? !eof(reader.source.io) : await_fd(reader)
    finally
        reader.waits = false
    end
end

only_one_task() = ErrorException("another task is waiting for this stream already: one at a time can read it")

function await_fd(reader)
    while isopen(reader)
        fd = @c millstream_reader_waits_for(reader::Ptr{Cvoid})::Cint
        fd < 0 && return false
        ready = poll_now(fd)
        # At the end of a pipe there is no byte, and a command's exit may have to be waited for.
        ready == 0 || return ready & POLLIN != 0
        watch(reader, fd)
        wait(reader.watcher)
    end
    false
end

const POLLIN = Cshort(1)

# What a file descriptor is ready for, without waiting.
function poll_now(fd)
    asked = Ref((Cint(fd), POLLIN, Cshort(0)))
    count = ccall(:poll, Cint, (Ptr{Cvoid}, Culong, Cint), asked, 1, 0)
    count > 0 ? asked[][3] : Cshort(0)
end

function watch(reader, fd)
    reader.watched == fd && return
    unwatch(reader)
    reader.watcher = FDWatcher(RawFD(fd), true, false)
    reader.watched = fd
end

# Before the library closes the file descriptor, so that Julia does not go on to wait for another of the same number.
function unwatch(reader)
    reader.watcher === nothing || close(reader.watcher)
    reader.watcher = nothing
    reader.watched = -1
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

What errors call the source.
"""
function name(reader::Reader)
    check_open(reader)
    unsafe_string(@c millstream_reader_name(reader::Ptr{Cvoid})::Ptr{UInt8})
end

"""
    position(reader)

How many `bytes`, after decoding, and how many `records` have been taken or skipped.
"""
function Base.position(reader::Reader)
    check_open(reader)
    bytes, records = Ref{UInt64}(0), Ref{UInt64}(0)
    @call millstream_reader_position(reader::Ptr{Cvoid}, bytes::Ptr{UInt64}, records::Ptr{UInt64})
    (bytes = Int(bytes[]), records = Int(records[]))
end

"""
    close(reader)

Ends the reading, wherever it is; what is closed already stays so. A command that is still there is told to go: after a
second by SIGTERM, after another one by SIGKILL. How it ends then is no error; that it had failed before is one.
"""
function Base.close(reader::Reader)
    isopen(reader) || return
    unwatch(reader)
    try
        @call millstream_reader_close(reader::Ptr{Cvoid})
    finally
        free(reader)
    end
    nothing
end

# Without a word about how it ends.
function free(reader::Reader)
    unwatch(reader)
    handle, reader.handle = reader.handle, C_NULL
    @c millstream_reader_free(handle::Ptr{Cvoid})::Cvoid
end
