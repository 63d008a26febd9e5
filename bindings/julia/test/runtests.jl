# Runs all tests, or only the files that the arguments name: `tools/julia test NAME...`. `names` is for `tools/julia lint`.
using Test

const here = @__DIR__
const suites = vcat(filter(endswith(".jl"), readdir(here)), [joinpath("bson", file) for file in
    (isdir(joinpath(here, "bson")) ? readdir(joinpath(here, "bson")) : String[]) if endswith(file, ".jl")])

@testset "Millstream" begin
    for suite in sort(suites)
        name = replace(suite, r"\.jl$" => "")
        name == "runtests" && continue
        (isempty(ARGS) ? name != "names" : name in ARGS) || continue
        @testset "$name" begin
            # Each file has a separate module, so that no test sees another test's names.
            Base.include(Module(gensym(name)), joinpath(here, suite))
        end
    end
end
