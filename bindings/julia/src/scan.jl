# Numbers and words out of a reader.

"""
    scan(reader, T[; separator])

The next number, a `UInt32`, `UInt64`, `Int32`, `Int64`, `Float32` or `Float64`, or the next word as a `String`; `nothing` at
the end. Between two of them stands white space, any amount of it, or with a `separator` exactly one such byte (or a line
end).

Where there is no such number it is an error that can be gone on after: the same is there to be taken by other means.
"""
function scan end

const space = -1

for (T, name) in ((UInt32, :u32), (UInt64, :u64), (Int32, :i32), (Int64, :i64), (Float32, :f32), (Float64, :f64))
    call = Symbol(:millstream_reader_scan_, name)
    @eval function scan(reader::Reader, ::Type{$T}; separator::Union{Char,UInt8,Nothing} = nothing)
        await_token(reader, separator)
        value, ended = Ref{$T}(0), Ref(false)
        with_failure(reader.source) do
            @call $call(reader::Ptr{Cvoid}, (separator === nothing ? space : Int32(separator))::Int32, value::Ptr{$T}, ended::Ptr{Bool})
        end
        ended[] ? nothing : value[]
    end
end

function scan(reader::Reader, ::Type{String})
    await_token(reader, nothing)
    with_failure(reader.source) do
        @call millstream_reader_next_word(reader::Ptr{Cvoid}, reader.buffer::Ptr{Ptr{UInt8}}, reader.len::Ptr{Csize_t})
    end
    reader.buffer[] == C_NULL ? nothing : unsafe_string(reader.buffer[], reader.len[])
end

"""
    rest_of_line(reader)

The rest of the line, without blanks in front of it and without its end; `nothing` at the end of the input.
"""
function rest_of_line(reader::Reader)
    await((bytes, len) -> ccall(:memchr, Ptr{UInt8}, (Ptr{UInt8}, Cint, Csize_t), bytes, '\n', len) != C_NULL, reader)
    with_failure(reader.source) do
        @call millstream_reader_rest_of_line(reader::Ptr{Cvoid}, reader.buffer::Ptr{Ptr{UInt8}}, reader.len::Ptr{Csize_t})
    end
    reader.buffer[] == C_NULL ? nothing : unsafe_string(reader.buffer[], reader.len[])
end

# Waits, as a task of Julia does, until a token and what ends it are there.
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
