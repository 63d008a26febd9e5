# Converts a Julia `Cmd` to a command of the library.

# Calls `use` with the commands of a `Cmd` or of a pipeline.
function with_commands(use, cmd::Base.AbstractCmd)
    handles = Ptr{Cvoid}[]
    try
        foreach(part -> push!(handles, command_handle(part)), parts(cmd))
        use(handles)
    finally
        foreach(handle -> (@c millstream_command_free(handle)), handles)
    end
end

parts(cmd::Cmd) = [cmd]
parts(cmd::Base.OrCmds) = vcat(parts(cmd.a), parts(cmd.b))
parts(cmd::Base.AbstractCmd) = throw(ArgumentError("the library starts commands and pipelines; parallel commands (`&`)" *
    " and redirections need BiBufferedStream($cmd), which lets Julia start them"))

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
- `stdin`: its standard input, as text or bytes: nothing by default

```julia
Reader(Millstream.Command(`grep -c x`; stdin = "a\n", success_statuses = [0, 1])) # 1: nothing was found
```
"""
struct Command
    cmd::Cmd
    stdin::Union{Nothing,Vector{UInt8}}
    options::NamedTuple
    Command(cmd::Cmd; stdin = nothing, options...) = new(cmd, bytes_of(:stdin, stdin), values(options))
end

bytes_of(::Symbol, ::Nothing) = nothing
bytes_of(::Symbol, text::AbstractString) = Vector{UInt8}(codeunits(String(text)))
bytes_of(::Symbol, bytes::AbstractVector{UInt8}) = Vector{UInt8}(bytes)
bytes_of(option::Symbol, value) = wrong(option, value, "text or bytes")

function with_commands(use, command::Command)
    handle = command_handle(command.cmd)
    try
        set_command_options(handle; command.options...)
        bytes = command.stdin
        bytes === nothing || @call millstream_command_set_stdin_bytes(handle, bytes, length(bytes))
        use([handle])
    finally
        @c millstream_command_free(handle)
    end
end

"""
    Shell(line)

A shell line, which is run with `bash -o pipefail -c`. Never put user input or file names into it; a `Cmd` passes
arguments unchanged. """
struct Shell
    line::String
end
