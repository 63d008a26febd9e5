# What is written is read back: values of every sort.
using Test
using Millstream: BSON

Base.include(@__MODULE__, "shared/types.jl")
using Main.BSONTypes: Pointing

same(a, b) = isequal(a, b) && typeof(a) == typeof(b)
there(x) = same(BSON.roundtrip(x), x)

@testset "values that BSON has" begin
    for x in Any[nothing, 1, Int32(-1), true, 2.5, NaN, -0.0, "b", "", "a\0b\xff", UInt8[1, 2, 3], UInt8[], Any[1, "b", nothing]]
        @test there(x)
    end
    @test BSON.roundtrip(Dict(:a => 1, :b => 2)) == Dict{Symbol,Any}(:a => 1, :b => 2)
end

@testset "other values" begin
    for x in Any[:foo, Symbol(""), 'ß', 0x03, Int8(-3), typemax(UInt64), typemin(Int128), Float16(1.5), 1.0f0, missing, 1 + 2im,
        3 // 4, (), (1, "two", :three), (a = 1, b = "x"), NamedTuple(), 1 => "x", 1:3, 1:2:7, Set([1, 2, 3]), Dict("a" => 1),
        Dict(1 => [2]), Dict{Any,Any}("x" => :y), trues(70), BitArray([true false; false true]), [1, 2, 3], [1.5 2.0; 3.0 4.0],
        zeros(0, 3), fill(2.0f0), fill(7, 1, 2, 1), Nothing[], fill(nothing, 3, 2), [true, false], ['a', 'ß'], [1 + 2im], [(1, 0x02)],
        ["a", "b"], ["a" "b"; "c" "d"], Real[1 2.5], Any[1 "a"; :b 2.0], [[1], [2, 3]], r"a+"i, SubString("hello", 2, 4), SubString("ß", 1, 0),
        view([1, 2, 3], 2:3), Base.CodeUnits("abc"), v"1.2.3", IdDict(:a => 1)]
        @test there(x)
    end
    @test BSON.roundtrip(Ref(1))[] == 1
    @test read(BSON.roundtrip(IOBuffer("text")), String) == "text"
end

@testset "functions" begin
    @test BSON.roundtrip(sin) === sin && BSON.roundtrip(+) === +
    @test BSON.roundtrip(Base) === Base
    for (x, what) in ((sin, "sin"), (Base, "Base"))
        io = IOBuffer()
        BSON.bson(io, Dict(:x => x))
        e = try BSON.load(seekstart(io)) catch e e end
        @test e isa BSON.BSONError && e.name == :julia_invalid && occursin("allow_code", e.expected) && occursin(what, e.found)
        @test BSON.load(seekstart(io); allow_code = true)[:x] === x
    end
end

@testset "what cannot be written" begin
    root = Dict{Symbol,Any}()
    root[:me] = root
    @test_throws BSON.BSONError BSON.bson(IOBuffer(), root)
    @test_throws BSON.BSONError BSON.bson(IOBuffer(), Dict(:a => [Pointing(C_NULL)]))
    path = tempname()
    write(path, "as before")
    @test_throws BSON.BSONError BSON.bson(path, root)
    @test read(path, String) == "as before"
end
