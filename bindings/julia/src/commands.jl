# Commands: a `Cmd` of Julia's as a command of the library's.

# Calls `use` with the commands that a `Cmd`, or a pipeline of them, is made of.
function with_commands(use, cmd::Base.AbstractCmd)
    handles = Ptr{Cvoid}[]
    try
        foreach(part -> push!(handles, command_handle(part)), parts(cmd))
        use(handles)
    finally
        foreach(handle -> (@c millstream_command_free(handle::Ptr{Cvoid})::Cvoid), handles)
    end
end

parts(cmd::Cmd) = [cmd]
parts(cmd::Base.OrCmds) = vcat(parts(cmd.a), parts(cmd.b))
parts(cmd::Base.AbstractCmd) = throw(ArgumentError("the library starts commands and pipelines of them; commands side by side (`&`)" *
    " and redirections are for BiBufferedStream($cmd), which leaves them to Julia"))

# As libuv has it.
const detached = 1 << 3

function command_handle(cmd::Cmd)
    isempty(cmd.exec) && throw(ArgumentError("this command is empty: please name a program"))
    cmd.flags & detached == 0 ||
        throw(ArgumentError("a detached command cannot be started by the library: please use BiBufferedStream($cmd)"))
    out = Ref{Ptr{Cvoid}}(C_NULL)
    words = cmd.exec
    # Texts with a NUL in them are refused here.
    GC.@preserve words begin
        argv = [Base.unsafe_convert(Cstring, word) for word in words]
        @call millstream_command_new(argv::Ptr{Cstring}, length(argv)::Csize_t, out::Ptr{Ptr{Cvoid}})
    end
    handle = out[]
    try
        if cmd.env !== nothing
            @call millstream_command_clear_env(handle::Ptr{Cvoid})
            for setting in cmd.env
                key, value = split(setting, '='; limit = 2)
                @call millstream_command_set_env(handle::Ptr{Cvoid}, String(key)::Cstring, String(value)::Cstring)
            end
        end
        isempty(cmd.dir) || @call millstream_command_set_current_dir(handle::Ptr{Cvoid}, cmd.dir::Cstring)
        cmd.ignorestatus && @call millstream_command_allow_failure(handle::Ptr{Cvoid})
    catch
        @c millstream_command_free(handle::Ptr{Cvoid})::Cvoid
        rethrow()
    end
    handle
end

"""
    Shell(line)

A line of shell, run by `bash -o pipefail -c`. Never put into it what a user typed, or the name of a file: a `Cmd` takes
arguments as they are.
"""
struct Shell
    line::String
end
