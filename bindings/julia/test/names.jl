# What the package adds to Julia: no ambiguous methods, and no public name without documentation.
using Millstream, Test
using Millstream: BSON

@testset "no method is ambiguous" begin
    is_ours(method) = parentmodule(method.module) === Millstream || method.module === Millstream
    found = Test.detect_ambiguities(Millstream, BSON, Base, Core)
    @test filter(pair -> any(is_ours, pair), found) == []
    @test Test.detect_unbound_args(Millstream; recursive = true) == []
end

@testset "public names of $of" for of in (Millstream, BSON)
    exported = filter(!=(nameof(of)), names(of))
    public = [exported; of.public_names...]
    @test allunique(of.public_names) && isempty(intersect(exported, of.public_names))
    has_text(name) = haskey(Base.Docs.meta(of), Base.Docs.Binding(of, name)) || getfield(of, name) isa Module
    @test [name for name in public if !isdefined(of, name)] == []
    @test [name for name in public if isdefined(of, name) && !has_text(name)] == []
end

@testset "the guides use public names" begin
    folder = joinpath(@__DIR__, "..")
    for file in ("README.md", joinpath("docs", "bson.md"), joinpath("..", "..", "docs", "julia.md"))
        path = joinpath(folder, file)
        isfile(path) || continue
        text = read(path, String)
        for found in eachmatch(r"^using Millstream: (.*)$"m, text), name in split(found[1], ", ")
            @test Symbol(name) in Millstream.public_names
        end
        for found in eachmatch(r"(?<!`)\bMillstream\.(\w+[!]?)", text)
            name = Symbol(found[1])
            @test name in Millstream.public_names || name in names(Millstream) || name in (:jl,)
        end
    end
end

@testset "every dependency is part of Julia" begin
    project = read(joinpath(@__DIR__, "..", "Project.toml"), String)
    dependencies = [found[1] for found in eachmatch(r"^(\w+) = \"[0-9a-f-]{36}\""m, project) if found[1] != "uuid"]
    @test length(dependencies) > 1 && issubset(dependencies, readdir(Sys.STDLIB))
end
