# Writers: bytes, text and numbers into a sink.
#
# A window into the library's buffer is open between two calls of it: what is put goes straight there, and the library is
# called when it is full, and where bytes must be handed over earlier.

"""
    Writer(sink; options...)

Writes to a sink: a path, a `Cmd` (its standard input), a `RawFD` (a duplicate of it), an `IO`, [`Tcp`](@ref),
[`UnixSocket`](@ref), or with no sink to memory, which `take!` gives.

A path is compressed if its name ends in .gz, .bgz, .bgzf or .zst, and appears whole when the writer is closed, or not at
all. `put!` writes text and numbers without an allocation; `print`, `write` and all else that `Base` does with an `IO` work
too. What was written is with the sink when `close` has succeeded, and not before. A call that hands bytes to the sink waits
for it, and with it Julia's other tasks.

Options, all with the usual value first:
- `flush_policy`: `:auto`, `:when_full`, `:line`; or `flush_delay`: seconds after which bytes are on their way at the latest
- `encode`: `:auto`, `:off`, `:gzip`, `:bgzf`, `:zstd`; `level`
- `existing`: `:replace`, `:append`; `partial`: `:remove`, `:keep`; `durability`: `:cached`, `:data`, `:all`
- `capacity`: of the buffer, 64 KiB, of pipes 256 KiB; `stall_timeout`: seconds
- `cancel`: a [`CancelToken`](@ref); `name`: what errors call the sink
"""
mutable struct Writer <: IO
    handle::Ptr{Cvoid}
    sink::Any
    # The window: NULL where none is open. Up to `at` it is filled.
    start::Ptr{UInt8}
    at::Ptr{UInt8}
    stop::Ptr{UInt8}
    # Whether what is put may stay in the window until that is full.
    collects::Bool
    out::Base.RefValue{NTuple{2,Ptr{UInt8}}}
    collecting::Base.RefValue{Bool}

    function Writer(sink = nothing; options...)
        writer = new(C_NULL, nothing, C_NULL, C_NULL, C_NULL, false, Ref((Ptr{UInt8}(C_NULL), Ptr{UInt8}(C_NULL))), Ref(false))
        finalizer(abandon, writer)
        with_writer_options(; options...) do how
            out = Ref{Ptr{Cvoid}}(C_NULL)
            writer.sink = open_sink(sink, how, out)
            writer.handle = out[]
        end
        writer
    end
end

"""
    Writer(use, sink; options...)

Calls `use` with a writer, closes it, and returns what `use` did. If `use` throws, what it was to write is given up: a file
does not appear.
"""
function Writer(use::Union{Function,Type}, sink; options...)
    writer = Writer(sink; options...)
    local result
    try
        result = use(writer)
    catch
        abandon(writer)
        rethrow()
    end
    close(writer)
    result
end

Base.unsafe_convert(::Type{Ptr{Cvoid}}, writer::Writer) = writer.handle

Base.show(io::IO, writer::Writer) = print(io, "Writer(", isopen(writer) ? repr(name(writer)) : "closed", ")")

# ---- sinks ----

# Each puts a handle into `out` and returns what has to be kept alive.

function open_sink(path::AbstractString, how, out)
    @call millstream_writer_path(String(path)::Cstring, how::Ptr{Cvoid}, out::Ptr{Ptr{Cvoid}})
end

function open_sink(cmd::Base.AbstractCmd, how, out)
    with_commands(cmd) do handles
        length(handles) == 1 || throw(ArgumentError("a sink is one command, and $cmd is " *
            "several: `bash -o pipefail -c \"one | another\"` is one"))
        @call millstream_writer_command(handles[1]::Ptr{Cvoid}, how::Ptr{Cvoid}, out::Ptr{Ptr{Cvoid}})
    end
end

function open_sink(fd::RawFD, how, out)
    @call millstream_writer_borrow_fd(fd::RawFD, how::Ptr{Cvoid}, out::Ptr{Ptr{Cvoid}})
end

