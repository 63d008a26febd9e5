# Errors: one exception type, which is filled from the library's error object, and `@call`, which throws it.

"""
How a command ended: `argv` as it was started, its `status` or the number of the `signal` that killed it (0 if
none), and the last bytes of its standard error (`stderr_limit`, 4 KiB by default), if the library read it. """
struct CommandEnd
    argv::Vector{String}
    status::Union{Int,Nothing}
    signal::Int
    stderr_tail::String
end

"""
An error: what went wrong, where, and what to do about it.

`kind` is a name such as `:command_failed`, one of `keys(Millstream.error_kinds)`, and `code` its fixed number;
`message` is the whole error in one sentence. Everything else is `nothing` if unknown: the `name` of the source or sink,
the byte `offset` and the number of the `record` in the stream (the first is 0), the `line` of a text and the `column` in
it in bytes (the first is 1), what was `expected` and `found`, the
number of bytes that are certainly `written` to a sink, the `path` of a value in a BSON document, the system's `errno`,
how the `command` ended, and the exception that is its `cause`. """
struct MillstreamError <: Exception
    code::Int
    kind::Symbol
    message::String
    name::Union{String,Nothing}
    offset::Union{Int64,Nothing}
    record::Union{Int64,Nothing}
    line::Union{Int64,Nothing}
    column::Union{Int64,Nothing}
    expected::Union{String,Nothing}
    found::Union{String,Nothing}
    written::Union{Int64,Nothing}
    path::Union{String,Nothing}
    errno::Union{Int,Nothing}
    command::Union{CommandEnd,Nothing}
    cause::Any
end

MillstreamError(code, kind, message; name = nothing, offset = nothing, record = nothing, line = nothing,
    column = nothing, expected = nothing, found = nothing, written = nothing, path = nothing, errno = nothing, command = nothing, cause = nothing) =
    MillstreamError(code, kind, message, name, offset, record, line, column, expected, found, written, path, errno, command, cause)

# What the library's advice names differently from Julia, or Julia does not have.
const spellings = ("`allow_failure`" => "`ignorestatus(cmd)`", "`skip_record`" => "`Millstream.skip_record`",
    "; raise `depth` if the source is trusted" => "", "; skip failing records with `on_error`" => "")

in_julia(text) = foldl(replace, spellings; init = text)
advice(code) = in_julia(unsafe_string(@c millstream_code_advice(code)))

# An error at a record that is found in Julia, in the words of the library.
function record_error(kind, name, offset, record; line = nothing, column = nothing, found, expected = nothing, path = nothing, cause = nothing)
    code = error_kinds[kind]
    place = line === nothing ? "byte $offset, record $record (the first is 0)" : column === nothing ? "line $line" : "line $line, column $column"
    # A stage that failed is quoted.
    before = kind === :stage_failed ? ": " : ": found "
    message = string(name, ": ", replace(string(kind), '_' => ' '), before, found, expected === nothing ? "" : ", expected $expected",
        path === nothing ? "" : ", in $path", ", at ", place, "; ",
        advice(code))
    MillstreamError(code, kind, message; name = name, offset = Int64(offset), record = Int64(record), line = line, column = column,
        expected = expected, found = found, path = path, cause = cause)
end

Base.showerror(io::IO, error::MillstreamError) = print(io, "MillstreamError: ", error.message)

"""
    @call millstream_name(argument, ...)

Calls a function that returns a code and whose last argument is an error object, which is added here; throws if it
fails.
"""
macro call(call)
    error = gensym(:error)
    push!(call.args, error)
    quote
        $(esc(error)) = Ref{Ptr{Cvoid}}(C_NULL)
        code = $(esc(call_of(call)))
        code == 0 || throw_error(code, $(esc(error))[])
        nothing
    end
end

@noinline throw_error(code, handle) = throw(take_error(code, handle))

CommandEnd(c::CCommandEnd) = CommandEnd(
    [unsafe_string(unsafe_load(c.argv, i)) for i in 1:c.argc],
    c.status == 0 ? Int(c.value) : nothing,
    c.status == 1 ? Int(c.value) : 0,
    c.stderr_tail == C_NULL ? "" : unsafe_string(c.stderr_tail, c.stderr_tail_len),
)

