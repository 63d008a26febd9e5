# Records of CSV, lines and JSON as columns whose types are inferred or given, through Arrow's C data interface.
#
# The library returns batches of columns. Each column of a batch is appended to a vector by a function that is compiled
# for its type; then the batch is released. No vector refers to the library's memory.

using Dates: Dates, Date, DateTime, Time, Second, Millisecond, Microsecond, Nanosecond

# As Arrow's specification declares them.
struct CArrowSchema
    format::Ptr{UInt8}
    name::Ptr{UInt8}
    metadata::Ptr{UInt8}
    flags::Int64
    n_children::Int64
    children::Ptr{Ptr{CArrowSchema}}
    dictionary::Ptr{CArrowSchema}
    release::Ptr{Cvoid}
    private_data::Ptr{Cvoid}
end

struct CArrowArray
    length::Int64
    null_count::Int64
    offset::Int64
    n_buffers::Int64
    n_children::Int64
    buffers::Ptr{Ptr{UInt8}}
    children::Ptr{Ptr{CArrowArray}}
    dictionary::Ptr{CArrowArray}
    release::Ptr{Cvoid}
    private_data::Ptr{Cvoid}
end

CArrowSchema() = CArrowSchema(C_NULL, C_NULL, C_NULL, 0, 0, C_NULL, C_NULL, C_NULL, C_NULL)
CArrowArray() = CArrowArray(0, 0, 0, 0, 0, C_NULL, C_NULL, C_NULL, C_NULL, C_NULL)

function release(structure::Ref)
    structure[].release == C_NULL || ccall(structure[].release, Cvoid, (Ptr{Cvoid},), structure)
    nothing
end

# ---- types that Julia lacks ----

"""
    Timestamp{Unit}

A point in time, counted in `Microsecond`s or `Nanosecond`s from the beginning of 1970 (in UTC if its column has a time
zone), which `DateTime` cannot represent: its unit is a millisecond. `DateTime(t)` converts it if it is a whole number of
milliseconds, and throws an `InexactError` otherwise; `Date(t)`, `Time(t)` and the field `count` are exact. A column of the
type `timestamp[ms]` is a vector of `DateTime`.
"""
struct Timestamp{Unit}
    count::Int64
end

per_second(::Type{Microsecond}) = 1_000_000
per_second(::Type{Nanosecond}) = 1_000_000_000

function Dates.DateTime(t::Timestamp{Unit}) where {Unit}
    milliseconds, rest = fldmod(t.count, per_second(Unit) ÷ 1000)
    rest == 0 || throw(InexactError(:DateTime, DateTime, t))
    of_milliseconds(milliseconds)
end
Dates.Date(t::Timestamp{Unit}) where {Unit} = of_days(fld(t.count, 86_400 * per_second(Unit)))
Dates.Time(t::Timestamp{Unit}) where {Unit} = Time(Nanosecond(mod(t.count, 86_400 * per_second(Unit)) * (1_000_000_000 ÷ per_second(Unit))))

Base.isless(a::Timestamp{Unit}, b::Timestamp{Unit}) where {Unit} = a.count < b.count
Base.print(io::IO, t::Timestamp) = print(io, Date(t), 'T', Time(t))

const epoch_days = Dates.value(Date(1970))
const epoch_milliseconds = Dates.value(DateTime(1970))
of_days(days) = Date(Dates.UTD(epoch_days + days))
of_milliseconds(milliseconds) = DateTime(Dates.UTM(epoch_milliseconds + milliseconds))

"""
    Decimal{Scale}

A decimal number with up to 38 digits, of which `Scale` are after the point: the field `digits`, an `Int128`, divided by
`10^Scale`. `Rational`, `Float64` and `BigFloat` convert it, and `string` has all digits. A column of the type
`decimal128(38, 0)` is a vector of `Int128`.
"""
struct Decimal{Scale}
    digits::Int128
end

Base.Rational(d::Decimal{Scale}) where {Scale} = big(d.digits) // big(10)^Scale
Base.Float64(d::Decimal) = Float64(Rational(d))
Base.BigFloat(d::Decimal) = BigFloat(Rational(d))
Base.isless(a::Decimal{Scale}, b::Decimal{Scale}) where {Scale} = a.digits < b.digits

