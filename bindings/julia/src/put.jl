# Writes text and numbers to a writer without allocating.

# The number of parts is a type parameter, so that each form of a call is compiled separately.
"""
    put!(writer, parts...)

Writes parts one after another: strings, characters, bytes, whole numbers in decimal, floating-point numbers as the
shortest text that reads back as the same number (`1e16`, `inf`, `NaN`), `Bool`s.

    put!(writer, "Hello, ", i, '\\n')
"""
function Base.put!(writer::Writer, parts::Vararg{Any,N}) where {N}
    put_all(writer, parts...)
    committed(writer)
    writer
end

@inline put_all(writer::Writer) = nothing
@inline function put_all(writer::Writer, part, parts::Vararg{Any,N}) where {N}
    put_one(writer, part)
    put_all(writer, parts...)
end

put_one(writer::Writer, text::Union{String,SubString{String}}) =
    GC.@preserve text put_bytes(writer, pointer(text), sizeof(text))
put_one(writer::Writer, text::AbstractString) = put_one(writer, String(text))
put_one(writer::Writer, bytes::Union{Vector{UInt8},Base.CodeUnits{UInt8}}) =
    GC.@preserve bytes put_bytes(writer, pointer(bytes), length(bytes))
put_one(writer::Writer, bytes::SubArray{UInt8,1,Vector{UInt8},Tuple{UnitRange{Int}},true}) =
    GC.@preserve bytes put_bytes(writer, pointer(bytes), length(bytes))
put_one(writer::Writer, bytes::AbstractVector{UInt8}) = put_one(writer, Vector{UInt8}(bytes))
put_one(writer::Writer, value::Bool) = put_one(writer, value ? "true" : "false")

function put_one(writer::Writer, char::Char)
    reserve(writer, 4)
    bits = bswap(reinterpret(UInt32, char))
    at = writer.at
    while true
        unsafe_store!(at, bits % UInt8)
        at += 1
        bits >>= 8
        bits == 0 && break
    end
    writer.at = at
end

function put_bytes(writer::Writer, from::Ptr{UInt8}, count::Int)
    if count > writer.stop - writer.at
        if count >= 2^16
            # Data larger than the buffer is not copied there first.
            end_window(writer)
            check_open(writer)
            with_failure(writer.sink) do
                @call millstream_writer_write(writer, from, count)
            end
            return
        end
        next_window(writer, max(count, 1))
    end
    unsafe_copyto!(writer.at, from, count)
    writer.at += count
    nothing
end

# ---- whole numbers ----

# "00", "01" … "99", as they are in memory.
const two_digits = [htol(UInt16(0x30 + n ÷ 10) + (UInt16(0x30 + n % 10) << 8)) for n in 0:99]

@inline function put_one(writer::Writer, value::Union{UInt8,UInt16,UInt32,UInt64})
    reserve(writer, 20)
    writer.at = put_digits(writer.at, UInt64(value))
    nothing
end

@inline function put_one(writer::Writer, value::Union{Int8,Int16,Int32,Int64})
    reserve(writer, 20)
    at = writer.at
    if value < 0
        unsafe_store!(at, 0x2d)
        at += 1
    end
    writer.at = put_digits(at, unsigned(abs(Int64(value))))
    nothing
end

put_one(writer::Writer, value::Integer) = put_one(writer, string(value))

# Writes two digits at a time from the right; returns the position after them.
@inline function put_digits(at::Ptr{UInt8}, value::UInt64)
    len = decimal_digits(value)
    to = at + len
    table = two_digits
    while value >= 100
        rest = value ÷ 100
        to -= 2
        @inbounds unsafe_store!(Ptr{UInt16}(to), table[(value-100*rest)%Int+1])
        value = rest
    end
    if value >= 10
        @inbounds unsafe_store!(Ptr{UInt16}(at), table[value%Int+1])
    else
        unsafe_store!(at, 0x30 + value % UInt8)
    end
    at + len
end

const powers_of_ten = [UInt64(10)^n for n in 0:19]

@inline function decimal_digits(value::UInt64)
    # An odd number has as many digits as the even one before it, and is not 0.
    odd = value | 1
    # log10(2) is about 1233 / 4096; the result is too low by at most one.
    guess = ((64 - leading_zeros(odd)) * 1233) >> 12
    guess + (odd >= @inbounds powers_of_ten[guess+1])
end

# ---- floating-point numbers ----

# The maximum size of a floating-point number.
const float_size = 32

for (T, name) in ((Float32, :f32), (Float64, :f64))
    call = Symbol(:millstream_format_, name)
    @eval function put_one(writer::Writer, value::$T)
        reserve(writer, float_size)
        len = Ref{Csize_t}(0)
        @call $call(value, writer.at, float_size, len)
        writer.at += len[]
        nothing
    end
end

put_one(::Writer, value) = throw(ArgumentError("put! cannot write a $(typeof(value)): it writes text, bytes and numbers; use print for anything else"))

# ---- as an IO ----

function Base.unsafe_write(writer::Writer, from::Ptr{UInt8}, count::UInt)
    put_bytes(writer, from, Int(count))
    committed(writer)
    Int(count)
end

@inline function Base.write(writer::Writer, byte::UInt8)
    reserve(writer, 1)
    unsafe_store!(writer.at, byte)
    writer.at += 1
    committed(writer)
    1
end

# This is faster than Base's string. The text is the same, except for floating-point numbers (1e16 is 1.0e16 in Julia).
function Base.print(writer::Writer, value::Union{Int8,Int16,Int32,Int64,UInt8,UInt16,UInt32,UInt64})
    put_one(writer, value)
    committed(writer)
    nothing
end
