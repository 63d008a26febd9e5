# Reading any file returns a value or throws an error, in bounded memory and time.
using Test
using Random
using Millstream: BSON

Base.include(@__MODULE__, "shared/corpus.jl")
Base.include(@__MODULE__, "shared/types.jl")

# A document with these elements: type, key, payload.
document(elements...) = document(collect(elements))
function document(elements::Vector)
    body = UInt8[]
    foreach(e -> append!(body, e), elements)
    joined(bytes(Int32(length(body) + 5)), body, 0x00)
end
# Concatenates bytes without compiling code for each number of arguments.
joined(parts...) = joined(Any[parts...])
function joined(parts::Vector{Any})
    all = UInt8[]
    foreach(p -> append!(all, p), parts)
    all
end
bytes(x) = collect(reinterpret(UInt8, [x]))
element(kind, key, payload) = joined(kind, codeunits(key), 0x00, payload)
text(key, s) = element(0x02, key, joined(bytes(Int32(sizeof(s) + 1)), codeunits(s), 0x00))
int(key, n) = element(0x12, key, bytes(Int64(n)))
doc(key, elements...) = element(0x03, key, document(elements...))
list(key, elements...) = element(0x04, key, document(elements...))
list(key, elements::Vector{Vector{UInt8}}) = element(0x04, key, document(elements))
binary(key, data) = element(0x05, key, joined(bytes(Int32(length(data))), 0x00, data))
type(key, name...; params = list("params")) =
    doc(key, text("tag", "datatype"), list("name", Vector{UInt8}[text("$(i - 1)", n) for (i, n) in enumerate(name)]), params)
struct_(key, of, data) = doc(key, text("tag", "struct"), of, data)
array(key, of, size, data) = doc(key, text("tag", "array"), of, list("size", Vector{UInt8}[int("$i", n) for (i, n) in enumerate(size)]), data)

backref(key, n) = doc(key, text("tag", "backref"), int("ref", n))

# The result of reading: a value, or the name of the error, which is always a BSONError.
const contexts = [BSON.ParseCtx(patience = 0), BSON.ParseCtx(patience = typemax(Int))]
function read_all(file, contexts = contexts)
    outcomes = map(contexts) do ctx
        try
            BSON.parse(IOBuffer(file), ctx)
        catch e
            e isa BSON.BSONError || rethrow()
            e
        end
    end
    try
        BSON.parse(IOBuffer(file))
    catch e
        e isa BSON.BSONError || rethrow()
    end
    outcomes
end

# Both paths agree on whether there is a value.
function outcome(file)
    a, b = read_all(file, contexts)
    (a isa BSON.BSONError) == (b isa BSON.BSONError) || error("the two ways differ: $(repr(a)) and $(repr(b)), of $(bytes2hex(file))")
    a
end
refused(elements...) = (e = outcome(document(elements...)); e isa BSON.BSONError ? e.name : :a_value)

@testset "every truncation" begin
    for name in ("01-signed-ints", "28-struct-nested", "32-shared-refs", "26-matrix-any", "36-union-unionall", "42-half-initialised")
        file = read(joinpath(folder, name * ".bson"))
        @test all(len -> outcome(file[1:len]) isa BSON.BSONError, 0:length(file)-1)
    end
end

@testset "random changes" begin
    random = MersenneTwister(1)
    for name in names
        file = read(joinpath(folder, name * ".bson"))
        length(file) > 20_000 && continue
        counts = [0, 0]
        for i in 1:100
            changed = copy(file)
            changed[rand(random, 1:length(file))] = rand(random, Bool) ? rand(random, UInt8) : rand(random, UInt8[0, 1, 2, 3, 4, 5, 16, 18, 255])
            # A changed type is a new type, for which code would have to be generated, so the quick path is used for
            # only a few.
            result = i % 20 == 0 ? outcome(changed) : first(read_all(changed, contexts[2:2]))
            counts[1+(result isa BSON.BSONError)] += 1
        end
        @test sum(counts) == 100
    end
end

