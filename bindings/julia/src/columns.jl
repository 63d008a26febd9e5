# Reads delimited text into columns: a `NamedTuple` of vectors, which is a table for Tables.jl.
#
# The fields of a batch are found first, and each column is then filled by a function that is compiled for its type. All
# of this works in the library's memory, without a copy of the batch.

"""
    columns(source, types[, framer]; separator, missing = "", most, options...)

Reads the fields of records as columns: a `NamedTuple` of vectors, one for each of the `types`, which is a
`NamedTuple` too. Packages that use Tables.jl, such as DataFrames and Arrow, accept the result as a table.

    reads = columns("reads.tsv.gz", (name = String, position = Int, score = Union{Float64,Missing}); separator = '\\t')
    sum(skipmissing(reads.score))

`source`, `framer` and `options` work as in [`batches`](@ref); records are lines by default, and a header is skipped by
`skip_record(reader)`. Fields are separated by any amount of white space or, if there is a `separator`, by exactly one
such byte; quotes have no meaning. A type is an integer of up to 64 bits, `Float32`, `Float64`, `String`, `Vector{UInt8}`,
`Nothing` for a field to ignore, or any type with a method of `tryparse`, such as `Date`; a column of `Union{T,Missing}`
contains `missing` for a field that is equal to the text `missing`. Further fields are ignored. At most `most` records
are read.

For a field that is not of its type, and for a record with too few fields, a [`MillstreamError`](@ref) is thrown, whose
`path` is the name of the column; its `line` and `column` say where the field is. The reader is then positioned before this record. [`columns!`](@ref) keeps the rows before
it.
"""
function columns(reader::Reader, types::NamedTuple, framer::Framer = Lines(); options...)
    check_options(:columns, options, (:separator, :missing, options_for(reader)...))
    table = columns!(map(column_of, types), reader, framer; options...)
    used = filter(name -> table[name] !== nothing, keys(table))
    NamedTuple{used}(table)
end

function columns(source, types::NamedTuple, framer::Framer = Lines(); separator = nothing, missing = "", most = typemax(Int), options...)
    check_options(:columns, options, (:separator, :missing, options_for(source)...))
    checked(map(column_of, types), separator, missing, most)
    Reader(reader -> columns(reader, types, framer; separator = separator, missing = missing, most = most), source; options...)
end

column_of(::Type{Nothing}) = nothing
column_of(::Type{T}) where {T} = T[]
column_of(other) = throw(ArgumentError("the type of a column cannot be $(repr(other)): expected a type, such as Int"))

"""
    columns!(table, reader[, framer]; separator, missing = "", most)

Appends rows to the vectors of `table`, a `NamedTuple`, as [`columns`](@ref) does; an entry `nothing` ignores a field.
After an error, `table` contains all rows before it.

    table = (name = String[], position = Int[])
    while !isempty(columns!(table, reader; most = 10_000).name)
        use(table)
        foreach(empty!, table)
    end
"""
function columns!(table::NamedTuple, reader::Reader, framer::Framer = Lines(); separator = nothing, missing = "", most = typemax(Int), others...)
    check_options(:columns!, others, (:separator, :missing, :most))
    had, separator, missing_text, left = checked(table, separator, missing, most)
    fields = UInt32[]
    while left > 0
        batch = next_batch(reader, framer, left)
        batch.count == 0 && break
        append_rows!(table, had, reader, batch, fields, separator, missing_text)
        had += Int(batch.count)
        left -= Int(batch.count)
    end
    table
end

# Returns the number of rows and the arguments, if all of them are valid.
function checked(table, separator, missing_text, most)
    foreach(check_column, table)
    lengths = unique(length(column) for column in table if column !== nothing)
    isempty(lengths) && throw(ArgumentError("there is no column: expected at least one"))
    length(lengths) == 1 || throw(ArgumentError("the columns of a table have the same length, not $(join(lengths, ", ", " and "))"))
    missing_text isa AbstractString || wrong(:missing, missing_text, "text")
    lengths[1], separator_byte(separator), String(missing_text), natural(:most, most)
end

check_column(::Union{Nothing,Vector}) = nothing
check_column(other) = throw(ArgumentError("a column cannot be a $(typeof(other)): expected a Vector, or nothing for a field to ignore"))

