# Records of CSV as their fields.

"""
    rows(source[, framer]; ragged = :error, options...)

Iterates over the records of CSV, each a `Vector{String}` of its fields. Blank lines and comments are skipped. `source`
works as in [`batches`](@ref); `framer` is a [`Csv`](@ref). If the loop ends early, the reader is positioned after the
last record that the loop received.

Once [`namedtuples`](@ref) or [`dicts`](@ref) have read the header, rows have as many fields, and `ragged` works as there. With
`ragged = :collect`, missing fields are empty, and a record with more fields than the header keeps them. """
rows(source, framer::Framer = Csv(); options...) = rows_of(:rows, plain, false, source, framer; options...)

"""
    namedtuples(source[, framer]; ragged = :error, options...)

Iterates over the records of CSV, each a `NamedTuple` of strings with the names of the header. The header is the first
record, which the reader keeps for later loops. A record with another number of fields is an error of kind
`:field_count_mismatch`; a loop after it continues with the next record. With `ragged = :pad`, fields that are missing at
its end are empty; a record with more fields than the header is still an error. If names are equal, use [`dicts`](@ref).

    for person in namedtuples("people.csv")
        println(person.name, " is ", parse(Int, person.age))
    end
"""
namedtuples(source, framer::Framer = Csv(); options...) = rows_of(:namedtuples, named, true, source, framer; options...)

"""
    dicts(source[, framer]; ragged = :error, options...)

Like [`namedtuples`](@ref), but each record is a `Dict{String,String}`. If names are equal, it has the last of their
fields.
"""
dicts(source, framer::Framer = Csv(); options...) = rows_of(:dicts, dict, true, source, framer; options...)

plain(_, fields) = fields
named(header, fields) = NamedTuple{header.symbols}(Tuple(fields))
dict(header, fields) = Dict{String,String}(zip(header.names, fields))

# The records of CSV of batches; each is converted by `make(header, fields)`.
struct Rows{F}
    batches::Batches
    make::F
    has_header::Bool
    ragged::UInt32
    # The rows of the current batch, and their records in it.
    fields::Vector{Vector{String}}
    records::Vector{Int}
end

function rows_of(caller, make, has_header, source, framer; ragged = :error, options...)
    check_options(caller, options, (:ragged, options_for(source)...))
    has_header && ragged === :collect && throw(ArgumentError("ragged = :collect needs rows(); $caller() has names for the fields of the header only"))
    ragged = choice(:ragged, ragged, choices.csv_ragged)
    Rows(batches_of(source, framer; options...), make, has_header, ragged, Vector{String}[], Int[])
end

Base.IteratorSize(::Type{<:Rows}) = Base.SizeUnknown()
Base.IteratorEltype(::Type{<:Rows}) = Base.EltypeUnknown()
Base.IteratorEltype(::Type{Rows{typeof(plain)}}) = Base.HasEltype()
Base.eltype(::Type{Rows{typeof(plain)}}) = Vector{String}
Base.IteratorEltype(::Type{Rows{typeof(dict)}}) = Base.HasEltype()
Base.eltype(::Type{Rows{typeof(dict)}}) = Dict{String,String}

function Base.iterate(rows::Rows, next = 1)
    reader = rows.batches.reader
    row, next = next_row(rows, next)
    row === nothing && return nothing
    if rows.has_header && reader.header === nothing
        reader.header = Header(row, Tuple(Symbol.(row)))
        row, next = next_row(rows, next)
        row === nothing && return nothing
    end
    header = reader.header
    if header !== nothing
        width = length(header.names)
        length(row) == width || check_fields(rows, length(row), width)
        while length(row) < width
            push!(row, "")
        end
    end
    rows.make(header, row), next
end

# Throws unless the last row may have this number of fields.
check_fields(rows, found, width) =
    @call millstream_reader_check_fields(rows.batches.reader, rows.batches.batch.used - 1, found, width, rows.ragged)

# Returns the row with this index, or the first one of the next batch; then the index of the row after it.
function next_row(rows, next)
    reader, batch = rows.batches.reader, rows.batches.batch
    while reader.in_use !== batch || next > length(rows.records)
        # The lines after the last row are not records.
        reader.in_use === batch && (batch.used = length(batch))
        lent = next_batch(reader, rows.batches.framer, reader.ahead)
        lent.count == 0 && return nothing, 1
        take_over!(batch, lent)
        reader.in_use, batch.used = batch, 0
        reader.ahead = max(reader.ahead, 2 * reader.ahead) # no more than all
        take_rows!(rows, batch)
        next = 1
    end
    batch.used = rows.records[next]
    rows.fields[next], next + 1
end

# Splits the records of a batch into fields.
function take_rows!(rows, batch)
    empty!(rows.fields)
    empty!(rows.records)
    bytes, offsets = batch.bytes, batch.offsets
    GC.@preserve bytes offsets begin
        lent = Ref(CBatch(pointer(bytes), length(bytes), pointer(offsets), length(batch), batch.trim, batch.terminated, 0, 0, 0))
        found = Ref{CRows}()
        @call millstream_framer_rows(rows.batches.framer, lent, found)
        split = found[]
        for row in 1:Int(split.count)
            first, last = unsafe_load(split.starts, row), unsafe_load(split.starts, row + 1)
            push!(rows.fields, [unsafe_string(field.bytes, field.len) for field in (unsafe_load(split.fields, i) for i in first+1:last)])
            push!(rows.records, Int(unsafe_load(split.records, row)) + 1)
        end
    end
end
