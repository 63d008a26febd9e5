# Mistakes in the use of the package are errors, never crashes, hangs or lost data.
using Millstream, Test
using Millstream: CancelToken, Command, Reader, Writer, columns, map_async, next_line, parallel, progress, scan, skip_record

const directory = mktempdir()
const this_file = @__FILE__

failure(call) = try call() catch error; error end
is_closed(call) = (error = failure(call); error isa MillstreamError && error.kind == :closed)

@testset "use after close, and closing again" begin
    for source in (() -> b"one\ntwo\n", () -> `seq 3`, () -> IOBuffer("one\n"), () -> Command(`cat`; stdin = ["one\n"]))
        reader = Reader(source())
        loop, stage = eachrecord(reader), parallel(identity, eachrecord(reader))
        @test next_line(reader) isa String
        @test close(reader) === close(reader) === nothing
        @test !isopen(reader)
        for call in (next_line, skip_record, progress, count, eof, readline, reader -> scan(reader, Int), reader -> collect(batches(reader)),
            reader -> columns(reader, (a = Int,)), reader -> collect(loop), reader -> collect(stage))
            @test is_closed(() -> call(reader))
        end
    end
    path = joinpath(directory, "closed")
    writer = Writer(path)
    write(writer, "one\n")
    @test close(writer) === close(writer) === nothing
    @test read(path, String) == "one\n"
    for call in (writer -> write(writer, "two"), writer -> put!(writer, 2), flush, position)
        @test is_closed(() -> call(writer))
    end
    @test read(path, String) == "one\n"
    stream = BiBufferedStream(IOBuffer("one\n"))
    @test close(stream) === close(stream) === nothing
    @test failure(() -> readline(stream)) isa Exception || readline(stream) == ""
end

@testset "closing in the middle" begin
    # Of a loop over records.
    reader = Reader(`seq 1000000`)
    found = String[]
    error = failure(() -> for line in eachrecord(reader); push!(found, line); close(reader); end)
    @test error === nothing || error isa MillstreamError && error.kind == :closed
    @test found == string.(1:length(found))
    # Of a stage, whose tasks are still running.
    reader = Reader(`seq 1000000`)
    stage = parallel(line -> (sleep(0.001); line), eachrecord(reader); ntasks = 4)
    @test first(stage) == "1"
    close(reader)
    @test failure(() -> collect(stage)) isa Union{MillstreamError,Vector}
end

@testset "objects that are collected in the middle" begin
    # Of a loop, a batch, a stage or a command's input only what is still needed is kept alive.
    total = 0
    for batch in batches(IOBuffer(join(1:30_000, '\n')); most = 1000), i in 1:length(batch)
        i == 1 && GC.gc()
        total += parse(Int, batch[i])
    end
    @test total == sum(1:30_000)
    @test sum(parallel(line -> (rand() < 0.001 && GC.gc(); parse(Int, line)), eachrecord(join(1:5000, '\n') |> codeunits))) == sum(1:5000)
    lines = eachrecord(Command(`cat`; stdin = (i % 500 == 0 ? (GC.gc(); "$i\n") : "$i\n" for i in 1:2000)))
    @test collect(lines) == string.(1:2000)
    # A record of a batch that is no longer referenced.
    views = [record(batch, 1) for batch in batches(b"one\n"; most = 1)]
    GC.gc()
    @test String(copy(views[1])) == "one"
    # Abandoned in the middle, without close.
    for _ in 1:50
        first(eachrecord(`yes`))
        first(parallel(identity, eachrecord(`yes`)))
        first(eachrecord(Command(`cat`; stdin = ("$i\n" for i in Iterators.countfrom(1)))))
        write(Writer(joinpath(directory, "abandoned")), "x")
        CancelToken()
    end
    foreach(_ -> GC.gc(), 1:3)
    @test next_line(Reader(`echo one`)) == "one"
end

if Threads.nthreads() == 1
    @testset "in another thread" begin
        @test success(pipeline(`$(Base.julia_cmd()) --startup-file=no --threads=4 $this_file`; stdout = devnull, stderr = stderr))
    end
else
    @testset "opened in one thread and used in others" begin
        # One task at a time, in any thread.
        for source in (() -> `seq 1000`, () -> join(1:1000, '\n') |> codeunits)
            reader, found = Reader(source()), String[]
            while (line = fetch(Threads.@spawn next_line(reader))) !== nothing
                push!(found, line)
            end
            @test found == string.(1:1000)
            fetch(Threads.@spawn close(reader))
        end
        # Many readers at once.
        sums = [Threads.@spawn(sum(line -> parse(Int, line), eachrecord(`seq 1000`))) for _ in 1:16]
        @test fetch.(sums) == fill(500500, 16)
        @test fetch.([Threads.@spawn(collect(parallel(line -> parse(Int, line), eachrecord(`seq 100`)))) for _ in 1:8]) == fill(collect(1:100), 8)
    end
end

@testset "signals masked in this process do not reach commands" begin
    Sys.islinux() || return
    set, before = zeros(UInt8, 128), zeros(UInt8, 128)
    ccall(:sigemptyset, Cint, (Ptr{UInt8},), set)
    ccall(:sigaddset, Cint, (Ptr{UInt8}, Cint), set, 15)
    ccall(:sigaddset, Cint, (Ptr{UInt8}, Cint), set, 10)
    ccall(:pthread_sigmask, Cint, (Cint, Ptr{UInt8}, Ptr{UInt8}), 0, set, before)
    try
        blocked = only(collect(eachrecord(`grep -E "^SigBlk" /proc/self/status`)))
        mask = parse(UInt64, split(blocked, '\t')[2]; base = 16)
        @test mask & (UInt64(1) << 14 | UInt64(1) << 9) == 0
        # It can be stopped, therefore.
        reader = Reader(`sh -c "echo begun; exec sleep 1000"`)
        @test next_line(reader) == "begun"
        close(reader)
        @test collect(parallel(identity, eachrecord(`seq 3`))) == ["1", "2", "3"]
    finally
        ccall(:pthread_sigmask, Cint, (Cint, Ptr{UInt8}, Ptr{UInt8}), 2, before, C_NULL)
    end
end
