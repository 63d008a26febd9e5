# Programs written for BiBufferedStreams.jl, unchanged except for the name of the package.
using Millstream
using Test

const sam = joinpath(mktempdir(), "reads.sam")
open(sam, "w") do io
    println(io, "@HD\tVN:1.6")
    for i in 1:5000
        println(io, "read$i\t0\tchr1\t", 3i, "\t60\t", "ACGT"^(i % 90), "\tü→")
    end
end

@testset "a loop over the lines of an opened command" begin
    io = BiBufferedStream(open(`cat $sam`))
    lines = String[]
    while !eof(io)
        line = readline(io)
        push!(lines, line)
    end
    close(io)
    @test lines == readlines(sam)
end

@testset "the function from the original's benchmark" begin
    function read_all(cmd; use_bi_buffered_stream = true)
        io = use_bi_buffered_stream ? BiBufferedStream(open(cmd)) : open(cmd)
        c = 0
        while !eof(io)
            line = readline(io)
            c += length(line)
        end
        close(io)
        c
    end
    @test read_all(`cat $sam`) == read_all(`cat $sam`; use_bi_buffered_stream = false) > 0
end

@testset "with the line's end, and up to delimiters" begin
    for size in (16, 2^10, 2^24)
        io = BiBufferedStream(open(`cat $sam`), size)
        header = readline(io; keep = true)
        @test header == "@HD\tVN:1.6\n"
        @test readuntil(io, '\t') == "read1"
        @test readuntil(io, UInt8('\t'); keep = true) == "0\t"
        @test readuntil(io, '→') == "chr1\t3\t60\tACGT\tü"
        @test readuntil(io, 0x0a) == ""
        # If the delimiter is missing, the rest is returned. After that, nothing is returned.
        rest = readuntil(io, '\0')
        @test startswith(rest, "read2\t") && endswith(rest, "\tü→\n")
        @test eof(io)
        @test readline(io) == readuntil(io, 'x') == ""
        close(io)
    end
end

@testset "any IO, and a size for its buffer" begin
    for make in (() -> open(sam), () -> IOBuffer(read(sam)), () -> open(pipeline(`cat $sam`, `cat`))), size in (100, 2^24)
        io = BiBufferedStream(make(), size)
        @test isopen(io)
        @test readline(io) == "@HD\tVN:1.6"
        @test count(_ -> true, eachline(io)) == 5000
        close(io)
        @test !isopen(io)
    end
end

# A bug of the original.
@testset "a carriage return is part of the line end" begin
    @test readline(BiBufferedStream(open(`printf 'one\r\n'`))) == "one"
end
