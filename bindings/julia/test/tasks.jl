# While a reader waits, Julia's other tasks run; and Ctrl-C ends its wait, after which it goes on as if nothing had been.
using Millstream, Test
using Millstream: Reader, next_line, Lines

const directory = mktempdir()

# The command writes a piece when a task of Julia's has run meanwhile: if a wait held that up, it would be for ever.
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

# A program of its own, which gets a real SIGINT while it waits inside a line.
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
    # Though the interrupt came when part of the line was there, nothing of it is lost.
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
    # Closing ends the wait of the first.
    close(reader)
    @test fetch(first) in ("", nothing) || fetch(first) isa Exception
end
