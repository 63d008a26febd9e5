using Millstream, Test
using Millstream: Reader, Shell, Mapped, UnixSocket, Tcp, Lines, Fixed, Delimiter, CancelToken, cancel, next_line, next_frame, skip_record,
    scan, rest_of_line, name
using Sockets

const directory = mktempdir()
const path = joinpath(directory, "lines.txt")
write(path, join(["line $i\n" for i in 1:100_000]))
const expected = ["line $i" for i in 1:100_000]

@testset "sources" begin
    bytes = read(path)
    run(`gzip -k $path`)
    for source in (path, path * ".gz", Mapped(path), `cat $path`, pipeline(`cat $path`, `cat`), Shell("cat '$path' | cat"), bytes,
        view(bytes, :), codeunits(String(copy(bytes))), IOBuffer(bytes), open(path), open(`cat $path`), `cat $path.gz`)
        @test collect(eachrecord(source)) == expected
    end
    file = open(path)
    @test collect(eachrecord(RawFD(fd(file)))) == expected
    @test isopen(file)
    @test count(Reader(path)) == 100_000
    @test count(Reader(path), Fixed(1)) == length(bytes)
    @test_throws ArgumentError Reader(1)
end

@testset "sockets" begin
    address = joinpath(directory, "socket")
    server = listen(address)
    task = @async (connection = accept(server); write(connection, "one\ntwo\n"); close(connection))
    @test collect(eachrecord(UnixSocket(address))) == ["one", "two"]
    wait(task)
    close(server)
    port, server = listenany(ip"127.0.0.1", 20_000)
    task = @async (connection = accept(server); write(connection, "one\ntwo"); close(connection))
    @test collect(eachrecord(Tcp("127.0.0.1:$port"))) == ["one", "two"]
    wait(task)
    close(server)
end

@testset "options" begin
    for options in ((read_ahead = :on,), (read_ahead = :off,), (capacity = 100,), (latency = :low,), (decode = :off,), (record_limit = 100,),
        (stall_timeout = 60,), (follow = :no,), (decode_limit = (10^9, 0),), (name = "it",))
        @test collect(eachrecord(`cat $path`; options...)) == expected
        @test collect(eachrecord(path; options...)) == expected
    end
    @test name(Reader(path; name = "it")) == "it"
    @test_throws ArgumentError Reader(path; read_ahead = :always)
    @test_throws MethodError Reader(path; colour = :blue)
    @test_throws MillstreamError Reader(path; capacity = 0)
end

@testset "one record at a time" begin
    reader = Reader(path)
    @test next_line(reader) == "line 1"
    @test next_frame(reader, Delimiter("ne ")) == "li"
    @test scan(reader, Int64) == 2
    @test position(reader) == (bytes = 13, records = 2)
    @test rest_of_line(reader) == ""
    @test scan(reader, String) == "line"
    @test rest_of_line(reader) == "3"
    @test skip_record(reader)
    @test first(eachrecord(reader)) == "line 5"
    close(reader)
    close(reader)
    @test_throws MillstreamError next_line(reader)
    @test next_line(Reader(UInt8[])) === nothing
    @test scan(Reader(`printf 'one two'`), String) == "one"
    @test [scan(Reader(`printf '3.5 4'`), T) for T in (Float64, Float32)] == [3.5, 3.5f0]
end

@testset "batches" begin
    found = String[]
    for batch in batches(path; most = 1000)
        @test 1 <= length(batch) <= 1000
        @test batch.first_record == length(found)
        append!(found, batch)
        @test_throws BoundsError batch[length(batch)+1]
        @test_throws BoundsError record(batch, 0)
    end
    @test found == expected
    # A batch that is kept is other bytes later, and never memory that is gone.
    kept = first(batches(path))
    GC.gc()
    @test length(collect(kept)) == length(kept)
end

