# Writers pass bytes, text and numbers to a sink.
#
# Between two calls of the library, a window into its buffer is open. Bytes are written directly to the window; the
# library is called when the window is full, or when bytes must be passed on earlier.

"""
    Writer(sink; options...)

Writes to a sink: a path, a URL of an object or a [`Remote`](@ref), a `Cmd` (its standard input), a `RawFD` (a duplicate of
it), an `IO`, [`Tcp`](@ref) or [`UnixSocket`](@ref). Without a sink, it writes to memory, which `take!` returns.

A file or object is compressed if its name implies that, such as one in .gz, and appears complete when the writer is
closed, or not at all. `put!` writes text and numbers without an allocation; `print`, `write` and all other functions of
`Base` for an `IO` work too. Only a successful `close` guarantees that all bytes have reached the sink. A call that passes
bytes to the sink waits for it and blocks Julia's other tasks.

Options, with their defaults first:
- `flush_policy`: `:auto`, `:when_full`, `:line`; or `flush_delay`: the maximum number of seconds before bytes are
  passed on
- `encode`: `:auto`, `:off`, or a format, such as `:gzip`, `:zstd` or `:xz`; `level`
- `existing`: `:replace`, `:append`, `:append_unchecked`, `:create_new`; `partial`: `:remove`, `:keep`
- `durability`: `:cached`, `:data`, `:all`
- `capacity`: the size of the buffer, 64 KiB, 256 KiB for pipes; `stall_timeout`: seconds
- `linger`: the number of seconds that `close` waits until the peer of a connection closes it too, which confirms that
  it has read everything: `stall_timeout`, or 30 without it; a `RawFD` is shut down only if this is given
- `cancel`: a [`CancelToken`](@ref); `name`: the name of the sink in errors
"""
mutable struct Writer <: IO
    handle::Ptr{Cvoid}
    sink::Any
    # The window, or NULL if none is open. It is filled up to `at`.
    start::Ptr{UInt8}
    at::Ptr{UInt8}
    stop::Ptr{UInt8}
    # Whether bytes may stay in the window until it is full.
    collects::Bool
    out::Base.RefValue{NTuple{2,Ptr{UInt8}}}
    collecting::Base.RefValue{Bool}
    # Whether the sink may make the writer wait indefinitely.
    may_wait::Bool
    # Whether `close` was called, so that errors have been reported.
    was_closed::Bool

    function Writer(sink = nothing; options...)
        check_options(:Writer, options, writer_options)
        to = resolved(sink)
        writer = new(C_NULL, nothing, C_NULL, C_NULL, C_NULL, false, Ref((Ptr{UInt8}(C_NULL), Ptr{UInt8}(C_NULL))), Ref(false),
            to isa Union{Base.AbstractCmd,Command,RawFD,Tcp,UnixSocket} || to isa AbstractString && isfifo(to), false)
        finalizer(forget, writer)
        with_writer_options(; options...) do how
            out = Ref{Ptr{Cvoid}}(C_NULL)
            writer.sink = open_sink(to, how, out)
            writer.handle = out[]
        end
        writer
    end
end

"""
    Writer(use, sink; options...)

Calls `use` with a writer, closes it, and returns the result of `use`. If `use` throws, the output is discarded: a file
or object does not appear. """
function Writer(use::Union{Function,Type}, sink; options...)
    writer = Writer(sink; options...)
    local result
    try
        result = use(writer)
    catch
        # An upload that has begun is removed.
        writer.sink isa Remote && @c millstream_writer_abort(writer, C_NULL)
        abandon(writer)
        rethrow()
    end
    close(writer)
    result
end

Base.unsafe_convert(::Type{Ptr{Cvoid}}, writer::Writer) = writer.handle

# ---- sinks ----

# Each method stores a handle in `out` and returns the objects to keep alive.

function open_sink(path::AbstractString, how, out)
    @call millstream_writer_path(String(path), how, out)
end

function open_sink(remote::Remote, how, out)
    with_remote(remote) do handle
        @call millstream_writer_url(handle, how, out)
    end
    remote
end

function open_sink(cmd::Union{Base.AbstractCmd,Command}, how, out)
    is_given(part) = part isa Command && part.stdin !== nothing
    any(is_given, parts(cmd)) && throw(ArgumentError("the standard input of a sink's command is what the writer gets: omit `stdin`"))
    with_commands(cmd) do handles
        length(handles) == 1 || throw(ArgumentError("a sink is one command, and $cmd is " *
            "several: use `bash -o pipefail -c \"one | another\"`"))
        @call millstream_writer_command(handles[1], how, out)
    end
end

function open_sink(fd::RawFD, how, out)
    @call millstream_writer_borrow_fd(reinterpret(Cint, fd), how, out)
end

function open_sink(sink::Tcp, how, out)
    @call millstream_writer_tcp(sink.address, how, out)
end

function open_sink(sink::UnixSocket, how, out)
    @call millstream_writer_unix(sink.path, how, out)
end

function open_sink(::Nothing, how, out)
    @call millstream_writer_memory(how, out)
end

function open_sink(io::IO, how, out)
    outside = Outside(io, nothing)
    write = @cfunction(write_to_outside, Cssize_t, (Ptr{Cvoid}, Ptr{UInt8}, Csize_t))
    @call millstream_writer_callback(write, pointer_from_objref(outside), how, out)
    outside
