# A reader is an `IO`: its results equal those of Base, for all kinds of sources and buffer sizes.
using Millstream, Test
using Millstream: Reader, Writer, Mapped, Lines, next_line, scan, skip_record, progress

const directory = mktempdir()
file_of(bytes) = (path = joinpath(directory, string(hash(bytes))); isfile(path) || write(path, bytes); path)

const sources = (bytes -> Vector{UInt8}(bytes), bytes -> file_of(bytes), bytes -> Mapped(file_of(bytes)), bytes -> `cat $(file_of(bytes))`,
    bytes -> IOBuffer(bytes), bytes -> Reader(IOBuffer(bytes)))

function same_as_base(read_all, bytes)
    both(io) = (read_all(io), read(io))
    expected = both(IOBuffer(bytes))
    for source in sources, options in ((), (capacity = 4,))
        reader = Reader(source(bytes); decode = :off, options...)
        @test both(reader) == expected
        @test eof(reader) && bytesavailable(reader) == 0 && readavailable(reader) == UInt8[]
        @test position(reader) == length(bytes)
        close(reader)
    end
end

const texts = Vector{UInt8}.(["", "\n", "one", "one\n", "one\ntwo", "one\r\ntwo\r\n", "\n\n", "ü→\nß\0\n→", "x"^100 * "\n" * "y"^300])

@testset "functions of an IO" begin
    for text in texts[[1, 2, 6, 8, 9]]
        same_as_base(readlines, text)
        same_as_base(io -> collect(eachline(io; keep = true)), text)
        same_as_base(io -> (lines = String[]; while !eof(io); push!(lines, readline(io)); end; lines), text)
        same_as_base(read, text)
        same_as_base(io -> read(io, String), text)
        same_as_base(io -> read(io, 3), text)
        same_as_base(io -> (bytes = zeros(UInt8, 8); (readbytes!(io, bytes, 5), bytes)), text)
        same_as_base(io -> (bytes = zeros(UInt8, 2); (readbytes!(io, bytes, 100), bytes)), text)
        same_as_base(countlines, text)
        same_as_base(io -> [read(io, UInt8) for _ in 1:length(text)], text)
        same_as_base(io -> eof(io) ? nothing : Base.peek(io) => position(io), text)
        same_as_base(io -> (skip(io, min(3, length(text))); (readline(io), position(io))), text)
        same_as_base(io -> (out = IOBuffer(); write(out, io); take!(out)), text)
    end
    same_as_base(io -> (readline(io), read(io, Char), read(io, 2), readline(io; keep = true), position(io), read(io)),
        Vector{UInt8}("one\n→two\nthree\nfour"))
    same_as_base(io -> [read(io, UInt32) for _ in 1:2], collect(0x01:0x08))
    for delimiter in (';', '→', ";→", "absent", UInt8(';'), b"b→" |> Vector), keep in (false, true)
        same_as_base(io -> [readuntil(io, delimiter; keep = keep) for _ in 1:6], Vector{UInt8}("a;b→c;;→d;→→;end"))
    end
    @test_throws EOFError read(Reader(b"abc"), UInt32)
    @test_throws EOFError read(Reader(b""), UInt8)
    @test_throws ArgumentError skip(Reader(b"abc"), -1)
    reader = Reader(b"abc")
    @test isopen(reader) && isreadable(reader) && !iswritable(reader)
    # As Base does since Julia 1.11, in memory of the caller.
    for keep in (false, true)
        reader = Reader(IOBuffer("one\n\ntwo"); capacity = 2)
        parts = [String(take!(Millstream.copy_until(IOBuffer(), reader, UInt8('\n'), keep))) for _ in 1:4]
        @test parts == (keep ? ["one\n", "\n", "two", ""] : ["one", "", "two", ""])
    end
end

@testset "bytes into parts of arrays" begin
    for make in (() -> Reader(b"abcdef"), () -> BiBufferedStream(IOBuffer("abcdef")))
        memory = zeros(UInt8, 10)
        @test readbytes!(make(), view(memory, 1:2:10)) == 5
        @test memory == [0x61, 0, 0x62, 0, 0x63, 0, 0x64, 0, 0x65, 0]
        memory = zeros(UInt8, 10)
        @test readbytes!(make(), view(memory, 3:4), 2) == 2
        @test memory == [0, 0, 0x61, 0x62, 0, 0, 0, 0, 0, 0]
        @test read!(make(), zeros(UInt8, 3, 2)) == reshape(b"abcdef", 3, 2)
    end
end

@testset "bytes, records and numbers of one reader" begin
    reader = Reader(b"one\ntwo\n3 4\nrest\nof it")
    @test first(eachrecord(reader)) == "one"
    @test read(reader, Char) == 't'
    @test (position(reader), progress(reader)) == (5, (bytes = 5, records = 1))
    @test bytesavailable(reader) == length("wo\n3 4\nrest\nof it")
    @test next_line(reader) == "wo"
    @test scan(reader, Int) == 3
    @test read(reader, UInt8) == UInt8(' ')
    @test skip_record(reader)
    @test Base.peek(reader, UInt8) == UInt8('r')
    @test collect(eachrecord(reader)) == ["rest", "of it"]
    @test eof(reader) && readline(reader) == ""
end

@testset "what is available arrives before the end" begin
    # The command does not continue before its first bytes have been read.
    go = joinpath(directory, "go")
    reader = Reader(`sh -c "printf 'one\ntw'; while ! test -e $go; do sleep 0.01; done; echo o; exit 3"`)
    bytes = UInt8[]
    while length(bytes) < 6
        append!(bytes, readavailable(reader))
    end
    @test String(bytes) == "one\ntw" && bytesavailable(reader) == 0
    touch(go)
    @test !eof(reader)
    @test readavailable(reader) == b"o\n"
    # The end means that the command succeeded.
    @test (try eof(reader) catch error; error.kind end) == :command_failed
end

@testset "limits and errors" begin
    # The limit of a record is a limit of a line, too.
    reader = Reader(Vector{UInt8}("short\n" * "x"^100 * "\nend\n"); record_limit = 10)
    @test readline(reader) == "short"
    @test (try readline(reader) catch error; error.kind end) == :record_too_long
    @test (try collect(eachline(reader)) catch error; error.kind end) == :record_too_long
    @test skip_record(reader)
    @test readline(reader) == "end"
    # Functions that return any number of bytes are not limited.
    @test length(read(Reader(Vector{UInt8}("x"^100); record_limit = 10, capacity = 10))) == 100
    @test length(read(Reader(IOBuffer("x"^100); record_limit = 10, capacity = 10))) == 100
    # All bytes before an error are delivered.
    reader = Reader(`sh -c 'echo one; printf two; exit 3'`)
    bytes = UInt8[]
    @test (try while !eof(reader); push!(bytes, read(reader, UInt8)); end catch error; error.kind end) == :command_failed
    @test String(bytes) == "one\ntwo"
    reader = Reader(b"abc")
    read(reader, UInt8)
    close(reader)
    for call in (eof, bytesavailable, readline, readavailable, position, io -> read(io, UInt8), io -> read(io, 2), io -> skip(io, 1))
        @test (try call(reader) catch error; error.kind end) == :closed
    end
end

@testset "other packages' functions for an IO" begin
    using DelimitedFiles
    @test readdlm(Reader(b"1 2\n3 4\n")) == [1.0 2.0; 3.0 4.0]
    Writer(writer -> write(writer, Reader(`seq 3`)), joinpath(directory, "copied"))
    @test read(joinpath(directory, "copied"), String) == "1\n2\n3\n"
end
