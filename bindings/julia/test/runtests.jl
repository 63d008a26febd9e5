# All tests, or with names as arguments only those files: `tools/julia test NAME...`.
using Test

const here = @__DIR__
const suites = vcat(filter(endswith(".jl"), readdir(here)), [joinpath("bson", file) for file in
    (isdir(joinpath(here, "bson")) ? readdir(joinpath(here, "bson")) : String[]) if endswith(file, ".jl")])

@testset "Millstream" begin
    for suite in sort(suites)
        name = replace(suite, r"\.jl$" => "")
        name == "runtests" && continue
        (isempty(ARGS) || name in ARGS) || continue
        @testset "$name" begin
            # A module for each file, so that no test sees the names of another.
            Base.include(Module(gensym(name)), joinpath(here, suite))
        end
    end
end
