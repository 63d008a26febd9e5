# Reads numbers and words from a reader.

"""
    scan(reader, T[; separator])

Returns the next number, a `UInt32`, `UInt64`, `Int32`, `Int64`, `Float32` or `Float64`, or the next word as a `String`;
returns `nothing` at the end. Values are separated by any amount of white space or, if there is a `separator`, by
exactly one such byte (or a line end).

If the next token is not a valid number, an error is thrown. Reading can continue: the same input can be read in another
way. """
function scan end

const space = -1

for (T, name) in ((UInt32, :u32), (UInt64, :u64), (Int32, :i32), (Int64, :i64), (Float32, :f32), (Float64, :f64))
    call = Symbol(:millstream_reader_scan_, name)
    @eval function scan(reader::Reader, ::Type{$T}; separator::Union{Char,UInt8,Nothing} = nothing)
        await_token(reader, separator)
        value, ended = Ref{$T}(0), Ref(false)
        reading(reader) do
            @call $call(reader, (separator === nothing ? space : Int32(separator)), value, ended)
            ended[]
        end
        ended[] ? nothing : value[]
    end
end

function scan(reader::Reader, ::Type{String})
    await_token(reader, nothing)
    reading(reader) do
        @call millstream_reader_next_word(reader, reader.buffer, reader.len)
        reader.buffer[] == C_NULL
    end
    reader.buffer[] == C_NULL ? nothing : unsafe_string(reader.buffer[], reader.len[])
end

"""
    rest_of_line(reader)

Returns the rest of the line, without blanks before it and without its end; returns `nothing` at the end of the input.
"""
function rest_of_line(reader::Reader)
    await((bytes, len) -> ccall(:memchr, Ptr{UInt8}, (Ptr{UInt8}, Cint, Csize_t), bytes, '\n', len) != C_NULL, reader)
    reading(reader) do
        @call millstream_reader_rest_of_line(reader, reader.buffer, reader.len)
        reader.buffer[] == C_NULL
    end
    reader.buffer[] == C_NULL ? nothing : unsafe_string(reader.buffer[], reader.len[])
end

# Waits, without blocking other tasks, until a complete token has arrived.
await_token(reader, separator) = await(reader) do bytes, len
    i = 1
    while i <= len && is_space(unsafe_load(bytes, i))
        i += 1
    end
    while i <= len
        byte = unsafe_load(bytes, i)
        (is_space(byte) || separator !== nothing && byte == UInt8(separator)) && return true
        i += 1
    end
    false
end

is_space(byte) = byte == 0x20 || 0x09 <= byte <= 0x0d
