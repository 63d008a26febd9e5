# Names that imply a format, and files that change; the core's tests cover all cases.
using Millstream, Test
using Millstream: Reader, Writer, next_line

@testset "formats and files that change" begin
    directory = mktempdir()
    kind(f) = try f(); nothing catch error; error.kind end
    write(joinpath(directory, "a.gz"), "plain\n")
    write(joinpath(directory, "b.lz4"), "plain\n")
    @test kind(() -> collect(eachrecord(joinpath(directory, "a.gz")))) == :decode_damaged
    @test kind(() -> Reader(joinpath(directory, "b.lz4"))) == :unsupported
    @test collect(eachrecord(joinpath(directory, "b.lz4"); decode = :off)) == ["plain"]
    @test kind(() -> Writer(joinpath(directory, "c.lz4"))) == :unsupported
    for (ending, encode) in (("gz", :gzip), ("bgz", :bgzf), ("zst", :zstd), ("xz", :xz))
        by_name, by_option = joinpath(directory, "d.$ending"), joinpath(directory, "e$ending")
        for writer in (Writer(by_name), Writer(by_option; encode))
            write(writer, "one\ntwo\n")
            close(writer)
        end
        @test read(by_name) == read(by_option) != b"one\ntwo\n"
        @test collect(eachrecord(by_name)) == collect(eachrecord(by_option)) == ["one", "two"]
    end
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