function Base.print(io::IO, d::Decimal{Scale}) where {Scale}
    text = string(abs(big(d.digits)); pad = Scale + 1)
    print(io, d.digits < 0 ? "-" : "", text[1:end-Scale], '.', text[end-Scale+1:end])
end

# ---- the columns of a source ----

"""
    ColumnBatches(source[, framer]; options...)

Iterates over the records of CSV, lines or JSON as columns, some rows at a time: each item is a `NamedTuple` of vectors, as
[`columns`](@ref) returns for all rows, with the same arguments and options. Memory is bounded by a few batches.

    batches = ColumnBatches("people.csv.gz"; on_bad = :skip)
    for people in batches
        use(people.name, people.age)
    end
    rejected(batches), rejects(batches)

The rows before an error come first. `close` stops early.
"""
mutable struct ColumnBatches
    handle::Ptr{Cvoid}
    # What the library borrows.
    source::Any
    names::Vector{Symbol}
    readers::Vector{Any}
    rejects::Vector{NamedTuple{(:error, :raw),Tuple{MillstreamError,Vector{UInt8}}}}

    # With options as the library parses them.
    function ColumnBatches(reader::Reader, text::String, schema)
        check_open(reader)
        reader.source isa Input && throw(needs_julia())
        settle(reader)
        batches = new(C_NULL, reader.source, Symbol[], Any[], [])
        finalizer(free, batches)
        out = Ref{Ptr{Cvoid}}(C_NULL)
        unwatch(reader)
        # The library owns the reader now, even if the call fails.
        handle = reader.handle
        reader.handle = reader.start = reader.at = reader.stop = C_NULL
        with_failure(batches.source) do
            schema === nothing ? (@call millstream_columns_new(handle, text, Cstring(C_NULL), out)) :
            @call millstream_columns_new(handle, text, schema, out)
        end
        batches.handle = out[]
        read_schema!(batches)
        batches
    end
end

function ColumnBatches(reader::Reader, framer::Framer = Csv(); options...)
    check_options(:ColumnBatches, options, column_options)
    ColumnBatches(reader, options_text(format_of(framer); options...)...)
end

function ColumnBatches(source, framer::Union{Framer,Nothing} = nothing; options...)
    check_options(:ColumnBatches, options, (column_options..., options_for(source)...))
    own = Dict(pair for pair in options if pair.first in column_options)
    # Wrong options are refused before anything is opened.
    is_document = get(options, :json_elements, nothing) !== nothing
    is_document && framer !== nothing && wrong(:framer, framer, "none with the option json_elements")
    text, schema = options_text(is_document ? "format=json" : format_of(something(framer, Csv())); own...)
    is_written(source) && throw(needs_julia())
    reader = Reader(source; (pair for pair in options if !(pair.first in column_options))...)
    ColumnBatches(reader, text, schema)
end

# The task that writes the input could not run while the library waits for the command.
needs_julia() = ArgumentError("columns of a command whose input is an IO or an iterator: write its output to a file, and read that")