@testset "lengths" begin
    @test refused(binary("b", UInt8[])) == :a_value
    @test refused(element(0x05, "b", vcat(bytes(Int32(-1)), 0x00))) == :document_invalid
    @test refused(element(0x05, "b", vcat(bytes(typemax(Int32)), 0x00))) == :document_truncated
    @test refused(element(0x02, "s", bytes(Int32(0)))) == :document_invalid
    @test refused(element(0x03, "d", bytes(Int32(1000)))) == :document_truncated
    @test refused(element(0x03, "d", bytes(Int32(4)))) == :document_truncated
    @test refused(element(0x08, "b", 0x02)) == :document_invalid
    @test refused(element(0x07, "id", zeros(UInt8, 12))) == :shape_mismatch
    @test refused(element(0x66, "id", zeros(UInt8, 12))) == :shape_mismatch
    @test outcome(bytes(typemax(Int32))).name == :document_truncated
    # A length in the file does not cause an allocation.
    mktemp() do path, io
        write(io, bytes(typemax(Int32)), zeros(UInt8, 100))
        close(io)
        @test_throws BSON.BSONError BSON.load(path)
        @test (@allocated try BSON.load(path) catch end) < 1_000_000
    end
end

@testset "sizes of arrays" begin
    float, any, nothing_ = type("type", "Core", "Float64"), type("type", "Core", "Any"), type("type", "Core", "Nothing")
    none, empty = binary("data", UInt8[]), list("data")
    @test refused(array("a", float, [2], binary("data", zeros(UInt8, 16)))) == :a_value
    @test refused(array("a", float, [3], binary("data", zeros(UInt8, 16)))) == :julia_invalid
    @test refused(array("a", float, [-1], none)) == :julia_invalid
    @test refused(array("a", float, [2^62, 2^62], none)) == :julia_invalid
    @test refused(array("a", float, [2^62], none)) == :julia_invalid
    @test refused(array("a", float, [0, 2^62, 2^62], none)) == :julia_invalid
    @test refused(array("a", any, [2^40], empty)) == :julia_invalid
    @test refused(array("a", any, [1], empty)) == :julia_invalid
    @test refused(array("a", any, fill(1, 40), list("data", int("0", 1)))) == :memory_limit
    @test refused(array("a", nothing_, [2^40], none)) == :memory_limit
    @test refused(array("a", nothing_, [1000], none)) == :a_value
    @test refused(array("a", type("type", "Core", "String"), [2], binary("data", zeros(UInt8, 16)))) == :julia_invalid
    @test refused(array("a", type("type", "Core", "Bool"), [2], binary("data", UInt8[0, 2]))) == :document_invalid
    @test refused(array("a", type("type", "Core", "Array"), [0], none)) in (:a_value, :julia_invalid)
end

