# Loops over records: many at a time as a `Batch`, or one by one as `String`s.

# The next records, in the library's memory: at least one, or none at the end.
function next_batch(reader::Reader, framer::Framer, most)
    await_record(reader, framer)
    with_failure(reader.source) do
        @call millstream_reader_next_batch(reader, framer, most, reader.batch)
    end
    reader.batch[]
end

# Makes the records unread again that a loop over single ones has not used, so that every call continues after the last
# one used.
function give_back(reader::Reader)
    _, left = not_used(reader)
    reader.in_use = nothing
    left == 0 && return
    @call millstream_reader_give_back(reader, left)
    reader.ahead = 1
    nothing
end

# How many bytes and records of the batch in use no loop has used.
function not_used(reader)
    batch = reader.in_use
    batch === nothing && return 0, 0
    Int(last(batch.offsets) - batch.offsets[batch.used+1]), length(batch) - batch.used
end

# Waits, without blocking other tasks, until the next record is available.
await_record(reader, framer) = await(reader) do bytes, len
    code = @c millstream_framer_batch(framer, bytes, len, false, 1, reader.batch, C_NULL)
    # Errors are reported by the call that follows.
    code != 0 || reader.batch[].count > 0
end

"""
    batches(source[, framer]; most, options...)

Iterates over the records as [`Batch`](@ref)es: as many as are available, at most `most`, and never waiting for a second
one. `source` is a [`Reader`](@ref), which continues at its position, or anything a reader can be made from, with its
options. A batch that was returned counts as a whole: leaving the loop leaves the reader after it.

    for batch in batches("reads.txt.gz"), i in 1:length(batch)
        use(record(batch, i))
    end
"""
batches(reader::Reader, framer::Framer = Lines(); most::Integer = typemax(Int)) = Batches(reader, framer, most, Batch())
batches(source, framer::Framer = Lines(); most::Integer = typemax(Int), options...) =
    batches(Reader(source; options...), framer; most = most)

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

Iterates over the records, each a `String`; lines by default, or as defined by a framer. `source` as for
[`batches`](@ref). Leaving the loop, with `break` or an exception, leaves a reader after the last record it was given:

    reader = Reader(path)
    header = first(eachrecord(reader))
    rest = collect(eachrecord(reader))

    for line in eachrecord(`samtools view -h reads.bam`)
        use(line)
    end
    # Here the command has succeeded. Had it failed, the loop would have thrown after its last line.
"""
eachrecord(source, framer::Framer = Lines(); options...) = Records(batches(source, framer; options...), getindex)

# The records of batches, each as what `make(batch, i)` makes of it.
struct Records{F}
    batches::Batches
    make::F
end

Base.IteratorSize(::Type{<:Records}) = Base.SizeUnknown()
Base.IteratorEltype(::Type{<:Records}) = Base.EltypeUnknown()
Base.IteratorEltype(::Type{Records{typeof(getindex)}}) = Base.HasEltype()
Base.eltype(::Type{Records{typeof(getindex)}}) = String

# A batch in use keeps how much of it has been used, so that the rest can be given back after the loop.
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
    reader.ahead = max(reader.ahead, 2 * reader.ahead) # at most all
    records.make(batch, 1), 2
end

"""
    next_line(reader)

The next line, or `nothing` at the end, which means that the source succeeded. """
next_line(reader::Reader) = next_frame(reader, Lines())

"""
    next_frame(reader, framer)

The next record as a `String`, or `nothing` at the end.
"""
function next_frame(reader::Reader, framer::Framer)
    await_record(reader, framer)
    with_failure(reader.source) do
        @call millstream_reader_next_frame(reader, framer, reader.buffer, reader.len)
    end
    reader.buffer[] == C_NULL ? nothing : unsafe_string(reader.buffer[], reader.len[])
end

"""
    skip_record(reader[, framer])

Skips a record, however long it is, such as one that was too long. Returns whether there was one.
"""
function skip_record(reader::Reader, framer::Framer = Lines())
    check_open(reader)
    give_back(reader)
    skipped = Ref(false)
    with_failure(reader.source) do
        @call millstream_reader_skip_record(reader, framer, skipped)
    end
    skipped[]
end

"""
    count(reader[, framer])

How many records are left, all of which are taken.
"""
function Base.count(reader::Reader, framer::Framer = Lines())
    count = 0
    while true
        found = next_batch(reader, framer, typemax(Int)).count
        found == 0 && return count
        count += Int(found)
    end
end
