# Written values are read back: values of every kind, shared, cyclic and deep values.
using Test
using Millstream: BSON

Base.include(@__MODULE__, "shared/types.jl")
using Main.BSONTypes: Foo, Of, Nothing_, Wide, Tree, Some_, Cons, Cell, Cache, Celsius, Padded, Pointing

same(a, b) = isequal(a, b) && typeof(a) == typeof(b)
there(x) = same(BSON.roundtrip(x), x)

@testset "values of BSON types" begin
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

@testset "types" begin
    for T in Any[Int64, Tuple, Tuple{}, Tuple{Int,String}, Complex{Float32}, Complex, Array, Vector, Vector{<:Real}, Dict{String,Int},
        Union{}, Union{Int,Nothing,String}, Any, Of, Of{Int}, Val{3}, Val{(1, :a)}, NTuple{3,Int}, NamedTuple{(:a,),Tuple{Int}}, BitArray{2},
        Type{Int}, Tuple{Vararg{Int}}]
        @test BSON.roundtrip(T) == T
    end
end

@testset "structs" begin
    @test there(Of(())) && there(Of(Of(1.5))) && there(Of{Any}(1)) && there(Nothing_()) && there(fill(Nothing_(), 1, 3))
    wide = Wide(-1, 2, 1.5, 'x', 1 + 2im, :s, (1, "a"), (a = 1, b = 2.0), Dict("k" => 1), nothing, missing, [Of(1), Of(2)],
        Float32[1 2; 3 4], UInt8[7], [1, "x"], C_NULL)
    careful, quick = BSON.ParseCtx(patience = typemax(Int)), BSON.ParseCtx(patience = 0)
    io = IOBuffer()
    BSON.bson(io, Dict(:x => wide))
    for ctx in (careful, quick)
        back = BSON.parse(seekstart(io), ctx)[:x]
        @test back isa Wide && all(i -> same(getfield(back, i), getfield(wide, i)), 1:fieldcount(Wide))
    end
    @test [p.b for p in BSON.roundtrip([Padded(1, 2), Padded(3, 4)])] == [2, 4]
    # There are many values, so that code is generated for them. The last one has another type.
    many = Any[Of("a$i") for i in 1:5000]
    @test BSON.roundtrip(many) isa Vector{Of{String}} && BSON.roundtrip(many) == many
    @test there(push!(copy(many), 1)) && typeof(BSON.roundtrip([many; Of(1)])) == Vector{Of}
    @test BSON.roundtrip(many, :compat) isa Vector{Any}
end

@testset "undefined fields and elements" begin
    x = BSON.roundtrip(Some_())
    @test !isdefined(x, :first) && !isdefined(x, :last)
    x = BSON.roundtrip([Some_(1) for _ in 1:3000])
    @test x[end].first == 1 && !isdefined(x[end], :last)
    for xs in (Array{Real}(undef, 2, 3), Array{String}(undef, 2, 3), Vector{String}(undef, 2))
        back = BSON.roundtrip(xs)
        @test size(back) == size(xs) && !any(i -> isassigned(back, i), eachindex(back))
    end
    @test !isassigned(BSON.roundtrip(Dict("a" => Array{Real}(undef, 2, 3)))["a"], 1)
end

@testset "shared and cyclic objects" begin
    x = [1, 2, 3]
    a, b = BSON.roundtrip((x, x))
    @test a == x && a === b
    d = Dict{Symbol,Any}(:a => 1)
    d[:d] = d
    back = BSON.roundtrip(d)
    @test back[:a] == 1 && back[:d] === back
    foo = Foo(1)
    foo.x = foo
    back = BSON.roundtrip(foo)
    @test back.x === back
    v = Any[1]
    push!(v, v)
    back = BSON.roundtrip(v)
    @test back[1] == 1 && back[2] === back
    # The array of children is first reached without its type, and is part of itself.
    tree = Tree("root", [], nothing)
    push!(tree.kids, Tree("kid", tree.kids, tree))
    back = BSON.roundtrip(Any[tree.kids, tree])
    @test back[1] === back[2].kids === back[1][1].kids && back[1][1].up === back[2] && back[1] isa Vector{Tree}
    for ctx in (BSON.ParseCtx(patience = 0), BSON.ParseCtx(patience = typemax(Int)))
        io = IOBuffer()
        BSON.bson(io, Dict(:t => tree))
        back = BSON.parse(seekstart(io), ctx)[:t]
        @test back.kids[1].up === back && back.kids[1].kids === back.kids
    end
    s = Dict("k" => [1.0])
    s2 = BSON.roundtrip(Any[s, Of(s)])
    @test s2[1] === s2[2].x
    # An immutable value is part of itself through a mutable one.
    cell = Cell(nothing)
    cell.tail = Of(cell)
    back = BSON.roundtrip(Any[cell.tail, cell])
    @test back[2].tail.x === back[2]
end

@testset "deep values" begin
    list = foldl((tail, i) -> Cons(i, tail), 1:20_000; init = nothing)
    for ctx in (BSON.ParseCtx(patience = 0), BSON.ParseCtx(patience = typemax(Int)))
        io = IOBuffer()
        BSON.bson(io, Dict(:list => list))
        back = BSON.parse(seekstart(io), ctx)[:list]
        n = 0
        while back !== nothing
            n += 1
            back = back.tail
        end
        @test n == 20_000
        @test_throws BSON.BSONError BSON.load(seekstart(io); depth = 10_000)
    end
    deep = foldl((inner, _) -> Any[inner], 1:20_000; init = Any[])
    @test length(BSON.roundtrip(deep)) == 1
    io = IOBuffer()
    BSON.bson(io, Dict(:deep => deep))
    @test BSON.parse(seekstart(io))[:deep] isa Vector{Any}
end

@testset "the caller's values are untouched" begin
    inner = Dict{Symbol,Any}(:x => (1, 2))
    doc = Dict{Symbol,Any}(:a => inner, :b => inner, :c => Of(1))
    BSON.bson(IOBuffer(), doc)
    @test doc[:a] === doc[:b] === inner && inner[:x] === (1, 2) && doc[:c] === Of(1) && length(doc) == 3
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

@testset "extension points" begin
    BSON.lower(x::Celsius) = x.degrees
    @test BSON.roundtrip(Any[Celsius(36.6), 1]) == Any[36.6, 1]
    BSON.structdata(x::Cache) = Any[x.path]
    BSON.initstruct(::Type{Cache}) = Cache("", 0)
    BSON.newstruct!(x::Cache, path) = (x.path = path; x.opened += 1; x)
    cache = Cache("/var", 7)
    a, b = BSON.roundtrip([cache, cache])
    @test a === b && a.path == "/var" && a.opened == 1
    @test BSON.structdata(1.5) isa Vector{UInt8} && BSON.structdata(1 + 2im) == [1, 2]
    @test BSON.lower(1 + 2im)[:tag] == "struct" && BSON.lower(3) == 3
    @test BSON.newstruct!(BSON.initstruct(Foo), 5).x == 5
end

@testset "values that cannot be written" begin
    root = Dict{Symbol,Any}()
    root[:me] = root
    @test_throws BSON.BSONError BSON.bson(IOBuffer(), root)
    @test_throws BSON.BSONError BSON.bson(IOBuffer(), Dict(:a => [Pointing(C_NULL)]))
    path = tempname()
    write(path, "as before")
    @test_throws BSON.BSONError BSON.bson(path, root)
    @test read(path, String) == "as before"
end
