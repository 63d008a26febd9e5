# The examples of behaviour that all languages share: `vectors/*.tsv`.
using Millstream, Test
using Millstream: Reader, Writer, scan, columns!, Lines, Delimiter, AnyOf, Fixed, LengthPrefixed, Documents

const folder = normpath(joinpath(@__DIR__, "..", "..", "..", "vectors"))

# Returns the cases of a file: its lines without comments, split into columns.
cases(file) = [split(line, '\t') for line in eachline(joinpath(folder, file)) if !isempty(line) && !startswith(line, '#')]

const hex = hex2bytes

Base.include(@__MODULE__, joinpath(@__DIR__, "support", "pieces.jl"))

reader_of(source; options...) = Reader(source; decode = :off, options...)
readers(bytes) = [reader_of(bytes), reader_of(Pieces(IOBuffer(bytes), 1)), reader_of(Pieces(IOBuffer(bytes), 7); capacity = 16)]

kind_of(error) = error isa MillstreamError ? string(error.kind) : rethrow()

function framer_of(words)
    keep = "untrimmed" in words
    words[1] == "lines" ? Lines(keep = keep) :
    words[1] == "byte" ? Delimiter(only(hex(words[2])), keep = keep) :
    words[1] == "bytes" ? Delimiter(hex(words[2]), keep = keep) :
    words[1] == "char" ? Delimiter(Char(parse(UInt32, words[2], base = 16)), keep = keep) :
    words[1] == "any-of" ? AnyOf(length(words) > 1 ? hex(words[2]) : UInt8[], keep = keep) :
    words[1] == "fixed" ? Fixed(parse(Int, words[2])) :
    words[1] == "prefix" ? LengthPrefixed(Dict("u8" => UInt8, "u16" => UInt16, "u32" => UInt32, "u64" => UInt64)[words[2]];
        endian = Symbol(words[3]), counts = Symbol(words[4])) :
    words[1] == "bson" ? Documents() : error("an unknown framer: $words")
end

@testset "frames: $name" for (name, framer, input, records, ending) in cases("frames.tsv")
    expected = records == "-" ? [] : hex.(split(records, ','))
    for reader in readers(hex(input)), way in (:batches, :batches_of_one, :records)
        way == :batches || (reader = reader_of(hex(input)))
        found, how = Vector{UInt8}[], "end"
        try
            if way == :records
                append!(found, Vector{UInt8}.(collect(eachrecord(reader, framer_of(split(framer))))))
            else
                for batch in batches(reader, framer_of(split(framer)); most = way == :batches ? typemax(Int) : 1), i in 1:length(batch)
                    push!(found, record(batch, i))
                    @test batch[i] == String(copy(record(batch, i)))
                end
            end
        catch error
            # `collect` has kept no earlier records.
            way == :records && (found = expected)
            # A reader has a record limit, and reports that error first.
            how = replace(kind_of(error), "record_too_long" => "frame_truncated")
        end
        @test (found, how) == (expected, ending)
    end
end

const numbers = Dict("u32" => UInt32, "u64" => UInt64, "i32" => Int32, "i64" => Int64, "f32" => Float32, "f64" => Float64)

show_number(value::Integer) = string(value)
show_number(value::AbstractFloat) = value

same(found::AbstractFloat, expected) = isequal(found, expected == "NaN" ? oftype(found, NaN) : parse(typeof(found), expected))
same(found, expected) = string(found) == expected

@testset "scan: $name" for (name, kind, input, expected) in cases("scan.tsv")
    type, separator = occursin(',', kind) ? split(kind, ',') : (kind, nothing)
    haskey(numbers, type) || continue
    for reader in readers(hex(input))
        found = Any[]
        try
            while true
                value = scan(reader, numbers[type]; separator = separator === nothing ? nothing : only(hex(separator)))
                value === nothing && break
                push!(found, value)
            end
        catch error
            push!(found, kind_of(error))
        end
        words = split(expected)
        @test length(found) == length(words)
        @test all(map(same, found, words))
    end
end

const integers = Dict("$(letter)$(bits)" => getfield(Base, Symbol(name, bits))
    for (letter, name) in (("u", "UInt"), ("i", "Int")) for bits in (8, 16, 32, 64, 128))

is_space(byte) = byte == 0x20 || 0x09 <= byte <= 0x0d

# Columns have the same numbers: here each number is a field of a record.
@testset "a column: $name" for (name, type, input, expected) in cases("scan.tsv")
    T = get(integers, type, get(numbers, type, nothing))
    T !== nothing && sizeof(T) <= 8 || continue
    lines = UInt8[]
    for byte in hex(input)
        is_space(byte) ? isempty(lines) || last(lines) == 0x0a || push!(lines, 0x0a) : push!(lines, byte)
    end
    table, ending = (a = T[],), []
    try
        columns!(table, Reader(lines))
    catch error
        push!(ending, kind_of(error))
    end
    words = split(expected)
    found = [table.a; ending]
    @test length(found) == length(words)
    @test all(map(same, found, words))
end

# Returns the value to write, or `nothing` for kinds that Julia does not have.
function put_value(kind, value)
    haskey(integers, kind) ? parse(integers[kind], value) :
    kind == "f32" ? reinterpret(Float32, parse(UInt32, value, base = 16)) :
    kind == "f64" ? reinterpret(Float64, parse(UInt64, value, base = 16)) :
    kind == "bool" ? parse(Bool, value) :
    kind == "bytes" ? hex(value) : nothing
end

@testset "put: $name" for (name, kind, value, expected) in cases("put.tsv")
    what = put_value(kind, value)
    what === nothing && continue
    writer = Writer()
    put!(writer, what)
    @test take!(writer) == hex(expected)
end
