# Every file in the corpus, written by BSON.jl and BSONqs, compared with its description.
using Test
using Millstream: BSON

Base.include(@__MODULE__, "shared/corpus.jl")
Base.include(@__MODULE__, "shared/describe.jl")

value_of(root) = collect(keys(root)) == [:value] ? root[:value] : root

# Files are read with the slow path only, and with code generated for each type.
careful = BSON.ParseCtx(allow_code = true, patience = typemax(Int))
quick = BSON.ParseCtx(allow_code = true, patience = 0)

@testset "$name" for name in names
    path = joinpath(folder, name * ".bson")
    known = Describe.json(read(joinpath(folder, name * ".json"), String))["value"]
    same(root) = Describe.agrees(value_of(root), known)
    for ctx in (careful, quick), mmap in (false, true)
        @test same(BSON.parse(path, ctx; mmap = mmap))
    end
    @test same(BSON.load_compat(path; allow_code = true))
    @test same(Dict(BSON.Document(IOBuffer(read(path)), Any; allow_code = true)))
    @test BSON.parse(path) isa Dict{Symbol,Any}
    if name in ("37-named-function", "41-module-constant", "60-closure")
        @test_throws BSON.BSONError BSON.load(path)
    else
        @test same(BSON.load(path))
        # Written values are read back.
        io = IOBuffer()
        BSON.bson(io, BSON.load(path))
        @test same(BSON.load(seekstart(io)))
    end
end
