# Records of CSV, lines and JSON as columns with inferred and given types: the shared vectors, every type, options and errors.
using Millstream, Test
using Millstream: CancelToken, ColumnBatches, Csv, Decimal, JsonLines, Lines, Reader, Timestamp, cancel, columns, next_line, rejected, rejects, schema
using Dates: Date, DateTime, Microsecond, Nanosecond, Time

const vectors = normpath(joinpath(@__DIR__, "..", "..", "..", "vectors", "infer.tsv"))
const letters = Dict('n' => "\n", 'r' => "\r", 't' => "\t", '\\' => "\\")

failure(call) = try call() catch error; error end

# Undoes `\n`, `\xHH` and the like.
unescaped(text) = String(reduce(vcat, [bytes_of(found.match) for found in eachmatch(r"\\x..|\\.|[^\\]+", text)]; init = UInt8[]))
bytes_of(piece) = startswith(piece, "\\x") ? hex2bytes(piece[3:4]) :
    Vector{UInt8}(codeunits(startswith(piece, "\\") ? letters[piece[2]] : String(piece)))

function options_of(words)
    options, nulls = Dict{Symbol,Any}(), String[]
    for word in split(words)
        name, value = split(word * "=", '='; limit = 2)
        value = chop(value)
        name == "default" ? nothing :
        name == "decimals" ? (options[:decimals] = true) :
        name == "special" ? (options[:special_numbers] = true) :
        name == "first" ? (options[:infer] = parse(Int, value)) :
        name == "null" ? push!(nulls, value) :
        name == "type" ? (options[:schema] = (value = replace(value, '_' => ' '),)) : error("an unknown option: $word")
    end
    options[:nulls] = nulls
    options
end

# A value as the vectors print it.
printed(value) = string(value)
printed(::Missing) = "null"
printed(bytes::Vector{UInt8}) = bytes2hex(bytes)

# The types whose values Julia prints otherwise.
prints_otherwise(type) = startswith(type, "float") || startswith(type, "time")

# The type of the elements for a type of the vectors.
function element_type(type)
    exact = Dict("bool" => Bool, "int8" => Int8, "uint8" => UInt8, "int64" => Int64, "uint64" => UInt64, "float32" => Float32,
        "float64" => Float64, "date32" => Date, "string" => String, "binary" => Vector{UInt8}, "null" => Missing)
    haskey(exact, type) && return exact[type]
    startswith(type, "time64") && return Time
    (startswith(type, "timestamp[s") || startswith(type, "timestamp[ms")) && return DateTime
    startswith(type, "timestamp[us") && return Timestamp{Microsecond}
    startswith(type, "timestamp[ns") && return Timestamp{Nanosecond}
    scale = parse(Int, match(r"^decimal128\(\d+, (\d+)\)$", type)[1])
    scale == 0 ? Int128 : Decimal{scale}
end

const cases = [split(line, '\t') for line in eachline(vectors) if !isempty(line) && !startswith(line, '#')]

@testset "vector $name" for (name, words, fields, type, values, ending) in cases
    is_minus = name == "only_a_minus"
    parts(text) = text == "-" && !is_minus ? String[] : unescaped.(split(text, " | "))
    # The second field keeps lines with an empty field from being blank.
    text = "value,end\n" * join(field * ",\n" for field in parts(fields))
    expected, found, how = parts(values), Any[], "end"
    try
        batches = ColumnBatches(Vector{UInt8}(text); options_of(words)...)
        @test occursin("\"name\":\"value\",\"type\":\"$type\"", schema(batches))
        for batch in batches
            @test nonmissingtype(eltype(batch.value)) == nonmissingtype(element_type(type))
            @test (Missing <: eltype(batch.value)) == any(ismissing, batch.value)
            append!(found, batch.value)
        end
    catch error
        error isa MillstreamError || rethrow()
        how = string(error.kind)
    end
    @test (length(found), how) == (length(expected), ending)
    prints_otherwise(type) || @test printed.(found) == expected
    startswith(type, "float") && @test isequal(found, [text == "null" ? missing : parse(element_type(type), text) for text in expected])
end
@test length(cases) > 90

