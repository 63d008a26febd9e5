# Stages on Julia tasks: order, errors, limits and waiting, with one thread and with several.
using Millstream, Test
using Millstream: BSON, CancelToken, Delimiter, Mapped, Reader, cancel, map_async, next_line, parallel, progress

const directory = mktempdir()
const numbers = joinpath(directory, "numbers")
write(numbers, join("$i\n" for i in 1:20_000))
const this_file = @__FILE__

failure(call) = try call() catch error; error end
const square = line -> parse(Int, line)^2
# Takes longer for some records than for others, and lets other tasks run.
slow_square = line -> (sleep(hash(line) % 3 / 1000); square(line))

@testset "$stage" for stage in (parallel, map_async)
    squares = [i^2 for i in 1:20_000]
    for ntasks in (1, 3, 100), source in (() -> numbers, () -> `cat $numbers`, () -> open(numbers), () -> IOBuffer(read(numbers)), () -> Mapped(numbers))
        found = collect(stage(square, eachrecord(source()); ntasks = ntasks))
        @test found == squares && found isa Vector{Int}
    end
    @test sort(collect(stage(square, eachrecord(numbers); ordered = false))) == squares
    # Results that are ready late do not change the order.
    @test collect(stage(slow_square, eachrecord(`seq 60`); ntasks = 7)) == squares[1:60]
    @test sort(collect(stage(slow_square, eachrecord(`seq 60`); ntasks = 7, ordered = false))) == squares[1:60]
    @test collect(stage(square, eachrecord(""  |> codeunits))) == []
    @test collect(stage(length, eachrecord(b"a;bb;;", Delimiter(';')))) == [1, 2, 0]
    # All kinds of results and functions.
    @test collect(stage(line -> line == "2" ? nothing : line, eachrecord(`seq 3`))) == ["1", nothing, "3"]
    @test collect(stage(Symbol, eachrecord(`seq 2`))) == [Symbol("1"), Symbol("2")]
    @test collect(stage(batch -> (first(batch), length(batch)), batches(numbers; most = 7_000))) == [("1", 7_000), ("7001", 7_000), ("14001", 6_000)]
    documents = vcat((BSON.encode(BSON.Map("n" => n)) for n in 1:100)...)
    @test collect(stage(document -> document["n"], BSON.documents(documents))) == 1:100
    @test sum(stage(square, eachrecord(numbers))) == sum(squares)
end

@testset "errors of $stage" for stage in (parallel, map_async), ordered in (true, false), ntasks in (1, 4, 50)
    # The record fails at once, and records before it are slow.
    bad = line -> line == "300" ? throw(DomainError(line, "not\nthis")) : (parse(Int, line) > 290 && sleep(0.01); line)
    results = stage(bad, eachrecord(`seq 1000`; name = "numbers.txt"); ordered = ordered, ntasks = ntasks)
    found = String[]
    error = failure(() -> foreach(result -> push!(found, result), results))
    # All results before it, and if ordered none after it.
    @test issubset(string.(1:299), found) && !("300" in found)
    ordered && @test found == string.(1:299)
    @test error isa MillstreamError
    @test (error.kind, error.name, error.record, error.offset) == (:stage_failed, "numbers.txt", 299, 9 * 2 + 90 * 3 + 200 * 4)
    @test error.line == 300 && occursin("at line 300; ", error.message)
    @test error.cause isa DomainError && occursin("not\nthis", error.found)
    @test occursin("numbers.txt: stage failed: DomainError", error.message)
    # It is reported again.
    @test failure(() -> first(results)).record == 299

    # An error of the source follows all results, too.
    found = String[]
    results = stage(line -> (sleep(0.001); line), eachrecord(`sh -c "seq 30; exit 3"`); ordered = ordered, ntasks = ntasks)
    error = failure(() -> foreach(result -> push!(found, result), results))
    @test (error.kind, sort(found)) == (:command_failed, sort(string.(1:30)))
    # The first of two errors is reported.
    error = failure(() -> collect(stage(line -> line == "30" ? error("mine") : line, eachrecord(`sh -c "seq 30; exit 3"`); ntasks = ntasks)))
    @test (error.kind, error.record) == (:stage_failed, 29)
