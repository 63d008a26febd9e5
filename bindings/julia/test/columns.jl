# Delimited text as columns. `vectors.jl` has numbers of every form.
using Millstream, Test
using Millstream: Reader, columns, columns!, Lines, Delimiter, next_line, skip_record, progress
using Dates: Date

const directory = mktempdir()
const path = joinpath(directory, "table.tsv")
const count_of_rows = 50_000
write(path, "name\tposition\tscore\n" * join("row$i\t$(i)\t$(i / 8)\t-\n" for i in 1:count_of_rows))

failure(call) = try call() catch error; error end

@testset "every source" begin
    expected = (name = ["row$i" for i in 1:count_of_rows], position = collect(1:count_of_rows), score = collect(1:count_of_rows) / 8)
    for source in (() -> path, () -> `cat $path`, () -> IOBuffer(read(path)), () -> read(path)), capacity in (100, 2^18)
        reader = Reader(source(); capacity = capacity)
        skip_record(reader)
        found = columns(reader, (name = String, position = Int, score = Float64); separator = '\t')
        @test found == expected
        # The type that Tables.jl accepts as a table.
        @test found isa NamedTuple{names,<:Tuple{Vararg{AbstractVector}}} where {names}
        @test map(eltype, found) == (name = String, position = Int, score = Float64)
    end
    @test columns(path, (name = String,); most = 2).name == ["name", "row1"]
end

@testset "types" begin
    bytes = "7 7 7 7 7 7 7 7 1.5 2.5 text bytes ignored 2024-02-29 true rest\r\n"
    types = (a = Int8, b = Int16, c = Int32, d = Int64, e = UInt8, f = UInt16, g = UInt32, h = UInt64, i = Float32, j = Float64,
        k = String, l = Vector{UInt8}, _ = Nothing, m = Date, n = Bool)
    table = columns(Vector{UInt8}(bytes), types)
    @test keys(table) == (:a, :b, :c, :d, :e, :f, :g, :h, :i, :j, :k, :l, :m, :n)
    @test map(first, Tuple(table)) == (7, 7, 7, 7, 7, 7, 7, 7, 1.5, 2.5, "text", b"bytes", Date(2024, 2, 29), true)
    @test all(table[name] isa Vector{types[name]} for name in keys(table))
    # As Base reads them.
    numbers = [rand(-10^6:10^6, 300) ./ 1000; exp.(100 .* randn(300)); 2.0^53 .+ (-2:2:2); 0.1; -0.0; Inf]
    for T in (Float64, Float32)
        texts = string.(T.(numbers))
        @test isequal(columns(Vector{UInt8}(join(texts, '\n')), (a = T,)).a, parse.(T, texts))
    end
    for T in (Int8, UInt8, Int64, UInt64), edge in (typemin(T), typemax(T))
        @test columns(codeunits(string(edge)), (a = T,)).a == [edge]
        beyond = edge == typemin(T) ? big(edge) - 1 : big(edge) + 1
        @test failure(() -> columns(codeunits(string(beyond)), (a = T,))).kind == (beyond == -1 ? :number_invalid : :number_overflow)
    end
end

@testset "fields" begin
    read_text(text, types; options...) = Tuple(columns(Vector{UInt8}(text), types; options...))
    strings = (a = String, b = String)
    @test read_text("a b\n  c \t d  e\n", strings) == (["a", "c"], ["b", "d"])
    @test read_text("a,b\n,\n x ,y z,rest\n", strings; separator = ',') == (["a", "", " x "], ["b", "", "y z"])
    @test read_text("a,b\r\nc,d\r\n", strings; separator = UInt8(',')) == (["a", "c"], ["b", "d"])
    @test read_text("", strings) == (String[], String[])
    @test Tuple(columns(Vector{UInt8}("a b;c d"), strings, Delimiter(';'))) == (["a", "c"], ["b", "d"])
    @test isequal(read_text("1,\n,x\n", (a = Union{Int,Missing}, b = Union{Missing,String}); separator = ','), ([1, missing], [missing, "x"]))
    @test isequal(read_text("1 NA\nNA 2.5\n", (a = Union{Int,Missing}, b = Union{Missing,Float64}); missing = "NA"), ([1, missing], [missing, 2.5]))