# Returns the exception for an error object, and frees the object.
function take_error(code, handle)
    text(pointer) = pointer == C_NULL ? nothing : unsafe_string(pointer)
    kind = Symbol(something(text(@c millstream_code_name(code)), "unknown"))
    handle == C_NULL && return MillstreamError(code, kind, "$kind: $(advice(code))")
    number = Ref{UInt64}(0)
    end_ = Ref{CCommandEnd}()
    errno = @c millstream_error_errno(handle)
    error = MillstreamError(
        code,
        kind,
        in_julia(text(@c millstream_error_message(handle)));
        name = text(@c millstream_error_name(handle)),
        offset = (@c millstream_error_offset(handle, number)) ? Int64(number[]) : nothing,
        record = (@c millstream_error_record(handle, number)) ? Int64(number[]) : nothing,
        line = (@c millstream_error_line(handle, number)) ? Int64(number[]) : nothing,
        column = (@c millstream_error_column(handle, number)) ? Int64(number[]) : nothing,
        expected = text(@c millstream_error_expected(handle)),
        found = text(@c millstream_error_found(handle)),
        written = (@c millstream_error_written(handle, number)) ? Int64(number[]) : nothing,
        path = text(@c millstream_error_path(handle)),
        errno = errno == 0 ? nothing : Int(errno),
        command = (@c millstream_error_command(handle, end_)) ? CommandEnd(end_[]) : nothing,
    )
    @c millstream_error_free(handle)
    error
end

# ---- options ----

# Throws for an option that a function of the package does not have; `names` are those that it has.
function check_options(caller::Symbol, given, names)
    for option in keys(given)
        option in names && continue
        nearest = first_of(sort([names...]; by = name -> edits(string(option), string(name))), 3)
        throw(ArgumentError("unknown option $option of $caller: expected one such as $(join(nearest, ", ", " or "))"))
    end
end

first_of(names, most) = names[1:min(most, end)]

# The number of letters to insert, remove or replace to turn one word into the other (Levenshtein's distance).
function edits(from, to)
    row = collect(0:length(to))
    for (i, letter) in enumerate(from)
        diagonal, row[1] = row[1], i
        for (j, other) in enumerate(to)
            diagonal, row[j+1] = row[j+1], min(row[j], row[j+1], diagonal - (letter == other)) + 1
        end
    end
    row[end]
end

wrong(option, value, expected) = throw(ArgumentError("$option cannot be $(repr(value)): expected $expected"))

# A number of bytes, records or similar.
function natural(option::Symbol, value)
    value isa Integer && !(value isa Bool) && 0 <= value <= typemax(Int) || wrong(option, value, "a whole number of 0 or more")
    Int(value)
end

function integers(option::Symbol, value)
    all(number -> number isa Integer && !(number isa Bool) && typemin(Int32) <= number <= typemax(Int32), value) ||
        wrong(option, value, "whole numbers")
    collect(Int32, value)
end

function seconds(option::Symbol, value)
    value isa Real && !(value isa Bool) && 0 <= value < 1e10 || wrong(option, value, "a number of seconds")
    Float64(value)
end

nanoseconds(option::Symbol, value) = round(UInt64, seconds(option, value) * 1e9)

# One of several values of an option.
function part(option::Symbol, value, count::Int, i::Int)
    value isa Tuple && length(value) == count || wrong(option, value, "$count values, in parentheses")
    value[i]
end

flag(option::Symbol, value) = value isa Bool ? value : wrong(option, value, "true or false")

text(option::Symbol, value) = value isa AbstractString ? String(value) : wrong(option, value, "text")

# Converts a symbol to the number of an enum in the header.
function choice(option::Symbol, value, names::Tuple = choices[option])
    found = findfirst(isequal(value), names)
    found === nothing && throw(ArgumentError("$option cannot be $(repr(value)): expected one of $(join(map(repr, names), ", "))"))
    UInt32(found - 1)
end
