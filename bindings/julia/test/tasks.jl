# While a reader waits, Julia's other tasks run. Ctrl-C interrupts the reader, and reading can continue normally.
using Millstream, Test
using Millstream: Reader, next_line, Lines

const directory = mktempdir()

# The command writes a piece only after a Julia task has run in the meantime. If a waiting reader blocked tasks, this
# test would hang.
waiting(command) = `sh -c "$command"`

@testset "tasks run while $kind waits" for kind in ("a BiBufferedStream", "one over open", "a reader", "a reader of a pipeline")
    for pieces in (["one\n", "two\n"], ["o", "ne\ntwo\n"], ["one\ntw", "o\n"])
        files = [joinpath(directory, "$kind$i") for i in 1:2]
        foreach(file -> rm(file; force = true), files)
        script = join(["while ! test -e '$(files[i])'; do sleep 0.01; done; printf '$(replace(pieces[i], "\n" => "\\n"))'" for i in 1:2], "; ")
        command = `sh -c $script`
        lines = kind == "a BiBufferedStream" ? eachline(BiBufferedStream(command)) :
            kind == "one over open" ? eachline(BiBufferedStream(open(command))) :
            kind == "a reader" ? eachrecord(command) : eachrecord(pipeline(command, `cat`))
        helper = @async foreach(files) do file
            sleep(0.05)
            touch(file)
        end
        @test collect(lines) == ["one", "two"]
        wait(helper)
    end
end

# A separate program, which gets a real SIGINT while it waits in the middle of a line.
const program = """
    using Millstream
    using Millstream: Reader, next_line
    Base.exit_on_sigint(false)
    command = `sh -c "trap '' INT; printf begun; sleep 1; echo ' and ended'; exit 3"`
    read_line = ARGS[1] == "stream" ? (stream = BiBufferedStream(command); () -> readline(stream)) :
        (reader = Reader(command); () -> next_line(reader))
    println("ready")
    flush(stdout)
    try
        read_line()
        println("no interrupt")
    catch interrupt
        println(typeof(interrupt))
    end
    println(read_line())
    try
        println(repr(read_line()))
    catch failure
        println(typeof(failure))
    end
    """

@testset "Ctrl-C while $kind waits" for kind in ("stream", "reader")
    julia = `$(Base.julia_cmd()) --startup-file=no -e $program $kind`
    process = open(julia)
    @test readline(process) == "ready"
    sleep(0.4)
    kill(process, Base.SIGINT)
    # The interrupt came when part of the line had arrived, and no part of it is lost.
    @test readlines(process) == ["InterruptException", "begun and ended",
        kind == "stream" ? "ProcessFailedException" : "MillstreamError"]
end

@testset "two tasks and one $kind" for kind in ("BiBufferedStream", "BiBufferedStream over an IO", "reader")
    reader = kind == "reader" ? Reader(`sleep 1000`) : kind == "BiBufferedStream" ? BiBufferedStream(`sleep 1000`) :
        BiBufferedStream((process = open(`sleep 1000`); Base.start_reading(process.out); process))
    read_line() = reader isa Reader ? next_line(reader) : readline(reader)
    first = @async try read_line() catch failure; failure end
    yield()
    @test_throws ErrorException read_line()
    # Closing the reader wakes the first task.
    close(reader)
    @test fetch(first) in ("", nothing) || fetch(first) isa Exception
end

if Sys.islinux()
    @testset "commands begin without Julia's signals: $kind" for (kind, source) in (
        "a reader" => Reader(`grep -E "^Sig(Blk|Ign)" /proc/self/status`),
        "a pipeline" => Reader(pipeline(`true`, `grep -E "^Sig(Blk|Ign)" /proc/self/status`)),
        "a shell" => Reader(Millstream.Shell("exec grep -E '^Sig(Blk|Ign)' /proc/self/status")),
        "a BiBufferedStream" => BiBufferedStream(`grep -E "^Sig(Blk|Ign)" /proc/self/status`))
        lines = source isa Reader ? collect(eachrecord(source)) : collect(eachline(source))
        blocked, ignored = (parse(UInt64, split(line, '\t')[2]; base = 16) for line in lines)
        # Signals 32 and 33 belong to the C library, and programs cannot change them. SIGHUP, SIGINT, SIGQUIT, SIGTSTP,
        # SIGTTIN and SIGTTOU stay ignored if they were, as in a background job.
        kept = reduce(|, UInt64(1) << (signal - 1) for signal in (1, 2, 3, 20, 21, 22, 32, 33))
        @test blocked == 0 && ignored & ~kept == 0
    end
end

@testset "a command that is stopped gets SIGTERM" begin
    file = joinpath(directory, "term")
    reader = Reader(`sh -c "trap 'echo asked > $file; exit' TERM; echo begun; while :; do sleep 0.05; done"`)
    @test next_line(reader) == "begun"
    close(reader)
    @test read(file, String) == "asked\n"
end

# Whether a process exists, not counting zombies.
runs(pid) = isfile("/proc/$pid/stat") ? !occursin(") Z ", read("/proc/$pid/stat", String)) : success(`sh -c "kill -0 $pid 2>/dev/null"`)

@testset "finalizers do not wait" begin
    readers = [Reader(`sh -c "trap '' TERM; echo \$\$; exec sleep 60"`) for i in 1:10]
    pids = [parse(Int, next_line(reader)) for reader in readers]
    writers = [Millstream.Writer(`sleep 60`) for i in 1:5]
    started = time()
    foreach(finalize, readers)
    foreach(finalize, writers)
    @test time() - started < 8 # they would take two seconds each
    @test !any(isopen, readers) && !any(isopen, writers)
    # No process remains.
    @test timedwait(() -> !any(runs, pids), 30.0) == :ok
end
