# How values look in a prompt, in a log and in an error. None of this waits, reads, or changes what it shows.

Base.show(io::IO, reader::Reader) = print(io, "Reader(", isopen(reader) ? repr(name(reader)) : "closed", ")")
Base.show(io::IO, writer::Writer) = print(io, "Writer(", isopen(writer) ? repr(name(writer)) : "closed", ")")

function Base.show(io::IO, ::MIME"text/plain", reader::Reader)
    show(io, reader)
    isopen(reader) || return
    bytes, records = progress(reader)
    print(io, ": ", counted(bytes, "byte"), " and ", counted(records, "record"), " read")
end

function Base.show(io::IO, ::MIME"text/plain", writer::Writer)
    show(io, writer)
    isopen(writer) && print(io, ": ", counted(position(writer), "byte"), " accepted")
    nothing
end

counted(count, noun) = count == 1 ? "1 $noun" : "$count $(noun)s"

Base.show(io::IO, remote::Remote) = print(io, "Remote(", repr(shown(remote)), ")")
Base.show(io::IO, framer::Framer) = print(io, framer.text)
Base.show(io::IO, batches::Batches) = print(io, "batches(", batches.reader, ", ", batches.framer, ")")
Base.show(io::IO, records::Records{typeof(getindex)}) = print(io, "eachrecord(", records.batches.reader, ", ", records.batches.framer, ")")
Base.show(io::IO, records::Records{typeof(decoded)}) = print(io, "documents(", records.batches.reader, ")")

Base.show(io::IO, rows::Rows) =
    print(io, rows.make === plain ? "rows" : rows.make === named ? "namedtuples" : "dicts", "(", rows.batches.reader, ", ", rows.batches.framer, ")")

Base.show(io::IO, batches::ColumnBatches) =
    print(io, "ColumnBatches(", batches.handle == C_NULL ? "closed" : repr(name(batches)), ")")

Base.show(io::IO, stage::Stage) = print(io, stage.in_threads ? "parallel" : "map_async", "(", stage.call, ", ", stage.source, ")")

Base.show(io::IO, token::CancelToken) = print(io, "CancelToken(", iscancelled(token) ? "cancelled" : "", ")")

Base.show(io::IO, error::MillstreamError) = print(io, "MillstreamError(", repr(error.kind), ", ", repr(error.message), ")")

# All that is known, one property per line.
function Base.show(io::IO, ::MIME"text/plain", error::MillstreamError)
    print(io, "MillstreamError: ", error.message)
    for property in fieldnames(MillstreamError)
        value = getfield(error, property)
        property == :message || value === nothing || print(io, "\n  ", property, ": ", repr(value))
    end
end
