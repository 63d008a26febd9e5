# Tests of MongoDB documents: decoding and encoding of every type, and a real dump.
using Millstream, Test
using Millstream: BSON, Reader, Documents, Writer
using Millstream.BSON: decode, encode, documents, Map, BSONError
using Base: UUID
using Base64: base64encode
using Dates

const vectors = normpath(joinpath(@__DIR__, "..", "..", "..", "..", "vectors"))
cases(file) = [split(line, '\t') for line in eachline(joinpath(vectors, file)) if !isempty(line) && !startswith(line, '#')]

# Canonical Extended JSON, to see values as another program writes them.
text(x::AbstractString) = '"' * escape_json(x) * '"'
escape_json(x) = join(c == '"' ? "\\\"" : c == '\\' ? "\\\\" : c == '\b' ? "\\b" : c == '\f' ? "\\f" : c == '\n' ? "\\n" :
    c == '\r' ? "\\r" : c == '\t' ? "\\t" : c < ' ' ? "\\u" * string(UInt32(c), base = 16, pad = 4) : c for c in x)
one(name, inner) = "{\"\$$name\":$inner}"
pair(name, a, x, b, y) = one(name, "{\"$a\":$x,\"$b\":$y}")
json(x::Map) = "{" * join((text(key) * ":" * json(value) for (key, value) in x), ",") * "}"
json(x::Vector) = "[" * join(map(json, x), ",") * "]"
json(x::String) = text(x)
json(x::Bool) = string(x)
json(::Nothing) = "null"
json(x::Int32) = one("numberInt", "\"$x\"")
json(x::Int64) = one("numberLong", "\"$x\"")
json(x::Float64) = one("numberDouble", "\"" * (isnan(x) ? "NaN" : isinf(x) ? (x > 0 ? "Infinity" : "-Infinity") : string(x)) * "\"")
json(x::DateTime) = one("date", json(Dates.value(x) - Dates.UNIXEPOCH))
json(x::BSON.FarDateTime) = one("date", json(x.milliseconds))
json(x::BSON.ObjectId) = one("oid", text(string(x)))
json(x::Vector{UInt8}) = json(BSON.Binary(0x00, x))
json(x::UUID) = json(BSON.Binary(0x04, hex2bytes(replace(string(x), "-" => ""))))
json(x::BSON.Binary) = pair("binary", "base64", text(base64encode(x.bytes)), "subType", text(string(x.subtype, base = 16, pad = 2)))
json(x::BSON.RegularExpression) = pair("regularExpression", "pattern", text(x.pattern), "options", text(x.options))
json(x::BSON.Timestamp) = pair("timestamp", "t", x.seconds, "i", x.increment)
json(x::BSON.DBPointer) = pair("dbPointer", "\$ref", text(x.collection), "\$id", json(x.id))
json(x::BSON.Code) = one("code", text(x.text))
json(x::BSON.CodeWithScope) = "{\"\$code\":$(text(x.text)),\"\$scope\":$(json(x.scope))}"
json(x::BSON.Name) = one("symbol", text(x.text))
json(x::BSON.Decimal128) = one("numberDecimal", text(string(x)))
json(::BSON.Undefined) = one("undefined", "true")
json(::BSON.MinKey) = one("minKey", "1")
json(::BSON.MaxKey) = one("maxKey", "1")

# Doubles have several text forms, so values are compared.
same_numbers(line) = replace(line, r"(?<=\"\$numberDouble\":\")[-+.0-9E]+(?=\")" => x -> string(parse(Float64, x)))

@testset "every type: $name" for (name, bytes, canonical) in cases("bson.tsv")
    bytes = hex2bytes(bytes)
    if startswith(canonical, "error ")
        error = try decode(bytes) catch error; error end
        @test error isa BSONError
        @test "error $(error.name)" == canonical
    else
        map = decode(bytes)
        @test json(map) == same_numbers(canonical)
        @test encode(map) == bytes
        @test isequal(decode(String(copy(bytes))), map)
        @test isequal(decode(encode(map)), map)
    end