end

@testset "the cause is shown with its stack trace" begin
    function fail_here(_)
        error("mine")
    end
    stack = try collect(parallel(fail_here, eachrecord(b"a"))) catch; Base.catch_stack() end
    @test [typeof(entry[1]) for entry in stack][end-1:end] == [CapturedException, MillstreamError]
    @test occursin("fail_here", sprint(showerror, stack[end-1][1]))
end

@testset "what is in progress is limited" begin
    for stage in (parallel, map_async), ntasks in (1, 3)
        begun = Threads.Atomic{Int}(0)
        results = stage(line -> (Threads.atomic_add!(begun, 1); line), eachrecord(`seq 1000000`; most = 1); ntasks = ntasks)
        for (i, line) in enumerate(results)
            yield()
            # One batch has been passed on, and `ntasks` more have begun.
            @test begun[] <= i + ntasks
            i == 200 && break
        end
        # Another loop continues.
        @test first(results) == "201"
    end
end

# A command that writes "1", and "2" after the file has appeared.
in_steps(file) = `sh -c "echo 1; while ! test -e $file; do sleep 0.01; done; echo 2"`

@testset "$stage: no wait delays another" for (i, stage) in enumerate((parallel, map_async))
    # A result is passed on while the source waits: otherwise this would hang.
    go = joinpath(directory, "go$i")
    found = String[]
    for line in stage(identity, eachrecord(in_steps(go)))
        push!(found, line)
        touch(go)
    end
    @test found == ["1", "2"]
    # The same if the result is not ready when the wait begins, in either order.
    go = joinpath(directory, "go_slowly$i")
    for line in stage(line -> (sleep(0.1); line), eachrecord(in_steps(go)))
        touch(go)
    end
    # A record is processed while an earlier one is.
    both = Channel{String}(2)
    meet = line -> (put!(both, line); while Base.n_avail(both) < 2; sleep(0.01); end; line)
    go = joinpath(directory, "go_later$i")
    @async (sleep(0.1); touch(go))
    @test collect(stage(meet, eachrecord(in_steps(go)))) == ["1", "2"]
    # An `IO` that has no data yet.
    pipe = Base.BufferStream()
    write(pipe, "1\n")
    found = String[]
    for line in stage(identity, eachrecord(pipe))
        push!(found, line)
        line == "1" ? write(pipe, "2\n") : close(pipe)
    end
    @test found == ["1", "2"]
end

@testset "a cancelled reader continues" begin
    token = CancelToken()
    go = joinpath(directory, "go_cancelled")
    results = map_async(identity, eachrecord(in_steps(go); cancel = token))
    found = String[]
    error = failure() do
        for line in results
            push!(found, line)
            cancel(token)
        end
    end
    @test (error.kind, found) == (:cancelled, ["1"])
    reset(token)
    touch(go)
    @test collect(results) == ["2"]
end

@testset "arguments" begin
    for stage in (parallel, map_async)
        @test failure(() -> stage(identity, eachrecord(b""); ntasks = 0)) isa ArgumentError
        @test failure(() -> stage(identity, eachrecord(b""); ntasks = 1.5)) isa ArgumentError
        @test occursin("eachrecord(source)", failure(() -> stage(identity, numbers)).msg)
        reader = Reader(b"a")
        close(reader)
        @test failure(() -> stage(identity, eachrecord(reader))).kind == :closed
    end
end

@testset "with several threads" begin
    if Threads.nthreads() == 1
        @test success(pipeline(`$(Base.julia_cmd()) --startup-file=no --threads=4 $this_file`; stdout = devnull, stderr = stderr))
    else
        # All threads take part.
        threads = Set(parallel(line -> (sleep(0.005); Threads.threadid()), eachrecord(`seq 200`; most = 1)))
        @test length(threads) > 1
        # `map_async` stays on one.
        @test length(Set(map_async(line -> (sleep(0.001); Threads.threadid()), eachrecord(`seq 200`)))) == 1
    end
end
