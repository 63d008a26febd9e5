# Converts a Julia `Cmd` to a command of the library.

# Calls `use` with the commands of a `Cmd` or of a pipeline. Returns the input to be written to the first one, or nothing.
function with_commands(use, cmd)
    handles, input = Ptr{Cvoid}[], nothing
    try
        for (i, part) in enumerate(parts(cmd))
            handle = command_handle(part isa Command ? part.cmd : part)
            push!(handles, handle)
            part isa Command || continue
            set_command_options(handle; part.options...)
            i == 1 && (input = set_stdin(handle, part.stdin))
        end
        use(handles)
    catch
        input === nothing || close(input.to)
        rethrow()
    finally
        foreach(handle -> (@c millstream_command_free(handle)), handles)
    end
    input === nothing ? nothing : start(input)
end

parts(cmd::Cmd) = [cmd]
parts(cmd::Base.OrCmds) = vcat(parts(cmd.a), parts(cmd.b))
parts(cmd::Base.AbstractCmd) = throw(ArgumentError("the library starts commands and pipelines; parallel commands (`&`)" *
    " and redirections of output need BiBufferedStream($cmd), which lets Julia start them"))

# A redirected standard input: `pipeline("file", cmd)`.
function parts(cmd::Base.CmdRedirect)
    cmd.stream_no == 0 || return invoke(parts, Tuple{Base.AbstractCmd}, cmd)
    first, others = Iterators.peel(parts(cmd.cmd))
    [first isa Command ? first : Command(first; stdin = cmd.handle); collect(others)]
end

# The flag as defined by libuv.
const detached = 1 << 3

function command_handle(cmd::Cmd)
    isempty(cmd.exec) && throw(ArgumentError("this command is empty: name a program"))
    cmd.flags & detached == 0 ||
        throw(ArgumentError("the library cannot start a detached command: use BiBufferedStream($cmd)"))
    out = Ref{Ptr{Cvoid}}(C_NULL)
    words = cmd.exec
    # Text that contains a NUL is rejected here.
    GC.@preserve words begin
        argv = [convert(Ptr{UInt8}, Base.unsafe_convert(Cstring, word)) for word in words]
        @call millstream_command_new(argv, length(argv), out)
    end
    handle = out[]
    try
        if cmd.env !== nothing
            @call millstream_command_clear_env(handle)
            for setting in cmd.env
                key, value = split(setting, '='; limit = 2)
                @call millstream_command_set_env(handle, String(key), String(value))
            end
        end
        isempty(cmd.dir) || @call millstream_command_set_current_dir(handle, cmd.dir)
        cmd.ignorestatus && @call millstream_command_allow_failure(handle)
    catch
        @c millstream_command_free(handle)
        rethrow()
    end
    handle
end

"""
    Command(cmd; options...)

A `Cmd` with the options that Julia's own do not have. `env`, `dir` and `ignorestatus` of the `Cmd` apply as usual.

Options, with their defaults:
- `success_statuses`: the exit statuses that are successes, `[0]`; `success_signals`: the signals that may kill the
  command without this being an error, `Int[]`
- `stop_signal`: the signal that stops it when the stream is closed before the end, 15 (SIGTERM); `stop_grace`: the
  seconds that it may then continue before SIGKILL, 1
- `process_group`: `:auto`, `:own` (its children are stopped with it), `:inherit` (it can use the terminal)
- `stderr_limit`: how many bytes of the end of its standard error are kept for the error, 4096
- `stdin`: its standard input: text, bytes, a `RawFD`, an `IO`, a [`Remote`](@ref), which is not decoded, or an iterator
  over text or bytes, which are written one after another; nothing by default

An `IO`, an object or an iterator is read by a Julia task while the output is read, so memory is bounded, and a command
can be in the middle of a chain. If it throws, its exception is thrown after the last record of the command. Compressed
output of such a command is not decoded. The file or object of `pipeline("file", cmd)` is opened by the library.

```julia
Reader(Millstream.Command(`grep -c x`; stdin = "a\n", success_statuses = [0, 1])) # 1: nothing was found

numbers = parallel(expensive, eachrecord("names.txt"))
for line in eachrecord(Millstream.Command(`sort -n`; stdin = (string(number, "\\n") for number in numbers)))
    println(line)
end
```
"""
struct Command
    cmd::Cmd
    stdin::Any
    options::NamedTuple
    function Command(cmd::Cmd; stdin = nothing, options...)
        check_options(:Command, options, (:stdin, command_options...))
        new(cmd, checked_stdin(stdin), values(options))
    end
end

parts(command::Command) = [command]

checked_stdin(text::AbstractString) = Vector{UInt8}(codeunits(String(text)))
checked_stdin(value::Union{Nothing,RawFD,IO,Remote}) = value
checked_stdin(file::Base.FileRedirect) = is_url(file.filename) ? Remote(file.filename) : file
checked_stdin(bytes::AbstractVector{UInt8}) = Vector{UInt8}(bytes)
checked_stdin(value) = applicable(iterate, value) && !(value isa Union{Number,AbstractChar}) ? value :
    wrong(:stdin, value, "text, bytes, a RawFD, an IO, a Remote, or an iterator over text or bytes")

# Whether a task writes the input of the source.
is_written(_) = false
function is_written(cmd::Union{Base.AbstractCmd,Command})
    part = first(parts(cmd))
    part isa Command && !(part.stdin isa Union{Nothing,Vector{UInt8},RawFD,Base.FileRedirect})
end

# Returns the input that a task must write, or nothing.
set_stdin(handle, ::Nothing) = nothing
function set_stdin(handle, bytes::Vector{UInt8})
    @call millstream_command_set_stdin_bytes(handle, bytes, length(bytes))
end
function set_stdin(handle, fd::RawFD)
    @call millstream_command_set_stdin_fd(handle, reinterpret(Cint, fd))
end
function set_stdin(handle, file::Base.FileRedirect)
    @call millstream_command_set_stdin_path(handle, file.filename)
end
set_stdin(handle, remote::Remote) = set_stdin(handle, Opened(Reader(remote; decode = :off)))
set_stdin(handle, from) = with_input(from) do fd
    @call millstream_command_set_stdin_fd(handle, reinterpret(Cint, fd))
end

"""
    Shell(line)

A shell line, which is run with `bash -o pipefail -c`. Never put user input or file names into it; a `Cmd` passes
arguments unchanged. """
struct Shell
    line::String
end
