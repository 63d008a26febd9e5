# CSV: the shared vectors, rows, headers and errors.
using Millstream, Test
using Millstream: Csv, Reader, dicts, namedtuples, next_line, progress, rows

const vectors = normpath(joinpath(@__DIR__, "..", "..", "..", "vectors", "csv.tsv"))
const letters = Dict('n' => "\n", 'r' => "\r", 't' => "\t", '\\' => "\\")

# Undoes `\n`, `\xHH` and the like.
unescaped(text) = String(reduce(vcat, [bytes_of(found.match) for found in eachmatch(r"\\x..|\\.|[^\\]+", text)]; init = UInt8[]))
bytes_of(piece) = startswith(piece, "\\x") ? hex2bytes(piece[3:4]) :
    Vector{UInt8}(codeunits(startswith(piece, "\\") ? letters[piece[2]] : String(piece)))

function framer_of(words)
    options = Dict{Symbol,Any}()
    for word in split(words)
        word == "default" && continue
        name, value = split(word, '=')
        byte() = value == "none" ? nothing : only(hex2bytes(value))
        name == "delimiter" ? (options[:delimiter] = byte()) :
        name == "quote" ? (options[:quotechar] = byte()) :
        name == "escape" ? (options[:escape] = byte()) :
        name == "comment" ? (options[:comment] = byte()) :
        name == "ends" ? (options[:line_end] = Symbol(value)) :
        word == "doubled=off" ? (options[:doubled_quotes] = false) :
        word == "stray=literal" ? (options[:literal_quotes] = true) :
        word == "blank=records" ? (options[:blank_records] = true) :
        word == "mark=content" ? (options[:detect_mark] = false) : error("an unknown option: $word")
    end
    Csv(; options...)
end

Base.include(@__MODULE__, joinpath(@__DIR__, "support", "pieces.jl"))

const cases = [split(line, '\t') for line in eachline(vectors) if !isempty(line) && !startswith(line, '#')]

@testset "vector $name" for (name, words, input, records, ending) in cases
    bytes = Vector{UInt8}(codeunits(unescaped(input)))
    expected = records == "-" ? [] : [unescaped.(split(record, " | ")) for record in split(records, " / ")]
    for source in (bytes, (Pieces(IOBuffer(bytes), most) for most in 1:9)...)
        found, how = Vector{String}[], "end"
        try
            for row in rows(Reader(source; decode = :off, capacity = 16), framer_of(words))
                push!(found, row)
            end
        catch error
            how = "$(error.kind) at $(error.offset)"
        end
        @test (found, how) == (expected, ending)
    end
end
@test length(cases) > 40

const people = codeunits("id,\"the name\"\n1,\"a, b\"\n\n2,\"say \"\"hi\"\"\"\n")

@testset "rows, tuples and dicts" begin
    @test collect(rows(people)) == [["id", "the name"], ["1", "a, b"], ["2", "say \"hi\""]]
    @test collect(namedtuples(people)) == [(id = "1", var"the name" = "a, b"), (id = "2", var"the name" = "say \"hi\"")]
    @test collect(dicts(people)) == [Dict("id" => "1", "the name" => "a, b"), Dict("id" => "2", "the name" => "say \"hi\"")]
    @test eltype(rows(people)) == Vector{String}
    @test collect(namedtuples(codeunits("größe;b\nü;'2'"), Csv(delimiter = ';', quotechar = '\''))) == [(größe = "ü", b = "2")]
    @test collect(dicts(codeunits("a,b,a\n1,2,3\n"))) == [Dict("a" => "3", "b" => "2")]
    @test isempty(collect(dicts(UInt8[]))) && isempty(collect(namedtuples(codeunits("a,b\n"))))
    # More than one batch.
    many = codeunits("id,n\n" * join("$i,\"$i\n\"\"\"\n" for i in 1:50_000))
    @test sum(parse(Int, row.id) for row in namedtuples(IOBuffer(many))) == sum(1:50_000)
    @test string(namedtuples(people, Csv(delimiter = ';'))) == "namedtuples(Reader(\"memory\"), Csv(; delimiter = ';'))"
end

@testset "the header belongs to the reader, and a loop continues after the last record" begin
    reader = Reader(codeunits("id,n\n\n1,a\n# x\n\n2,b\n3,c\n4,d\n5,e\n"))
    framer = Csv(comment = '#')
    @test first(namedtuples(reader, framer)) == (id = "1", n = "a")
    @test progress(reader) == (bytes = 10, records = 3)
    @test next_line(reader) == "# x"
    @test first(rows(reader, framer)) == ["2", "b"]
    @test first(dicts(reader, framer)) == Dict("id" => "3", "n" => "c")
    @test first(eachrecord(reader, framer)) == "4,d"
    @test collect(namedtuples(reader, framer)) == [(id = "5", n = "e")]
    @test progress(reader).records == 9
end

@testset "errors" begin
    failure(call) = try call() catch error; error end
    reader = Reader(codeunits("a,b\n\n1,2\n3\n4,5\n"); name = "t.csv")
    found = NamedTuple[]
    error = failure(() -> foreach(row -> push!(found, row), namedtuples(reader)))
    @test found == [(a = "1", b = "2")]
    @test (error.kind, error.name, error.record, error.offset, error.line) == (:field_count_mismatch, "t.csv", 3, 9, 4)
    @test (error.found, error.expected) == ("1 field", "2, as in the header")
    @test startswith(error.message, "t.csv: field count mismatch: found 1 field, expected 2, as in the header, at line 4, column 1; ")
    @test collect(namedtuples(reader)) == [(a = "4", b = "5")]
    # Missing fields are empty if ragged records are padded, but no data is dropped.
    ragged = Reader(codeunits("a,b\n1\n2,3,4\n5\n6\n7\n8\n"))
    @test first(namedtuples(ragged; ragged = :pad)) == (a = "1", b = "")
    @test failure(() -> first(dicts(ragged; ragged = :pad))).found == "3 fields"
    @test first(dicts(ragged; ragged = :pad)) == Dict("a" => "5", "b" => "")
    @test first(rows(ragged; ragged = :pad)) == ["6", ""]
    # The header belongs to the reader.
    @test failure(() -> first(rows(ragged))).kind == :field_count_mismatch
    @test collect(rows(codeunits("a,b\n1\n"); ragged = :pad)) == [["a", "b"], ["1"]]
    @test failure(() -> rows(codeunits(""); ragged = :skip)) isa ArgumentError
    # Additional fields are kept if ragged records are collected.
    longer = Reader(codeunits("a,b\n1,2\n3\n4,5,6\n"))
    @test first(namedtuples(longer)) == (a = "1", b = "2")
    @test collect(rows(longer; ragged = :collect)) == [["3", ""], ["4", "5", "6"]]
    @test occursin("ragged = :collect needs rows()", failure(() -> dicts(longer; ragged = :collect)).msg)
    @test failure(() -> collect(rows(`sh -c 'echo a,b; exit 3'`))).kind == :command_failed
    @test failure(() -> collect(rows(people, Millstream.Lines()))).kind == :argument_invalid
    @test failure(() -> Csv(delimiter = '"')).found == "the byte '\\\"' as the delimiter and as the quote"
    for options in ((delimiter = nothing,), (escape = "\\",), (comment = 'é',), (line_end = :lfcr,), (doubled_quotes = 1,), (quotes = 'x',))
        @test failure(() -> Csv(; options...)) isa ArgumentError
    end
end
