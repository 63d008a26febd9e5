# The standard input, environment and directory of a command.
using Millstream, Test
using Millstream: CancelToken, Command, Reader, Writer, next_line, parallel, skip_record, scan

const directory = mktempdir()
const path = joinpath(directory, "input")
const lines = ["line $i" for i in 1:50_000]
const text = join(string.(lines, '\n'))
write(path, text)

failure(call) = try call() catch error; error end
all_of(stdin; options...) = collect(eachrecord(Command(`cat`; stdin = stdin); options...))

@testset "what can be the input" begin
    @test all_of(text) == lines
    @test all_of(codeunits(text)) == lines
    @test all_of(Vector{UInt8}(text)) == lines
    open(file -> (@test all_of(file) == lines), path)
    open(file -> (@test all_of(RawFD(fd(file))) == lines), path)
    @test all_of(IOBuffer(text)) == lines
    @test all_of(Reader(path)) == lines
    @test all_of(open(`cat $path`)) == lines
    @test all_of(("line $i\n" for i in 1:50_000)) == lines
    @test all_of(Channel(channel -> foreach(line -> put!(channel, line * "\n"), lines))) == lines
    @test all_of([b"one\n", "two\n"]) == ["one", "two"]
    @test all_of(nothing) == all_of("") == all_of(String[]) == all_of(IOBuffer()) == []
    @test all_of(split("a b")) == ["ab"]
    # The redirections of Julia.
    @test collect(eachrecord(pipeline(path, `cat`))) == lines
    @test collect(eachrecord(pipeline(path, `cat`, `head -n 2`))) == lines[1:2]
    @test collect(eachrecord(pipeline(`cat`; stdin = IOBuffer("one\n")))) == ["one"]
    @test failure(() -> collect(eachrecord(pipeline(joinpath(directory, "none"), `cat`)))).kind == :open_failed
    @test failure(() -> Reader(pipeline(`cat`, path))) isa ArgumentError
    # A command in the middle of a chain.
    numbers = parallel(line -> parse(Int, line)^2, eachrecord(`seq 1000`))
    @test collect(eachrecord(Command(`sort -rn`; stdin = ("$n\n" for n in numbers)))) == string.((1000:-1:1) .^ 2)
    @test all_of(Reader(Command(`tr a-z A-Z`; stdin = IOBuffer("one\n")))) == ["ONE"]
end

@testset "environment and directory" begin
    command = setenv(`sh -c 'echo $NAME; pwd; cat'`, "NAME" => "value"; dir = realpath(directory))
    @test collect(eachrecord(Command(command; stdin = ["in", "put"]))) == ["value", realpath(directory), "input"]
end

@testset "a command that does not read all of its input" begin
    endless = ("$i\n" for i in Iterators.countfrom(1))
    for records in (1, 1000)
        @test collect(eachrecord(Command(`head -n $records`; stdin = endless))) == string.(1:records)
    end
    @test collect(eachrecord(Command(`true`; stdin = endless))) == []
    reader = Reader(Command(`cat`; stdin = endless))
    @test next_line(reader) == "1"
    close(reader)
    # The iterator has not been asked for more than fits into pipes and buffers.
    asked = Ref(0)
    ask(i) = (asked[] = i; "$i\n")
    reader = Reader(Command(`cat`; stdin = (ask(i) for i in Iterators.countfrom(1))))
    @test next_line(reader) == "1"
    sleep(0.2)
    @test asked[] < 1_000_000
    close(reader)
end

@testset "an input that fails: $kind" for (kind, make) in (
    "an iterator" => () -> (i == 100 ? error("mine") : "$i\n" for i in 1:1000),
    "text without an end of line" => () -> (i == 100 ? error("mine") : i == 99 ? "99" : "$i\n" for i in 1:1000),
    "a command that fails, too" => () -> (i == 100 ? error("mine") : "$i\n" for i in 1:1000))
    command = Command(kind == "a command that fails, too" ? `sh -c "cat; exit 3"` : `cat`; stdin = make())
    found = String[]
    @test failure(() -> foreach(line -> push!(found, line), eachrecord(command))) == ErrorException("mine")
    @test found == string.(1:99)
    # In every way of reading.
    for read_all in (reader -> while next_line(reader) !== nothing; end, reader -> while skip_record(reader); end,
        reader -> while scan(reader, Int) !== nothing; end, reader -> read(reader), reader -> count(reader),
        reader -> collect(parallel(length, eachrecord(reader))))
        reader = Reader(Command(command.cmd; stdin = make()))
        @test failure(() -> read_all(reader)) == ErrorException("mine")
    end
    # An input that is a stream of the library.
    @test failure(() -> all_of(Reader(`sh -c "echo one; exit 3"`))).kind == :command_failed
    @test failure(() -> all_of(["one", 2])) isa ArgumentError
end

@testset "arguments" begin
    for bad in (1, 1.5, 'c', :name)
        @test failure(() -> Command(`cat`; stdin = bad)) isa ArgumentError
    end
    for options in ((read_ahead = :on,), (decode = :auto,))
        @test failure(() -> all_of(["a"]; options...)) isa ArgumentError
        @test all_of("a"; options...) == ["a"]
    end
    @test failure(() -> Writer(Command(`cat`; stdin = "a"))) isa ArgumentError
    @test failure(() -> collect(eachrecord(Command(`no-such-program`; stdin = ["a"])))).kind == :command_not_started
    # Compressed output is not decoded.
    @test first(read(Reader(Command(`gzip`; stdin = ["a"])))) == 0x1f
end