end

@testset "errors" begin
    text = "name,age\nann,31\nbob,x1\neve,5\n"
    reader = Reader(Vector{UInt8}(text); name = "people.csv")
    skip_record(reader)
    table = (name = ["before"], age = [0])
    error = failure(() -> columns!(table, reader; separator = ','))
    @test (error.kind, error.name, error.record, error.offset, error.path) == (:number_invalid, "people.csv", 2, 20, "age")
    @test (error.found, error.expected) == ("x1", "a number (Int64)")
    @test (error.line, error.column) == (3, 5)
    @test startswith(error.message, "people.csv: number invalid: found x1, expected a number (Int64), in age, at line 3, column 5; ")
    # All rows before it are there, and the reader is before it.
    @test table == (name = ["before", "ann"], age = [0, 31])
    @test progress(reader).records == 2
    @test next_line(reader) == "bob,x1"
    @test columns!(table, reader; separator = ',').name == ["before", "ann", "eve"]

    # The error of the earliest row, and in a row of its first field.
    kind_in(text, types) = (error = failure(() -> columns(Vector{UInt8}(text), types)); (error.kind, error.record, error.path))
    @test kind_in("1 2\n3 x\ny 4\n5\n", (a = Int, b = Int)) == (:number_invalid, 1, "b")
    @test kind_in("1 2\n3 4\ny x\n5\n", (a = Int, b = Int)) == (:number_invalid, 2, "a")
    @test kind_in("1 2\n3\ny x\n5\n", (a = Int, b = Int)) == (:value_missing, 1, "b")
    @test kind_in("1 2\n\n", (a = Int, b = Int)) == (:value_missing, 1, "a")
    @test kind_in("1 1e999\n", (a = Int, b = Float64)) == (:number_overflow, 0, "b")
    @test kind_in("2024-02-30\n", (a = Date,)) == (:number_invalid, 0, "a")
    error = failure(() -> columns(codeunits("a,b"), (a = String, b = String, c = String); separator = ','))
    @test (error.found, error.expected, error.line, error.column) == ("2 fields", "at least 3", 1, 4)
    # The same with a carriage return, and in records that are not lines.
    error = failure(() -> columns(b"1 2\r\n3 4 \r\n 5 x\r\n", (a = Int, b = Int)))
    @test (error.line, error.column, error.offset) == (3, 4, 14)
    error = failure(() -> columns(b"1;x;", (a = Int,), Delimiter(';')))
    @test (error.line, error.column, error.record, error.offset) == (nothing, nothing, 1, 2)
    @test occursin(", in a, at byte 2, record 1 (the first is 0); ", error.message)

    # Rows before the error of a command.
    table = (a = Int[],)
    error = failure(() -> columns!(table, Reader(`sh -c "seq 3; exit 3"`)))
    @test (error.kind, table.a) == (:command_failed, [1, 2, 3])
    # A failure of `tryparse`, or an interrupt, leaves the table complete, too.
    struct Unreadable end
    Base.tryparse(::Type{Unreadable}, text::String) = text == "2" ? throw(InterruptException()) : Unreadable()
    table, reader = (a = Int[], b = Unreadable[]), Reader(b"1 1\n2 2\n3 3\n")
    @test_throws InterruptException columns!(table, reader)
    @test (length(table.a), length(table.b)) == (0, 0) && next_line(reader) == "1 1"

    # Bad arguments are refused before anything is opened.
    none = joinpath(directory, "none")
    for bad in ((a = 1,), (a = "Int",), NamedTuple())
        @test failure(() -> columns(none, bad)) isa ArgumentError
    end
    for options in ((separator = "::",), (separator = 'ü',), (separator = ",",), (missing = 0,), (most = -1,))
        @test failure(() -> columns(none, (a = Int,); options...)) isa ArgumentError
    end
    @test failure(() -> columns!((a = [1], b = Int[]), Reader(b""))) isa ArgumentError
    @test failure(() -> columns!((a = 1:3,), Reader(b""))) isa ArgumentError
end
