# Records in Julia's own memory.

"""
Records in one block of memory: record `i` is `batch[i]`, a separate `String`, or `record(batch, i)`, a view.

`bytes` is the block and `offsets` are the positions in it where records begin (from 0), with one more for the end.
`offset`, `first_record` and `first_line` are the position of the batch in the stream. The first line of a text is 1;
`first_line` is `nothing` if not all records up to this one are lines. The next batch of the same loop reuses the
memory, so copy the records that you keep (a `String` is a copy). """
mutable struct Batch <: AbstractVector{String}
    bytes::Vector{UInt8}
    offsets::Vector{UInt32}
    trim::CTrim
    terminated::Bool
    offset::Int64
    first_record::Int64
    first_line::Union{Int64,Nothing}
    # The number of records that a loop over single records has used.
    used::Int

    Batch() = new(UInt8[], UInt32[0], CTrim(0, 0, false), true, 0, 0, nothing, 0)
end

Base.size(batch::Batch) = (length(batch.offsets) - 1,)
Base.IndexStyle(::Type{Batch}) = IndexLinear()

# The position of a record's content: the number of bytes before it, and its length.
@inline function content(batch::Batch, i::Int)
    @boundscheck checkbounds(batch, i)
    offsets = batch.offsets
    @inbounds bounds_of(batch, pointer(batch.bytes), Int(offsets[i]), Int(offsets[i+1]), i == length(offsets) - 1)
end

@inline content(batch::CBatch, i::Int) =
    bounds_of(batch, batch.bytes, Int(unsafe_load(batch.offsets, i)), Int(unsafe_load(batch.offsets, i + 1)), i == batch.count)

# Without the parts of the record from `first` to `last` that are not content.
@inline function bounds_of(batch, bytes, first, last, is_last)
    trim = batch.trim
    if batch.terminated || !is_last
        last = max(first, last - trim.tail)
        if trim.carriage_return && last > first && unsafe_load(bytes, last) == 0x0d
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

The bytes of a record without a copy, valid until the next batch.
"""
@inline function record(batch::Batch, i::Int)
    before, len = content(batch, i)
    view(batch.bytes, before+1:before+len)
end

# The line of a record in a batch of the library, in which 0 means that it is not known.
line_of(first_line, row) = first_line == 0 ? nothing : Int64(first_line) + row - 1

# Copies the library's batch into Julia's memory. The copy stays within the cache, and no batch can outlive its memory.
function take_over!(batch::Batch, lent::CBatch)
    resize!(batch.bytes, lent.len)
    unsafe_copyto!(pointer(batch.bytes), lent.bytes, lent.len)
    resize!(batch.offsets, lent.count + 1)
    unsafe_copyto!(pointer(batch.offsets), lent.offsets, lent.count + 1)
    batch.trim, batch.terminated = lent.trim, lent.terminated
    batch.offset, batch.first_record, batch.first_line = lent.offset, lent.first_record, line_of(lent.first_line, 1)
    batch
end
