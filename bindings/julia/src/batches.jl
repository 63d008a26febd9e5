# Records: many at a time as a `Batch`, or one by one as `String`s.

"""
Records in one block of memory: record `i` is `batch[i]`, a `String` of its own, or `record(batch, i)`, a view.

`bytes` is the block and `offsets` where in it each record begins (from 0), with one more for the end. `offset` and
`first_record` say where the batch is in the stream. The next batch of the same loop uses the same memory: copy what is to
stay (a `String` is a copy).
"""
mutable struct Batch <: AbstractVector{String}
    bytes::Vector{UInt8}
    offsets::Vector{UInt32}
    trim::CTrim
    terminated::Bool
    offset::Int64
    first_record::Int64

    Batch() = new(UInt8[], UInt32[0], CTrim(0, 0, false), true, 0, 0)
end

Base.size(batch::Batch) = (length(batch.offsets) - 1,)
Base.IndexStyle(::Type{Batch}) = IndexLinear()

# Where the content of a record is: what is in front of it, and its length.
@inline function content(batch::Batch, i::Int)
    @boundscheck checkbounds(batch, i)
    offsets, bytes, trim = batch.offsets, batch.bytes, batch.trim
    @inbounds first, last = Int(offsets[i]), Int(offsets[i+1])
    if batch.terminated || i < length(offsets) - 1
        last = max(first, last - trim.tail)
        if trim.carriage_return && last > first && @inbounds(bytes[last]) == 0x0d
            last -= 1
        end
    end
    first = min(first + trim.head, last)
    first, last - first
end

@inline function Base.getindex(batch::Batch, i::Int)
    before, len = content(batch, i)
    bytes = batch.bytes
    GC.@preserve bytes unsafe_string(pointer(bytes, before + 1), len)
end

"""
    record(batch, i)

The bytes of a record, without a copy: until the next batch.
"""
@inline function record(batch::Batch, i::Int)
    before, len = content(batch, i)
    view(batch.bytes, before+1:before+len)
end

# What the library lends becomes Julia's own. This is a copy within the cache, and no batch can outlive its memory.
function take_over!(batch::Batch, lent::CBatch)
    resize!(batch.bytes, lent.len)
    unsafe_copyto!(pointer(batch.bytes), lent.bytes, lent.len)
    resize!(batch.offsets, lent.count + 1)
    unsafe_copyto!(pointer(batch.offsets), lent.offsets, lent.count + 1)
    batch.trim, batch.terminated = lent.trim, lent.terminated
    batch.offset, batch.first_record = lent.offset, lent.first_record
    batch
end

# The next records, in the library's memory: at least one, or none at the end.
function next_batch(reader::Reader, framer::Framer, most)
    await_record(reader, framer)
    with_failure(reader.source) do
        @call millstream_reader_next_batch(reader::Ptr{Cvoid}, framer::Ptr{Cvoid}, most::Csize_t, reader.batch::Ptr{CBatch})
    end
    reader.batch[]
end

# Waits, as a task of Julia does, until the next record is there.
await_record(reader, framer) = await(reader) do bytes, len
    code = @c millstream_framer_batch(framer::Ptr{Cvoid}, bytes::Ptr{UInt8}, len::Csize_t, false::Bool, 1::Csize_t,
        reader.batch::Ptr{CBatch}, C_NULL::Ptr{Ptr{Cvoid}})::UInt32
    # What is wrong with it is said by the call that follows.
    code != 0 || reader.batch[].count > 0
end

"""
    batches(source[, framer]; most, options...)

Iterates over the records as [`Batch`](@ref)es: those that are there, at `most` so many, and never waiting for a second one.
`source` is a [`Reader`](@ref), which goes on where it is, or what one can be made of, with its options.

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

Iterates over the records, each a `String`; lines unless a framer says otherwise. `source` as for [`batches`](@ref).

    for line in eachrecord(`samtools view -h reads.bam`)
        use(line)
    end
    # Here the command has succeeded. Had it failed, the loop would have thrown after its last line.
"""
eachrecord(source, framer::Framer = Lines(); options...) = Records(batches(source, framer; options...))

struct Records
    batches::Batches
end

Base.IteratorSize(::Type{Records}) = Base.SizeUnknown()
Base.eltype(::Type{Records}) = String

@inline function Base.iterate(records::Records, i = 0)
    batch = records.batches.batch
    i == 0 || i > length(batch) || return @inbounds(batch[i]), i + 1
    iterate(records.batches) === nothing ? nothing : (batch[1], 2)
end

"""
    next_line(reader)

The next line, or `nothing` at the end, which says that the source succeeded.
"""
next_line(reader::Reader) = next_frame(reader, Lines())

"""
    next_frame(reader, framer)

The next record as a `String`, or `nothing` at the end.
"""
function next_frame(reader::Reader, framer::Framer)
    await_record(reader, framer)
    with_failure(reader.source) do
        @call millstream_reader_next_frame(reader::Ptr{Cvoid}, framer::Ptr{Cvoid}, reader.buffer::Ptr{Ptr{UInt8}}, reader.len::Ptr{Csize_t})
    end
    reader.buffer[] == C_NULL ? nothing : unsafe_string(reader.buffer[], reader.len[])
end

"""
    skip_record(reader[, framer])

Skips a record, however long it is, such as one that was too long. Returns whether there was one.
"""
function skip_record(reader::Reader, framer::Framer = Lines())
    check_open(reader)
    skipped = Ref(false)
    with_failure(reader.source) do
        @call millstream_reader_skip_record(reader::Ptr{Cvoid}, framer::Ptr{Cvoid}, skipped::Ptr{Bool})
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
