using Millstream, Test
using Millstream: Reader, Shell, Mapped, UnixSocket, Tcp, Lines, Fixed, Delimiter, CancelToken, cancel, next_line, next_frame, skip_record,
    scan, rest_of_line, name, progress
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
        (stall_timeout = 60,), (follow = :no,), (decode_limit = 10^9,), (decode_ratio = 10^6,), (read_ahead_capacity = (2^20, 2^21),), (decode_memory = 2^20,), (name = "it",))
        @test collect(eachrecord(`cat $path`; options...)) == expected
        @test collect(eachrecord(path; options...)) == expected
    end
    @test name(Reader(path; name = "it")) == "it"
    @test_throws ArgumentError Reader(path; read_ahead = :always)
    @test_throws MillstreamError Reader(path; capacity = 0)
    @test_throws MillstreamError Reader(path; stall_timeout = 0)
    # Invalid values are rejected before anything is opened.
    for (option, values) in (:capacity => (-1, 1.5, "1", true), :record_limit => (-1, :all), :decode => (true, "auto"),
        :decode_limit => (-1, (1, 2)), :read_ahead_capacity => (1, (1,), (1, 2, 3)), :stall_timeout => (-1, NaN, Inf, "1", true), :cancel => (true, 1),
        :name => (1, :name), :follow => (true,), :latency => (:high,)), value in values
        error = try Reader(joinpath(directory, "none"); option => value) catch error; error end
        @test error isa ArgumentError && startswith(error.msg, "$option cannot be $(repr(value))")
    end
end

@testset "unknown options" begin
    closed = Reader(path)
    for (caller, call, nearest) in ((:Reader, () -> Reader(path; recordlimit = 1), "record_limit, "), (:Reader, () -> Reader(next_line, path; recordlimit = 1), "record_limit, "),
        (:batches, () -> batches(path; recordlimit = 1), "record_limit, "), (:eachrecord, () -> eachrecord(`true`; recordlimit = 1), "record_limit, "),
        (:batches, () -> batches(closed; recordlimit = 1), "most"), (:eachrecord, () -> eachrecord(closed; recordlimit = 1), "most"),
        (:columns, () -> Millstream.columns(path, (a = Int,); recordlimit = 1), "record_limit, "),
        (:columns, () -> Millstream.columns(closed, (a = Int,); recordlimit = 1), "separator, most"),
        (:columns!, () -> Millstream.columns!((a = Int[],), closed; recordlimit = 1), "separator, most"),
        (:documents, () -> Millstream.BSON.documents(path; recordlimit = 1), "record_limit, "),
        (:parallel, () -> Millstream.parallel(identity, eachrecord(path); recordlimit = 1), "ordered or ntasks"),
        (:map_async, () -> Millstream.map_async(identity, eachrecord(path); recordlimit = 1), "ordered or ntasks"),
        (:Command, () -> Millstream.Command(`true`; recordlimit = 1), "stderr_limit, "),
        (:Writer, () -> Millstream.Writer(joinpath(directory, "none"); recordlimit = 1), ""))
        error = try call() catch error; error end
        @test error isa ArgumentError && startswith(error.msg, "unknown option recordlimit of $caller: expected one such as $nearest")
    end
    @test !ispath(joinpath(directory, "none"))
    @test (try Reader(path; colour = :blue, name = "it") catch error; error.msg end) ==
        "unknown option colour of Reader: expected one such as follow, decode or cancel"
end

@testset "one record at a time" begin
    reader = Reader(path)
    @test next_line(reader) == "line 1"
    @test next_frame(reader, Delimiter("ne ")) == "li"
    @test scan(reader, Int64) == 2
    @test progress(reader) == (bytes = 13, records = 2)
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
    # A batch that is used too late contains other bytes, but never refers to freed memory.
    kept = first(batches(path))
    GC.gc()
    @test length(collect(kept)) == length(kept)
end