"""
    columns(source[, framer]; options...)

Reads the records of CSV, lines or JSON as columns, whose types are inferred or given: a `NamedTuple` of vectors, which is a
table for Tables.jl. `docs/types.md` has the rules; every value of an inferred type prints back losslessly.

    people = columns("people.csv.gz")
    people = columns("people.csv", Csv(delimiter = ';'); nulls = ["NA"], schema = (name = "string", age = "int64"))
    people = columns("people.jsonl", JsonLines())
    people = columns("people.json"; json_elements = "/people")

`source` works as in [`batches`](@ref), with its options; `framer` is a [`Csv`](@ref), [`Lines`](@ref), which is one column
`line`, or [`JsonLines`](@ref), whose lines are objects. With the option `json_elements` the records are the elements of an
array of a JSON document: `""` is the document; a [`Reader`](@ref) that was opened with it is not accepted as such a source.
Options, with their defaults first:
- `header`: `true`, the first record of CSV names the columns; with `false` their names are `0`, `1`, …
- `infer`: `10_000`, the number of records from which types are inferred; with `:off`, columns are text, and those
  of JSON the text of their values; with `:all`, all records are read first, and then again from the same version of the
  source: a path, bytes, or an object with a strong ETag on a server with ranges; any other source is refused
- `schema`: a `NamedTuple` or pairs of names and types, such as `"int64"`, or `"int64!"` for a column without nulls; or a
  JSON text of [`schema`](@ref). Other columns are left out.
- `nulls`: texts that are `missing` outside quotes, such as `["NA", ""]`: none; JSON has a null of its own
- `special_numbers`: `false`, or `true` if `NaN`, `inf` and `-inf` are numbers
- `decimals`: `false`, or `true` to infer decimals instead of floating point numbers
- `duplicates`: `:error`, an object of JSON with several members of the same name is a bad record, or `:first` or `:last`,
  which of them counts
- `ragged`: `:error`, or `:pad` to fill missing fields with `missing`
- `on_bad`: `:stop`, a bad record is an error, or `:skip`, it is left out and a warning has the number of them;
  [`rejects`](@ref) of [`ColumnBatches`](@ref) returns them
- `threads`: the number of threads that turn records into columns: that of the processors

The elements of a vector are `Union{T,Missing}` only if there is a missing value. `T` is the integer or floating point
type, `Bool`, `String`, `Vector{UInt8}` for binary, `Date`, `Time`, `DateTime` for `timestamp[s]` and `timestamp[ms]`,
[`Timestamp`](@ref) for finer ones (a time zone is not stored, and the time is in UTC), `Int128` or [`Decimal`](@ref) for
decimals, a vector for lists and a `NamedTuple` for structs.

A value that does not fit its column is an error with its `line`, `column` and `path`. [`ColumnBatches`](@ref) has the rows
before it.
"""
function columns(source, framer::Framer...; options...)
    batches = ColumnBatches(source, framer...; options...)
    try
        columns(batches)
    finally
        free(batches)
    end
end

function columns(batches::ColumnBatches)
    vectors = Any[empty_column(reader) for reader in batches.readers]
    while true
        append_batch!(vectors, batches) == 0 && break
    end
    left_out = rejected(batches)
    left_out == 0 || @warn "$(name(batches)): $(counted(left_out, "bad record")) left out"
    NamedTuple{Tuple(batches.names)}(Tuple(vectors))
end

function Base.iterate(batches::ColumnBatches, _ = nothing)
    vectors = Any[empty_column(reader) for reader in batches.readers]
    append_batch!(vectors, batches) == 0 && return nothing
    NamedTuple{Tuple(batches.names)}(Tuple(vectors)), nothing
end

Base.IteratorSize(::Type{ColumnBatches}) = Base.SizeUnknown()
Base.eltype(::Type{ColumnBatches}) = NamedTuple

Base.unsafe_convert(::Type{Ptr{Cvoid}}, batches::ColumnBatches) = batches.handle

check_open(batches::ColumnBatches) =
    batches.handle != C_NULL || throw(MillstreamError(19, :closed, "closed: these columns have been closed"))

"""
    name(batches)

The name of the source in error messages. """
function name(batches::ColumnBatches)
    check_open(batches)
    unsafe_string(@c millstream_columns_name(batches))
end

"""
    schema(batches::ColumnBatches)

The columns and their types as JSON, which the option `schema` accepts.
"""
function schema(batches::ColumnBatches)
    check_open(batches)
    unsafe_string(@c millstream_columns_schema_json(batches))
end

"""
    rejected(batches::ColumnBatches)

The number of bad records that were left out so far.
"""
function rejected(batches::ColumnBatches)
    check_open(batches)
    rows, count = Ref{UInt64}(0), Ref{UInt64}(0)
    @call millstream_columns_counts(batches, rows, count)
    Int(count[])
end