end

open_sink(other, how, out) = throw(ArgumentError("a $(typeof(other)) is not a sink: use a path, a URL, a command, a RawFD or an IO"))

# ---- options ----

function with_writer_options(use; options...)
    out = Ref{Ptr{Cvoid}}(C_NULL)
    @call millstream_writer_options_new(out)
    how = out[]
    try
        set_writer_options(how; options...)
        use(how)
    finally
        @c millstream_writer_options_free(how)
    end
end

# ---- the window ----

check_open(writer::Writer) = isopen(writer) || throw(MillstreamError(19, :closed, "closed: this writer has been closed"))

# Ensures that there is this much space.
@inline reserve(writer::Writer, least::Int) = writer.stop - writer.at >= least || next_window(writer, least)

# Accepts the bytes in the window and opens another one.
@noinline function next_window(writer::Writer, least)
    check_open(writer)
    used = writer.at - writer.start
    writer.start = writer.at = writer.stop = C_NULL
    with_failure(writer.sink) do
        out = Base.unsafe_convert(Ptr{NTuple{2,Ptr{UInt8}}}, writer.out)
        GC.@preserve writer @call millstream_writer_window(writer, used, 0, least, out, out + sizeof(Ptr), writer.collecting)
    end
    (writer.start, writer.stop), writer.collects = writer.out[], writer.collecting[]
    writer.at = writer.start
    nothing
end

# Completes a write: accepts it, and passes it on if the policy requires this.
@inline committed(writer::Writer) = writer.collects || end_window(writer)

# Accepts the bytes in the window, so that other functions of the library can be called.
@noinline function end_window(writer::Writer)
    writer.start == C_NULL && return
    used = writer.at - writer.start
    writer.start = writer.at = writer.stop = C_NULL
    with_failure(writer.sink) do
        @call millstream_writer_end_window(writer, used)
    end
end

# ---- the writer as a whole ----

Base.isopen(writer::Writer) = writer.handle != C_NULL
Base.iswritable(writer::Writer) = isopen(writer)
Base.isreadable(::Writer) = false
Base.eof(::Writer) = true

function name(writer::Writer)
    check_open(writer)
    unsafe_string(@c millstream_writer_name(writer))
end

"""
    position(writer)

The number of bytes written so far, including those in the buffer. """
function Base.position(writer::Writer)
    check_open(writer)
    accepted = Ref{UInt64}(0)
    @call millstream_writer_accepted(writer, accepted)
    Int(accepted[]) + Int(writer.at - writer.start)
end

"""
    flush(writer)

Passes everything written so far to the system. """
function Base.flush(writer::Writer)
    check_open(writer)
    end_window(writer)
    with_failure(writer.sink) do
        @call millstream_writer_flush(writer)
    end
end

"""
    close(writer)

Writes the remaining bytes, ends the stream, and completes the output: a file gets its name; the writer waits for a
command, whose failure is an error. After an error, `close` may be called again and continues where it stopped. """
function Base.close(writer::Writer)
    isopen(writer) || return
    writer.was_closed = true
    end_window(writer)
    with_failure(writer.sink) do
        @call millstream_writer_close(writer)
    end
    free(writer)
end

"""
    take!(writer)

Closes a writer to memory, and returns everything that was written to it. """
function Base.take!(writer::Writer)
    check_open(writer)
    end_window(writer)
    @call millstream_writer_close(writer)
    bytes, len = Ref{Ptr{UInt8}}(C_NULL), Ref{Csize_t}(0)
    @call millstream_writer_taken_memory(writer, bytes, len)
    bytes[] == C_NULL && throw(ArgumentError("this writer does not keep its bytes in memory: only a Writer() does"))
    taken = copy(unsafe_wrap(Array, bytes[], len[]))
    free(writer)
    taken
end

# A finalizer. It does not wait for a sink, except at the end of the program. A sink that could block it gets no more
# bytes, and the loss is reported.
function forget(writer::Writer)
    if isopen(writer) && writer.may_wait && !is_exiting[]
        written, called = position(writer), name(writer)
        writer.start == C_NULL ||
            @c millstream_writer_end_window(writer.handle, 0, C_NULL)
        writer.start = writer.at = writer.stop = C_NULL
        @c millstream_writer_abort(writer.handle, C_NULL)
        written == 0 || writer.was_closed || Core.println(Core.stderr, "millstream: ", called, ": a writer was not closed after ", written,
            " bytes, the last of which may be lost; call close(writer)")
    end
    abandon(writer)
end

# Set when the program exits.
const is_exiting = Ref(false)

# Discards the output: the content of the buffer may be written, but a file that appears only if it is complete does not
# appear. No bytes of an object are sent any more.
function abandon(writer::Writer)
    used = writer.sink isa Remote ? 0 : writer.at - writer.start
    writer.start == C_NULL ||
        @c millstream_writer_end_window(writer.handle, used, C_NULL)
    writer.start = writer.at = writer.stop = C_NULL
    free(writer)
end

function free(writer::Writer)
    handle, writer.handle = writer.handle, C_NULL
    @c millstream_writer_free(handle)
end