separator_byte(::Nothing) = nothing
separator_byte(byte::UInt8) = byte
separator_byte(char::AbstractChar) = isascii(char) ? UInt8(char) : wrong(:separator, char, "one byte")
separator_byte(other) = wrong(:separator, other, "one byte")

# Appends the records of a batch as rows after the first `had`. If this fails, the record that caused it and all records
# after it are marked as unread.
function append_rows!(table, had, reader, batch::CBatch, fields, separator, missing_text)
    done, problem = 0, nothing
    try
        rows, index = split_fields!(fields, batch, length(table), separator)
        index == 0 || (problem = too_few(table, batch, rows + 1, index))
        for (index, column) in enumerate(table)
            column === nothing && continue
            resize!(column, had + rows)
            filled = fill_column!(column, had, rows, fields, index, length(table), batch.bytes, missing_text)
            # The earliest row is reported, and its first field.
            filled == rows && continue
            rows = filled
            problem = not_a(eltype(column), keys(table)[index], batch, fields, rows + 1, index, length(table))
        end
        done = rows
    finally
        foreach(column -> column === nothing || resize!(column, had + done), table)
        left = Int(batch.count) - done
        left == 0 || @call millstream_reader_give_back(reader, left)
    end
    problem === nothing || throw(problem(name(reader)))
end

# ---- fields ----

# Stores the start and the end of the first `count` fields of each record. Returns the number of records with so many
# fields and, if there is another record after them, the index of the field that it lacks; otherwise 0.
function split_fields!(fields, batch, count, separator)
    resize!(fields, 2 * count * batch.count)
    bytes, at = batch.bytes, 0
    for row in 1:Int(batch.count)
        start, len = content(batch, row)
        stop = start + len
        for index in 1:count
            start = field_start(bytes, start, stop, separator)
            start > stop && return row - 1, index
            after = field_end(bytes, start, stop, separator)
            @inbounds fields[at+1], fields[at+2] = start % UInt32, after % UInt32
            at += 2
            start = after + 1
        end
    end
    Int(batch.count), 0
end

@inline is_end(byte, separator::UInt8) = byte == separator
@inline is_end(byte, ::Nothing) = is_space(byte)

# After the last field, this is a position after the end.
@inline field_start(bytes, start, stop, ::UInt8) = start
@inline function field_start(bytes, start, stop, ::Nothing)
    while start < stop && is_space(unsafe_load(bytes, start + 1))
        start += 1
    end
    start < stop ? start : stop + 1
end

@inline function field_end(bytes, start, stop, separator)
    while start < stop && !is_end(unsafe_load(bytes, start + 1), separator)
        start += 1
    end
    start
end

# ---- values ----

# Fills a column from the given fields, up to the first that is not of its type. Returns the number of values.
function fill_column!(column::Vector{T}, had, rows, fields, index, count, bytes, missing_text) where {T}
    of = Base.nonmissingtype(T)
    for row in 1:rows
        first = 2 * ((row - 1) * count + index) - 1
        @inbounds at, stop = bytes + fields[first], bytes + fields[first+1]
        if Missing <: T && is_same(at, stop, missing_text)
            @inbounds column[had+row] = missing
            continue
        end
        value = value_of(of, at, stop)
        value === nothing && return row - 1
        @inbounds column[had+row] = value
    end
    rows
end

is_same(at, stop, text) = stop - at == sizeof(text) && (GC.@preserve text ccall(:memcmp, Cint, (Ptr{UInt8}, Ptr{UInt8}, Csize_t), at,
    pointer(text), stop - at)) == 0

# Each of the following returns the value of a field, or `nothing` if it has none.

value_of(::Type{String}, at, stop) = unsafe_string(at, stop - at)
value_of(::Type{Vector{UInt8}}, at, stop) = copy(unsafe_wrap(Array, at, stop - at))
value_of(::Type{T}, at, stop) where {T} = tryparse(T, unsafe_string(at, stop - at))

const Whole = Union{Int8,Int16,Int32,Int64,UInt8,UInt16,UInt32,UInt64}

# With so many digits, no `Int64` overflows.
const most_digits = 18

