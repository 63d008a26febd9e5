# The standard input of a command, written by a Julia task while others read the command's output.

mutable struct Input
    from::Any
    # The end of a pipe, whose other end the command reads.
    to::Base.PipeEndpoint
    # The exception of `from`, which the command does not know about.
    failure::Any
end

const F_SETFL = Cint(4)

# Creates the pipe, and passes its other end to `use`.
function with_input(use, from)
    pipe = Pipe()
    Base.link_pipe!(pipe; reader_supports_async = false, writer_supports_async = true)
    try
        # Julia has made both ends non-blocking, which commands do not expect.
        ccall(:fcntl, Cint, (Cint, Cint, Cint...), reinterpret(Cint, Base._fd(pipe.out)), F_SETFL, 0)
        use(Base._fd(pipe.out))
    catch
        close(pipe.in)
        rethrow()
    finally
        close(pipe.out)
    end
    Input(from, pipe.in, nothing)
end

# Starts the task. A command that needs no more input closes the pipe; this is not a failure.
function start(input::Input)
    @async try
        try
            each_part(input.from) do part
                written(input.to, part)
            end
        catch failure
            input.failure = failure
        end
    finally
        close(input.to)
    end
    input
end

# Calls `use` with one part after another, until it returns false.
function each_part(use, from::IO)
    while !eof(from)
        use(readavailable(from)) || return
    end
end

# An object that was opened for the command.
struct Opened
    reader::Reader
end

function each_part(use, from::Opened)
    try
        each_part(use, from.reader)
    finally
        free(from.reader)
    end
end

function each_part(use, from)
    for part in from
        part isa Union{AbstractString,AbstractVector{UInt8}} || wrong(:stdin, part, "text or bytes in $(typeof(from))")
        use(part) || return
    end
end

# Writes a part. Returns whether the command may need more.
function written(to, part)
    try
        write(to, part)
        true
    catch
        false
    end
end
