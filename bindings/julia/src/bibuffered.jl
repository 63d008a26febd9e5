# `BiBufferedStream` is an `IO` that reads lines fast from a command or any other `IO`.
#
# It is a `ByteStream`: when the pointers of its window meet, the supply returns the next window. A line that crosses the
# end of a window is collected in separate memory, so only memory limits the length of lines.

# The bytes have ended, and the source has reported whether it succeeded.
@enum State is_open bytes_ended is_judged is_closed

"""
    BiBufferedStream(command, bufsize = 2^24)
    BiBufferedStream(io, bufsize = 2^24)

An `IO` that reads lines fast from a command, which it starts, from `open(command)`, or from any other `IO`.

It replaces the type of the same name of BiBufferedStreams.jl: it has [`readline`](@ref), [`readuntil`](@ref),
[`eof`](@ref) and [`close`](@ref), and everything else that `Base` provides for a readable `IO`. If a command fails, its
`ProcessFailedException` is thrown after its last byte has been read: the end means that the command succeeded.
`ignorestatus` and all other properties of a `Cmd` work as usual, because Julia starts it.

`bufsize` limits how much is read at a time. Only one task at a time can read. """
mutable struct BiBufferedStream{S} <: ByteStream
    supply::S
    # The argument, which is closed at the end; a command is also asked for its status.
    io::IO
    at::Ptr{UInt8}
    stop::Ptr{UInt8}
    # The number of bytes of the stream before `stop`.
    passed::Int
    # Bytes that an interrupted read had already taken from the supply.
    returned::Vector{UInt8}
    state::State
    # A task is waiting for the next window, so no other task may read.
    filling::Bool
end

function BiBufferedStream(io::IO, bufsize::Integer = 2^24)
    bufsize > 0 || throw(ArgumentError("a buffer has at least one byte, not $bufsize"))
    supply = supply_of(io, clamp(Int(bufsize), 1, largest_window))
    BiBufferedStream(supply, io, Ptr{UInt8}(C_NULL), Ptr{UInt8}(C_NULL), 0, UInt8[], is_open, false)
end

BiBufferedStream(command::Base.AbstractCmd, bufsize::Integer = 2^24) = BiBufferedStream(open(command), bufsize)

# A size that fits in the second-level cache; larger windows are slower.
const largest_window = 2^18

const Processes = Union{Base.Process,Base.ProcessChain}

# ---- supplies ----

# The output of a command, read by the library.
struct FromPipe
    reader::Reader
end

# Any `IO`, which is read into a buffer.
struct FromIO{T<:IO}
    io::T
    buffer::Vector{UInt8}
end

supply_of(io::IO, size) = FromIO(io, Vector{UInt8}(undef, size))

# If Julia has not started to read a command's pipe, the library reads it.
function supply_of(command::Processes, size)
    pipe = command.out
    if pipe isa Base.PipeEndpoint && pipe.status == Base.StatusOpen && bytesavailable(pipe) == 0
        reader = Reader(Base._fd(pipe); decode = :off, read_ahead = :off, capacity = size)
        # Julia has created it, so it does not block, and no other code reads it.
        reader.is_ours = true
        FromPipe(reader)
    else
        FromIO(command, Vector{UInt8}(undef, size))
    end
end

# Returns the next window, which is empty at the end. The previous window becomes invalid.
function next_window(supply::FromPipe)
    reader = supply.reader
    check_open(reader)
    # Consumes the previous window.
    @call millstream_reader_buffer(reader, reader.buffer, reader.len)
    reader.len[] == 0 || @call millstream_reader_consume(reader, reader.len[])
    await_readable(reader)
    isopen(reader) || return Ptr{UInt8}(C_NULL), 0 # closed by another task
    @call millstream_reader_fill(reader, reader.buffer, reader.len, reader.added)
    reader.buffer[], Int(reader.len[])
end

function next_window(supply::FromIO)
    buffer = supply.buffer
    GC.@preserve buffer (pointer(buffer), take_available(supply.io, pointer(buffer), length(buffer)))
end

stop_supply(supply::FromPipe) = free(supply.reader)
stop_supply(::FromIO) = nothing

# ---- windows ----

# Makes sure that there is an unread byte; returns false at the end of the bytes.
function refill(s::BiBufferedStream)
    s.at < s.stop && return true
    s.state == is_open || return false
    s.filling && throw(only_one_task())
    s.filling = true
    at, len = try
        next_window(s.supply)
    finally
        s.filling = false
    end
    s.state == is_open || return false # closed by another task
    s.at, s.stop = at, at + len
    s.passed += len
    len == 0 && (s.state = bytes_ended)
    len > 0
end

# Checks once, after the last byte, whether the source succeeded.
function judge(s::BiBufferedStream)
    s.state == bytes_ended || return
    s.state = is_judged
    judge(s.io)
end

judge(::IO) = nothing

function judge(command::Processes)
    foreach(wait, processes(command))
    failed = filter(process -> !process.cmd.ignorestatus && has_failed(process), processes(command))
    isempty(failed) || throw(Base.ProcessFailedException(failed))
    nothing