@inline function value_of(::Type{T}, at, stop) where {T<:Whole}
    start, sign = digits_of(T, at, stop)
    stop - start <= most_digits || return long_value_of(T, start, stop, sign)
    value, after = digits_from(start, stop)
    after == stop > start || return nothing
    value *= sign
    typemin(T) <= value <= typemax(T) ? value % T : nothing
end

# The start of the digits, after a sign that the type can have.
@inline function digits_of(::Type{T}, at, stop) where {T}
    sign = at < stop ? unsafe_load(at) : 0x00
    sign == UInt8('-') && T <: Union{Signed,AbstractFloat} ? (at + 1, -1) : (sign == UInt8('+') ? at + 1 : at, 1)
end

# The value of the digits before the first other byte, and the position of this byte.
@inline function digits_from(at, stop, value = 0)
    while at < stop
        digit = unsafe_load(at) - 0x30
        digit <= 0x09 || break
        value = 10 * value + Int(digit)
        at += 1
    end
    value, at
end

@noinline function long_value_of(::Type{T}, start, stop, sign) where {T}
    text = unsafe_string(start, stop - start)
    all(isdigit, text) || return nothing
    value = sign * parse(BigInt, text)
    typemin(T) <= value <= typemax(T) ? T(value) : nothing
end

const exact_powers = [10.0^n for n in 0:most_digits]

# A quotient of two exact numbers is correctly rounded.
@inline function value_of(::Type{Float64}, at, stop)
    start, sign = digits_of(Float64, at, stop)
    if 1 < stop - start <= most_digits
        value, point = digits_from(start, stop)
        after = point
        if point < stop && unsafe_load(point) == UInt8('.')
            value, after = digits_from(point + 1, stop, value)
        else
            point = stop - 1
        end
        after == stop && value < 2^53 && return Float64(sign) * value / @inbounds exact_powers[stop-point]
    end
    parsed(Float64, at, stop)[1]
end

value_of(::Type{Float32}, at, stop) = parsed(Float32, at, stop)[1]

# A number, or nothing and the error of the library.
for (T, name) in ((Float32, :f32), (Float64, :f64))
    call = Symbol(:millstream_parse_, name)
    @eval @noinline function parsed(::Type{$T}, at, stop)
        value = Ref{$T}(0)
        code = @c $call(at, stop - at, value, C_NULL)
        code == 0 ? value[] : nothing, code
    end
end

# ---- errors ----

# Returns a function that creates the error for a field, with the name of the source.
function not_a(T, column, batch, fields, row, index, count)
    first = 2 * ((row - 1) * count + index) - 1
    at, len = Int(fields[first]), Int(fields[first+1] - fields[first])
    text = unsafe_string(batch.bytes + at, len)
    of = Base.nonmissingtype(T)
    kind = is_too_large(of, text) ? :number_overflow : :number_invalid
    found = len == 0 ? "an empty field" : escape_string(String(first_bytes(text, 64)))
    field_error(kind, column, batch, row, at, found, of <: Real ? "a number ($of)" : "a value of type $of")
end

first_bytes(text, most) = sizeof(text) <= most ? text : string(text[1:prevind(text, most)], "...")

is_too_large(::Type{T}, text) where {T<:Whole} = occursin(T <: Signed ? r"^[+-]?[0-9]+$" : r"^\+?[0-9]+$", text)
is_too_large(::Type{T}, text) where {T<:Union{Float32,Float64}} =
    GC.@preserve text parsed(T, pointer(text), pointer(text) + sizeof(text))[2] == error_kinds.number_overflow
is_too_large(_, _) = false

function too_few(table, batch, row, index)
    start, len = content(batch, row)
    field_error(:value_missing, keys(table)[index], batch, row, start + len, index == 2 ? "1 field" : "$(index - 1) fields", "at least $(length(table))")
end

function field_error(kind, column, batch, row, at, found, expected)
    line = line_of(batch.first_line, row)
    in_line = line === nothing ? nothing : at - unsafe_load(batch.offsets, row) + 1
    name -> record_error(kind, name, batch.offset + at, batch.first_record + row - 1; line = line, column = in_line, found = found,
        expected = expected, path = string(column))
end