@testset "a table" begin
    text = "name,age,since,at\nAnn,41,2024-02-29,1969-12-31T23:59:59.5\n\"\",17,1969-12-31,2024-02-29T12:00:00.123456\n"
    table = columns(Vector{UInt8}(text))
    @test table isa NamedTuple{names,<:Tuple{Vararg{AbstractVector}}} where {names}
    @test table.name == ["Ann", ""] && table.name isa Vector{String}
    @test table.age == [41, 17] && table.age isa Vector{Int64}
    @test table.since == [Date(2024, 2, 29), Date(1969, 12, 31)]
    first, second = table.at
    @test DateTime(first) == DateTime(1969, 12, 31, 23, 59, 59, 500)
    @test (Date(second), Time(second)) == (Date(2024, 2, 29), Time(12, 0, 0, 123, 456))
    @test_throws InexactError DateTime(second)
    @test string(second) == "2024-02-29T12:00:00.123456" && first < second && first == Timestamp{Microsecond}(-500_000)
    # Every source, and more than one batch.
    many = "n,text\n" * join("$i,text $i\n" for i in 1:100_000)
    mktempdir() do directory
        path = joinpath(directory, "many.csv")
        write(path, many)
        for source in (() -> path, () -> `cat $path`, () -> IOBuffer(many), () -> Vector{UInt8}(many)), threads in (1, 2)
            table = columns(source(); threads = threads, capacity = 1 << 16)
            @test table.n == 1:100_000 && table.text == ["text $i" for i in 1:100_000]
        end
        @test length(collect(ColumnBatches(path; capacity = 1 << 16))) > 1
    end
    @test columns(UInt8[]) == NamedTuple()
    @test columns(b"a,b\n") == (a = String[], b = String[])
    # After the records that a reader has delivered.
    reader = Reader(b"# comment\na;b\n1;2\n")
    @test next_line(reader) == "# comment"
    @test columns(reader, Csv(delimiter = ';')) == (a = [1], b = [2])
    @test !isopen(reader)
    @test columns(b"a,b\n\nc", Lines()) == (line = ["a,b", "", "c"],)
end

@testset "types" begin
    types = (a = "int8", b = "uint8", c = "int16", d = "uint16", e = "int32", f = "uint32", g = "int64", h = "uint64", i = "float32",
        j = "float64", k = "bool", l = "string", m = "binary", n = "date32", o = "time64[us]", p = "time64[ns]", q = "timestamp[s]",
        r = "timestamp[ms]", s = "timestamp[us, UTC]", t = "timestamp[ns]", u = "decimal128(38, 0)", v = "decimal128(5, 2)")
    row = "-1,1,-2,2,-3,3,-4,4,0.5,0.25,true,text,bytes,2024-02-29,23:59:59.000001,00:00:00.000000001,2024-02-29T01:02:03," *
        "2024-02-29T01:02:03.004,1970-01-01T01:00:00+01:00,1970-01-01T00:00:00.000000001,-7,-0.05"
    head = join(keys(types), ',')
    table = columns(Vector{UInt8}("$head\n$row\n"); schema = types)
    @test map(only, Tuple(table)) == (-1, 1, -2, 2, -3, 3, -4, 4, 0.5, 0.25, true, "text", b"bytes", Date(2024, 2, 29),
        Time(23, 59, 59, 0, 1), Time(0, 0, 0, 0, 0, 1), DateTime(2024, 2, 29, 1, 2, 3), DateTime(2024, 2, 29, 1, 2, 3, 4),
        Timestamp{Microsecond}(0), Timestamp{Nanosecond}(1), -7, Decimal{2}(-5))
    @test map(eltype, Tuple(table))[1:12] == (Int8, UInt8, Int16, UInt16, Int32, UInt32, Int64, UInt64, Float32, Float64, Bool, String)
    @test table.u isa Vector{Int128} && string(table.v[1]) == "-0.05" && Rational(table.v[1]) == -1 // 20
    @test Float64(Decimal{1}(15)) == 1.5 && Decimal{1}(2) < Decimal{1}(10) && BigFloat(Decimal{3}(500)) == 0.5
    nulls = join(fill("NA", length(types)), ',')
    table = columns(Vector{UInt8}("$head\n$nulls\n$row\n$nulls\n"); schema = types, nulls = ["NA"])
    @test all(isequal.(map(column -> ismissing.(column), Tuple(table)), Ref([true, false, true])))
    @test table.k isa Vector{Union{Bool,Missing}} && table.l[2] == "text"
    @test columns(b"a\nx\n"; schema = ["a" => "null"], nulls = ["x"]).a isa Vector{Missing}
    @test columns(b"b,a\n1,2\n"; schema = ["a" => "int64!"]) == (a = [2],)
    # What `schema` returns can be given.
    stored = schema(ColumnBatches(b"\"x \"\"y\"\"\"\n1.5\n"))
    @test columns(b"\"x \"\"y\"\"\"\n2\n"; schema = stored) == NamedTuple{(Symbol("x \"y\""),)}(([2.0],))
    # Negative numbers of 128 bits, beyond 64.
    @test columns(b"a\n-18446744073709551617\n99999999999999999999999999999999999999\n").a == [-Int128(2)^64 - 1, Int128(10)^38 - 1]
end