"""
    rejects(batches::ColumnBatches)

The first 1,000 bad records that were left out so far: the `error` of each, with its place, and its bytes without the
line end, `raw`.
"""
function rejects(batches::ColumnBatches)
    check_open(batches)
    reason, raw, len = Ref{Ptr{Cvoid}}(C_NULL), Ref{Ptr{UInt8}}(C_NULL), Ref{Csize_t}(0)
    while true
        @call millstream_columns_next_reject(batches, reason, raw, len)
        reason[] == C_NULL && return batches.rejects
        error = take_error((@c millstream_error_code(reason[])), reason[])
        push!(batches.rejects, (error = error, raw = copy(unsafe_wrap(Array, raw[], Int(len[])))))
    end
end

"""
    close(batches::ColumnBatches)

Stops reading, as `close` of a [`Reader`](@ref) does; closing again has no effect.
"""
function Base.close(batches::ColumnBatches)
    batches.handle == C_NULL && return
    try
        @call millstream_columns_close(batches)
    finally
        free(batches)
    end
    nothing
end

function free(batches::ColumnBatches)
    handle, batches.handle = batches.handle, C_NULL
    @c millstream_columns_free(handle)
end

# ---- options ----

const column_options = (:header, :infer, :schema, :nulls, :special_numbers, :decimals, :duplicates, :ragged, :on_bad, :threads)

# The records of a framer as the library parses them.
function format_of(framer)
    framer.dialect === nothing || return framer.dialect
    framer.text == "Lines()" && return "format=lines"
    startswith(framer.text, "JsonLines(") && return "format=jsonl"
    wrong(:framer, framer, "Csv(), Lines() or JsonLines()")
end

# The options as the library parses them, and the schema as JSON or `nothing`.
function options_text(format; header = true, infer = 10_000, schema = nothing, nulls = (), special_numbers = false, decimals = false,
    duplicates = :error, ragged = :error, on_bad = :stop, threads = nothing)
    words = [format]
    for (option, on) in ((:header, header), (:special_numbers, special_numbers), (:decimals, decimals))
        on isa Bool || wrong(option, on, "true or false")
        push!(words, string(option, on ? "=on" : "=off"))
    end
    infer in (:all, :off) || infer isa Integer && !(infer isa Bool) && infer > 0 || wrong(:infer, infer, "1 or more, :all or :off")
    duplicates in (:error, :first, :last) || wrong(:duplicates, duplicates, ":error, :first or :last")
    ragged in (:error, :pad) || wrong(:ragged, ragged, ":error or :pad")
    on_bad in (:stop, :skip) || wrong(:on_bad, on_bad, ":stop or :skip")
    push!(words, "infer=$infer", "duplicates=$duplicates", "ragged=$ragged", "on_bad=$on_bad")
    nulls isa AbstractString && wrong(:nulls, nulls, "a list of texts")
    for null in nulls
        push!(words, "null=" * join("%" * string(byte; base = 16, pad = 2) for byte in codeunits(text(:nulls, null))))
    end
    if threads !== nothing
        natural(:threads, threads) > 0 || wrong(:threads, threads, "1 or more")
        push!(words, "threads=$threads")
    end
    join(words, ' '), schema === nothing || schema isa AbstractString ? schema : "{\"fields\":[$(fields_json(schema))]}"
end

fields_json(schema) = join(("{\"name\":$(quoted(string(name))),$(type_json(of))}" for (name, of) in pairs_of(schema)), ',')
pairs_of(schema::NamedTuple) = pairs(schema)
pairs_of(schema::AbstractDict) = pairs(schema)
pairs_of(schema::Union{Tuple,AbstractVector}) =
    all(pair -> pair isa Pair, schema) ? schema : wrong(:schema, schema, "pairs of names and types")
pairs_of(schema) = wrong(:schema, schema, "a NamedTuple, pairs of names and types, or a JSON text")

function type_json(of)
    of isa Union{NamedTuple,AbstractDict} && return "\"type\":\"struct\",\"fields\":[$(fields_json(of))]"
    of isa AbstractVector && length(of) == 1 && return "\"type\":\"list\",\"item\":{$(type_json(of[1]))}"
    of isa AbstractString || wrong(:schema, of, "the name of a type, such as \"int64\"")
    endswith(of, '!') ? "\"type\":$(quoted(of[1:prevind(of, end)])),\"nullable\":false" : "\"type\":$(quoted(of))"
