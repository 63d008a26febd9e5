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
    Shell(line)

A shell line, which is run with `bash -o pipefail -c`. Never put user input or file names into it; a `Cmd` passes
arguments unchanged. """
struct Shell
    line::String
end