function open_sink(sink::Tcp, how, out)
    @call millstream_writer_tcp(sink.address::Cstring, how::Ptr{Cvoid}, out::Ptr{Ptr{Cvoid}})
end

function open_sink(sink::UnixSocket, how, out)
    @call millstream_writer_unix(sink.path::Cstring, how::Ptr{Cvoid}, out::Ptr{Ptr{Cvoid}})
end

function open_sink(::Nothing, how, out)
    @call millstream_writer_memory(how::Ptr{Cvoid}, out::Ptr{Ptr{Cvoid}})
end

function open_sink(io::IO, how, out)
    outside = Outside(io, nothing)
    write = @cfunction(write_to_outside, Cssize_t, (Ptr{Cvoid}, Ptr{UInt8}, Csize_t))
    @call millstream_writer_callback(write::Ptr{Cvoid}, pointer_from_objref(outside)::Ptr{Cvoid}, how::Ptr{Cvoid}, out::Ptr{Ptr{Cvoid}})
    outside
end

open_sink(other, how, out) = throw(ArgumentError("a $(typeof(other)) is no sink: a path, a command, a RawFD or an IO is"))

# ---- options ----

function with_writer_options(use; capacity = nothing, flush_policy = nothing, flush_delay = nothing, encode = nothing,
    level = nothing, existing = nothing, partial = nothing, durability = nothing, stall_timeout = nothing, cancel = nothing,
    name = nothing)
    out = Ref{Ptr{Cvoid}}(C_NULL)
    @call millstream_writer_options_new(out::Ptr{Ptr{Cvoid}})
    how = out[]
    try
        capacity === nothing || @call millstream_writer_options_set_capacity(how::Ptr{Cvoid}, capacity::Csize_t)
        flush_policy === nothing || @call millstream_writer_options_set_flush_policy(how::Ptr{Cvoid},
            choice(:flush_policy, flush_policy, (:auto, :when_full, :line))::UInt32)
        flush_delay === nothing || @call millstream_writer_options_set_flush_delay_ns(how::Ptr{Cvoid},
            round(UInt64, flush_delay * 1e9)::UInt64)
        encode === nothing || @call millstream_writer_options_set_encode(how::Ptr{Cvoid},
            choice(:encode, encode, (:auto, :off, :gzip, :bgzf, :zstd))::UInt32)
        level === nothing || @call millstream_writer_options_set_level(how::Ptr{Cvoid}, level::UInt32)
        existing === nothing || @call millstream_writer_options_set_existing(how::Ptr{Cvoid},
            choice(:existing, existing, (:replace, :append))::UInt32)
        partial === nothing || @call millstream_writer_options_set_partial(how::Ptr{Cvoid},
            choice(:partial, partial, (:remove, :keep))::UInt32)
        durability === nothing || @call millstream_writer_options_set_durability(how::Ptr{Cvoid},
            choice(:durability, durability, (:cached, :data, :all))::UInt32)
        stall_timeout === nothing || @call millstream_writer_options_set_stall_timeout_ns(how::Ptr{Cvoid},
            round(UInt64, stall_timeout * 1e9)::UInt64)
        cancel === nothing || @call millstream_writer_options_set_cancel(how::Ptr{Cvoid}, cancel::Ptr{Cvoid})
        name === nothing || @call millstream_writer_options_set_name(how::Ptr{Cvoid}, name::Cstring)
        use(how)
    finally
        @c millstream_writer_options_free(how::Ptr{Cvoid})::Cvoid
    end
end

# ---- the window ----

check_open(writer::Writer) = isopen(writer) || throw(MillstreamError(19, :closed, "closed: this writer has been closed"))

# Sees to it that there is so much room.
@inline reserve(writer::Writer, least::Int) = writer.stop - writer.at >= least || next_window(writer, least)

