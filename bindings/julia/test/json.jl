# JSON: the shared vectors, as lines and as elements of documents.
using Millstream, Test
using Millstream: Delimiter, JsonLines, Lines, Reader, next_frame, skip_record, skips

const vectors = normpath(joinpath(@__DIR__, "..", "..", "..", "vectors", "json.tsv"))
const letters = Dict('n' => "\n", 'r' => "\r", 't' => "\t", '\\' => "\\")

# Undoes `\n`, `\xHH`, `\[N]` and the like.
const pieces = r"\\x..|\\[\[\]]\d+\]|\\.|[^\\]+"
unescaped(text) = String(reduce(vcat, [bytes_of(found.match) for found in eachmatch(pieces, text)]; init = UInt8[]))
bytes_of(piece) = startswith(piece, "\\x") ? hex2bytes(piece[3:4]) :
    startswith(piece, r"\\[\[\]]") ? fill(UInt8(piece[2]), parse(Int, piece[3:end-1])) :
    Vector{UInt8}(codeunits(startswith(piece, "\\") ? letters[piece[2]] : String(piece)))

Base.include(@__MODULE__, joinpath(@__DIR__, "support", "pieces.jl"))

const cases = [split(line, '\t') for line in eachline(vectors) if !isempty(line) && !startswith(line, '#')]

@testset "vector $name" for (name, framing, input, records, ending) in cases
    bytes = Vector{UInt8}(codeunits(unescaped(input)))
    expected = records == "-" ? String[] : unescaped.(split(records, " / "))
    is_document = startswith(framing, "elements ")
    framer = is_document ? Delimiter(0x1e) : JsonLines(check = framing == "checked")
    options = is_document ? (json_elements = unescaped(framing[10:end]),) : ()
    for source in (bytes, (Pieces(IOBuffer(bytes), most) for most in (1, 2, 7))...)
        found, how = String[], "end"
        reader = Reader(source; decode = :off, capacity = 16, options...)
        try
            while true
                record = next_frame(reader, framer)
                record === nothing && break
                skips(framer, record) || push!(found, record)
            end
        catch error
            how = "$(error.kind) at $(error.offset)"
        end
        @test (found, how) == (expected, ending)
    end
end
@test length(cases) > 120

@testset "options and invalid lines" begin
    reader = Reader(codeunits("1\n{\n[[2]]\n3"); name = "a.jsonl")
    lines = JsonLines(check = true, depth = 1)
    @test string(lines) == "JsonLines(; check = true, depth = 1)"
    @test string(JsonLines()) == "JsonLines()"
    @test next_frame(reader, lines) == "1"
    for (kind, line) in ((:json_invalid, 2), (:too_deep, 3))
        error = try
            next_frame(reader, lines)
        catch error
            error
        end
        @test (error.kind, error.line, error.name) == (kind, line, "a.jsonl")
        @test skip_record(reader, lines)
    end
    @test next_frame(reader, lines) == "3"
    @test !skips(Lines(), "")
    @test_throws ArgumentError JsonLines(depth = 3)
end
