# Runs every case with every source: a command that the library starts, one that Julia has started, one that Julia has
# started to read, a file, and memory. The windows split every record.
using Millstream, Test

const supplies = [
    (bytes, size) -> BiBufferedStream(`cat $(file_of(bytes))`, size),
    (bytes, size) -> BiBufferedStream(open(`cat $(file_of(bytes))`), size),
    (bytes, size) -> BiBufferedStream(open(pipeline(`cat $(file_of(bytes))`, `cat`)), size),
    (bytes, size) -> BiBufferedStream(begun(open(`cat $(file_of(bytes))`)), size),
    (bytes, size) -> BiBufferedStream(open(file_of(bytes)), size),
    (bytes, size) -> BiBufferedStream(IOBuffer(bytes), size),
    (bytes, size) -> BiBufferedStream(BiBufferedStream(IOBuffer(bytes), size + 1), size),
]

const directory = mktempdir()
file_of(bytes) = (path = joinpath(directory, string(hash(bytes))); isfile(path) || write(path, bytes); path)

# A command whose output Julia has buffered already.
begun(process) = (eof(process); process)

# Checks that the results equal those of Base, for all sources and buffer sizes.
function same_as_base(read_all, bytes)
    both(io) = (read_all(io), read(io))
    expected = both(IOBuffer(bytes))
    for supply in supplies, size in (1, 7, 2^24)
        stream = supply(bytes, size)
        @test both(stream) == expected
        @test eof(stream)
        close(stream)
        @test !isopen(stream)
    end
end

const texts = Vector{UInt8}.(["", "\n", "one", "one\n", "one\ntwo", "one\r\ntwo\r\n", "a\r\r\n\r\nlast\r", "\n\n", "ü→\nß\0\n→",
    "x"^100 * "\n" * "y"^300, "\xff\xfe\n\x80"])

@testset "lines are the same as in Base" begin
    for text in texts
        same_as_base(io -> readlines(io), text)
        same_as_base(io -> readlines(io; keep = true), text)
        same_as_base(io -> collect(eachline(io)), text)
    end
end

@testset "other functions of an IO" begin
    for text in texts[[1, 2, 6, 9, 11]]
        same_as_base(read, text)
        same_as_base(io -> read(io, String), text)
        same_as_base(io -> read(io, 3), text)
        same_as_base(io -> (bytes = UInt8[]; readbytes!(io, bytes, 5); bytes), text)
        same_as_base(io -> (bytes = zeros(UInt8, 8); (readbytes!(io, bytes, 5), bytes)), text)
        same_as_base(io -> (bytes = zeros(UInt8, 2); (readbytes!(io, bytes, 100), bytes)), text)
        same_as_base(countlines, text)
        same_as_base(io -> [read(io, UInt8) for _ in 1:length(text)], text)
        same_as_base(io -> eof(io) ? nothing : Base.peek(io) => position(io), text)
        same_as_base(io -> (skip(io, min(3, length(text))); readline(io)), text)
        same_as_base(io -> (write(IOBuffer(), io); position(io)), text)
    end
    same_as_base(io -> (readline(io), read(io, Char), read(io, 2), readline(io; keep = true), position(io), read(io)),
        Vector{UInt8}("one\n→two\nthree\nfour"))
    same_as_base(io -> [read(io, UInt32) for _ in 1:2], collect(0x01:0x08))
    @test_throws EOFError read(BiBufferedStream(IOBuffer("abc")), UInt32)
    @test_throws EOFError read(BiBufferedStream(IOBuffer("")), UInt8)
end

@testset "up to a delimiter" begin
    text = Vector{UInt8}("a;b→c;;→d;→→;end")
    for delimiter in (';', '→', ";→", "→→;", "absent", "b"), keep in (false, true)
        same_as_base(io -> (parts = String[]; while !eof(io); push!(parts, readuntil(io, delimiter; keep = keep)); end; parts), text)
    end
    # For a byte, Base returns bytes; the original, and so this type, returns a string.
    for supply in supplies, size in (1, 2, 2^24)
        stream = supply(text, size)
        @test readuntil(stream, UInt8(';')) === "a"
        @test readuntil(stream, UInt8(';'); keep = true) === "b→c;"
        @test readuntil(stream, 0x00) === ";→d;→→;end"
        @test readuntil(stream, 0x00) === ""
        close(stream)
    end
end

@testset "a line may be longer than any buffer" begin
    long = "x"^3_000_000
    for size in (2^10, 2^24)
        stream = BiBufferedStream(`sh -c 'yes x | tr -d "\n" | head -c 3000000; echo; echo next'`, size)
        @test readline(stream) == long
        @test readline(stream) == "next"
        @test eof(stream)
        close(stream)
    end
end