end

# A text of JSON.
function quoted(text)
    escape(char) = char in ('"', '\\') ? "\\$char" : char < ' ' ? "\\u" * string(UInt32(char); base = 16, pad = 4) : string(char)
    string('"', join(map(escape, collect(text))), '"')
end

# ---- batches ----

function read_schema!(batches)
    found = Ref(CArrowSchema())
    @call millstream_columns_schema(batches, found)
    try
        for child in children(found[])
            push!(batches.names, Symbol(unsafe_string(child.name)))
            push!(batches.readers, column_reader(child))
        end
    finally
        release(found)
    end
end

children(structure) = [unsafe_load(unsafe_load(structure.children, i)) for i in 1:structure.n_children]

# Appends the rows of the next batch to the vectors, and returns their number: 0 at the end.
function append_batch!(vectors, batches)
    check_open(batches)
    batch = Ref(CArrowArray())
    with_failure(batches.source) do
        @call millstream_columns_next(batches, batch)
        batch[].release == C_NULL
    end
    rows = Int(batch[].length)
    try
        for (i, column) in enumerate(children(batch[]))
            vectors[i] = append_column!(vectors[i], batches.readers[i], column)
        end
    finally
        release(batch)
    end
    rows
end

# ---- columns ----

# How the values of a column are stored. Each has the type of its elements, and `value_at(reader, array, i)`, the value
# with this index, in which the offset of the array is included.
abstract type ColumnReader{T} end

struct Stored{T,S} <: ColumnReader{T} end        # S in memory; `convert_stored` makes it a T
struct StoredBool <: ColumnReader{Bool} end
struct StoredText <: ColumnReader{String} end
struct StoredBytes <: ColumnReader{Vector{UInt8}} end
struct StoredNull <: ColumnReader{Missing} end
struct StoredList{T,R<:ColumnReader{T}} <: ColumnReader{Vector}
    item::R
end
struct StoredStruct <: ColumnReader{NamedTuple}
    names::Tuple
    members::Vector{Any}
end

const stored_types = Dict{String,ColumnReader}(
    "n" => StoredNull(), "b" => StoredBool(), "u" => StoredText(), "z" => StoredBytes(),
    "tdD" => Stored{Date,Int32}(),
    (letter => Stored{T,T}() for (letter, T) in ("c" => Int8, "C" => UInt8, "s" => Int16, "S" => UInt16, "i" => Int32, "I" => UInt32,
        "l" => Int64, "L" => UInt64, "f" => Float32, "g" => Float64))...,
)

# A unit of time in Arrow, which a column of these has.
struct Units{Unit} end

function column_reader(schema)
    format = unsafe_string(schema.format)
    haskey(stored_types, format) && return stored_types[format]
    format == "ttu" && return Stored{Time,Units{Microsecond}}()
    format == "ttn" && return Stored{Time,Units{Nanosecond}}()
    startswith(format, "tss:") && return Stored{DateTime,Units{Second}}()
    startswith(format, "tsm:") && return Stored{DateTime,Units{Millisecond}}()
    startswith(format, "tsu:") && return Stored{Timestamp{Microsecond},Int64}()
    startswith(format, "tsn:") && return Stored{Timestamp{Nanosecond},Int64}()
    if startswith(format, "d:")
        scale = parse(Int, split(format, ',')[2])
        return scale == 0 ? Stored{Int128,Int128}() : Stored{Decimal{scale},Int128}()
    end
    format == "+l" && return StoredList(column_reader(only(children(schema))))
    if format == "+s"
        members = children(schema)
        return StoredStruct(Tuple(Symbol(unsafe_string(member.name)) for member in members), Any[column_reader(member) for member in members])
    end
    error("the type $format of column $(unsafe_string(schema.name)) is unknown to this version of the package")
end

empty_column(::ColumnReader{T}) where {T} = T[]

