# Iterates over records, many at a time as a `Batch`, or one by one as `String`s.

# Returns the next records, in the library's memory: at least one, or none at the end.
function next_batch(reader::Reader, framer::Framer, most)
    await_record(reader, framer)
    next_batch_now(reader, framer, most)
end

# The same after Julia has waited.
function next_batch_now(reader, framer, most)
    reading(reader) do
        @call millstream_reader_next_batch(reader, framer, most, reader.batch)
        reader.batch[].count == 0
    end
    reader.batch[]
end

# Consumes the used bytes of the window, and marks as unread the records that a loop over single records has not used, so
# that every call continues after the last byte or record used.
function settle(reader::Reader)
    if reader.start != C_NULL
        used = reader.at - reader.start
        reader.start = reader.at = reader.stop = C_NULL
        used == 0 || @call millstream_reader_consume(reader, used)
    end
    _, left = not_used(reader)
    reader.in_use = nothing
    left == 0 && return
    @call millstream_reader_give_back(reader, left)
    reader.ahead = 1
    nothing
end

# The number of bytes and records of the current batch that no loop has used.
function not_used(reader)
    batch = reader.in_use
    batch === nothing && return 0, 0
    Int(last(batch.offsets) - batch.offsets[batch.used+1]), length(batch) - batch.used
end

# Waits, without blocking other tasks, until the next record is available. Returns false if the reader's waker ended the wait.
await_record(reader, framer) = await(reader) do bytes, len
    code = @c millstream_framer_batch(framer, bytes, len, false, 1, reader.batch, C_NULL)
    # The call that follows reports errors.
    code != 0 || reader.batch[].count > 0
end

"""
    batches(source[, framer]; most, options...)

Iterates over the records as [`Batch`](@ref)es: as many as are available, at most `most`, without waiting for a second
one. `source` is a [`Reader`](@ref), which continues at its position, or any argument of `Reader`, with its options. If
the loop ends early, the reader is positioned after the last batch.

    for batch in batches("reads.txt.gz"), i in 1:length(batch)
        use(record(batch, i))
    end
"""
function batches(source, framer::Framer = Lines(); options...)
    check_options(:batches, options, options_for(source))
    batches_of(source, framer; options...)
end

batches_of(reader::Reader, framer; most::Integer = typemax(Int)) = Batches(reader, framer, most, Batch())
batches_of(source, framer; most::Integer = typemax(Int), options...) = Batches(Reader(source; options...), framer, most, Batch())

# The options of functions that read records. A reader has its own already.
options_for(::Reader) = (:most,)
options_for(_) = (:most, reader_options...)

struct Batches
    reader::Reader
    framer::Framer
    most::Int
    batch::Batch
end

Base.IteratorSize(::Type{Batches}) = Base.SizeUnknown()
Base.eltype(::Type{Batches}) = Batch

function Base.iterate(batches::Batches, _ = nothing)
    lent = next_batch(batches.reader, batches.framer, batches.most)
    lent.count == 0 ? nothing : (take_over!(batches.batch, lent), nothing)
end

"""
    eachrecord(source[, framer]; options...)

Iterates over the records, each a `String`; lines by default, or as defined by a framer. `source` works as in
[`batches`](@ref). If the loop ends early, by `break` or an exception, the reader is positioned after the last record
that the loop received:

    reader = Reader(path)
    header = first(eachrecord(reader))
    rest = collect(eachrecord(reader))

    for line in eachrecord(`samtools view -h reads.bam`)
        use(line)
    end
    # Here the command has succeeded. If it had failed, the loop would have thrown after the last line.
"""
function eachrecord(source, framer::Framer = Lines(); options...)
    check_options(:eachrecord, options, options_for(source))
    Records(batches_of(source, framer; options...), getindex)
end

# Iterates over the records of batches; each is converted by `make(batch, i)`.
struct Records{F}
    batches::Batches
    make::F
end

Base.IteratorSize(::Type{<:Records}) = Base.SizeUnknown()
Base.IteratorEltype(::Type{<:Records}) = Base.EltypeUnknown()
Base.IteratorEltype(::Type{Records{typeof(getindex)}}) = Base.HasEltype()
Base.eltype(::Type{Records{typeof(getindex)}}) = String

# The current batch stores how many of its records have been used, so that the others can be marked as unread after the
# loop.
@inline function Base.iterate(records::Records, i = 0)
    batch = records.batches.batch
    0 < i <= length(batch) && records.batches.reader.in_use === batch || return first_of_next(records)
    batch.used = i
    @inbounds(records.make(batch, i)), i + 1