end

processes(process::Base.Process) = [process]
processes(chain::Base.ProcessChain) = chain.processes

has_failed(process) = process.exitcode != 0 || process.termsignal != 0

# ---- lines ----

"""
    readline(s::BiBufferedStream; keep = false)

Returns the next line, without its line feed or carriage return and line feed unless `keep` is true. """
function Base.readline(s::BiBufferedStream; keep::Bool = false)
    found = find(s, 0x0a)
    found == C_NULL && return line_across(s, keep)
    at, s.at = s.at, found + 1
    keep && return string_at(s, at, found + 1)
    found > at && unsafe_load(found - 1) == 0x0d && (found -= 1)
    string_at(s, at, found)
end

"""
    readuntil(s::BiBufferedStream, delimiter::Union{Char,UInt8}; keep = false)

Returns the bytes up to a delimiter, or up to the end, as a `String`, even if the delimiter is a `UInt8`. """
function Base.readuntil(s::BiBufferedStream, delimiter::UInt8; keep::Bool = false)
    found = find(s, delimiter)
    if found == C_NULL
        taken, ended = collect_until(s, delimiter)
        ended && !keep && pop!(taken)
        return String(taken)
    end
    at, s.at = s.at, found + 1
    string_at(s, at, keep ? found + 1 : found)
end

# A character may have several bytes: Base finds strings in any `IO`.
Base.readuntil(s::BiBufferedStream, delimiter::Char; keep::Bool = false) =
    isascii(delimiter) ? readuntil(s, UInt8(delimiter); keep = keep) :
    invoke(readuntil, Tuple{IO,AbstractString}, s, string(delimiter); keep = keep)

@inline string_at(s, from, to) = GC.@preserve s unsafe_string(from, to - from)

@noinline function line_across(s, keep)
    taken, ended = collect_until(s, 0x0a)
    if ended && !keep
        pop!(taken)
        isempty(taken) || last(taken) != 0x0d || pop!(taken)
    end
    String(taken)
end

# Takes everything up to and including a byte, or up to the end, from as many windows as needed; returns whether the
# byte was found.
function collect_until(s, byte)
    taken = UInt8[]
    while true
        found = find(s, byte)
        take_to(s, taken, found == C_NULL ? s.stop : found + 1)
        found == C_NULL || return taken, true
        more = try
            refill(s)
        catch
            # After an interruption such as Ctrl-C, no bytes are lost.
            give_back(s, taken)
            rethrow()
        end
        if !more
            isempty(taken) && judge(s)
            return taken, false
        end
    end
end

function take_to(s, taken, stop)
    count = stop - s.at
    had = length(taken)
    resize!(taken, had + count)
    GC.@preserve s taken unsafe_copyto!(pointer(taken, had + 1), s.at, count)
    s.at = stop
end

# Marks taken bytes as unread; there are no other unread bytes.
function give_back(s, taken)
    s.returned = taken
    s.at = pointer(taken)
    s.stop = s.at + length(taken)
end

# ---- the rest of the IO interface ----

function Base.eof(s::BiBufferedStream)
    refill(s) && return false
    judge(s)
    true
end

"""
    position(s::BiBufferedStream)

The number of bytes that have been read.
"""
Base.position(s::BiBufferedStream) = s.passed - bytesavailable(s)

Base.bytesavailable(s::BiBufferedStream) = Int(s.stop - s.at)

Base.isopen(s::BiBufferedStream) = s.state != is_closed

Base.show(io::IO, s::BiBufferedStream) =
    print(io, "BiBufferedStream(", s.io, isopen(s) ? ", $(bytesavailable(s)) bytes waiting)" : ", closed)")

"""
    close(s::BiBufferedStream)

Stops reading and closes the underlying object; no more bytes can be read. A running command is stopped: with SIGTERM
after one second, and with SIGKILL after another second. Its status is not an error then; if it had failed before, its
`ProcessFailedException` is thrown. """
function Base.close(s::BiBufferedStream)
    isopen(s) || return
    is_judged_before = s.state == is_judged
    s.state = is_closed
    s.at = s.stop
    stop_supply(s.supply)
    close_source(s.io, is_judged_before)
    nothing
end

close_source(io::IO, _) = close(io)

function close_source(command::Processes, is_judged_before)
    yield() # so that Julia detects processes that have ended
    failed = filter(process -> process_exited(process) && !process.cmd.ignorestatus && has_failed(process), processes(command))
    close(command)
    for (patience, signal) in ((1.0, Base.SIGTERM), (1.0, Base.SIGKILL))
        all(process_exited, processes(command)) && break
        timedwait(() -> all(process_exited, processes(command)), patience; pollint = 0.005)
        foreach(process -> process_running(process) && kill(process, signal), processes(command))
    end
    foreach(wait, processes(command))
    is_judged_before || isempty(failed) || throw(Base.ProcessFailedException(failed))
end
