# The shared vectors of behaviour: detection of compression, limits, defaults of options.
using Millstream, Test
using Millstream: Reader, Writer, scan, Lines, Delimiter, AnyOf, Fixed, LengthPrefixed, Documents, Csv, dicts, next_line

const folder = normpath(joinpath(@__DIR__, "..", "..", "..", "vectors"))
cases(file) = [split(line, '\t') for line in eachline(joinpath(folder, file)) if !isempty(line) && !startswith(line, '#')]
const hex = hex2bytes

fails(call) = try
    call()
    nothing
catch error
    error isa MillstreamError ? string(error.kind) : rethrow()
end

function framer_of(words)
    keep = "untrimmed" in words
    words[1] == "lines" ? Lines(keep = keep) :
    words[1] == "byte" ? Delimiter(only(hex(words[2])), keep = keep) :
    words[1] == "bytes" ? Delimiter(hex(words[2]), keep = keep) :
    words[1] == "char" ? Delimiter(Char(parse(UInt32, words[2], base = 16)), keep = keep) :
    words[1] == "any-of" ? AnyOf(hex(words[2]), keep = keep) :
    words[1] == "fixed" ? Fixed(parse(Int, words[2])) :
    words[1] == "prefix" ? LengthPrefixed(Dict("u8" => UInt8, "u16" => UInt16, "u32" => UInt32, "u64" => UInt64)[words[2]];
        endian = Symbol(words[3]), counts = Symbol(words[4])) :
    words[1] == "csv" ? Csv() :
    words[1] == "bson" ? Documents() : error("an unknown framer: $words")
end

# All bytes of a reader.
bytes_of(reader) = reduce(vcat, [copy(record(batch, i)) for batch in batches(reader, Lines(keep = true)) for i in 1:length(batch)];
    init = UInt8[])

function written(path, bytes)
    Writer(writer -> write(writer, bytes), path)
    read(path)
end

@testset "sniff: $name" for (name, way, file, input, output, ending) in cases("sniff.tsv")
    mktempdir() do directory
        path = joinpath(directory, file)
        found = UInt8[]
        how = fails() do
            if way == "read"
                write(path, hex(input))
                found = bytes_of(Reader(path))
            else
                found = written(path, hex(input))[1:div(max(length(output), 2), 2)]
            end
        end
        @test something(how, "end") == ending
        how === nothing && @test found == hex(output)
    end
end

@testset "limit: $name" for (name, framer, limit, input, records, ending) in cases("limits.tsv")
    expected = records == "-" ? [] : hex.(split(records, ','))
    reader = Reader(hex(input); decode = :off, record_limit = parse(Int, limit))
    found = Vector{UInt8}[]
    how = fails() do
        for batch in batches(reader, framer_of(split(framer))), i in 1:length(batch)
            push!(found, copy(record(batch, i)))
        end
    end
    @test (found, something(how, "end")) == (expected, ending)
end

@testset "place: $name" for (name, way, limit, input, kind, offset, record, line, column) in cases("places.tsv")
    reader = Reader(hex(input); decode = :off, record_limit = parse(Int, limit))
    error = try
        if way == "scan u32"
            while scan(reader, UInt32) !== nothing end
        elseif way == "rows"
            foreach(identity, dicts(reader))
        else
            foreach(identity, eachrecord(reader, framer_of(split(way))))
        end
    catch error
        error
    end
    @test (string(error.kind), [string(something(number, "-")) for number in (error.offset, error.record, error.line, error.column)]) ==
        (kind, [offset, record, line, column])
end

const zipped = hex("1f8b080000000000020333e4020053fc516702000000")
is_decoded(reader) = next_line(reader) == "1" ? "yes" : "no"

# Returns the default of an option, as determined from behaviour; nothing if Julia lacks the option.
function default_of(option, directory)
    path = joinpath(directory, "file.gz")
    long(size) = fails(() -> next_line(Reader(fill(UInt8('x'), size)))) !== nothing
    option == "record_limit" ? (!long(64 << 20) && long((64 << 20) + 1) ? "67108864" : "another") :
    option == "keep_delimiter" ? (first(eachrecord(Reader(b"1\n"))) == "1" ? "no" : "yes") :
    option == "prefix_order" ? (fails(() -> first(eachrecord(Reader(UInt8[1, 0, 0, 0, 0x61]), LengthPrefixed(UInt32)))) === nothing ?
        "little" : "big") :
    option == "prefix_counts" ? (first(eachrecord(Reader(b"\x02ab"), LengthPrefixed(UInt8))) == "ab" ? "payload" : "itself") :
    option == "decode_file" ? (write(path, zipped); is_decoded(Reader(path))) :
    option == "decode_memory" ? is_decoded(Reader(zipped)) :
    option == "decode_command" ? is_decoded(Reader(`sh -c "echo 1 | gzip"`)) :
    option == "decode_callback" ? is_decoded(Reader(IOBuffer(zipped))) :
    option == "command_failure" ? (fails(() -> next_line(Reader(`false`))) === nothing ? "allowed" : "error") :
    option == "command_stdin" ? (next_line(Reader(`cat`)) === nothing ? "nothing" : "something") :
    option == "encode_file" ? (written(path, "1\n")[1] == 0x1f ? "by name" : "no") :
    option == "encode_memory" ? (writer = Writer(); write(writer, "1\n"); take!(writer) == b"1\n" ? "no" : "yes") :
    option == "existing_file" ? (path = joinpath(directory, "a"); written(path, "before");
        written(path, "after") == b"after" ? "replaced" : "appended") :
    option == "unfinished_file" ? (path = joinpath(directory, "b");
        try
            Writer(writer -> (write(writer, "1"); error("given up")), path)
        catch
        end; ispath(path) ? "kept" : "removed") :
    # The Julia package has no pipes.
    option == "on_error" ? nothing : error("no test for the option $option")
end

@testset "default: $option" for (option, default) in cases("defaults.tsv")
    found = mktempdir(directory -> default_of(option, directory))
    found === nothing || @test found == default
end