# Lists and structs, as a producer would lay them out: [1, missing], missing, [] and (a = 1, b = "x"), (a = 2, b = "").
@testset "nested types" begin
    keep = Any[]
    kept(vector) = (push!(keep, vector); Ptr{UInt8}(pointer(vector)))
    kept_all(structures) = (ref = map(Ref, structures); append!(keep, ref); vector = [Base.unsafe_convert(Ptr{eltype(of)}, of) for of in ref];
        push!(keep, vector); pointer(vector))
    array(length, nulls, buffers, inner = Millstream.CArrowArray[]) = Millstream.CArrowArray(length, nulls, 0, Base.length(buffers), Base.length(inner),
        Ptr{Ptr{UInt8}}(kept(buffers)), isempty(inner) ? C_NULL : kept_all(inner), C_NULL, C_NULL, C_NULL)
    type(name, format, inner = Millstream.CArrowSchema[]) = Millstream.CArrowSchema(kept(format * "\0" |> Vector{UInt8}), kept(name * "\0" |> Vector{UInt8}), C_NULL, 2,
        length(inner), isempty(inner) ? C_NULL : kept_all(inner), C_NULL, C_NULL, C_NULL)
    none = Ptr{UInt8}(C_NULL)
    GC.@preserve keep begin
        items = array(2, 1, [kept([0x01]), kept([1, 0])])
        lists = array(3, 1, [kept([0x05]), kept(Int32[0, 2, 2, 2])], [items])
        reader = Millstream.column_reader(type("l", "+l", [type("item", "l")]))
        found = Millstream.append_column!(Millstream.empty_column(reader), reader, lists)
        @test isequal(found, [[1, missing], missing, Int64[]])
        pairs = array(2, 0, [none], [array(2, 0, [none, kept([1, 2])]), array(2, 0, [none, kept(Int32[0, 1, 1]), kept([UInt8('x')])])])
        reader = Millstream.column_reader(type("s", "+s", [type("a", "l"), type("b", "u")]))
        found = Millstream.append_column!(Millstream.empty_column(reader), reader, pairs)
        @test found == [(a = 1, b = "x"), (a = 2, b = "")]
        @test failure(() -> Millstream.column_reader(type("s", "tdm"))) isa ErrorException
    end
end

@testset "JSON" begin
    text = """{"id": 1, "tags": ["a", null], "at": {"x": 1.5, "y": null}}\n\n{"tags": [], "id": 2}\n{"id": 3, "tags": null, "at": {"y": true}}\n"""
    table = columns(Vector{UInt8}(text), JsonLines())
    @test table.id == [1, 2, 3]
    @test isequal(table.tags, [["a", missing], String[], missing])
    @test isequal(table.at, [(x = 1.5, y = missing), missing, (x = missing, y = true)])
    @test columns(b"{\"a\": 1.50}\n", JsonLines(); decimals = true).a == [Decimal{2}(150)]
    @test columns(b"{\"a\": [1]}\n", JsonLines(); infer = :off).a == ["[1]"]
    @test columns(b"{\"a\": 1, \"b\": 2}\n", JsonLines(); schema = (b = "int8",)) == (b = Int8[2],)
    twice = b"{\"a\": 1, \"a\": 2}\n"
    @test columns(twice, JsonLines(); duplicates = :first).a == [1]
    @test columns(twice, JsonLines(); duplicates = :last).a == [2]
    error = failure(() -> columns(twice, JsonLines(); schema = (a = "int64",)))
    @test (error.kind, error.line) == (:json_invalid, 1)
    document = Vector{UInt8}("{\"a\": {\"items\": [{\"n\": 1}, {\"n\": 2}]}}")
    @test columns(document; json_elements = "/a/items") == (n = [1, 2],)
    @test columns(b"[{\"n\": 1}, {\"n\": \"x\"}]"; json_elements = "").n == ["1", "\"x\""]
    # After the last whole element of a document that is cut off.
    batches = ColumnBatches(b"[{\"n\": 1}, {\"n\": 2"; json_elements = "", schema = (n = "int64",))
    @test iterate(batches)[1] == (n = [1],)
    @test failure(() -> iterate(batches)) isa MillstreamError
    @test failure(() -> columns(b"[]", JsonLines(); json_elements = "")) isa ArgumentError
    @test failure(() -> columns(b"", JsonLines(); nulls = [""])).kind == :invalid_option
    @test failure(() -> columns(b"", JsonLines(); duplicates = :skip)) isa ArgumentError
end