@testset "a loop that ends early" begin
    # The reader continues after the last record that the loop received.
    reader() = Reader(b"header\na\nb\n3 4\nlast")
    r = reader()
    @test first(eachrecord(r)) == "header"
    @test progress(r) == (bytes = 7, records = 1)
    @test next_line(r) == "a"
    @test collect(eachrecord(r)) == ["b", "3 4", "last"]
    @test next_line(r) === nothing

    r = reader()
    for line in eachrecord(r)
        line == "b" && break
    end
    @test (scan(r, Int64), scan(r, Int64), rest_of_line(r)) == (3, 4, "")
    @test progress(r) == (bytes = 15, records = 4)

    r = reader()
    @test_throws ErrorException("mine") foreach(line -> line == "a" && error("mine"), eachrecord(r))
    @test skip_record(r)
    @test count(r) == 2

    r = reader()
    @test collect(Iterators.take(eachrecord(r), 2)) == ["header", "a"]
    @test first(batches(r)) == ["b", "3 4"]
    @test next_line(r) == "last"

    # Calls within a loop and loops within a loop share one reader.
    r = Reader(path)
    found = String[]
    for line in eachrecord(r)
        push!(found, line)
        length(found) % 3 == 0 && push!(found, something(next_line(r), "the end"))
        length(found) % 7 == 0 && append!(found, Iterators.take(eachrecord(r), 2))
    end
    @test found == expected || found == [expected; "the end"]

    # A loop that is started again.
    r = reader()
    records = eachrecord(r)
    @test first(records) == "header"
    @test first(records) == "a"
    @test collect(records) == ["b", "3 4", "last"]

    # Loops over a command's output that end after one record.
    r = Reader(`seq 3000`)
    @test [first(eachrecord(r)) for i in 1:3000] == string.(1:3000)
    @test isempty(eachrecord(r))

    # A batch is consumed as a whole.
    r = reader()
    for batch in batches(r; most = 2)
        batch[1] == "header" && break
    end
    @test next_line(r) == "b"
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
    # The unterminated line is not a record, and the error shows it.
    @test lines == ["one"]
    @test occursin("two", error.message)
    @test (error.kind, error.code, error.offset) == (:command_failed, 4, 7)
    @test (error.command.status, error.command.signal, error.command.stderr_tail) == (3, 0, "oops\n")
    @test error.command.argv[1:2] == ["sh", "-c"]
    @test (try collect(eachrecord(`sh -c 'kill -9 $$'`)) catch error; error end).command.signal == 9
    @test collect(eachrecord(ignorestatus(`sh -c 'echo one; exit 3'`))) == ["one"]
    echo = `sh -c 'read line; echo $line; exit $line'`
    three = Millstream.Command(echo; stdin = "3\n", success_statuses = [0, 3], success_signals = [9])
    @test collect(eachrecord(three)) == ["3"]
    @test (try collect(eachrecord(Millstream.Command(echo; stdin = "4\n"))) catch error; error end).kind == :command_failed
    noisy = Millstream.Command(`sh -c 'echo 12345 >&2; exit 3'`; stderr_limit = 3)
    @test (try collect(eachrecord(noisy)) catch error; error end).command.stderr_tail == "45\n"
    stubborn = Millstream.Command(`sh -c "trap '' TERM; exec sleep 60"`; stop_signal = 2, stop_grace = 0, process_group = :own)
    @test (try Reader(next_line, stubborn; total_timeout = 0.05) catch error; error end).kind == :timed_out
    @test_throws ArgumentError Reader(Millstream.Command(`true`; success_statuses = ["1"]))
    @test (try collect(eachrecord(pipeline(`false`, `cat`))) catch error; error.command.argv end) == ["false"]

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

    # While the rest of it has not arrived, other tasks run: here the one that writes the input.
    rest = Channel{String}(0)
    reader = Reader(Millstream.Command(`cat`; stdin = rest); record_limit = 10)
    task = @async foreach(part -> (put!(rest, part); sleep(0.02)), ["short\n", "x"^100, "x"^100, "y\nen", "d\n"])
    bind(rest, task)
    @test next_line(reader) == "short"
    @test (try next_line(reader) catch error; error.kind end) == :record_too_long
    @test skip_record(reader)
    @test next_line(reader) == "end"
    @test progress(reader).records == 3
    @test !skip_record(reader)

    reader = Reader(Vector{UInt8}("1 x 99999999999"))
    @test scan(reader, Int32) == 1
    error = try scan(reader, Int32) catch error; error end
    @test (error.kind, error.found !== nothing, error.offset) == (:number_invalid, true, 2)
    @test scan(reader, String) == "x"
    @test (try scan(reader, Int32) catch error; error.kind end) == :number_overflow
end

@testset "how sources end" begin
    # Once reading has stopped, the status of the source is ignored. The source may or may not have failed by then.
    for i in 1:200
        reader = Reader(`sh -c "seq 2; exit 3"`)
        @test first(eachrecord(reader)) == "1"
        i % 4 == 0 && sleep(0.003)
        @test close(reader) === nothing
    end
    # An error that a loop ignored is reported again.
    reader = Reader(`sh -c "echo one; exit 3"`)
    for i in 1:3
        try next_line(reader) catch end
    end
    @test (try close(reader) catch error; error.kind end) == :command_failed
    @test !isopen(reader)
    # A command whose output a later one stopped reading has not failed.
    @test collect(eachrecord(pipeline(`yes`, `head -n 3`))) == ["y", "y", "y"]
    @test collect(eachrecord(pipeline(`sh -c "exit 141"`, `echo x`))) == ["x"]
    @test (try collect(eachrecord(pipeline(`yes`, `sh -c "exit 3"`))) catch error; error.kind end) == :command_failed