end

@testset "decimal: $name" for (name, text, bytes, canonical) in cases("decimal128.tsv")
    if bytes == "error"
        @test_throws ArgumentError BSON.Decimal128(text)
    else
        bits = ltoh(reinterpret(UInt128, hex2bytes(bytes))[1])
        canonical == "-" || @test string(BSON.Decimal128(bits)) == (canonical == "=" ? text : canonical)
        text == "-" || isempty(text) || @test BSON.Decimal128(text).bits == bits
    end
end

const dump = joinpath(vectors, "mongodump", "orders.bson")

@testset "a dump of mongodump" begin
    expected = collect(eachrecord(joinpath(vectors, "mongodump", "orders.canonical.ndjson.gz")))
    all = collect(documents(dump))
    @test length(all) == 3500
    @test json.(all) == same_numbers.(expected)
    @test all[1]["customer"]["address"]["geo"][2] === 14.901841062603921
    @test all[1]["created"] === DateTime(2024, 10, 9, 10, 53, 35, 764)
    @test all[1]["_id"] === BSON.ObjectId("6b01e9338c5b33ba5caa77f3")
    @test get(all[1], "paid", "none") == "none" && get(all[1], :order_no, 0) === 10000000000
    # The documents are read as records and written back, which gives the same file.
    @test decode.(eachrecord(dump, Documents())) == all
    writer = Writer()
    foreach(document -> write(writer, encode(document)), documents(dump))
    @test take!(writer) == read(dump)
    # A loop that ends early.
    reader = Reader(dump)
    @test first(documents(reader)) == all[1]
    @test first(documents(reader)) == all[2]
    @test count(reader, Documents()) == 3498
    # A truncated dump, and a command that fails.
    @test (try collect(documents(read(dump)[1:end-1])) catch error; error.kind end) == :frame_truncated
    @test (try collect(documents(`sh -c "cat $dump; exit 3"`)) catch error; error.kind end) == :command_failed
end

@testset "values of other types" begin
    there_and_back(x) = decode(encode(Map("x" => x)))["x"]
    @test there_and_back.([0x01, Int16(-2), Int64(3), big(4), UInt32(5)]) == [1, -2, 3, 4, 5]
    @test there_and_back(1.5f0) === 1.5
    @test there_and_back(missing) === nothing
    @test there_and_back((1, "b")) == [1, "b"]
    @test there_and_back(SubString("text", 1, 2)) == "te"
    @test there_and_back((a = 1,)) == Map("a" => 1)
    @test there_and_back(UUID(1)) === UUID(1)
    @test encode(Dict(:a => 1)) == encode((a = 1,)) == encode(Map("a" => 1))
    map = Map("a" => 1)
    map["b"] = 2
    map["a"] = 3
    @test collect(map) == ["a" => 3, "b" => 2]
    @test haskey(map, "b") && !haskey(map, "c")
    @test_throws KeyError map["c"]
    for (x, name) in ((big(2)^64, :value_out_of_range), (1 + 2im, :value_out_of_range), ("\xff", :value_out_of_range),
        (Map("a\0b" => 1), :value_out_of_range), (BSON.RegularExpression("\0", ""), :value_out_of_range))
        @test (try there_and_back(x) catch error; error.name end) == name
    end
    @test_throws ArgumentError BSON.ObjectId("6b01e9338c5b33ba5caa77f")
    @test sort([BSON.ObjectId("f"^24), BSON.ObjectId("0"^24)])[1] == BSON.ObjectId("0"^24)
    @test repr(BSON.Decimal128("1.5")) == "Decimal128(\"1.5\")"
end