end

@noinline function first_of_next(records)
    reader, batch = records.batches.reader, records.batches.batch
    lent = next_batch(reader, records.batches.framer, reader.ahead)
    lent.count == 0 && return nothing
    take_over!(batch, lent)
    reader.in_use, batch.used = batch, 1
    reader.ahead = max(reader.ahead, 2 * reader.ahead) # no more than all
    records.make(batch, 1), 2
end

"""
    next_line(reader)

Returns the next line, or `nothing` at the end, which means that the source succeeded. """
next_line(reader::Reader) = next_frame(reader, lines(reader, false))

"""
    next_frame(reader, framer)

Returns the next record as a `String`, or `nothing` at the end.
"""
function next_frame(reader::Reader, framer::Framer)
    await_record(reader, framer)
    reading(reader) do
        @call millstream_reader_next_frame(reader, framer, reader.buffer, reader.len)
        reader.buffer[] == C_NULL
    end
    reader.buffer[] == C_NULL ? nothing : unsafe_string(reader.buffer[], reader.len[])
end

# The framer of a reader's lines; creating one for each line would cost more than reading the line.
function lines(reader, keep)
    isempty(reader.lines) && append!(reader.lines, (Lines(), Lines(keep = true)))
    reader.lines[1+keep]
end

"""
    skip_record(reader[, framer])

Skips a record of any length, such as one that was too long. Returns whether there was one.
"""
function skip_record(reader::Reader, framer::Framer = Lines())
    skipped = Ref(false)
    await(reader) do _, _
        @call millstream_reader_skip_buffered(reader, framer, skipped)
        skipped[]
    end
    skipped[] || reading(reader) do
        @call millstream_reader_skip_record(reader, framer, skipped)
        !skipped[]
    end
    skipped[]
end

"""
    count(reader[, framer])

Counts the remaining records by reading all of them.
"""
function Base.count(reader::Reader, framer::Framer = Lines())
    count = 0
    while true
        found = next_batch(reader, framer, typemax(Int)).count
        found == 0 && return count
        count += Int(found)
    end
end

# ---- as an IO ----

"""
    readline(reader; keep = false)
    eachline(reader; keep = false)

The next line, which is empty only for an empty line and at the end; all lines, like [`eachrecord`](@ref).
"""
Base.readline(reader::Reader; keep::Bool = false) = something(next_frame(reader, lines(reader, keep)), "")
Base.eachline(reader::Reader; keep::Bool = false) = eachrecord(reader, Lines(keep = keep))

"""
    readuntil(reader, delimiter; keep = false)

The bytes up to a delimiter, or up to the end: a `Vector{UInt8}` if the delimiter is a byte or bytes, and a `String` if
it is a character or text.
"""
Base.readuntil(reader::Reader, delimiter::AbstractString; keep::Bool = false) =
    something(next_frame(reader, Delimiter(delimiter, keep = keep)), "")
Base.readuntil(reader::Reader, delimiter::AbstractChar; keep::Bool = false) = readuntil(reader, string(delimiter); keep = keep)
Base.readuntil(reader::Reader, delimiter::Vector{UInt8}; keep::Bool = false) =
    Vector{UInt8}(codeunits(readuntil(reader, String(copy(delimiter)); keep = keep)))
Base.readuntil(reader::Reader, delimiter::UInt8; keep::Bool = false) = readuntil(reader, [delimiter]; keep = keep)

function Base.eof(reader::Reader)
    reader.at < reader.stop && return false
    bytesavailable(reader) == 0 || return false
    await_readable(reader)
    check_open(reader) # another task may have closed it
    reading(reader) do
        @call millstream_reader_fill(reader, reader.buffer, reader.len, reader.added)
        open_window(reader) == 0
    end
end

"""
    bytesavailable(reader)

The number of bytes that can be read without waiting; 0 does not mean that a read would wait.
"""
function Base.bytesavailable(reader::Reader)
    reader.at < reader.stop && return Int(reader.stop - reader.at)
    check_open(reader)
    settle(reader)
    @call millstream_reader_buffer(reader, reader.buffer, reader.len)
    open_window(reader)
end

# Makes the bytes that the library has just returned readable.
function open_window(reader)
    reader.start = reader.at = reader.buffer[]
    reader.stop = reader.at + reader.len[]
    Int(reader.len[])
end