end

@testset "stuck commands" begin
    # It ignores the signal that stops it, and so does its child.
    script = "trap '' TERM; sleep 600 & echo \$!; echo \$\$; while :; do sleep 600; done"
    is_there(pid) = ccall(:kill, Cint, (Cint, Cint), parse(Cint, pid), 0) == 0
    reader = Reader(`sh -c $script`; stall_timeout = 2)
    pids = [next_line(reader), next_line(reader)]
    @test (try next_line(reader) catch error; error.kind end) == :stalled
    # The reader is still open.
    @test timedwait(() -> !any(is_there, pids), 20.0) === :ok
    @test next_line(reader) === nothing
    # A program that exits while its readers are open, one of them after a time limit.
    program = """
        using Millstream: Reader, next_line
        readers = [Reader(`sh -c \$(ARGS[1])`; stall_timeout = limit) for limit in (2, 600)]
        foreach(reader -> println(next_line(reader), '\\n', next_line(reader)), readers)
        try next_line(readers[1]) catch end
        """
    pids = readlines(`$(Base.julia_cmd()) --startup-file=no -e $program $script`)
    @test length(pids) == 4 && timedwait(() -> !any(is_there, pids), 20.0) === :ok
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

@testset "a Julia IO" begin
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
    # After reading stopped, the source need not succeed; a failure that was ignored is reported again.
    failed = Reader(`false`)
    sleep(0.2)
    close(failed)
    failed = Reader(`false`)
    @test_throws MillstreamError next_line(failed)
    @test_throws MillstreamError close(failed)
end

# The library waits for descriptors and read-ahead; Julia waits for all other sources. Both cases are tested.
quiet_sources(server) = (`sh -c "echo one; exec sleep 60"`, pipeline(`sh -c "echo one; exec sleep 60"`, `cat`), Shell("echo one; sleep 60"),
    Tcp("127.0.0.1:$server"), open(`sh -c "echo one; exec sleep 60"`))

@testset "a wait for $kind ends" for kind in (:stall_timeout, :cancel)
    port, server = listenany(ip"127.0.0.1", 20_000)
    connections = []
    @async while isopen(server)
        connection = try accept(server) catch; break end
        push!(connections, connection)
        write(connection, "one\n")
    end
    for source in quiet_sources(port), read_ahead in (:off, :on)
        # The library would wait for tasks of this thread.
        source isa Union{Base.Process,Tcp} && read_ahead == :on && continue
        token = CancelToken()
        reader = kind == :cancel ? Reader(source; cancel = token, read_ahead = read_ahead) :
            Reader(source; stall_timeout = 0.3, read_ahead = read_ahead)
        @test next_line(reader) == "one"
        # With read-ahead the library waits, and only another thread could cancel the wait.
        kind == :cancel && (read_ahead == :on ? cancel(token) : Timer(_ -> cancel(token), 0.1))
        started = time()
        error = try next_line(reader) catch error; error end
        @test error isa MillstreamError && error.kind == (kind == :cancel ? :cancelled : :stalled)
        @test kind == :cancel || occursin("no progress for 0.3 s", error.message)
        @test time() - started < 20
        if kind == :cancel
            # The reader is cancelled until the token is reset. After that, it waits again.
            @test (try next_line(reader) catch error; error.kind end) == :cancelled
            reset(token)
            read_ahead == :on ? cancel(token) : Timer(_ -> cancel(token), 0.1)
            @test (try next_line(reader) catch error; error.kind end) == :cancelled
        else
            @test next_line(reader) === nothing
        end
        # The time limit has been reported.
        @test close(reader) === nothing
        source isa Base.Process && kill(source, Base.SIGKILL)
    end
    foreach(close, connections)
    close(server)
end

@testset "a cancelled wait loses no data" begin
    for source in (identity, open)
        # The rest of the line arrives after the call was cancelled.
        file = tempname()
        command = `sh -c "printf o; until [ -e $file ]; do sleep 0.05; done; echo ne; echo two"`
        token = CancelToken()
        reader = Reader(source(command); cancel = token, stall_timeout = 60)
        Timer(_ -> cancel(token), 0.1)
        @test (try next_line(reader) catch error; error.kind end) == :cancelled
        reset(token)
        touch(file)
        @test collect(eachrecord(reader)) == ["one", "two"]
    end
    # An exception that an IO throws while the reader waits is rethrown.
    struct Broken <: IO end
    Base.eof(::Broken) = (sleep(0.05); error("it broke"))
    Base.bytesavailable(::Broken) = 0
    @test_throws ErrorException("it broke") next_line(Reader(Broken(); stall_timeout = 60))
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