@testset "values of a type" begin
    numbers = reinterpret(UInt8, [htol(1.5), htol(-2.5)])
    document = encode((a = 1, scores = [1, 2.5, Int64(3)], runs = [(loss = 0.5,), (loss = 0.25,)], none = nothing,
        packed = BSON.Binary(0x00, collect(numbers)), words = ["x", "y"], gaps = [1, nothing, 3],
        pattern = BSON.RegularExpression("p", "i"), code = BSON.Code("f()"), is = true))
    value(T, keys...) = BSON.get_path(T, document, keys...)
    # With `===`, vectors are compared by their types, too.
    same(x, y) = typeof(x) === typeof(y) && isequal(x, y)
    @test same(value(Vector{Float64}, "scores"), [1.0, 2.5, 3.0])
    @test same(value(Vector{Float32}, "scores"), Float32[1, 2.5, 3])
    @test same(value(Vector{Float64}, "packed"), [1.5, -2.5])
    @test same(value(Vector{UInt8}, "packed"), collect(numbers))
    @test same(value(Vector{String}, "words"), ["x", "y"])
    @test same(value(Vector{Union{Int,Missing}}, "gaps"), Union{Int,Missing}[1, missing, 3])
    @test same(value(Vector{Union{Int,Nothing}}, "gaps"), Union{Int,Nothing}[1, nothing, 3])
    @test same(value(Vector{Any}, "gaps"), Any[Int64(1), nothing, Int64(3)])
    @test value(Float64, :runs, "1", :loss) === 0.25
    @test value(UInt8, "a") === 0x01
    @test value(Bool, "is") === true
    @test value(Map, "runs", "0") == Map("loss" => 0.5)
    @test value(Map) == decode(document) && value(Any, "code") == BSON.Code("f()")
    @test value(Union{Int,Missing}, "none") === missing && value(Any, "none") === nothing
    for keys in (("b",), ("runs", "2"), ("runs", "x"), ("runs", "-1"), ("a", "b"), ("none", "b"))
        @test value(Int, keys...) === nothing
        @test (try BSON.require_path(Int, document, keys...) catch error; error.name end) == :key_missing
    end
    @test BSON.require_path(Int, document, "a") === 1
    @test BSON.require_path(Union{Int,Nothing}, document, "none") === nothing
    # A record of a stream is a string.
    @test [sum(BSON.require_path(Vector{Float64}, record, "scores")) for record in eachrecord([document; document], Documents())] ==
        [6.5, 6.5]
    failure(T, keys...) = try value(T, keys...) catch error; (error.name, error.found) end
    @test failure(Vector{Int}, "scores") == (:value_out_of_range, "2.5")
    @test failure(Vector{Float64}, "words") == (:shape_mismatch, "string")
    @test failure(Vector{Float64}, "a") == (:shape_mismatch, "long")
    @test failure(Vector{Int}, "gaps") == (:shape_mismatch, "null")
    @test failure(String, "is") == (:shape_mismatch, "bool")
    for (T, x) in ((UInt64, -1), (Int8, 128), (Float64, 2^53 + 1), (Int64, 2.0^63), (UInt64, 2.0^64), (Int, NaN))
        @test (try BSON.get_path(T, encode((x = x,)), "x") catch error; error.name end) == :value_out_of_range
    end
    for i in 1:length(document), change in (0x00, 0x7f, 0xff)
        changed = copy(document)
        changed[i] = change
        @test (try BSON.get_path(Vector{Float64}, changed, "packed") catch error; error end) isa Union{Vector,Nothing,BSONError}
    end
end

@testset "hostile depth and lengths" begin
    deep(levels) = vcat(reduce(vcat, [[reinterpret(UInt8, [Int32(5 + 8i)]); 0x03; UInt8('a'); 0x00] for i in levels:-1:1]), encode(Map()),
        zeros(UInt8, levels))
    @test decode(deep(900)) isa Map
    @test encode(decode(deep(900))) == deep(900)
    @test (try decode(deep(3000)) catch error; error.name end) == :too_deep
    bytes = encode(first(documents(dump)))
    for i in 1:length(bytes), change in (0x00, 0x7f, 0xff)
        changed = copy(bytes)
        changed[i] = change
        @test (try decode(changed) catch error; error end) isa Union{Map,BSONError}
    end
end