@testset "errors" begin
    error = try
        Reader(joinpath(directory, "none"))
    catch error
        error
    end
    @test error isa MillstreamError
    @test (error.kind, error.code, error.errno) == (:open_failed, 2, Libc.ENOENT)
    @test occursin("none", error.name)
    @test occursin("none", sprint(showerror, error))

    lines = String[]
    error = try
        foreach(line -> push!(lines, line), eachrecord(`sh -c 'echo one; printf two; echo oops >&2; exit 3'`))
    catch error
        error
    end
    @test lines == ["one", "two"]
    @test (error.kind, error.code, error.offset) == (:command_failed, 4, 7)
    @test (error.command.exitcode, error.command.signal, error.command.stderr_tail) == (3, 0, "oops\n")
    @test error.command.command[1:2] == ["sh", "-c"]
    @test (try collect(eachrecord(`sh -c 'kill -9 $$'`)) catch error; error end).command.signal == 9
    @test collect(eachrecord(ignorestatus(`sh -c 'echo one; exit 3'`))) == ["one"]
    @test (try collect(eachrecord(pipeline(`false`, `cat`))) catch error; error.command.command end) == ["false"]

    reader = Reader(Vector{UInt8}("short\n" * "x"^100 * "\nend\n"); record_limit = 10)
    @test next_line(reader) == "short"
    error = try next_line(reader) catch error; error end
    @test (error.kind, error.record, error.offset) == (:record_too_long, 1, 6)
    @test skip_record(reader)
    @test next_line(reader) == "end"
    reader = Reader(`printf 'short\nxxxxxxxxxxxxxxxxxxxxxxx\nend\n'`; record_limit = 10)
    @test next_line(reader) == "short"
    @test (try next_line(reader) catch error; error.kind end) == :record_too_long
    @test skip_record(reader)
    @test next_line(reader) == "end"

    reader = Reader(Vector{UInt8}("1 x 99999999999"))
    @test scan(reader, Int32) == 1
    error = try scan(reader, Int32) catch error; error end
    @test (error.kind, error.found !== nothing, error.offset) == (:number_invalid, true, 2)
    @test scan(reader, String) == "x"
    @test (try scan(reader, Int32) catch error; error.kind end) == :number_overflow
end

@testset "commands" begin
    @test collect(eachrecord(setenv(`sh -c 'echo $A; pwd'`, "A" => "b"; dir = "/"))) == ["b", "/"]
    @test collect(eachrecord(`printf '%s|' '' 'a b' '$HOME'`)) == ["|a b|\$HOME|"]
    @test collect(eachrecord(`cat`)) == []
    @test_throws ArgumentError Reader(`echo a` & `echo b`)
    @test_throws ArgumentError Reader(pipeline(`echo a`, stderr = devnull))
    @test_throws ArgumentError Reader(detach(`echo a`))
    @test_throws ArgumentError Reader(``)
    @test_throws ArgumentError Reader(`echo $("a\0b")`)
    @test (try Reader(`there-is-no-such-program`) catch error; error.kind end) == :command_not_started
end

@testset "an IO of Julia's" begin
    mutable struct Failing <: IO
        left::Int
    end
    Base.eof(io::Failing) = io.left == 0 ? error("it broke") : false
    Base.bytesavailable(::Failing) = 1
    Base.unsafe_read(io::Failing, to::Ptr{UInt8}, ::UInt) = (io.left -= 1; unsafe_store!(to, UInt8('\n')))
    lines = String[]
    @test_throws ErrorException("it broke") foreach(line -> push!(lines, line), eachrecord(Failing(3)))
    @test lines == ["", "", ""]
end

@testset "closing early" begin
    for source in (`yes`, `sleep 1000`, pipeline(`yes`, `cat`), path)
        reader = Reader(source)
        source isa Cmd && source.exec == ["sleep", "1000"] || next_line(reader)
        close(reader)
        @test !isopen(reader)
    end
    @test Reader(next_line, path) == "line 1"
    @test_throws ErrorException Reader(reader -> error("mine"), path)
    failed = Reader(`false`)
    sleep(0.2)
    @test_throws MillstreamError close(failed)
end

@testset "a token ends a wait" begin
    token = CancelToken()
    cancel(token)
    reader = Reader(`cat $path`; cancel = token)
    error = try next_line(reader) catch error; error end
    @test error.kind == :cancelled
    reset(token)
    @test collect(eachrecord(reader)) == expected
end
