# Names that imply a format, and files that change; the core's tests cover all cases.
using Millstream, Test
using Millstream: Reader, Writer, next_line

@testset "formats and files that change" begin
    directory = mktempdir()
    kind(f) = try f(); nothing catch error; error.kind end
    write(joinpath(directory, "a.gz"), "plain\n")
    write(joinpath(directory, "b.xz"), "plain\n")
    @test kind(() -> collect(eachrecord(joinpath(directory, "a.gz")))) == :decode_damaged
    @test kind(() -> Reader(joinpath(directory, "b.xz"))) == :unsupported
    @test collect(eachrecord(joinpath(directory, "b.xz"); decode = :off)) == ["plain"]
    @test kind(() -> Writer(joinpath(directory, "c.xz"))) == :unsupported
    log = joinpath(directory, "log")
    for (happen, expected) in ((() -> write(log, "another\nand longer\n")) => :source_shrank,
        (() -> mv(log, log * ".1")) => :source_changed, (() -> rm(log)) => :source_changed)
        write(log, "one\n")
        reader = Reader(log; follow = :growing, stall_timeout = 60)
        @test next_line(reader) == "one"
        happen()
        @test kind(() -> next_line(reader)) == expected
        @test kind(() -> close(reader)) == expected
    end
end
