# How values are shown in a prompt (`text/plain`) and within other values.
using Millstream, Test
using Millstream: BSON, Reader, Writer, Lines, Delimiter, AnyOf, Fixed, LengthPrefixed, Documents, CancelToken, cancel, next_line

plain(value) = sprint(show, MIME"text/plain"(), value)

@testset "readers and writers" begin
    reader = Reader(b"one\ntwo\n"; name = "a\nb")
    @test next_line(reader) == "one"
    @test repr(reader) == "Reader(\"a\\nb\")"
    @test plain(reader) == "Reader(\"a\\nb\"): 4 bytes and 1 record read"
    read(reader, UInt8)
    @test plain(reader) == "Reader(\"a\\nb\"): 5 bytes and 1 record read"
    # Showing changes nothing.
    @test read(reader, String) == "wo\n"
    close(reader)
    @test repr(reader) == plain(reader) == "Reader(closed)"
    writer = Writer(; name = "it")
    put!(writer, "abc")
    @test (repr(writer), plain(writer)) == ("Writer(\"it\")", "Writer(\"it\"): 3 bytes accepted")
    @test take!(writer) == b"abc"
    @test repr(writer) == plain(writer) == "Writer(closed)"
    # A command that writes nothing is not waited for.
    reader = Reader(`sleep 1000`)
    @test occursin("0 bytes and 0 records read", plain(reader))
    close(reader)
    stream = BiBufferedStream(IOBuffer("abc"))
    @test occursin("0 bytes waiting", plain(stream))
    close(stream)
    @test endswith(repr(stream), ", closed)")
end

@testset "records" begin
    reader(name = "it") = Reader(b"one\n\xfftwo\n"; name = name)
    batch = first(batches(reader()))
    @test plain(batch) == "2-element Millstream.Batch:\n \"one\"\n \"\\xfftwo\""
    @test repr(batch) == "[\"one\", \"\\xfftwo\"]"
    @test repr(batches(reader())) == "batches(Reader(\"it\"), Lines())"
    @test plain(eachrecord(reader(), Delimiter(';'))) == "eachrecord(Reader(\"it\"), Delimiter(';'))"
    @test repr(Millstream.parallel(length, eachrecord(reader()))) == "parallel(length, eachrecord(Reader(\"it\"), Lines()))"
    @test repr(BSON.documents(reader())) == "documents(Reader(\"it\"))"
    # The text of a framer creates it again.
    for framer in (Lines(), Lines(keep = true), Delimiter("::"), Delimiter(0x00, keep = true), AnyOf(b" \t"), Fixed(8), LengthPrefixed(UInt16), Documents())
        @test repr(Core.eval(Millstream, Meta.parse(repr(framer)))) == repr(framer)
    end
    token = CancelToken()
    @test repr(token) == "CancelToken()"
    cancel(token)
    @test repr(token) == "CancelToken(cancelled)"
end

@testset "errors" begin
    error = try collect(eachrecord(`sh -c 'echo one; exit 3'`)) catch error; error end
    @test repr(error) == "MillstreamError(:command_failed, $(repr(error.message)))"
    lines = split(plain(error), '\n')
    @test lines[1] == sprint(showerror, error) == "MillstreamError: " * error.message
    @test "  kind: :command_failed" in lines && "  offset: 4" in lines
    @test any(startswith("  command: "), lines) && !any(startswith("  errno"), lines)
end

@testset "documents" begin
    document = BSON.Map("a" => 1, "b" => "text")
    @test occursin("with 2 entries:\n  \"a\" => 1\n  \"b\" => \"text\"", plain(document))
    @test occursin("\"a\"=>1", replace(repr(document), " " => ""))
    io = IOBuffer()
    BSON.bson(io, Dict(:weights => zeros(1000)))
    document = BSON.Document(seekstart(io))
    @test repr(document) == "Document(:weights)"
    @test plain(document) == "Document{Any} with 1 member: :weights"
end