@testset "types and parts" begin
    one_int = list("data", int("0", 1))
    @test refused(struct_("s", type("type", "Main", "NoSuchThing"), one_int)) == :julia_invalid
    @test refused(struct_("s", type("type", "Main", "Base", "exit"), one_int)) == :julia_invalid
    @test refused(struct_("s", type("type", "Main", "Base", "ENV"), one_int)) == :julia_invalid
    @test refused(doc("s", text("tag", "ref"), list("path", text("0", "Main"), text("1", "Base"), text("2", "ENV")))) == :julia_invalid
    for name in ("Task", "Module", "DataType", "Method", "SimpleVector", "TypeName", "String", "Symbol", "MethodInstance", "CodeInfo")
        @test refused(struct_("s", type("type", "Core", name), one_int)) == :julia_invalid
        @test refused(struct_("s", type("type", "Core", name), list("data"))) == :julia_invalid
    end
    for name in ("IOStream", "Process", "Timer")
        @test refused(struct_("s", type("type", "Base", name), list("data"))) == :julia_invalid
    end
    @test refused(struct_("s", type("type", "Core", "Integer"), one_int)) == :julia_invalid
    @test refused(struct_("s", type("type", "Core", "Int8"), binary("data", UInt8[1]))) == :a_value
    @test refused(struct_("s", type("type", "Core", "Int8"), binary("data", UInt8[1, 2]))) == :julia_invalid
    @test refused(struct_("s", type("type", "Core", "Int8"), list("data"))) == :julia_invalid
    point(data) = struct_("s", type("type", "Main", "Corpus", "Point"), data)
    @test refused(point(list("data", int("0", 1), int("1", 2)))) == :a_value
    @test refused(point(list("data", int("0", 1)))) == :julia_invalid
    @test refused(point(list("data", int("0", 1), int("1", 2), int("2", 3)))) == :julia_invalid
    @test refused(point(list("data", text("0", "x"), int("1", 2)))) == :shape_mismatch
    @test refused(point(binary("data", zeros(UInt8, 16)))) == :julia_invalid
    # A SubString outside of its string.
    sub = type("type", "Main", "Base", "SubString"; params = list("params", type("0", "Core", "String")))
    @test refused(struct_("s", sub, list("data", text("0", "abc"), int("1", 0), int("2", 3)))) == :a_value
    @test refused(struct_("s", sub, list("data", text("0", "abc"), int("1", 1), int("2", 2^40)))) == :julia_invalid
    # A dictionary with more keys than values; missing bits.
    dict = type("type", "Main", "Base", "Dict"; params = list("params", type("0", "Core", "String"), type("1", "Core", "Int64")))
    @test refused(struct_("s", dict, list("data", list("0", text("0", "a")), list("1")))) == :julia_invalid
    bits = type("type", "Main", "Base", "BitArray"; params = list("params", int("0", 1)))
    chunks = array("0", type("type", "Core", "UInt64"), [1], binary("data", fill(0xff, 8)))
    @test refused(struct_("s", bits, list("data", chunks, int("1", 5), doc("2", text("tag", "tuple"), one_int)))) == :a_value
    @test refused(struct_("s", bits, list("data", chunks, int("1", 500), doc("2", text("tag", "tuple"), one_int)))) == :julia_invalid
    # Parameters that a type cannot have, or that make it huge.
    complex(p) = type("t", "Main", "Base", "Complex"; params = p)
    @test refused(complex(list("params", text("0", "x")))) == :julia_invalid
    @test refused(complex(list("params", type("0", "Core", "String")))) == :julia_invalid
    @test refused(complex(list("params", type("0", "Core", "Int64"), int("1", 1)))) == :julia_invalid
    vararg = type("0", "Core", "Vararg"; params = list("params", type("0", "Core", "Int64"), int("1", 10^9)))
    @test refused(type("t", "Core", "Tuple"; params = list("params", vararg))) in (:memory_limit, :julia_invalid)
    @test refused(doc("s", text("tag", "symbol"), text("name", "a\0b"))) == :julia_invalid
    # Types whose size doubles with each entry.
    twice(n) = doc("$(n - 1)", text("tag", "datatype"), list("name", text("0", "Core"), text("1", "Tuple")),
        list("params", backref("0", n + 1), backref("1", n + 1)))
    entries = Vector{UInt8}[[twice(n) for n in 1:60]; [type("60", "Core", "Int64")]]
    @test refused(backref("t", 1), list("_backrefs", entries)) == :memory_limit
end

@testset "vectors in vectors do not become types in types" begin
    nested = foldl((inner, _) -> list("0", inner), 1:200; init = int("0", 1))
    @test length(string(typeof(BSON.load(IOBuffer(document(nested)))[Symbol("0")]))) < 200
    @test BSON.roundtrip([[[1.5]], [[2.5]]]) isa Vector{Vector{Vector{Float64}}}
end

@testset "references" begin
    entry = list("_backrefs", list("0", int("0", 1)))
    @test refused(backref("a", 1), entry) == :a_value
    for n in (0, 2, -1, typemax(Int))
        @test refused(backref("a", n), entry) == :julia_invalid
    end
    @test refused(backref("a", 1)) == :julia_invalid
    @test refused(backref("a", 1), list("_backrefs", backref("0", 2), backref("1", 1))) == :julia_invalid
    @test refused(backref("a", 1), list("_backrefs", backref("0", 2), list("1"))) == :a_value
    @test refused(backref("a", 1), list("_backrefs", doc("0", text("tag", "tuple"), list("data", backref("0", 1))))) == :julia_invalid
    @test refused(backref("a", 1), list("_backrefs", list("0", backref("0", 1)))) == :a_value
    @test refused(doc("_backrefs")) == :shape_mismatch
end

@testset "depth" begin
    function nested(levels, wrap)
        element_ = int("0", 1)
        for _ in 1:levels
            element_ = wrap(element_)
        end
        document(element_)
    end
    # The document is built from the inside out, so 2,000 levels copy only a few megabytes.
    for wrap in (e -> list("0", e), e -> doc("0", e), e -> doc("0", text("tag", "tuple"), list("data", e)))
        file = nested(2_000, wrap)
        @test BSON.load(IOBuffer(file)) isa Dict
        @test_throws BSON.BSONError BSON.load(IOBuffer(file); depth = 1_000)
        @test BSON.parse(IOBuffer(file)) isa Dict
    end
end
