using Millstream, Test
using Millstream: Writer, Reader, CancelToken, UnixSocket, cancel, name
using Sockets: listen, accept

const directory = mktempdir()
const path = joinpath(directory, "out.txt")

written(use; options...) = (writer = Writer(; options...); use(writer); String(take!(writer)))

@testset "what is put" begin
    @test written(w -> put!(w, "Hello, ", 7, '\t', -1.5, ' ', true, [0x61], SubString("xyz", 2, 2), 'é', '→')) == "Hello, 7\t-1.5 trueayé→"
    @test written(w -> put!(w, "")) == ""
    for value in [0; [s * (big(10)^n + d) for n in 0:19 for d in -1:1 for s in (-1, 1)]],
        T in (Int8, Int16, Int32, Int64, UInt8, UInt16, UInt32, UInt64, Int128, BigInt)
        T != BigInt && !(typemin(T) <= value <= typemax(T)) && continue
        @test written(w -> put!(w, T(value))) == string(value)
        @test written(w -> print(w, T(value))) == string(value)
    end
    @test_throws ArgumentError written(w -> put!(w, :symbol))
end

@testset "an IO" begin
    @test written(w -> println(w, 1, ' ', 1e16, ' ', :symbol, [1, 2])) == "1 1.0e16 symbol[1, 2]\n"
    @test written(w -> (write(w, 0x61, "b", UInt8[0x63]), write(w, UInt16(0x6464)))) == "abcdd"
    @test written(w -> write(w, IOBuffer("abc"))) == "abc"
    @test written(w -> show(w, MIME"text/plain"(), [1])) == "1-element Array{Int64,1}:\n 1" || VERSION >= v"1.6"
    writer = Writer()
    @test iswritable(writer) && !isreadable(writer) && isopen(writer)
    write(writer, "abc")
    @test position(writer) == 3
    @test take!(writer) == b"abc"
    @test !isopen(writer)
    @test_throws MillstreamError write(writer, "more")
    @test_throws MillstreamError flush(writer)
    close(writer)
end

@testset "more than a buffer" begin
    lines = ["$i " * "x"^(i % 300) * "\n" for i in 1:20_000]
    for capacity in (1, 100, 2^16)
        @test written(w -> foreach(line -> put!(w, line), lines); capacity = capacity) == join(lines)
        @test written(w -> foreach(i -> put!(w, i, '\n'), 1:20_000); capacity = capacity) == join(string.(1:20_000) .* "\n")
    end
    @test written(w -> (put!(w, "a"), put!(w, "x"^1_000_000), put!(w, "b"))) == "a" * "x"^1_000_000 * "b"
end

@testset "sinks" begin
    Writer(path) do writer
        put!(writer, "one\n")
        flush(writer)
        @test !isfile(path) # it appears whole
        put!(writer, "two\n")
    end
    @test read(path, String) == "one\ntwo\n"
    Writer(writer -> put!(writer, "three\n"), path; existing = :append)
    @test read(path, String) == "one\ntwo\nthree\n"
    @test_throws ErrorException Writer(writer -> (put!(writer, "lost"); error("mine")), path)
    @test read(path, String) == "one\ntwo\nthree\n"
    @test readdir(directory) == ["out.txt"]

    Writer(writer -> put!(writer, "packed\n"), path * ".gz")
    @test read(`gzip -dc $path.gz`, String) == "packed\n"
    @test collect(eachrecord(path * ".gz")) == ["packed"]

    Writer(writer -> put!(writer, "b\na\n"), `sh -c "sort > $path"`)
    @test read(path, String) == "a\nb\n"
    io = IOBuffer()
    Writer(writer -> put!(writer, "into an IO"), io)
    @test String(take!(io)) == "into an IO"
    file = open(path, "w")
    Writer(writer -> put!(writer, "into a file descriptor"), RawFD(fd(file)))
    close(file)
    @test read(path, String) == "into a file descriptor"
    @test_throws ArgumentError Writer(1)
    @test_throws ArgumentError Writer(pipeline(`cat`, `cat`))
end

@testset "connections" begin
    # The peer is in this process, so closing must not wait for it.
    address = joinpath(directory, "socket")
    server = listen(address)
    writer = Writer(UnixSocket(address); linger = 0)
    put!(writer, "all of it")
    close(writer)
    @test read(accept(server), String) == "all of it"
    # A peer that does not confirm the end causes an error.
    writer = Writer(UnixSocket(address); linger = 0.05)
    peer = accept(server)
    error = try close(writer) catch e; e end
    @test error isa MillstreamError && error.kind == :stalled
    close(peer)
    close(writer)
    close(server)
    @test_throws MillstreamError Writer(path; linger = 1)
end

@testset "policies" begin
    io = IOBuffer()
    writer = Writer(io; flush_policy = :line)
    put!(writer, "no line yet")
    @test position(io) == 0
    put!(writer, ", now one\nand")
    @test String(take!(io)) == "no line yet, now one\n"
    close(writer)
    @test String(take!(io)) == "and"
    for options in ((flush_policy = :auto,), (flush_policy = :when_full,), (flush_delay = 0.01,), (encode = :off,), (partial = :keep,),
        (durability = :all,), (stall_timeout = 60,), (name = "it",), (cancel = CancelToken(),))
        Writer(writer -> put!(writer, "x"), path; options...)
        @test read(path, String) == "x"
    end
    packed = written(w -> put!(w, "x"); encode = :zstd, level = 1)
    @test collect(eachrecord(Vector{UInt8}(packed))) == ["x"]
    @test_throws ArgumentError Writer(path; flush_policy = :often)
    @test_throws MillstreamError Writer(path; stall_timeout = 0)
    for (option, values) in (:capacity => (-1, 1.5, "1"), :flush_delay => (-1, NaN, true), :encode => ("gz", :gz, true), :level => (-1, 1.5),
        :existing => (:append!,), :partial => (true,), :durability => ("all",), :stall_timeout => (-1,), :linger => (-1,),
        :cancel => (true,), :name => (1,)), value in values
        error = try Writer(joinpath(directory, "none", "out"); option => value) catch error; error end
        @test error isa ArgumentError && startswith(error.msg, "$option cannot be $(repr(value))")
    end
end

@testset "errors" begin
    error = try Writer(joinpath(directory, "none", "out")) catch error; error end
    @test error isa MillstreamError && error.errno == Libc.ENOENT
    writer = Writer(`sh -c 'cat > /dev/null; exit 3'`)
    put!(writer, "x")
    error = try close(writer) catch error; error end
    @test (error.kind, error.command.status) == (:command_failed, 3)
    struct Full <: IO end
    Base.unsafe_write(::Full, ::Ptr{UInt8}, ::UInt) = throw(DomainError(1, "full"))
    writer = Writer(Full())
    put!(writer, "x")
    @test_throws DomainError flush(writer)
    if ispath("/dev/full")
        writer = Writer("/dev/full")
        put!(writer, "x")
        error = try close(writer) catch error; error end
        @test (error.errno, error.written) == (Libc.ENOSPC, 0)
        file = open("/dev/full", "w")
        error = try Writer(writer -> put!(writer, "x"), RawFD(fd(file))) catch error; error end
        @test error.name == "file descriptor $(fd(file))"
        close(file)
    end
end

@testset "numbers are put without an allocation" begin
    writer = Writer("/dev/null")
    fill(writer, n) = for i in 1:n
        put!(writer, "Hello, ", i, ' ', -i, '\t')
    end
    fill(writer, 1000)
    # There are a few allocations for each buffer that is passed on, and none for a record.
    @test (@allocated fill(writer, 100_000)) < 100_000
    close(writer)
end
