# Tests of files, mapped and unmapped, single members, names and macros.
using Test
using Mmap
using Millstream: BSON
using Millstream.BSON: bson, Document, @save, @load

Base.include(@__MODULE__, "shared/types.jl")
using Main.BSONTypes: Foo, Of, Nothing_, Wide, Tree, Some_, Cons, Cell, Cache, Celsius, Padded, Pointing

struct Here
    x::Int
end

@testset "by keywords, by macros, by FileIO" begin
    mktempdir() do folder
        path = joinpath(folder, "a.bson")
        bson(path, a = 1, b = [2.5])
        @test BSON.load(path) == Dict(:a => 1, :b => [2.5])
        x, y = 1, "two"
        @save path x y z = x + 2
        x = y = nothing
        @load path x y z
        @test (x, y, z) == (1, "two", 3)
        file = (filename = path,)
        BSON.fileio_save(file, Dict(:a => 1))
        @test BSON.fileio_load(file) == Dict(:a => 1)
        BSON.fileio_save(file, :a => 1, :b => 2)
        @test BSON.fileio_load(file, :a) == 1 && BSON.fileio_load(file, :a, :b) == (1, 2)
        BSON.fileio_save(file, "a", 3)
        @test BSON.fileio_load(file, "a") == 3
    end
end

@testset "types of a given module" begin
    io = IOBuffer()
    bson(io, Dict(:h => Here(7)))
    @test BSON.load(seekstart(io), @__MODULE__)[:h] === Here(7)
    @test_throws BSON.BSONError BSON.load(seekstart(io))
end

@testset "one document after another" begin
    io = IOBuffer()
    bson(io, Dict(:a => 1))
    bson(io, Dict(:a => 2))
    seekstart(io)
    @test BSON.load(io)[:a] == 1 && BSON.load(io)[:a] == 2 && eof(io)
    mktemp() do path, file
        write(file, take!(io))
        seekstart(file)
        @test BSON.load(file)[:a] == 1 && BSON.load(file; mmap = true)[:a] == 2
    end
    @test BSON.load(Base.BufferStream() |> (s -> (bson(s, Dict(:a => 3)); close(s); s)))[:a] == 3
end

@testset "large arrays" begin
    mktempdir() do folder
        path = joinpath(folder, "large.bson")
        weights = Dict(:w => reshape(Float32.(1:600_000), 1000, 600), :b => rand(UInt8, 100_000), :deep => Of(Any[collect(1:200_000), "x"]),
            :z => [1 + 2im, 3im], :s => ["text $i" for i in 1:2000])
        bson(path, weights)
        before = read(path)
        for mmap in (false, true)
            back = BSON.load(path; mmap = mmap)
            @test back[:w] == weights[:w] && back[:b] == weights[:b] && back[:deep].x == weights[:deep].x && back[:s] == weights[:s]
            # Arrays can be modified without changing the file.
            back[:w][1] = -1
            back[:b][1] = 0
            @test back[:w][1] == -1 && read(path) == before
            back = GC.gc()
        end
        # Mapped arrays are not copied.
        w = BSON.load(path; mmap = true)[:w]
        @test w isa Matrix{Float32} && UInt(pointer(w)) % 16 == 0
        GC.gc()
        @test sum(w) == sum(weights[:w])
        @test (@allocated BSON.load(path; mmap = true)) < 1_500_000
        # A file that ends too early.
        for len in (length(before) - 1, 1_000_000, 70_000, 3)
            write(path, before[1:len])
            for mmap in (false, true)
                @test_throws BSON.BSONError BSON.load(path; mmap = mmap)
            end
        end
    end
end

@testset "members one at a time" begin
    io = IOBuffer()
    shared = [1.0, 2.0]
    bson(io, Dict(:a => shared, :b => Any[shared, shared], :name => "run", :i => 3))
    doc = Document(seekstart(io))
    @test doc[:a] == shared && doc[:b][1] === doc[:b][2] || doc[:b][1] == doc[:b][2]
    @test doc[Vector{Float32}, :a] isa Vector{Float32} && doc[Float64, :i] === 3.0
    @test_throws BSON.BSONError doc[Int, :name]
    @test_throws KeyError doc[:nothing]
    @test sort(collect(keys(doc))) == [:a, :b, :i, :name] && length(doc) == 4 && haskey(doc, :a)
    @test Dict(doc) == BSON.load(seekstart(io)) && Dict(k => v for (k, v) in doc) == Dict(doc)
    io = IOBuffer()
    bson(io, Dict(:x => 1, :y => 2))
    @test Dict(Document(seekstart(io), Float64)) isa Dict{Symbol,Float64}
    mktemp() do path, file
        bson(file, Dict(:w => collect(1:100_000)))
        flush(file)
        open(path) do file
            doc = Document(IOBuffer(Mmap.mmap(file)))
            @test doc[:w] == 1:100_000
        end
    end
    @test BSON.roundtrip([1, "a"], :set_root_type) == [1, "a"] && BSON.roundtrip(["a"], :set_root_type) isa Vector{String}
    @test BSON.roundtrip(["a"], :compat) isa Vector{Any}
end
