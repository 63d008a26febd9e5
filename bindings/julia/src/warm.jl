# Compiles the common calls while the package is precompiled, so that the first line of a session arrives earlier.
#
# Nothing runs: precompiling has no effects, and does not need the library. Calling the same functions instead of naming
# them makes loading slower than it makes the first call faster.

const Handle = Base.RefValue{Ptr{Cvoid}}

for T in (Cmd, String, Base.OrCmds, Shell, IOStream)
    precompile(eachrecord, (T,))
    precompile(open_source, (T, Ptr{Cvoid}, Handle))
end
for T in (Cmd, String)
    precompile(Writer, (T,))
    precompile(open_sink, (T, Ptr{Cvoid}, Handle))
end
for call in (next_line, readline, eof, close, await_fd)
    precompile(call, (Reader,))
end
precompile(iterate, (Records{typeof(getindex)},))
precompile(iterate, (Records{typeof(getindex)}, Int))
precompile(iterate, (Batches,))
for parts in ((String,), (String, Int, Char), (Int, Char))
    precompile(put!, (Writer, parts...))
end
precompile(close, (Writer,))
precompile(BiBufferedStream, (Cmd,))
for call in (readline, eof, close)
    precompile(call, (BiBufferedStream{FromPipe},))
end
precompile(take_error, (UInt32, Ptr{Cvoid}))