@testset "options" begin
    @test columns(b"1,x\n"; header = false) == NamedTuple{(Symbol("0"), Symbol("1"))}(([1], ["x"]))
    @test columns(b"a\n1\n"; infer = :off) == (a = ["1"],)
    late = "n\n" * "1\n"^20_000 * "2.5\n"
    mktempdir() do directory
        path = joinpath(directory, "late.csv")
        write(path, late)
        for source in (path, Vector{UInt8}(late))
            @test last(columns(source; infer = :all).n) == 2.5
        end
    end
    refused = try columns(`echo n`; infer = :all) catch error; error end
    @test refused.kind == :invalid_option
    @test occursin("types from all records of a command", refused.found) && occursin("a number of records", refused.expected)
    @test isequal(columns(b"a,b\n1,\n NA,x\n"; nulls = ["", " NA"]), (a = [1, missing], b = [missing, "x"]))
    @test isnan(only(columns(b"a\nNaN\n"; special_numbers = true).a))
    @test columns(b"a\n2.50\n"; decimals = true).a == [Decimal{2}(250)]
    @test isequal(columns(b"a,b\n1,2\n3\n"; ragged = :pad), (a = [1, 3], b = [2, missing]))
    none = "/does/not/exist"
    for options in ((header = 1,), (infer = 0,), (infer = :none,), (nulls = "NA",), (nulls = [1],), (decimals = nothing,), (ragged = :skip,),
        (on_bad = :pad,), (threads = 0,), (schema = 1,), (schema = (a = 1,),), (separator = ',',))
        @test failure(() -> columns(none; options...)) isa ArgumentError
    end
    @test failure(() -> columns(none, Millstream.Fixed(3))) isa ArgumentError
    @test failure(() -> columns(none)).kind == :open_failed
    @test failure(() -> columns(b"a\n"; schema = (a = "int",))).kind == :invalid_option
    @test failure(() -> columns(b"a\n"; schema = (b = "int8",))).kind == :key_missing
    @test failure(() -> columns(Millstream.Command(`cat`; stdin = IOBuffer("a\n")))) isa ArgumentError
end

@testset "errors" begin
    text = "name,age\nann,31\nbob,x1\neve,5\n"
    batches = ColumnBatches(Reader(Vector{UInt8}(text); name = "people.csv"); schema = (age = "int64",))
    @test string(batches) == "ColumnBatches(\"people.csv\")"
    @test iterate(batches)[1] == (age = [31],)
    error = failure(() -> iterate(batches))
    @test (error.kind, error.name, error.line, error.column, error.path) == (:number_invalid, "people.csv", 3, 5, "age")
    @test iterate(batches) === nothing
    # Of an inferred type.
    error = failure(() -> columns(Vector{UInt8}("n\n" * "1234567\n"^200_000 * "x\n")))
    @test (error.kind, error.line) == (:shape_mismatch, 200_002) && occursin("increase infer", error.expected)
    # Bad records that are left out.
    bad = Vector{UInt8}("n\n1\nx\n3,4\n\"5\"\n\"6\n")
    batches = ColumnBatches(bad; schema = (n = "int64",), on_bad = :skip)
    @test vcat((batch.n for batch in batches)...) == [1, 5]
    @test rejected(batches) == 3
    @test [String(copy(reject.raw)) for reject in rejects(batches)] == ["x", "3,4", "\"6\n"]
    error = rejects(batches)[1].error
    @test (error.kind, error.name, error.line, error.column, error.path) == (:number_invalid, "memory", 3, 1, "n")
    @test length(rejects(batches)) == 3
    table = @test_logs (:warn, "memory: 3 bad records left out") columns(bad; schema = (n = "int64",), on_bad = :skip)
    @test table.n == [1, 5]
    @test_logs columns(b"n\n1\n"; on_bad = :skip)
    # A command that fails, and one that is stopped.
    batches = ColumnBatches(`sh -c "echo n; echo 1; exit 3"`; schema = (n = "int64",))
    @test iterate(batches)[1].n == [1]
    @test failure(() -> iterate(batches)).kind == :command_failed
    batches = ColumnBatches(`yes`, Lines())
    @test all(isequal("y"), iterate(batches)[1].line)
    close(batches)
    close(batches)
    @test string(batches) == "ColumnBatches(closed)"
    for call in (iterate, rejected, rejects, schema, Millstream.name)
        @test failure(() -> call(batches)).kind == :closed
    end
    # A cancellation loses nothing.
    token = CancelToken()
    batches = ColumnBatches(`sh -c "echo 1; exec sleep 60"`, Lines(); cancel = token, threads = 1)
    cancel(token)
    @test failure(() -> iterate(batches)).kind == :cancelled
    reset(token)
    @test iterate(batches)[1].line == ["1"]
    close(batches)
    # The exception of an `IO`.
    struct Broken <: IO end
    Base.eof(::Broken) = Base.error("broken")
    Base.bytesavailable(::Broken) = 0
    @test occursin("broken", failure(() -> columns(Broken())).msg)
end
