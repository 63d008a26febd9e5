# Errors: one exception type, which is filled from the library's error object, and `@call`, which throws it.

"""
How a command ended: `command` as started, `exitcode` or else the number of the `signal` that ended it (0: none), and the
last 4 KiB of its standard error, where that was the library's to see.
"""
struct CommandEnd
    command::Vector{String}
    exitcode::Union{Int,Nothing}
    signal::Int
    stderr_tail::String
end

"""
What went wrong, where, and what to do about it.

`kind` is a name such as `:command_failed`, and `code` its fixed number; `message` says all of it in a sentence. The rest
is `nothing` where it is not known: the `name` of the source or sink, the byte `offset` and the number of the `record` in the
stream (the first is 0), what was `expected` and `found`, how many bytes a sink has `written` for certain, the `path` of a value
in a BSON document, the system's `errno`, and how the `command` ended.
"""
struct MillstreamError <: Exception
    code::Int
    kind::Symbol
    message::String
    name::Union{String,Nothing}
    offset::Union{Int64,Nothing}
    record::Union{Int64,Nothing}
    expected::Union{String,Nothing}
    found::Union{String,Nothing}
    written::Union{Int64,Nothing}
    path::Union{String,Nothing}
    errno::Union{Int,Nothing}
    command::Union{CommandEnd,Nothing}
end

MillstreamError(code, kind, message; name = nothing, offset = nothing, record = nothing, expected = nothing, found = nothing,
    written = nothing, path = nothing, errno = nothing, command = nothing) =
    MillstreamError(code, kind, message, name, offset, record, expected, found, written, path, errno, command)

Base.showerror(io::IO, error::MillstreamError) = print(io, "MillstreamError: ", error.message)

"""
    @call millstream_name(argument::Type, ...)

Calls a function that returns a code and takes an error object last, which is added here; throws when it fails.
"""
macro call(call)
    error = gensym(:error)
    push!(call.args, :($error::Ptr{Ptr{Cvoid}}))
    quote
        $(esc(error)) = Ref{Ptr{Cvoid}}(C_NULL)
        code = $(esc(call_of(call, UInt32)))
        code == 0 || throw_error(code, $(esc(error))[])
        nothing
    end
end

@noinline throw_error(code, handle) = throw(take_error(code, handle))

# As millstream_command_end.
struct CCommandEnd
    argv::Ptr{Ptr{UInt8}}
    argc::Csize_t
    status::UInt32
    value::Int32
    stderr_tail::Ptr{UInt8}
    stderr_tail_len::Csize_t
end

CommandEnd(c::CCommandEnd) = CommandEnd(
    [unsafe_string(unsafe_load(c.argv, i)) for i in 1:c.argc],
    c.status == 0 ? Int(c.value) : nothing,
    c.status == 1 ? Int(c.value) : 0,
    c.stderr_tail == C_NULL ? "" : unsafe_string(c.stderr_tail, c.stderr_tail_len),
)

# The exception that an error object is, which is freed.
function take_error(code, handle)
    text(pointer) = pointer == C_NULL ? nothing : unsafe_string(pointer)
    kind = Symbol(something(text(@c millstream_code_name(code::UInt32)::Ptr{UInt8}), "unknown"))
    handle == C_NULL && return MillstreamError(code, kind, "$kind: $(text(@c millstream_code_advice(code::UInt32)::Ptr{UInt8}))")
    number = Ref{UInt64}(0)
    end_ = Ref{CCommandEnd}()
    errno = @c millstream_error_errno(handle::Ptr{Cvoid})::Int32
    error = MillstreamError(
        code,
        kind,
        text(@c millstream_error_message(handle::Ptr{Cvoid})::Ptr{UInt8});
        name = text(@c millstream_error_name(handle::Ptr{Cvoid})::Ptr{UInt8}),
        offset = (@c millstream_error_offset(handle::Ptr{Cvoid}, number::Ptr{UInt64})::Bool) ? Int64(number[]) : nothing,
        record = (@c millstream_error_record(handle::Ptr{Cvoid}, number::Ptr{UInt64})::Bool) ? Int64(number[]) : nothing,
        expected = text(@c millstream_error_expected(handle::Ptr{Cvoid})::Ptr{UInt8}),
        found = text(@c millstream_error_found(handle::Ptr{Cvoid})::Ptr{UInt8}),
        written = (@c millstream_error_written(handle::Ptr{Cvoid}, number::Ptr{UInt64})::Bool) ? Int64(number[]) : nothing,
        path = text(@c millstream_error_path(handle::Ptr{Cvoid})::Ptr{UInt8}),
        errno = errno == 0 ? nothing : Int(errno),
        command = (@c millstream_error_command(handle::Ptr{Cvoid}, end_::Ptr{CCommandEnd})::Bool) ? CommandEnd(end_[]) : nothing,
    )
    @c millstream_error_free(handle::Ptr{Cvoid})::Cvoid
    error
end

# The number of an enum of the header, from the symbol that stands for it here.
function choice(option::Symbol, value, names::Tuple)
    found = findfirst(isequal(value), names)
    found === nothing && throw(ArgumentError("$option cannot be $(repr(value)): it is one of $(join(map(repr, names), ", "))"))
    UInt32(found - 1)
end