@testset "a line is available when it is written" begin
    for make in (BiBufferedStream, command -> BiBufferedStream(open(command)), command -> BiBufferedStream(begun(open(command))))
        go = joinpath(directory, "go")
        rm(go; force = true)
        stream = make(`sh -c "echo first; while ! test -e $go; do sleep 0.01; done; echo second"`)
        # The command does not continue before this line has arrived.
        @test readline(stream) == "first"
        touch(go)
        @test readline(stream) == "second"
        @test eof(stream)
        close(stream)
    end
end

# All lines, and the exception at the end.
function lines_and_failure(stream)
    lines = String[]
    try
        while !eof(stream)
            push!(lines, readline(stream))
        end
    catch failure
        return lines, failure
    end
    lines, nothing
end

@testset "a failing command is not an end" begin
    for make in (BiBufferedStream, command -> BiBufferedStream(open(command)), command -> BiBufferedStream(begun(open(command))))
        stream = make(`sh -c 'echo one; printf two; exit 3'`)
        lines, failure = lines_and_failure(stream)
        @test lines == ["one", "two"]
        @test failure isa ProcessFailedException
        @test failure.procs[1].exitcode == 3
        # The error is reported once.
        @test eof(stream)
        @test readline(stream) == ""
        close(stream)

        stream = make(`sh -c 'echo one; kill -9 $$'`)
        lines, failure = lines_and_failure(stream)
        @test lines == ["one"]
        @test failure.procs[1].termsignal == 9
        close(stream)

        @test lines_and_failure(make(ignorestatus(`sh -c 'echo one; exit 3'`))) == (["one"], nothing)
        @test lines_and_failure(make(pipeline(`sh -c 'echo one; exit 4'`, `cat`)))[2].procs[1].exitcode == 4
        @test_throws ProcessFailedException readlines(make(`false`))
        @test_throws ProcessFailedException read(make(`false`))
        @test_throws ProcessFailedException readline(make(`false`))
        @test_throws ProcessFailedException read(make(`false`), UInt8)
    end
    @test_throws Base.IOError BiBufferedStream(`there-is-no-such-program`)
end

@testset "a Cmd works as in Julia" begin
    lines(command) = readlines(BiBufferedStream(command))
    @test lines(setenv(`sh -c 'echo $A; pwd'`, "A" => "b"; dir = "/")) == ["b", "/"]
    @test lines(pipeline(`printf 'b\na\n'`, `sort`)) == ["a", "b"]
    @test sort(lines(`echo a` & `echo b`)) == ["a", "b"]
    path = file_of(Vector{UInt8}("from a file\n"))
    @test lines(pipeline(`cat`, stdin = path)) == ["from a file"]
    @test lines(pipeline(`sh -c 'echo err >&2; echo out'`, stderr = devnull)) == ["out"]
    # By default, the standard input of a command is empty.
    @test lines(`cat`) == []
    both = open(`cat`, "r+")
    stream = BiBufferedStream(both)
    println(both, "hello")
    @test readline(stream) == "hello"
    println(both, "again")
    close(both.in)
    @test readline(stream) == "again"
    @test eof(stream)
    close(stream)
end

@testset "closing early" begin
    stream = BiBufferedStream(`yes`)
    @test readline(stream) == "y"
    process = stream.io
    close(stream)
    close(stream)
    @test process_exited(process)
    # No more data is returned.
    @test eof(stream)
    @test readline(stream) == ""
    @test bytesavailable(stream) == 0
    @test_throws EOFError read(stream, UInt8)
    # A command that does not write is stopped by a signal.
    stream = BiBufferedStream(`sleep 1000`)
    process = stream.io
    close(stream)
    @test process.termsignal == Base.SIGTERM
    # A command that had already failed causes an error.
    stream = BiBufferedStream(`sh -c 'echo one; exit 3'`)
    readline(stream)
    wait(stream.io)
    @test_throws ProcessFailedException close(stream)
    @test !isopen(stream)
    # Commands that are no longer referenced are stopped as well.
    process = (stream -> stream.io)(BiBufferedStream(`yes`))
    GC.gc()
    @test BiBufferedStream(IOBuffer("a\n")) |> readline == "a"
    close(process)
end

@testset "what cannot be" begin
    @test_throws ArgumentError BiBufferedStream(IOBuffer("a"), 0)
    @test_throws ArgumentError skip(BiBufferedStream(IOBuffer("a")), -1)
    @test !iswritable(BiBufferedStream(IOBuffer("a")))
    @test occursin("BiBufferedStream(", sprint(show, BiBufferedStream(IOBuffer("a"))))
end

@testset "an error of the IO is rethrown" begin
    path = joinpath(directory, "no file")
    @test_throws SystemError BiBufferedStream(open(path))
    struct Broken <: IO end
    Base.eof(::Broken) = error("broken")
    @test_throws ErrorException("broken") readline(BiBufferedStream(Broken()))
end
