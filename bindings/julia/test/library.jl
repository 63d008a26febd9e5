# Checks the library that is found, and the functions that are called, against the header.
using Millstream, Test

const folder = joinpath(@__DIR__, "..")
const header = read(joinpath(folder, "..", "..", "crates", "capi", "include", "millstream.h"), String)

@test Millstream.library_version() == VersionNumber(match(r"MILLSTREAM_VERSION \"(.*?)\"", header)[1])
@test Millstream.library_version() == VersionNumber(match(r"version = \"(.*?)\"", read(joinpath(folder, "Project.toml"), String))[1])

@testset "the library has the same kinds of errors" begin
    name(code) = ccall(Millstream.functions[:millstream_code_name][], Ptr{UInt8}, (UInt32,), code)
    for (kind, code) in pairs(Millstream.error_kinds)
        @test unsafe_string(name(code)) == String(kind)
    end
    @test name(length(Millstream.error_kinds) + 1) == C_NULL
end

@testset "the names of options are those of every language" begin
    rows = split.(filter(!startswith("#"), readlines(joinpath(folder, "..", "..", "vectors", "options.tsv"))), '\t')
    for (of, set) in (("reader", Millstream.set_reader_options), ("writer", Millstream.set_writer_options),
        ("command", Millstream.set_command_options), ("remote", Millstream.set_remote_options))
        names = [Symbol(row[2]) for row in rows if row[1] == of && !occursin("julia: ", join(row[4:end]))]
        words = Dict(row[2] => Tuple(Symbol.(split(replace(row[3], "*" => ""), '|'))) for row in rows if occursin("|", row[3]))
        @test all(getproperty(Millstream.choices, Symbol(name)) == words[name] for name in keys(words))
        @test Base.kwarg_decl(first(methods(set))) == names
    end
end

@testset "advice names what Julia has" begin
    options = [String(name) for set in (Millstream.set_reader_options, Millstream.set_writer_options, Millstream.set_command_options,
        Millstream.set_remote_options)
        for name in Base.kwarg_decl(first(methods(set)))]
    named = [found[1] for code in Millstream.error_kinds for found in eachmatch(r"`(.*?)`", Millstream.advice(code))]
    @test issubset(["record_limit", "stall_timeout", "ignorestatus(cmd)"], named)
    @test setdiff(named, options) == ["ignorestatus(cmd)", "Millstream.skip_record"] && Millstream.skip_record isa Function
    for ending in last.(Millstream.spellings)
        @test isempty(ending) || ending in ["`$name`" for name in named]
    end
end

@testset "how a command ended has the names of every language" begin
    rows = split.(readlines(joinpath(folder, "..", "..", "vectors", "names.tsv")), '\t')
    names = only(row[2:end] for row in rows if row[1] == "command_end")
    @test issubset(Symbol.(names), fieldnames(Millstream.CommandEnd))
end

@testset "a call has the arguments in the header" begin
    problem(call) = try
        macroexpand(Millstream, call)
        ""
    catch error
        sprint(showerror, error)
    end
    @test problem(:(@c millstream_framer_free(handle))) == ""
    @test occursin("has 1 parameters, but 2 arguments are passed", problem(:(@c millstream_framer_free(handle, more))))
    @test occursin("KeyError: key :millstream_no_such_function", problem(:(@c millstream_no_such_function())))
    # The types are checked too: text is not a number.
    @test_throws MethodError Millstream.@c millstream_code_name("1")
    @test sizeof(Millstream.CBatch) == 72 && sizeof(Millstream.CTrim) == 12
end

# This runs in a separate process, because the library is searched for only once.
function load(library)
    program = "using Millstream; print(eltype(BiBufferedStream(IOBuffer(\"a\")) |> readlines)); Millstream.Writer()"
    errors = IOBuffer()
    run(pipeline(ignorestatus(setenv(`$(Base.julia_cmd()) --startup-file=no -e $program`,
        merge(ENV, Dict("MILLSTREAM_LIB" => library)))), stdout = errors, stderr = errors))
    String(take!(errors))
end

@testset "without a library" begin
    # A library that was requested has to exist, and has to be Millstream.
    told = load("/no/such/library.so")
    @test occursin("MILLSTREAM_LIB names \"/no/such/library.so\"", told)
    @test occursin("cargo build", told)
    # Otherwise, code that does not need the library works, and other code reports what to do.
    told = load("")
    @test startswith(told, "String")
    @test occursin("set the environment variable MILLSTREAM_LIB", told) || !occursin("ERROR", told)
end
