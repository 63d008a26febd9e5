# The library that is found, and the functions that are called, against the header.
using Millstream, Test

const folder = joinpath(@__DIR__, "..")
const header = read(joinpath(folder, "..", "..", "crates", "capi", "include", "millstream.h"), String)

@test Millstream.library_version() == VersionNumber(match(r"MILLSTREAM_VERSION \"(.*?)\"", header)[1])
@test Millstream.library_version() == VersionNumber(match(r"version = \"(.*?)\"", read(joinpath(folder, "Project.toml"), String))[1])

# How many parameters a function has, by the header.
function parameters(name)
    found = match(Regex("^[a-z][\\w *]*\\b$name\\(([^;]*?)\\);", "ms"), header)
    found === nothing ? -1 : found[1] == "void" ? 0 : count(isequal(','), found[1]) + 1
end

# How many arguments the calls in a source have: one more than there are commas outside of brackets.
function calls(source)
    found = Tuple{String,Int}[]
    for start in eachmatch(r"@(c|call) (millstream_\w+)\(", source)
        at, depth, commas, some = start.offset + ncodeunits(start.match), 1, 0, false
        while depth > 0
            c = source[at]
            depth += c in "([{" ? 1 : c in ")]}" ? -1 : 0
            commas += depth == 1 && c == ','
            some |= depth > 0 && !isspace(c)
            at = nextind(source, at)
        end
        push!(found, (start[2], commas + some + (start[1] == "call")))
    end
    found
end

@testset "each call has the arguments that the header says" begin
    sources = [read(joinpath(folder, "src", file), String) for file in readdir(joinpath(folder, "src")) if endswith(file, ".jl")]
    all_calls = vcat(map(calls, sources)...)
    @test length(all_calls) > 60
    for (name, arguments) in all_calls
        name == "millstream_name" && continue # the form of a call, in a comment
        @test (name => arguments) == (name => parameters(name))
    end
end

# In a process of its own, since a library is looked for once.
function load(library)
    program = "using Millstream; print(eltype(BiBufferedStream(IOBuffer(\"a\")) |> readlines)); Millstream.Writer()"
    errors = IOBuffer()
    run(pipeline(ignorestatus(setenv(`$(Base.julia_cmd()) --startup-file=no -e $program`,
        merge(ENV, Dict("MILLSTREAM_LIB" => library)))), stdout = errors, stderr = errors))
    String(take!(errors))
end

@testset "without a library" begin
    # One that was asked for has to be there, and has to be Millstream.
    told = load("/no/such/library.so")
    @test occursin("MILLSTREAM_LIB names \"/no/such/library.so\"", told)
    @test occursin("cargo build", told)
    # Otherwise what needs none works; what needs one says what to do.
    told = load("")
    @test startswith(told, "String")
    @test occursin("set the environment variable MILLSTREAM_LIB", told) || !occursin("ERROR", told)
end