# What is in the window is accepted, and another one opened.
@noinline function next_window(writer::Writer, least)
    check_open(writer)
    used = writer.at - writer.start
    writer.start = writer.at = writer.stop = C_NULL
    with_failure(writer.sink) do
        out = Base.unsafe_convert(Ptr{NTuple{2,Ptr{UInt8}}}, writer.out)
        GC.@preserve writer @call millstream_writer_window(writer::Ptr{Cvoid}, used::Csize_t, 0::Csize_t, least::Csize_t,
            out::Ptr{Cvoid}, (out + sizeof(Ptr))::Ptr{Cvoid}, writer.collecting::Ptr{Bool})
    end
    (writer.start, writer.stop), writer.collects = writer.out[], writer.collecting[]
    writer.at = writer.start
    nothing
end

# What was put is a whole: it is accepted, and handed over if the policy says so.
@inline committed(writer::Writer) = writer.collects || end_window(writer)

# Accepts what is in the window, so that the library can be called for anything else.
@noinline function end_window(writer::Writer)
    writer.start == C_NULL && return
    used = writer.at - writer.start
    writer.start = writer.at = writer.stop = C_NULL
    with_failure(writer.sink) do
        @call millstream_writer_end_window(writer::Ptr{Cvoid}, used::Csize_t)
    end
end

# ---- the writer as a whole ----

Base.isopen(writer::Writer) = writer.handle != C_NULL
Base.iswritable(writer::Writer) = isopen(writer)
Base.isreadable(::Writer) = false
Base.eof(::Writer) = true

function name(writer::Writer)
    check_open(writer)
    unsafe_string(@c millstream_writer_name(writer::Ptr{Cvoid})::Ptr{UInt8})
end

"""
    position(writer)

How many bytes were written so far, those in the buffer included.
"""
function Base.position(writer::Writer)
    check_open(writer)
    accepted = Ref{UInt64}(0)
    @call millstream_writer_accepted(writer::Ptr{Cvoid}, accepted::Ptr{UInt64})
    Int(accepted[]) + (writer.at - writer.start)
end

"""
    flush(writer)

Hands all that was written so far to the system.
"""
function Base.flush(writer::Writer)
    check_open(writer)
    end_window(writer)
    with_failure(writer.sink) do
        @call millstream_writer_flush(writer::Ptr{Cvoid})
    end
end

"""
    close(writer)

Writes what is left, ends the stream, and makes it count: a file takes its name, a command is waited for, and if it fails
that is an error. After an error `close` may be called again, and goes on where it stopped.
"""
function Base.close(writer::Writer)
    isopen(writer) || return
    end_window(writer)
    with_failure(writer.sink) do
        @call millstream_writer_close(writer::Ptr{Cvoid})
    end
    free(writer)
end

"""
    take!(writer)

Closes a writer that keeps everything in memory, and gives all that was written to it.
"""
function Base.take!(writer::Writer)
    check_open(writer)
    end_window(writer)
    @call millstream_writer_close(writer::Ptr{Cvoid})
    bytes, len = Ref{Ptr{UInt8}}(C_NULL), Ref{Csize_t}(0)
    @call millstream_writer_taken_memory(writer::Ptr{Cvoid}, bytes::Ptr{Ptr{UInt8}}, len::Ptr{Csize_t})
    bytes[] == C_NULL && throw(ArgumentError("this writer does not keep its bytes in memory: only a Writer() does"))
    taken = copy(unsafe_wrap(Array, bytes[], len[]))
    free(writer)
    taken
end

# As if nobody had wanted it: what is in the buffer may go out, a file that is to appear whole does not appear.
function abandon(writer::Writer)
    used = writer.at - writer.start
    writer.start == C_NULL ||
        @c millstream_writer_end_window(writer.handle::Ptr{Cvoid}, used::Csize_t, C_NULL::Ptr{Ptr{Cvoid}})::UInt32
    writer.start = writer.at = writer.stop = C_NULL
    free(writer)
end

function free(writer::Writer)
    handle, writer.handle = writer.handle, C_NULL
    @c millstream_writer_free(handle::Ptr{Cvoid})::Cvoid
end