# Appends all values of an array, and returns the vector, which is another one if it had no missing value before.
function append_column!(vector::Vector, reader::ColumnReader{T}, array) where {T}
    array.null_count == 0 && return append_values!(vector, reader, array)
    vector isa Vector{T} && T !== Missing && (vector = convert(Vector{Union{T,Missing}}, vector))
    append_values!(vector, reader, array)
end

function append_values!(vector::Vector{V}, reader, array) where {V}
    count, offset, had = Int(array.length), Int(array.offset), length(vector)
    valid = array.n_buffers == 0 ? Ptr{UInt8}(C_NULL) : unsafe_load(array.buffers, 1)
    resize!(vector, had + count)
    for i in 1:count
        index = offset + i - 1
        if Missing <: V && (V === Missing || valid != C_NULL && !bit(valid, index))
            @inbounds vector[had+i] = missing
        else
            @inbounds vector[had+i] = value_at(reader, array, index)
        end
    end
    vector
end

@inline bit(bytes, index) = (unsafe_load(bytes, index >> 3 + 1) >> (index & 7)) & 0x01 == 0x01
@inline buffer(array, number, ::Type{T}) where {T} = Ptr{T}(unsafe_load(array.buffers, number))

@inline value_at(::Stored{T,S}, array, index) where {T,S} = convert_stored(T, unsafe_load(buffer(array, 2, S), index + 1))
@inline value_at(::Stored{T,Units{Unit}}, array, index) where {T,Unit} =
    of_units(T, Unit, unsafe_load(buffer(array, 2, Int64), index + 1))
# Integers of 128 bits may not be aligned.
@inline function value_at(::Stored{T,Int128}, array, index) where {T}
    parts = buffer(array, 2, UInt64)
    low, high = unsafe_load(parts, 2 * index + 1), unsafe_load(parts, 2 * index + 2)
    convert_stored(T, (Int128(high % Int64) << 64) | Int128(low))
end
@inline value_at(::StoredBool, array, index) = bit(buffer(array, 2, UInt8), index)
@inline value_at(::StoredText, array, index) = with_bytes(unsafe_string, array, index)
@inline value_at(::StoredBytes, array, index) = with_bytes((at, len) -> copy(unsafe_wrap(Array, at, len)), array, index)

function value_at(reader::StoredList{T}, array, index) where {T}
    offsets = buffer(array, 2, Int32)
    first, after = Int(unsafe_load(offsets, index + 1)), Int(unsafe_load(offsets, index + 2))
    items = unsafe_load(unsafe_load(array.children, 1))
    append_column!(T[], reader.item, part_of(items, first, after - first))
end

function value_at(reader::StoredStruct, array, index)
    members = children(array)
    values = (append_column!(empty_column(of), of, part_of(member, index, 1))[1] for (of, member) in zip(reader.members, members))
    NamedTuple{reader.names}(Tuple(values))
end

# Some elements of an array. If it has nulls, they may be among these.
part_of(array, first, count) = CArrowArray(count, array.null_count, array.offset + first, array.n_buffers, array.n_children, array.buffers,
    array.children, C_NULL, C_NULL, C_NULL)

@inline function with_bytes(make, array, index)
    offsets = buffer(array, 2, Int32)
    start, stop = unsafe_load(offsets, index + 1), unsafe_load(offsets, index + 2)
    make(buffer(array, 3, UInt8) + start, Int(stop - start))
end

@inline convert_stored(::Type{T}, value::T) where {T} = value
@inline convert_stored(::Type{Date}, days::Int32) = of_days(days)
@inline convert_stored(::Type{Timestamp{Unit}}, count::Int64) where {Unit} = Timestamp{Unit}(count)
@inline convert_stored(::Type{Decimal{Scale}}, digits::Int128) where {Scale} = Decimal{Scale}(digits)

@inline of_units(::Type{Time}, ::Type{Microsecond}, count) = Time(Nanosecond(1000 * count))
@inline of_units(::Type{Time}, ::Type{Nanosecond}, count) = Time(Nanosecond(count))
@inline of_units(::Type{DateTime}, ::Type{Second}, count) = of_milliseconds(1000 * count)
@inline of_units(::Type{DateTime}, ::Type{Millisecond}, count) = of_milliseconds(count)
